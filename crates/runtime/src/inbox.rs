//! The inbox of a lane: many producers, one consumer, bounded, without locks and allocation.
//!
//! A ring of cells, each with a *stamp* that says whose turn it is (after Vyukov's bounded queue).
//! Positions count pushes and pops from the beginning and never wrap (2^62 of them last a century);
//! position `p` lives in cell `p mod capacity`, in the ring's lap `p div capacity`.
//!
//! ```text
//!            claim: tail p -> p+1            publish             pop
//!   free at p ─────────(1)──────► claimed ────(2)────► full at p ──(3)──► free at p + capacity
//!   stamp 2p                      stamp 2p             stamp 2p+1         stamp 2(p + capacity)
//! ```
//!
//! 1. A producer that finds the cell at the tail free moves the tail past it. The compare-exchange
//!    is relaxed: it only decides *which* producer writes; the write is ordered by the stamps. The
//!    acquire load of the stamp that came before pairs with (3) of the previous lap, so the
//!    consumer has read the old value before the new one is written over it.
//! 2. The producer writes the value and stores the stamp with release.
//! 3. The consumer loads the stamp with acquire (pairs with 2: the value is there), reads the
//!    value, and stores the stamp of the next lap with release (pairs with 1).
//!
//! The stamp doubles the position so that "full" of one lap and "free" of the next differ even
//! where the capacity is one.
//!
//! **Order.** Values of one producer arrive in the order of its pushes; values of different
//! producers in the order in which they claimed their cells. A producer that was preempted between
//! (1) and (2) hides the values behind it: [`Receiver::pop`] then answers `None` although later
//! cells are full. Nothing is lost by that, because the late producer rings the
//! [`bell`](crate::bell) after (2), as each producer does.
//!
//! **Progress.** A push retries only when another push took the cell, so somebody always advances;
//! a producer that is preempted for good blocks the consumer but no producer before the ring is
//! full. The consumer never waits for anything inside `pop`.

use crate::primitive::{Arc, AtomicU64, Ordering, Slot};
use std::fmt;
use thiserror::Error;

/// The push found no free cell and the value is handed back; nothing was changed.
///
/// With pops under way at the same time the answer may be older by one pop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the inbox is full")]
pub struct Full<T>(pub T);

struct Cell<T> {
    stamp: AtomicU64,
    value: Slot<T>,
}

/// The producers' position, alone in its cache lines: the consumer never reads it, and the
/// prefetcher of adjacent lines must not couple it with its neighbours.
#[repr(align(128))]
struct Tail(AtomicU64);

struct Ring<T> {
    tail: Tail,
    /// A power of two.
    cells: Box<[Cell<T>]>,
}

// SAFETY: a cell's value is touched only by the thread whose turn its stamp says it is: the one
// producer that claimed it, then the one consumer. The values themselves cross threads: T is Send.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above; shared access goes through the stamps alone.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    fn cell(&self, position: u64) -> &Cell<T> {
        // The mask keeps the low bits only, so the conversion loses nothing that counts.
        &self.cells[position as usize & (self.cells.len() - 1)]
    }
}

/// Makes an inbox with room for at least `capacity` values (rounded up to a power of two, which
/// [`Receiver::capacity`] tells). This is the only allocation.
///
/// # Panics
/// If `capacity` is 0 or more than 2^31: both are broken invariants of the caller.
pub fn channel<T: Copy + Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "an inbox without room can receive nothing");
    assert!(capacity <= 1 << 31, "an inbox of {capacity} values");
    let cells = (0..capacity.next_power_of_two() as u64)
        .map(|position| Cell { stamp: AtomicU64::new(2 * position), value: Slot::new() })
        .collect();
    let ring = Arc::new(Ring { tail: Tail(AtomicU64::new(0)), cells });
    (Sender { ring: Arc::clone(&ring) }, Receiver { ring, head: 0 })
}

/// The producers' end; clone it for each producer.
pub struct Sender<T> {
    ring: Arc<Ring<T>>,
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender { ring: Arc::clone(&self.ring) }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("capacity", &self.ring.cells.len()).finish_non_exhaustive()
    }
}

impl<T: Copy + Send> Sender<T> {
    /// Appends a value. Allocates nothing, takes no lock, calls nothing; ring the bell afterwards.
    ///
    /// # Errors
    /// [`Full`] with the value if the cell at the tail still holds a value of the previous lap.
    pub fn push(&self, value: T) -> Result<(), Full<T>> {
        let mut position = self.ring.tail.0.load(Ordering::Relaxed);
        loop {
            let cell = self.ring.cell(position);
            let stamp = cell.stamp.load(Ordering::Acquire);
            if stamp < 2 * position {
                return Err(Full(value));
            }
            if stamp > 2 * position {
                position = self.ring.tail.0.load(Ordering::Relaxed);
                continue;
            }
            match self.ring.tail.0.compare_exchange_weak(
                position,
                position + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    // SAFETY: the stamp said the cell is free at `position`, and of all producers
                    // that read so only this one moved the tail from `position`. The consumer
                    // leaves the cell alone until the stamp below.
                    unsafe { cell.value.write(value) };
                    cell.stamp.store(2 * position + 1, Ordering::Release);
                    return Ok(());
                }
                Err(moved) => position = moved,
            }
        }
    }
}

/// The consumer's end; there is one.
pub struct Receiver<T> {
    ring: Arc<Ring<T>>,
    /// The position of the next pop. Only the consumer has it: producers learn of pops by stamps.
    head: u64,
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("capacity", &self.ring.cells.len())
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

impl<T: Copy + Send> Receiver<T> {
    /// Takes the oldest value, or `None` if none has been published at the head.
    pub fn pop(&mut self) -> Option<T> {
        let cell = self.ring.cell(self.head);
        if cell.stamp.load(Ordering::Acquire) != 2 * self.head + 1 {
            return None;
        }
        // SAFETY: the stamp says the cell was published for this position, and the acquire load
        // makes that write visible. Producers leave the cell alone until the stamp below.
        let value = unsafe { cell.value.read() };
        let capacity = self.ring.cells.len() as u64;
        cell.stamp.store(2 * (self.head + capacity), Ordering::Release);
        self.head += 1;
        Some(value)
    }

    /// Whether [`pop`](Self::pop) would answer a value; for the re-check before sleeping.
    pub fn has_value(&self) -> bool {
        self.ring.cell(self.head).stamp.load(Ordering::Acquire) == 2 * self.head + 1
    }

    /// How many values there is room for.
    pub fn capacity(&self) -> usize {
        self.ring.cells.len()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn hands_back_what_does_not_fit() {
        let (sender, mut receiver) = channel(2);
        assert_eq!(sender.push('a'), Ok(()));
        assert_eq!(sender.push('b'), Ok(()));
        assert_eq!(sender.push('c'), Err(Full('c')));
        assert_eq!(receiver.pop(), Some('a'));
        assert_eq!(sender.push('c'), Ok(()));
        assert_eq!((receiver.pop(), receiver.pop(), receiver.pop()), (Some('b'), Some('c'), None));
    }

    #[test]
    fn holds_exactly_one_value_where_one_is_asked_for() {
        let (sender, mut receiver) = channel(1);
        for lap in 0..5 {
            assert!(!receiver.has_value());
            assert_eq!(sender.push(lap), Ok(()));
            assert_eq!(sender.push(99), Err(Full(99)));
            assert!(receiver.has_value());
            assert_eq!(receiver.pop(), Some(lap));
        }
        assert_eq!(receiver.pop(), None);
    }

    #[test]
    fn rounds_the_capacity_up_and_says_so() {
        for (asked, given) in [(1, 1), (2, 2), (3, 4), (64, 64), (65, 128)] {
            assert_eq!(channel::<u8>(asked).1.capacity(), given);
        }
    }

    #[test]
    #[should_panic(expected = "without room")]
    fn no_capacity_is_a_broken_invariant() {
        let _ = channel::<u8>(0);
    }

    proptest! {
        #[test]
        fn behaves_like_a_bounded_queue(capacity in 1usize..9, pushes in prop::collection::vec(any::<bool>(), 0..200)) {
            let (sender, mut receiver) = channel(capacity);
            let mut model = VecDeque::new();
            for (number, push) in pushes.into_iter().enumerate() {
                if push {
                    let room = model.len() < receiver.capacity();
                    prop_assert_eq!(sender.push(number), if room { Ok(()) } else { Err(Full(number)) });
                    if room {
                        model.push_back(number);
                    }
                } else {
                    prop_assert_eq!(receiver.has_value(), !model.is_empty());
                    prop_assert_eq!(receiver.pop(), model.pop_front());
                }
            }
        }
    }
}
