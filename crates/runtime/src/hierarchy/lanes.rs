//! Lanes below other schedulers: the strategy's lanes as members of their node's hierarchy.
//!
//! ```text
//!   release thread, other lanes, other nodes
//!        │ push a tag, ring
//!        ▼                                  the schedulers of the description
//!   inbox of the lane ──waker──▶ engine:      └─ lanes: fixed priority
//!        │                                         ├─ lane 0 ── its thread   a member like any other
//!        ▼                                         └─ lane 1 ── its thread
//!   the lane's thread: order, run, successors
//! ```
//!
//! To the engine a lane is one thread, which wants a processor while the lane has jobs. Who of them is next the lane's own
//! thread decides, with the very queue that it has where the kernel dispatches it ([`LaneAgent`]); what is different is where
//! it sleeps and who tells of preemptions. A started job keeps its lane until it ends, so there is nothing that the engine
//! would have to know about it, but for schedulers that guarantee single jobs: while a lane has begun none, they hear of the first of those
//! that are released into it, and then of each that its thread elects, before it begins.

use super::error::HierarchyError;
use crate::flow::{JobFlow, JobFlowSetUp};
use crate::job_table::Begin;
use crate::lane::{Candidate, Elected, Enforcement, JobHost, LaneAgent, Step};
use crate::layout::OperationSite;
use std::sync::Arc;
use talea_linux::memory::prefault_stack;
use talea_manage::{
    Admission, Blocks, Handle, LaneJobs, LaneTurn, ManagedSet, MemberJobs, Parking, Priorities, ThreadOptions,
};
use talea_model::{LaneDispatch, System};
use talea_policy::hierarchy::{Parameters, SchedulerId};
use talea_policy::job::Job;
use talea_policy::strategy::Plan;
use talea_record::event::Preempt;
use talea_record::{JobId, ThreadRole};
use talea_time::Instant;

/// A lane that waits to be taken in.
pub(crate) struct LaneMember {
    pub node: usize,
    /// Index within its node's plan.
    pub level: usize,
    /// The scheduler of kind `lanes` that it belongs to, by index.
    pub under: usize,
    pub name: String,
    pub agent: LaneAgent,
    pub flow_set_up: JobFlowSetUp,
    /// Of its thread, in bytes.
    pub stack: usize,
}

impl LaneMember {
    /// Whether any job of the lane is code of users, which may block anywhere.
    pub fn runs_code(&self) -> bool {
        let LaneAgent { shared, lane, .. } = &self.agent;
        let mut operations = shared.layout.operations.iter().filter(|operation| operation.lane == *lane);
        let has_code = |operation: &OperationSite| shared.behaviour(operation.id).has_code();
        shared.posting.has_room() || operations.any(has_code)
    }
}

/// Lanes that stand below other schedulers, checked for what their threads can do there.
///
/// # Errors
/// A lane decides about jobs that have begun.
pub(crate) fn below_others(system: &System, plan: Plan) -> Result<Plan, HierarchyError> {
    for lane in &plan.lanes {
        let scheduler = || lane.under.map_or("", |index| &system.schedulers[index].name).to_owned();
        if lane.rules.dispatch == LaneDispatch::Preemptive {
            return Err(HierarchyError::PreemptiveLanes { scheduler: scheduler() });
        }
        if let Some(tick) = lane.tick {
            let (scheduler, lane) = (scheduler(), lane.label.clone());
            return Err(HierarchyError::Ticks { scheduler, lane, tick });
        }
    }
    Ok(plan)
}

/// Whether a release thread of priority `top` stands above everybody in a hierarchy; nobody else could release anything while
/// somebody is granted its processor.
///
/// # Errors
/// It does not.
pub(crate) fn release_is_above(top: u8) -> Result<(), HierarchyError> {
    let priorities = Priorities::default();
    if top > priorities.highest() { Ok(()) } else { Err(HierarchyError::ReleaseTooLow { top, priorities }) }
}

/// Takes a lane into its place below `leaf`.
pub(super) fn place(
    set: &mut ManagedSet,
    lane_member: LaneMember,
    leaf: SchedulerId,
    parking: Parking,
) -> Result<(), HierarchyError> {
    let blocks = if lane_member.runs_code() { Blocks::Anywhere } else { Blocks::ByHandle };
    let LaneMember { name, agent, flow_set_up, stack, .. } = lane_member;
    let (shared, lane) = (Arc::clone(&agent.shared), agent.lane);
    let admission =
        Admission { name: &name, parent: leaf, parameters: Parameters::None, parking, edge: None };
    let jobs = Some(MemberJobs::Lane(LaneJobs::new(lane as u16)));
    let ready = move || {
        prefault_stack(stack / 4);
        flow_set_up.begin(ThreadRole::Lane, Some(lane))
    };
    let run = move |flow: JobFlow, handle: &Handle| {
        agent.serve(flow, &mut InSet { handle, lane: lane as u16, offered: None })
    };
    let (_member, waker) = set.admit_thread(admission, ThreadOptions { blocks, jobs, stack }, ready, run)?;
    shared.port(lane).connect(waker);
    Ok(())
}

/// The schedulers above preempt the lane.
struct InSet<'a> {
    handle: &'a Handle,
    lane: u16,
    /// What the lane has elected.
    offered: Option<Job>,
}

impl InSet<'_> {
    fn begin_in(
        &self,
        turn: LaneTurn<'_>,
        flow: &mut JobFlow,
        job: JobId,
        record: impl FnOnce(&mut JobFlow, Instant),
    ) {
        let lane = self.lane;
        turn.begin(job, |now, has_processor| {
            record(flow, now);
            if !has_processor {
                // It goes on as a parked one, of which the next decision may make a running one.
                flow.recorder.put(now, Preempt { job, lane, by: None });
            }
        });
    }
}

impl JobHost for InSet<'_> {
    fn offer(&mut self, _flow: &mut JobFlow, job: &Job) -> bool {
        self.offered = Some(*job);
        self.handle.offer_in_lane(job)
    }

    /// Schedulers above the lane may have granted single jobs.
    fn may_execute_within(&self) -> bool {
        false
    }

    fn begin(&mut self, flow: &mut JobFlow, job: JobId, record: impl FnOnce(&mut JobFlow, Instant)) {
        self.begin_in(self.handle.turn(), flow, job, record);
    }

    /// While it waits for its turn others may run, and release what comes first.
    fn start(
        &mut self,
        flow: &mut JobFlow,
        candidate: &Candidate<'_>,
        record: impl FnOnce(&mut JobFlow, Instant),
    ) -> Begin {
        let offered = self.offered.take();
        let Some(turn) = self.handle.turn_for(offered.as_ref(), || candidate.is_outdated()) else {
            return Begin::NotYet;
        };
        let begun = candidate.begin();
        if begun == Begin::Run {
            self.begin_in(turn, flow, candidate.id, record);
        }
        begun
    }

    fn end<F, R>(
        &mut self,
        flow: &mut JobFlow,
        finish: impl FnOnce() -> F,
        record: impl FnOnce(&mut JobFlow, Instant, F) -> Option<R>,
    ) -> Option<R> {
        self.handle.end_in_lane(|ended| {
            let finished = finish();
            ended.and_then(|now| record(flow, now, finished))
        })
    }

    /// Between two decisions: members of other lanes may be let run at any other instant.
    fn in_turn<R>(
        &mut self,
        flow: &mut JobFlow,
        _now: Instant,
        release: impl FnOnce(&mut JobFlow, Instant) -> R,
    ) -> R {
        self.handle.in_turn(|now| release(flow, now))
    }
}

impl Enforcement for InSet<'_> {
    fn run(&mut self, flow: &mut JobFlow, elected: Elected<'_>) -> Step {
        elected.run_here(flow, self)
    }

    fn give_back(&mut self, _hand: &mut JobFlow) {}

    fn sleep(&mut self, has_work: impl Fn() -> bool) {
        // Whether the set has ended is asked before the next job.
        let _ended = self.handle.block_unless(has_work);
    }

    fn is_gone(&self) -> bool {
        self.handle.is_ended()
    }
}
