//! Writing a ring.

use super::RingReader;
use crate::definition::Definition;
use crate::live::slots::PinnedSlots;
use crate::live::{Claimed, LiveFile, NoRoom, registry};
use crate::passive::PASSIVE_WORDS;
use crate::{Record, Sink, parts};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_ring::header::{Header, Place, Writer};
use talea_time::Instant;

/// The one writer of a ring. Dropping it marks the ring closed.
#[derive(Debug)]
pub struct RingWriter {
    slots: PinnedSlots,
    /// Records written so far; equal to the ring's head.
    position: Cell<u64>,
    /// The latest instant written by [`Self::put`], in nanoseconds.
    latest: Cell<i64>,
    place: Place,
}

/// Enters definitions into a stream while its run lasts.
#[derive(Clone, Debug)]
pub struct Definer(Arc<LiveFile>);

impl Definer {
    pub(super) fn of(live: &Arc<LiveFile>) -> Self {
        Definer(Arc::clone(live))
    }

    /// Enters a definition, which has to come before the records that it is for are read. Allocates, and may wait.
    ///
    /// # Errors
    /// There is no room; nothing has been entered.
    pub fn define(&self, definition: &Definition) -> Result<(), NoRoom> {
        registry::define(&self.0, definition)
    }
}

impl RingWriter {
    /// The writer of ring `index`, which nobody else has or will have.
    pub(super) fn open(live: &Arc<LiveFile>, index: usize) -> Self {
        let place = live.places[index].clone();
        place.header_in(&*live.mapping).open();
        Self::new(live, Claimed { mapping: Arc::clone(&live.mapping), place }, 0)
    }

    /// The writer of a spare or later ring; `None` if all are taken.
    pub(crate) fn claim(live: &Arc<LiveFile>, name: &str) -> Option<Self> {
        let claimed = live.claim()?;
        let header = claimed.place.header_in(&*claimed.mapping);
        header.set_name(name);
        let position = header.head().load(Ordering::Relaxed);
        header.open();
        let writer = Self::new(live, claimed.clone(), position);
        writer.latest.set(writer.last().map_or(i64::MIN, |record| record.time.as_nanos()));
        Some(writer)
    }

    fn new(live: &Arc<LiveFile>, claimed: Claimed, position: u64) -> Self {
        let Claimed { mapping, place } = claimed;
        let slots = PinnedSlots::new(live, &mapping, place.head(), place.slots.clone());
        let (position, latest) = (Cell::new(position), Cell::new(i64::MIN));
        RingWriter { slots, position, latest, place }
    }

    /// What was written last.
    fn last(&self) -> Option<Record> {
        let (mut cursor, mut records) = (self.position.get().checked_sub(1)?, Vec::new());
        self.slots.slots().read(&mut cursor, 1, &mut records);
        records.pop().map(Record::from_words)
    }

    /// Who enters definitions into the stream that the ring is of.
    pub fn definer(&self) -> Definer {
        Definer::of(self.live())
    }

    /// Records written so far, by earlier writers of a spare ring too.
    pub fn written(&self) -> u64 {
        self.position.get()
    }

    /// The latest instant of the records that it has written; what is written next has none before.
    pub fn latest(&self) -> Instant {
        Instant::from_nanos(self.latest.get())
    }

    /// A reader of the ring from what is written next on.
    pub fn reader(&self) -> RingReader {
        let is_own = |place: &Place| place.header == self.place.header;
        let own = self.live().places.iter().position(is_own);
        // Later rings have no number here, and nobody asks for it.
        let index = own.unwrap_or(usize::from(Record::NO_WRITER));
        RingReader::new(self.slots.mapping(), &self.place, index, None).starting_at(self.position.get())
    }

    /// Whether anybody wants what has this switch.
    #[inline]
    pub fn is_wanted(&self, switch: usize) -> bool {
        self.live().control().switches()[switch].load(Ordering::Relaxed) != 0
    }

    /// Says in the ring's header whose ring it is, in the words of a [`crate::Event::THREAD`] record. Whoever follows the
    /// ring later finds it there, when the record itself is overwritten or was not asked for.
    pub fn identify(&self, thread: &Record) {
        let place =
            u64::from(thread.words[1] as u32) | u64::from(thread.source) << 32 | u64::from(thread.arg) << 48;
        let writer = Writer { thread: thread.words[0], place, first: self.position.get() };
        self.header().identify(writer);
    }

    fn header(&self) -> Header<'_, AtomicU64> {
        self.place.header_in(&**self.slots.mapping())
    }

    pub(crate) fn live(&self) -> &Arc<LiveFile> {
        self.slots.live()
    }

    /// So many words of the passive area of the ring's stream from `place` on; `None` if it has no such words.
    pub(crate) fn passive(&self, place: usize, length: usize) -> Option<&[AtomicU64]> {
        let end = place.checked_add(length).filter(|end| *end <= PASSIVE_WORDS)?;
        let first = (self.live().regions().passive.start / 8) as usize;
        self.live().mapping.words().get(first + place..first + end)
    }

    /// Writes a record, at its instant or at that of the record before, whichever is later: so time does not go back
    /// within a ring whose records have time stamps from several sources.
    #[inline]
    pub(crate) fn put(&self, mut words: [u64; Record::WORDS]) {
        let time = (words[0] as i64).max(self.latest.get());
        self.latest.set(time);
        words[0] = time as u64;
        self.write(words);
    }

    /// As [`Self::put`], of an event with a long field that has these bytes: they stand in records before it, and it is there with the last one.
    #[inline]
    pub(crate) fn put_long(&self, event: Record, bytes: &[u8]) {
        let time = Instant::from_nanos(event.time.as_nanos().max(self.latest.get()));
        self.latest.set(time.as_nanos());
        parts::records(bytes, time, event.cpu).for_each(|part| self.write(part.to_words()));
        self.write(Record { time, source: parts::mark(bytes.len()), ..event }.to_words());
    }

    #[inline]
    fn write(&self, words: [u64; Record::WORDS]) {
        let position = self.position.get();
        self.slots.slots().write(position, words);
        self.position.set(position.wrapping_add(1));
    }
}

impl Sink for RingWriter {
    /// Writes one record: no wait, no allocation, no system call.
    #[inline]
    fn record(&mut self, record: Record) {
        self.write(record.to_words());
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        self.header().close(&self.live().control());
    }
}
