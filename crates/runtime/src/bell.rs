//! The bell of a lane: the consumer sleeps on it, producers ring it, and only a ring that finds the
//! consumer asleep costs a system call.
//!
//! ```text
//!                     ┌──────────── (2) work was there after all ─────────────┐
//!                     ▼                                                       │
//!   ┌───────┐  (1) going to sleep   ┌──────────┐  (3) still nothing   ┌───────────────┐
//!   │ AWAKE │ ────────────────────► │ SLEEPING │ ───────────────────► │ SLEEPING,     │
//!   └───────┘     (consumer)        └──────────┘     futex wait       │ in the kernel │
//!     ▲   ▲                              │                            └───────────────┘
//!     │   └── (4) ring before the wait ──┘                                    │
//!     └───────────────────── (5) ring and futex wake ─────────────────────────┘
//! ```
//!
//! 1. The consumer found its inbox empty and stores SLEEPING.
//! 2. It looks once more. If there is work now it takes the word back to AWAKE itself; where a
//!    producer was faster with that, the result is the same.
//! 3. Otherwise it asks the kernel to sleep while the word is SLEEPING.
//! 4. A producer rings between (1) and (3): it takes the word to AWAKE, and the kernel, comparing
//!    under its lock, refuses to put the consumer to sleep. The wake-up that follows finds nobody.
//! 5. A producer rings a sleeper. Of several producers the one whose swap returned SLEEPING makes
//!    the call; the others see AWAKE and go on.
//!
//! In AWAKE a ring is a fence and a load. A wake-up of (4) may arrive late, in a later sleep, and
//! signals interrupt sleeps: therefore the consumer sleeps on while the word is still SLEEPING.
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
//! something later, and "later" can only be the AWAKE that another ring (whose producer then makes
//! the call) or the consumer itself (2) stored. Acquire and release alone would not do: they order
//! nothing between a store and a *following* load of another location, and x86 does reorder those
//! through its store buffer. This is the only place in the runtime that needs such a fence.
//!
//! The accesses to the word may then all be relaxed but one: the load that ends a sleep acquires. It
//! reads what the swap of a ring stored, and the fence before that swap is a release fence, too; so
//! whatever a producer did before ringing (a stop request, for instance) is visible to the consumer
//! it woke, without an inbox in between.

use crate::primitive::{Futex, Ordering, fence};
use std::fmt;

const AWAKE: u32 = 0;
const SLEEPING: u32 = 1;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There was work at the second look; the consumer did not sleep.
    HadWork,
    /// A ring ended the sleep, or forestalled it.
    Rung,
}

/// What a ring found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// The consumer was awake, or somebody else is waking it: no system call.
    Awake,
    /// The consumer slept or was about to; this ring woke it by a system call.
    Woke,
}

/// The sleeping flag and futex of one consumer. Share it by reference or `Arc`.
pub struct Bell {
    /// AWAKE or SLEEPING. Only the consumer stores SLEEPING; anybody may store AWAKE.
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
        if has_work() {
            self.futex.word.store(AWAKE, Ordering::Relaxed);
            return Waited::HadWork;
        }
        while self.futex.word.load(Ordering::Acquire) == SLEEPING {
            self.futex.wait(SLEEPING);
        }
        Waited::Rung
    }

    /// A producer's call *after* it has published: wakes the consumer if it sleeps. A fence and a
    /// load where it does not; never blocks, safe in a signal handler.
    pub fn ring(&self) -> Ring {
        fence(Ordering::SeqCst);
        if self.futex.word.load(Ordering::Relaxed) == AWAKE
            || self.futex.word.swap(AWAKE, Ordering::Relaxed) == AWAKE
        {
            return Ring::Awake;
        }
        self.futex.wake_one();
        Ring::Woke
    }
}
