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
//! Each step is one store, so a preemption between two steps leaves the word with the job that was in it. But what a job does and the instant that
//! it notes for it are two steps, and whoever preempts it exactly between them records instants that are later. So
//! - a thread that changes the word reads it ([`Processor::found`]), reads the clock, and changes it only if no other thread has changed it since;
//!   else it starts again. So no other thread makes a record between that reading of the clock and the change;
//! - a job that ends reads the clock and ends. If it was recorded as displaced in between, its end is put after the last record of that. Whoever sees
//!   that it has ended reads the clock later still.
//!
//! A job that waits for room in an input gives the word back as a lane does that goes to sleep. Where the code of an operation *blocks*, lower lanes
//! run although its lane is not asleep; what runs meanwhile is recorded as started but not as preempted. On nodes of several processors threads migrate and the
//! word would lie; there, and without real-time priorities, no preemption is recorded at all.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering, compiler_fence};
use talea_linux::clock::MonotonicClock;
use talea_record::JobId;
use talea_time::{Clock, Instant};

/// No job: not a packed job of any system.
const IDLE: u64 = u64::MAX;

/// Each change of the word sets this bit, and reading it by [`Processor::found`] clears it, so that a thread sees whether another one has changed the word
/// since. A packed job has it only from operation 524,288 on.
const STEPPED: u64 = 1 << 63;

/// The word of a processor.
#[derive(Debug)]
pub(crate) struct Processor {
    word: AtomicU64,
    /// How often a job was displaced, and recorded as preempted.
    displaced: AtomicU32,
    /// The instant of the last record that a job was displaced or goes on.
    recorded_at: AtomicI64,
}

impl Default for Processor {
    fn default() -> Self {
        Processor { word: AtomicU64::new(IDLE), displaced: AtomicU32::new(0), recorded_at: AtomicI64::new(0) }
    }
}

/// What stood in a processor's word when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found(u64);

impl Found {
    /// Whether it is this job.
    pub fn is(self, job: JobId) -> bool {
        self.0 == job.pack()
    }
}

/// Other threads have changed the word since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OthersRan;

impl Processor {
    /// A job has ended; nothing runs until somebody takes the processor again.
    pub fn vacate(&self) {
        self.word.store(IDLE, Ordering::Relaxed);
    }

    /// Reads the word, so that the next change of it is noticed. Only threads that run on the processor may do so. The compiler moves nothing of the
    /// caller's across this.
    pub fn found(&self) -> Found {
        compiler_fence(Ordering::SeqCst);
        let found = self.word.fetch_and(!STEPPED, Ordering::Relaxed) & !STEPPED;
        compiler_fence(Ordering::SeqCst);
        Found(found)
    }

    /// Puts `next` into the word if that is as it was `found`.
    fn step(&self, found: Found, next: u64) -> Result<(), OthersRan> {
        compiler_fence(Ordering::SeqCst);
        let (next, relaxed) = (next | STEPPED, Ordering::Relaxed);
        self.word.compare_exchange(found.0, next, relaxed, relaxed).map(drop).map_err(|_| OthersRan)
    }

    /// A job that runs has the processor, whoever was found to have it. Returns the instant from which it has.
    pub fn take_for(&self, job: JobId) -> Instant {
        loop {
            let (found, now) = (self.found(), MonotonicClock.now());
            if self.step(found, job.pack()).is_ok() {
                return now;
            }
        }
    }

    /// Whether the word has not been changed since it was read.
    pub fn is_as(&self, found: Found) -> bool {
        compiler_fence(Ordering::SeqCst);
        let is = self.word.load(Ordering::Relaxed) == found.0;
        compiler_fence(Ordering::SeqCst);
        is
    }

    /// How often a job was recorded as displaced on it. The compiler moves nothing of the caller's across this.
    pub fn displaced(&self) -> u32 {
        compiler_fence(Ordering::SeqCst);
        let displaced = self.displaced.load(Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        displaced
    }

    /// The job that ran is recorded as preempted at `now`.
    pub fn count_displaced(&self, now: Instant) {
        self.goes_on(now);
        self.displaced.fetch_add(1, Ordering::Relaxed);
    }

    /// The job that was displaced is recorded as going on at `now`.
    pub fn goes_on(&self, now: Instant) {
        // Another one may have been recorded since the caller read the clock.
        self.recorded_at.fetch_max(now.as_nanos(), Ordering::Relaxed);
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
    /// The thread gives the processor to `job`, from a lower thread, from another job of its own, or from nobody, if it is as it was `found`. Returns
    /// the job that it displaces, if that is still under way: what blocked and has ended since is nobody's victim.
    pub fn take(
        &mut self,
        (processor, found): (&Processor, Found),
        job: JobId,
        is_under_way: impl Fn(JobId) -> bool,
    ) -> Result<Option<JobId>, OthersRan> {
        processor.step(found, job.pack())?;
        if self.holding.is_some() {
            return Ok(None);
        }
        let is_idle = found.0 == IDLE & !STEPPED;
        let victim = (!is_idle).then(|| JobId::unpack(found.0)).filter(|victim| is_under_way(*victim));
        self.holding = Some(Holding { victim });
        Ok(victim)
    }

    /// The thread has nothing to do and gives the processor back, if it is as it was `found`. Returns the job that goes on, if one does.
    pub fn leave(
        &mut self,
        (processor, found): (&Processor, Found),
        is_under_way: impl Fn(JobId) -> bool,
    ) -> Result<Option<JobId>, OthersRan> {
        let Some(Holding { victim }) = self.holding else { return Ok(None) };
        let victim = victim.filter(|victim| is_under_way(*victim));
        processor.step(found, victim.map_or(IDLE, JobId::pack))?;
        self.holding = None;
        Ok(victim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::OperationId;

    fn job(operation: usize) -> JobId {
        JobId { operation: OperationId::from_index(operation), instance: 7 }
    }

    fn take(stay: &mut Stay, processor: &Processor, job: JobId, is_under_way: bool) -> Option<JobId> {
        stay.take((processor, processor.found()), job, |_| is_under_way).expect("nobody else runs")
    }

    fn leave(stay: &mut Stay, processor: &Processor, is_under_way: bool) -> Option<JobId> {
        stay.leave((processor, processor.found()), |_| is_under_way).expect("nobody else runs")
    }

    /// A higher thread comes between two steps of a lower one: what has been counted tells the lower one whether it was recorded as displaced.
    #[test]
    fn what_was_recorded_of_a_job_is_counted() {
        let (processor, mut low, mut high) = (Processor::default(), Stay::default(), Stay::default());
        let (victim, urgent) = (job(1), job(0));
        assert_eq!(take(&mut low, &processor, victim, true), None);
        let began = processor.displaced();
        // While the job is under way it is displaced, and says so.
        assert_eq!(take(&mut high, &processor, urgent, true), Some(victim));
        processor.count_displaced(Instant::from_nanos(5));
        assert_eq!(leave(&mut high, &processor, true), Some(victim));
        let displaced = processor.displaced();
        assert!(displaced != began && processor.recorded_at() == Instant::from_nanos(5));
        // When it has ended nobody is.
        assert_eq!(take(&mut high, &processor, urgent, false), None);
        assert_eq!(leave(&mut high, &processor, false), None);
        assert_eq!(processor.displaced(), displaced);
    }

    /// Between reading the word and changing it a higher thread comes, and leaves the same job in the word.
    #[test]
    fn the_word_is_not_changed_if_others_ran_since_it_was_read() {
        let (processor, mut low, mut high) = (Processor::default(), Stay::default(), Stay::default());
        let (outer, inner, urgent) = (job(1), job(2), job(0));
        let mut come_and_go = |is_under_way: bool| {
            take(&mut high, &processor, urgent, is_under_way);
            leave(&mut high, &processor, is_under_way);
        };
        // From nobody.
        let found = processor.found();
        come_and_go(false);
        assert!(!processor.is_as(found));
        assert_eq!(low.take((&processor, found), outer, |_| true), Err(OthersRan));
        assert_eq!(take(&mut low, &processor, outer, true), None);
        // From a job of its own, which is displaced once, and twice.
        for times in 1..=2 {
            let found = processor.found();
            (0..times).for_each(|_| come_and_go(true));
            assert_eq!(low.take((&processor, found), inner, |_| true), Err(OthersRan), "{times}");
        }
        let found = processor.found();
        assert_eq!(low.take((&processor, found), inner, |_| true), Ok(None));
        // A change to the same job is noticed, too.
        let found = processor.found();
        assert_eq!(take(&mut low, &processor, inner, true), None);
        assert!(!processor.is_as(found));
        processor.vacate();
        assert_eq!(high.take((&processor, processor.found()), urgent, |_| true), Ok(None));
    }
}
