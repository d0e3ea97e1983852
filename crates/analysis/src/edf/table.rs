//! Tasks in the order of their deadlines, as a structure of arrays.

use crate::division::{quotient, reciprocal};
use crate::effort::{AnalysisError, Effort};
use crate::recurrence::{FixedPoint, TIME_MAX, clamped, least_fixed_point};
use crate::task::{Numbers, Task};
use crate::utilisation::{Bracket, ONE, compare_bracketed};
use num_integer::Integer;
use std::cmp::Ordering;

/// Sporadic tasks whose utilisation is at most 1.
///
/// Since C <= T, a task's part of a window x is at most x + J + T, so sums over tasks fit in 128 bits.
pub(super) struct Table {
    /// D - J, ascending. A negative one, whose job is late before it is released, counts as 0, which fails as surely.
    deadlines: Vec<u64>,
    periods: Vec<u64>,
    reciprocals: Vec<u64>,
    wcets: Vec<u64>,
    jitters: Vec<u64>,
    /// Longest own blocking of the first i tasks, at index i.
    own_blocking: Vec<u64>,
    /// Longest C - 1 of the tasks from i on, at index i.
    later_blocking: Vec<u64>,
    /// Whether the utilisation is exactly 1.
    full: bool,
}

impl Table {
    /// The table, unless the utilisation exceeds 1.
    pub(super) fn new(tasks: &[Task], effort: &mut Effort) -> Result<Option<Self>, AnalysisError> {
        effort.spend(tasks.len() as u64)?;
        let mut bracket = Bracket::default();
        tasks.iter().for_each(|task| bracket.add(task));
        let load = compare_bracketed(&bracket, tasks, effort)?;
        if load == Ordering::Greater {
            return Ok(None);
        }
        let mut numbers: Vec<Numbers> = tasks.iter().map(Task::numbers).collect();
        let deadline = |task: &Numbers| task.deadline.saturating_sub(task.jitter);
        numbers.sort_by_key(deadline);
        let mut own_blocking = vec![0];
        let mut later_blocking = vec![0; numbers.len() + 1];
        for (index, task) in numbers.iter().enumerate() {
            own_blocking.push(own_blocking[index].max(task.blocking));
        }
        for (index, task) in numbers.iter().enumerate().rev() {
            later_blocking[index] = later_blocking[index + 1].max(task.wcet - 1);
        }
        Ok(Some(Table {
            deadlines: numbers.iter().map(deadline).collect(),
            periods: numbers.iter().map(|task| task.period).collect(),
            reciprocals: numbers.iter().map(|task| reciprocal(task.period)).collect(),
            wcets: numbers.iter().map(|task| task.wcet).collect(),
            jitters: numbers.iter().map(|task| task.jitter).collect(),
            own_blocking,
            later_blocking,
            full: load == Ordering::Equal,
        }))
    }

    pub(super) fn len(&self) -> usize {
        self.deadlines.len()
    }

    /// The shortest and the longest deadline.
    pub(super) fn extreme_deadlines(&self) -> Option<(u64, u64)> {
        self.deadlines.first().copied().zip(self.deadlines.last().copied())
    }

    /// How many tasks have a deadline up to `time`.
    pub(super) fn due(&self, time: u64) -> usize {
        self.deadlines.partition_point(|deadline| *deadline <= time)
    }

    pub(super) fn deadline(&self, task: usize) -> u64 {
        self.deadlines[task]
    }

    pub(super) fn period(&self, task: usize) -> u64 {
        self.periods[task]
    }

    pub(super) fn wcet(&self, task: usize) -> u64 {
        self.wcets[task]
    }

    /// Longest own blocking of the first `due` tasks.
    pub(super) fn own_blocking(&self, due: usize) -> u64 {
        self.own_blocking[due]
    }

    /// Longest blocking by a started job of a task behind the first `due`.
    pub(super) fn later_blocking(&self, due: usize) -> u64 {
        self.later_blocking[due]
    }

    /// The work with deadlines up to `time` of the first `due` tasks, whose deadlines are all up to `time`: the sum of
    /// (floor((time - D) / T) + 1) C.
    pub(super) fn demand(&self, due: usize, time: u64) -> u128 {
        let tasks = self.deadlines[..due]
            .iter()
            .zip(&self.periods[..due])
            .zip(&self.reciprocals[..due])
            .zip(&self.wcets[..due]);
        let mut work = 0_u128;
        for (((deadline, period), reciprocal), wcet) in tasks {
            let jobs = quotient(time - deadline, *period, *reciprocal) + 1;
            work += u128::from(jobs) * u128::from(*wcet);
        }
        work
    }

    /// The latest deadline of any job before `time`.
    pub(super) fn latest_deadline_before(&self, time: u64) -> Option<u64> {
        let last = time.checked_sub(1)?;
        let due = self.due(last);
        let tasks = self.deadlines[..due].iter().zip(&self.periods[..due]).zip(&self.reciprocals[..due]);
        tasks
            .map(|((deadline, period), reciprocal)| {
                deadline + quotient(last - deadline, *period, *reciprocal) * period
            })
            .max()
    }

    /// From a simultaneous release of all tasks, delayed by `blocking`, until nothing is left.
    ///
    /// `None` where that never happens, which takes a utilisation of exactly 1 and some jitter or blocking.
    pub(super) fn busy_period(
        &self,
        blocking: u64,
        effort: &mut Effort,
    ) -> Result<Option<u64>, AnalysisError> {
        let delayed = blocking > 0 || self.jitters.iter().any(|jitter| *jitter > 0);
        if self.full && delayed {
            return Ok(None);
        }
        effort.spend(2 * self.len() as u64)?;
        let blocking = u128::from(blocking);
        let demand = |window: u64| blocking + self.released_before(window);
        let start = self.least_busy_period(blocking).max(1);
        match least_fixed_point(clamped(start), TIME_MAX, self.len() as u64 + 1, effort, demand)? {
            FixedPoint::At(window) => Ok(Some(window)),
            FixedPoint::Beyond => Err(AnalysisError::Overflow),
        }
    }

    /// Where a search over deadlines may end: no first miss is at or beyond it.
    ///
    /// That is the busy period if it ends. Otherwise demand and blocking repeat, shifted by the hyperperiod, as soon as
    /// every task has had a deadline.
    pub(super) fn horizon(&self, busy_period: Option<u64>) -> u64 {
        let (_, longest) = self.extreme_deadlines().unwrap_or_default();
        busy_period.unwrap_or_else(|| longest.saturating_add(self.hyperperiod()).min(TIME_MAX))
    }

    /// The least common multiple of the periods, or the largest number where that is larger.
    pub(super) fn hyperperiod(&self) -> u64 {
        let multiple = self.periods.iter().try_fold(1_u128, |multiple, period| {
            let period = u128::from(*period);
            (multiple / multiple.gcd(&period)).checked_mul(period)
        });
        multiple.and_then(|multiple| u64::try_from(multiple).ok()).unwrap_or(u64::MAX)
    }

    /// The sum of ceil((window + J) / T) C; `window` is not zero.
    fn released_before(&self, window: u64) -> u128 {
        let tasks = self.jitters.iter().zip(&self.periods).zip(&self.reciprocals).zip(&self.wcets);
        let mut work = 0_u128;
        for (((jitter, period), reciprocal), wcet) in tasks {
            let jobs = quotient(window - 1 + jitter, *period, *reciprocal) + 1;
            work += u128::from(jobs) * u128::from(*wcet);
        }
        work
    }

    /// A window that no busy period is shorter than.
    ///
    /// In a window w every task releases at least one job and at least w C/T of work. With one job of each task of
    /// period above some bound, and the utilisation of the others, w >= (B + sum of C) / (1 - U); this takes the best
    /// of a few bounds.
    fn least_busy_period(&self, blocking: u128) -> u128 {
        let mut by_period: Vec<usize> = (0..self.len()).collect();
        by_period.sort_unstable_by_key(|task| self.periods[*task]);
        let mut once: u128 = blocking + self.wcets.iter().map(|wcet| u128::from(*wcet)).sum::<u128>();
        let (mut best, mut utilisation) = (once, 0);
        let stride = self.len() / 16 + 1;
        for (position, task) in by_period.into_iter().enumerate() {
            once -= u128::from(self.wcets[task]);
            utilisation += (u128::from(self.wcets[task]) << 64) / u128::from(self.periods[task]);
            if position % stride == stride - 1 && utilisation < ONE && once < ONE {
                best = best.max((once << 64) / (ONE - utilisation));
            }
        }
        best
    }
}
