//! Utilisation, exactly, and the bounds that decide by it alone.
//!
//! Whether a sum of C/T is at most 1 decides whether busy periods end, so it must not be rounded. A bracket of
//! 64 binary places decides nearly always, in one division a task; only a sum within n units of 2^-64 of 1 is computed
//! as a rational. Then the cost grows with the square of the length of the common denominator, which the
//! [`Effort`] bounds.

mod bracket;
mod exact;
pub mod hyperbolic;
pub mod liu_layland;

pub(crate) use bracket::{Bracket, ONE};

use crate::effort::{AnalysisError, Effort};
use crate::task::Task;
use num_rational::BigRational;
use std::cmp::Ordering;

/// The utilisation, the sum of C/T, in lowest terms.
///
/// # Errors
/// [`AnalysisError::TooCostly`]: a thousand tasks of unrelated nanosecond periods are affordable, a million are not.
pub fn total(tasks: &[Task], effort: &mut Effort) -> Result<BigRational, AnalysisError> {
    exact::sum(tasks, effort)?.reduced(effort)
}

/// How the utilisation compares with 1, exactly.
///
/// # Errors
/// [`AnalysisError::TooCostly`] where it is too close to 1 to be decided within the budget.
pub fn compare_with_one(tasks: &[Task], effort: &mut Effort) -> Result<Ordering, AnalysisError> {
    let mut bracket = Bracket::default();
    effort.spend(tasks.len() as u64)?;
    for task in tasks {
        bracket.add(task);
    }
    compare_bracketed(&bracket, tasks, effort)
}

/// [`compare_with_one`] for `tasks` that have been added to `bracket`.
pub(crate) fn compare_bracketed(
    bracket: &Bracket,
    tasks: &[Task],
    effort: &mut Effort,
) -> Result<Ordering, AnalysisError> {
    match bracket.compare_with_one() {
        Some(ordering) => Ok(ordering),
        None => Ok(exact::sum(tasks, effort)?.compare_with(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use talea_time::{Duration, Work};

    fn task(period: i64, wcet: i64) -> Task {
        Task::new(Duration::from_nanos(period), Work::from_nanos(wcet)).unwrap()
    }

    #[test]
    fn sums_are_exact() {
        let thirds = [task(3, 1), task(3, 1), task(3, 1)];
        assert_eq!(compare_with_one(&thirds, &mut Effort::default()), Ok(Ordering::Equal));
        assert_eq!(total(&thirds[..2], &mut Effort::default()), Ok(BigRational::new(2.into(), 3.into())));
    }

    #[test]
    fn one_part_in_ten_to_the_eighteen_is_seen() {
        let large = 1_000_000_000_000_000_003;
        let below = [task(2, 1), task(large, large / 2)];
        let above = [task(2, 1), task(large, large / 2 + 1)];
        assert_eq!(compare_with_one(&below, &mut Effort::default()), Ok(Ordering::Less));
        assert_eq!(compare_with_one(&above, &mut Effort::default()), Ok(Ordering::Greater));
    }

    #[test]
    fn overloads_beyond_any_number_are_just_above_one() {
        let tasks = vec![task(1, i64::MAX); 1000];
        assert_eq!(compare_with_one(&tasks, &mut Effort::default()), Ok(Ordering::Greater));
    }

    #[test]
    fn a_million_unrelated_periods_around_one_are_too_costly() {
        let tasks: Vec<Task> = (0..1_000_000).map(|index| task(1_000_000 + 2 * index, 1)).collect();
        let mut effort = Effort::new(10_000_000);
        assert!(matches!(total(&tasks, &mut effort), Err(AnalysisError::TooCostly { .. })));
    }

    proptest! {
        /// Adding what is missing to 1 as one more task makes it exactly 1; a nanosecond less or more does not.
        #[test]
        fn the_missing_part_fills_up_to_one(parts in prop::collection::vec((1i64..40, 1i64..4), 1..8)) {
            let mut effort = Effort::default();
            let tasks: Vec<Task> = parts.iter().map(|(period, wcet)| task(period * 16, *wcet)).collect();
            let missing = BigRational::from_integer(1.into()) - total(&tasks, &mut effort).unwrap();
            prop_assume!(missing > BigRational::from_integer(0.into()));
            let period: i64 = missing.denom().try_into().unwrap();
            let wcet: i64 = missing.numer().try_into().unwrap();
            let with = |factor: i64, extra: i64| {
                let last = task(period * factor, wcet * factor + extra);
                let all: Vec<Task> = tasks.iter().copied().chain([last]).collect();
                compare_with_one(&all, &mut Effort::default()).unwrap()
            };
            prop_assert_eq!(with(1, 0), Ordering::Equal);
            prop_assert_eq!(with(2, 1), Ordering::Greater);
            prop_assert_eq!(with(2, -1), Ordering::Less);
        }
    }
}
