//! Setting a node's hierarchy up: its threads become members of a managed set, with their jobs in the run.

use super::accounts::{Exceeded, NamedMember, early_end, exceeded, members};
use super::control;
use super::error::HierarchyError;
use super::lanes::{self, LaneMember};
use crate::control::Control;
use crate::counts;
use crate::options::JudgeBy;
use crate::outcome::{HierarchyOutcome, ParkingOutcome, ScheduledBy, ThreadAttributes};
use crate::recorder::{Recorder, Recording};
use std::sync::Arc;
use talea_analysis::system::Leaving;
use talea_guarantee::guarantee::Guarantee;
use talea_linux::Tid;
use talea_linux::affinity;
use talea_linux::burn::Burner;
use talea_linux::clock::MonotonicClock;
use talea_linux::memory::prefault_stack;
use talea_linux::proc;
use talea_manage::control::{CommandHandler, Governor};
use talea_manage::{
    Admission, AdmitError, Blocks, Handle, MORE_TO_HOLD, ManagedRun, ManagedSet, Marks, MemberId, MemberJobs,
    Options, Parking, RunRecorder, STACK, ShortQuantum, SwitchStream, Target, ThreadJobs, ThreadOptions,
    WatchedEdge, command,
};
use talea_model::{Execution, OperationId, System, ThreadWork};
use talea_notification::EventChannelFactory;
use talea_policy::arrangement::live::Live;
use talea_policy::arrangement::{
    ArrangeError, Arrangement, ChangeCause, Kept, Leaf, Promise, Receipts, Watch, arrange_given,
};
use talea_policy::demand::{self, Purpose};
use talea_policy::hierarchy::SchedulerId;
use talea_policy::release::Arrivals;
use talea_policy::strategy::Plan;
use talea_record::event::Thread;
use talea_record::{EdgeEntry, EdgeNumbers, Metadata, Record, RingWriter, Sink, ThreadRole};
use talea_time::{Clock, Duration, Instant};

/// Members that may come on top of those of the description while it runs.
const MORE_MEMBERS: usize = 64;
/// Of the stack of a thread that burns.
const PREFAULTED: usize = 32 * 1024;

/// What a hierarchy is made from.
pub(crate) struct HierarchyParts<'a> {
    /// The system, with threads as tasks.
    pub system: &'a System,
    pub node: usize,
    pub metadata: &'a Metadata,
    pub burner: Burner,
    /// What is short by no more is no broken promise.
    pub tolerance: Duration,
    /// By what promises are judged.
    pub judge: JudgeBy,
    /// What it leaves of its processors.
    pub leaving: &'a Leaving,
    /// The node's channels, if the description has any there.
    pub channels: Option<&'a EventChannelFactory>,
}

/// A node's hierarchy whose threads are all members. Dropping it ends it.
pub(crate) struct Hierarchy {
    node: String,
    governor: Arc<Governor>,
    control: Control,
    leaving: Leaving,
    named: Vec<NamedMember>,
    shortcomings: Option<String>,
    /// Whether there are programs, or code of users, whose wake-ups the kernel has to tell.
    blocks_unseen: bool,
    /// The rings that say which threads the programs are.
    _introductions: Vec<RingWriter>,
}

/// A hierarchy while its threads become members.
struct Admitting {
    set: ManagedSet,
    /// The threads of the description by name, in file order.
    members: Vec<(String, MemberId)>,
    named: Vec<NamedMember>,
    introductions: Vec<RingWriter>,
}

/// The names of the rings that a node's hierarchy writes: its own, its threads', and that of the auditor, which judges what was received.
pub(crate) fn rings_of(system: &System, node: usize) -> Vec<String> {
    let own = format!("h:{}", system.nodes[node].name);
    let threads = system.threads_on(node).map(|thread| system.threads[thread].name.clone());
    let receipts = format!("r:{}", system.nodes[node].name);
    std::iter::once(own).chain(threads).chain([receipts]).collect()
}

/// The edges that are watched on all nodes, in the order of their numbers.
///
/// # Errors
/// A node's hierarchy cannot be arranged.
pub(crate) fn edges(
    system: &System,
    plans: &[Plan],
    leaving: &[Leaving],
) -> Result<Vec<EdgeEntry>, (usize, ArrangeError)> {
    let mut entries = Vec::new();
    for (node, plan) in plans.iter().enumerate() {
        let given = leaving[node].given();
        let arrangement = arrange_given(system, node, plan, 1, &given).map_err(|error| (node, error))?;
        if let Some(arrangement) = arrangement {
            entries.extend(entries_of(system, node, &arrangement));
        }
    }
    Ok(entries)
}

/// The edges between schedulers, then those to threads: the order in which they are watched.
fn entries_of(system: &System, node: usize, arrangement: &Arrangement) -> Vec<EdgeEntry> {
    let entry = |parent: usize, child: &str, promise: Option<&Promise>| EdgeEntry {
        node,
        parent: system.schedulers[parent].name.clone(),
        child: child.into(),
        guarantee: promise.map_or(&Guarantee::Null, Promise::guarantee).to_string(),
    };
    let between = arrangement
        .edges
        .iter()
        .map(|edge| entry(edge.parent, &system.schedulers[edge.child].name, edge.promise.as_ref()));
    let to_threads = arrangement
        .leaves
        .iter()
        .map(|leaf| entry(leaf.scheduler, &system.threads[leaf.thread].name, leaf.promise.as_ref()));
    between.chain(to_threads).collect()
}

impl HierarchyParts<'_> {
    /// Sets the hierarchy up, with the lanes of its tasks. Its records go to `rings`, see [`rings_of`].
    ///
    /// # Errors
    /// See [`HierarchyError`].
    pub fn set_up(
        &self,
        plan: &Plan,
        lanes: Vec<LaneMember>,
        rings: Vec<RingWriter>,
    ) -> Result<Hierarchy, HierarchyError> {
        ShortQuantum::refuse_on(self.system, self.node)?;
        let arranged = arrange_given(self.system, self.node, plan, 1, &self.leaving.given())?;
        let mut arrangement = arranged.expect("the node has a hierarchy");
        let mut rings = rings.into_iter();
        let own = rings.next().expect("the first ring is the hierarchy's");
        let cpus = self.system.nodes[self.node].cpus.clone();
        let most = arrangement.leaves.len() + lanes.len() + MORE_MEMBERS;
        let marks = if lanes.is_empty() { Marks::Both } else { Marks::End };
        let recorder = RunRecorder::new(own, self.node, cpus.clone(), marks).counted(counts::count_in);
        let mut watch = Watch::new(self.tolerance);
        watch.tell();
        let sight = match self.judge {
            JudgeBy::Received => SwitchStream::open(&cpus),
            JudgeBy::Grants => Err("that was asked for".into()),
        };
        arrangement.watch_by(&mut watch, self.system);
        let run = ManagedRun::new(recorder, watch, self.edges(), most);
        let leaves = std::mem::take(&mut arrangement.leaves);
        let live = Live::new(&control::description(self.system), self.node, &arrangement)?;
        let parking = |name: &str| match live.blueprint().is_capped(name) {
            true => Parking::Held,
            false => Parking::WorkConserving,
        };
        let engine = std::mem::replace(&mut arrangement.engine, talea_policy::hierarchy::Engine::new(0));
        let options = Options {
            members_max: most,
            slices: self.leaving.slices(),
            controller_cpus: self.processors_of_nobody_else(),
            ..Options::on(&cpus)
        };
        let mut admitting = Admitting {
            set: ManagedSet::prepare(engine, &options)?,
            members: Vec::new(),
            named: Vec::new(),
            introductions: Vec::new(),
        };
        admitting.set.keep_apart(numbers(self.system));
        admitting.set.set_run(run);
        let told = rings.next_back().expect("the last ring is that of receipts");
        admitting.set.audit(sight, (told, self.edges()))?;
        for (leaf, ring) in leaves.iter().zip(rings) {
            self.place(&mut admitting, leaf, parking(&self.system.threads[leaf.thread].name), ring)?;
        }
        let parking_under = |above: usize| parking(&self.system.schedulers[above].name);
        let has_code = place_lanes(&mut admitting.set, lanes, &arrangement.lanes, parking_under)?;
        let governor = Arc::new(Governor::new(admitting.set, live, admitting.members));
        Ok(Hierarchy {
            node: self.system.nodes[self.node].name.clone(),
            control: Control::of_hierarchy(
                (self.system, self.node),
                Arc::clone(&governor) as Arc<dyn CommandHandler>,
                self.channels,
            ),
            governor,
            leaving: self.leaving.clone(),
            named: admitting.named,
            shortcomings: arrangement.shortcomings.as_ref().map(ToString::to_string),
            blocks_unseen: has_code
                || leaves.iter().any(|leaf| self.system.threads[leaf.thread].work.is_program()),
            _introductions: admitting.introductions,
        })
    }

    /// Where the controller takes time from no other node; nothing if there is none.
    fn processors_of_nobody_else(&self) -> Vec<u16> {
        let own = &self.system.nodes[self.node].cpus;
        let nodes = self.system.nodes.iter().enumerate().filter(|(node, _)| *node != self.node);
        let of_others: Vec<u16> = nodes.flat_map(|(_, node)| node.cpus.iter().copied()).collect();
        let is_free = |cpu: &u16| own.contains(cpu) || !of_others.contains(cpu);
        match of_others.is_empty() {
            true => Vec::new(),
            // What is allowed was asked before.
            false => {
                affinity::allowed().unwrap_or_else(|_| own.clone()).into_iter().filter(is_free).collect()
            }
        }
    }

    /// How records number the node's edges.
    fn edges(&self) -> EdgeNumbers {
        EdgeNumbers::of(self.metadata, self.node)
    }

    /// A thread of the description becomes a member.
    fn place(
        &self,
        admitting: &mut Admitting,
        leaf: &Leaf,
        parking: Parking,
        ring: RingWriter,
    ) -> Result<(), HierarchyError> {
        let thread = &self.system.threads[leaf.thread];
        let operation = self.system.operation_of_thread(leaf.thread).expect("threads are tasks");
        let parent = &self.system.schedulers[leaf.scheduler].name;
        let admission = Admission {
            name: &thread.name,
            parent: leaf.parent,
            parameters: leaf.parameters,
            parking,
            edge: Some(WatchedEdge { parent, promise: leaf.promise.as_ref(), cause: ChangeCause::DESCRIBED }),
        };
        let part = self.jobs_of(operation);
        let set = &mut admitting.set;
        let (member, parking) = match &thread.work {
            ThreadWork::CpuBound | ThreadWork::Bursts { .. } => {
                let work = self.work(operation, &thread.work);
                let lane = usize::from(part.lane);
                let recording = Recording::new(ring, self.node, &self.system.nodes[self.node].cpus);
                let ready = move || {
                    prefault_stack(PREFAULTED);
                    recording.begin(ThreadRole::Lane, Some(lane))
                };
                let jobs = Some(MemberJobs::Thread(part));
                let own = ThreadOptions { blocks: Blocks::ByHandle, jobs, stack: STACK };
                let run = move |recorder: Recorder, handle: &Handle| {
                    work.run(handle);
                    drop(recorder);
                };
                let (member, _waker) = set.admit_thread(admission, own, ready, run)?;
                (member, ParkingOutcome::from(parking))
            }
            ThreadWork::Command(words) => {
                let admitted = held_if_possible(admission, |admission| {
                    set.admit_command(admission, &mut command::of_words(words), part.clone())
                })?;
                admitting.introduce(self, admitted.0, operation, ring);
                admitted
            }
            ThreadWork::Process { .. } | ThreadWork::Thread(_) => {
                let target = Target::of(&thread.work).expect("it is there");
                let admitted = held_if_possible(admission, |admission| {
                    set.admit_process(admission, target, part.clone())
                })?;
                admitting.introduce(self, admitted.0, operation, ring);
                admitted
            }
        };
        admitting.members.push((thread.name.clone(), member));
        admitting.named.push(NamedMember { name: thread.name.clone(), parking, calls: Vec::new() });
        Ok(())
    }

    pub(crate) fn jobs_of(&self, operation: OperationId) -> ThreadJobs {
        let arrivals = Arrivals::of_task(self.system, self.system.operations()[operation.index()].task);
        let lane = self.metadata.operations[operation.index()].lane as u16;
        ThreadJobs::new(operation, lane, arrivals, self.system.subtask(operation).wcet)
    }

    fn work(&self, operation: OperationId, work: &ThreadWork) -> Workload {
        match work {
            ThreadWork::Bursts { .. } => Workload::Bursts {
                exec: self.system.subtask(operation).exec.clone(),
                stream: demand::stream(self.system.seed, Purpose::Execution, operation.index()),
                burner: self.burner,
            },
            _ => Workload::Endless,
        }
    }
}

/// The numbers of processes and threads that are there already, and that the description schedules by themselves.
pub(crate) fn numbers(system: &System) -> impl Iterator<Item = u32> + '_ {
    system.threads.iter().filter_map(|thread| Target::of(&thread.work)).map(Target::number)
}

/// The lanes' threads become members. Returns whether any of them runs code of users.
fn place_lanes(
    set: &mut ManagedSet,
    lane_members: Vec<LaneMember>,
    leaves: &[SchedulerId],
    parking_under: impl Fn(usize) -> Parking,
) -> Result<bool, HierarchyError> {
    let mut has_code = false;
    for lane_member in lane_members {
        has_code |= lane_member.runs_code();
        let leaf = leaves[lane_member.level];
        let parking = parking_under(lane_member.under);
        lanes::place(set, lane_member, leaf, parking)?;
    }
    Ok(has_code)
}

/// Takes a program in, which is only parked where no more of them can be held.
fn held_if_possible(
    admission: Admission<'_>,
    mut take_in: impl FnMut(Admission<'_>) -> Result<MemberId, AdmitError>,
) -> Result<(MemberId, ParkingOutcome), AdmitError> {
    match take_in(admission) {
        Err(
            AdmitError::CannotHold { .. }
            | AdmitError::OutOfReach { .. }
            | AdmitError::TooMany { what: MORE_TO_HOLD, .. },
        ) => {
            let parked = take_in(Admission { parking: Parking::WorkConserving, ..admission })?;
            Ok((parked, ParkingOutcome::NotHeld))
        }
        admitted => Ok((admitted?, admission.parking.into())),
    }
}

/// What an own thread does when it is granted a processor.
enum Workload {
    Endless,
    Bursts { exec: Execution, stream: u64, burner: Burner },
}

impl Workload {
    fn run(&self, handle: &Handle) {
        while let Some(number) = handle.next_job() {
            self.perform(number, || handle.is_ended());
            if !handle.is_ended() {
                handle.end_job();
            }
        }
    }

    /// Does the job of this number, unless all `is_ended` before that.
    fn perform(&self, number: u64, is_ended: impl Fn() -> bool) {
        match self {
            Workload::Endless => {
                while !is_ended() {
                    std::hint::spin_loop();
                }
            }
            Workload::Bursts { exec, stream, burner } => {
                burner.burn(demand::execution_from(exec, *stream, number), is_ended);
            }
        }
    }
}

impl Admitting {
    /// Tells those who follow the run which thread a program is.
    fn introduce(
        &mut self,
        parts: &HierarchyParts<'_>,
        member: MemberId,
        operation: OperationId,
        mut ring: RingWriter,
    ) {
        if let Some(&thread) = self.set.threads_of(member).first() {
            let tid = i32::try_from(thread).ok().and_then(Tid::from_raw);
            let process = tid.and_then(proc::process_of);
            let pid = process.map_or(thread, |process| process.as_raw_nonzero().get() as u32);
            let lane = parts.metadata.operations[operation.index()].lane as u16;
            let (node, role) = (parts.node as u32, ThreadRole::Lane.into());
            let thread = Thread { tid: thread, pid, node, lane: Some(lane), role };
            let record = thread.at(MonotonicClock.now(), Record::NO_CPU);
            ring.identify(&record);
            ring.record(record);
        }
        self.introductions.push(ring);
    }
}

impl Hierarchy {
    /// The threads of the infrastructure, as the kernel has them.
    pub fn attributes(&self) -> Vec<ThreadAttributes> {
        let threads = self.governor.with_set(ManagedSet::threads).unwrap_or_default();
        threads.iter().map(ThreadAttributes::from).collect()
    }

    /// The run will last from `start` to `end`.
    pub fn begin(&self, start: Instant, end: Instant) {
        self.governor.with_set(|set| set.begin_run(start, end));
    }

    /// Whether it has ended, at the planned end or before.
    pub fn is_over(&self) -> bool {
        self.governor.with_set(ManagedSet::is_ended).unwrap_or(true)
    }

    /// Ends it, unless it is over, and says what came of it. Threads of the description do not panic.
    pub fn end(mut self) -> HierarchyOutcome {
        let uncontrolled = self.control.closed().map(str::to_owned);
        self.control.close();
        let mut set = self.governor.retire().expect("nobody else takes it");
        let ended_run = set.close_run().expect("a run ends once");
        let audit = set.close_audit(&ended_run);
        let untraced = set.untraced().filter(|_| self.blocks_unseen).map(str::to_owned);
        let mut kept = ended_run.kept.clone();
        let mut named: Vec<NamedMember> =
            self.named.into_iter().chain(control::newcomers(&self.governor)).collect();
        for member in &mut named {
            member.parking = self.governor.parking(&member.name).map_or(member.parking, Into::into);
            let calls = set.calls_of(&member.name).into_iter();
            member.calls = calls.map(|(call, times)| (call.name().to_owned(), times)).collect();
        }
        let mut uncontained = set.shortcomings();
        uncontained.extend(set.leavers().into_iter().map(|(name, process)| {
            format!("{name}: process {process} has left the cgroup that it was started in, with the privileges of root")
        }));
        for Exceeded { edge, excess_ns, is_held_late } in exceeded(&named, &ended_run, &set.departed()) {
            kept[edge].exceeded_ns = Some(excess_ns);
            kept[edge].is_held_late = is_held_late;
            set.tell_exceeded(edge, (Duration::from_nanos(excess_ns), is_held_late), &ended_run);
        }
        let summary = set.stop().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let ended_early =
            early_end(summary.cause.clone(), (ended_run.start, ended_run.end, ended_run.planned_end));
        let members = members(&named, &ended_run, &summary);
        let edges = judged(kept, audit.receipts, ended_run.start);
        HierarchyOutcome {
            node: self.node,
            scheduled_by: ScheduledBy::Infrastructure,
            uncontained,
            lowering: Vec::new(),
            members,
            edges,
            judged_by: Some(audit.judged_by),
            grants: summary.totals.grants,
            given: self.leaving.slices().map(|slices| slices.given().to_string()),
            slices: summary.totals.slices,
            unsliced: match self.leaving {
                Leaving::Declined { finding } => Some(finding),
                Leaving::Nothing | Leaving::Slices(_) => None,
            },
            undefined: ended_run.undefined,
            untraced,
            uncontrolled,
            unmanaged_threads: summary.totals.unmanaged_threads,
            ended_early,
            shortcomings: self.shortcomings,
            unrestored: summary.unrestored,
        }
    }
}

/// Edges judged by what was granted, and by what was received of it where that is known, with instants since the run's start.
fn judged(kept: Vec<Kept>, receipts: Vec<Receipts>, start: Instant) -> Vec<Kept> {
    let mut receipts = receipts.into_iter();
    let judge = |kept: Kept| match receipts.next() {
        Some(receipts) => kept.with_receipts(receipts).since(start),
        None => kept.since(start),
    };
    kept.into_iter().map(judge).collect()
}
