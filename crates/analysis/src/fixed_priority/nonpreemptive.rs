//! Response times under non-preemptive fixed priorities, exactly.
//!
//! Davis, Burns, Bril and Lukkien 2007: a job that has started runs to its end, so the start of job q is the least w
//! with w = B + q C + sum over higher tasks of (floor((w + J_j) / T_j) + 1) C_j, and R is the maximum of
//! J + w + C - q T over *all* jobs of the busy period; the first need not be the worst. Time is integer: the longest
//! lower job has started 1 ns before and blocks for C - 1. A task's own blocking is added to that.

use super::jobs::Jobs;
use super::{Interference, Response, Search, jobs_in_hyperperiod};
use crate::effort::{AnalysisError, Effort};
use crate::recurrence::{FixedPoint, TIME_MAX, clamped, least_fixed_point};
use crate::task::{Numbers, Task};
use crate::utilisation::{Bracket, compare_bracketed};
use std::cmp::Ordering;

/// The worst-case response time of every task of `tasks`, which stand in order of priority, highest first.
///
/// `None` where response times have no bound: the utilisation of the task and those above it exceeds 1.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up, [`AnalysisError::Overflow`] where a busy period leaves the
/// range of times.
pub fn response_times(tasks: &[Task], effort: &mut Effort) -> Result<Vec<Option<Response>>, AnalysisError> {
    let mut levels = Levels::new(tasks);
    tasks.iter().map(|_| levels.next(Search::Worst, effort)).collect()
}

/// Whether every job of every task meets its deadline. Cheaper than [`response_times`] where the answer is no.
///
/// # Errors
/// As for [`response_times`].
pub fn schedulable(tasks: &[Task], effort: &mut Effort) -> Result<bool, AnalysisError> {
    let mut levels = Levels::new(tasks);
    for _ in tasks {
        if levels.next(Search::Deadline, effort)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The worst-case response time of `task` between the tasks of `higher` and `lower` priority, each in any order.
///
/// `None` where it has no bound: the utilisation of `higher` and `task` exceeds 1.
///
/// # Errors
/// As for [`response_times`].
pub fn response_time(
    task: &Task,
    higher: &[Task],
    lower: &[Task],
    effort: &mut Effort,
) -> Result<Option<Response>, AnalysisError> {
    let tasks: Vec<Task> = higher.iter().chain([task]).chain(lower).copied().collect();
    let mut levels = Levels::new(&tasks);
    levels.skip(higher.len());
    levels.next(Search::Worst, effort)
}

/// The levels from the highest on.
struct Levels<'a> {
    tasks: &'a [Task],
    interference: Interference,
    /// Longest blocking by the tasks from each index on.
    blocking_from: Vec<u64>,
    /// The utilisation of the levels so far.
    bracket: Bracket,
    index: usize,
}

impl<'a> Levels<'a> {
    fn new(tasks: &'a [Task]) -> Self {
        let mut blocking_from = vec![0; tasks.len() + 1];
        for (index, task) in tasks.iter().enumerate().rev() {
            blocking_from[index] = blocking_from[index + 1].max(task.numbers().wcet - 1);
        }
        let interference = Interference::of(tasks);
        Levels { tasks, interference, blocking_from, bracket: Bracket::default(), index: 0 }
    }

    /// Passes over the next `count` levels.
    fn skip(&mut self, count: usize) {
        for task in &self.tasks[self.index..self.index + count] {
            self.bracket.add(task);
        }
        self.index += count;
    }

    /// The response time at the next level, if it has a bound and, where asked, keeps the deadline.
    fn next(&mut self, search: Search, effort: &mut Effort) -> Result<Option<Response>, AnalysisError> {
        let index = self.index;
        self.skip(1);
        let tasks = &self.tasks[..=index];
        let load = compare_bracketed(&self.bracket, tasks, effort)?;
        if load == Ordering::Greater {
            return Ok(None);
        }
        let task = tasks[index].numbers();
        let blocking = u128::from(self.blocking_from[index + 1]) + u128::from(task.blocking);
        let delayed = blocking > 0 || tasks.iter().any(|task| task.numbers().jitter > 0);
        let level = Level { higher: &self.interference, count: index, task, blocking };
        if load == Ordering::Equal && delayed {
            return level.search(None, jobs_in_hyperperiod(tasks), search, effort);
        }
        let busy_period = level.busy_period(effort)?;
        let released = (u128::from(busy_period) + u128::from(task.jitter)).div_ceil(task.period.into());
        level.search(Some(busy_period), clamped(released), search, effort)
    }
}

/// A task below the first `count` tasks of an interference; the utilisation of all is at most 1.
struct Level<'a> {
    higher: &'a Interference,
    count: usize,
    task: Numbers,
    /// Of both kinds.
    blocking: u128,
}

impl Level<'_> {
    /// From the critical instant until nothing of this level or above is left.
    fn busy_period(&self, effort: &mut Effort) -> Result<u64, AnalysisError> {
        let through = self.count + 1;
        let start = self.blocking + self.higher.once(through);
        let demand = |window| self.blocking + self.higher.before(through, window);
        self.higher.check(through)?;
        match least_fixed_point(clamped(start), TIME_MAX, through as u64, effort, demand)? {
            FixedPoint::At(window) => Ok(window),
            FixedPoint::Beyond => Err(AnalysisError::Overflow),
        }
    }

    /// The worst response of the first `number_of_jobs`, or nothing where a deadline is missed that is asked for.
    fn search(
        &self,
        busy_period: Option<u64>,
        number_of_jobs: u64,
        search: Search,
        effort: &mut Effort,
    ) -> Result<Option<Response>, AnalysisError> {
        let wcet = self.task.wcet;
        self.higher.check(self.count)?;
        let mut jobs = Jobs::new(self.task, search);
        let mut begin = 0;
        for number in 0..number_of_jobs {
            let base = u128::from(number) * u128::from(wcet) + self.blocking;
            let Some(cap) = jobs.cap(number).checked_sub(wcet) else { return jobs.beyond(number) };
            let start = begin.max(clamped(self.higher.least_window(self.count, base)));
            let demand = |window| base + self.higher.through(self.count, window);
            begin = match least_fixed_point(start, cap, self.count as u64 + 1, effort, demand)? {
                FixedPoint::At(begin) => begin,
                FixedPoint::Beyond => return jobs.beyond(number),
            };
            jobs.complete(number, begin + wcet)?;
            begin = clamped(u128::from(begin) + u128::from(wcet));
        }
        jobs.worst(busy_period).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_time::{Duration, Work};

    #[test]
    fn the_second_job_can_be_the_worst() {
        // Davis, Burns, Bril and Lukkien 2007: three messages with periods 2.5, 3.5 and 3.5 and lengths 1. The first job
        // of the lowest responds in 3, the second in 3.5. Here a unit is 10 ns.
        let task = |period| Task::new(Duration::from_nanos(period), Work::from_nanos(10)).unwrap();
        let found = response_times(&[task(25), task(35), task(35)], &mut Effort::default()).unwrap();
        let lowest = found[2].unwrap();
        assert_eq!((lowest.worst, lowest.job), (Duration::from_nanos(35), 1));
    }
}
