//! Processor demand under non-preemptive EDF, exactly (George, Rivierre and Spuri 1996; Jeffay, Stanat and Martel
//! 1991 for deadlines equal to periods).
//!
//! A job of later deadline may have started just before the busy period. Time is integer, so it blocks for C - 1, and
//! h(t) + max over D_j > t of (C_j - 1) must not exceed t. A task's own blocking is added to that.
//!
//! The left side does not fall with t: where a blocker drops out it is due itself, for C instead of C - 1. So the descent
//! of [`qpa`](super::qpa) applies. For the same reason the first miss lies in the synchronous busy period without the
//! blocker: at its end all work released in it, the blocker's own included, is done.

use super::demand::first_miss;
use super::qpa::descend;
use super::{Blocking, Table, Verdict};
use crate::effort::{AnalysisError, Effort};
use crate::task::Task;

/// Whether every job meets its deadline; if not, *some* deadline that can be missed.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up, [`AnalysisError::Overflow`] where the busy period leaves the
/// range of times.
pub fn test(tasks: &[Task], effort: &mut Effort) -> Result<Verdict, AnalysisError> {
    let Some(table) = Table::new(tasks, effort)? else { return Ok(Verdict::Overloaded) };
    let blocking = Blocking::of(tasks);
    let busy_period =
        || table.busy_period(table.longest_own_blocking(), effort).map(|end| table.horizon(end));
    let horizon = table.descent_from(longest(&blocking)?, busy_period)?;
    descend(&table, horizon.checked_sub(1), |time| blocking.nonpreemptive(time), effort, |_| {})
}

/// The *first* deadline that can be missed, if any, at the cost of every deadline before it.
///
/// # Errors
/// As for [`test()`].
pub fn first_failure(tasks: &[Task], effort: &mut Effort) -> Result<Verdict, AnalysisError> {
    let Some(table) = Table::new(tasks, effort)? else { return Ok(Verdict::Overloaded) };
    let blocking = Blocking::of(tasks);
    let busy_period = table.busy_period(table.longest_own_blocking(), effort)?;
    first_miss(&table, table.horizon(busy_period), effort, |time| blocking.nonpreemptive(time))
}

/// The longest blocking that any deadline can have.
pub(super) fn longest(blocking: &Blocking) -> Result<u64, AnalysisError> {
    u64::try_from(blocking.longest_nonpreemptive()).map_err(|_| AnalysisError::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edf::demand;
    use talea_time::{Duration, Work};

    #[test]
    fn a_long_job_blocks_for_its_length_less_a_nanosecond() {
        // Jeffay, Stanat and Martel 1991, deadlines equal to periods.
        let task = |period, wcet| Task::new(Duration::from_nanos(period), Work::from_nanos(wcet)).unwrap();
        let effort = &mut Effort::default();
        assert_eq!(first_failure(&[task(4, 2), task(10, 3)], effort), Ok(Verdict::Schedulable));
        let blocked = [task(4, 2), task(10, 4)];
        let miss = Verdict::Miss { deadline: Duration::from_nanos(4) };
        assert_eq!(first_failure(&blocked, effort), Ok(miss));
        assert_eq!(demand::test(&blocked, effort), Ok(Verdict::Schedulable));
    }
}
