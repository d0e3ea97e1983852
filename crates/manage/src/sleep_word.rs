//! An own thread's place to sleep: a word that says what it waits for, and on which it does.
//!
//! ```text
//!             1 block                     2 wake
//!   RUNNING ───────────▶ BLOCKED ──────────────────────▶ WOKEN
//!     │  ▲ ▲                                               │
//!   4 │  │ └──────────────── 3 granted: futex wake ────────┘
//!     ▼  │ 5 block, at once
//!   NOTIFIED
//! ```
//!
//! 1 and 5 are the thread's, 2 and 4 the waker's, 3 is done by the thread that brings this one on its processor. A thread that is WOKEN
//! and not granted sleeps on, so its wake-up preempts nobody by itself. From every state the end of the set leads to ENDED, in
//! which nobody blocks.
//!
//! **No wake-up is lost.** Every wake-up is a read-modify-write of the word, also one that leaves it as it is. So it comes
//! before or after the thread's own last one. Before: the thread, which acquires, sees whatever was published before that
//! wake-up, also if later ones followed. After: the wake-up finds the thread RUNNING or BLOCKED and says so. A wake-up that only
//! *read* NOTIFIED could have read it before the thread took that back, and what it announced be seen after the thread's look.

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const RUNNING: u32 = 0;
const BLOCKED: u32 = 1;
const NOTIFIED: u32 = 2;
const WOKEN: u32 = 3;
const ENDED: u32 = 4;

/// How [`SleepWord::block`] or [`SleepWord::block_unless`] ended or would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepEnd {
    /// Transition 5: the wake-up, or work, was there before.
    AtOnce,
    /// Transitions 1 to 3.
    Woken,
    Ended,
}

/// What [`SleepWord::notify`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notified {
    /// Transition 2: the dispatcher has to hear of it.
    Sleeper,
    /// Transition 4, or a wake-up is pending already.
    Later,
    Ended,
}

pub(crate) struct SleepWord {
    word: AtomicU32,
    pub member: u32,
    /// Whether the schedulers above the thread, which serves a lane, are to hear of each of its jobs. A hint, written under the
    /// dispatcher's lock.
    pub offers_jobs: AtomicBool,
    /// The thread waits for a lock of the set. The kernel says that it sleeps, but it has not blocked: it goes on as soon as those who
    /// have the lock before it are done.
    is_in_line: AtomicBool,
}

thread_local! {
    /// The calling thread's own, if it is a member.
    static OWN: OnceCell<Arc<SleepWord>> = const { OnceCell::new() };
}

/// Waits for a lock of the set. If the calling thread is a member, nobody takes it for blocked meanwhile.
pub(crate) fn in_line<R>(wait: impl FnOnce() -> R) -> R {
    let own = OWN.try_with(|own| own.get().cloned()).ok().flatten();
    let note = |is_in_line| own.iter().for_each(|own| own.is_in_line.store(is_in_line, Ordering::Release));
    note(true);
    let result = wait();
    note(false);
    result
}

impl SleepWord {
    /// The word of a thread that has not begun: it waits for its first grant.
    pub fn new(member: u32) -> Self {
        SleepWord {
            word: AtomicU32::new(BLOCKED),
            member,
            offers_jobs: AtomicBool::new(false),
            is_in_line: AtomicBool::new(false),
        }
    }

    /// The calling thread is the one that sleeps here, from now on.
    pub fn claim(self: &Arc<Self>) {
        OWN.with(|own| assert!(own.set(Arc::clone(self)).is_ok(), "a thread is one member"));
    }

    /// The thread's own call.
    pub fn block(&self) -> SleepEnd {
        match self.word.compare_exchange(RUNNING, BLOCKED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => self.wait(),
            Err(NOTIFIED) => {
                let renewed =
                    self.word.compare_exchange(NOTIFIED, RUNNING, Ordering::AcqRel, Ordering::Acquire);
                if renewed.is_ok() { SleepEnd::AtOnce } else { SleepEnd::Ended }
            }
            Err(_) => SleepEnd::Ended,
        }
    }

    /// The thread's own call when it has found nothing to do: blocks unless `has_work`. Wake-ups so far are taken back before it
    /// is asked, so that one whose work has been done already ends no sleep.
    pub fn block_unless(&self, has_work: impl Fn() -> bool) -> SleepEnd {
        loop {
            let _stale = self.word.compare_exchange(NOTIFIED, RUNNING, Ordering::AcqRel, Ordering::Acquire);
            if has_work() {
                return SleepEnd::AtOnce;
            }
            match self.word.compare_exchange(RUNNING, BLOCKED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return self.wait(),
                Err(NOTIFIED) => {}
                Err(_) => return SleepEnd::Ended,
            }
        }
    }

    /// Sleeps until transition 3 or the end.
    pub fn wait(&self) -> SleepEnd {
        loop {
            match self.word.load(Ordering::Acquire) {
                RUNNING | NOTIFIED => return SleepEnd::Woken,
                ENDED => return SleepEnd::Ended,
                asleep => match futex::wait(&self.word, Flags::PRIVATE, asleep, None) {
                    Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(errno) => panic!("futex wait on a word of our own failed: {errno}"),
                },
            }
        }
    }

    /// A waker's call.
    pub fn notify(&self) -> Notified {
        loop {
            let seen = self.word.load(Ordering::Acquire);
            let (next, result) = match seen {
                BLOCKED => (WOKEN, Notified::Sleeper),
                RUNNING => (NOTIFIED, Notified::Later),
                ENDED => return Notified::Ended,
                pending => (pending, Notified::Later),
            };
            if self.word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return result;
            }
        }
    }

    /// Whether the thread sleeps here, woken or not.
    pub fn is_asleep(&self) -> bool {
        matches!(self.word.load(Ordering::Acquire), BLOCKED | WOKEN)
    }

    /// Whether it has been woken and waits for its grant.
    pub fn is_woken(&self) -> bool {
        self.word.load(Ordering::Acquire) == WOKEN
    }

    /// Whether it waits for a lock of the set.
    pub fn is_in_line(&self) -> bool {
        self.is_in_line.load(Ordering::Acquire)
    }

    /// The first half of transition 3; says whether there is somebody to [`wake_up`](Self::wake_up).
    pub fn grant(&self) -> bool {
        self.word.compare_exchange(WOKEN, RUNNING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The second half, which lets the thread run.
    pub fn wake_up(&self) {
        futex::wake(&self.word, Flags::PRIVATE, 1).expect("waking on a word of our own works");
    }

    /// The set ends, or the thread does.
    pub fn end(&self) {
        self.word.store(ENDED, Ordering::Release);
        self.wake_up();
    }

    pub fn is_ended(&self) -> bool {
        self.word.load(Ordering::Relaxed) == ENDED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_before_the_block_is_not_lost() {
        let sleep_word = SleepWord::new(0);
        assert_eq!(sleep_word.notify(), Notified::Sleeper);
        assert!(sleep_word.grant());
        assert_eq!((sleep_word.notify(), sleep_word.notify()), (Notified::Later, Notified::Later));
        assert_eq!(sleep_word.block(), SleepEnd::AtOnce);
        assert!(!sleep_word.is_asleep());
    }

    #[test]
    fn a_wake_up_for_work_that_is_done_ends_no_sleep() {
        let sleep_word = std::sync::Arc::new(SleepWord::new(0));
        assert_eq!(sleep_word.notify(), Notified::Sleeper);
        assert!(sleep_word.grant());
        assert_eq!(sleep_word.notify(), Notified::Later);
        assert_eq!(sleep_word.block_unless(|| true), SleepEnd::AtOnce);
        let sleeper = std::sync::Arc::clone(&sleep_word);
        let asleep = std::thread::spawn(move || sleeper.block_unless(|| false));
        while !sleep_word.is_asleep() {
            std::thread::yield_now();
        }
        assert_eq!(sleep_word.notify(), Notified::Sleeper);
        assert!(sleep_word.grant());
        sleep_word.wake_up();
        assert_eq!(asleep.join().unwrap(), SleepEnd::Woken);
    }

    #[test]
    fn a_wake_up_between_the_look_and_the_sleep_has_the_thread_look_again() {
        let sleep_word = SleepWord::new(0);
        assert_eq!(sleep_word.notify(), Notified::Sleeper);
        assert!(sleep_word.grant());
        let looks = std::cell::Cell::new(0);
        let sat = sleep_word.block_unless(|| {
            looks.set(looks.get() + 1);
            let found = looks.get() == 2;
            if !found {
                assert_eq!(sleep_word.notify(), Notified::Later);
            }
            found
        });
        assert_eq!((sat, looks.get()), (SleepEnd::AtOnce, 2));
    }

    #[test]
    fn nobody_blocks_after_the_end() {
        let sleep_word = SleepWord::new(0);
        sleep_word.end();
        assert_eq!(
            (sleep_word.wait(), sleep_word.block(), sleep_word.notify()),
            (SleepEnd::Ended, SleepEnd::Ended, Notified::Ended)
        );
    }
}
