//! Joins: the signals to the jobs that have several predecessors, by the rules of [`join`](talea_policy::release::join).
//!
//! One word per joining operation and instance of a bounded window, preallocated and changed by one exchange for each signal. An instance
//! whose other branch was aborted or skipped stays incomplete and is overwritten by a later one.

use crate::window::Windows;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_policy::release::join::{Heard, JoinWord};

/// How many predecessors one operation has, and how many of its instances may be in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joining {
    pub window: usize,
    pub predecessors: u32,
}

/// The joins of one process.
pub(crate) struct JoinTable {
    words: Box<[AtomicU64]>,
    windows: Windows,
}

impl JoinTable {
    /// Room for the windows of these operations: one that has less than two predecessors joins nothing.
    ///
    /// # Panics
    /// If a window is not a power of two.
    pub fn new(operations: impl IntoIterator<Item = Joining>) -> Self {
        let window = |join: Joining| if join.predecessors > 1 { join.window } else { 0 };
        let windows = Windows::new(operations.into_iter().map(window));
        let words = (0..windows.places()).map(|_| AtomicU64::new(JoinWord::EMPTY.to_bits())).collect();
        JoinTable { words, windows }
    }

    /// One of the `predecessors` of `operation`'s job `instance`, of which `needed` are needed, has completed.
    pub fn signal(&self, operation: usize, instance: u64, predecessors: u32, needed: u32) -> Heard {
        if predecessors <= 1 {
            return Heard::Complete;
        }
        let cell = &self.words[self.windows.place(operation, instance) as usize];
        let mut seen = cell.load(Ordering::Relaxed);
        loop {
            let (heard, after) = JoinWord::from_bits(seen).signal(instance, needed);
            if heard == Heard::Overtaken {
                return heard;
            }
            // Acquire and release: what one branch wrote is visible to whoever completes the join.
            match cell.compare_exchange_weak(seen, after.to_bits(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return heard,
                Err(changed) => seen = changed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn all(window: usize, predecessors: u32) -> Joining {
        Joining { window, predecessors }
    }

    #[test]
    fn a_single_predecessor_needs_no_counting() {
        let table = JoinTable::new([all(4, 1)]);
        assert!(table.words.is_empty());
        assert_eq!(table.signal(0, 3, 1, 1), Heard::Complete);
    }

    #[test]
    fn the_last_of_three_completes_and_instances_do_not_mix() {
        let table = JoinTable::new([all(4, 2), all(4, 3)]);
        for instance in [0, 1] {
            assert_eq!(table.signal(1, instance, 3, 3), Heard::Incomplete);
            assert_eq!(table.signal(1, instance, 3, 3), Heard::Incomplete);
        }
        for instance in [0, 1] {
            assert_eq!(table.signal(1, instance, 3, 3), Heard::Complete);
        }
        assert_eq!(table.signal(0, 0, 2, 2), Heard::Incomplete);
    }

    #[test]
    fn an_abandoned_instance_is_overwritten_and_a_straggler_is_told() {
        let table = JoinTable::new([all(2, 2)]);
        assert_eq!(table.signal(0, 0, 2, 2), Heard::Incomplete);
        assert_eq!(table.signal(0, 2, 2, 2), Heard::Incomplete);
        assert_eq!(table.signal(0, 0, 2, 2), Heard::Overtaken);
        assert_eq!(table.signal(0, 2, 2, 2), Heard::Complete);
        assert_eq!(table.signal(0, 4, 2, 2), Heard::Incomplete);
    }

    #[test]
    fn of_many_threads_that_signal_one_completes() {
        let table = JoinTable::new([all(2, 4)]);
        for instance in 0..100 {
            let mut heard = std::thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(|| table.signal(0, instance, 4, 3)));
                threads.map(|thread| thread.join().expect("it counts"))
            });
            heard.sort_by_key(|heard| *heard as u8);
            assert_eq!(heard, [Heard::Complete, Heard::Incomplete, Heard::Incomplete, Heard::Late]);
        }
    }
}
