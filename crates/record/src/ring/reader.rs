//! Reading a ring.

use super::{Place, RingState};
use crate::event::{Lost, Thread};
use crate::mapping::Mapping;
use crate::selection::RingFilter;
use crate::{Event, Record};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_text::printable;
use talea_ring::header::Header;
use talea_ring::slots::Slots;
use talea_time::Instant;

/// Records a reader copies at once.
const READ_AHEAD: usize = 256;

/// Follows one ring with a cursor of its own.
#[derive(Debug)]
pub struct RingReader {
    mapping: Arc<Mapping>,
    place: Place,
    index: u16,
    /// The next record to copy out of the ring.
    cursor: u64,
    /// Where to stop: `u64::MAX` follows the writer.
    end: u64,
    /// Records lost and not yet reported, all of them just before the next record.
    lost: u64,
    /// Records lost since the reader was made.
    missed: u64,
    /// The instant of the last record copied, in nanoseconds; 0 before the first.
    latest: i64,
    /// What is wanted of the ring; `None`: everything.
    filter: Option<RingFilter>,
    raw: Vec<[u64; Record::WORDS]>,
    /// Copied and not yet delivered.
    ready: VecDeque<Record>,
}

impl RingReader {
    /// A reader of ring number `index` from its beginning.
    pub(crate) fn new(mapping: &Arc<Mapping>, place: &Place, index: usize) -> Self {
        RingReader {
            mapping: Arc::clone(mapping),
            place: place.clone(),
            index: index as u16,
            cursor: 0,
            end: u64::MAX,
            lost: 0,
            missed: 0,
            latest: 0,
            filter: None,
            raw: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// The same reader, which leaves out what the filter does not want.
    pub(crate) fn filtered(mut self, filter: RingFilter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// The same reader from record number `position` on; what came before does not count as lost.
    pub(crate) fn starting_at(mut self, position: u64) -> Self {
        self.cursor = position;
        self
    }

    /// The same reader from the oldest record that the ring still holds; what came before does not count as lost.
    pub(crate) fn starting_at_oldest(self) -> Self {
        let kept = (self.place.slots.len() / Record::WORDS) as u64 - 1;
        let oldest = self.written().saturating_sub(kept);
        self.starting_at(oldest)
    }

    /// The next record, without taking it; `None` if there is none at the moment. A
    /// [`Event::LOST`] record has the time of the first record after the gap, `words[0]` records are
    /// lost since the instant `words[1]`, and `source` is the number of the ring in its file.
    #[inline]
    pub fn peek(&mut self) -> Option<Record> {
        if self.ready.is_empty() {
            self.refill();
        }
        self.ready.front().copied()
    }

    /// The record after the next one, if it has been copied.
    pub(crate) fn ahead(&self) -> Option<Record> {
        self.ready.get(1).copied()
    }

    /// Takes the next record, as [`Self::peek`] shows it.
    #[inline]
    pub fn take(&mut self) -> Option<Record> {
        self.peek()?;
        self.ready.pop_front()
    }

    /// Stops at what has been written by now, so that reading a ring at work comes to an end.
    pub(crate) fn up_to_now(mut self) -> Self {
        self.end = self.written();
        self
    }

    /// What the writer called itself.
    pub fn name(&self) -> String {
        printable(&self.header().name()).into_owned()
    }

    /// What the writer is doing. After [`RingState::Closed`], [`Self::take`] drains the rest, unless another thread
    /// takes the ring over, as it may a spare one.
    pub fn state(&self) -> RingState {
        self.header().state()
    }

    /// The thread that has the ring now; `None` if nobody has it or the writer has not said who it is.
    pub fn thread(&self) -> Option<Thread> {
        let (thread, place) = self.header().thread()?;
        Thread::read(&Record {
            time: Instant::ZERO,
            causal: 0,
            words: [thread, place & u64::from(u32::MAX)],
            event: Event::THREAD,
            source: (place >> 32) as u16,
            cpu: Record::NO_CPU,
            arg: (place >> 48) as u16,
        })
    }

    /// The instant of the latest record in the ring, wanted or not.
    pub(crate) fn latest(&self) -> Option<Instant> {
        let (mut cursor, mut raw) = (self.written().checked_sub(1)?, Vec::new());
        let slots = Slots::new(self.head(), &self.mapping.words()[self.place.slots.clone()]);
        slots.read(&mut cursor, 1, &mut raw);
        raw.last().map(|words| Record::from_words(*words).time)
    }

    /// Records ever written to the ring.
    pub fn written(&self) -> u64 {
        self.head().load(Ordering::Relaxed)
    }

    /// Records that were overwritten before this reader came to them, wanted or not.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn header(&self) -> Header<'_, AtomicU64> {
        self.place.header_in(&*self.mapping)
    }

    fn head(&self) -> &AtomicU64 {
        self.header().head()
    }

    /// Copies the next records out of the ring; repeats while nothing of what it copied is to be delivered.
    fn refill(&mut self) {
        while self.cursor < self.end {
            let limit = (self.end - self.cursor).min(READ_AHEAD as u64) as usize;
            let (mut cursor, mut raw) = (self.cursor, std::mem::take(&mut self.raw));
            let slots = Slots::new(self.head(), &self.mapping.words()[self.place.slots.clone()]);
            let batch = slots.read(&mut cursor, limit, &mut raw);
            self.cursor = cursor;
            self.lost = self.lost.saturating_add(batch.lost);
            self.missed = self.missed.saturating_add(batch.lost);
            self.deliver(cursor - batch.read as u64, &raw);
            raw.clear();
            self.raw = raw;
            if !self.ready.is_empty() || batch == Default::default() {
                return;
            }
        }
    }

    /// Makes the records from number `first` on ready, after what was lost before them and without what is not
    /// wanted.
    fn deliver(&mut self, first: u64, raw: &[[u64; Record::WORDS]]) {
        let (Some(next), Some(last)) = (raw.first(), raw.last()) else { return };
        if self.lost > 0 {
            let (records, since) = (std::mem::take(&mut self.lost), self.latest);
            let since = (since != 0).then_some(Instant::from_nanos(since));
            let time = Record::from_words(*next).time;
            self.ready.push_back(Lost { records, since, ring: self.index }.at(time, Record::NO_CPU));
        }
        self.latest = Record::from_words(*last).time.as_nanos();
        let records = raw.iter().copied().map(Record::from_words);
        match &mut self.filter {
            None => self.ready.extend(records),
            Some(filter) => {
                filter.refresh(usize::from(self.index));
                let wanted =
                    (first..).zip(records).filter(|(number, record)| filter.wants(*number, record.event));
                self.ready.extend(wanted.map(|(_, record)| record));
            }
        }
    }
}
