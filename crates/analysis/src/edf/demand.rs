//! The processor demand criterion for preemptive EDF (Baruah, Rosier and Howell 1990), exactly.
//!
//! h(t), the work of all jobs with arrival and deadline in a window of length t, must not exceed t. The first t at which
//! it does lies in the synchronous busy period. With jitter a job's deadline is D - J from its release.
//!
//! The cost is that of every deadline in the busy period: use [`qpa`](super::qpa) where the verdict is enough.

use super::{Blocking, Table, Verdict};
use crate::effort::{AnalysisError, Effort};
use crate::recurrence::duration;
use crate::task::Task;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use talea_time::{Duration, Work};

/// The processor demand h(t) of a window of length `window`: the work that arrives in it and has its deadline in it.
///
/// # Errors
/// [`AnalysisError::Overflow`] where it is no time.
pub fn demand(tasks: &[Task], window: Duration) -> Result<Work, AnalysisError> {
    let window = i128::from(window.as_nanos());
    let mut demand = 0_i128;
    for task in tasks {
        let numbers = task.numbers();
        let after = window + i128::from(numbers.jitter) - i128::from(numbers.deadline);
        if after >= 0 {
            let jobs = after / i128::from(numbers.period) + 1;
            demand = demand.saturating_add(jobs.saturating_mul(numbers.wcet.into()));
        }
    }
    duration(demand).map(Duration::as_work)
}

/// The synchronous busy period: from a simultaneous release of all tasks until nothing is left.
///
/// It begins with the longest blocking. `None` where it never ends: the utilisation exceeds 1, or is 1 and there is
/// some jitter or blocking.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up, [`AnalysisError::Overflow`] where the busy period leaves the
/// range of times.
pub fn busy_period(tasks: &[Task], effort: &mut Effort) -> Result<Option<Duration>, AnalysisError> {
    let Some(table) = Table::new(tasks, effort)? else { return Ok(None) };
    table.busy_period(table.longest_own_blocking(), effort)?.map(duration).transpose()
}

/// The *first* deadline that can be missed, if any.
///
/// # Errors
/// As for [`busy_period`].
pub fn test(tasks: &[Task], effort: &mut Effort) -> Result<Verdict, AnalysisError> {
    let Some(table) = Table::new(tasks, effort)? else { return Ok(Verdict::Overloaded) };
    let busy_period = table.busy_period(table.longest_own_blocking(), effort)?;
    let blocking = Blocking::of(tasks);
    first_miss(&table, table.horizon(busy_period), effort, |time| blocking.own(time).into())
}

/// The first deadline before `horizon` at which demand and blocking exceed the time.
pub(super) fn first_miss(
    table: &Table,
    horizon: u64,
    effort: &mut Effort,
    blocking: impl Fn(u64) -> u128,
) -> Result<Verdict, AnalysisError> {
    let step = u64::from(table.len().max(1).ilog2()) + 1;
    let deadlines = table.deadlines().enumerate();
    let mut next: BinaryHeap<Reverse<(u64, usize)>> =
        deadlines.map(|(task, deadline)| Reverse((deadline, task))).collect();
    let mut demand = 0_u128;
    while let Some(Reverse((deadline, task))) = next.pop() {
        if deadline >= horizon {
            break;
        }
        effort.spend(step)?;
        demand += u128::from(table.wcet(task));
        if let Some(following) = deadline.checked_add(table.period(task)) {
            next.push(Reverse((following, task)));
        }
        let last_of_its_time = next.peek().is_none_or(|Reverse((following, _))| *following > deadline);
        if last_of_its_time && demand + blocking(deadline) > u128::from(deadline) {
            return Ok(Verdict::Miss { deadline: duration(deadline)? });
        }
    }
    Ok(Verdict::Schedulable)
}
