//! Quick processor-demand analysis for preemptive EDF (Zhang and Burns 2009), exactly.
//!
//! From the latest deadline before the end of the busy period it goes down: if the demand h(t) is less than t, no
//! deadline between h(t) and t can be missed, so h(t) is next. The number of points depends on the tasks, but is small
//! nearly always; each costs one look at every task, two where h(t) = t.

use super::{Blocking, Table, Verdict};
use crate::effort::{AnalysisError, Effort};
use crate::recurrence::duration;
use crate::task::Task;
use talea_time::Duration;

/// Whether every job meets its deadline; if not, *some* deadline that can be missed, rarely the first.
///
/// Unless the utilisation is close to 1, this starts from a closed bound on missed deadlines instead of the busy
/// period, which takes about as long to find as the rest.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up, [`AnalysisError::Overflow`] where the busy period leaves the
/// range of times.
pub fn test(tasks: &[Task], effort: &mut Effort) -> Result<Verdict, AnalysisError> {
    let Some(table) = Table::new(tasks, effort)? else { return Ok(Verdict::Overloaded) };
    let longest = table.longest_own_blocking();
    let busy_period = || table.busy_period(longest, effort).map(|end| table.horizon(end));
    let horizon = table.descent_from(longest, busy_period)?;
    descend(&table, horizon.checked_sub(1), own_blocking(tasks, &table), effort, |_| {})
}

/// The same verdict from the end of the busy period on. `visited` is told every point at which the demand is evaluated,
/// in its order.
///
/// # Errors
/// As for [`test()`].
pub fn visit(
    tasks: &[Task],
    effort: &mut Effort,
    visited: impl FnMut(Duration),
) -> Result<Verdict, AnalysisError> {
    let Some(table) = Table::new(tasks, effort)? else { return Ok(Verdict::Overloaded) };
    let busy_period = table.busy_period(table.longest_own_blocking(), effort)?;
    let last = table.latest_deadline_before(table.horizon(busy_period));
    descend(&table, last, own_blocking(tasks, &table), effort, visited)
}

/// The own blocking by time, which mostly is none.
fn own_blocking(tasks: &[Task], table: &Table) -> impl Fn(u64) -> u128 {
    let blocking = (table.longest_own_blocking() > 0).then(|| Blocking::of(tasks));
    move |time| blocking.as_ref().map_or(0, |blocking| blocking.own(time).into())
}

/// Goes down from `last`, where there may be a deadline or not. Demand and blocking together do not fall with time.
pub(super) fn descend(
    table: &Table,
    last: Option<u64>,
    blocking: impl Fn(u64) -> u128,
    effort: &mut Effort,
    mut visited: impl FnMut(Duration),
) -> Result<Verdict, AnalysisError> {
    let shortest = table.deadlines().min().unwrap_or(0);
    let mut candidate = last.filter(|last| *last >= shortest);
    while let Some(time) = candidate {
        effort.spend(2 * table.len() as u64)?;
        visited(duration(time)?);
        candidate = match u64::try_from(table.demand(time) + blocking(time)) {
            Ok(needed) if needed <= shortest => None,
            Ok(needed) if needed < time => Some(needed),
            Ok(needed) if needed == time => table.latest_deadline_before(time),
            _ => return missed(table, time),
        };
    }
    Ok(Verdict::Schedulable)
}

/// The miss that too much demand at `time` means: that of the last deadline up to then, since nothing is due after it.
fn missed(table: &Table, time: u64) -> Result<Verdict, AnalysisError> {
    let deadline = table.latest_deadline_before(time + 1).expect("there is no demand without a deadline");
    Ok(Verdict::Miss { deadline: duration(deadline)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edf::demand;
    use talea_time::Work;

    #[test]
    fn the_textbook_example_is_schedulable_in_five_points() {
        // Buttazzo, Hard Real-Time Computing Systems, processor demand criterion.
        let task = |(period, wcet, deadline)| {
            Task::new(Duration::from_nanos(period), Work::from_nanos(wcet))
                .and_then(|task| task.with_deadline(Duration::from_nanos(deadline)))
                .unwrap()
        };
        let tasks = [(6, 2, 4), (8, 2, 5), (9, 3, 7)].map(task);
        let effort = &mut Effort::default();
        assert_eq!(demand::busy_period(&tasks, effort), Ok(Some(Duration::from_nanos(16))));
        let mut visited = Vec::new();
        assert_eq!(visit(&tasks, effort, |time| visited.push(time.as_nanos())), Ok(Verdict::Schedulable));
        assert_eq!(visited, [13, 11, 9, 7, 5]);
        assert_eq!(test(&tasks, effort), Ok(Verdict::Schedulable));
    }
}
