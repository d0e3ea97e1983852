//! Tasks as rows of what the searches read, and the sums and horizons that they share.

use crate::division::{quotient, reciprocal, work_of_jobs};
use crate::effort::{AnalysisError, Effort};
use crate::recurrence::{FixedPoint, TIME_MAX, least_fixed_point};
use crate::task::{Numbers, Task};
use crate::utilisation::{ONE, compare_with_one};
use num_integer::Integer;
use std::cmp::Ordering;

/// With so much of the processor idle, the busy period takes longer to find than a descent from the linear bound.
const ENOUGH_IDLE: u128 = ONE / 256;

/// Sporadic tasks whose utilisation is at most 1.
///
/// The work of all tasks in a window x is at most the sum of ((x + J) / T + 1) C, that is x, the longest jitter and one
/// job of each. The last two together are a time, so that the sum fits in a word.
pub(super) struct Table {
    rows: Vec<Row>,
    /// The sum of C.
    once: u128,
    /// The sum of D C/T, rounded down.
    shares_of_deadlines: u128,
    /// The longest D - T.
    longest_beyond_period: u64,
    longest_jitter: u64,
    longest_own_blocking: u64,
    /// Whether the utilisation is exactly 1.
    full: bool,
    /// What the utilisation leaves of 1 in units of 2^-64, rounded down; zero where that is not known to be more.
    idle: u128,
}

/// One task.
#[derive(Clone, Copy)]
struct Row {
    /// D - J.
    deadline: u64,
    period: u64,
    reciprocal: u64,
    wcet: u64,
    jitter: u64,
}

/// D - J: from a release after the whole jitter to the deadline. Where that is negative the job is late before it is
/// released, and 0 fails as surely.
pub(super) fn effective_deadline(task: &Numbers) -> u64 {
    task.deadline.saturating_sub(task.jitter)
}

impl Table {
    /// The table, unless the utilisation exceeds 1.
    ///
    /// # Errors
    /// [`AnalysisError::Overflow`] where the longest jitter and one job of each task are together no time, besides
    /// those of the comparison.
    pub(super) fn new(tasks: &[Task], effort: &mut Effort) -> Result<Option<Self>, AnalysisError> {
        effort.spend(tasks.len() as u64)?;
        let mut table = Table::empty(tasks.len());
        let mut load = 0_u128;
        for task in tasks {
            load = load.saturating_add(table.push(&task.numbers()));
        }
        table.idle = ONE.saturating_sub(load);
        if table.idle == 0 {
            match compare_with_one(tasks, effort)? {
                Ordering::Greater => return Ok(None),
                ordering => table.full = ordering == Ordering::Equal,
            }
        }
        let fits = table.once + u128::from(table.longest_jitter) <= u128::from(TIME_MAX);
        if fits { Ok(Some(table)) } else { Err(AnalysisError::Overflow) }
    }

    fn empty(capacity: usize) -> Self {
        Table {
            rows: Vec::with_capacity(capacity),
            once: 0,
            shares_of_deadlines: 0,
            longest_beyond_period: 0,
            longest_jitter: 0,
            longest_own_blocking: 0,
            full: false,
            idle: 0,
        }
    }

    /// Adds a task; its utilisation in units of 2^-64, rounded up.
    fn push(&mut self, task: &Numbers) -> u128 {
        let deadline = effective_deadline(task);
        let reciprocal = reciprocal(task.period);
        self.rows.push(Row {
            deadline,
            period: task.period,
            reciprocal,
            wcet: task.wcet,
            jitter: task.jitter,
        });
        // The reciprocal falls short of 1/T by at most a unit. Rounded down, C/T is a word, except where C > T and the
        // table is not used.
        let utilisation = task.wcet.wrapping_mul(reciprocal);
        self.once += u128::from(task.wcet);
        self.shares_of_deadlines += (u128::from(deadline) * u128::from(utilisation)) >> 64;
        self.longest_beyond_period = self.longest_beyond_period.max(deadline.saturating_sub(task.period));
        self.longest_jitter = self.longest_jitter.max(task.jitter);
        self.longest_own_blocking = self.longest_own_blocking.max(task.blocking);
        u128::from(task.wcet) * (u128::from(reciprocal) + 1)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// D - J of every task.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = u64> {
        self.rows.iter().map(|row| row.deadline)
    }

    /// The longest D - J, or 0 without tasks.
    pub(super) fn longest_deadline(&self) -> u64 {
        self.deadlines().max().unwrap_or(0)
    }

    pub(super) fn period(&self, task: usize) -> u64 {
        self.rows[task].period
    }

    pub(super) fn wcet(&self, task: usize) -> u64 {
        self.rows[task].wcet
    }

    pub(super) fn longest_own_blocking(&self) -> u64 {
        self.longest_own_blocking
    }

    /// The work with deadlines up to `time`: the sum of (floor((time - D) / T) + 1) C over tasks with D up to `time`.
    pub(super) fn demand(&self, time: u64) -> u128 {
        let work = self.rows.iter().fold(0_u64, |work, row| {
            // Deadlines come in no order, so a branch on them would be mispredicted: the sign of the difference, as a
            // mask, takes out what is not due.
            let since = time.wrapping_sub(row.deadline);
            let not_due = (since.cast_signed() >> 63).cast_unsigned();
            work.wrapping_add(work_of_jobs(since, row.period, row.reciprocal, row.wcet) & !not_due)
        });
        work.into()
    }

    /// The latest deadline of any job before `time`.
    pub(super) fn latest_deadline_before(&self, time: u64) -> Option<u64> {
        let last = time.checked_sub(1)?;
        let due = self.rows.iter().filter(|row| row.deadline <= last);
        due.map(|row| {
            let jobs = quotient(last.wrapping_sub(row.deadline), row.period, row.reciprocal);
            row.deadline.wrapping_add(jobs.wrapping_mul(row.period))
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
        if self.full && (blocking > 0 || self.longest_jitter > 0) {
            return Ok(None);
        }
        let demand = |window| u128::from(blocking) + self.released_before(window);
        match least_fixed_point(1, TIME_MAX, self.len() as u64 + 1, effort, demand)? {
            FixedPoint::At(window) => Ok(Some(window)),
            FixedPoint::Beyond => Err(AnalysisError::Overflow),
        }
    }

    /// Where an ascending search over deadlines may end: no *first* miss is at or beyond it.
    ///
    /// That is the busy period if it ends. Otherwise demand and blocking repeat, shifted by the hyperperiod, as soon as
    /// every task has had a deadline.
    pub(super) fn horizon(&self, busy_period: Option<u64>) -> u64 {
        let repeating = || self.longest_deadline().saturating_add(self.hyperperiod()).min(TIME_MAX);
        busy_period.unwrap_or_else(repeating)
    }

    /// Where a descending search over deadlines may begin: the linear bound, or what `exact` finds where that is worth
    /// its cost. No miss at all is at or beyond it, if `exact` says so.
    pub(super) fn descent_from(
        &self,
        blocking: u64,
        exact: impl FnOnce() -> Result<u64, AnalysisError>,
    ) -> Result<u64, AnalysisError> {
        match self.linear_horizon(blocking) {
            Some(linear) if self.idle >= ENOUGH_IDLE => Ok(linear),
            Some(linear) => Ok(linear.min(exact()?)),
            None => exact(),
        }
    }

    /// From the longest D - T on, (t - D) / T + 1 jobs are not fewer than none. So demand and blocking are then at most
    /// t U + B + sum of (C - D C / T), and at a miss t is less than B and that sum over 1 - U (George, Rivierre and Spuri
    /// 1996). `None` where the utilisation is too close to 1 for that.
    fn linear_horizon(&self, blocking: u64) -> Option<u64> {
        let offset = (u128::from(blocking) + self.once).saturating_sub(self.shares_of_deadlines);
        let offset = u64::try_from(offset).ok()?;
        let last = u64::try_from((u128::from(offset) << 64).checked_div(self.idle)?).ok()?;
        let horizon = last.max(self.longest_beyond_period).checked_add(1)?;
        Some(horizon).filter(|horizon| *horizon <= TIME_MAX)
    }

    /// The least common multiple of the periods, or the largest number where that is larger.
    pub(super) fn hyperperiod(&self) -> u64 {
        let multiple = self.rows.iter().try_fold(1_u128, |multiple, row| {
            let period = u128::from(row.period);
            (multiple / multiple.gcd(&period)).checked_mul(period)
        });
        multiple.and_then(|multiple| u64::try_from(multiple).ok()).unwrap_or(u64::MAX)
    }

    /// The sum of ceil((window + J) / T) C; `window` is not zero.
    fn released_before(&self, window: u64) -> u128 {
        let last = window - 1;
        let work = self.rows.iter().fold(0_u64, |work, row| {
            let dividend = last.wrapping_add(row.jitter);
            work.wrapping_add(work_of_jobs(dividend, row.period, row.reciprocal, row.wcet))
        });
        work.into()
    }
}
