//! A lock whose holder runs with the priority of the most urgent thread that waits for it (priority inheritance), by the kernel's
//! priority-inheritance futexes. Free, it is taken and given back by one atomic step and without a system call.
//!
//! ```text
//!   0 ──(1) lock──► tid ──(2) somebody waits──► tid | WAITERS ──(3) unlock──► the waiter's tid, by the kernel
//!   ▲                │
//!   └──(3) unlock────┘
//! ```

use rustix::thread::futex::{self, Flags};
use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

/// A value that one thread at a time has, which lends its holder the priority of those that wait.
pub struct PiLock<T: ?Sized> {
    /// The thread that holds it, 0 if none, and the kernel's bit for waiters.
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, of which there is one; so threads hand the value to each other (`Send`) and never share it.
unsafe impl<T: ?Sized + Send> Sync for PiLock<T> {}
// SAFETY: the value moves with the lock.
unsafe impl<T: ?Sized + Send> Send for PiLock<T> {}

thread_local! {
    /// The number of this thread, 0 until it is asked for.
    static OWN: Cell<u32> = const { Cell::new(0) };
}

fn own_tid() -> u32 {
    OWN.with(|own| {
        if own.get() == 0 {
            own.set(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
        }
        own.get()
    })
}

impl<T> PiLock<T> {
    /// A lock that nobody holds.
    pub const fn new(value: T) -> Self {
        PiLock { word: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }
}

impl<T: ?Sized> PiLock<T> {
    /// The value, when its holder has given it back. While this thread waits, the holder has its priority.
    ///
    /// # Panics
    /// If this thread holds it, or the kernel has no priority-inheritance futexes.
    #[inline]
    pub fn lock(&self) -> PiGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.wait())
    }

    /// The value, if nobody has it.
    #[inline]
    pub fn try_lock(&self) -> Option<PiGuard<'_, T>> {
        let taken = self.word.compare_exchange(0, own_tid(), Ordering::Acquire, Ordering::Relaxed);
        // A guard that is made gives the lock back, so none is made that has not got it.
        taken.is_ok().then(|| PiGuard { lock: self })
    }

    /// Whether somebody has it at this moment.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.word.load(Ordering::Relaxed) != 0
    }

    #[cold]
    fn wait(&self) -> PiGuard<'_, T> {
        loop {
            match futex::lock_pi(&self.word, Flags::PRIVATE, None) {
                Ok(()) => return PiGuard { lock: self },
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(rustix::io::Errno::DEADLK) => panic!("a thread waits for a lock that it holds itself"),
                Err(error) => panic!("waiting for a priority-inheritance futex failed: {error}"),
            }
        }
    }

    /// The value, which nobody else can have.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T: ?Sized> std::fmt::Debug for PiLock<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PiLock").field("is_held", &self.is_held()).finish_non_exhaustive()
    }
}

/// The right to the value of a [`PiLock`], given back when it is dropped.
pub struct PiGuard<'a, T: ?Sized> {
    lock: &'a PiLock<T>,
}

impl<T: ?Sized> Deref for PiGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: there is one guard, and it is borrowed.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for PiGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard, and it is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for PiGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let word = &self.lock.word;
        if word.compare_exchange(own_tid(), 0, Ordering::Release, Ordering::Relaxed).is_err() {
            let given = futex::unlock_pi(word, Flags::PRIVATE);
            assert!(given.is_ok(), "giving back a priority-inheritance futex failed: {given:?}");
        }
    }
}

impl<T: ?Sized + std::fmt::Debug> std::fmt::Debug for PiGuard<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        const ROUNDS: u64 = 20_000;
        let lock = PiLock::new((0u64, 0u64));
        std::thread::scope(|scope| {
            let count = || {
                for _ in 0..ROUNDS {
                    let mut both = lock.lock();
                    // Two steps, between which another thread would see them differ.
                    assert_eq!(both.0, both.1);
                    both.0 += 1;
                    std::hint::black_box(&mut *both);
                    both.1 += 1;
                }
            };
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(count)).collect();
            threads.into_iter().for_each(|thread| thread.join().expect("it counts"));
        });
        assert_eq!(*lock.lock(), (3 * ROUNDS, 3 * ROUNDS));
    }

    #[test]
    fn who_waits_has_it_afterwards() {
        let (lock, both) = (PiLock::new(1), Barrier::new(2));
        std::thread::scope(|scope| {
            let guard = lock.lock();
            assert!(lock.try_lock().is_none());
            let waiter = scope.spawn(|| {
                let is_free = lock.try_lock().is_some();
                both.wait();
                *lock.lock() += 1;
                is_free
            });
            both.wait();
            drop(guard);
            assert!(!waiter.join().expect("it has had it"));
        });
        assert_eq!(*lock.lock(), 2);
    }

    #[test]
    #[should_panic(expected = "holds itself")]
    fn a_thread_does_not_wait_for_itself() {
        let lock = PiLock::new(());
        let _first = lock.lock();
        let _second = lock.lock();
    }
}
