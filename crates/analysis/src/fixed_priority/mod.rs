//! Fixed priorities on one processor: worst-case response times.
//!
//! [`preemptive`] for dispatching at any instant, [`nonpreemptive`] for jobs that run to completion. Both are exact
//! for sporadic tasks. Task lists are in order of priority, highest first. Of tasks that share a priority each must be
//! analysed as if it were below the others.
//!
//! The verdicts are *sustainable*: with shorter execution times, longer periods, less jitter or less blocking a set
//! that meets its deadlines still does, because every response time is a least fixed point of terms that only shrink.
//!
//! The cost of one response time is the number of tasks above it, times the jobs in its busy period, times the rounds
//! until a window stops growing. Each search starts from the end of its predecessor, or from the bound of Sjödin and
//! Hansson 1998 if that is later, so the rounds are few.

mod interference;
mod jobs;
pub mod nonpreemptive;
pub mod preemptive;

use interference::Interference;
use jobs::Search;

use crate::task::Task;
use num_integer::Integer;
use talea_time::Duration;

/// The worst-case response time of one task, and where it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Longest time from a job's arrival to its completion; it includes the task's own jitter.
    pub worst: Duration,
    /// Which job of the busy period that begins at the critical instant has it, from 0.
    pub job: u64,
    /// Length of that busy period at the task's priority. `None` where it never ends, which takes a utilisation of
    /// exactly 1 and some jitter or blocking; response times then repeat every hyperperiod.
    pub busy_period: Option<Duration>,
}

/// How many jobs of the last of `level` must be examined if the level's utilisation is exactly 1.
///
/// If something delays its busy period, that never ends, but after a hyperperiod all windows repeat, shifted by it;
/// otherwise it ends with the hyperperiod at the latest.
fn jobs_in_hyperperiod(level: &[Task]) -> u64 {
    let own = level.last().map_or(1, |task| u128::from(task.numbers().period));
    let hyperperiod = level.iter().try_fold(1_u128, |multiple, task| {
        let period = u128::from(task.numbers().period);
        (multiple / multiple.gcd(&period)).checked_mul(period)
    });
    hyperperiod.and_then(|multiple| u64::try_from(multiple / own).ok()).unwrap_or(u64::MAX)
}
