//! Response bounds, on which phase modification and modified phase modification build.

use talea_model::{OperationId, Synchronisation, System};
use talea_time::Duration;

/// A protocol releases successors by a bound that nobody has given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "task \"{task}\": sync = \"{sync}\" releases what follows \"{operation}\" by its response bound, and none is known; \
     give it one with bound = \"…\", or choose another sync"
)]
pub struct MissingBound {
    /// The task.
    pub task: String,
    /// Its protocol.
    pub sync: Synchronisation,
    /// The operation without a bound.
    pub operation: String,
}

/// The bounds that the protocols of a system need.
#[derive(Clone, Debug)]
pub struct ResponseBounds {
    /// By operation index; zero where none is needed.
    bounds: Vec<Duration>,
    /// By operation index: how long after the arrival of the task its predecessors are done if all keep their bounds.
    offsets: Vec<Duration>,
}

impl ResponseBounds {
    /// Those of `system`.
    ///
    /// # Errors
    /// The first operation that lacks one.
    pub fn of(system: &System) -> Result<Self, MissingBound> {
        let count = system.operations().len();
        let (mut bounds, mut offsets) = (vec![Duration::ZERO; count], vec![Duration::ZERO; count]);
        let mut in_order: Vec<_> = system.operations().iter().collect();
        in_order.sort_by_key(|operation| (operation.task, operation.topological_rank));
        for operation in in_order {
            let task = &system.tasks[operation.task];
            if !task.sync.needs_bounds() {
                continue;
            }
            let subtask = system.subtask(operation.id);
            if !operation.successors.is_empty() {
                bounds[operation.id.index()] = subtask.bound.ok_or_else(|| MissingBound {
                    task: task.name.clone(),
                    sync: task.sync,
                    operation: operation.name.clone(),
                })?;
            }
            let done = |before: &OperationId| offsets[before.index()] + bounds[before.index()];
            let mut predecessors: Vec<Duration> = operation.predecessors.iter().map(done).collect();
            predecessors.sort_unstable();
            let needed = subtask.join.needed(predecessors.len());
            offsets[operation.id.index()] =
                needed.checked_sub(1).map_or(Duration::ZERO, |last| predecessors[last]);
        }
        Ok(ResponseBounds { bounds, offsets })
    }

    /// From the release of the operation to its completion.
    pub fn bound(&self, operation: OperationId) -> Duration {
        self.bounds[operation.index()]
    }

    /// From the arrival of the task to the completion of the predecessors that the operation needs.
    pub fn offset(&self, operation: OperationId) -> Duration {
        self.offsets[operation.index()]
    }
}
