//! Response times under preemptive fixed priorities, exactly.
//!
//! Lehoczky 1990, where deadlines are arbitrary and so all jobs of the busy period count, with release jitter and
//! blocking as in Tindell, Burns and Wellings 1994: job q of the busy period completes at the least w with
//! w = (q+1) C + B + sum over higher tasks of ceil((w + J_j) / T_j) C_j, and R is the maximum of J + w - q T.

use super::jobs::Jobs;
use super::{Interference, Response, Search, jobs_in_hyperperiod};
use crate::effort::{AnalysisError, Effort};
use crate::recurrence::{FixedPoint, clamped, least_fixed_point};
use crate::task::{Numbers, Task};
use crate::utilisation::{Bracket, compare_bracketed, compare_with_one};
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

/// The worst-case response time of `task` under the interference of the tasks in `higher`, in any order.
///
/// `None` where it has no bound: the utilisation of all of them exceeds 1.
///
/// # Errors
/// As for [`response_times`].
pub fn response_time(
    task: &Task,
    higher: &[Task],
    effort: &mut Effort,
) -> Result<Option<Response>, AnalysisError> {
    let level: Vec<Task> = higher.iter().chain([task]).copied().collect();
    let load = compare_with_one(&level, effort)?;
    if load == Ordering::Greater {
        return Ok(None);
    }
    let interference = Interference::of(higher);
    let level = Level::new(&interference, &level, load);
    Ok(level.search(0, Search::Worst, effort)?.map(|found| found.response))
}

/// The levels from the highest on.
struct Levels<'a> {
    tasks: &'a [Task],
    interference: Interference,
    /// The utilisation of the levels so far.
    bracket: Bracket,
    index: usize,
    /// The first window of the level above, and the blocking in it.
    above: Option<(u64, u64)>,
}

impl<'a> Levels<'a> {
    fn new(tasks: &'a [Task]) -> Self {
        let interference = Interference::of(tasks);
        Levels { tasks, interference, bracket: Bracket::default(), index: 0, above: None }
    }

    /// The response time at the next level, if it has a bound and, where asked, keeps the deadline.
    fn next(&mut self, search: Search, effort: &mut Effort) -> Result<Option<Response>, AnalysisError> {
        let tasks = &self.tasks[..=self.index];
        self.bracket.add(&tasks[self.index]);
        self.index += 1;
        let load = compare_bracketed(&self.bracket, tasks, effort)?;
        if load == Ordering::Greater {
            return Ok(None);
        }
        let level = Level::new(&self.interference, tasks, load);
        let Some(found) = level.search(self.start(&level), search, effort)? else { return Ok(None) };
        self.above = Some((found.first_window, level.task.blocking));
        Ok(Some(found.response))
    }

    /// The window above holds one job of that level's task, as does this one, and now also one of this level's.
    fn start(&self, level: &Level) -> u64 {
        match self.above {
            Some((window, blocking)) if blocking <= level.task.blocking => {
                clamped(u128::from(window) + u128::from(level.task.wcet + level.task.blocking - blocking))
            }
            _ => 0,
        }
    }
}

/// A task below the first `count` tasks of an interference; the utilisation of all is at most 1.
struct Level<'a> {
    higher: &'a Interference,
    count: usize,
    task: Numbers,
    /// No more jobs need to be examined; the maximum where the busy period is sure to end.
    jobs: u64,
}

/// What a search at a level found.
struct Found {
    response: Response,
    /// When job 0 completes.
    first_window: u64,
}

impl<'a> Level<'a> {
    /// The level of the last of `tasks`, below the others, which are the first in `higher`. `load` compares the
    /// utilisation of all with 1 and is not greater.
    fn new(higher: &'a Interference, tasks: &[Task], load: Ordering) -> Self {
        let (task, above) = tasks.split_last().expect("a level has a task");
        let jobs = if load == Ordering::Equal { jobs_in_hyperperiod(tasks) } else { u64::MAX };
        Level { higher, count: above.len(), task: task.numbers(), jobs }
    }

    /// The worst response, or nothing where a deadline is missed that is asked for. `start` is a window that the first
    /// is not shorter than.
    fn search(
        &self,
        start: u64,
        search: Search,
        effort: &mut Effort,
    ) -> Result<Option<Found>, AnalysisError> {
        let Numbers { wcet, blocking, .. } = self.task;
        self.higher.check(self.count)?;
        let mut jobs = Jobs::new(self.task, search);
        let (mut window, mut first_window) = (start, None);
        let mut busy_period = None;
        for number in 0..self.jobs {
            let base = u128::from(number + 1) * u128::from(wcet) + u128::from(blocking);
            let start = window.max(clamped(self.higher.least_window(self.count, base)));
            let demand = |window| base + self.higher.before(self.count, window);
            let cost = self.count as u64 + 1;
            window = match least_fixed_point(start, jobs.cap(number), cost, effort, demand)? {
                FixedPoint::At(window) => window,
                FixedPoint::Beyond => return jobs.beyond(number),
            };
            first_window.get_or_insert(window);
            jobs.complete(number, window)?;
            if jobs.ended_by(number, window) {
                busy_period = Some(window);
                break;
            }
            window = clamped(u128::from(window) + u128::from(wcet));
        }
        let first_window = first_window.expect("a busy period has a job");
        Ok(Some(Found { response: jobs.worst(busy_period)?, first_window }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_time::{Duration, Work};

    fn ns(ns: i64) -> Duration {
        Duration::from_nanos(ns)
    }

    fn responses(tasks: &[(i64, i64)], lowest_blocking: i64) -> Vec<Response> {
        let task = |(period, wcet): &(i64, i64)| Task::new(ns(*period), Work::from_nanos(*wcet)).unwrap();
        let mut tasks: Vec<Task> = tasks.iter().map(task).collect();
        let lowest = tasks.pop().unwrap();
        tasks.push(lowest.with_blocking(ns(lowest_blocking)).unwrap());
        let found = response_times(&tasks, &mut Effort::default()).unwrap();
        found.into_iter().map(Option::unwrap).collect()
    }

    #[test]
    fn the_textbook_example_has_its_response_times() {
        // Burns and Wellings, Real-Time Systems and Programming Languages.
        let found = responses(&[(7, 3), (12, 3), (20, 5)], 0);
        assert_eq!(found.iter().map(|response| response.worst).collect::<Vec<_>>(), [ns(3), ns(6), ns(20)]);
    }

    #[test]
    fn with_long_deadlines_a_later_job_can_be_the_worst() {
        // Lehoczky 1990: the responses of the second task's jobs are 114, 102, 116, 104, 118, 106 and 94.
        let found = responses(&[(70, 26), (100, 62)], 0);
        assert_eq!(found[1], Response { worst: ns(118), job: 4, busy_period: Some(ns(694)) });
    }

    #[test]
    fn a_full_processor_has_response_times_although_its_busy_period_never_ends() {
        // Completions at 11 and 16: responses of 11 and 10, then again.
        let found = responses(&[(4, 2), (6, 3)], 2);
        assert_eq!(found[1], Response { worst: ns(11), job: 0, busy_period: None });
    }

    #[test]
    fn an_overload_ends_the_bounds_from_its_level_on() {
        let task = |period, wcet| Task::new(ns(period), Work::from_nanos(wcet)).unwrap();
        let tasks = [task(4, 2), task(4, 3), task(100, 1)];
        let found = response_times(&tasks, &mut Effort::default()).unwrap();
        assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(schedulable(&tasks, &mut Effort::default()), Ok(false));
    }
}
