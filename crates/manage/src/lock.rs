//! The one lock of a managed set: the thread that holds it inherits the priority of the threads that wait for it.
//!
//! The word is the kernel's priority-inheritance futex: 0, or the owner's thread id, with a bit that the kernel sets
//! while somebody waits. Without contention neither end makes a system call.

use crate::hold::Shield;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;

/// How often [`PiLock::lock_patiently`] looks before it waits: some microseconds, a few times what a decision takes.
const LOOKS: usize = 200;

thread_local! {
    /// The caller's thread id, asked for once.
    static OWN: Cell<u32> = const { Cell::new(0) };
}

fn own() -> u32 {
    OWN.with(|own| {
        if own.get() == 0 {
            own.set(rustix::thread::gettid().as_raw_nonzero().get() as u32);
        }
        own.get()
    })
}

/// A value that one thread at a time may use.
pub(crate) struct PiLock<T> {
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reachable through a guard alone, of which there is one at a time.
unsafe impl<T: Send> Sync for PiLock<T> {}

/// The right to use the value; gives it up on drop.
pub(crate) struct Guard<'a, T> {
    lock: &'a PiLock<T>,
    /// Lowered after the lock is free.
    _shield: Shield,
}

impl<T> PiLock<T> {
    pub fn new(value: T) -> Self {
        PiLock { word: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// If the caller has it already.
    pub fn lock(&self) -> Guard<'_, T> {
        if let Some(guard) = self.take_free() {
            return guard;
        }
        let shield = Shield::raise();
        loop {
            match futex::lock_pi(&self.word, Flags::PRIVATE, None) {
                Ok(()) => return Guard { lock: self, _shield: shield },
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => panic!("the dispatcher's lock cannot be taken: {errno}"),
            }
        }
    }

    /// The same for who is in no hurry and decides nothing about a processor. The kernel hands the lock to who waits for it at
    /// once, also to one that has to be woken on another CPU first; for tens of microseconds nobody has any use of it then, and
    /// no sentinel decides. So the lock is looked at for a while before.
    pub fn lock_patiently(&self) -> Guard<'_, T> {
        for _ in 0..LOOKS {
            if self.word.load(Ordering::Relaxed) == FREE
                && let Some(guard) = self.take_free()
            {
                return guard;
            }
            std::hint::spin_loop();
        }
        self.lock()
    }

    /// The lock if nobody has it: then the caller has run at its own priority up to this moment.
    pub fn take_free(&self) -> Option<Guard<'_, T>> {
        let shield = Shield::raise();
        let taken = self.word.compare_exchange(FREE, own(), Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| Guard { lock: self, _shield: shield })
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if self.lock.word.compare_exchange(own(), FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            futex::unlock_pi(&self.lock.word, Flags::PRIVATE).expect("the owner can unlock");
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one, so nobody changes the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one and is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn additions_of_several_threads_are_all_there() {
        let lock = Arc::new(PiLock::new(0_u64));
        let add = |lock: Arc<PiLock<u64>>, hurried: bool| {
            move || {
                for _ in 0..20_000 {
                    *if hurried { lock.lock() } else { lock.lock_patiently() } += 1;
                }
            }
        };
        let threads: Vec<_> =
            [true, false, true].map(|hurried| std::thread::spawn(add(Arc::clone(&lock), hurried))).into();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*lock.lock(), 60_000);
    }

    #[test]
    fn a_free_lock_is_taken_and_a_held_one_is_not() {
        let lock = PiLock::new(());
        let guard = lock.take_free().expect("free");
        std::thread::scope(|scope| {
            assert!(scope.spawn(|| lock.take_free().is_none()).join().unwrap());
        });
        drop(guard);
        assert!(lock.take_free().is_some());
    }
}
