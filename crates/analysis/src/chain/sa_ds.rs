//! SA/DS (Sun and Liu 1996): bounds for greedy releases, where a completion releases the successors.
//!
//! A subtask's jitter is everything that its predecessors may take, from nothing to their bound.

use super::jitter::{self, Spread};
use super::{Bounds, Chains};
use crate::effort::{AnalysisError, Effort};

/// For each subtask, a bound from the arrival of the chain's instance to the subtask's completion (the intermediate
/// end-to-end response time).
///
/// The bounds can grow without end although no processor is overloaded. One that exceeds `periods` periods of its
/// chain is given up: `None`, as are all bounds that depend on it.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up, [`AnalysisError::Overflow`] where a bound leaves the range
/// of times.
pub fn bounds(chains: &Chains, periods: u32, effort: &mut Effort) -> Result<Bounds, AnalysisError> {
    jitter::bounds(chains, Spread::Everything, periods, effort)
}
