//! One writer that never waits, any number of readers that never disturb it: the index protocol.
//!
//! A ring is a counter `head` (records ever written) and a power-of-two number of slots of five words;
//! record `n` lives in slot `n mod capacity`. It is a seqlock whose sequence number is `head` itself.
//!
//! ```text
//! writer, record n                     reader, record i
//! 1 fence(Release)                     a h = head (relaxed), fence(Acquire); needs i < h
//! 2 words of slot n mod capacity       b words of slot i mod capacity (relaxed)
//!   (relaxed)                          c fence(Acquire)
//! 3 head = n + 1 (Release)             d h' = head (relaxed); i is whole iff h' < i + capacity
//! ```
//!
//! **Why a delivered record is whole.** All accesses are atomic, so there are no data races; the
//! question is only which writes (b) may see.
//! * *Not older than record i*: (a) read a value above `i`, hence from (3) of record `i` or later, and
//!   its fence makes everything before that store visible.
//! * *Not newer*: suppose (b) saw a word of a later occupant of the slot, record `i + k * capacity`
//!   with `k >= 1`. The writer stored `head = i + k * capacity` before fence (1) of that record, and
//!   the word after it; the reader loaded the word before fence (c). The two fences synchronise
//!   through the word, so (d) sees `head >= i + k * capacity`, and the record is refused.
//!
//! Without fence (1) the words of record `n` could become visible before `head = n`, and a torn record
//! would pass. The test is conservative by one slot: when `head` is `n`, record `n - capacity` may be
//! half overwritten, so a ring shows at most `capacity - 1` records. This also makes the file of a
//! killed process readable: the record it was writing is beyond `head`, the one it was destroying is
//! refused.
//!
//! On x86-64 both fences cost nothing; on AArch64 each is one barrier. A reader uses relaxed loads and
//! fences rather than acquire loads because its mapping may be read-only memory.

use crate::primitive::Word;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Words of a record.
pub const WORDS: usize = 5;

/// A ring in memory: its head and its slots.
#[derive(Debug)]
pub struct Slots<'a, W> {
    head: &'a W,
    slots: &'a [[W; WORDS]],
    /// Capacity minus one.
    mask: u64,
}

/// What [`Slots::read`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Records overwritten before they could be read; they come before those read.
    pub lost: u64,
    /// Records read.
    pub read: usize,
}

impl<'a, W: Word> Slots<'a, W> {
    /// A ring with `head` and five words in `words` for each of its slots.
    ///
    /// # Panics
    /// If the number of slots is not a power of two of at least 2.
    #[inline]
    pub fn new(head: &'a W, words: &'a [W]) -> Self {
        let (slots, _) = words.as_chunks();
        let capacity = slots.len();
        assert!(capacity.is_power_of_two() && capacity >= 2, "a ring of {capacity} records");
        Slots { head, slots, mask: capacity as u64 - 1 }
    }

    /// Writes record number `position`, overwriting the oldest. Only the ring's one writer may call
    /// this, with `position` counting up by one from the value of `head`.
    #[inline]
    pub fn write(&self, position: u64, record: [u64; WORDS]) {
        W::fence(Release);
        for (word, value) in self.slot(position).iter().zip(record) {
            word.store(value, Relaxed);
        }
        self.head.store(position.wrapping_add(1), Release);
    }

    /// Appends to `out` at most `limit` records from number `*cursor` on, as many as are there and
    /// whole, and moves the cursor behind what was read or lost. An empty batch without loss means
    /// that the reader has caught up.
    pub fn read(&self, cursor: &mut u64, limit: usize, out: &mut Vec<[u64; WORDS]>) -> Batch {
        let head = self.head.load(Relaxed);
        W::fence(Acquire);
        if head <= *cursor {
            return Batch::default();
        }
        let before = *cursor;
        let first = before.max(self.oldest_whole(head));
        let count = (head - first).min(limit as u64);
        let start = out.len();
        for position in first..first + count {
            let slot = self.slot(position);
            out.push(std::array::from_fn(|word| slot[word].load(Relaxed)));
        }
        W::fence(Acquire);
        let overrun = self.oldest_whole(self.head.load(Relaxed)).saturating_sub(first).min(count);
        out.drain(start..start + overrun as usize);
        *cursor = first + count;
        Batch { lost: first - before + overrun, read: (count - overrun) as usize }
    }

    /// The first record that is certainly whole while `head` records have been written.
    fn oldest_whole(&self, head: u64) -> u64 {
        head.saturating_sub(self.mask)
    }

    #[inline]
    fn slot(&self, position: u64) -> &'a [W; WORDS] {
        &self.slots[(position & self.mask) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicU64;

    fn words(capacity: usize) -> Vec<AtomicU64> {
        (0..capacity * WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn keeps_all_but_one_of_its_slots() {
        let (head, words) = (AtomicU64::new(0), words(8));
        let ring = Slots::new(&head, &words);
        for n in 0..20 {
            ring.write(n, [n; WORDS]);
        }
        let (mut cursor, mut out) = (0, Vec::new());
        assert_eq!(ring.read(&mut cursor, 100, &mut out), Batch { lost: 13, read: 7 });
        assert_eq!(out, (13..20).map(|n| [n; WORDS]).collect::<Vec<_>>());
        assert_eq!(ring.read(&mut cursor, 100, &mut out), Batch::default());
    }

    #[test]
    fn a_head_of_nonsense_is_survived() {
        for nonsense in [u64::MAX, u64::MAX - 1, 1 << 63] {
            let (head, words) = (AtomicU64::new(nonsense), words(4));
            let (mut cursor, mut out) = (0, Vec::new());
            let batch = Slots::new(&head, &words).read(&mut cursor, 100, &mut out);
            assert_eq!((batch.read, cursor), (3, nonsense));
        }
    }

    proptest! {
        /// Every record is read or counted as lost, in order, however writes and reads interleave.
        #[test]
        fn read_and_lost_add_up(steps in prop::collection::vec((0usize..40, 1usize..10), 1..40)) {
            let (head, words) = (AtomicU64::new(0), words(16));
            let ring = Slots::new(&head, &words);
            let (mut written, mut cursor, mut expected) = (0u64, 0, 0);
            for (writes, limit) in steps {
                for _ in 0..writes {
                    ring.write(written, [written; WORDS]);
                    written += 1;
                }
                let mut out = Vec::new();
                let batch = ring.read(&mut cursor, limit, &mut out);
                expected += batch.lost;
                for record in out {
                    prop_assert_eq!(record, [expected; WORDS]);
                    expected += 1;
                }
                prop_assert_eq!(expected, cursor);
            }
        }
    }
}
