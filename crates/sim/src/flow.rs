//! Precedence: which successors a completion releases.

use std::collections::HashMap;
use talea_model::{OperationId, System};

/// Counts, per operation with several predecessors, how many of them an instance still waits for.
pub(crate) struct Joins {
    /// By operation index; `None` for operations with at most one predecessor.
    waiting: Vec<Option<HashMap<u64, u32>>>,
}

impl Joins {
    pub fn new(system: &System) -> Self {
        let waiting = system
            .operations()
            .iter()
            .map(|operation| (operation.predecessors.len() > 1).then(HashMap::new))
            .collect();
        Joins { waiting }
    }

    /// One of `predecessors` predecessors of `operation` is done in `instance`. True when it was the last.
    pub fn arrive(&mut self, operation: OperationId, instance: u64, predecessors: usize) -> bool {
        let Some(waiting) = &mut self.waiting[operation.index()] else {
            return true;
        };
        let missing = waiting.entry(instance).or_insert(predecessors as u32);
        *missing -= 1;
        let complete = *missing == 0;
        if complete {
            waiting.remove(&instance);
        }
        complete
    }

    /// `operation` will never be released in `instance`.
    pub fn forget(&mut self, operation: OperationId, instance: u64) {
        if let Some(waiting) = &mut self.waiting[operation.index()] {
            waiting.remove(&instance);
        }
    }
}
