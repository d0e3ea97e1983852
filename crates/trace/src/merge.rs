//! Several rings as one stream in the order of time.
//!
//! Each ring is in the order of time by itself, so a k-way merge suffices. The order is total: time,
//! then the ring's place in the list given to [`Merge::new`], then the position in the ring.
//!
//! While writers are at work, a record may be delivered once no earlier one can still appear. Only the
//! caller knows when that is: between reading the clock and writing the record a thread can be
//! preempted. [`Merge::poll`] therefore takes a horizon, usually "now" minus the longest such delay
//! (10 ms is generous for real-time threads); a record that turns up behind what was delivered is
//! delivered all the same and counted in [`Merge::late`].

use crate::ring::RingReader;
use crate::{Metadata, Record, Sink, TraceFile};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use talea_time::Instant;
use thiserror::Error;

/// A k-way merge of rings.
#[derive(Debug)]
pub struct Merge {
    readers: Vec<RingReader>,
    /// The time of the next record of each ring that has one.
    waiting: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The rings that had nothing when last looked at.
    idle: Vec<usize>,
    latest: Instant,
    late: u64,
}

/// The files do not belong to one run: their tables differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "trace file {index} (counted from 0) describes another system than the first one; merge files of one run only"
)]
pub struct DifferentRuns {
    /// The first file that differs from file 0.
    pub index: usize,
}

impl Merge {
    /// Merges these rings, in this order where times are equal.
    pub fn new(readers: Vec<RingReader>) -> Self {
        let idle = (0..readers.len()).collect();
        let waiting = BinaryHeap::with_capacity(readers.len());
        Merge { readers, waiting, idle, latest: Instant::from_nanos(i64::MIN), late: 0 }
    }

    /// Follows all rings of several files, such as those of the node processes of one run. Logs among
    /// them contribute nothing.
    ///
    /// # Errors
    /// If the tables of the files differ.
    pub fn of_files(files: &[TraceFile]) -> Result<Self, DifferentRuns> {
        let tables = |metadata: &Metadata| {
            // One process may lack real-time priority where another has it.
            let mut tables = metadata.clone();
            tables.origin = files[0].metadata().origin;
            tables
        };
        for (index, file) in files.iter().enumerate() {
            if tables(file.metadata()) != *files[0].metadata() {
                return Err(DifferentRuns { index });
            }
        }
        Ok(Merge::new(files.iter().flat_map(TraceFile::rings).collect()))
    }

    /// Delivers every record before `horizon` in order of time and returns their number.
    pub fn poll(&mut self, horizon: Instant, sink: &mut impl Sink) -> u64 {
        self.refresh();
        let mut delivered = 0;
        while self.waiting.peek().is_some_and(|Reverse((time, _))| *time < horizon) {
            let record = self.take().expect("a ring is waiting");
            sink.record(record);
            delivered += 1;
        }
        delivered
    }

    /// Delivers everything there is, for when all writers are done.
    pub fn drain(&mut self, sink: &mut impl Sink) -> u64 {
        self.refresh();
        let mut delivered = 0;
        while let Some(record) = self.next_available() {
            sink.record(record);
            delivered += 1;
        }
        delivered
    }

    /// The earliest record there is, regardless of any horizon.
    pub(crate) fn next_available(&mut self) -> Option<Record> {
        if self.waiting.is_empty() {
            self.refresh();
        }
        self.take()
    }

    /// Records delivered behind a later one, because they were written after their horizon had passed.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Looks again at rings that had nothing.
    fn refresh(&mut self) {
        let (readers, waiting) = (&mut self.readers, &mut self.waiting);
        self.idle.retain(|ring| match readers[*ring].peek() {
            Some(record) => {
                waiting.push(Reverse((record.time, *ring)));
                false
            }
            None => true,
        });
    }

    /// Takes the earliest record of the waiting rings.
    fn take(&mut self) -> Option<Record> {
        let Reverse((_, ring)) = self.waiting.pop()?;
        let record = self.readers[ring].take().expect("a waiting ring has a record");
        match self.readers[ring].peek() {
            Some(next) => self.waiting.push(Reverse((next.time, ring))),
            None => self.idle.push(ring),
        }
        self.late += u64::from(record.time < self.latest);
        self.latest = self.latest.max(record.time);
        Some(record)
    }
}
