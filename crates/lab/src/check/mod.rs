//! Will it hold? The analysis of a deployed system, its verdicts and what to change.
//!
//! The bounds come from [`talea_analysis::system`]. Where they do not prove a deadline, a simulation in which every
//! job takes its worst case looks for a miss: a bound proves, a witness refutes, and what is neither
//! stays open. [`sensitivity`] asks how far the system is from the other verdict, [`advice`] how other strategies
//! would serve it. [`hierarchy`] derives what schedulers promise.

pub mod advice;
mod figure;
pub mod hierarchy;
mod names;
mod report;
pub mod sensitivity;
mod why;
mod witness;

pub use report::{CheckReport, LaneCheck, NodeCheck, PartCheck, PartKind, SubtaskCheck, TaskCheck, Verdict};
pub use witness::{Fate, Miss};

use talea_analysis::system::{SystemBounds, analyse};
use talea_analysis::{AnalysisError, Effort};
use talea_model::System;
use talea_policy::strategy::Plan;

/// Steps that the analysis of one system may take: a second or some.
pub const EFFORT: u64 = 200_000_000;

/// Systems of more operations get their verdicts without what each bound is made of, for that grows with the square.
pub const ITEMISED: usize = 1_000;

/// Analyses `system` under `plans`, one per node, and looks for a miss wherever that proves nothing.
///
/// # Errors
/// [`AnalysisError::Overflow`] where the costs of one task already exceed the range of times.
pub fn check(system: &System, plans: &[Plan]) -> Result<CheckReport, AnalysisError> {
    let bounds = analyse(system, plans, &mut Effort::new(EFFORT))?;
    let open: Vec<usize> = (0..system.tasks.len()).filter(|task| !bounds.holds(system, *task)).collect();
    let misses = witness::search(system, plans, &open);
    Ok(report::report(system, plans, &bounds, misses))
}

/// The tasks a verdict about the whole system may be about.
fn tasks_that_hold(system: &System, bounds: &SystemBounds) -> Vec<bool> {
    (0..system.tasks.len()).map(|task| bounds.holds(system, task)).collect()
}
