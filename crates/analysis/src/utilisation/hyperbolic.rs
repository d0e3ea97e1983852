//! The hyperbolic bound for rate-monotonic priorities (Bini, Buttazzo and Buttazzo 2003).

use super::exact::product_of_successors;
use crate::effort::{AnalysisError, Effort};
use crate::task::Task;
use num_rational::BigRational;
use std::cmp::Ordering;

/// The product of U_i + 1 over all tasks, in lowest terms.
///
/// # Errors
/// [`AnalysisError::TooCostly`], as for [`total`](super::total).
pub fn product(tasks: &[Task], effort: &mut Effort) -> Result<BigRational, AnalysisError> {
    product_of_successors(tasks, effort)?.reduced(effort)
}

/// Whether the product of U_i + 1 is at most 2.
///
/// If so, the tasks meet their deadlines under preemptive rate-monotonic priorities, provided that deadlines are not
/// shorter than periods and there is no jitter or blocking. If not, nothing is known: the bound is only sufficient.
///
/// # Errors
/// [`AnalysisError::TooCostly`], as for [`total`](super::total).
pub fn holds(tasks: &[Task], effort: &mut Effort) -> Result<bool, AnalysisError> {
    Ok(product_of_successors(tasks, effort)?.compare_with(2) != Ordering::Greater)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::utilisation::liu_layland;
    use talea_time::{Duration, Work};

    #[test]
    fn it_admits_more_than_the_bound_of_liu_and_layland() {
        let task = |period, wcet| Task::new(Duration::from_nanos(period), Work::from_nanos(wcet)).unwrap();
        let effort = &mut Effort::default();
        // (3/5 + 1) (1/4 + 1) = 2 exactly, with a utilisation of 0.85 above 0.828.
        let tasks = [task(4, 1), task(5, 3)];
        assert_eq!(holds(&tasks, effort), Ok(true));
        assert_eq!(product(&tasks, effort), Ok(BigRational::from_integer(2.into())));
        assert_eq!(liu_layland::holds(&tasks, effort), Ok(false));
        let more = [task(4_000_000, 1_000_001), task(5, 3)];
        assert_eq!(holds(&more, effort), Ok(false));
        assert_eq!(holds(&[], effort), Ok(true));
    }
}
