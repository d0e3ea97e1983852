//! One node without costs, one nanosecond at a time (`docs/policies.md`).
//!
//! A flat list of jobs, scanned at every scheduling point: of each lane the best one, and of the lanes the highest, as many as there are
//! processors. It knows nothing of hierarchies, heaps or keys kept over time, nor of timers: what is signalled is looked at every nanosecond.
//! Execution times must be at least 1 ns and come from constants or lists.

use std::cmp::{Ordering, Reverse};
use std::collections::VecDeque;
use talea_model::{
    Execution, LaneDispatch, Late, Laxity, Operation, Overrun, Strategy, Synchronisation, System, Task,
};

/// Start, end, operation, instance of a stretch of execution.
pub type Segment = (i64, i64, usize, u64);
/// When, operation, instance of a release or a completion.
pub type Happening = (i64, usize, u64);

#[derive(Clone, Debug)]
struct Job {
    operation: usize,
    instance: u64,
    release: i64,
    deadline: i64,
    wcet: i64,
    exec: i64,
    executed: i64,
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Release,
    Deadline,
    Laxity,
}

/// A signalled instance that is not released yet.
#[derive(Clone, Copy, Debug)]
struct Signalled {
    instance: u64,
    at: i64,
    deadline: i64,
    /// The earliest instant that response bounds allow.
    planned: i64,
}

/// The guard of an operation (Sun and Liu 1996); all have one, and what is released greedily does not ask it.
#[derive(Clone, Debug)]
struct Guard {
    /// From when on it lets an instance through: always, by rule 1.
    opens: i64,
    last: Option<i64>,
    waiting: VecDeque<Signalled>,
}

/// The run of a system on its only node.
pub struct Naive<'a> {
    system: &'a System,
    /// Unfinished jobs in no order.
    jobs: Vec<Job>,
    /// One of a lane, of no more lanes than there are processors.
    running: Vec<(usize, u64)>,
    /// Unfinished jobs that were the last to run in their lane.
    last_ran: Vec<(usize, u64)>,
    /// By operation.
    guards: Vec<Guard>,
    /// In no order, of one instant.
    pub segments: Vec<Segment>,
    pub releases: Vec<Happening>,
    pub completions: Vec<Happening>,
}

impl<'a> Naive<'a> {
    /// Runs `system` for `until` nanoseconds.
    pub fn run(system: &'a System, until: i64) -> Self {
        let guard = Guard { opens: i64::MIN, last: None, waiting: VecDeque::new() };
        let mut naive = Naive {
            system,
            jobs: Vec::new(),
            running: Vec::new(),
            last_ran: Vec::new(),
            guards: vec![guard; system.operations().len()],
            segments: Vec::new(),
            releases: Vec::new(),
            completions: Vec::new(),
        };
        for now in 0..until {
            let completes = naive.complete(now);
            let arrives = naive.arrive(now);
            let opens = naive.open(now);
            if completes || arrives || opens {
                naive.running = naive.choose(now);
            }
            naive.tick(now);
        }
        naive.complete(until);
        // What completes at the end still does, and nothing is released any more.
        naive.releases.retain(|(at, ..)| *at < until);
        naive
    }

    fn operation(&self, index: usize) -> &'a Operation {
        &self.system.operations()[index]
    }

    /// Level of an operation; smaller is higher.
    fn level(&self, operation: usize) -> (Reverse<u8>, i64) {
        let task = &self.system.tasks[self.operation(operation).task];
        let criticality = task.criticality.level();
        let period = task.period.as_nanos();
        match self.system.strategy {
            Strategy::Rms => (Reverse(0), period),
            Strategy::Edf | Strategy::Mlf => (Reverse(0), 0),
            Strategy::Muf | Strategy::Criticality => (Reverse(criticality), 0),
            Strategy::RmsMlf => (Reverse(criticality), if criticality >= 3 { period } else { 0 }),
        }
    }

    fn order(&self, operation: usize) -> Order {
        let task = &self.system.tasks[self.operation(operation).task];
        match self.system.strategy {
            Strategy::Rms | Strategy::Criticality => Order::Release,
            Strategy::Edf => Order::Deadline,
            Strategy::RmsMlf if task.criticality.level() >= 3 => Order::Release,
            Strategy::Mlf | Strategy::Muf | Strategy::RmsMlf => Order::Laxity,
        }
    }

    fn slack(&self, job: &Job, now: i64) -> i64 {
        match self.order(job.operation) {
            Order::Release => job.release - now,
            Order::Deadline => job.deadline - now,
            Order::Laxity => {
                let done = if self.system.laxity == Laxity::Remaining { job.executed } else { 0 };
                job.deadline - now - (job.wcet - done)
            }
        }
    }

    fn is_late(&self, job: &Job, now: i64) -> bool {
        let has_deadline = self.order(job.operation) != Order::Release;
        self.system.late == Late::Last && has_deadline && self.slack(job, now) <= 0
    }

    fn ran_last(&self, job: &Job) -> bool {
        self.last_ran.contains(&(job.operation, job.instance))
    }

    /// List order: importance, then topological order, then file order.
    fn list_place(&self, operation: usize) -> (Reverse<i32>, u32, usize) {
        let described = self.operation(operation);
        let importance = self.system.tasks[described.task].importance;
        (Reverse(importance), described.topological_rank, operation)
    }

    fn compare(&self, a: &Job, b: &Job, now: i64) -> Ordering {
        let holds =
            |job: &Job| self.system.lane_dispatch == LaneDispatch::NonPreemptive && self.ran_last(job);
        (self.level(a.operation).cmp(&self.level(b.operation)))
            .then(holds(b).cmp(&holds(a)))
            .then(self.is_late(a, now).cmp(&self.is_late(b, now)))
            .then(self.slack(a, now).cmp(&self.slack(b, now)))
            .then(self.ran_last(b).cmp(&self.ran_last(a)))
            .then(a.release.cmp(&b.release))
            .then(self.list_place(a.operation).cmp(&self.list_place(b.operation)))
            .then(a.instance.cmp(&b.instance))
    }

    /// The best job of each lane, of the highest lanes that have any.
    fn choose(&self, now: i64) -> Vec<(usize, u64)> {
        let mut rest: Vec<&Job> = self.jobs.iter().collect();
        let mut chosen = Vec::new();
        while let Some(best) = rest.iter().copied().min_by(|a, b| self.compare(a, b, now))
            && chosen.len() < self.system.nodes[0].cpus.len()
        {
            chosen.push((best.operation, best.instance));
            rest.retain(|job| self.level(job.operation) != self.level(best.operation));
        }
        chosen
    }

    fn tick(&mut self, now: i64) {
        for (operation, instance) in self.running.clone() {
            let level = self.level(operation);
            let kept = self.last_ran.iter().copied().filter(|(other, _)| self.level(*other) != level);
            self.last_ran = kept.chain([(operation, instance)]).collect();
            let is_it = |job: &&mut Job| (job.operation, job.instance) == (operation, instance);
            self.jobs.iter_mut().find(is_it).expect("who runs is unfinished").executed += 1;
            let goes_on = |segment: &&mut Segment| {
                let (_, end, of, number) = **segment;
                (end, of, number) == (now, operation, instance)
            };
            match self.segments.iter_mut().rev().find(goes_on) {
                Some(segment) => segment.1 = now + 1,
                None => self.segments.push((now, now + 1, operation, instance)),
            }
        }
    }

    fn forget(&mut self, gone: (usize, u64)) {
        self.jobs.retain(|job| (job.operation, job.instance) != gone);
        self.last_ran.retain(|last| *last != gone);
        self.running.retain(|running| *running != gone);
    }

    fn complete(&mut self, now: i64) -> bool {
        let done: Vec<Job> = self.jobs.iter().filter(|job| job.executed == job.exec).cloned().collect();
        for job in &done {
            self.forget((job.operation, job.instance));
            self.completions.push((now, job.operation, job.instance));
            for successor in &self.operation(job.operation).successors {
                self.signal(job, successor.index(), now);
            }
        }
        !done.is_empty()
    }

    /// When a job of an operation was released or completed.
    fn time(happenings: &[Happening], operation: usize, instance: u64) -> Option<i64> {
        let of = |(_, other, number): &&Happening| (*other, *number) == (operation, instance);
        happenings.iter().find(of).map(|(time, ..)| *time)
    }

    fn task(&self, operation: usize) -> &'a Task {
        &self.system.tasks[self.operation(operation).task]
    }

    /// A predecessor is done: if it is the last that is needed, the successor is signalled.
    fn signal(&mut self, done: &Job, successor: usize, now: i64) {
        let (instance, deadline) = (done.instance, done.deadline);
        let predecessors = &self.operation(successor).predecessors;
        let are_done: Vec<usize> = predecessors
            .iter()
            .map(|before| before.index())
            .filter(|before| Self::time(&self.completions, *before, instance).is_some())
            .collect();
        let join = self.system.subtask(self.operation(successor).id).join;
        if are_done.len() != join.needed(predecessors.len()) {
            return;
        }
        let task = self.task(successor);
        let planned = match task.sync {
            Synchronisation::Greedy => return self.release(successor, instance, now, deadline),
            Synchronisation::PhaseModification => {
                let arrival = deadline - task.deadline.as_nanos();
                arrival + self.offset(successor)
            }
            Synchronisation::ModifiedPhaseModification => {
                let released = |before| Self::time(&self.releases, before, instance).expect("it is done");
                let timers = are_done.iter().map(|before| released(*before) + self.bound(*before));
                timers.max().expect("a predecessor is done")
            }
            _ => i64::MIN,
        };
        self.guards[successor].waiting.push_back(Signalled { instance, at: now, deadline, planned });
    }

    fn bound(&self, operation: usize) -> i64 {
        let subtask = self.system.subtask(self.operation(operation).id);
        subtask.bound.expect("where bounds are needed they are given").as_nanos()
    }

    /// When as many predecessors as are needed are done after the arrival, if they keep their bounds.
    fn offset(&self, operation: usize) -> i64 {
        let predecessors = &self.operation(operation).predecessors;
        let done = |before: usize| self.offset(before) + self.bound(before);
        let mut done: Vec<i64> = predecessors.iter().map(|before| done(before.index())).collect();
        done.sort_unstable();
        let needed = self.system.subtask(self.operation(operation).id).join.needed(done.len());
        if done.is_empty() { 0 } else { done[needed - 1] }
    }

    /// Releases what guards let through at `now`. Returns whether that is anything.
    fn open(&mut self, now: i64) -> bool {
        // Work on any of the processors makes an instant no idle point of the node.
        if self.jobs.iter().all(|job| job.release == now) {
            self.rest(now);
        }
        let mut anything = false;
        for operation in 0..self.guards.len() {
            let sync = self.task(operation).sync;
            let guard = &mut self.guards[operation];
            let Some(first) = guard.waiting.front().copied() else { continue };
            let opens = if sync.needs_bounds() { first.planned } else { guard.opens };
            if opens > now || guard.last == Some(now) {
                continue;
            }
            guard.waiting.pop_front();
            guard.last = Some(now);
            // Rule 2.
            guard.opens = now + self.system.tasks[self.system.operations()[operation].task].period.as_nanos();
            self.release(operation, first.instance, now, first.deadline);
            anything = true;
        }
        anything
    }

    /// Rule 3: `now` is an idle point, and not the one at which a guard let somebody through.
    fn rest(&mut self, now: i64) {
        let mut closed: Vec<(i64, usize)> = Vec::new();
        for operation in 0..self.guards.len() {
            let sync = self.task(operation).sync;
            let guard = &mut self.guards[operation];
            match (sync, guard.waiting.front()) {
                _ if guard.last == Some(now) => {}
                (Synchronisation::ReleaseGuardIdle, _) => guard.opens = guard.opens.min(now),
                (Synchronisation::ReleaseGuardIdleOne, Some(first)) if guard.opens > now => {
                    closed.push((first.at, operation));
                }
                _ => {}
            }
        }
        if let Some((_, first)) = closed.into_iter().min() {
            self.guards[first].opens = now;
        }
    }

    fn arrive(&mut self, now: i64) -> bool {
        let mut anything = false;
        for (index, task) in self.system.tasks.iter().enumerate() {
            let since = now - task.phase.as_nanos();
            let period = task.period.as_nanos();
            if since < 0 || since % period != 0 {
                continue;
            }
            let operations = self.system.operations_of(index);
            let firsts: Vec<usize> = operations
                .iter()
                .filter(|operation| operation.predecessors.is_empty())
                .map(|operation| operation.id.index())
                .collect();
            let unfinished: Vec<(usize, u64)> = self
                .jobs
                .iter()
                .filter(|job| firsts.contains(&job.operation))
                .map(|job| (job.operation, job.instance))
                .collect();
            match task.overrun {
                Overrun::SkipNext if !unfinished.is_empty() => continue,
                Overrun::Merge
                    if self.jobs.iter().any(|job| firsts.contains(&job.operation) && job.executed == 0) =>
                {
                    continue;
                }
                Overrun::Abort => unfinished.into_iter().for_each(|job| self.forget(job)),
                _ => {}
            }
            let instance = (since / period) as u64;
            for first in firsts {
                self.release(first, instance, now, now + task.deadline.as_nanos());
            }
            anything = true;
        }
        anything
    }

    fn release(&mut self, operation: usize, instance: u64, release: i64, deadline: i64) {
        let subtask = self.system.subtask(self.operation(operation).id);
        let exec = match &subtask.exec {
            Execution::Constant(work) => work.as_nanos(),
            Execution::List(list) => list[instance as usize % list.len()].as_nanos(),
            Execution::Uniform(..) => panic!("the reference draws no numbers"),
        };
        let wcet = subtask.wcet.as_nanos();
        self.releases.push((release, operation, instance));
        self.jobs.push(Job { operation, instance, release, deadline, wcet, exec, executed: 0 });
    }
}
