//! The sources of a recording: streams and the kernel, with the numbers that the log has, and what it says of threads.

use crate::any_source::AnySource;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use talea_record::declaration::{FIRST_FREE, Family};
use talea_record::event::{Lost, Thread};
use talea_record::merge::RecordSource;
use talea_record::stream::clock;
use talea_record::{Event, Record, RingReader};

/// The numbers that the families of one stream have in the log.
#[derive(Debug)]
pub(super) struct FamilyNumbers(pub(super) [Option<u8>; 256]);

impl Default for FamilyNumbers {
    /// Builtin families have the same numbers everywhere.
    fn default() -> Self {
        FamilyNumbers(std::array::from_fn(|number| {
            u8::try_from(number).ok().filter(|number| *number < FIRST_FREE)
        }))
    }
}

impl FamilyNumbers {
    /// The event in the log; `None` while its family is not known.
    fn translate(&self, event: Event) -> Option<Event> {
        let [family, number] = event.0.to_be_bytes();
        let family = self.0[usize::from(family)]?;
        Some(Event(u16::from_be_bytes([family, number])))
    }
}

/// A source whose user families have the log's numbers. A record of a family that is not known yet waits, and what
/// is behind it, until the stream's directory has been looked at.
#[derive(Debug)]
pub(super) struct TranslatedSource {
    pub(super) source: AnySource,
    numbers: Rc<RefCell<FamilyNumbers>>,
    /// Those of the [`MARKS`](super::MARKS) that were not asked for.
    unasked: Vec<Event>,
    pub(super) counts: Counts,
    announcement: ThreadAnnouncement,
    /// What is to come behind everything that a process wrote that is gone.
    pub(super) end_marks: VecDeque<Record>,
}

/// Records of a source by what they are.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// What LOST records tell of.
    pub(super) lost: u64,
    /// What nobody asked for.
    pub(super) unasked: u64,
}

/// What the log says of the thread that has a ring. The THREAD record that it wrote itself may be overwritten or not
/// asked for, and without it nobody knows the kernel's threads from those of the program.
#[derive(Debug, Default)]
struct ThreadAnnouncement {
    /// Process and number of the last thread that was announced.
    known: Option<(u32, u32)>,
    /// A THREAD record that is to come before whatever the ring has next.
    due: Option<Record>,
}

impl ThreadAnnouncement {
    /// Looks whose ring it is now.
    fn look(&mut self, ring: &RingReader) {
        if let Some(thread) = ring.thread()
            && let who = Some((thread.pid, thread.tid))
            && who != std::mem::replace(&mut self.known, who)
        {
            self.due = Some(thread.at(clock::now(), Record::NO_CPU));
        }
    }

    /// Whether the record is of the thread that is to be announced, and says so.
    fn announces(&self, record: &Record) -> bool {
        Thread::read(record).is_some_and(|thread| self.known == Some((thread.pid, thread.tid)))
    }

    /// The record that is due before `next`, which may be the same from the thread itself.
    fn before(&mut self, next: Option<Record>) -> Option<Record> {
        let due = self.due?;
        match next {
            Some(next) if self.announces(&next) => {
                self.due = None;
                None
            }
            Some(next) => Some(Record { time: due.time.min(next.time), ..due }),
            None => Some(due),
        }
    }
}

impl TranslatedSource {
    pub(super) fn new(source: AnySource, numbers: Rc<RefCell<FamilyNumbers>>, unasked: Vec<Event>) -> Self {
        let (counts, announcement) = (Counts::default(), ThreadAnnouncement::default());
        TranslatedSource { source, numbers, unasked, counts, announcement, end_marks: VecDeque::new() }
    }

    fn announce(&mut self) -> Option<Record> {
        if let AnySource::Ring(ring) = &self.source {
            self.announcement.look(ring);
        }
        self.announcement.due?;
        self.announcement.before(self.source.peek())
    }
}

impl RecordSource for TranslatedSource {
    fn peek(&mut self) -> Option<Record> {
        if let Some(thread) = self.announce() {
            return Some(thread);
        }
        let Some(record) = self.source.peek() else { return self.end_marks.front().copied() };
        let event = self.numbers.borrow().translate(record.event)?;
        Some(Record { event, ..record })
    }

    fn take(&mut self) -> Option<Record> {
        if let Some(thread) = self.announce() {
            self.announcement.due = None;
            self.counts.unasked += 1;
            return Some(thread);
        }
        self.peek()?;
        // An earlier record may have come, of a family that is known as well: only rings have others.
        let Some(record) = self.source.take() else { return self.end_marks.pop_front() };
        let event = self.numbers.borrow().translate(record.event).unwrap_or(record.event);
        if let Some(lost) = Lost::read(&record) {
            self.counts.lost += lost.records;
        }
        self.counts.unasked += u64::from(self.unasked.contains(&event));
        Some(Record { event, ..record })
    }
}

/// The families of the log beyond the builtin ones, from the number [`FIRST_FREE`] on.
#[derive(Debug, Default)]
pub(super) struct Families(Vec<Family>);

impl Families {
    /// The family with its number in the log: that of the same family of another process, or the next one.
    pub(super) fn place(&mut self, family: &Family) -> Option<Family> {
        let same = |known: &&Family| Family { number: family.number, ..(*known).clone() } == *family;
        if let Some(known) = self.0.iter().find(same) {
            return Some(known.clone());
        }
        let number = u8::try_from(self.0.len()).ok()?.checked_add(FIRST_FREE)?;
        let mut name = family.name.clone();
        // Another process has another family of that name.
        for copy in 2.. {
            if self.0.iter().all(|known| known.name != name) {
                break;
            }
            name = format!("{}#{copy}", family.name).into();
        }
        let placed = Family { number, name, ..family.clone() };
        self.0.push(placed.clone());
        Some(placed)
    }
}
