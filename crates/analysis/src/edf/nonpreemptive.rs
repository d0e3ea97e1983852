//! Processor demand under non-preemptive EDF, exactly (George, Rivierre and Spuri 1996; Jeffay, Stanat and Martel
//! 1991 for deadlines equal to periods).
//!
//! A job of later deadline may have started just before the busy period. Time is integer, so it blocks for C - 1, and
//! h(t) + max over D_j > t of (C_j - 1) must not exceed t. A task's own blocking is added to that.

use super::demand::first_miss;
use super::{Table, Verdict};
use crate::effort::{AnalysisError, Effort};
use crate::recurrence::duration;
use crate::task::Task;

/// Whether every job meets its deadline; if not, *some* deadline that can be missed.
///
/// Between two relative deadlines the blocking is constant, so the descent of Zhang and Burns 2009 applies there; below
/// a relative deadline it begins anew.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up, [`AnalysisError::Overflow`] where the busy period leaves the
/// range of times.
pub fn test(tasks: &[Task], effort: &mut Effort) -> Result<Verdict, AnalysisError> {
    let Some(table) = Table::new(tasks, effort)? else { return Ok(Verdict::Overloaded) };
    let mut candidate = table.latest_deadline_before(horizon(&table, effort)?);
    while let Some(time) = candidate {
        effort.spend(2 * table.len() as u64)?;
        let due = table.due(time);
        let longest_due = table.deadline(due - 1);
        let needed = table.demand(due, time) + blocking(&table, due);
        candidate = match u64::try_from(needed) {
            Ok(needed) if needed < longest_due => table.latest_deadline_before(longest_due),
            Ok(needed) if needed < time => Some(needed),
            Ok(needed) if needed == time => table.latest_deadline_before(time),
            _ => return Ok(Verdict::Miss { deadline: duration(time)? }),
        };
    }
    Ok(Verdict::Schedulable)
}

/// The *first* deadline that can be missed, if any, at the cost of every deadline before it.
///
/// # Errors
/// As for [`test`].
pub fn first_failure(tasks: &[Task], effort: &mut Effort) -> Result<Verdict, AnalysisError> {
    let Some(table) = Table::new(tasks, effort)? else { return Ok(Verdict::Overloaded) };
    let horizon = horizon(&table, effort)?;
    first_miss(&table, horizon, effort, |due| blocking(&table, due))
}

/// The blocking of deadlines at which `due` tasks can be due.
fn blocking(table: &Table, due: usize) -> u128 {
    u128::from(table.later_blocking(due)) + u128::from(table.own_blocking(due))
}

/// Where a search over deadlines may end.
///
/// That is the busy period behind the longest blocking. If it never ends, the one without blocking by later deadlines
/// does for deadlines beyond the longest relative one, where no such blocking is left.
fn horizon(table: &Table, effort: &mut Effort) -> Result<u64, AnalysisError> {
    let own = table.own_blocking(table.len());
    let Some(longest_blocking) = table.later_blocking(0).checked_add(own) else {
        return Err(AnalysisError::Overflow);
    };
    if let Some(busy_period) = table.busy_period(longest_blocking, effort)? {
        return Ok(busy_period);
    }
    let (_, longest_deadline) = table.extreme_deadlines().unwrap_or_default();
    let unblocked = table.horizon(table.busy_period(own, effort)?);
    Ok(unblocked.max(longest_deadline.saturating_add(1)))
}
