//! Who runs on a processor right now, and whom that displaced: preemption between lanes, recorded
//! without a system call.
//!
//! Each processor has one word: the job that runs on it. On a node of one processor the kernel runs
//! lanes like nested calls: a higher lane starts while a lower one runs, and the lower one goes on only
//! when the higher one sleeps. So a lane that starts a job and finds another one in the word has
//! displaced that job by definition, and gives it back when it goes to sleep:
//!
//! ```text
//!   word     IDLE ── L starts a ──► a ── H starts b ──► b ── b ends ──► IDLE ── H sleeps ──► a
//!   records         START a            PREEMPT a by b       COMPLETE b         RESUME a
//!                                      START b
//! ```
//!
//! Each step is one store, so a preemption between two steps leaves the word as it was found. The
//! reading of the clock and the store are two steps: a preemption exactly between them lets the lower
//! job start some nanoseconds before the higher one that ran first.
//!
//! An operation that *blocks* lets lower lanes run although its lane is not asleep; what runs meanwhile
//! is recorded as started but not as preempted. On nodes of several processors threads migrate and the
//! word would lie; there, and without real-time priorities, no preemption is recorded at all.

use std::sync::atomic::{AtomicU64, Ordering};
use talea_record::JobId;

/// No job: not a packed job of any system.
const IDLE: u64 = u64::MAX;

/// The word of a processor.
#[derive(Debug)]
pub(crate) struct Processor(AtomicU64);

impl Default for Processor {
    fn default() -> Self {
        Processor(AtomicU64::new(IDLE))
    }
}

impl Processor {
    /// A job has ended; nothing runs until somebody takes the processor again.
    pub fn vacate(&self) {
        self.0.store(IDLE, Ordering::Relaxed);
    }
}

/// A thread's stays on a processor, from its first job after a sleep to the next sleep.
#[derive(Debug, Default)]
pub(crate) struct Stay {
    holding: Option<Holding>,
}

/// What a thread that is awake has displaced.
#[derive(Clone, Copy, Debug)]
struct Holding {
    victim: Option<JobId>,
}

impl Stay {
    /// The thread gives the processor to `job`, from a lower thread, from another job of its own, or from nobody. Returns the job
    /// that it displaces, if that is still under way: what blocked and has ended since is nobody's victim.
    pub fn take(
        &mut self,
        processor: &Processor,
        job: JobId,
        is_under_way: impl Fn(JobId) -> bool,
    ) -> Option<JobId> {
        let displaced = processor.0.swap(job.pack(), Ordering::Relaxed);
        if self.holding.is_some() {
            return None;
        }
        let victim =
            (displaced != IDLE).then(|| JobId::unpack(displaced)).filter(|victim| is_under_way(*victim));
        self.holding = Some(Holding { victim });
        victim
    }

    /// The thread has nothing to do and gives the processor back. Returns the job that goes on, if one does.
    pub fn leave(&mut self, processor: &Processor, is_under_way: impl Fn(JobId) -> bool) -> Option<JobId> {
        let victim = self.holding.take()?.victim.filter(|victim| is_under_way(*victim));
        processor.0.store(victim.map_or(IDLE, JobId::pack), Ordering::Relaxed);
        victim
    }
}
