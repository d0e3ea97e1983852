//! The release thread of a node: sleeps until the next release, releases everything that is due, rings. Where subtasks are not released
//! greedily, it also keeps their guards.
//!
//! Releases are absolute: instance `k` of a task is due at `start + phase + k * period` plus its jitter,
//! whatever happened to the instances before it, so nothing drifts. The thread stands above all lanes.

use crate::flow::{JobFlow, JobFlowSetUp, Release, Shared};
use crate::guarding::GuardKeeper;
use crate::job_table::InFlight;
use crate::layout::Layout;
use crate::recorder::Subject;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::atomic;
use std::sync::{Arc, PoisonError};
use talea_linux::clock::MonotonicClock;
use talea_linux::timer::{Sleeper, SpinCost, Woken};
use talea_manage::Marks;
use talea_model::{OperationId, Overrun, System};
use talea_policy::release::guard::{BoundOverrun, Counts};
use talea_policy::release::overrun::{self, OnArrival, Previous};
use talea_policy::release::{Arrival, Arrivals};
use talea_record::event::Dates;
use talea_record::{CostKind, Event, JobId, SkipReason, ThreadRole};
use talea_time::{Clock, Duration, Instant};

/// The first subtasks of one task on one node; they are released, skipped and aborted together. (First
/// subtasks of a task on other nodes are those nodes' own business: no node waits for another to release.)
#[derive(Clone, Debug)]
pub(crate) struct Source {
    operations: Vec<OperationId>,
    arrivals: Arrivals,
    overrun: Overrun,
    /// The instance released last, if any.
    last: Option<u64>,
    /// The task that something outside would release, of which these are the drawn arrivals.
    external: Option<usize>,
}

impl Source {
    /// The sources of a node, in file order. What arrives for threads of a hierarchy that are no lanes the hierarchy itself brings about.
    pub fn of_node(system: &System, node: usize, layout: &Layout) -> Vec<Self> {
        let first_on_node = |task: usize| {
            let operations = system.operations_of(task).iter();
            let first = operations.filter(|operation| operation.predecessors.is_empty());
            let sites = first.map(|operation| layout.operation(operation.id));
            sites.filter(|site| site.node == node && site.local.is_some()).map(|site| site.id).collect()
        };
        system
            .tasks
            .iter()
            .enumerate()
            .map(|(task, description)| Source {
                operations: first_on_node(task),
                arrivals: Arrivals::of_task(system, task),
                overrun: description.overrun,
                last: None,
                external: description.trigger.is_some().then_some(task),
            })
            .filter(|source| !source.operations.is_empty())
            .collect()
    }

    /// Whether something outside has been given for the task, so that no arrivals are drawn. That is known when the run begins.
    fn is_driven(&self, shared: &Shared) -> bool {
        self.external.is_some_and(|task| shared.triggering[task].is_driven.load(atomic::Ordering::Relaxed))
    }
}

/// The next release of a source; ordered by instant, then by file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    arrival: Arrival,
    source: usize,
}

impl Due {
    fn order(&self) -> (Instant, usize) {
        (self.arrival.release, self.source)
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// Everything a release thread owns.
pub(crate) struct ReleaseThread {
    pub shared: Arc<Shared>,
    pub node: usize,
    pub sleeper: Sleeper,
    pub sources: Vec<Source>,
    /// The guards of the node, if it has any.
    pub keeper: Option<GuardKeeper>,
    /// Index of its bell at the start gate.
    pub gate: usize,
    /// How long the run lasts, if that is known.
    pub duration: Option<Duration>,
    pub marks: Marks,
}

impl ReleaseThread {
    /// Releases from the start instant until the run ends or is stopped. Returns what the spin tail cost.
    pub fn serve(mut self, flow_set_up: JobFlowSetUp) -> SpinCost {
        let shared = Arc::clone(&self.shared);
        let mut agenda: BinaryHeap<Reverse<Due>> = BinaryHeap::with_capacity(self.sources.len());
        let mut flow = flow_set_up.begin(ThreadRole::Release, None);
        let Some(start) = shared.gate.wait(self.gate, &shared.stop) else { return SpinCost::default() };
        let end = self.duration.map_or(Instant::MAX, |duration| start.saturating_add(duration));
        let planned_end = self.duration.map(|_| end);
        for (position, source) in self.sources.iter().enumerate() {
            if !source.is_driven(&shared) {
                agenda.push(Reverse(Due { arrival: source.arrivals.at(start, 0), source: position }));
            }
        }
        if self.marks.include(Event::RUN_START) {
            flow.recorder.run_start(start, planned_end);
        }
        let has_descriptors = self.sources.iter().any(|source| source.external.is_some());
        if has_descriptors {
            // What is ready before is ready then.
            self.sleeper.sleep_until(start, &shared.stop);
            self.sources
                .iter()
                .filter_map(|source| source.external)
                .for_each(|task| shared.arm_descriptor(task));
        }
        loop {
            let guards = self.keeper.as_ref().map_or(end, GuardKeeper::next);
            let next = agenda.peek().map_or(end, |due| due.0.arrival.release.min(end)).min(guards);
            let woken = match &self.keeper {
                None => self.sleeper.sleep_until(next, &shared.stop),
                Some(keeper) => self.sleeper.sleep_until(next, &keeper.call(&shared)),
            };
            let now = MonotonicClock.now();
            match woken {
                Woken::Due { spun, .. } if now < end && !shared.is_over(self.node) => {
                    flow.recorder.timer(now, next, now.saturating_add(-spun));
                }
                Woken::Stopped if now < end && !shared.is_over(self.node) => {}
                Woken::Due { .. } | Woken::Stopped => {
                    // At once, since whoever ends the run may wait for a processor that own threads of a lowered hierarchy have.
                    shared.end_node(self.node, None);
                    // A run that is stopped before its start ends with it.
                    let over = now.max(start).min(end);
                    if let Some(keeper) = &mut self.keeper {
                        keeper.end(&mut flow, &shared, over);
                    }
                    self.count_overruns(&shared);
                    if self.marks.include(Event::RUN_END) {
                        flow.recorder.run_end(over);
                    }
                    return self.sleeper.spin_cost();
                }
            }
            self.release_due(&mut flow, &shared, &mut agenda, start, now);
        }
    }

    fn count_overruns(&self, shared: &Shared) {
        if let Some(keeper) = &self.keeper {
            let Counts { bound_overruns, worst_overrun, .. } = keeper.guards.counts();
            shared.tally.bound_overruns.fetch_add(bound_overruns, atomic::Ordering::Relaxed);
            let mut early = shared.tally.early_arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            early.extend(keeper.guards.early_arrivals());
            let mut worst = shared.tally.worst_overrun.lock().unwrap_or_else(PoisonError::into_inner);
            *worst = BoundOverrun::worst([*worst, worst_overrun]);
        }
    }

    fn release_due(
        &mut self,
        flow: &mut JobFlow,
        shared: &Shared,
        agenda: &mut BinaryHeap<Reverse<Due>>,
        start: Instant,
        now: Instant,
    ) {
        let began = flow.recorder.stopwatch();
        let mut instances = 0;
        if let Some(keeper) = &mut self.keeper {
            keeper.arrive_ready(flow, shared, now);
            keeper.take_in(flow, shared, now);
        }
        while let Some(mut first) = agenda.peek_mut() {
            let due = first.0;
            if due.arrival.release > now {
                break;
            }
            *first = Reverse(Due { arrival: self.sources[due.source].arrivals.after(due.arrival), ..due });
            drop(first);
            self.release(flow, shared, due, start);
            instances += 1;
        }
        if let Some(keeper) = &mut self.keeper {
            instances += keeper.release_due(flow, shared, &MonotonicClock, now);
            flow.forget_signals(self.node);
        }
        flow.ring(shared);
        flow.recorder.cost(began, CostKind::Release, None, instances);
    }

    /// Releases, or skips, one instance of a source.
    fn release(&mut self, flow: &mut JobFlow, shared: &Shared, due: Due, start: Instant) {
        let source = &mut self.sources[due.source];
        let Arrival { instance, nominal, release } = due.arrival;
        if let Some(task) = source.external {
            flow.arrive_by_trigger(shared, task, (release, None), release);
            return;
        }
        let deadline = source.arrivals.deadline(nominal);
        let local = |operation: &OperationId| shared.layout.operation(*operation).local.expect("it is ours");
        let operations = &source.operations;
        // Only the last instance need be looked at: with skip-next no other can be unfinished, and with
        // abort the others have been aborted.
        let unfinished =
            |last| operations.iter().any(|operation| shared.jobs.is_unfinished(local(operation), last));
        let last = source.last.filter(|last| unfinished(*last));
        let previous = match last {
            None => Previous::Done,
            // There is one first subtask.
            Some(last)
                if source.overrun == Overrun::Merge
                    && shared.jobs.is_waiting(local(&operations[0]), last) =>
            {
                Previous::Waiting
            }
            Some(_) => Previous::Unfinished,
        };
        let decision = overrun::decide(source.overrun, previous);
        if let (OnArrival::AbortPrevious, Some(last)) = (decision, last) {
            let nominal = source.arrivals.nominal(start, last);
            let dates = Dates { nominal, deadline: source.arrivals.deadline(nominal) };
            operations.iter().for_each(|operation| flow.abort(shared, *operation, last, dates));
        }
        // Words of first subtasks are claimed by this thread alone: room that is seen stays.
        let room = operations.iter().all(|operation| shared.jobs.has_room(local(operation), instance));
        let skip = match decision {
            OnArrival::Skip => Some(SkipReason::Overrun),
            OnArrival::Merge => Some(SkipReason::Merged),
            _ if !room => Some(SkipReason::Full),
            _ => None,
        };
        if let Some(reason) = skip {
            // One record stands for the whole instance.
            let subject = subject(shared, operations[0], instance);
            flow.recorder.put(MonotonicClock.now(), subject.skip(Dates { nominal, deadline }, reason));
            return;
        }
        for &operation in operations {
            let job = InFlight { instance, release, deadline };
            let release = Release { operation, nominal, job };
            let released = flow.release(shared, release, MonotonicClock.now());
            assert!(released.is_ok(), "the window had room");
        }
        source.last = Some(instance);
    }
}

fn subject(shared: &Shared, operation: OperationId, instance: u64) -> Subject {
    Subject { job: JobId { operation, instance }, lane: shared.layout.operation(operation).lane }
}
