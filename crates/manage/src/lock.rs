//! The one lock of a managed set: a [lock with priority inheritance](talea_linux::pi_lock), whose holder is shielded from being held.

use crate::hold::Shield;
use crate::progress::{Progress, Turn};
use crate::sleep_word::in_line;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use talea_linux::pi_lock::{self, PiGuard};

/// How often [`PiLock::lock_patiently`] looks before it waits: some microseconds, a few times what a decision takes.
const LOOKS: usize = 200;

/// A value that one thread at a time may use.
pub(crate) struct PiLock<T> {
    lock: pi_lock::PiLock<T>,
    progress: Arc<Progress>,
}

/// The right to use the value; gives it up on drop.
pub(crate) struct Guard<'a, T> {
    /// Ends before the lock is free.
    _turn: Turn<'a>,
    value: PiGuard<'a, T>,
    /// Lowered after the lock is free.
    _shield: Shield,
}

impl<T> PiLock<T> {
    pub fn new(value: T) -> Self {
        PiLock { lock: pi_lock::PiLock::new(value), progress: Arc::default() }
    }

    /// Who watches that the lock is given back.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    fn guard<'a>(&'a self, value: PiGuard<'a, T>, shield: Shield) -> Guard<'a, T> {
        Guard { _turn: self.progress.begin_turn(), value, _shield: shield }
    }

    /// Waits for the lock.
    ///
    /// # Panics
    /// If the caller has it already.
    pub fn lock(&self) -> Guard<'_, T> {
        let shield = Shield::raise();
        let value = self.lock.try_lock().unwrap_or_else(|| {
            let _waiting = self.progress.wait();
            in_line(|| self.lock.lock())
        });
        self.guard(value, shield)
    }

    /// The same for who is in no hurry and decides nothing about a processor. The kernel hands the lock to who waits for it at
    /// once, also to one that has to be woken on another CPU first; for tens of microseconds nobody has any use of it then, and
    /// no sentinel decides. So the lock is looked at for a while before.
    pub fn lock_patiently(&self) -> Guard<'_, T> {
        for _ in 0..LOOKS {
            if !self.lock.is_held()
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
        let value = self.lock.try_lock()?;
        Some(self.guard(value, shield))
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
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
