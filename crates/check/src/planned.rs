//! A system as it is simulated and run: with the response bounds that its protocols release by.

use super::{Check, EFFORT};
use talea_analysis::system::{UnplannedRelease, with_response_bounds};
use talea_analysis::{AnalysisError, Effort};
use talea_model::System;
use talea_policy::strategy::Plan;
use thiserror::Error;

/// Why planned releases have no bounds to go by.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlannedError {
    /// The analysis finds none.
    #[error(transparent)]
    NoBound(#[from] UnplannedRelease),
    /// The lanes of a task below a hierarchy do not have a whole processor, which the analysis counts on.
    #[error(
        "task \"{task}\" is released by response bounds, and there are none: {reason}; write bound = \"...\" in its subtasks"
    )]
    NoProcessor {
        /// The task.
        task: String,
        /// Why.
        reason: String,
    },
    /// Already the costs of one task exceed the range of times.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
}

/// `system`, whose nodes have the lanes of `plans`, with a response bound for every subtask whose successors are released by one:
/// those of the description, and for the others what the analysis finds. A system without such protocols is not analysed.
///
/// # Errors
/// See [`PlannedError`].
pub fn planned(system: &System, plans: &[Plan]) -> Result<System, PlannedError> {
    let planned = with_response_bounds(system, plans, &mut Effort::new(EFFORT))?;
    if system.schedulers.is_empty() || planned == *system {
        return Ok(planned);
    }
    let check = Check::new(system, plans, &mut |_, _| ())?;
    for (task, checked) in system.tasks.iter().zip(&check.report.tasks) {
        let mut steps = task.subtasks.iter().zip(&checked.subtasks);
        if task.sync.needs_bounds()
            && steps.any(|(given, found)| given.bound.is_none() && found.bound_ns.is_none())
        {
            let reason = checked.why.clone().unwrap_or_default();
            return Err(PlannedError::NoProcessor { task: task.name.clone(), reason });
        }
    }
    Ok(planned)
}
