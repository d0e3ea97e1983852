//! Tasks that are released otherwise than by a period, in virtual time: by values of other tasks, or from outside as that is drawn.

use super::Simulation;
use crate::node::Slot;
use crate::values::Completed;
use talea_model::{OperationId, Overrun, System};
use talea_policy::demand::{MessageWay, Passage};
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
        Some(Triggered { firsts, ways, deadline, inherits, overrun, next: 0 })
    };
    (0..system.tasks.len()).map(of_task).collect()
}

impl Simulation {
    /// A job has completed: its values go to their readers and release tasks.
    pub(super) fn trigger_by_values(&mut self, slot: &Slot, sink: &mut dyn Sink) {
        if self.values.is_none() {
            return;
        }
        let count = self.complete_values(slot, sink);
        for place in 0..count {
            let task = self.values.as_ref().expect("it had values a moment ago").triggered()[place];
            self.arrive_by_trigger(task, Some(slot), sink);
        }
    }

    /// Calls the code of a job that has completed, and publishes its values. Returns how many tasks that releases.
    pub(super) fn complete_values(&mut self, slot: &Slot, sink: &mut dyn Sink) -> usize {
        let Some(values) = &mut self.values else { return 0 };
        let node = &self.nodes[self.operations[slot.id.operation.index()].node as usize];
        let (wcet, rank) = node.service_of(slot.id.operation);
        let Slot { id, deadline, released: release, .. } = *slot;
        let job = Job { release, deadline, wcet, rank, number: id.instance, tag: 0 };
        values.complete(&Completed { id, job, lane: node.source(slot) }, self.now, sink)
    }

    /// An instance of a task with a trigger arrives: by a value of a job that has completed, or from outside.
    pub(super) fn arrive_by_trigger(&mut self, task: usize, by: Option<&Slot>, sink: &mut dyn Sink) {
        let triggered = self.triggered[task].as_mut().expect("a task with a trigger");
        let instance = triggered.next;
        triggered.next += 1;
        let overrun = triggered.overrun;
        let deadline = match by.filter(|_| triggered.inherits) {
            Some(releasing) => releasing.deadline,
            None => self.now.saturating_add(triggered.deadline),
        };
        let first = triggered.firsts[0];
        let is_guarded = self.guarding.places[first.index()].is_some();
        if !is_guarded && self.overruns(task, overrun) {
            return self.skip_triggered(first, (instance, self.now, deadline), SkipReason::Overrun, sink);
        }
        for place in 0..self.triggered[task].as_ref().map_or(0, |triggered| triggered.firsts.len()) {
            let triggered = self.triggered[task].as_ref().expect("a task with a trigger");
            let (operation, way) = (triggered.firsts[place], &triggered.ways[place]);
            let job = JobId { operation, instance };
            match (way.as_ref().map(|way| way.passage(instance)), by) {
                (Some(Passage::Arrives(time)), _) => {
                    self.calendar.send(self.now, self.now + time, job, deadline, NO_TIMER);
                }
                (Some(Passage::Lost), Some(slot)) => {
                    let node = &self.nodes[self.operations[slot.id.operation.index()].node as usize];
                    node.lose(slot, operation, self.now, sink);
                }
                (Some(Passage::Lost), None) => unreachable!("what comes from outside comes over no link"),
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

    /// Whether a task leaves an instance out, as one before is unfinished.
    pub(super) fn overruns(&self, task: usize, overrun: Overrun) -> bool {
        let Some(triggered) = &self.triggered[task] else { return false };
        let is_unfinished = |first: &OperationId| self.operations[first.index()].outstanding > 0;
        let previous = match triggered.firsts.iter().any(is_unfinished) {
            true => Previous::Unfinished,
            false => Previous::Done,
        };
        overrun::decide(overrun, previous) == OnArrival::Skip
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

    /// A guard lets a first subtask of a task with a trigger through, which was signalled at `at`.
    pub(super) fn release_triggered(
        &mut self,
        job: JobId,
        (at, deadline): (Instant, Instant),
        cost: Work,
        sink: &mut dyn Sink,
    ) {
        let task = self.operations[job.operation.index()].task as usize;
        let triggered = self.triggered[task].as_ref().expect("a task with a trigger");
        let (first, overrun) = (triggered.firsts[0], triggered.overrun);
        // Each node decides for itself, and those of the same instance that it has let through already are not before it.
        let node = |operation: OperationId| self.operations[operation.index()].node;
        let is_unfinished = |first: &OperationId| {
            let state = &self.operations[first.index()];
            let own = state.latest.is_some_and(|(_, latest)| latest.instance == job.instance);
            state.outstanding > u32::from(own)
        };
        let mut here = triggered.firsts.iter().filter(|first| node(**first) == node(job.operation));
        let previous = if here.any(is_unfinished) { Previous::Unfinished } else { Previous::Done };
        if overrun::decide(overrun, previous) != OnArrival::Skip {
            return self.release(job, at, deadline, cost, sink);
        }
        if first == job.operation {
            self.skip_triggered(first, (job.instance, at, deadline), SkipReason::Overrun, sink);
        }
    }
}
