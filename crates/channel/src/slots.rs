//! Slots for values, each with the number of those that hold it.

use std::cell::UnsafeCell;
use talea_ring::holders::Holders;

/// A hold on a slot, which is given up exactly once. It is the right to read what is in the slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hold(u32);

impl Claim {
    /// The slot.
    pub fn slot(&self) -> usize {
        self.0 as usize
    }
}

/// A claimed slot, which is the right to write what is in it.
#[derive(Debug)]
pub(crate) struct Claim(u32);

impl Hold {
    /// As it goes through a queue.
    pub fn into_number(self) -> u64 {
        u64::from(self.0)
    }

    /// As it came out of one, into which [`Hold::into_number`] of the same slots went, once.
    pub fn from_number(number: u64) -> Self {
        Hold(number as u32)
    }
}

/// The slots of one output.
pub(crate) struct Slots<T> {
    values: Box<[UnsafeCell<T>]>,
    holders: Holders,
}

// SAFETY: a value is written through a claim, of which there is one and while which nobody holds the slot, and read through holds; claims follow
// the last hold, in time as well (`talea_ring::holders`). So threads share values to read them (`Sync`), and write values that others made (`Send`).
unsafe impl<T: Send + Sync> Sync for Slots<T> {}

impl<T> Slots<T> {
    /// So many slots, filled by `value`.
    pub fn new(slots: usize, value: impl FnMut() -> T) -> Self {
        let values = std::iter::repeat_with(value).take(slots).map(UnsafeCell::new).collect();
        Slots { values, holders: Holders::new(slots) }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// A slot that nobody holds, looked for from `from` on. For the output.
    #[inline]
    pub fn claim(&self, from: usize) -> Option<Claim> {
        self.holders.claim(from).map(|slot| Claim(slot as u32))
    }

    /// This slot, if nobody holds it. For the output.
    #[inline]
    pub fn claim_only(&self, slot: usize) -> Option<Claim> {
        self.holders.claim_only(slot).then_some(Claim(slot as u32))
    }

    /// What is in a claimed slot, to be written.
    #[inline]
    pub fn value_mut<'a>(&'a self, claim: &'a mut Claim) -> &'a mut T {
        // SAFETY: the claim is the only one, and nobody holds the slot; it is borrowed for as long as the value is.
        unsafe { &mut *self.values[claim.0 as usize].get() }
    }

    /// What is in a claimed slot.
    #[inline]
    pub fn written<'a>(&'a self, claim: &'a Claim) -> &'a T {
        // SAFETY: the claim is the only one, and is borrowed, so nobody writes.
        unsafe { &*self.values[claim.0 as usize].get() }
    }

    /// What is in a slot that is held.
    #[inline]
    pub fn value<'a>(&'a self, hold: &'a Hold) -> &'a T {
        // SAFETY: while there is a hold nobody claims the slot, so nobody writes; the hold is borrowed for as long as the value is.
        unsafe { &*self.values[hold.0 as usize].get() }
    }

    /// The claim becomes so many holds.
    #[inline]
    pub fn share(&self, claim: Claim, holds: u32) -> impl Iterator<Item = Hold> + use<T> {
        self.holders.share(claim.0 as usize, holds);
        (0..holds).map(move |_| Hold(claim.0))
    }

    #[inline]
    pub fn give_up(&self, hold: Hold) {
        self.holders.give_up(hold.0 as usize);
    }
}
