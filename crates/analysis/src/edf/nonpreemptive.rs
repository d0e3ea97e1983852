//! Processor demand under non-preemptive EDF, exactly (George, Rivierre and Spuri 1996; Jeffay, Stanat and Martel
//! 1991 for deadlines equal to periods).
//!
//! A job of later deadline may have started just before the busy period. Time is integer, so it blocks for C - 1, and
//! h(t) + max over D_j > t of (C_j - 1) must not exceed t. A task's own blocking is added to that.

use super::demand::first_miss;
use super::{Blocking, Table, Verdict};
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
    let blocking = Blocking::of(tasks);
    let longest = longest(&blocking)?;
    let horizon = table.descent_from(longest, || horizon(&table, longest, effort))?;
    let mut candidate = table.latest_deadline_before(horizon);
    while let Some(time) = candidate {
        effort.spend(2 * table.len() as u64)?;
        let step = blocking.latest_step(time).unwrap_or(0);
        candidate = match u64::try_from(table.demand(time) + blocking.nonpreemptive(time)) {
            Ok(needed) if needed < step => table.latest_deadline_before(step),
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
    let blocking = Blocking::of(tasks);
    let horizon = horizon(&table, longest(&blocking)?, effort)?;
    first_miss(&table, horizon, effort, |time| blocking.nonpreemptive(time))
}

/// The longest blocking that any deadline can have.
pub(super) fn longest(blocking: &Blocking) -> Result<u64, AnalysisError> {
    u64::try_from(blocking.longest_nonpreemptive()).map_err(|_| AnalysisError::Overflow)
}

/// Where an ascending search over deadlines may end.
///
/// That is the busy period behind the `longest` blocking. If it never ends, the one without blocking by later deadlines
/// does for deadlines beyond the longest relative one, where no such blocking is left.
fn horizon(table: &Table, longest: u64, effort: &mut Effort) -> Result<u64, AnalysisError> {
    if let Some(busy_period) = table.busy_period(longest, effort)? {
        return Ok(busy_period);
    }
    let unblocked = table.horizon(table.busy_period(table.longest_own_blocking(), effort)?);
    Ok(unblocked.max(table.longest_deadline().saturating_add(1)))
}
