//! Joins: how many predecessors of a job are still outstanding.
//!
//! One word per joining operation and instance of a bounded window, preallocated. The word holds the
//! instance it counts for, so nothing has to be reset: the first predecessor of an instance to arrive
//! takes the word over from an older instance, finished or abandoned. An instance whose other branch
//! was aborted or skipped stays incomplete and is overwritten the same way.

use crate::window::Windows;
use std::sync::atomic::{AtomicU64, Ordering};

/// Predecessors of one operation: fewer than operations in a system.
const COUNT_BITS: u32 = 20;

/// What the completion of one predecessor means for the job that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It was the last one: the job is released.
    Complete,
    /// Others are outstanding.
    Incomplete,
    /// A newer instance has taken the word: the branches are further apart than the window.
    Overtaken,
}

/// The counters of all joins of one process.
pub(crate) struct JoinTable {
    words: Box<[AtomicU64]>,
    windows: Windows,
}

impl JoinTable {
    /// Room for the windows of these operations, each given with the number of its predecessors: one that has less than
    /// two joins nothing.
    ///
    /// # Panics
    /// If a window is not a power of two.
    pub fn new(operations: impl IntoIterator<Item = (usize, u32)>) -> Self {
        let joining = |(window, predecessors)| if predecessors > 1 { window } else { 0 };
        let windows = Windows::new(operations.into_iter().map(joining));
        // Instance 0 with nothing outstanding: older than, or equal to and not confused with, any
        // instance that arrives, because an instance under way has something outstanding.
        let words = (0..windows.places()).map(|_| AtomicU64::new(0)).collect();
        JoinTable { words, windows }
    }

    /// One of the `predecessors` of `operation`'s job `instance` has completed.
    pub fn arrive(&self, operation: usize, instance: u64, predecessors: u32) -> Arrival {
        if predecessors <= 1 {
            return Arrival::Complete;
        }
        let cell = &self.words[self.windows.place(operation, instance) as usize];
        let mut seen = cell.load(Ordering::Relaxed);
        loop {
            let (holder, outstanding) = (seen >> COUNT_BITS, seen & ((1 << COUNT_BITS) - 1));
            let left = if holder == instance && outstanding > 0 {
                outstanding - 1
            } else if holder <= instance {
                u64::from(predecessors) - 1
            } else {
                return Arrival::Overtaken;
            };
            let next = instance << COUNT_BITS | left;
            // Acquire and release: what one branch wrote is visible to whoever completes the join.
            match cell.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if left == 0 => return Arrival::Complete,
                Ok(_) => return Arrival::Incomplete,
                Err(changed) => seen = changed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_predecessor_needs_no_counting() {
        let table = JoinTable::new([(4, 1)]);
        assert!(table.words.is_empty());
        assert_eq!(table.arrive(0, 3, 1), Arrival::Complete);
    }

    #[test]
    fn the_last_of_three_completes_and_instances_do_not_mix() {
        let table = JoinTable::new([(4, 2), (4, 3)]);
        for instance in [0, 1] {
            assert_eq!(table.arrive(1, instance, 3), Arrival::Incomplete);
            assert_eq!(table.arrive(1, instance, 3), Arrival::Incomplete);
        }
        for instance in [0, 1] {
            assert_eq!(table.arrive(1, instance, 3), Arrival::Complete);
        }
        assert_eq!(table.arrive(0, 0, 2), Arrival::Incomplete);
    }

    #[test]
    fn an_abandoned_instance_is_overwritten_and_a_straggler_is_told() {
        let table = JoinTable::new([(2, 2)]);
        assert_eq!(table.arrive(0, 0, 2), Arrival::Incomplete);
        assert_eq!(table.arrive(0, 2, 2), Arrival::Incomplete);
        assert_eq!(table.arrive(0, 0, 2), Arrival::Overtaken);
        assert_eq!(table.arrive(0, 2, 2), Arrival::Complete);
        assert_eq!(table.arrive(0, 4, 2), Arrival::Incomplete);
    }
}
