//! The shared word on which the protocols of rings, switches and passive entities stand.
//!
//! The protocols are generic over [`Word`] and [`SharedWord`], so that the same source runs on `std`'s atomics in a
//! mapped file and, under `--cfg loom`, on loom's models of them in memory.

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

/// A 64-bit word that several threads or processes change.
pub trait SharedWord: Word {
    /// Sets the bits of `value` and returns what was there.
    fn fetch_or(&self, value: u64, order: Ordering) -> u64;
    /// Keeps only the bits of `value` and returns what was there.
    fn fetch_and(&self, value: u64, order: Ordering) -> u64;
    /// Adds and returns what was there; wraps.
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    /// Writes and returns what was there.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Replaces `current` by `new`.
    ///
    /// # Errors
    /// What is there instead of `current`.
    fn compare_exchange(&self, current: u64, new: u64, order: Ordering) -> Result<u64, u64>;
}

macro_rules! word {
    ($word:ty, $fence:path) => {
        impl Word for $word {
            #[inline]
            fn load(&self, order: Ordering) -> u64 {
                <$word>::load(self, order)
            }
            #[inline]
            fn store(&self, value: u64, order: Ordering) {
                <$word>::store(self, value, order);
            }
            #[inline]
            fn fence(order: Ordering) {
                $fence(order);
            }
        }

        impl SharedWord for $word {
            #[inline]
            fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
                <$word>::fetch_or(self, value, order)
            }
            #[inline]
            fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
                <$word>::fetch_and(self, value, order)
            }
            #[inline]
            fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
                <$word>::fetch_add(self, value, order)
            }
            #[inline]
            fn swap(&self, value: u64, order: Ordering) -> u64 {
                <$word>::swap(self, value, order)
            }
            #[inline]
            fn compare_exchange(&self, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
                <$word>::compare_exchange(self, current, new, order, Ordering::Relaxed)
            }
        }
    };
}

word!(AtomicU64, std::sync::atomic::fence);
#[cfg(loom)]
word!(loom::sync::atomic::AtomicU64, loom::sync::atomic::fence);
