//! Worst-case response times under EDF, exactly.
//!
//! Preemptive: Spuri 1996. Non-preemptive: George, Rivierre and Spuri 1996. The worst response of a task need not be in
//! the synchronous busy period. It is in one in which all *other* tasks release at 0 and as often as they can, and a job
//! of the task arrives at some a, its predecessors a period apart before it. Only those a matter at which the job's
//! deadline coincides with another's; they are taken in ascending order, one at a time, until the rest of the busy
//! period is too short for a worse response.
//!
//! The cost of one task is the number of deadlines in the busy period, times the tasks, times the rounds until a
//! window stops growing.

use super::nonpreemptive::longest;
use super::{Blocking, Table};
use crate::effort::{AnalysisError, Effort};
use crate::recurrence::{FixedPoint, TIME_MAX, duration, least_fixed_point};
use crate::task::Task;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use talea_time::Duration;

/// The worst-case response time of one task under EDF, and where it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Longest time from a job's arrival to its completion; it includes the task's own jitter.
    pub worst: Duration,
    /// When that job arrives, from the beginning of its busy period; negative where jitter keeps its release back.
    pub arrival: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dispatch {
    Preemptive,
    NonPreemptive,
}

/// The worst-case response time of every task under preemptive EDF, in the order of `tasks`.
///
/// `None` where response times have no bound: the utilisation exceeds 1.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up, [`AnalysisError::Overflow`] where a busy period leaves the
/// range of times.
pub fn preemptive(tasks: &[Task], effort: &mut Effort) -> Result<Option<Vec<Response>>, AnalysisError> {
    response_times(tasks, Dispatch::Preemptive, effort)
}

/// The worst-case response time of every task under non-preemptive EDF, in the order of `tasks`.
///
/// `None` where response times have no bound: the utilisation exceeds 1.
///
/// # Errors
/// As for [`preemptive`].
pub fn nonpreemptive(tasks: &[Task], effort: &mut Effort) -> Result<Option<Vec<Response>>, AnalysisError> {
    response_times(tasks, Dispatch::NonPreemptive, effort)
}

fn response_times(
    tasks: &[Task],
    dispatch: Dispatch,
    effort: &mut Effort,
) -> Result<Option<Vec<Response>>, AnalysisError> {
    let Some(table) = Table::new(tasks, effort)? else { return Ok(None) };
    let blocking = match dispatch {
        Dispatch::Preemptive => table.longest_own_blocking(),
        Dispatch::NonPreemptive => longest(&Blocking::of(tasks))?,
    };
    let busy_period = table.busy_period(blocking, effort)?;
    // A blocker is in the work of the synchronous busy period already: later arrivals find nothing worse.
    let horizon = table.horizon(table.busy_period(table.longest_own_blocking(), effort)?);
    let responses = (0..tasks.len()).map(|task| {
        effort.spend(8 * tasks.len() as u64)?;
        Arrivals::new(tasks, task, dispatch, busy_period, horizon).worst(effort)
    });
    responses.collect::<Result<Vec<Response>, AnalysisError>>().map(Some)
}

/// A task as the examined job's rival; numbers of nanoseconds.
struct Rival {
    period: u64,
    wcet: u64,
    jitter: u64,
    /// D - J.
    deadline: i128,
    blocking: u64,
    /// Jobs in the busy period whose deadlines are not after the examined one's.
    due: u64,
}

/// The arrivals of one task that matter.
struct Arrivals {
    dispatch: Dispatch,
    rivals: Vec<Rival>,
    own: usize,
    /// The examined task's relative deadline.
    deadline: i128,
    busy_period: Option<u64>,
    /// No arrival from here on needs to be examined.
    horizon: i128,
    /// By rival: the next arrival at which one more of its jobs is due.
    next: BinaryHeap<Reverse<(i128, usize)>>,
}

impl Arrivals {
    fn new(tasks: &[Task], own: usize, dispatch: Dispatch, busy_period: Option<u64>, horizon: u64) -> Self {
        let rivals: Vec<Rival> = tasks.iter().map(rival).collect();
        let deadline = i128::from(tasks[own].numbers().deadline);
        let horizon = i128::from(horizon);
        let mut arrivals =
            Arrivals { dispatch, rivals, own, deadline, busy_period, horizon, next: BinaryHeap::new() };
        let first = -i128::from(arrivals.rivals[own].jitter);
        for index in 0..tasks.len() {
            let rival = &mut arrivals.rivals[index];
            // Jobs whose deadlines lie before the first examined one are due from the start.
            let room = first - 1 + deadline - rival.deadline;
            let due = if room < 0 { 0 } else { room / i128::from(rival.period) + 1 };
            rival.due = due as u64;
            arrivals.expect(index);
        }
        arrivals
    }

    /// Puts the next arrival at which `rival` has one more job due into the queue.
    fn expect(&mut self, rival: usize) {
        let Rival { period, deadline, due, .. } = self.rivals[rival];
        let arrival = i128::from(due) * i128::from(period) + deadline - self.deadline;
        if arrival < self.horizon {
            self.next.push(Reverse((arrival, rival)));
        }
    }

    /// The next arrival, with the jobs that are due then counted.
    fn advance(&mut self) -> Option<i128> {
        let Reverse((arrival, _)) = *self.next.peek()?;
        while let Some(&Reverse((time, rival))) = self.next.peek() {
            if time > arrival {
                break;
            }
            self.next.pop();
            self.rivals[rival].due += 1;
            self.expect(rival);
        }
        Some(arrival)
    }

    /// The worst response over all arrivals.
    fn worst(mut self, effort: &mut Effort) -> Result<Response, AnalysisError> {
        let wcet = i128::from(self.rivals[self.own].wcet);
        let (mut worst, mut worst_arrival) = (wcet, 0);
        let mut window = 0;
        while let Some(arrival) = self.advance() {
            // A job completes at the end of the busy period at the latest.
            if self.busy_period.is_some_and(|end| i128::from(end) - arrival <= worst) {
                break;
            }
            // The window grows with the deadline: a blocker that drops out is due itself, for a nanosecond more.
            window = self.window(window, self.blocking(arrival), effort)?;
            let rest = match self.dispatch {
                Dispatch::Preemptive => 0,
                Dispatch::NonPreemptive => wcet,
            };
            let response = i128::from(window) + rest - arrival;
            if response > worst {
                (worst, worst_arrival) = (response, arrival);
            }
        }
        Ok(Response { worst: duration(worst)?, arrival: duration(worst_arrival)? })
    }

    /// The longest blocking of the job that arrives at `arrival`.
    fn blocking(&self, arrival: i128) -> u128 {
        let (mut own, mut later) = (0, 0);
        for rival in &self.rivals {
            if rival.deadline <= arrival + self.deadline {
                own = own.max(rival.blocking);
            } else {
                later = later.max(rival.wcet - 1);
            }
        }
        match self.dispatch {
            Dispatch::Preemptive => own.into(),
            Dispatch::NonPreemptive => u128::from(own) + u128::from(later),
        }
    }

    /// When the examined job completes (preemptive) or starts (non-preemptive), not before `start`.
    fn window(&self, start: u64, blocking: u128, effort: &mut Effort) -> Result<u64, AnalysisError> {
        let own = &self.rivals[self.own];
        let (own_jobs, open) = match self.dispatch {
            Dispatch::Preemptive => (own.due, 0),
            Dispatch::NonPreemptive => (own.due - 1, 1),
        };
        let base = blocking + u128::from(own_jobs) * u128::from(own.wcet);
        // Releases at the end of the window delay a start, but not a completion.
        let released = |rival: &Rival, window: u64| (window + rival.jitter + open).div_ceil(rival.period);
        let demand = |window: u64| {
            let others = self.rivals.iter().enumerate().filter(|(index, _)| *index != self.own);
            let work = others.map(|(_, rival)| {
                u128::from(released(rival, window).min(rival.due)) * u128::from(rival.wcet)
            });
            base + work.sum::<u128>()
        };
        let start = start.max(u64::from(self.dispatch == Dispatch::Preemptive));
        match least_fixed_point(start, TIME_MAX, 2 * self.rivals.len() as u64, effort, demand)? {
            FixedPoint::At(window) => Ok(window),
            FixedPoint::Beyond => Err(AnalysisError::Overflow),
        }
    }
}

fn rival(task: &Task) -> Rival {
    let numbers = task.numbers();
    Rival {
        period: numbers.period,
        wcet: numbers.wcet,
        jitter: numbers.jitter,
        deadline: i128::from(numbers.deadline) - i128::from(numbers.jitter),
        blocking: numbers.blocking,
        due: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_time::Work;

    #[test]
    fn the_worst_response_need_not_be_in_the_synchronous_busy_period() {
        // Released together, the first task's job goes first and responds in 1. Released 1 later, its deadline is that
        // of the job that runs already.
        let task = |wcet, deadline| {
            Task::new(Duration::from_nanos(3), Work::from_nanos(wcet))
                .and_then(|task| task.with_deadline(Duration::from_nanos(deadline)))
                .unwrap()
        };
        let found = preemptive(&[task(1, 3), task(2, 4)], &mut Effort::default()).unwrap().unwrap();
        let late = Response { worst: Duration::from_nanos(2), arrival: Duration::from_nanos(1) };
        assert_eq!(found[0], late);
    }
}
