//! Pointers that are replaced while threads read what they point to: hazard pointers (Michael, "Hazard Pointers: Safe Memory Reclamation for
//! Lock-Free Objects", IEEE TPDS 15(6), 2004).
//!
//! A reader writes down in a [`Hazard`] of its own what it is about to read; who has replaced a pointer frees the former value only when no hazard
//! names it.
//!
//! ```text
//! reader                                       writer
//! a hazard = pointer (Release)                 1 former = swap pointer (AcqRel)
//! b the barrier's light half                   2 the barrier's heavy half
//! c pointer (Acquire) is still that, else a    3 no hazard (Acquire) is former: it may be freed
//! d reads the value
//! e hazard = null (Release)
//! ```
//! The two halves of the barrier order (a) before (c) and (1) before (3) for all threads: either (3) sees the hazard, or (c) sees the pointer that (1)
//! has written. (e), or the next (a), and (3) have all reads happen before the value is freed.
//!
//! Readers read often and writers seldom write. So where the kernel has expedited membarriers (Linux 4.14 and newer) the light half is nothing that the
//! processor does, and the heavy half is a system call, which has every thread of the process pass a barrier. Elsewhere both are a fence.

use crate::primitive::{AtomicPtr, Ordering, heavy_barrier, light_barrier, prepare_barriers};
use std::ptr;

/// What one reader reads.
#[derive(Debug)]
pub struct Hazard(AtomicPtr<()>);

impl Default for Hazard {
    fn default() -> Self {
        Hazard(AtomicPtr::new(ptr::null_mut()))
    }
}

impl Hazard {
    /// The present value of a pointer, which is not freed until this hazard is [cleared](Self::clear), or protects another one.
    #[inline]
    pub fn protect<T>(&self, pointer: &Replaceable<T>) -> *const T {
        let mut value = pointer.0.load(Ordering::Relaxed);
        loop {
            // What was read before has been read, also for who sees this in place of null.
            self.0.store(value.cast(), Ordering::Release);
            light_barrier();
            let again = pointer.0.load(Ordering::Acquire);
            if again == value {
                // The same address; as it was read before, it may have been that of a value that is free by now.
                return again;
            }
            value = again;
        }
    }

    /// Nothing is read any more.
    #[inline]
    pub fn clear(&self) {
        self.0.store(ptr::null_mut(), Ordering::Release);
    }

    /// Whether it protects this value. Once a [replacement](Replaceable::replace) has returned it, and this has said no, it will for as long as no other
    /// value has its address.
    pub fn protects<T>(&self, value: *const T) -> bool {
        ptr::eq(self.0.load(Ordering::Acquire), value.cast())
    }
}

/// A pointer that is replaced as a whole.
#[derive(Debug)]
pub struct Replaceable<T>(AtomicPtr<T>);

impl<T> Replaceable<T> {
    /// It points to this value.
    pub fn new(value: *mut T) -> Self {
        Replaceable(AtomicPtr::new(value))
    }

    /// It points to this value from now on. Returns the former one, which nobody begins to read any more; those who had begun name it in their hazards.
    pub fn replace(&self, value: *mut T) -> *mut T {
        let former = self.0.swap(value, Ordering::AcqRel);
        heavy_barrier();
        former
    }

    /// What it points to, of which nobody else knows any more.
    pub fn get_mut(&mut self) -> *mut T {
        // Exclusive, so any order will do.
        self.0.load(Ordering::Relaxed)
    }
}

/// Finds out what barriers cost here, so that those of readers cost as little as they can. Nothing depends on it but their speed.
pub fn prepare() {
    prepare_barriers();
}
