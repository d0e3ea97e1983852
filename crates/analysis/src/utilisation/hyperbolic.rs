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
