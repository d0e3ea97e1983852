//! Something that happens again and again, for which any number of threads can wait.

use rustix::thread::futex::{self, Flags, Timespec};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use talea_linux::replaced::Replaced;
use talea_time::Duration;

/// How often it has happened. To say so costs a system call only if somebody waits.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    count: AtomicU32,
    waiting: AtomicU32,
}

impl Signal {
    /// It has happened. What was done before is seen by who is woken.
    ///
    /// The count and the number of those that wait are changed and read in one order that all threads agree on: either the waiter's last look
    /// sees what was done before this, or this sees the waiter.
    #[inline]
    pub fn raise(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            // That nobody waits any more is fine.
            _ = futex::wake(&self.count, Flags::PRIVATE, u32::MAX >> 1);
        }
    }

    /// How often it has happened, modulo 2³².
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until `is_there` or for so long; returns whether it is.
    pub fn wait(
        &self,
        limit: Duration,
        now: impl Fn() -> talea_time::Instant,
        mut is_there: impl FnMut() -> bool,
    ) -> bool {
        let end = now().saturating_add(limit);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let came = loop {
            let seen = self.count.load(Ordering::SeqCst);
            if is_there() {
                break true;
            }
            let left = end - now();
            if left <= Duration::ZERO {
                break false;
            }
            let left = left.as_nanos();
            let timeout = Timespec { tv_sec: left / 1_000_000_000, tv_nsec: left % 1_000_000_000 };
            // Signals, time and changes of the count lead to another look.
            _ = futex::wait(&self.count, Flags::PRIVATE, seen, Some(&timeout));
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        came
    }
}

/// Signals of others that are raised together with one's own. Where there are none, that costs next to nothing.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    are_some: AtomicBool,
    signals: Replaced<Vec<Arc<Signal>>>,
}

impl Followers {
    pub fn add(&self, signal: &Arc<Signal>) {
        self.signals.update(|signals| signals.iter().chain([signal]).cloned().collect());
        self.are_some.store(true, Ordering::Release);
    }

    /// One of those that were added.
    pub fn remove(&self, signal: &Arc<Signal>) {
        self.signals.update(|signals| {
            let mut signals = Vec::clone(signals);
            let place = signals.iter().position(|other| Arc::ptr_eq(other, signal));
            place.map(|place| signals.remove(place));
            signals
        });
    }

    #[inline]
    pub fn raise(&self) {
        if self.are_some.load(Ordering::Acquire) {
            self.signals.load().iter().for_each(|signal| signal.raise());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use talea_linux::clock::MonotonicClock;
    use talea_time::Clock;

    #[test]
    fn who_waits_is_woken_and_does_not_wait_for_ever() {
        let (signal, is_there) = (Signal::default(), AtomicBool::new(false));
        let now = || MonotonicClock.now();
        assert!(!signal.wait(Duration::from_nanos(1), now, || false));
        std::thread::scope(|scope| {
            let wait = || signal.wait(Duration::from_secs(600), now, || is_there.load(Ordering::Relaxed));
            let waiters: Vec<_> = (0..3).map(|_| scope.spawn(wait)).collect();
            is_there.store(true, Ordering::Relaxed);
            signal.raise();
            assert!(waiters.into_iter().all(|waiter| waiter.join().expect("it waits")));
        });
    }
}
