//! What a preemptive lane's controller records of the job in a slot, against its end.
//!
//! The controller records that the job was displaced or goes on, the slot's thread that it has ended. Where the controller has no higher priority,
//! both may be in the middle of that at once, and each notes the instant before it says so. So a word is between the two, in which the
//! controller counts what it records and the slot says that the job is over:
//!
//! ```text
//!   counted 0 ──(1)──► counted 1 ──(1)──► ...        1 the controller, before it records
//!       └──────(2)─────────┴──► over                 2 the slot, after it has read the clock
//! ```
//!
//! What the controller counts before 2 the slot sees, and records an end behind it; after 2 the controller records nothing of the job.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use talea_time::{Duration, Instant};

/// The job is over.
const OVER: u32 = u32::MAX;

/// The word of a slot's job.
#[derive(Debug)]
pub(crate) struct Interruptions {
    counted: AtomicU32,
    /// The instant that was last counted, or was to be. Written by the controller before 1.
    at: AtomicI64,
}

/// How often the job had been interrupted before it read the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before(u32);

impl Interruptions {
    /// Of a slot without a job.
    pub fn new() -> Self {
        Interruptions { counted: AtomicU32::new(OVER), at: AtomicI64::new(0) }
    }

    /// The slot is given a job.
    pub fn begin(&self) {
        self.counted.store(0, Ordering::Release);
    }

    /// Step 1: the job was displaced or goes on at this instant. False if it is over; then nothing is to be recorded of it.
    pub fn count(&self, at: Instant) -> bool {
        self.at.store(at.as_nanos(), Ordering::Relaxed);
        let next = |counted: u32| (counted != OVER).then(|| (counted + 1) % OVER);
        self.counted.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    /// Whether the job is over, and its thread has yet to tell the controller.
    pub fn is_over(&self) -> bool {
        self.counted.load(Ordering::Acquire) == OVER
    }

    /// To be asked before the clock is read for [`Self::end`].
    pub fn before(&self) -> Before {
        Before(self.counted.load(Ordering::Acquire))
    }

    /// Step 2. Returns the earliest instant at which the job can have ended.
    pub fn end(&self, Before(before): Before) -> Instant {
        if self.counted.swap(OVER, Ordering::AcqRel) == before {
            return Instant::ZERO;
        }
        // Records of two threads with the same instant may come in either order.
        Instant::from_nanos(self.at.load(Ordering::Relaxed)).saturating_add(Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use talea_linux::clock::MonotonicClock;
    use talea_time::Clock;

    const AT: Instant = Instant::from_nanos(70);

    #[test]
    fn a_job_ends_behind_what_was_recorded_of_it_while_it_ended() {
        let interruptions = Interruptions::new();
        assert!(interruptions.is_over() && !interruptions.count(AT), "there is no job");
        interruptions.begin();
        assert!(interruptions.count(AT) && !interruptions.is_over());
        let before = interruptions.before();
        assert_eq!(interruptions.end(before), Instant::ZERO, "the clock was read after that");
        interruptions.begin();
        let before = interruptions.before();
        assert!(interruptions.count(AT));
        assert_eq!(interruptions.end(before), AT + Duration::from_nanos(1));
        assert!(!interruptions.count(AT), "nothing is recorded of a job that is over");
    }

    /// Two threads of equal priority, as a controller and a slot are without real-time priorities.
    #[test]
    fn what_is_recorded_of_a_job_is_before_its_end_whoever_is_interrupted() {
        const JOBS: usize = 20_000;
        let (interruptions, round) = (Interruptions::new(), Barrier::new(2));
        let last = AtomicI64::new(0);
        let mut late = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..JOBS {
                    interruptions.begin();
                    last.store(0, Ordering::Relaxed);
                    round.wait();
                    loop {
                        let now = MonotonicClock.now();
                        if !interruptions.count(now) {
                            break;
                        }
                        last.store(now.as_nanos(), Ordering::Relaxed);
                    }
                    round.wait();
                }
            });
            for _ in 0..JOBS {
                round.wait();
                while last.load(Ordering::Relaxed) == 0 {
                    std::thread::yield_now();
                }
                let before = interruptions.before();
                let end = MonotonicClock.now();
                let end = end.max(interruptions.end(before));
                round.wait();
                // Told of when both are done, or the other one would wait for ever.
                late.extend(Some(last.load(Ordering::Relaxed)).filter(|last| *last >= end.as_nanos()));
            }
        });
        assert!(late.is_empty(), "of {JOBS} jobs {} were interrupted after their end", late.len());
    }
}
