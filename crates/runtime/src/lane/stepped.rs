//! Lanes that the caller steps: for a program with a loop of its own, and for whoever wants to decide by hand when a lane runs.

use super::agent::{Elected, LaneAgent, Step};
use super::enforcement::{Enforcement, JobHost};
use crate::flow::{JobFlow, JobFlowSetUp, Shared};
use crate::poster::Poster;
use std::sync::Arc;
use talea_linux::clock::MonotonicClock;
use talea_record::{JobId, ThreadRole};
use talea_ring::bell::Bell;
use talea_time::{Clock, Instant};

/// A lane without a thread.
pub(crate) struct UnsteppedLane {
    pub agent: LaneAgent,
    pub flow_set_up: JobFlowSetUp,
}

/// The lanes of a run that have no threads, before it is known which thread will step them.
pub struct SteppedLanesSetUp {
    pub(crate) lanes: Vec<UnsteppedLane>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) shared: Arc<Shared>,
}

/// The lanes of a run that the calling thread steps.
pub struct SteppedLanes {
    /// By node, and from the highest down.
    agents: Vec<LaneAgent>,
    poster: Poster,
    bell: Arc<Bell>,
}

/// What came of a [step](SteppedLanes::step).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneStep {
    /// A job was executed, or was aborted just before it began; there may be more.
    Worked,
    /// There is no job.
    Idle,
    /// The run is over.
    Over,
}

/// Nobody but the caller says when a lane runs, and it sleeps by itself.
struct Stepped;

impl JobHost for Stepped {
    fn may_execute_within(&self) -> bool {
        true
    }

    fn begin(&mut self, flow: &mut JobFlow, _job: JobId, record: impl FnOnce(&mut JobFlow, Instant)) {
        record(flow, MonotonicClock.now());
    }

    fn end<F, R>(
        &mut self,
        flow: &mut JobFlow,
        finish: impl FnOnce() -> F,
        record: impl FnOnce(&mut JobFlow, Instant, F) -> Option<R>,
    ) -> Option<R> {
        let end = MonotonicClock.now();
        record(flow, end, finish())
    }
}

impl Enforcement for Stepped {
    fn run(&mut self, flow: &mut JobFlow, elected: Elected<'_>) -> Step {
        elected.run_here(flow, self)
    }

    fn give_back(&mut self, _flow: &mut JobFlow) {}

    fn sleep(&mut self, _has_work: impl Fn() -> bool) {}
}

impl std::fmt::Debug for SteppedLanesSetUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SteppedLanesSetUp").field("lanes", &self.lanes.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SteppedLanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SteppedLanes").field("lanes", &self.agents.len()).finish_non_exhaustive()
    }
}

impl SteppedLanesSetUp {
    /// The calling thread steps them from now on, at whatever priority it has.
    ///
    /// # Panics
    /// If the thread has a [`Poster`](crate::Poster): it posts by this then.
    pub fn begin(self) -> SteppedLanes {
        let SteppedLanesSetUp { lanes, bell, shared } = self;
        let mut agents = Vec::with_capacity(lanes.len());
        let mut set_ups = Vec::with_capacity(lanes.len());
        for UnsteppedLane { agent, flow_set_up } in lanes {
            agents.push(agent);
            set_ups.push(flow_set_up);
        }
        // One thread writes one ring: that of its first lane.
        let first = agents.first().map(|agent| agent.lane);
        let set_up = set_ups.into_iter().next().expect("there is a lane to step");
        let flow = set_up.begin(ThreadRole::Lane, first);
        SteppedLanes { agents, poster: Poster::new(shared, flow), bell }
    }
}

impl SteppedLanes {
    /// Takes in what has been released, and runs the best job of the highest lane that has any to its end; of several nodes, in
    /// their order. Neither allocates nor waits.
    pub fn step(&mut self) -> LaneStep {
        if self.poster.shared.stop.is_stopped() {
            return LaneStep::Over;
        }
        let SteppedLanes { agents, poster: Poster { flow, .. }, .. } = self;
        loop {
            let mut steps = agents.iter_mut().map(|agent| agent.step(flow, &mut Stepped));
            match steps.find(|step| *step != Step::Idle) {
                None | Some(Step::Idle) => return LaneStep::Idle,
                Some(Step::Worked) => return LaneStep::Worked,
                // What has come may be of a higher lane, too.
                Some(Step::ChooseAgain) => {}
            }
        }
    }

    /// Posts for the thread, which steps lanes.
    pub fn poster(&mut self) -> &mut Poster {
        &mut self.poster
    }

    /// Sleeps until there may be something to do, or the run is over.
    pub fn wait(&mut self) {
        let (agents, shared) = (&self.agents, &self.poster.shared);
        self.bell
            .wait_unless(|| shared.stop.is_stopped() || agents.iter().any(|agent| agent.inbox.has_number()));
    }
}
