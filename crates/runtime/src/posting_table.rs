//! What the threads of a process share about posted work, in memory that is there from the beginning.

use crate::operation::Behaviour;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_operation::{Operation, PostingRoom};
use talea_record::JobId;
use talea_record::event::{JobOrNone, WordType};
use talea_time::Work;

/// The code of declared operations, and what came with their jobs.
pub(crate) struct PostingTable {
    /// Number of the first operation that can be declared; the others follow.
    first_operation: usize,
    /// Tag of the first job; the others follow.
    first_tag: usize,
    /// Jobs of one operation that can be in flight.
    window: usize,
    /// Which of the process's runs it is.
    run: u64,
    behaviours: Box<[OnceLock<Behaviour>]>,
    /// The number of the next job, by operation.
    next: Box<[AtomicU64]>,
    /// By job.
    handles: Box<[AtomicU64]>,
    /// By job: the longest that it executes, in ns; 0 where its operation says it.
    wcets: Box<[AtomicU64]>,
    /// By job: the one that posted it, as a record has it.
    posters: Box<[AtomicU64]>,
}

impl PostingTable {
    /// Of this run of the process.
    pub fn new(run: u64, room: PostingRoom, first_operation: usize, first_tag: usize) -> Self {
        PostingTable {
            first_operation,
            first_tag,
            window: room.window(),
            run,
            behaviours: (0..room.operations).map(|_| OnceLock::new()).collect(),
            next: (0..room.operations).map(|_| AtomicU64::new(0)).collect(),
            handles: (0..room.all_jobs()).map(|_| AtomicU64::new(0)).collect(),
            wcets: (0..room.all_jobs()).map(|_| AtomicU64::new(0)).collect(),
            posters: (0..room.all_jobs()).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub fn has_room(&self) -> bool {
        !self.behaviours.is_empty()
    }

    /// Which of the process's runs it is.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Jobs of one operation that can be in flight.
    pub fn window(&self) -> usize {
        self.window
    }

    /// The code of the operation of this number, which is one that was declared.
    pub fn behaviour(&self, operation: usize) -> &Behaviour {
        self.behaviours[operation - self.first_operation].get().expect("the operation has been declared")
    }

    /// Gives the operation of this number its code.
    ///
    /// # Panics
    /// If it has code.
    pub fn declare(&self, number: usize, operation: Operation) {
        let behaviour = &self.behaviours[number - self.first_operation];
        assert!(behaviour.set(Behaviour::of(Some(operation))).is_ok(), "an operation is declared once");
    }

    /// The number that the next job of the operation may have.
    pub fn next(&self, operation: usize) -> u64 {
        self.next[operation - self.first_operation].load(Ordering::Relaxed)
    }

    /// A number for the next job of the operation.
    pub fn next_instance(&self, operation: usize) -> u64 {
        self.next[operation - self.first_operation].fetch_add(1, Ordering::Relaxed)
    }

    /// What came with the job; 0 with one that was not posted.
    pub fn handle(&self, tag: u32) -> u64 {
        self.load(&self.handles, tag)
    }

    /// The longest that the job executes, if it was posted with an execution time of its own.
    #[inline]
    pub fn wcet(&self, tag: u32) -> Option<Work> {
        let ns = self.load(&self.wcets, tag);
        (ns != 0).then(|| Work::from_nanos(ns as i64))
    }

    /// Who posted the job.
    pub fn poster(&self, tag: u32) -> JobOrNone {
        JobOrNone::from_bits(self.load(&self.posters, tag))
    }

    /// The word of the job; 0 of one that was not posted.
    #[inline]
    fn load(&self, words: &[AtomicU64], tag: u32) -> u64 {
        let word = (tag as usize).checked_sub(self.first_tag).and_then(|place| words.get(place));
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// What comes with the job, and who posts it. To be said between the claim of the job and the push of its tag, which publishes it.
    pub fn set(&self, tag: u32, (handle, wcet): (u64, Option<Work>), poster: Option<JobId>) {
        let place = tag as usize - self.first_tag;
        self.handles[place].store(handle, Ordering::Relaxed);
        self.wcets[place].store(wcet.map_or(0, |wcet| wcet.as_nanos().unsigned_abs()), Ordering::Relaxed);
        self.posters[place].store(JobOrNone(poster).bits(), Ordering::Relaxed);
    }
}
