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
//! A job that executes another one of its lane in its midst hands the word to that one and has it back when it ends, without `IDLE` in between.
//!
//! Each step is one store, so a preemption between two steps leaves the word as it was found. But what a job does and the instant that it
//! notes for it are two steps, and whoever preempts it exactly between them records an instant that is later. So a processor counts who took it
//! ([`Processor::seen`]): a job that ends reads the clock, ends, and if it was recorded as displaced in between, ended at the instant of the
//! last record of it, for whoever sees that it has ended looks at the clock later still; one that begins reads it again if another one ran
//! before it got the word. So no job is recorded as preempted after it has ended.
//!
//! An operation that *blocks* lets lower lanes run although its lane is not asleep; what runs meanwhile
//! is recorded as started but not as preempted. On nodes of several processors threads migrate and the
//! word would lie; there, and without real-time priorities, no preemption is recorded at all.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, compiler_fence};
use talea_record::JobId;
use talea_time::Instant;

/// No job: not a packed job of any system.
const IDLE: u64 = u64::MAX;

/// The word of a processor.
#[derive(Debug)]
pub(crate) struct Processor {
    word: AtomicU64,
    /// How often a thread that had slept took it.
    taken: AtomicU32,
    /// How often a job was displaced, and recorded as preempted, by that.
    displaced: AtomicU32,
    /// The instant of the last record that a job was displaced or goes on.
    recorded_at: AtomicI64,
}

impl Default for Processor {
    fn default() -> Self {
        Processor {
            word: AtomicU64::new(IDLE),
            taken: AtomicU32::new(0),
            displaced: AtomicU32::new(0),
            recorded_at: AtomicI64::new(0),
        }
    }
}

/// What a processor had counted at an instant. Only threads of that processor count, each while the others cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    taken: u32,
    displaced: u32,
}

impl Seen {
    /// Whether a job was displaced since `before`.
    pub fn was_displaced_since(self, before: Seen) -> bool {
        self.displaced != before.displaced
    }
}

impl Processor {
    /// A job has ended; nothing runs until somebody takes the processor again.
    pub fn vacate(&self) {
        self.word.store(IDLE, Ordering::Relaxed);
    }

    /// What it has counted. What the caller does stays before and after this.
    pub fn seen(&self) -> Seen {
        compiler_fence(Ordering::SeqCst);
        let seen = Seen {
            taken: self.taken.load(Ordering::Relaxed),
            displaced: self.displaced.load(Ordering::Relaxed),
        };
        compiler_fence(Ordering::SeqCst);
        seen
    }

    /// Another thread than that of a lane records that the job which runs was preempted at `now`.
    pub fn count_preemption(&self, now: Instant) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.count_displaced(now);
    }

    /// The job that ran is recorded as preempted at `now`.
    pub fn count_displaced(&self, now: Instant) {
        self.goes_on(now);
        self.displaced.fetch_add(1, Ordering::Relaxed);
    }

    /// The job that was displaced is recorded as going on at `now`.
    pub fn goes_on(&self, now: Instant) {
        self.recorded_at.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// The instant at which a job was last recorded as displaced or going on.
    pub fn recorded_at(&self) -> Instant {
        Instant::from_nanos(self.recorded_at.load(Ordering::Relaxed))
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
        let displaced = processor.word.swap(job.pack(), Ordering::Relaxed);
        if self.holding.is_some() {
            return None;
        }
        processor.taken.fetch_add(1, Ordering::Relaxed);
        let victim =
            (displaced != IDLE).then(|| JobId::unpack(displaced)).filter(|victim| is_under_way(*victim));
        self.holding = Some(Holding { victim });
        victim
    }

    /// The thread has nothing to do and gives the processor back. Returns the job that goes on, if one does.
    pub fn leave(&mut self, processor: &Processor, is_under_way: impl Fn(JobId) -> bool) -> Option<JobId> {
        let victim = self.holding.take()?.victim.filter(|victim| is_under_way(*victim));
        processor.word.store(victim.map_or(IDLE, JobId::pack), Ordering::Relaxed);
        victim
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::OperationId;

    fn job(operation: usize) -> JobId {
        JobId { operation: OperationId::from_index(operation), instance: 7 }
    }

    /// A higher thread comes between two steps of a lower one: what has been counted tells the lower one whether it was recorded as displaced.
    #[test]
    fn what_was_recorded_of_a_job_is_counted() {
        let (processor, mut low, mut high) = (Processor::default(), Stay::default(), Stay::default());
        let (victim, urgent) = (job(1), job(0));
        assert_eq!(low.take(&processor, victim, |_| true), None);
        let began = processor.seen();
        // While the job is under way it is displaced, and says so.
        assert_eq!(high.take(&processor, urgent, |_| true), Some(victim));
        processor.count_displaced(Instant::from_nanos(5));
        assert_eq!(high.leave(&processor, |_| true), Some(victim));
        let displaced = processor.seen();
        assert!(displaced.was_displaced_since(began) && processor.recorded_at() == Instant::from_nanos(5));
        // When it has ended nobody is.
        assert_eq!(high.take(&processor, urgent, |_| false), None);
        assert_eq!(high.leave(&processor, |_| false), None);
        assert!(!processor.seen().was_displaced_since(displaced));
        // That others ran is seen all the same.
        assert_ne!(processor.seen(), displaced);
        // Nor is one's own job after another.
        processor.vacate();
        let before = processor.seen();
        assert_eq!(low.take(&processor, job(2), |_| true), None);
        assert_eq!(processor.seen(), before);
    }
}
