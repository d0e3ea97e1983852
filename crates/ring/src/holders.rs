//! How many hold each of some numbered things, so that their maker knows which nobody holds.
//!
//! One thread at a time *claims* things and says how many will hold each; any thread gives one up.
//!
//! ```text
//!   free: 0 ──claim──► 1 ──share among n──► n ──give up──► … ──give up──► 0
//! ```
//!
//! Giving up releases and the claim acquires: who claims a thing sees everything that holders did with it. The steps in between order
//! nothing by themselves; who hands a thing on has its own means for that (a [queue](crate::queue)).

use crate::primitive::{AtomicU32, Ordering};
use std::fmt;

/// Counts of holders, by number of the thing.
pub struct Holders {
    counts: Box<[AtomicU32]>,
}

impl fmt::Debug for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holders").field("things", &self.counts.len()).finish_non_exhaustive()
    }
}

impl Holders {
    /// For so many things, which nobody holds. The only allocation.
    pub fn new(things: usize) -> Self {
        Holders { counts: (0..things).map(|_| AtomicU32::new(0)).collect() }
    }

    /// How many things there are.
    pub fn things(&self) -> usize {
        self.counts.len()
    }

    /// Claims a thing that nobody holds, the first from `from` on and round; `None` if there is none. For the one that claims.
    #[inline]
    pub fn claim(&self, from: usize) -> Option<usize> {
        let things = self.counts.len();
        let place = |step: usize| {
            let place = from + step;
            if place < things { place } else { place - things }
        };
        let free = (0..things).map(place).find(|place| self.counts[*place].load(Ordering::Acquire) == 0)?;
        self.counts[free].store(1, Ordering::Relaxed);
        Some(free)
    }

    /// Claims this thing, if nobody holds it. For the one that claims.
    #[inline]
    pub fn claim_only(&self, thing: usize) -> bool {
        let count = &self.counts[thing];
        let is_free = count.load(Ordering::Acquire) == 0;
        if is_free {
            count.store(1, Ordering::Relaxed);
        }
        is_free
    }

    /// So many hold a claimed thing from now on; with none it is free. For the one that has claimed it, before it hands it on.
    #[inline]
    pub fn share(&self, thing: usize, holders: u32) {
        self.counts[thing].store(holders, Ordering::Release);
    }

    /// One holder less.
    ///
    /// # Panics
    /// If nobody holds it.
    #[inline]
    pub fn give_up(&self, thing: usize) {
        let count = &self.counts[thing];
        // Nobody else changes the count of what one holds alone.
        if count.load(Ordering::Relaxed) == 1 {
            count.store(0, Ordering::Release);
            return;
        }
        let before = count.fetch_sub(1, Ordering::Release);
        assert!(before > 0, "nobody holds number {thing}");
    }

    /// How many hold it.
    pub fn of(&self, thing: usize) -> u32 {
        self.counts[thing].load(Ordering::Relaxed)
    }
}
