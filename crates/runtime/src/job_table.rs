//! The jobs in flight: one preallocated entry per operation and instance of a bounded window. Lanes and
//! threads hand each other the number of the entry, its *tag*; the job itself is read here.
//!
//! ```text
//!           claim             begin              finish: Completed
//!   FREE ────(1)───► WAITING ──(2)───► RUNNING ──────(3)──────────► ENDED
//!    ▲                  │ abort           │ abort                    ▲ │
//!    │                  ▼ (4)             ▼ (5)     finish: Aborted  │ │
//!    │                 DEAD            STOPPING ─────(6)─────────────┘ │
//!    └──── forget (7) ──┴──────────────── forget (7) ──────────────────┘
//! ```
//!
//! 1. The releaser claims the entry of instance `k`, position `k mod window`. If the job of instance
//!    `k - window` is still there the window is full, and the releaser says so instead of waiting. It then
//!    writes the job's times beside the word; who is given the tag through an inbox finds them there.
//! 2. The thread that is to run the job begins it.
//! 3. The job has completed.
//! 4. The instance is aborted while the job waits. The lane drops it when it gets to it.
//! 5. The instance is aborted while the job runs: it is told to stop, and
//! 6. ends as aborted, even if it was just about to complete.
//! 7. The lane has removed the job from its queue. Until then the entry stays taken, because the queue
//!    knows the job by it.
//!
//! Each transition of the word is one atomic read-modify-write, so abort and begin, or abort and finish, agree on which
//! came first, and exactly one thread records how a job ended. The instance number is part of the word:
//! a request about instance `k` never hits instance `k + window`.

use crate::window::Windows;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use talea_time::Instant;

const FREE: u64 = 0;
const WAITING: u64 = 1;
const RUNNING: u64 = 2;
const STOPPING: u64 = 3;
const DEAD: u64 = 4;
const ENDED: u64 = 5;

const STATE_BITS: u32 = 3;

const fn word(instance: u64, state: u64) -> u64 {
    instance << STATE_BITS | state
}

const fn state(word: u64) -> u64 {
    word & ((1 << STATE_BITS) - 1)
}

/// The index of a job's entry; inboxes carry it, and a lane's queue knows the job by it.
pub(crate) type Tag = u32;

/// What the table keeps of a job in flight beside its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub instance: u64,
    /// The release that orders the job.
    pub release: Instant,
    pub deadline: Instant,
}

/// The window of an operation is full: the job that used the entry before is unfinished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowFull;

/// What an abort found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abort {
    /// The job waited and will never begin. The caller records the abort.
    Waiting,
    /// The job runs and has been told to stop. Whoever runs it records the abort.
    Running,
    /// There is no such job, or it was aborted before.
    Gone,
}

/// What had become of a job that is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It has ended.
    Ended,
    /// It was aborted before it began.
    Dead,
}

/// What a thread that is to run a job found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The job runs now.
    Run,
    /// It was aborted while it waited.
    Dead,
    /// It still waits: others have come into its lane since it was chosen, and may have to go first.
    NotYet,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// Nobody told it to stop.
    Completed,
    /// It was told to stop.
    Aborted,
}

/// What the table knows of one job.
struct Entry {
    /// The instance and its state.
    word: AtomicU64,
    /// Nanoseconds. Written by the releaser between transition 1 and the push of the tag, read by those who
    /// were given the tag; so the accesses are relaxed.
    release: AtomicI64,
    /// As `release`.
    deadline: AtomicI64,
    /// The operation whose window the entry is in.
    operation: u32,
}

impl Entry {
    fn of(operation: usize) -> Self {
        let (word, release, deadline) = (AtomicU64::new(FREE), AtomicI64::new(0), AtomicI64::new(0));
        Entry { word, release, deadline, operation: operation as u32 }
    }
}

/// All jobs that one process may have in flight.
pub(crate) struct JobTable {
    entries: Box<[Entry]>,
    windows: Windows,
}

impl JobTable {
    /// Room for as many instances of each operation as its window has.
    ///
    /// # Panics
    /// If a window is not a power of two or the jobs outnumber the tags.
    pub fn new(windows: &[usize]) -> Self {
        let each = |(operation, window): (usize, &usize)| (0..*window).map(move |_| Entry::of(operation));
        JobTable {
            entries: windows.iter().enumerate().flat_map(each).collect(),
            windows: Windows::new(windows.iter().copied()),
        }
    }

    /// How many jobs it has room for; tags are smaller.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    fn word(&self, tag: Tag) -> &AtomicU64 {
        &self.entries[tag as usize].word
    }

    /// The tag of an operation's `instance`. `operation` counts the operations of this process.
    pub fn tag(&self, operation: usize, instance: u64) -> Tag {
        self.windows.place(operation, instance)
    }

    /// The operation behind a tag.
    pub fn operation(&self, tag: Tag) -> usize {
        self.entries[tag as usize].operation as usize
    }

    /// Whether the job's entry is free.
    pub fn has_room(&self, operation: usize, instance: u64) -> bool {
        state(self.word(self.tag(operation, instance)).load(Ordering::Acquire)) == FREE
    }

    /// Transition 1.
    pub fn claim(&self, operation: usize, job: InFlight) -> Result<Tag, WindowFull> {
        let InFlight { instance, release, deadline } = job;
        let tag = self.tag(operation, instance);
        let entry = &self.entries[tag as usize];
        let seen = entry.word.load(Ordering::Acquire);
        if state(seen) != FREE {
            return Err(WindowFull);
        }
        entry
            .word
            .compare_exchange(seen, word(instance, WAITING), Ordering::AcqRel, Ordering::Relaxed)
            .map_err(|_| WindowFull)?;
        entry.release.store(release.as_nanos(), Ordering::Relaxed);
        entry.deadline.store(deadline.as_nanos(), Ordering::Relaxed);
        Ok(tag)
    }

    /// The job, which was claimed when it was signalled, is released at this instant. To be said by whoever was given the tag.
    pub fn set_release(&self, tag: Tag, release: Instant) {
        self.entries[tag as usize].release.store(release.as_nanos(), Ordering::Relaxed);
    }

    /// The job in flight whose tag came through an inbox, until it is forgotten.
    pub fn in_flight(&self, tag: Tag) -> InFlight {
        let entry = &self.entries[tag as usize];
        InFlight {
            instance: entry.word.load(Ordering::Relaxed) >> STATE_BITS,
            release: Instant::from_nanos(entry.release.load(Ordering::Relaxed)),
            deadline: Instant::from_nanos(entry.deadline.load(Ordering::Relaxed)),
        }
    }

    /// Transition 2, unless the job is dead.
    ///
    /// # Panics
    /// If the job neither waits nor is dead: it was lost or is run twice.
    pub fn begin(&self, tag: Tag, instance: u64) -> Begin {
        let cell = self.word(tag);
        let waiting = word(instance, WAITING);
        match cell.compare_exchange(waiting, word(instance, RUNNING), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Begin::Run,
            Err(seen) => {
                assert_eq!(seen, word(instance, DEAD), "a job that begins neither waits nor is dead");
                Begin::Dead
            }
        }
    }

    /// Transition 3 or 6.
    ///
    /// # Panics
    /// If the job does not run.
    pub fn finish(&self, tag: Tag, instance: u64) -> Finish {
        let before = self.word(tag).swap(word(instance, ENDED), Ordering::AcqRel);
        match before {
            seen if seen == word(instance, RUNNING) => Finish::Completed,
            seen if seen == word(instance, STOPPING) => Finish::Aborted,
            seen => panic!("a job that ends does not run: {seen:#x}"),
        }
    }

    /// Transition 7.
    ///
    /// # Panics
    /// If the job waits or runs.
    pub fn forget(&self, tag: Tag, instance: u64) -> Gone {
        match self.word(tag).swap(word(instance, FREE), Ordering::AcqRel) {
            before if before == word(instance, ENDED) => Gone::Ended,
            before if before == word(instance, DEAD) => Gone::Dead,
            before => panic!("a job that is forgotten waits or runs: {before:#x}"),
        }
    }

    /// Transition 4 or 5.
    pub fn abort(&self, operation: usize, instance: u64) -> Abort {
        let cell = self.word(self.tag(operation, instance));
        let change = |from, to| {
            cell.compare_exchange(
                word(instance, from),
                word(instance, to),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
        };
        // A job only moves from WAITING to RUNNING meanwhile, so this order misses neither.
        if change(WAITING, DEAD) {
            Abort::Waiting
        } else if change(RUNNING, STOPPING) {
            Abort::Running
        } else {
            Abort::Gone
        }
    }

    /// Whether the job was aborted while it waited. True until it is forgotten.
    pub fn is_dead(&self, tag: Tag, instance: u64) -> bool {
        self.word(tag).load(Ordering::Acquire) == word(instance, DEAD)
    }

    /// Whether the job has been told to stop.
    pub fn is_stopping(&self, tag: Tag, instance: u64) -> bool {
        self.word(tag).load(Ordering::Relaxed) == word(instance, STOPPING)
    }

    /// How many jobs of the operation have been claimed and have not begun: those before this instance, and this one with those behind it.
    pub fn waiting(&self, operation: usize, instance: u64) -> (usize, usize) {
        let mut counts = (0, 0);
        for tag in self.windows.of(operation) {
            let seen = self.word(tag).load(Ordering::Acquire);
            if state(seen) == WAITING {
                *(if seen >> STATE_BITS < instance { &mut counts.0 } else { &mut counts.1 }) += 1;
            }
        }
        counts
    }

    /// Whether the job has begun and not ended.
    pub fn is_under_way(&self, tag: Tag, instance: u64) -> bool {
        let seen = self.word(tag).load(Ordering::Acquire);
        seen == word(instance, RUNNING) || seen == word(instance, STOPPING)
    }

    /// Whether the operation's `instance` waits: at its guard, or in its lane, and has not begun. If so, whoever begins it later sees all that the
    /// caller has done before.
    pub fn is_waiting(&self, operation: usize, instance: u64) -> bool {
        let (cell, waiting) = (self.word(self.tag(operation, instance)), word(instance, WAITING));
        // An exchange, not a load: this and the beginning are in one order, and the later of the two sees what was written before the other.
        cell.compare_exchange(waiting, waiting, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether any instance of the operation before this one [waits](Self::is_waiting). Looks at all of them.
    pub fn any_waits_before(&self, operation: usize, instance: u64) -> bool {
        self.windows.of(operation).any(|tag| {
            let seen = self.word(tag).load(Ordering::Relaxed);
            let before = seen >> STATE_BITS;
            state(seen) == WAITING && before < instance && self.is_waiting(operation, before)
        })
    }

    /// Whether the operation's `instance` is released and has neither ended nor been aborted before it
    /// began. The job's word alone says so, so a job that [`JobTable::finish`] has ended is never taken
    /// for an unfinished one, wherever the thread that ran it was interrupted.
    pub fn is_unfinished(&self, operation: usize, instance: u64) -> bool {
        let seen = self.word(self.tag(operation, instance)).load(Ordering::Acquire);
        [WAITING, RUNNING, STOPPING].into_iter().any(|state| seen == word(instance, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(instance: u64) -> InFlight {
        let at = |offset| Instant::from_nanos(100 * instance as i64 + offset);
        InFlight { instance, release: at(1), deadline: at(2) }
    }

    fn claim(table: &JobTable, operation: usize, instance: u64) -> Result<Tag, WindowFull> {
        table.claim(operation, job(instance))
    }

    #[test]
    fn a_job_passes_from_claim_to_completion_and_frees_its_word() {
        let table = JobTable::new(&[4; 2]);
        let tag = claim(&table, 1, 5).unwrap();
        assert_eq!((table.operation(tag), table.is_unfinished(1, 5)), (1, true));
        assert_eq!(table.begin(tag, 5), Begin::Run);
        assert!(table.is_under_way(tag, 5) && !table.is_under_way(tag, 9));
        assert_eq!(table.finish(tag, 5), Finish::Completed);
        assert_eq!((table.is_unfinished(1, 5), claim(&table, 1, 9)), (false, Err(WindowFull)));
        table.forget(tag, 5);
        assert_eq!(claim(&table, 1, 9), Ok(tag));
    }

    #[test]
    fn the_window_bounds_the_instances_of_one_operation_only() {
        let table = JobTable::new(&[2; 2]);
        assert!(claim(&table, 0, 0).is_ok() && claim(&table, 0, 1).is_ok());
        assert_eq!(claim(&table, 0, 2), Err(WindowFull));
        assert!(claim(&table, 1, 2).is_ok());
    }

    #[test]
    fn who_knows_the_tag_finds_the_job_in_every_state() {
        let table = JobTable::new(&[2; 2]);
        let tags = [4, 5].map(|instance| claim(&table, 1, instance).unwrap());
        assert_eq!(table.abort(1, 4), Abort::Waiting);
        assert_eq!(table.begin(tags[1], 5), Begin::Run);
        assert_eq!(tags.map(|tag| table.in_flight(tag)), [job(4), job(5)]);
        table.forget(tags[0], 4);
        assert_eq!(claim(&table, 1, 6), Ok(tags[0]));
        assert_eq!(table.in_flight(tags[0]), job(6));
    }

    #[test]
    fn an_abort_before_the_beginning_keeps_the_word_until_the_lane_drops_the_job() {
        let table = JobTable::new(&[1; 1]);
        let tag = claim(&table, 0, 0).unwrap();
        assert_eq!(table.abort(0, 0), Abort::Waiting);
        assert_eq!(table.abort(0, 0), Abort::Gone);
        assert_eq!((table.is_unfinished(0, 0), claim(&table, 0, 1)), (false, Err(WindowFull)));
        assert_eq!(table.begin(tag, 0), Begin::Dead);
        assert!(table.is_dead(tag, 0));
        table.forget(tag, 0);
        assert!(claim(&table, 0, 1).is_ok());
    }

    #[test]
    fn an_abort_of_a_running_job_decides_how_it_ends() {
        let table = JobTable::new(&[1; 1]);
        let tag = claim(&table, 0, 3).unwrap();
        assert_eq!(table.begin(tag, 3), Begin::Run);
        assert!(!table.is_stopping(tag, 3));
        assert_eq!(table.abort(0, 3), Abort::Running);
        assert!(table.is_stopping(tag, 3) && table.is_unfinished(0, 3));
        assert_eq!(table.finish(tag, 3), Finish::Aborted);
        assert_eq!(table.abort(0, 3), Abort::Gone);
    }

    #[test]
    fn a_request_about_an_earlier_instance_of_the_same_word_does_nothing() {
        let table = JobTable::new(&[2; 1]);
        claim(&table, 0, 2).unwrap();
        assert_eq!(table.abort(0, 0), Abort::Gone);
        assert!(table.is_unfinished(0, 2) && !table.is_unfinished(0, 0));
    }

    #[test]
    fn a_job_waits_until_it_begins_or_is_aborted() {
        let table = JobTable::new(&[2]);
        assert!(!table.is_waiting(0, 0));
        let tag = claim(&table, 0, 0).unwrap();
        assert!(table.is_waiting(0, 0) && !table.is_waiting(0, 2));
        assert!(table.any_waits_before(0, 2) && !table.any_waits_before(0, 0));
        assert_eq!(table.begin(tag, 0), Begin::Run);
        assert!(!table.is_waiting(0, 0) && table.is_unfinished(0, 0) && !table.any_waits_before(0, 2));
        claim(&table, 0, 1).unwrap();
        assert_eq!(table.abort(0, 1), Abort::Waiting);
        assert!(!table.is_waiting(0, 1));
    }

    #[test]
    #[should_panic(expected = "neither waits nor is dead")]
    fn beginning_a_job_twice_is_a_broken_invariant() {
        let table = JobTable::new(&[1; 1]);
        let tag = claim(&table, 0, 0).unwrap();
        let _ = table.begin(tag, 0);
        let _ = table.begin(tag, 0);
    }
}
