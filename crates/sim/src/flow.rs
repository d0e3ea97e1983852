//! Precedence: which successors a completion releases.

use std::collections::HashMap;
use talea_model::{OperationId, System};

/// What an instance of an operation with several predecessors waits for.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// Predecessors that will still be done.
    to_come: u32,
    /// Another predecessor never will be, so the operation is not released.
    doomed: bool,
}

/// Counts, per operation with several predecessors, how many of them an instance still waits for.
pub(crate) struct Joins {
    /// By operation index; `None` for operations with at most one predecessor. An instance has an entry from
    /// its first predecessor to its last, so the entries are as many as the instances in between.
    waiting: Vec<Option<HashMap<u64, Wait>>>,
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

    /// One of `predecessors` predecessors of `operation` is done in `instance`. True when it was the last and
    /// the operation is to be released.
    pub fn arrive(&mut self, operation: OperationId, instance: u64, predecessors: usize) -> bool {
        let Some(waiting) = &mut self.waiting[operation.index()] else {
            return true;
        };
        let fresh = Wait { to_come: predecessors as u32, doomed: false };
        let wait = waiting.entry(instance).or_insert(fresh);
        wait.to_come -= 1;
        let Wait { to_come, doomed } = *wait;
        if to_come == 0 {
            waiting.remove(&instance);
        }
        to_come == 0 && !doomed
    }

    /// `doomed` of the `predecessors` predecessors of `operation` will never be done in `instance`; the others
    /// are or will be.
    pub fn doom(&mut self, operation: OperationId, instance: u64, predecessors: usize, doomed: usize) {
        let Some(waiting) = &mut self.waiting[operation.index()] else {
            return;
        };
        let to_come = waiting.get(&instance).map_or(predecessors as u32, |wait| wait.to_come) - doomed as u32;
        if to_come == 0 {
            waiting.remove(&instance);
        } else {
            waiting.insert(instance, Wait { to_come, doomed: true });
        }
    }
}
