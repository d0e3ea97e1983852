//! Holistic analysis (Tindell and Clark 1994): greedy releases with message delays, release jitter and blocking.
//!
//! A subtask's jitter is its predecessors' worst response and the message's delay, less the best case: the sum of
//! shortest execution times before it.

use super::jitter::{self, Spread};
use super::{Bounds, Chains};
use crate::effort::{AnalysisError, Effort};

/// For each subtask, a bound from the arrival of the chain's instance to the subtask's completion.
///
/// With shortest execution times of zero these are the bounds of [`sa_ds`](super::sa_ds). The bounds can grow without
/// end although no processor is overloaded. One that exceeds `periods` periods of its chain is given up: `None`, as
/// are all bounds that depend on it.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up, [`AnalysisError::Overflow`] where a bound leaves the range
/// of times.
pub fn bounds(chains: &Chains, periods: u32, effort: &mut Effort) -> Result<Bounds, AnalysisError> {
    jitter::bounds(chains, Spread::BeyondBestCase, periods, effort)
}
