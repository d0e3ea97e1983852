//! The virtual-time engine.

mod guarding;
mod posting;
mod triggering;

use crate::agenda::Agenda;
use crate::calendar::{Calendar, Delivery, TaskArrival};
use crate::flow::Joins;
use crate::node::{FirstNumbers, Node, Posting, Released, Slot};
use crate::values::Values;
use crate::workplace::{Arriving, Comes, NewOperation, VirtualWorkplace};
use guarding::Guarding;
pub use guarding::Mishaps;
use std::sync::Arc;
use talea_model::{
    Execution, InputSite, LaneDispatch, Operation, OperationId, Overrun, Synchronisation, System,
};
use talea_notification::declared;
use talea_operation::{
    KeptOutputs, OperationError, OperationErrors, Operations, PostingRoom, TRY_AGAIN, Workplace,
};
use talea_policy::arrangement::{ArrangeError, Kept};
use talea_policy::demand::{self, MessageWay, Passage, Purpose};
use talea_policy::hierarchy::VpId;
use talea_policy::release::Arrival;
use talea_policy::release::bounds::MissingBound;
use talea_policy::release::guard::Way;
use talea_policy::release::join::Heard;
use talea_policy::release::overrun::{self, OnArrival, Previous};
use talea_policy::strategy::{NodeAnomaly, Plan, plan_lanes_of};
use talea_record::event::{RunEnd, RunStart};
use talea_record::{Definition, EdgeNumbers, JobId, Metadata, Origin, Record, RunOutcome, Sink, SkipReason};
use talea_time::{Duration, Instant, Work};
use triggering::Triggered;

/// What jobs take of channels is recorded as soon as they have it.
const KEPT_AT_ONCE: usize = 1;

/// Why a system cannot be simulated. Nothing has been simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// The strategy cannot sort the operations into lanes; all reasons.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Anomalies(Vec<NodeAnomaly>),
    /// A hierarchy cannot be arranged.
    #[error("node \"{node}\": {error}")]
    Hierarchy {
        /// The node.
        node: String,
        /// Why.
        error: Box<ArrangeError>,
    },
    /// A protocol lacks a response bound.
    #[error(transparent)]
    MissingBound(#[from] MissingBound),
    /// The code that was given does not fit the system: all that is wrong.
    #[error(transparent)]
    Operations(#[from] OperationErrors),
    /// Jobs of preemptive lanes that wait for room in an input are not simulated.
    #[error(
        "input \"{0}\" has full = \"block\", and jobs that wait for room in preemptive lanes are not simulated; write lane_dispatch = \"nonpreemptive\", run the system, or let the input drop the oldest or the newest value"
    )]
    Blocking(String),
    /// Channels do not deliver.
    #[error("channels cannot be simulated: {0}")]
    Channels(String),
    /// Records number lanes with 16 bits.
    #[error(
        "{0} lanes and threads are more than the 65535 a trace can tell apart; use fewer distinct periods or nodes"
    )]
    TooManyLanes(usize),
}

/// Whether what lies between the jobs is recorded too: costs, timers and messages (family `dispatch`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchRecords {
    /// No, which is faster.
    #[default]
    Dropped,
    /// Yes. The records of jobs are the same.
    Kept,
}

/// Per operation what the loop needs at hand.
struct OperationState {
    task: u32,
    node: u32,
    sync: Synchronisation,
    exec: Execution,
    stream: u64,
    /// What pushing the events of a job costs.
    publishing: Work,
    /// Released and unfinished jobs.
    outstanding: u32,
    /// The job released last and its slot, for aborting it.
    latest: Option<(VpId, JobId)>,
    predecessors: usize,
    successors: Vec<OperationId>,
    /// The ways to the successors, where they are on other nodes.
    ways: Vec<Option<MessageWay>>,
    /// Scratch of [`Simulation::lose`]: predecessors that will not be done, zero outside, and whether it is known that this will not.
    lost_predecessors: usize,
    is_lost: bool,
}

struct TaskState {
    deadline: Duration,
    overrun: Overrun,
    /// The first subtasks, in file order.
    firsts: Vec<First>,
    /// The nodes that they are on, each with the decision about the instance that arrives.
    shares: Vec<Share>,
    /// Predecessors before successors.
    operations: Vec<OperationId>,
}

/// A first subtask.
#[derive(Clone, Copy)]
struct First {
    operation: OperationId,
    /// Index of its node's [`Share`].
    share: usize,
}

/// The first subtasks of a task on one node.
struct Share {
    node: u32,
    /// The first of them, which stands for all in records.
    lead: OperationId,
    previous: Previous,
    decision: OnArrival,
}

/// A system in virtual time, from its common start at instant 0.
pub struct Simulation {
    now: Instant,
    nodes: Vec<Node>,
    /// When each node wants to be asked next.
    agenda: Agenda,
    calendar: Calendar,
    joins: Joins,
    guarding: Guarding,
    operations: Vec<OperationState>,
    /// How many operations the system describes; those that are declared follow.
    described: usize,
    /// The place of the job that is posted next behind all members of its lane.
    next_rank: u32,
    tasks: Vec<TaskState>,
    /// Operations with code or ports, if there are any.
    values: Option<Box<Values>>,
    /// By task; none where all have periods.
    triggered: Vec<Option<Triggered>>,
    /// Where work is posted that is not described, and channels ask for releases, if either can be.
    workplace: Option<VirtualWorkplace>,
    message_cost: Work,
    metadata: Metadata,
    started: bool,
}

impl Simulation {
    /// Prepares `system` at instant 0. Threads of its hierarchies are [tasks](System::with_threads_as_tasks) to it.
    ///
    /// # Errors
    /// See [`SimulationError`].
    pub fn new(system: &System) -> Result<Self, SimulationError> {
        let plans = plan_lanes_of(system).map_err(SimulationError::Anomalies)?;
        Self::with_plans(system, &plans)
    }

    /// Prepares `system` at instant 0 under `plans`, one per node in order, of the lanes that the node has or that stand in its
    /// hierarchy.
    ///
    /// # Errors
    /// See [`SimulationError`].
    pub fn with_plans(system: &System, plans: &[Plan]) -> Result<Self, SimulationError> {
        Self::with_operations(system, plans, Operations::synthetic())
    }

    /// The same with the program's own code for some operations. It takes no virtual time: it is called when its job has done its work, with what
    /// that took when it began.
    ///
    /// # Errors
    /// See [`SimulationError`].
    pub fn with_operations(
        system: &System,
        plans: &[Plan],
        operations: Operations,
    ) -> Result<Self, SimulationError> {
        Self::prepare(system, plans, operations, None)
    }

    /// The same with room for work that the description does not have, and the way in for it: operations are declared there, and their jobs posted, by
    /// jobs and by code that is called at instants; consumers of channels that are bound to it have their events. How many threads could post says nothing here.
    ///
    /// # Errors
    /// See [`SimulationError`].
    pub fn with_posting(
        system: &System,
        plans: &[Plan],
        operations: Operations,
        room: PostingRoom,
    ) -> Result<(Self, VirtualWorkplace), SimulationError> {
        let simulation = Self::prepare(system, plans, operations, Some(room))?;
        let workplace = simulation.workplace.clone().expect("it was made for the room");
        Ok((simulation, workplace))
    }

    fn prepare(
        system: &System,
        plans: &[Plan],
        operations: Operations,
        room: Option<PostingRoom>,
    ) -> Result<Self, SimulationError> {
        let system = &system.with_threads_as_tasks();
        if let Some(input) = system.inputs().iter().find(|input| blocks_preemptible(system, plans, input)) {
            return Err(SimulationError::Blocking(input.name.clone()));
        }
        // What jobs push is made bytes of before anybody records it.
        let room_in_channels = declared::Room { taken: &|_| KEPT_AT_ONCE, ..declared::Room::NONE };
        let mut assembled =
            declared::connect(system, operations, room_in_channels).operations.assemble(system)?;
        let reserved = room.unwrap_or_default();
        let workplace = (room.is_some() || !assembled.bindings.is_empty())
            .then(|| VirtualWorkplace::new(system, plans, reserved));
        for bind in assembled.bindings.drain(..) {
            let workplace = workplace.clone().expect("somebody wants to know of it");
            bind(Arc::new(workplace)).map_err(|error| SimulationError::Channels(error.to_string()))?;
        }
        let values = Values::new(system, assembled, workplace.clone()).map(Box::new);
        let mut first = FirstNumbers { lane: 0, edge: 0 };
        let mut nodes: Vec<Node> = Vec::new();
        for (index, plan) in plans.iter().enumerate() {
            let unarranged = |error| SimulationError::Hierarchy {
                node: system.nodes[index].name.clone(),
                error: Box::new(error),
            };
            let node = Node::new(system, index, plan, first).map_err(unarranged)?;
            first.lane += node.width();
            first.edge += node.edges().count();
            nodes.push(node);
        }
        let guarding = Guarding::new(system)?;
        for (node, guards) in nodes.iter_mut().zip(&guarding.guards) {
            if guards.heeds_idle_points() {
                node.watch_idle_points();
            }
        }
        if values.is_some() {
            nodes.iter_mut().for_each(Node::tell_of_beginnings);
        }
        if first.lane >= usize::from(u16::MAX) {
            return Err(SimulationError::TooManyLanes(first.lane));
        }
        let origin = Origin::Simulation { seed: system.seed };
        let mut metadata = Metadata::new(system, plans, origin, Instant::ZERO);
        metadata.edges = nodes.iter().flat_map(Node::edges).collect();
        metadata.promise_tolerance = (!metadata.edges.is_empty()).then_some(crate::node::ROUNDING);
        metadata.reserve_posted(reserved.operations);
        Ok(Simulation {
            now: Instant::ZERO,
            agenda: Agenda::new(nodes.iter().map(Node::next)),
            nodes,
            calendar: Calendar::new(system),
            joins: Joins::new(system),
            guarding,
            operations: operation_states(system),
            described: system.operations().len(),
            next_rank: system.operations().len() as u32,
            tasks: task_states(system),
            values,
            triggered: triggering::triggered(system),
            workplace,
            message_cost: system.overhead.message,
            metadata,
            started: false,
        })
    }

    /// The same simulation, which has yet to begin, with or without records of dispatching.
    pub fn with_dispatch(mut self, records: DispatchRecords) -> Self {
        if records == DispatchRecords::Kept {
            for (index, node) in self.nodes.iter_mut().enumerate() {
                node.record_dispatch(EdgeNumbers::of(&self.metadata, index));
            }
            if let Some(values) = &mut self.values {
                values.record();
            }
        }
        self
    }

    /// The same simulation, which has yet to begin, with the values of these outputs in its records, so that it can be replayed.
    ///
    /// # Errors
    /// [`SimulationError::Operations`]: there is no such output, or its values are never bytes.
    pub fn with_kept_values(mut self, system: &System, kept: &KeptOutputs) -> Result<Self, SimulationError> {
        let wanted = kept.among(system)?;
        let can_post = self.metadata.operations.len() > self.described;
        self.metadata.keeps_posts = can_post && *kept != KeptOutputs::None;
        if let (Some(workplace), Some(values), true) =
            (&self.workplace, &mut self.values, self.metadata.keeps_posts)
        {
            workplace.keep_events();
            values.keep_events();
        }
        let Some(values) = self.values.as_mut().filter(|_| wanted.are_any()) else { return Ok(self) };
        values.record();
        let is_kept = values.keep(&wanted);
        let is_asked_for = |wanted: bool| wanted && matches!(kept, KeptOutputs::Named(_));
        let mut errors = Vec::new();
        for ((output, wanted), is_kept) in
            self.metadata.outputs.iter_mut().zip(wanted.outputs).zip(is_kept.outputs)
        {
            output.is_kept = is_kept;
            if is_asked_for(wanted) && !is_kept {
                errors.push(OperationError::NeverBytes { output: output.name.clone() });
            }
        }
        for ((operation, wanted), is_kept) in
            system.operations().iter().zip(wanted.events).zip(is_kept.events)
        {
            if is_kept {
                self.metadata.operations[operation.id.index()].keeps_events = true;
            } else if is_asked_for(wanted) {
                errors.push(OperationError::EventsNeverBytes { operation: operation.name.clone() });
            }
        }
        for ((publication, wanted), is_kept) in
            self.metadata.publications.iter_mut().zip(wanted.pushes).zip(is_kept.pushes)
        {
            publication.is_kept = is_kept;
            if is_asked_for(wanted) && !is_kept {
                errors.push(OperationError::PushesNeverBytes { publication: publication.name.clone() });
            }
        }
        for ((operation, wanted), is_kept) in system.operations().iter().zip(wanted.reads).zip(is_kept.reads)
        {
            self.metadata.operations[operation.id.index()].keeps_reads = is_kept;
            if is_asked_for(wanted) && !is_kept {
                errors.push(OperationError::NotReadHere { operation: operation.name.clone() });
            }
        }
        if errors.is_empty() { Ok(self) } else { Err(OperationErrors(errors).into()) }
    }

    /// What the records refer to by number.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Why the hierarchy of the node at `index` does not compose; it is simulated all the same. None if it does, or there is none.
    pub fn shortcomings(&self, index: usize) -> Option<&str> {
        self.nodes[index].shortcomings()
    }

    /// What came, up to now, of every promise in the hierarchy of the node at `index`; none if it has no hierarchy.
    pub fn kept(&mut self, index: usize) -> Option<Vec<Kept>> {
        let kept = self.nodes[index].kept(self.now);
        self.agenda.set(index, self.nodes[index].next().min(self.guarding.guards[index].next()));
        kept
    }

    /// The instant up to which everything has happened.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets everything before `until` happen. Calling it in slices gives the same records as at once.
    pub fn advance(&mut self, until: Instant, sink: &mut dyn Sink) {
        if !self.started {
            self.started = true;
            for node in self.node_numbers() {
                sink.record(RunStart { planned_end: None, node }.at(Instant::ZERO, Record::NO_CPU));
            }
        }
        self.take_new(sink);
        loop {
            let next = self.next().max(self.now);
            if next >= until {
                break;
            }
            self.now = next;
            self.step(sink);
        }
        self.now = self.now.max(until);
    }

    /// Lets everything before `until` happen in slices, as long as `go_on`, which learns the instant reached,
    /// agrees; for progress and interrupts.
    pub fn advance_while(
        &mut self,
        until: Instant,
        sink: &mut dyn Sink,
        mut go_on: impl FnMut(Instant) -> bool,
    ) {
        const SLICES: i64 = 1_000;
        // A long simulation still answers within a moment.
        const LONGEST: Duration = Duration::from_secs(10);
        let slice = Duration::from_nanos((until - self.now).as_nanos() / SLICES + 1).min(LONGEST);
        while self.now < until && go_on(self.now) {
            let next = self.now.saturating_add(slice).min(until);
            self.advance(next, sink);
        }
    }

    /// Ends the run at the instant reached: jobs that complete right now still do, nothing is released any
    /// more, and the last record says when it was.
    pub fn finish(mut self, sink: &mut dyn Sink) {
        if let Some(workplace) = &self.workplace {
            workplace.end();
        }
        for index in 0..self.nodes.len() {
            self.nodes[index].pay(self.now, sink);
            while let Some(done) = self.nodes[index].done(self.now) {
                if self.waits_for_room(index, done, sink) {
                    continue;
                }
                let slot = self.nodes[index].complete(done, self.now, sink);
                self.operations[slot.id.operation.index()].outstanding -= 1;
                // What its values would release comes too late.
                self.complete_values(&slot, sink);
            }
            self.tell_refused(sink);
            self.end_guards(index, sink);
            self.nodes[index].pay_off(self.now, sink);
            self.nodes[index].close_promises(self.now, sink);
        }
        for node in self.node_numbers() {
            sink.record(RunEnd { node, how: RunOutcome::Over.into() }.at(self.now, Record::NO_CPU));
        }
    }

    /// Lets every node check its invariants; for tests.
    ///
    /// # Panics
    /// If one is broken.
    pub fn check_invariants(&self) {
        self.nodes.iter().for_each(Node::check_invariants);
    }

    fn next(&self) -> Instant {
        let asked_for = self.workplace.as_ref().map_or(Instant::MAX, VirtualWorkplace::next);
        let waited_for = self.values.as_ref().map_or(Instant::MAX, |values| values.next());
        self.calendar.next().min(self.agenda.next()).min(asked_for).min(waited_for)
    }

    /// Everything that happens at the current instant.
    fn step(&mut self, sink: &mut dyn Sink) {
        let now = self.now;
        if let Some(workplace) = &self.workplace {
            workplace.reach(now);
        }
        let mut due = self.agenda.first_due(now);
        while let Some(node) = due {
            self.nodes[node].pay(now, sink);
            while let Some(done) = self.nodes[node].done(now) {
                if self.waits_for_room(node, done, sink) {
                    self.release_what_was_posted(node, done, sink);
                } else {
                    let slot = self.nodes[node].complete(done, now, sink);
                    self.after_completion(&slot, sink);
                }
            }
            due = self.agenda.due_after(node, now);
        }
        while let Some(delivery) = self.calendar.pop_delivery(now) {
            self.deliver(delivery, sink);
        }
        while let Some(arrival) = self.calendar.pop_arrival(now) {
            self.arrive_periodically(arrival, sink);
        }
        while let Some(comes) = self.workplace.as_ref().and_then(|workplace| workplace.pop(now)) {
            self.come(comes, sink);
        }
        // Those whose limit is over are among those who want one now.
        self.wake_those_with_room();
        if self.guarding.is_needed {
            self.pass_guards(sink);
        }
        let mut due = self.agenda.first_due(now);
        while let Some(index) = due {
            let node = &mut self.nodes[index];
            node.fire_timers(now);
            if node.unsettled {
                node.settle(now, sink);
            }
            if let Some(values) = &mut self.values {
                node.tell_begun(|slot, lane| values.begin(slot.id, slot.deadline, lane, now, sink));
            }
            node.charge_interrupts(now, sink);
            let next = match self.guarding.is_needed {
                true => node.next().min(self.guarding.guards[index].next()),
                false => node.next(),
            };
            self.agenda.set(index, next);
            due = self.agenda.due_after(index, now);
        }
        // What is taken makes room: that is decided in another step of this instant.
        self.wake_those_with_room();
    }

    /// Jobs that wait for room no longer want a processor.
    #[inline(always)]
    fn wake_those_with_room(&mut self) {
        let (now, Some(values)) = (self.now, &mut self.values) else { return };
        while let Some((node, vp)) = values.next_with_room(now) {
            self.nodes[node].wake(vp, now);
            self.agenda.concern(node, now);
        }
    }

    fn arrive_periodically(&mut self, TaskArrival { task, arrival }: TaskArrival, sink: &mut dyn Sink) {
        let task = task as usize;
        if self.triggered.get(task).is_some_and(Option::is_some) {
            return self.arrive_by_trigger(task, None, sink);
        }
        let Arrival { instance, nominal, .. } = arrival;
        let deadline = nominal.saturating_add(self.tasks[task].deadline);
        if self.tasks[task].overrun == Overrun::Queue {
            return self.release_firsts(task, instance, nominal, deadline, sink);
        }
        self.arrive_by_shares(task, (instance, nominal, deadline), sink);
    }

    /// Releases an instance on all nodes: there is nothing to decide.
    #[inline]
    fn release_firsts(
        &mut self,
        task: usize,
        instance: u64,
        nominal: Instant,
        deadline: Instant,
        sink: &mut dyn Sink,
    ) {
        for index in 0..self.tasks[task].firsts.len() {
            let operation = self.tasks[task].firsts[index].operation;
            let now = self.now;
            self.nodes[self.operations[operation.index()].node as usize].interrupt(now, sink);
            self.release(JobId { operation, instance }, nominal, deadline, Work::ZERO, sink);
        }
    }

    /// An instance arrives of a task whose nodes decide, each for itself, what becomes of it while the one before is unfinished.
    fn arrive_by_shares(
        &mut self,
        task: usize,
        (instance, nominal, deadline): (u64, Instant, Instant),
        sink: &mut dyn Sink,
    ) {
        self.decide(task);
        let (mut aborts, mut skips) = (false, false);
        for index in 0..self.tasks[task].shares.len() {
            let Share { lead, decision, .. } = self.tasks[task].shares[index];
            match decision {
                OnArrival::Skip | OnArrival::Merge => {
                    skips = true;
                    let now = self.now;
                    let node = self.concern(lead);
                    node.interrupt(now, sink);
                    let id = JobId { operation: lead, instance };
                    let why =
                        if decision == OnArrival::Merge { SkipReason::Merged } else { SkipReason::Overrun };
                    node.skip(id, nominal, deadline, why, now, sink);
                }
                OnArrival::AbortPrevious => aborts = true,
                OnArrival::Release => {}
            }
        }
        if aborts {
            self.abort_instance(task, instance - 1, sink);
        }
        for index in 0..self.tasks[task].firsts.len() {
            let First { operation, share } = self.tasks[task].firsts[index];
            if !self.tasks[task].shares[share].decision.leaves_out() {
                let now = self.now;
                self.concern(operation).interrupt(now, sink);
                self.release(JobId { operation, instance }, nominal, deadline, Work::ZERO, sink);
            }
        }
        if skips {
            self.lose_what_follows_skips(task, instance);
        }
    }

    /// Each node decides what becomes of an instance of `task` on it.
    fn decide(&mut self, task: usize) {
        let TaskState { overrun, firsts, shares, .. } = &mut self.tasks[task];
        shares.iter_mut().for_each(|share| share.previous = Previous::Done);
        for first in firsts.iter() {
            let state = &self.operations[first.operation.index()];
            if state.outstanding > 0 {
                let node = &self.nodes[state.node as usize];
                let waits = *overrun == Overrun::Merge
                    && state.latest.is_some_and(|(vp, id)| node.waits_to_begin(vp, id));
                shares[first.share].previous = if waits { Previous::Waiting } else { Previous::Unfinished };
            }
        }
        for share in shares {
            share.decision = overrun::decide(*overrun, share.previous);
        }
    }

    /// Aborts the unfinished first jobs of an instance of a task. What would follow them never will; branches
    /// that do not depend on them run on.
    fn abort_instance(&mut self, task: usize, instance: u64, sink: &mut dyn Sink) {
        for index in 0..self.tasks[task].firsts.len() {
            let First { operation, .. } = self.tasks[task].firsts[index];
            self.operations[operation.index()].is_lost = self.abort_job(operation, instance, sink);
        }
        self.lose(task, instance);
    }

    /// Where some nodes skip an instance and others do not, branches may wait for each other in vain.
    fn lose_what_follows_skips(&mut self, task: usize, instance: u64) {
        let TaskState { firsts, shares, .. } = &self.tasks[task];
        for first in firsts {
            self.operations[first.operation.index()].is_lost = shares[first.share].decision.leaves_out();
        }
        self.lose(task, instance);
    }

    /// Tells the joins of a task what they wait for in vain in `instance`, as some subtasks of it, or messages, are lost.
    fn lose(&mut self, task: usize, instance: u64) {
        for operation in &self.tasks[task].operations {
            let state = &mut self.operations[operation.index()];
            let lost = std::mem::take(&mut state.lost_predecessors);
            let is_lost = std::mem::take(&mut state.is_lost);
            if is_lost || lost > 0 && self.joins.lose(*operation, instance, lost) {
                for index in 0..self.operations[operation.index()].successors.len() {
                    let successor = self.operations[operation.index()].successors[index];
                    self.operations[successor.index()].lost_predecessors += 1;
                }
            }
        }
    }

    /// Aborts the job of a first operation if it is unfinished. Returns whether it was.
    fn abort_job(&mut self, operation: OperationId, instance: u64, sink: &mut dyn Sink) -> bool {
        let state = &self.operations[operation.index()];
        let latest = state.latest.filter(|(_, id)| id.instance == instance);
        latest.is_some_and(|(vp, id)| self.abort_at(vp, id, sink))
    }

    /// The same of a job by its place.
    fn abort_at(&mut self, vp: VpId, id: JobId, sink: &mut dyn Sink) -> bool {
        let (operation, now) = (id.operation, self.now);
        let aborts = self.concern(operation).abort(vp, id, now, sink);
        if aborts && let Some(values) = &mut self.values {
            values.forget(id);
        }
        self.operations[operation.index()].outstanding -= u32::from(aborts);
        aborts
    }

    fn deliver(&mut self, delivery: Delivery, sink: &mut dyn Sink) {
        let Delivery { operation, instance, deadline, timer, sent, from, .. } = delivery;
        let job = JobId { operation, instance };
        let node = &self.nodes[self.operations[operation.index()].node as usize];
        node.receive(job, (from, sent), self.now, sink);
        self.signal(job, deadline, timer, Way::Message, sink);
    }

    /// A predecessor of `job` is done.
    fn signal(&mut self, job: JobId, deadline: Instant, timer: Instant, way: Way, sink: &mut dyn Sink) {
        match self.joins.signal(job.operation, job.instance, timer) {
            (Heard::Complete, not_before) => self.go_on(job, deadline, not_before, way, sink),
            (Heard::Late, _) => self.guarding.late += 1,
            (Heard::Incomplete | Heard::Overtaken, _) => {}
        }
    }

    fn release(
        &mut self,
        id: JobId,
        nominal: Instant,
        deadline: Instant,
        delivery: Work,
        sink: &mut dyn Sink,
    ) {
        self.release_posted(None, id, (nominal, deadline), delivery, sink);
    }

    /// The same of a job that was posted, perhaps.
    fn release_posted(
        &mut self,
        posting: Option<Posting>,
        id: JobId,
        (nominal, deadline): (Instant, Instant),
        delivery: Work,
        sink: &mut dyn Sink,
    ) {
        let state = &mut self.operations[id.operation.index()];
        let delivery = delivery + state.publishing;
        let drawn = || demand::execution_from(&state.exec, state.stream, id.instance);
        let demand = posting.and_then(|posting| posting.wcet).unwrap_or_else(drawn) + delivery;
        state.outstanding += 1;
        self.agenda.concern(state.node as usize, self.now);
        let node = &mut self.nodes[state.node as usize];
        let vp = node.release(Released { id, nominal, deadline, demand, delivery, posting }, self.now, sink);
        state.latest = Some((vp, id));
    }

    /// Tells a successor on another node of a completion, by a message that takes the time that its link draws for it, or is lost.
    fn send(&mut self, slot: &Slot, successor: usize, timer: Instant, sink: &mut dyn Sink) {
        let state = &self.operations[slot.id.operation.index()];
        let (operation, node) = (state.successors[successor], &self.nodes[state.node as usize]);
        let way = state.ways[successor].as_ref().expect("a successor on another node is reached by a way");
        let job = JobId { operation, instance: slot.id.instance };
        node.send(slot, operation, self.now, sink);
        match way.passage(job.instance) {
            Passage::Arrives(time) => {
                let sent = (slot.id, self.now);
                self.calendar.send(sent, self.now + time, job, slot.deadline, timer);
            }
            Passage::Lost => {
                node.lose(slot, job, self.now, sink);
                let task = state.task as usize;
                self.operations[operation.index()].lost_predecessors = 1;
                self.lose(task, job.instance);
            }
        }
    }

    /// Signals to the successors: at once on the same node, by a message to another.
    fn after_completion(&mut self, slot: &Slot, sink: &mut dyn Sink) {
        let state = &mut self.operations[slot.id.operation.index()];
        state.outstanding -= 1;
        let (here, instance) = (state.node, slot.id.instance);
        let successors = state.successors.len();
        self.trigger_by_values(slot, sink);
        if successors == 0 {
            return;
        }
        let timer = self.timer_of(slot);
        for index in 0..successors {
            let operation = self.operations[slot.id.operation.index()].successors[index];
            let job = JobId { operation, instance };
            if self.operations[operation.index()].node != here {
                self.send(slot, index, timer, sink);
            } else {
                self.signal(job, slot.deadline, timer, Way::Local, sink);
            }
        }
    }

    /// The operation's node, which the current step concerns.
    fn concern(&mut self, operation: OperationId) -> &mut Node {
        let node = self.operations[operation.index()].node as usize;
        self.agenda.concern(node, self.now);
        &mut self.nodes[node]
    }

    /// The nodes, as records number them.
    fn node_numbers(&self) -> impl Iterator<Item = u16> + use<> {
        (0..self.nodes.len()).map(|index| index as u16)
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        if let Some(workplace) = &self.workplace {
            workplace.close();
        }
    }
}

/// Whether a job of a preemptive lane may wait for room in the input.
fn blocks_preemptible(system: &System, plans: &[Plan], input: &InputSite) -> bool {
    let from = system.outputs()[input.output.index()].operation;
    let plan = &plans[system.subtask(from).node];
    let is_preemptive = |lane: usize| plan.lanes[lane].rules.dispatch == LaneDispatch::Preemptive;
    input.take.wait_limit().is_some() && plan.lane_of(from).is_some_and(is_preemptive)
}

/// The ways of the operation's messages to its successors, none to those on its own node.
fn ways_from(system: &System, operation: &Operation) -> Vec<Option<MessageWay>> {
    let node = |id: OperationId| system.subtask(id).node;
    let is_remote = |successor: OperationId| node(successor) != node(operation.id);
    let way = |id: &OperationId| is_remote(*id).then(|| MessageWay::of(system, operation.id, *id));
    operation.successors.iter().map(way).collect()
}

fn operation_states(system: &System) -> Vec<OperationState> {
    let publishing = system.publishing_costs(&system.overhead);
    system
        .operations()
        .iter()
        .map(|operation| OperationState {
            sync: system.tasks[operation.task].sync,
            node: system.subtask(operation.id).node as u32,
            exec: system.subtask(operation.id).exec.clone(),
            stream: demand::stream(system.seed, Purpose::Execution, operation.id.index()),
            publishing: publishing[operation.id.index()],
            outstanding: 0,
            latest: None,
            predecessors: operation.predecessors.len(),
            successors: operation.successors.clone(),
            ways: ways_from(system, operation),
            task: operation.task as u32,
            lost_predecessors: 0,
            is_lost: false,
        })
        .collect()
}

fn task_states(system: &System) -> Vec<TaskState> {
    system
        .tasks
        .iter()
        .enumerate()
        .map(|(index, task)| {
            let members = system.operations_of(index);
            let mut in_order: Vec<&Operation> = members.iter().collect();
            in_order.sort_by_key(|operation| operation.topological_rank);
            let mut shares: Vec<Share> = Vec::new();
            let first = |operation: &Operation| {
                let node = system.subtask(operation.id).node as u32;
                let known = shares.iter().position(|share| share.node == node);
                let share = known.unwrap_or_else(|| {
                    let (previous, decision) = (Previous::Done, OnArrival::Release);
                    shares.push(Share { node, lead: operation.id, previous, decision });
                    shares.len() - 1
                });
                First { operation: operation.id, share }
            };
            let firsts = members.iter().filter(|operation| operation.predecessors.is_empty()).map(first);
            TaskState {
                deadline: task.deadline,
                overrun: task.overrun,
                firsts: firsts.collect(),
                shares,
                operations: in_order.into_iter().map(|operation| operation.id).collect(),
            }
        })
        .collect()
}
