//! The shared word on which the ring's protocol stands.
//!
//! The protocol is generic over [`Word`], so that the same source runs on `std`'s atomics in a mapped
//! file and, under `--cfg loom`, on loom's models of them in memory.

use std::sync::atomic::{AtomicU64, Ordering};

/// A 64-bit word that one thread writes while others read it.
pub trait Word {
    /// Reads the word.
    fn load(&self, order: Ordering) -> u64;
    /// Writes the word.
    fn store(&self, value: u64, order: Ordering);
    /// A fence in the memory model this word belongs to.
    fn fence(order: Ordering);
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }
    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }
    #[inline]
    fn fence(order: Ordering) {
        std::sync::atomic::fence(order);
    }
}

#[cfg(loom)]
impl Word for loom::sync::atomic::AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        loom::sync::atomic::AtomicU64::load(self, order)
    }
    fn store(&self, value: u64, order: Ordering) {
        loom::sync::atomic::AtomicU64::store(self, value, order);
    }
    fn fence(order: Ordering) {
        loom::sync::atomic::fence(order);
    }
}
