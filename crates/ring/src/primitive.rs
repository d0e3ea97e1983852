//! The atomics and the one blocking call on which everything here stands.
//!
//! The protocols take what another thread can see from here and from nowhere else, so that under `--cfg loom` the same source
//! runs against loom's models. What these explore, and what not, is said there (`tests/loom`).
//!
//! | Here | Real | Under loom |
//! |---|---|---|
//! | [`Word`], [`SharedWord`] | `std::sync::atomic`, in any [`Memory`] | loom's |
//! | atomics, `fence` | `std::sync::atomic` | loom's |
//! | `Futex` | the `futex` system call | a mutex, a condition variable and the word |
//!
//! The model of the futex is faithful in the one point that matters: the kernel compares the word
//! and queues the caller under the lock of the hash bucket, and the waker takes the same lock. A
//! waker that changed the word before it asked for the lock therefore either finds the sleeper
//! queued or makes the comparison fail. The word itself may be read relaxed on both sides.

#[cfg(loom)]
pub(crate) use loom::sync::Arc;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::Arc;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};

pub(crate) use std::sync::atomic::Ordering;
use std::time::Duration;

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

/// Words that several threads or processes see, wherever they are: in a mapped file or, for models and tests, in plain memory.
pub trait Memory {
    /// Its words.
    type Word: SharedWord;
    /// All of them.
    fn words(&self) -> &[Self::Word];
}

impl<W: SharedWord> Memory for [W] {
    type Word = W;

    #[inline]
    fn words(&self) -> &[W] {
        self
    }
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

word!(std::sync::atomic::AtomicU64, std::sync::atomic::fence);
#[cfg(loom)]
word!(loom::sync::atomic::AtomicU64, loom::sync::atomic::fence);

/// The barriers of a process for which the kernel does the heavy half.
#[cfg(not(loom))]
mod expedited {
    use rustix::thread::{MembarrierCommand, membarrier};
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicBool;

    /// Whether light halves need no fence. Never before [`is_there`] says so.
    pub static IS_THERE: AtomicBool = AtomicBool::new(false);

    /// Whether the kernel does heavy halves, which is found out once.
    pub fn is_there() -> bool {
        static FOUND: OnceLock<bool> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let is_there = !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
            IS_THERE.store(is_there, super::Ordering::Relaxed);
            is_there
        })
    }

    /// Every thread of the process that runs passes a full barrier before this returns; those that do not run passed one when they stopped.
    pub fn pass() {
        let passed = membarrier(MembarrierCommand::PrivateExpedited);
        assert!(passed.is_ok(), "a membarrier for which the process has been registered failed: {passed:?}");
    }
}

/// The half of a barrier that those do who do it often: it costs nothing where the kernel has all threads pass a barrier for the other half.
#[inline]
pub(crate) fn light_barrier() {
    #[cfg(not(loom))]
    if expedited::IS_THERE.load(Ordering::Relaxed) {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        return;
    }
    fence(Ordering::SeqCst);
}

/// The other half. What a thread did before its own half, whoever is past this sees; or that thread sees what was done before this.
pub(crate) fn heavy_barrier() {
    #[cfg(not(loom))]
    if expedited::is_there() {
        expedited::pass();
        return;
    }
    fence(Ordering::SeqCst);
}

/// Finds out which barriers there are, so that light ones are as cheap as they can be.
pub(crate) fn prepare_barriers() {
    #[cfg(not(loom))]
    expedited::is_there();
}

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

    /// The same, but not beyond `until`, which counts from the origin of CLOCK_MONOTONIC. Says whether that instant has come.
    pub(crate) fn wait_until(&self, expected: u32, until: Duration) -> bool {
        use rustix::io::Errno;
        use rustix::thread::futex::{Flags, Timespec, wait_bitset};
        let seconds = i64::try_from(until.as_secs()).unwrap_or(i64::MAX);
        let until = Timespec { tv_sec: seconds, tv_nsec: until.subsec_nanos().into() };
        let any = std::num::NonZeroU32::MAX;
        match wait_bitset(&self.word, Flags::PRIVATE, expected, Some(&until), any) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => false,
            Err(Errno::TIMEDOUT) => true,
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

    /// The instant may come at any time, also at once.
    pub(crate) fn wait_until(&self, _expected: u32, _until: Duration) -> bool {
        true
    }

    pub(crate) fn wake_one(&self) {
        let _locked = self.bucket.0.lock().expect("no model thread panics with the bucket locked");
        self.bucket.1.notify_one();
    }
}
