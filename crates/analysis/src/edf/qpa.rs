//! Quick processor-demand analysis for preemptive EDF (Zhang and Burns 2009), exactly.
//!
//! From the latest deadline before the end of the busy period it goes down: if the demand h(t) is less than t, no
//! deadline between h(t) and t can be missed, so h(t) is next. The number of points depends on the tasks, but is small
//! nearly always; each costs two looks at every task.

use super::{Table, Verdict};
use crate::effort::{AnalysisError, Effort};
use crate::recurrence::duration;
use crate::task::Task;
use talea_time::Duration;

/// Whether every job meets its deadline; if not, *some* deadline that can be missed, rarely the first.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up, [`AnalysisError::Overflow`] where the busy period leaves the
/// range of times.
pub fn test(tasks: &[Task], effort: &mut Effort) -> Result<Verdict, AnalysisError> {
    visit(tasks, effort, |_| {})
}

/// [`test`], which tells `visited` every point at which it evaluates the demand, in its order.
///
/// # Errors
/// As for [`test`].
pub fn visit(
    tasks: &[Task],
    effort: &mut Effort,
    mut visited: impl FnMut(Duration),
) -> Result<Verdict, AnalysisError> {
    let Some(table) = Table::new(tasks, effort)? else { return Ok(Verdict::Overloaded) };
    let Some((shortest, _)) = table.extreme_deadlines() else { return Ok(Verdict::Schedulable) };
    let busy_period = table.busy_period(table.own_blocking(table.len()), effort)?;
    let mut candidate = table.latest_deadline_before(table.horizon(busy_period));
    while let Some(time) = candidate {
        effort.spend(2 * table.len() as u64)?;
        visited(duration(time)?);
        let due = table.due(time);
        let needed = table.demand(due, time) + u128::from(table.own_blocking(due));
        candidate = match u64::try_from(needed) {
            Ok(needed) if needed <= shortest => None,
            Ok(needed) if needed < time => Some(needed),
            Ok(needed) if needed == time => table.latest_deadline_before(time),
            _ => return Ok(Verdict::Miss { deadline: duration(time)? }),
        };
    }
    Ok(Verdict::Schedulable)
}
