//! The word that ends a run, and on which threads can sleep until an instant or the stop.

use crate::clock::timespec;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use talea_time::Instant;

const RUNNING: u32 = 0;
const STOPPED: u32 = 1;

/// A request to stop, seen by every clone. It can be given once and not be taken back.
///
/// Sleeping until an instant and waiting for the stop are one system call: `FUTEX_WAIT_BITSET`
/// takes an absolute CLOCK_MONOTONIC time-out and arms the same kind of kernel timer as
/// `clock_nanosleep`, so a sleeper is as punctual and a stop reaches it at once, however far its
/// next release is.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicU32>);

/// How a sleep on the stop flag ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// The instant has come.
    Due,
    /// The stop was requested, before or during the sleep.
    Stopped,
}

impl StopFlag {
    /// A flag nobody has raised yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the stop and wakes every thread that sleeps on the flag. What the caller did before
    /// is visible to whoever sees the stop. Async-signal-safe.
    pub fn stop(&self) {
        self.0.store(STOPPED, Ordering::Release);
        if let Err(errno) = futex::wake(&self.0, Flags::PRIVATE, i32::MAX as u32) {
            panic!("futex wake on a word of our own failed: {errno}");
        }
    }

    /// Whether the stop was requested. One load.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire) == STOPPED
    }

    /// Sleeps until `until` on CLOCK_MONOTONIC or the stop, whichever is first. A thread of the
    /// ordinary policy may be late by its timer slack (see [`super::thread`]).
    pub fn sleep_until(&self, until: Instant) -> Slept {
        let deadline = timespec(until);
        loop {
            if self.is_stopped() {
                return Slept::Stopped;
            }
            let any = NonZeroU32::MAX;
            match futex::wait_bitset(&self.0, Flags::PRIVATE, RUNNING, Some(&deadline), any) {
                Err(Errno::TIMEDOUT) => return Slept::Due,
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => panic!("futex wait on a word of our own failed: {errno}"),
            }
        }
    }
}
