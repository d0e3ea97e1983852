//! Reading a ring.

use super::RingState;
use super::drawn::{Chunk, Drawn, RingDrawer};
use crate::declaration::FIRST_FREE;
use crate::event::EventPart;
use crate::event::{LossCause, Lost, Thread};
use crate::mapping::Mapping;
use crate::selection::RingFilter;
use crate::{Event, Record, parts};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_ring::control::{CONTROL_WORDS, Control};
use talea_ring::header::{Header, Place, Writer};
use talea_ring::slots::Slots;
use talea_text::printable;
use talea_time::Instant;

/// Records a reader copies at once.
const READ_AHEAD: usize = 256;

/// Where it stands in the file that a later ring has been used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Later {
    /// The first byte of the control pages.
    pub control: u64,
    /// The ring, counted from the first later one.
    pub number: usize,
}

/// What a reader says of the threads that write its ring where nobody has asked for their THREAD records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announcing {
    Nothing,
    /// A THREAD record before the first record of each thread.
    Threads,
}

/// Follows one ring with a cursor of its own.
///
/// Records of a program's own families get the number of the ring in their file as their [source](Record::source), where it is known
/// which thread wrote them: a THREAD record before them has the same number, or the ring's header says so.
///
/// An event with a long field comes with all of its [parts](crate::parts), whichever of the two is asked for, or with none: where its first
/// records were overwritten, the others are counted as lost with them.
#[derive(Debug)]
pub struct RingReader {
    mapping: Arc<Mapping>,
    place: Place,
    index: u16,
    /// Of a later ring, which is not looked at before somebody uses it: its memory is a hole.
    later: Option<Later>,
    /// The first record that counts as lost where it is not read.
    from: u64,
    /// The next record to copy out of the ring.
    cursor: u64,
    /// Where to stop: `u64::MAX` follows the writer.
    end: u64,
    /// What somebody else has copied out of the ring.
    drawn: Option<Drawn>,
    /// Records lost and not yet reported, all of them just before the next record.
    lost: u64,
    /// Why.
    cause: LossCause,
    /// Records lost since the reader was made.
    missed: u64,
    /// The instant of the last record copied, in nanoseconds; 0 before the first.
    latest: i64,
    /// The thread that wrote the last record copied, if it is known.
    writer: Option<(u32, u32)>,
    /// What is added to the ring's number to number the threads that write it.
    base: u16,
    announcing: Announcing,
    /// THREAD records that were not asked for.
    announced: u64,
    /// What is wanted of the ring; `None`: everything.
    filter: Option<RingFilter>,
    raw: Vec<[u64; Record::WORDS]>,
    /// Parts of an event that has not come yet.
    parts: Vec<Record>,
    /// Copied and not yet delivered.
    ready: VecDeque<Record>,
}

impl RingReader {
    /// A reader of ring number `index` from its beginning.
    pub(crate) fn new(mapping: &Arc<Mapping>, place: &Place, index: usize, later: Option<Later>) -> Self {
        RingReader {
            mapping: Arc::clone(mapping),
            place: place.clone(),
            index: index as u16,
            later,
            from: 0,
            cursor: 0,
            end: u64::MAX,
            drawn: None,
            lost: 0,
            cause: LossCause::Overwritten,
            missed: 0,
            latest: 0,
            writer: None,
            base: 0,
            announcing: Announcing::Nothing,
            announced: 0,
            filter: None,
            raw: Vec::new(),
            parts: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// The same reader, which delivers a THREAD record before the first record of each thread, asked for or not.
    #[must_use]
    pub fn announcing(mut self) -> Self {
        self.announcing = Announcing::Threads;
        self
    }

    /// The same reader, where the rings of several files are read together: this one's are numbered from `base` on as
    /// [sources](Record::source) of programs' events.
    #[must_use]
    pub fn numbered_from(mut self, base: u16) -> Self {
        self.base = base;
        self
    }

    /// The number of the threads that write the ring.
    fn number(&self) -> u16 {
        self.base.saturating_add(self.index)
    }

    /// THREAD records that were delivered and not asked for.
    pub fn announced(&self) -> u64 {
        self.announced
    }

    /// The same reader of what somebody else copies out of the ring, from where it is.
    pub(crate) fn fed(mut self, drawn: Drawn) -> Self {
        self.drawn = Some(drawn);
        self
    }

    /// Copies out of the ring what this reader would have read.
    pub(crate) fn drawer(&self) -> RingDrawer {
        RingDrawer::new(&self.mapping, &self.place, self.later, self.cursor)
    }

    /// The same reader, which leaves out what the filter does not want.
    pub(crate) fn filtered(mut self, filter: RingFilter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// The same reader from record number `position` on; what came before does not count as lost.
    pub(crate) fn starting_at(mut self, position: u64) -> Self {
        (self.from, self.cursor) = (position, position);
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

    /// The event of the next record, or of which that is a part.
    pub fn peek_event(&mut self) -> Option<Event> {
        self.peek()?;
        self.ready.iter().find(|record| !record.is_part()).map(|record| record.event)
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

    /// Whether anybody has ever used the ring, as far as that can be known without looking at it.
    fn is_used(&self) -> bool {
        is_used(&self.mapping, self.later)
    }

    /// What the writer called itself.
    pub fn name(&self) -> String {
        if self.is_used() { printable(&self.header().name()).into_owned() } else { String::new() }
    }

    /// What the writer is doing. After [`RingState::Closed`], [`Self::take`] drains the rest, unless another thread
    /// takes the ring over, as it may a spare one.
    pub fn state(&self) -> RingState {
        if self.is_used() { self.header().state() } else { RingState::Unused }
    }

    /// The thread that has the ring now; `None` if nobody has it or the writer has not said who it is.
    pub fn thread(&self) -> Option<Thread> {
        self.writer().and_then(thread_of)
    }

    fn writer(&self) -> Option<Writer> {
        self.is_used().then(|| self.header().writer())?
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
        if self.is_used() { self.head().load(Ordering::Relaxed) } else { 0 }
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
        if self.drawn.is_some() {
            return self.refill_from_drawn();
        }
        while self.copy_batch() > 0 {
            if !self.ready.is_empty() {
                return;
            }
        }
    }

    /// Copies all that is in the ring, so that it is not overwritten while it waits to be taken.
    pub fn draw(&mut self) {
        while self.drawn.is_none() && self.copy_batch() > 0 {}
    }

    /// Copies some records, and returns how many were copied or lost.
    fn copy_batch(&mut self) -> u64 {
        if self.cursor >= self.end || !self.is_used() {
            return 0;
        }
        let limit = (self.end - self.cursor).min(READ_AHEAD as u64) as usize;
        let (mut cursor, mut raw) = (self.cursor, std::mem::take(&mut self.raw));
        let slots = Slots::new(self.head(), &self.mapping.words()[self.place.slots.clone()]);
        let batch = slots.read(&mut cursor, limit, &mut raw);
        self.cursor = cursor;
        self.note_loss(batch.lost, LossCause::Overwritten);
        self.deliver(cursor - batch.read as u64, &raw);
        raw.clear();
        self.raw = raw;
        batch.lost + batch.read as u64
    }

    fn refill_from_drawn(&mut self) {
        while let Some(Chunk { first, lost, cause, records }) = self.drawn.as_mut().and_then(Drawn::next) {
            self.note_loss(lost, cause);
            self.deliver(first, &records);
            self.cursor = first + records.len() as u64;
            if let Some(drawn) = &mut self.drawn {
                drawn.give_back(records);
            }
            if !self.ready.is_empty() {
                return;
            }
        }
    }

    fn note_loss(&mut self, lost: u64, cause: LossCause) {
        if lost > 0 {
            self.cause = cause;
            self.count_lost(lost);
            // Their event is among what was lost.
            self.drop_parts();
        }
    }

    fn count_lost(&mut self, records: u64) {
        self.lost = self.lost.saturating_add(records);
        self.missed = self.missed.saturating_add(records);
    }

    /// Makes the records from number `first` on ready, after what was lost before them and without what is not
    /// wanted.
    fn deliver(&mut self, first: u64, raw: &[[u64; Record::WORDS]]) {
        if raw.is_empty() {
            return;
        }
        if let Some(filter) = &mut self.filter {
            filter.refresh(usize::from(self.index));
        }
        // Who writes is asked for once, and again where something was lost.
        let mut is_asked = false;
        for (number, words) in (first..).zip(raw) {
            let mut record = Record::from_words(*words);
            if record.is_part() {
                self.take_part(number, record);
                continue;
            }
            let parts = match record.event.family() {
                FIRST_FREE.. => parts::marked(record.source),
                _ => 0,
            };
            if parts != self.parts.len() {
                self.drop_parts();
                if parts > 0 {
                    self.drop_event(number, parts);
                    continue;
                }
            }
            if self.lost > 0 {
                self.note_gap(record.time);
                is_asked = false;
            }
            if !std::mem::replace(&mut is_asked, true)
                && self.writer.is_none()
                && record.event != Event::THREAD
            {
                self.learn_writer(number, record.time);
            }
            self.latest = record.time.as_nanos();
            let wanted = self.filter.as_mut().is_none_or(|filter| filter.wants(number, record.event));
            if record.event == Event::THREAD {
                record.causal = u64::from(self.number()) + 1;
                self.announced += u64::from(!wanted && self.announcing == Announcing::Threads);
                self.writer = Thread::read(&record).map(|thread| (thread.pid, thread.tid));
                if wanted || self.announcing == Announcing::Threads {
                    self.ready.push_back(record);
                }
            } else if wanted {
                if record.event.family() >= FIRST_FREE {
                    record.source = self.writer.map_or(Record::NO_WRITER, |_| self.number());
                }
                self.ready.extend(self.parts.drain(..));
                self.ready.push_back(record);
            }
            self.parts.clear();
        }
    }

    /// Says what was lost before a record of this instant.
    fn note_gap(&mut self, time: Instant) {
        let (records, since) = (std::mem::take(&mut self.lost), self.latest);
        let since = (since != 0).then_some(Instant::from_nanos(since));
        let lost = Lost { records, since, ring: self.index, cause: self.cause.into() };
        self.ready.push_back(lost.at(time, Record::NO_CPU));
        // Among them may have been who writes now.
        self.writer = None;
    }

    /// Keeps a part, record `number`, until its event comes, if those before it are there.
    fn take_part(&mut self, number: u64, part: Record) {
        let place = EventPart::read(&part).map_or(0, |part| usize::from(part.number));
        if place == 1 || self.parts.len() + 1 != place {
            self.drop_parts();
        }
        if self.parts.len() + 1 == place {
            self.parts.push(part);
        } else {
            self.drop_event(number, place.saturating_sub(1));
        }
    }

    /// The parts that were kept have no event.
    fn drop_parts(&mut self) {
        self.count_lost(self.parts.len() as u64);
        self.parts.clear();
    }

    /// Record `number` is of no use without the `before` ones before it, some of which are missing. An event that began before this reader
    /// counts for nobody.
    fn drop_event(&mut self, number: u64, before: usize) {
        if number.saturating_sub(before as u64) >= self.from {
            self.count_lost(1);
        }
    }

    /// Finds out who wrote the record of this number, and says so if that is to be said.
    fn learn_writer(&mut self, number: u64, time: Instant) {
        if let Some(thread) = self.new_writer(number)
            && self.announcing == Announcing::Threads
        {
            self.announced += 1;
            self.ready.push_back(self.announcement(thread, time));
        }
    }

    /// Who writes record `number`, if that is known and was not before.
    fn new_writer(&mut self, number: u64) -> Option<Thread> {
        let thread = self.writer().filter(|writer| writer.first <= number).and_then(thread_of)?;
        let who = Some((thread.pid, thread.tid));
        (std::mem::replace(&mut self.writer, who) != who).then_some(thread)
    }

    fn announcement(&self, thread: Thread, time: Instant) -> Record {
        Record { causal: u64::from(self.number()) + 1, ..thread.at(time, Record::NO_CPU) }
    }

    /// A THREAD record of the thread that has the ring, if nothing says so yet and nothing waits or begins that could: it may never write what
    /// is wanted. `now` becomes its time.
    pub fn announce_idle(&mut self, now: impl FnOnce() -> Instant) -> Option<Record> {
        if self.writer.is_some() || self.peek().is_some() || !self.parts.is_empty() {
            return None;
        }
        let thread = self.new_writer(self.cursor)?;
        self.announced += 1;
        Some(self.announcement(thread, now()))
    }
}

/// Whether somebody has used the ring: later ones may be holes.
pub(super) fn is_used(mapping: &Mapping, later: Option<Later>) -> bool {
    later.is_none_or(|Later { control, number }| {
        let control = mapping.part(control..control + 8 * CONTROL_WORDS as u64);
        number < Control::new(control).later_rings()
    })
}

/// A writer as a THREAD record names it.
fn thread_of(writer: Writer) -> Option<Thread> {
    let Writer { thread, place, .. } = writer;
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
