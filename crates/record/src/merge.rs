//! Several sources of records as one stream in the order of time.
//!
//! Each source, a ring or a processor of the kernel stream, is in the order of time by itself, so a k-way
//! merge suffices. The order is total: time, then the source's place in the list given to [`Merge::new`],
//! then the position in the source.
//!
//! While writers are at work, a record may be delivered once no earlier one can still appear. Only the
//! caller knows when that is: between reading the clock and writing the record a thread can be
//! preempted. [`Merge::poll`] therefore takes a horizon, usually "now" minus the longest such delay
//! (10 ms is generous for real-time threads); a record that turns up behind what was delivered is
//! delivered all the same and counted in [`Merge::late`].

use crate::ring::RingReader;
use crate::{Record, Sink};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use talea_time::Instant;

/// Records of one writer, in the order of their time.
pub trait RecordSource {
    /// The next record, without taking it; `None` if there is none at the moment.
    fn peek(&mut self) -> Option<Record>;
    /// Takes the next record: the one that [`Self::peek`] shows, unless an earlier one has come since. `None` if there is
    /// none, or if the one whose turn has come turns out to say nothing.
    fn take(&mut self) -> Option<Record>;
    /// Copies all that is there into memory, so that none of it is overwritten while it waits for its turn.
    fn draw(&mut self) {}
}

impl RecordSource for RingReader {
    #[inline]
    fn peek(&mut self) -> Option<Record> {
        RingReader::peek(self)
    }
    #[inline]
    fn take(&mut self) -> Option<Record> {
        RingReader::take(self)
    }
    fn draw(&mut self) {
        RingReader::draw(self);
    }
}

/// A k-way merge of sources.
#[derive(Debug)]
pub struct Merge<S = RingReader> {
    sources: Vec<S>,
    /// The time of the next record of each source that has one.
    waiting: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The sources that had nothing when last looked at.
    idle: Vec<usize>,
    latest: Instant,
    late: u64,
}

impl Merge {
    /// Records that were overwritten before they could be read, over all rings.
    pub fn lost(&self) -> u64 {
        self.sources.iter().map(RingReader::missed).sum()
    }

    /// The rings, from where they have been read to.
    pub(crate) fn into_readers(self) -> Vec<RingReader> {
        self.sources
    }
}

impl<S: RecordSource> Merge<S> {
    /// Merges these sources, in this order where times are equal.
    pub fn new(sources: Vec<S>) -> Self {
        let idle = (0..sources.len()).collect();
        let waiting = BinaryHeap::with_capacity(sources.len());
        Merge { sources, waiting, idle, latest: Instant::from_nanos(i64::MIN), late: 0 }
    }

    /// Adds a source, behind the others where times are equal. What it has from before the last horizon
    /// is delivered late.
    pub fn add(&mut self, source: S) {
        self.idle.push(self.sources.len());
        self.sources.push(source);
    }

    /// The sources, in their order.
    pub fn sources(&self) -> &[S] {
        &self.sources
    }

    /// One of the sources, by its place. What it is given to say comes after what it has said to have next.
    pub fn source_mut(&mut self, place: usize) -> &mut S {
        &mut self.sources[place]
    }

    /// The sources, in their order, with what has not been delivered.
    pub fn into_sources(self) -> Vec<S> {
        self.sources
    }

    /// Delivers every record before `horizon` in order of time and returns their number. What is there behind it waits in memory.
    pub fn poll(&mut self, horizon: Instant, sink: &mut impl Sink) -> u64 {
        self.sources.iter_mut().for_each(RecordSource::draw);
        self.refresh();
        let mut delivered = 0;
        while self.waiting.peek().is_some_and(|Reverse((time, _))| *time < horizon) {
            delivered += self.take_run(horizon, sink);
        }
        delivered
    }

    /// Delivers everything there is, for when all writers are done.
    pub fn drain(&mut self, sink: &mut impl Sink) -> u64 {
        self.refresh();
        let mut delivered = 0;
        while !self.waiting.is_empty() {
            delivered += self.take_run(Instant::MAX, sink);
            if self.waiting.is_empty() {
                self.refresh();
            }
        }
        delivered
    }

    /// Delivers the earliest record of the waiting sources, and what its source has behind it before any other source's next record
    /// and before `horizon`: a thread that writes for a while alone is not sorted record by record.
    fn take_run(&mut self, horizon: Instant, sink: &mut impl Sink) -> u64 {
        let Some(Reverse((_, place))) = self.waiting.pop() else { return 0 };
        let other = self.waiting.peek().map(|Reverse(other)| *other);
        let source = &mut self.sources[place];
        let mut delivered = 0;
        loop {
            if let Some(record) = source.take() {
                self.late += u64::from(record.time < self.latest);
                self.latest = self.latest.max(record.time);
                sink.record(record);
                delivered += 1;
            }
            match source.peek() {
                None => self.idle.push(place),
                Some(next) if next.time < horizon && other.is_none_or(|other| (next.time, place) < other) => {
                    continue;
                }
                Some(next) => self.waiting.push(Reverse((next.time, place))),
            }
            return delivered;
        }
    }

    /// The earliest record there is, regardless of any horizon.
    pub(crate) fn next_available(&mut self) -> Option<Record> {
        if self.waiting.is_empty() {
            self.refresh();
        }
        self.take()
    }

    /// The caller has given the sink a record of this instant himself: what is delivered from before it is late.
    pub fn wrote_beside(&mut self, time: Instant) {
        self.latest = self.latest.max(time);
    }

    /// The instant of the last record that was delivered, or [given beside](Self::wrote_beside).
    pub fn latest(&self) -> Instant {
        self.latest
    }

    /// Records delivered behind a later one, because they were written after their horizon had passed.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Looks again at sources that had nothing.
    fn refresh(&mut self) {
        let (sources, waiting) = (&mut self.sources, &mut self.waiting);
        self.idle.retain(|source| match sources[*source].peek() {
            Some(record) => {
                waiting.push(Reverse((record.time, *source)));
                false
            }
            None => true,
        });
    }

    /// Takes the earliest record of the waiting sources.
    fn take(&mut self) -> Option<Record> {
        loop {
            let Reverse((_, source)) = self.waiting.pop()?;
            let taken = self.sources[source].take();
            match self.sources[source].peek() {
                Some(next) => self.waiting.push(Reverse((next.time, source))),
                None => self.idle.push(source),
            }
            let Some(record) = taken else { continue };
            self.late += u64::from(record.time < self.latest);
            self.latest = self.latest.max(record.time);
            return Some(record);
        }
    }
}
