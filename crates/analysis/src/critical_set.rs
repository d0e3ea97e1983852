//! The critical set of maximum-urgency-first scheduling (Stewart and Khosla 1991).

use crate::effort::{AnalysisError, Effort};
use crate::task::Task;
use crate::utilisation::{Bracket, compare_bracketed, total};
use num_rational::BigRational;
use std::cmp::Ordering;

/// The longest prefix of the tasks in order of period whose utilisation is at most 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalSet {
    /// All tasks, as indices, by ascending period; equal periods in the order they were given.
    pub by_period: Vec<usize>,
    /// How many of these are critical.
    pub size: usize,
    /// The utilisation of the critical ones.
    pub utilisation: BigRational,
}

impl CriticalSet {
    /// The critical tasks, as indices, by ascending period.
    pub fn members(&self) -> &[usize] {
        &self.by_period[..self.size]
    }
}

/// The critical set of `tasks`.
///
/// Its members meet their deadlines under maximum urgency first, even in an overload by the others, provided that
/// deadlines are periods, that laxity is re-evaluated continuously, and that the processor is always preemptible.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up.
pub fn critical_set(tasks: &[Task], effort: &mut Effort) -> Result<CriticalSet, AnalysisError> {
    let mut by_period: Vec<usize> = (0..tasks.len()).collect();
    by_period.sort_by_key(|task| tasks[*task].period());
    let sorted: Vec<Task> = by_period.iter().map(|task| tasks[*task]).collect();
    let mut bracket = Bracket::default();
    let mut size = 0;
    for task in &sorted {
        effort.spend(1)?;
        bracket.add(task);
        if compare_bracketed(&bracket, &sorted[..=size], effort)? == Ordering::Greater {
            break;
        }
        size += 1;
    }
    let utilisation = total(&sorted[..size], effort)?;
    Ok(CriticalSet { by_period, size, utilisation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_time::{Duration, Work};

    #[test]
    fn the_longest_prefix_that_fits_is_critical() {
        let task = |period, wcet| Task::new(Duration::from_nanos(period), Work::from_nanos(wcet)).unwrap();
        // The third would exceed 1 by 2^-40; the fourth would fit again, but no gap is allowed.
        let long = 1 << 40;
        let tasks = [task(long, 1), task(3, 1), task(3, 2), task(2 * long, 1)];
        let set = critical_set(&tasks, &mut Effort::default()).unwrap();
        assert_eq!(set.by_period, [1, 2, 0, 3]);
        assert_eq!(set.members(), [1, 2]);
        assert_eq!(set.utilisation, BigRational::from_integer(1.into()));
    }
}
