//! Whether a lock goes from hand to hand, for those who may not wait for it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What whoever takes a lock, waits for it and gives it back writes down.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// How often it was taken and given back: odd while somebody has it.
    turns: AtomicU64,
    waiting: AtomicU32,
}

impl Progress {
    /// The turn of who has the lock while somebody waits for it.
    pub fn waited_for(&self) -> Option<u64> {
        let turn = self.turns.load(Ordering::Relaxed);
        (turn % 2 == 1 && self.waiting.load(Ordering::Relaxed) > 0).then_some(turn)
    }

    /// Whether somebody waits for the lock, who lends its priority to who has it.
    pub fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// The calling thread has the lock, until the turn is dropped.
    pub fn begin_turn(&self) -> Turn<'_> {
        self.step();
        Turn(self)
    }

    /// The calling thread waits for the lock, until this is dropped.
    pub fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    /// By who has the lock, so nobody else writes.
    fn step(&self) {
        self.turns.store(self.turns.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// The calling thread has the lock.
pub(crate) struct Turn<'a>(&'a Progress);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.step();
    }
}

/// The calling thread waits for the lock.
pub(crate) struct Waiting<'a>(&'a Progress);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
