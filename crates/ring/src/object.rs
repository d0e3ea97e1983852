//! Structures that are replaced and copied as a whole.
//!
//! ```text
//! word
//!    0  sequence number: even while the object is at rest, odd while it is being replaced
//!    1  updates that were given up because another one was under way
//!    2  the structure, a word for each field
//!
//! writer                                      reader
//! 1 s = sequence; even, else given up         a s = sequence (relaxed), fence(Acquire); even, else again
//! 2 sequence: s -> s + 1 (Acquire),           b words (relaxed)
//!   else given up                             c fence(Acquire)
//! 3 fence(Release)                            d sequence is still s, else again
//! 4 words (relaxed)
//! 5 sequence = s + 2 (Release)
//! ```
//! A writer never waits. A copy is of one update: if (b) saw a word of (4), the fences (3) and (c) synchronise through
//! it, and (d) sees at least `s + 1` of that update. A writer that is killed between (2) and (5) leaves an object that
//! nobody can read: readers give up after [`ATTEMPTS`].

use crate::primitive::SharedWord;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Words before the structure.
pub const HEAD: usize = 2;
/// Looks at an object that is being replaced before a reader gives up. A writer takes some nanoseconds, or as long as
/// it is preempted.
pub const ATTEMPTS: u32 = 1_000;

/// What became of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// It is what readers see.
    Done,
    /// Another one was under way: the object is as that leaves it.
    GivenUp,
}

/// An object in memory.
#[derive(Debug)]
pub struct Copied<'a, W> {
    sequence: &'a W,
    given_up: &'a W,
    words: &'a [W],
}

impl<'a, W: SharedWord> Copied<'a, W> {
    /// An object in these words, all 0 at first.
    ///
    /// # Panics
    /// If there are fewer than two.
    #[inline]
    pub fn new(words: &'a [W]) -> Self {
        let ([sequence, given_up], words) = words.split_first_chunk().expect("an object has a head");
        Copied { sequence, given_up, words }
    }

    /// Replaces the structure.
    #[inline]
    pub fn replace(&self, structure: &[u64]) -> Update {
        let sequence = self.sequence.load(Relaxed);
        let is_mine = sequence.is_multiple_of(2)
            && self.sequence.compare_exchange(sequence, sequence.wrapping_add(1), Acquire).is_ok();
        if !is_mine {
            self.given_up.fetch_add(1, Relaxed);
            return Update::GivenUp;
        }
        W::fence(Release);
        for (word, value) in self.words.iter().zip(structure) {
            word.store(*value, Relaxed);
        }
        self.sequence.store(sequence.wrapping_add(2), Release);
        Update::Done
    }

    /// A copy of one update, and how many there were before it; `None` if it is being replaced at this moment.
    pub fn copy(&self) -> Option<(Vec<u64>, u64)> {
        let sequence = self.sequence.load(Relaxed);
        W::fence(Acquire);
        if !sequence.is_multiple_of(2) {
            return None;
        }
        let words = self.words.iter().map(|word| word.load(Relaxed)).collect();
        W::fence(Acquire);
        (self.sequence.load(Relaxed) == sequence).then_some((words, sequence / 2))
    }

    /// A copy of one update, after waiting for it; `None` if there was none, or after [`ATTEMPTS`].
    pub fn wait_for_copy(&self) -> Option<Vec<u64>> {
        for _ in 0..ATTEMPTS {
            match self.copy() {
                Some((_, 0)) => return None,
                Some((words, _)) => return Some(words),
                None => std::thread::yield_now(),
            }
        }
        None
    }

    /// Updates that were given up.
    pub fn given_up(&self) -> u64 {
        self.given_up.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn an_update_under_way_is_not_disturbed_and_not_read() {
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let object = Copied::new(&words);
        assert_eq!(object.wait_for_copy(), None, "never set");
        assert_eq!(object.replace(&[1, 2]), Update::Done);
        assert_eq!(object.wait_for_copy(), Some(vec![1, 2]));
        // A writer was killed in between.
        words[0].fetch_add(1, Relaxed);
        assert_eq!((object.replace(&[3, 4]), object.given_up()), (Update::GivenUp, 1));
        assert_eq!((object.copy(), object.wait_for_copy()), (None, None));
    }
}
