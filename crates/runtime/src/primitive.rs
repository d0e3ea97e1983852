//! The atomics and the one blocking call on which the lock-free parts stand.
//!
//! [`inbox`](crate::inbox) and [`bell`](crate::bell) take everything that another thread can see
//! from here and from nowhere else, so that under `--cfg loom` the same source runs against loom's
//! models. What they explore, and what not, is said there (`tests/loom.rs`): with three threads, for one, no more than three
//! preemptions.
//!
//! | Here | Real | Under loom |
//! |---|---|---|
//! | atomics, [`fence`] | `std::sync::atomic` | loom's |
//! | [`Futex`] | the `futex` system call | a mutex, a condition variable and the word |
//!
//! The model of the futex is faithful in the one point that matters: the kernel compares the word
//! and queues the caller under the lock of the hash bucket, and the waker takes the same lock. A
//! waker that changed the word before it asked for the lock therefore either finds the sleeper
//! queued or makes the comparison fail. The word itself may be read relaxed on both sides.

#[cfg(loom)]
pub(crate) use loom::sync::Arc;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::Arc;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};

/// A word on which one thread sleeps until another one changes it and says so.
pub(crate) struct Futex {
    /// The word; the owner gives its values a meaning.
    pub(crate) word: AtomicU32,
    #[cfg(loom)]
    bucket: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

#[cfg(not(loom))]
impl Futex {
    pub(crate) fn new(value: u32) -> Self {
        Futex { word: AtomicU32::new(value) }
    }

    /// Sleeps while the word is `expected`. Returns after a wake-up, a signal or at once where the
    /// word is different already: the caller looks at the word again in every case.
    pub(crate) fn wait(&self, expected: u32) {
        use rustix::io::Errno;
        use rustix::thread::futex::{Flags, wait};
        match wait(&self.word, Flags::PRIVATE, expected, None) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => panic!("futex wait on a word of our own failed: {errno}"),
        }
    }

    /// Wakes one sleeper, if there is one.
    pub(crate) fn wake_one(&self) {
        use rustix::thread::futex::{Flags, wake};
        if let Err(errno) = wake(&self.word, Flags::PRIVATE, 1) {
            panic!("futex wake on a word of our own failed: {errno}");
        }
    }
}

#[cfg(loom)]
impl Futex {
    pub(crate) fn new(value: u32) -> Self {
        Futex {
            word: AtomicU32::new(value),
            bucket: (loom::sync::Mutex::new(()), loom::sync::Condvar::new()),
        }
    }

    pub(crate) fn wait(&self, expected: u32) {
        let locked = self.bucket.0.lock().expect("no model thread panics with the bucket locked");
        if self.word.load(Ordering::Relaxed) == expected {
            drop(self.bucket.1.wait(locked));
        }
    }

    pub(crate) fn wake_one(&self) {
        let _locked = self.bucket.0.lock().expect("no model thread panics with the bucket locked");
        self.bucket.1.notify_one();
    }
}
