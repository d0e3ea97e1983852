//! The bell of a lane: the consumer sleeps on it, producers ring it, and only a ring for a consumer that
//! has not run since it went to sleep costs a system call.
//!
//! ```text
//!                ┌──── (2) there was work after all ────┐
//!                ▼                                      │
//!            ┌───────┐                            ┌──────────┐ (3) still nothing: futex wait
//!            │ AWAKE │ ───────── (1) ───────────► │ SLEEPING │ ─────┐
//!            └───────┘       going to sleep       └──────────┘ ◄────┘
//!                ▲                                      │ (4) ring, then futex wake
//!                │                                      ▼
//!                │                                 ┌────────┐ (5) another ring, then futex wake
//!                └──────── (6) running again ───── │  RUNG  │ ─────┐
//!                                                  └────────┘ ◄────┘
//! ```
//!
//! 1. The consumer found its inbox empty and stores SLEEPING.
//! 2. It looks once more. If there is work now it takes the word back to AWAKE itself. Where a ring came
//!    between, its wake-up finds nobody.
//! 3. Otherwise it asks the kernel to sleep while the word is SLEEPING. If a ring came between, the kernel,
//!    which compares under its lock, refuses.
//! 4. A ring that finds SLEEPING makes it RUNG and asks the kernel to wake the consumer.
//! 5. So does *every* ring that finds RUNG. A producer may be preempted between the word and the call; if
//!    the others left the call to it, a thread of a low lane would hold up the wake-up for which the
//!    release thread rings as long as the lanes between them keep the processor.
//! 6. The consumer runs again and says so. Only it stores AWAKE, and only it stores SLEEPING.
//!
//! In AWAKE a ring is a fence and a load. A wake-up may arrive late, in a later sleep, and signals
//! interrupt sleeps: therefore the consumer sleeps on while the word is still SLEEPING. Until the consumer
//! runs, each ring costs a call: few, because a producer rings once for all that it has released at
//! one time.
//!
//! **No wake-up is lost.** Two threads each write one location and then read the other's:
//!
//! ```text
//!   producer                            consumer
//!   P1  publish the value               C1  word := SLEEPING
//!   P2  fence (sequentially consistent) C2  fence (sequentially consistent)
//!   P3  read the word                   C3  look for the value
//! ```
//!
//! What must not happen is that P3 reads AWAKE and C3 finds nothing. The two fences have a place in
//! the single total order of all sequentially consistent operations. If P2 comes first, C3, behind
//! C2, reads the publication of P1 or something later; if C2 comes first, P3 reads SLEEPING or
//! something later: RUNG, and the producer makes the call as well, or the AWAKE of a consumer that will
//! look again before its next sleep, for which the same holds. Acquire and release alone would not do:
//! they order nothing between a store and a *following* load of another location, and x86 does reorder
//! those through its store buffer. This is the only place in the runtime that needs such a fence.
//!
//! The accesses to the word may then all be relaxed but one: the swap to AWAKE (2, 6) acquires. It reads
//! what a ring stored, if there was one, and the fence before a ring's store is a release fence, too; a
//! later ring is a read-modify-write and continues the release sequence of an earlier one. So whatever any
//! producer did before it made RUNG (a stop request, for instance) is visible to the consumer, without an
//! inbox in between.

use crate::primitive::{Futex, Ordering, fence};
use std::fmt;
use std::time::Duration;

const AWAKE: u32 = 0;
const SLEEPING: u32 = 1;
const RUNG: u32 = 2;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There was work at the second look; the consumer did not sleep.
    HadWork,
    /// A ring ended the sleep, or forestalled it.
    Rung,
    /// The instant came up to which the consumer wanted to sleep.
    Due,
}

/// What a ring found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// The consumer was awake: no system call.
    Awake,
    /// The consumer slept, was about to, or had not run since an earlier ring: this one made the system
    /// call that wakes it.
    Woke,
}

/// The sleeping flag and futex of one consumer. Share it by reference or `Arc`.
pub struct Bell {
    /// AWAKE, SLEEPING or RUNG. Producers store RUNG alone, and never over AWAKE.
    futex: Futex,
}

impl Default for Bell {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell").finish_non_exhaustive()
    }
}

impl Bell {
    /// A bell whose consumer is awake.
    pub fn new() -> Self {
        Bell { futex: Futex::new(AWAKE) }
    }

    /// The consumer's call when it has found nothing to do: sleeps until the next ring unless
    /// `has_work`, asked after the intention to sleep is visible to every producer, says otherwise.
    /// A ring may be answered although its work has been taken already; look, and wait again.
    ///
    /// # Panics
    /// If a second thread waits on the same bell: one of the two would sleep for ever. `has_work`
    /// must not panic; it would leave the bell in that state.
    pub fn wait_unless(&self, has_work: impl FnOnce() -> bool) -> Waited {
        let before = self.futex.word.swap(SLEEPING, Ordering::Relaxed);
        assert_eq!(before, AWAKE, "two threads wait on one bell");
        fence(Ordering::SeqCst);
        let waited = if has_work() {
            Waited::HadWork
        } else {
            while self.futex.word.load(Ordering::Relaxed) == SLEEPING {
                self.futex.wait(SLEEPING);
            }
            Waited::Rung
        };
        self.futex.word.swap(AWAKE, Ordering::Acquire);
        waited
    }

    /// The same, but not beyond `until`, which counts from the origin of CLOCK_MONOTONIC.
    ///
    /// # Panics
    /// As [`Self::wait_unless`].
    pub fn wait_until(&self, until: Duration, has_work: impl FnOnce() -> bool) -> Waited {
        let before = self.futex.word.swap(SLEEPING, Ordering::Relaxed);
        assert_eq!(before, AWAKE, "two threads wait on one bell");
        fence(Ordering::SeqCst);
        let mut waited = if has_work() { Waited::HadWork } else { Waited::Rung };
        while waited == Waited::Rung && self.futex.word.load(Ordering::Relaxed) == SLEEPING {
            if self.futex.wait_until(SLEEPING, until) {
                waited = Waited::Due;
            }
        }
        self.futex.word.swap(AWAKE, Ordering::Acquire);
        waited
    }

    /// A producer's call *after* it has published: wakes the consumer if it sleeps. A fence and a
    /// load where it does not; never blocks, safe in a signal handler.
    #[inline]
    pub fn ring(&self) -> Ring {
        if self.announce() {
            self.futex.wake_one();
            Ring::Woke
        } else {
            Ring::Awake
        }
    }

    /// The part of a ring before its system call; says whether there is to be one.
    #[inline]
    fn announce(&self) -> bool {
        fence(Ordering::SeqCst);
        let rung = |seen| (seen != AWAKE).then_some(RUNG);
        self.futex.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rung).is_ok()
    }

    /// A ring whose thread is preempted before the system call and does not run again, for models.
    #[cfg(loom)]
    pub fn ring_and_stall(&self) {
        self.announce();
    }
}
