//! Response bounds for the protocols whose releases depend on them: phase modification and modified phase modification.
//!
//! Who executes such a system needs R of every subtask that has successors. The description may give it (`bound`); otherwise it is
//! what the analysis finds. R lasts from the subtask's release until all successors know of its completion. Under phase
//! modification clocks must be synchronised and first releases periodic: the release of a successor counts from the task's
//! arrival, so that the bound of a first subtask includes the jitter of its release.

use super::{Obstacle, SystemBounds, analyse_on};
use crate::effort::{AnalysisError, Effort};
use talea_guarantee::guarantee::Guarantee;
use talea_model::System;
use talea_policy::strategy::Plan;
use thiserror::Error;

/// Why a system has no response bounds for its protocols.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnplannedRelease {
    /// Releases depend on the response of a subtask that has no bound.
    #[error(
        "task \"{task}\" is released by {sync}, which needs a bound on the response time of \"{operation}\", and there is none: \
         {obstacle}; write bound = \"...\" in the subtask, or choose release-guard, which needs no bounds"
    )]
    NoBound {
        /// The task.
        task: String,
        /// Its protocol.
        sync: talea_model::Synchronisation,
        /// The subtask.
        operation: String,
        /// Why it has none.
        obstacle: Obstacle,
    },
    /// Already the costs of one task exceed the range of times.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
}

/// The same system with a response bound for every subtask that its protocol needs one of: the described ones, and those that the
/// analysis finds for the others. A system whose protocols need none is not analysed.
///
/// # Errors
/// See [`UnplannedRelease`]; the first subtask without a bound.
pub fn with_response_bounds(
    system: &System,
    plans: &[Plan],
    effort: &mut Effort,
) -> Result<System, UnplannedRelease> {
    with_response_bounds_on(system, plans, &[], effort)
}

/// The same where each processor of a node gives no more than this: a whole one where nothing is said of the node.
///
/// # Errors
/// As for [`with_response_bounds`].
pub fn with_response_bounds_on(
    system: &System,
    plans: &[Plan],
    given: &[Guarantee],
    effort: &mut Effort,
) -> Result<System, UnplannedRelease> {
    let needs_one = |operation: &&talea_model::Operation| {
        let task = &system.tasks[operation.task];
        task.sync.needs_bounds()
            && !operation.successors.is_empty()
            && system.subtask(operation.id).bound.is_none()
    };
    let mut unknown = system.operations().iter().filter(needs_one).peekable();
    if unknown.peek().is_none() {
        return Ok(system.clone());
    }
    let bounds = analyse_on(system, plans, given, effort)?;
    for operation in unknown {
        let task = &system.tasks[operation.task];
        if let Err(obstacle) = bounds.until_known(system, operation.id) {
            let (task, sync, operation) = (task.name.clone(), task.sync, operation.name.clone());
            return Err(UnplannedRelease::NoBound { task, sync, operation, obstacle });
        }
    }
    Ok(bounds.filled_into(system))
}

impl SystemBounds {
    /// `system` with the response bounds that its protocols need and its author has not given, as far as they are known.
    fn filled_into(&self, system: &System) -> System {
        system.with_response_bounds(|id| {
            let operation = &system.operations()[id.index()];
            let is_planned =
                system.tasks[operation.task].sync.needs_bounds() && !operation.successors.is_empty();
            match system.subtask(id).bound {
                None if is_planned => self.until_known(system, id).ok(),
                given => given,
            }
        })
    }
}
