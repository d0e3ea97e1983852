//! Counters.

use super::{Entity, PassiveKind};
use crate::ring::RingWriter;
use crate::stream::declare::DeclaredFamily;
use std::sync::atomic::{AtomicU32, Ordering};

/// A number that any thread adds to. Wraps at 64 bits.
#[derive(Debug)]
pub struct Counter(pub(super) Entity);

impl Counter {
    /// The counter with switch `number` of its family; made by [`crate::family!`].
    #[doc(hidden)]
    pub const fn new(family: &'static DeclaredFamily, number: usize) -> Self {
        Counter(Entity::new(family, number))
    }

    /// The same, of a family that is registered, with its first word.
    pub(super) const fn placed(family: &'static DeclaredFamily, number: usize, place: u32) -> Self {
        Counter(Entity::placed(family, number, place))
    }

    #[doc(hidden)]
    pub const KIND: PassiveKind = PassiveKind::Counter;

    #[doc(hidden)]
    pub const fn place(&'static self) -> &'static AtomicU32 {
        &self.0.place
    }

    /// Adds `amount`, whether or not anybody looks.
    #[inline(always)]
    pub fn add(&self, amount: u64) {
        _ = self.0.count(1, |words| {
            words[0].fetch_add(amount, Ordering::Relaxed);
        });
    }

    /// Adds `amount` in the stream of `writer`, for threads that write to one without having it as theirs. Its family is registered before.
    #[inline]
    pub fn add_in(&self, writer: &RingWriter, amount: u64) {
        self.0.count_in(writer, 1, |words| {
            words[0].fetch_add(amount, Ordering::Relaxed);
        });
    }

    /// Its value in the calling thread's stream; `None` if there is none.
    pub fn get(&self) -> Option<u64> {
        self.0.look(1, |words| words[0].load(Ordering::Relaxed))
    }
}
