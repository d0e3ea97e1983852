//! What neither the simulator nor the runtime releases yet.

use talea_model::{Synchronisation, System};
use thiserror::Error;

/// A system asks for releases of subtasks that nothing executes yet.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnsupportedRelease {
    /// A task has another protocol than the greedy one.
    #[error(
        "task \"{task}\": sync = \"{sync}\" can be checked but not executed by this version; only \"greedy\" can"
    )]
    Protocol {
        /// The task.
        task: String,
        /// Its protocol.
        sync: Synchronisation,
    },
    /// A subtask does not wait for all its predecessors.
    #[error(
        "operation \"{operation}\": join can be checked but not executed by this version; only \"all\" can"
    )]
    Join {
        /// The operation.
        operation: String,
    },
}

impl UnsupportedRelease {
    /// The first of a system, if there is one.
    pub fn find(system: &System) -> Option<Self> {
        system.operations().iter().find_map(|operation| {
            let predecessors = operation.predecessors.len();
            let task = &system.tasks[operation.task];
            if predecessors == 0 {
                None
            } else if task.sync != Synchronisation::Greedy {
                Some(UnsupportedRelease::Protocol { task: task.name.clone(), sync: task.sync })
            } else if !system.subtask(operation.id).join.waits_for_all(predecessors) {
                Some(UnsupportedRelease::Join { operation: operation.name.clone() })
            } else {
                None
            }
        })
    }
}
