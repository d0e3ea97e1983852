//! The work that tasks of higher priority release in a window.

use crate::division::{reciprocal, work_of_jobs};
use crate::effort::AnalysisError;
use crate::recurrence::TIME_MAX;
use crate::task::{Numbers, Task};
use crate::utilisation::{Bracket, ONE};

/// Tasks as a structure of arrays, in the order of their priority.
///
/// The work of a prefix of tasks in a window x is at most the sum of ((x + J) / T + 1) C. If their utilisation is at
/// most 1, that is x, the longest jitter and one job of each, which fits in a word if the last two make a
/// [time](Interference::check).
#[derive(Clone, Debug, Default)]
pub(super) struct Interference {
    periods: Vec<u64>,
    reciprocals: Vec<u64>,
    wcets: Vec<u64>,
    jitters: Vec<u64>,
    /// One job of each of the first i tasks, at index i.
    once: Vec<u128>,
    /// The longest jitter of the first i tasks, at index i.
    longest_jitters: Vec<u64>,
    /// The utilisation of the first i tasks in units of 2^-64, rounded down, at index i.
    utilisations: Vec<u128>,
}

impl Interference {
    pub(super) fn of(tasks: &[Task]) -> Self {
        let numbers: Vec<Numbers> = tasks.iter().map(Task::numbers).collect();
        let mut bracket = Bracket::default();
        let (mut once, mut longest_jitters, mut utilisations) = (vec![0], vec![0], vec![0]);
        for (task, numbers) in tasks.iter().zip(&numbers) {
            bracket.add(task);
            utilisations.push(bracket.low());
            once.push(once[once.len() - 1] + u128::from(numbers.wcet));
            longest_jitters.push(numbers.jitter.max(longest_jitters[longest_jitters.len() - 1]));
        }
        Interference {
            periods: numbers.iter().map(|task| task.period).collect(),
            reciprocals: numbers.iter().map(|task| reciprocal(task.period)).collect(),
            wcets: numbers.iter().map(|task| task.wcet).collect(),
            jitters: numbers.iter().map(|task| task.jitter).collect(),
            once,
            longest_jitters,
            utilisations,
        }
    }

    /// That the work of the first `count` tasks, whose utilisation is at most 1, fits in a word for any window.
    ///
    /// # Errors
    /// [`AnalysisError::Overflow`] where one job of each and the longest jitter are together no time.
    pub(super) fn check(&self, count: usize) -> Result<(), AnalysisError> {
        let fits = self.once[count] + u128::from(self.longest_jitters[count]) <= u128::from(TIME_MAX);
        if fits { Ok(()) } else { Err(AnalysisError::Overflow) }
    }

    /// The work of the first `count` tasks released at 0 and up to `window`, *including* releases at its end:
    /// the sum of (floor((window + J) / T) + 1) C. It is what delays a start at `window`.
    #[inline]
    pub(super) fn through(&self, count: usize, window: u64) -> u128 {
        let tasks = self.periods[..count]
            .iter()
            .zip(&self.reciprocals[..count])
            .zip(&self.wcets[..count])
            .zip(&self.jitters[..count]);
        let work = tasks.fold(0_u64, |work, (((period, reciprocal), wcet), jitter)| {
            let dividend = window.wrapping_add(*jitter);
            work.wrapping_add(work_of_jobs(dividend, *period, *reciprocal, *wcet))
        });
        work.into()
    }

    /// The work released at 0 and *before* the end of `window`, which is not zero: the sum of ceil((window + J) / T) C.
    #[inline]
    pub(super) fn before(&self, count: usize, window: u64) -> u128 {
        self.through(count, window - 1)
    }

    /// One job of each of the first `count` tasks.
    pub(super) fn once(&self, count: usize) -> u128 {
        self.once[count]
    }

    /// A window that no solution of window = `base` + (work of the first `count` tasks in it) is shorter than.
    ///
    /// Each task releases at least one job, and at least its utilisation's part of the window (Sjödin and Hansson 1998),
    /// so window >= base / (1 - U).
    pub(super) fn least_window(&self, count: usize, base: u128) -> u128 {
        let idle = ONE - self.utilisations[count];
        let linear = if base < ONE { (base << 64) / idle } else { base };
        linear.max(base + self.once[count])
    }
}
