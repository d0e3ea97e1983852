//! That nothing is missing: every instance that had to arrive was released or skipped, and every successor of what was done was released.
//!
//! When instances arrive is known from the description, so a trace that says nothing of one is wrong, or has lost it. First jobs of an operation
//! are released in the order of their instances, so one is missing when a later one comes, and at the end when it was due by then.
//! Around losses, and before the first instance of a recording that joined, nobody knows: such instances are counted as unknown. On real
//! threads so are those of the last [`END_SLACK`] of a run: its release thread may have been late, and then the run was over.
//!
//! When instances of tasks arrive that values, events or the outside release nobody knows beforehand. But they are numbered as they arrive, so one
//! is missing if later ones were heard of, and at the end nothing tells of it: neither that it was released, nor skipped, nor merged with another,
//! nor that its guard holds it ([`Numbers`]). Over links messages may be on their way or lost; of these nothing is expected.
//!
//! Not expected are instances of posted work, of threads that always want a processor, of nodes of which nothing is recorded, and, once a
//! hierarchy was changed, of its threads, which may have left.

use super::instances::Progress;
use super::judge::{Judge, Known};
use super::report::Rule;
use super::{LISTED, length};
use crate::seen_numbers::SeenNumbers;
use std::ops::Range;
use talea_model::{OperationId, Synchronisation, System};
use talea_policy::demand;
use talea_record::{Event, JobId, Metadata};
use talea_time::{Duration, Instant};

/// How late what real threads release at the end of a run may be.
const END_SLACK: Duration = Duration::from_millis(100);

/// What is expected next of a first operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// This instance.
    Instance(u64),
    /// Any from this one on; those before the one that comes are unknown.
    After(u64),
    /// Any: the recording joined the run.
    Any,
    /// None.
    Nothing,
}

/// The instances of a task that are numbered as they arrive, by its leading subtask.
#[derive(Debug)]
struct Numbers {
    /// What has arrived up to then may have left no record.
    unknown_until: Option<Instant>,
    /// Those heard of since.
    seen: SeenNumbers,
    /// When that was last.
    heard: Instant,
    /// What number came next at two instants, [`END_SLACK`] apart at least: by the later of them, all below the first had left its record.
    settled: [(Instant, u64); 2],
}

impl Numbers {
    fn new(start: Instant) -> Self {
        Numbers {
            unknown_until: None,
            seen: SeenNumbers::in_any_order_from(0),
            heard: start,
            settled: [(start, 0); 2],
        }
    }

    /// Records up to `now` are missing.
    fn forget(&mut self, now: Instant) {
        *self = Numbers { unknown_until: Some(now), ..Numbers::new(now) };
    }

    /// A record at `now` tells what became of the instance that arrived at `arrival`. Returns whether it counts.
    fn hear(&mut self, (instance, arrival): (u64, Instant), now: Instant) -> bool {
        if let Some(until) = self.unknown_until {
            if arrival <= until {
                return false;
            }
            self.unknown_until = None;
            self.seen = SeenNumbers::in_any_order_from(instance);
            self.settled = [(now, instance); 2];
        }
        let [_, last] = self.settled;
        if length(last.0, now) >= END_SLACK {
            self.settled = [last, (now, self.seen.next())];
        }
        self.seen.note(instance);
        self.heard = now;
        true
    }

    /// The numbers below `sure` that are missing.
    fn missing(&self, sure: u64) -> Vec<Range<u64>> {
        self.seen.gaps().map(|gap| gap.start..gap.end.min(sure)).filter(|gap| !gap.is_empty()).collect()
    }

    /// The number below which each instance has left its record by `end`, if threads may be [`END_SLACK`] late.
    fn sure_by(&self, end: Instant) -> u64 {
        let [first, last] = self.settled;
        let latest = (self.heard, self.seen.next());
        let is_settled = |(at, _): &&(Instant, u64)| length(*at, end) >= END_SLACK;
        [latest, last].iter().find(is_settled).map_or(first.1, |(_, next)| *next)
    }
}

/// What is expected of a run.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// By operation.
    next: Vec<Next>,
    /// By operation, of leading ones of tasks that no period releases.
    numbers: Vec<Option<Numbers>>,
    /// By node: when its run was to end.
    planned: Vec<Option<Instant>>,
    /// By node: whether its run has ended by its own word, so that what its guards held is told.
    is_over: Vec<bool>,
}

impl Arrivals {
    /// Everything from the first instance on.
    pub fn new(trace: &Metadata, system: &System) -> Self {
        let next = trace.operations.iter().map(|entry| {
            let task = &trace.tasks[entry.task];
            let arrives = entry.predecessors.is_empty()
                && !task.activity.is_posted()
                && task.released_by.is_period()
                && task.period > Duration::ZERO
                && task.deadline < Duration::MAX;
            if arrives { Next::Instance(0) } else { Next::Nothing }
        });
        let mut numbers: Vec<Option<Numbers>> = trace.operations.iter().map(|_| None).collect();
        for task in 0..system.tasks.len() {
            let entry = &trace.tasks[task];
            if entry.released_by.is_period() || entry.activity.is_thread() || comes_over_link(system, task) {
                continue;
            }
            if let Some(leading) = firsts(system, task).next() {
                numbers[leading.index()] = Some(Numbers::new(trace.start));
            }
        }
        let nodes = trace.nodes.len();
        Arrivals { next: next.collect(), numbers, planned: vec![None; nodes], is_over: vec![false; nodes] }
    }

    /// The recording joined the run, `now`.
    pub fn join(&mut self, now: Instant) {
        self.numbers.iter_mut().flatten().for_each(|numbers| numbers.forget(now));
        self.next.iter_mut().filter(|next| **next != Next::Nothing).for_each(|next| *next = Next::Any);
    }

    /// Records up to `now` were lost.
    pub fn forget(&mut self, now: Instant) {
        self.numbers.iter_mut().flatten().for_each(|numbers| numbers.forget(now));
        for next in &mut self.next {
            if let Next::Instance(instance) = *next {
                *next = Next::After(instance);
            }
        }
    }

    /// Threads may have come and gone.
    pub fn forget_threads(&mut self, trace: &Metadata) {
        for (next, entry) in self.next.iter_mut().zip(&trace.operations) {
            if trace.tasks[entry.task].activity.is_thread() {
                *next = Next::Nothing;
            }
        }
    }

    /// The run of a node is over, as it says itself.
    pub fn end(&mut self, node: usize) {
        if let Some(is_over) = self.is_over.get_mut(node) {
            *is_over = true;
        }
    }

    /// The run of a node is to end then.
    pub fn plan_end(&mut self, node: usize, end: Option<Instant>) {
        if let Some(planned) = self.planned.get_mut(node) {
            *planned = end;
        }
    }
}

impl Judge<'_> {
    /// A record tells what became of the first job, whose instance arrived at `arrival`: it was released, or its instance skipped, or its guard
    /// holds it.
    pub(super) fn arrived(&mut self, job: JobId, arrival: Instant) {
        let index = job.operation.index();
        let now = self.now;
        if let Some(numbers) = &mut self.arrivals.numbers[index] {
            if numbers.hear((job.instance, arrival), now) {
                self.findings.count_case(Rule::Arrivals);
            }
            return;
        }
        let next = self.arrivals.next[index];
        if job.instance > self.arrived_by(index, self.now) {
            // It cannot have arrived, not even as the next one too early, which another rule says.
            return;
        }
        self.arrivals.next[index] = match next {
            Next::Nothing => return,
            // It is told once more.
            Next::Instance(expected) if job.instance < expected => return,
            Next::Instance(_) | Next::After(_) | Next::Any => Next::Instance(job.instance.saturating_add(1)),
        };
        match next {
            Next::Instance(expected) => {
                self.findings.count_case(Rule::Arrivals);
                self.miss(job.operation, expected, job.instance);
            }
            Next::After(from) => {
                self.findings.leave_unknown(Rule::Arrivals, job.instance.saturating_sub(from))
            }
            Next::Any | Next::Nothing => {}
        }
    }

    /// The first jobs of the instance on the node of this one were skipped.
    pub(super) fn skipped(&mut self, job: JobId, arrival: Instant) {
        let task = self.trace.operations[job.operation.index()].task;
        let node = |index: usize| self.expected.lanes[self.expected.operations[index].lane].node;
        let here = node(job.operation.index());
        let skipped: Vec<usize> =
            self.instances[task].operations.iter().copied().filter(|index| node(*index) == here).collect();
        for index in skipped {
            self.arrived(JobId { operation: OperationId::from_index(index), ..job }, arrival);
        }
    }

    /// Of these instances nothing was heard.
    fn miss(&mut self, operation: OperationId, from: u64, to: u64) {
        for instance in from..to.min(from.saturating_add(LISTED as u64)) {
            let job = JobId { operation, instance };
            self.find(Rule::Arrivals, job, None, || {
                "it arrived, and was neither released nor skipped".into()
            });
        }
        let more = to.saturating_sub(from).saturating_sub(LISTED as u64);
        if more > 0 {
            self.findings.count_more(Rule::Arrivals, self.now, more);
        }
    }

    /// The run is over on the node: what had to have arrived there, and to have been released.
    pub(super) fn judge_completeness(&mut self, node: usize) {
        if !self.coverage.hears(node) {
            return;
        }
        let planned = self.arrivals.planned[node];
        let end = planned.map_or(self.now, |planned| planned.min(self.now));
        let known_until = self.before_end(end);
        for index in 0..self.trace.operations.len() {
            let lane = &self.expected.lanes[self.expected.operations[index].lane];
            if lane.node != node || self.trace.operations[index].task >= self.system.tasks.len() {
                continue;
            }
            match self.trace.operations[index].predecessors.is_empty() {
                true => self.judge_last_arrivals(index, known_until, end),
                false => self.judge_successors(index, known_until),
            }
        }
    }

    /// The trace is over: of what has been numbered each instance has left a record.
    pub(super) fn judge_numbers(&mut self) {
        for index in 0..self.arrivals.numbers.len() {
            let node = self.trace.lanes[self.trace.operations[index].lane].node;
            let Some(numbers) = self.arrivals.numbers[index].take().filter(|_| self.coverage.hears(node))
            else {
                continue;
            };
            let end = self.ends[node].unwrap_or(self.now);
            let sure = if self.is_simulated() { numbers.seen.next() } else { numbers.sure_by(end) };
            let task = self.trace.operations[index].task;
            // What its guard held nothing tells of where the run was cut off.
            let is_told = self.tells_of_held(node) || self.system.tasks[task].separation.is_none();
            for Range { start, end } in numbers.missing(sure) {
                match is_told {
                    true => self.miss(OperationId::from_index(index), start, end),
                    false => self.findings.leave_unknown(Rule::Arrivals, end - start),
                }
            }
        }
    }

    /// Whether the trace has what the guards of the node held at the end of its run.
    pub(super) fn tells_of_held(&self, node: usize) -> bool {
        self.arrivals.is_over[node] && self.coverage.recorded.has(Event::HELD)
    }

    /// How many instances of a first operation have arrived by an instant.
    fn arrived_by(&self, index: usize, until: Instant) -> u64 {
        let entry = &self.trace.tasks[self.trace.operations[index].task];
        let since_ns = length(self.trace.start.saturating_add(entry.phase), until).as_nanos();
        if since_ns < 0 { 0 } else { since_ns as u64 / entry.period.as_nanos().max(1) as u64 + 1 }
    }

    fn before_end(&self, end: Instant) -> Instant {
        let slack = if self.is_simulated() { Duration::ZERO } else { END_SLACK };
        Instant::from_nanos(end.as_nanos().saturating_sub(slack.as_nanos()))
    }

    fn judge_last_arrivals(&mut self, index: usize, known_until: Instant, end: Instant) {
        let entry = &self.trace.tasks[self.trace.operations[index].task];
        let task = self.trace.operations[index].task;
        let just_before = |at: Instant| Instant::from_nanos(at.as_nanos().saturating_sub(1));
        let [sure, all] = [known_until, end].map(|until| self.arrived_by(index, just_before(until)));
        let due = |instance: u64| {
            let jitter = demand::release_jitter_from(entry.jitter, entry.jitter_stream, instance);
            self.arrival(task, instance).saturating_add(jitter)
        };
        match self.arrivals.next[index] {
            Next::Instance(next) => {
                // Jitter may have put the last ones off.
                let mut last = sure;
                while last > next && due(last - 1) >= known_until {
                    last -= 1;
                }
                self.miss(OperationId::from_index(index), next, last);
                self.findings.leave_unknown(Rule::Arrivals, all.saturating_sub(sure.max(next)));
            }
            Next::After(from) => self.findings.leave_unknown(Rule::Arrivals, all.saturating_sub(from)),
            Next::Any | Next::Nothing => {}
        }
    }

    /// What had all that it needs was released. On threads nobody knows how long a guard or a message holds it up.
    fn judge_successors(&mut self, index: usize, known_until: Instant) {
        let operation = OperationId::from_index(index);
        let task = self.trace.operations[index].task;
        let is_here = |before: &usize| self.node_of(*before) == self.node_of(index);
        let is_held =
            self.is_guarded(operation) || !self.trace.operations[index].predecessors.iter().all(is_here);
        if self.is_posted(task) || is_held && !self.is_simulated() {
            return;
        }
        let first_known = match self.known[task] {
            Known::FromTheBeginning => 0,
            Known::From(first) => first,
            Known::AfterLoss(_) | Known::Joining => return,
        };
        let place = self.instances[task].place(index).expect("an operation of the task");
        let mut waiting = Vec::new();
        let mut cases = 0;
        for (number, instance) in self.instances[task].list.range(first_known..) {
            let job = JobId { operation, instance: *number };
            let signalled = self.join_of(job).and_then(|join| join.complete());
            let Some(signalled) = signalled.filter(|at| *at < known_until && instance.doomed.is_none())
            else {
                continue;
            };
            cases += 1;
            if instance.jobs[place] == Progress::Coming {
                waiting.push((signalled, job));
            }
        }
        (0..cases).for_each(|_| self.findings.count_case(Rule::Arrivals));
        if self.is_guarded(operation) {
            return self.judge_first_waiting(waiting, known_until);
        }
        for (_, job) in waiting {
            self.find(Rule::Arrivals, job, None, || {
                "all that it waits for was done, and it was not released".into()
            });
        }
    }

    /// Of those that wait at a guard in virtual time, the first was let through if the guard opened before the end. When it opens for the
    /// others depends on when that is.
    fn judge_first_waiting(&mut self, waiting: Vec<(Instant, JobId)>, end: Instant) {
        let Some((first, job)) = waiting.iter().copied().min() else { return };
        // A phase counts from an arrival, and when triggers release an instance no description says.
        let task = self.trace.operations[job.operation.index()].task;
        if self.is_triggered(task) && self.system.tasks[task].sync == Synchronisation::PhaseModification {
            return;
        }
        let mut latest: Option<(Instant, JobId)> = None;
        for (_, job) in waiting.iter().filter(|(signalled, _)| *signalled == first) {
            let arrival = self.arrival(task, job.instance);
            // Which of several that were signalled at once comes first is not known.
            let Some(due) = self.due(&self.wait_of(*job, arrival, None), end) else { return };
            latest = latest.max(Some((due, *job)));
        }
        if let Some((_, job)) = latest.filter(|(due, _)| *due < end) {
            self.find(Rule::Arrivals, job, None, || "its guard was to let it through, and did not".into());
        }
    }
}

/// The first subtasks of a task.
pub(super) fn firsts(system: &System, task: usize) -> impl Iterator<Item = OperationId> {
    let firsts = system.operations_of(task).iter().filter(|operation| operation.predecessors.is_empty());
    firsts.map(|operation| operation.id)
}

/// Whether values of another node release the task's leading subtask.
pub(super) fn comes_over_link(system: &System, task: usize) -> bool {
    let Some(output) = system.trigger_output(task) else { return false };
    let producer = system.outputs()[output.index()].operation;
    let node = |operation| system.subtask(operation).node;
    firsts(system, task).next().is_some_and(|first| node(first) != node(producer))
}
