//! One processor without costs, one nanosecond at a time (`docs/policies.md`, greedy release).
//!
//! A flat list of jobs, scanned at every scheduling point; it knows nothing of hierarchies, heaps or keys
//! kept over time. Execution times must be at least 1 ns and come from constants or lists.

use std::cmp::{Ordering, Reverse};
use talea_model::{Execution, LaneDispatch, Late, Laxity, Operation, Overrun, Strategy, System};

/// Start, end, operation, instance of a stretch of execution.
pub type Segment = (i64, i64, usize, u64);
/// Operation, instance, completion.
pub type Completion = (usize, u64, i64);

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

/// The run of a system on its only processor.
pub struct Naive<'a> {
    system: &'a System,
    /// Unfinished jobs in no order.
    jobs: Vec<Job>,
    running: Option<(usize, u64)>,
    /// Unfinished jobs that were the last to run in their lane.
    last_ran: Vec<(usize, u64)>,
    completed: Vec<(usize, u64)>,
    pub segments: Vec<Segment>,
    pub completions: Vec<Completion>,
}

impl<'a> Naive<'a> {
    /// Runs `system` for `until` nanoseconds.
    pub fn run(system: &'a System, until: i64) -> Self {
        let mut naive = Naive {
            system,
            jobs: Vec::new(),
            running: None,
            last_ran: Vec::new(),
            completed: Vec::new(),
            segments: Vec::new(),
            completions: Vec::new(),
        };
        for now in 0..until {
            let completes = naive.complete(now);
            let arrives = naive.arrive(now);
            if completes || arrives {
                naive.running = naive.choose(now);
            }
            naive.tick(now);
        }
        naive.complete(until);
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

    fn choose(&self, now: i64) -> Option<(usize, u64)> {
        let best = self.jobs.iter().min_by(|a, b| self.compare(a, b, now))?;
        Some((best.operation, best.instance))
    }

    fn tick(&mut self, now: i64) {
        let Some((operation, instance)) = self.running else {
            return;
        };
        let level = self.level(operation);
        let lane_of = |naive: &Self, (other, _): (usize, u64)| naive.level(other);
        let kept: Vec<_> =
            self.last_ran.iter().copied().filter(|last| lane_of(self, *last) != level).collect();
        self.last_ran = kept;
        self.last_ran.push((operation, instance));
        let is_it = |job: &&mut Job| (job.operation, job.instance) == (operation, instance);
        self.jobs.iter_mut().find(is_it).expect("who runs is unfinished").executed += 1;
        match self.segments.last_mut() {
            Some(last) if last.1 == now && (last.2, last.3) == (operation, instance) => last.1 = now + 1,
            _ => self.segments.push((now, now + 1, operation, instance)),
        }
    }

    fn forget(&mut self, gone: (usize, u64)) {
        self.jobs.retain(|job| (job.operation, job.instance) != gone);
        self.last_ran.retain(|last| *last != gone);
        self.running = self.running.filter(|running| *running != gone);
    }

    fn complete(&mut self, now: i64) -> bool {
        let Some(done) = self.jobs.iter().find(|job| job.executed == job.exec).cloned() else {
            return false;
        };
        let (operation, instance) = (done.operation, done.instance);
        self.forget((operation, instance));
        self.completed.push((operation, instance));
        self.completions.push((operation, instance, now));
        for successor in &self.operation(operation).successors {
            let predecessors = &self.operation(successor.index()).predecessors;
            if predecessors.iter().all(|before| self.completed.contains(&(before.index(), instance))) {
                self.release(successor.index(), instance, now, done.deadline);
            }
        }
        true
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
        self.jobs.push(Job { operation, instance, release, deadline, wcet, exec, executed: 0 });
    }
}
