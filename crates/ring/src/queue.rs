//! A bounded queue of entries from one producer to one consumer, from which the producer may take back the oldest to make room.
//!
//! An entry is three words; what they mean is the users' business. Two positions that only grow say which places are in use:
//!
//! ```text
//!   places    │ free │ entry │ entry │ entry │ free │
//!                    ▲ head                  ▲ tail
//!   pop       (1) read the entry at head, (2) move head from h to h + 1: who succeeds has the entry
//!   push      (3) write the entry at tail, (4) store tail + 1
//! ```
//!
//! 1. Reads may overlap with a push that reuses the place, and what they bring is of no use then.
//! 2. The move is a compare-and-swap, which consumer and producer (to take the oldest back) may try at once. If it succeeds, head was h
//!    until now, so nobody has reused the place, and what was read is the entry. It releases: the push that reuses the place acquires
//!    head, so that it does not overtake (1).
//! 3. Only places outside of head..tail are written, and only the producer moves tail.
//! 4. With release; the consumer acquires it before (1).
//! 5. A consumer that leaves the entry where it is does not swap; it looks at head again, as the reader of a sequence lock does: a fence
//!    stands between its reads and that look, and one between the producer's move of head and its writes.
//!
//! Both ends finish in a bounded number of steps: a failed swap of the consumer means that the producer made room, which it does once for
//! each push; one of the producer's, that the consumer did.

use crate::primitive::{AtomicU64, Ordering, fence};
use std::fmt;

/// What a place holds.
pub type Entry = [u64; 3];

/// What a push did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// There was room.
    Taken,
    /// There was none, and this, the oldest, is the producer's again.
    InPlaceOf(Entry),
    /// There is no room, and nothing was changed.
    Full,
}

/// What becomes of a push without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest entry makes room.
    TakeBackOldest,
    /// The push is refused.
    Refuse,
}

/// A word alone in its cache lines, so that one end does not slow the other down by what it keeps for itself.
#[repr(align(128))]
struct Apart(AtomicU64);

/// The queue. One thread at a time pushes, and one pops; what hands one of these parts from thread to thread also orders them.
pub struct Queue {
    /// Position of the oldest entry.
    head: Apart,
    /// Position behind the newest.
    tail: Apart,
    /// A power of two of them, so that a position leads to its place by its lower bits.
    places: Box<[[AtomicU64; 3]]>,
    /// Entries that there is room for, at most as many as places.
    capacity: u64,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl Queue {
    /// Room for so many entries. The only allocation.
    ///
    /// # Panics
    /// If that is none.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a queue has room");
        let place = || [const { 0 }; 3].map(AtomicU64::new);
        let places = (0..capacity.next_power_of_two()).map(|_| place()).collect();
        let at_first = || Apart(AtomicU64::new(0));
        Queue { head: at_first(), tail: at_first(), places, capacity: capacity as u64 }
    }

    /// How many entries there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    fn place(&self, position: u64) -> &[AtomicU64; 3] {
        &self.places[position as usize & (self.places.len() - 1)]
    }

    fn read(&self, position: u64) -> Entry {
        let [one, two, three] = self.place(position);
        [one, two, three].map(|word| word.load(Ordering::Relaxed))
    }

    fn moves_head(&self, from: u64) -> bool {
        self.head.0.compare_exchange(from, from + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Adds an entry. For the producer.
    #[inline]
    pub fn push(&self, entry: Entry, when_full: WhenFull) -> Pushed {
        let tail = self.tail.0.load(Ordering::Relaxed);
        let head = self.head.0.load(Ordering::Acquire);
        let mut pushed = Pushed::Taken;
        if tail - head == self.capacity {
            if when_full == WhenFull::Refuse {
                return Pushed::Full;
            }
            let oldest = self.read(head);
            if self.moves_head(head) {
                pushed = Pushed::InPlaceOf(oldest);
                // A consumer that reads what is written now also sees that head has moved (5).
                fence(Ordering::Release);
            } else {
                // The consumer has popped it, and read there what it wanted to.
                _ = self.head.0.load(Ordering::Acquire);
            }
        }
        for (word, value) in self.place(tail).iter().zip(entry) {
            word.store(value, Ordering::Relaxed);
        }
        self.tail.0.store(tail + 1, Ordering::Release);
        pushed
    }

    /// Takes the oldest entry if there is one and it is `wanted`; another is left where it is. For the consumer.
    #[inline]
    pub fn pop_if(&self, mut wanted: impl FnMut(&Entry) -> bool) -> Option<Entry> {
        loop {
            let head = self.head.0.load(Ordering::Acquire);
            if head == self.tail.0.load(Ordering::Acquire) {
                return None;
            }
            let entry = self.read(head);
            if !wanted(&entry) {
                // It is what it seems if it has not been taken back meanwhile (5).
                fence(Ordering::Acquire);
                if self.head.0.load(Ordering::Relaxed) == head {
                    return None;
                }
            } else if self.moves_head(head) {
                return Some(entry);
            }
        }
    }

    /// How many entries there are; exact while neither end works.
    pub fn len(&self) -> usize {
        let head = self.head.0.load(Ordering::Acquire);
        (self.tail.0.load(Ordering::Acquire) - head) as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_bounded_queue(
            capacity in 1usize..6,
            acts in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 0..200),
        ) {
            let (queue, mut model) = (Queue::new(capacity), VecDeque::new());
            for (number, (pushes, takes_back, wants)) in acts.into_iter().enumerate() {
                if pushes {
                    let entry = [number as u64, 7, 9];
                    let when = if takes_back { WhenFull::TakeBackOldest } else { WhenFull::Refuse };
                    let is_full = model.len() == capacity;
                    let expected = match (is_full, takes_back) {
                        (false, _) => Pushed::Taken,
                        (true, true) => Pushed::InPlaceOf(model.pop_front().expect("it is full")),
                        (true, false) => Pushed::Full,
                    };
                    if expected != Pushed::Full {
                        model.push_back(entry);
                    }
                    prop_assert_eq!(queue.push(entry, when), expected);
                } else {
                    let expected = if wants { model.pop_front() } else { None };
                    prop_assert_eq!(queue.pop_if(|_| wants), expected);
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
