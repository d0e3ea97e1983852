//! Tasks that are released otherwise than by a period, in virtual time: by values of other tasks, or from outside as that is drawn.

use super::Simulation;
use crate::node::{Done, Node, Slot};
use crate::values::{BeforeEnd, Completed};
use talea_model::{OperationId, Overrun, System};
use talea_policy::demand::{MessageWay, Passage};
use talea_policy::hierarchy::VpId;
use talea_policy::job::Job;

use talea_policy::release::guard::NO_TIMER;
use talea_policy::release::guard::Way;
use talea_policy::release::overrun::{self, OnArrival, Previous};
use talea_record::{JobId, Sink, SkipReason};
use talea_time::{Duration, Instant, Work};

/// A task with a trigger.
pub(super) struct Triggered {
    pub firsts: Vec<OperationId>,
    /// The ways to them from who publishes the values, where that is on another node.
    ways: Vec<Option<MessageWay>>,
    deadline: Duration,
    /// Whether it has that of the job which releases it instead.
    inherits: bool,
    overrun: Overrun,
    /// The number of the next instance.
    next: u64,
    /// Jobs of first subtasks that were released, of a task that leaves instances out or aborts them: those that are unfinished, and
    /// perhaps others. Messages may pass each other, so they are in no order.
    released: Vec<(VpId, JobId)>,
}

impl Triggered {
    /// Whether this is the first subtask whose records stand for the whole instance.
    pub fn stands_for_all(&self, operation: OperationId) -> bool {
        self.firsts[0] == operation
    }

    /// Whether word of each instance comes to this first subtask by a message.
    pub fn comes_from_elsewhere(&self, operation: OperationId) -> bool {
        let mut ways = self.firsts.iter().zip(&self.ways);
        ways.any(|(first, way)| *first == operation && way.is_some())
    }
}

/// By task; empty if all have periods.
pub(super) fn triggered(system: &System) -> Vec<Option<Triggered>> {
    if system.tasks.iter().all(|task| task.trigger.is_none()) {
        return Vec::new();
    }
    let of_task = |task: usize| {
        let described = &system.tasks[task];
        described.trigger.as_ref()?;
        let firsts = system.operations_of(task).iter().filter(|operation| operation.predecessors.is_empty());
        let firsts: Vec<OperationId> = firsts.map(|operation| operation.id).collect();
        let from = system.trigger_output(task).map(|output| system.outputs()[output.index()].operation);
        let node = |operation: OperationId| system.subtask(operation).node;
        let way = |first: &OperationId| {
            let from = from.filter(|from| node(*from) != node(*first))?;
            Some(MessageWay::of(system, from, *first))
        };
        let ways = firsts.iter().map(way).collect();
        let (deadline, inherits, overrun) =
            (described.deadline, described.inherits_deadline, described.overrun);
        Some(Triggered { firsts, ways, deadline, inherits, overrun, next: 0, released: Vec::new() })
    };
    (0..system.tasks.len()).map(of_task).collect()
}

/// What is known of a job of the node that has done its work.
fn completed(node: &Node, slot: &Slot) -> Completed {
    let (wcet, rank) = node.service_of(slot.id.operation);
    let Slot { id, deadline, released: release, .. } = *slot;
    let job = Job { release, deadline, wcet, rank, number: id.instance, tag: 0 };
    Completed { id, job, lane: node.source(slot) }
}

impl Simulation {
    /// A job has completed: its values go to their readers and release tasks.
    pub(super) fn trigger_by_values(&mut self, slot: &Slot, sink: &mut dyn Sink) {
        if self.values.is_none() {
            return;
        }
        self.complete_values(slot, sink);
        self.arrive_all(Some(slot), sink);
    }

    /// Calls the code of a job that has completed, and publishes its values.
    pub(super) fn complete_values(&mut self, slot: &Slot, sink: &mut dyn Sink) {
        let Some(values) = &mut self.values else { return };
        let node = &self.nodes[self.operations[slot.id.operation.index()].node as usize];
        values.complete(&completed(node, slot), self.now, sink);
        if let Some(workplace) = &self.workplace {
            workplace.leave(slot.id);
        }
    }

    /// Whether a job that has done its work waits for room for what it wrote, and completes later.
    #[inline]
    pub(super) fn waits_for_room(&mut self, node: usize, done: Done, sink: &mut dyn Sink) -> bool {
        let Some(values) = &mut self.values else { return false };
        let slot = self.nodes[node].slot(done.vp);
        let before = values.before_end(slot.id);
        if before == BeforeEnd::Nothing {
            return false;
        }
        let completed = completed(&self.nodes[node], slot);
        if before == BeforeEnd::Take {
            values.take_at_end(&completed, self.now, sink);
            return false;
        }
        let waiting = values.wait_for_room(&completed, (node, done.vp), self.now, sink);
        if let Some(waiting) = waiting {
            self.nodes[node].wait_for_room(done, waiting, self.now, sink);
        }
        waiting.is_some()
    }

    /// A job begins to wait for room: what it has posted is released.
    pub(super) fn release_what_was_posted(
        &mut self,
        node: usize,
        Done { vp, .. }: Done,
        sink: &mut dyn Sink,
    ) {
        let slot = *self.nodes[node].slot(vp);
        self.arrive_all(Some(&slot), sink);
    }

    /// An instance of a task with a trigger arrives: by a value of a job that has completed, or from outside.
    pub(super) fn arrive_by_trigger(&mut self, task: usize, by: Option<&Slot>, sink: &mut dyn Sink) {
        let triggered = self.triggered[task].as_mut().expect("a task with a trigger");
        let instance = triggered.next;
        triggered.next += 1;
        let deadline = match by.filter(|_| triggered.inherits) {
            Some(releasing) => releasing.deadline,
            None => self.now.saturating_add(triggered.deadline),
        };
        for place in 0..self.triggered[task].as_ref().map_or(0, |triggered| triggered.firsts.len()) {
            let triggered = self.triggered[task].as_ref().expect("a task with a trigger");
            let (operation, way) = (triggered.firsts[place], &triggered.ways[place]);
            let job = JobId { operation, instance };
            match (way, by) {
                (Some(_), None) => unreachable!("what comes from outside comes over no link"),
                // It goes with the value, in one message.
                (Some(way), Some(slot)) => match way.passage(slot.id.instance) {
                    Passage::Arrives(time) => {
                        let sent = (slot.id, self.now);
                        self.calendar.send(sent, self.now + time, job, deadline, NO_TIMER);
                    }
                    Passage::Lost => {
                        let node = &self.nodes[self.operations[slot.id.operation.index()].node as usize];
                        node.lose(slot, job, self.now, sink);
                    }
                },
                (None, _) => {
                    let now = self.now;
                    if by.is_none() {
                        self.concern(operation).interrupt(now, sink);
                    }
                    self.signal(job, deadline, NO_TIMER, Way::Local, sink);
                }
            }
        }
    }

    /// An instance that arrived at `at` is not released.
    pub(super) fn skip_triggered(
        &mut self,
        first: OperationId,
        (instance, at, deadline): (u64, Instant, Instant),
        reason: SkipReason,
        sink: &mut dyn Sink,
    ) {
        let now = self.now;
        let id = JobId { operation: first, instance };
        self.concern(first).skip(id, at, deadline, reason, now, sink);
    }

    /// An instance of a task with a trigger is signalled now: if one before it waits, at its guard or in its lane, it is merged with that one.
    pub(super) fn merge(&mut self, job: JobId, deadline: Instant, sink: &mut dyn Sink) -> bool {
        let state = &self.operations[job.operation.index()];
        let task = state.task as usize;
        let triggered = self.triggered[task].as_ref().expect("a task with a trigger");
        if triggered.overrun != Overrun::Merge {
            return false;
        }
        let node = state.node as usize;
        let is_held = || {
            let place = self.guarding.places[job.operation.index()];
            place.is_some_and(|place| self.guarding.guards[node].holds_any(place as usize))
        };
        let waits = |(vp, id)| self.nodes[node].waits_to_begin(vp, id);
        let previous = if is_held() || state.latest.is_some_and(waits) {
            Previous::Waiting
        } else {
            Previous::Unfinished
        };
        let is_merged = overrun::decide(triggered.overrun, previous) == OnArrival::Merge;
        if is_merged {
            let instance = (job.instance, self.now, deadline);
            self.skip_triggered(job.operation, instance, SkipReason::Merged, sink);
            self.operations[job.operation.index()].is_lost = true;
            self.lose(task, job.instance);
        }
        is_merged
    }

    /// A first subtask of a task with a trigger is to be released, which was signalled at `at`: its node decides what becomes of it.
    pub(super) fn release_triggered(
        &mut self,
        job: JobId,
        (at, deadline): (Instant, Instant),
        cost: Work,
        sink: &mut dyn Sink,
    ) {
        let task = self.operations[job.operation.index()].task as usize;
        let triggered = self.triggered[task].as_mut().expect("a task with a trigger");
        let overrun = triggered.overrun;
        // Whether it is merged has been decided when it came.
        if matches!(overrun, Overrun::Queue | Overrun::Merge) {
            return self.release(job, at, deadline, cost, sink);
        }
        let node = |operation: OperationId| self.operations[operation.index()].node;
        let here = node(job.operation);
        triggered.released.retain(|(vp, id)| self.nodes[node(id.operation) as usize].has(*vp, *id));
        let is_before = |(_, id): &&(VpId, JobId)| node(id.operation) == here && id.instance < job.instance;
        let before: Vec<(VpId, JobId)> = triggered.released.iter().filter(is_before).copied().collect();
        let previous = if before.is_empty() { Previous::Done } else { Previous::Unfinished };
        match overrun::decide(overrun, previous) {
            OnArrival::Release => {}
            OnArrival::AbortPrevious => {
                for (vp, id) in before {
                    self.operations[id.operation.index()].is_lost = self.abort_at(vp, id, sink);
                    self.lose(task, id.instance);
                }
            }
            OnArrival::Merge => unreachable!("instances of this task are not merged"),
            OnArrival::Skip => {
                // One record stands for all of the instance on the node, unless each is decided about when its own message comes.
                let is_first_here =
                    triggered.firsts.iter().find(|first| node(**first) == here) == Some(&job.operation);
                if is_first_here || triggered.comes_from_elsewhere(job.operation) {
                    let instance = (job.instance, at, deadline);
                    self.skip_triggered(job.operation, instance, SkipReason::Overrun, sink);
                }
                self.operations[job.operation.index()].is_lost = true;
                return self.lose(task, job.instance);
            }
        }
        self.release(job, at, deadline, cost, sink);
        let released = self.operations[job.operation.index()].latest;
        let triggered = self.triggered[task].as_mut().expect("a task with a trigger");
        triggered.released.extend(released);
    }
}
