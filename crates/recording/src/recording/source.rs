//! The sources of a recording: streams and the kernel, with the numbers that the log has, and what it says of threads.

use crate::any_source::AnySource;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use talea_record::LossCause;
use talea_record::declaration::{FIRST_FREE, Family};
use talea_record::event::{Lost, Thread};
use talea_record::merge::RecordSource;
use talea_record::stream::clock;
use talea_record::{Event, Record};

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

/// The threads of a recording by the numbers that the log has for them: those that THREAD records carry, less one, and that the
/// events of programs have as their source.
#[derive(Debug, Default)]
pub(super) struct Writers(HashMap<(u32, u32), u16>);

impl Writers {
    /// The number of a thread; [`Record::NO_WRITER`] beyond as many as records can number.
    fn number(&mut self, thread: Thread) -> u16 {
        let next = u16::try_from(self.0.len()).unwrap_or(Record::NO_WRITER);
        match next {
            Record::NO_WRITER => self.0.get(&(thread.pid, thread.tid)).copied().unwrap_or(next),
            next => *self.0.entry((thread.pid, thread.tid)).or_insert(next),
        }
    }
}

/// What all sources of a recording share.
pub(super) type SharedWriters = Rc<RefCell<Writers>>;

/// A source whose user families and threads have the log's numbers. A record of a family that is not known yet waits, and what
/// is behind it, until the stream's directory has been looked at.
#[derive(Debug)]
pub(super) struct TranslatedSource {
    pub(super) source: AnySource,
    numbers: Rc<RefCell<FamilyNumbers>>,
    writers: SharedWriters,
    /// The number of the thread that wrote the latest THREAD record.
    writer: u16,
    /// Those of the [`MARKS`](super::MARKS) that were not asked for.
    unasked: Vec<Event>,
    pub(super) counts: Counts,
    /// The next record of a ring, as the log will have it. What the kernel tells has these numbers already, and is taken when its turn comes:
    /// what it says may depend on what other processors told before.
    next: Option<Record>,
    /// What is to come behind everything that a process wrote that is gone.
    pub(super) end_marks: VecDeque<Record>,
}

/// Records of a source by what they are.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// What LOST records tell of.
    pub(super) lost: BTreeMap<LossCause, u64>,
    /// What nobody asked for, but for THREAD records.
    pub(super) unasked: u64,
}

impl TranslatedSource {
    pub(super) fn new(
        source: AnySource,
        numbers: Rc<RefCell<FamilyNumbers>>,
        writers: &SharedWriters,
        unasked: Vec<Event>,
    ) -> Self {
        let (writers, writer) = (Rc::clone(writers), Record::NO_WRITER);
        let (counts, end_marks) = (Counts::default(), VecDeque::new());
        TranslatedSource { source, numbers, writers, writer, unasked, counts, next: None, end_marks }
    }

    /// Records that nobody asked for.
    pub(super) fn unasked(&self) -> u64 {
        let announced = match &self.source {
            AnySource::Ring(ring) => ring.announced(),
            AnySource::Kernel(_) | AnySource::KernelFeed(_) => 0,
        };
        self.counts.unasked + announced
    }

    /// The next record of a ring with the log's numbers; `None` if there is none, or its family is not known yet.
    fn translate_next(&mut self) -> Option<Record> {
        let AnySource::Ring(ring) = &mut self.source else { return None };
        let record = match ring.peek() {
            Some(record) => record,
            None => {
                let announced = ring.announce_idle(clock::now)?;
                return Some(self.with_writer(announced));
            }
        };
        // Parts wait for their event, which they are not to be apart from.
        let next = ring.peek_event().unwrap_or(record.event);
        let translated = self.numbers.borrow().translate(next)?;
        let event = if record.is_part() { record.event } else { translated };
        ring.take();
        Some(self.with_writer(Record { event, ..record }))
    }

    fn with_writer(&mut self, mut record: Record) -> Record {
        if let Some(thread) = Thread::read(&record) {
            self.writer = self.writers.borrow_mut().number(thread);
            record.causal = match self.writer {
                Record::NO_WRITER => 0,
                number => u64::from(number) + 1,
            };
        } else if record.event.family() >= FIRST_FREE && record.source != Record::NO_WRITER {
            record.source = self.writer;
        }
        record
    }
}

impl RecordSource for TranslatedSource {
    #[inline]
    fn peek(&mut self) -> Option<Record> {
        let next = match &mut self.source {
            AnySource::Ring(_) => {
                if self.next.is_none() {
                    self.next = self.translate_next();
                }
                self.next
            }
            of_kernel @ (AnySource::Kernel(_) | AnySource::KernelFeed(_)) => of_kernel.peek(),
        };
        next.or_else(|| self.end_marks.front().copied())
    }

    #[inline]
    fn take(&mut self) -> Option<Record> {
        self.peek()?;
        let record = match &mut self.source {
            AnySource::Ring(_) => match self.next.take() {
                Some(record) => record,
                None => return self.end_marks.pop_front(),
            },
            of_kernel @ (AnySource::Kernel(_) | AnySource::KernelFeed(_)) => {
                if of_kernel.peek().is_none() {
                    return self.end_marks.pop_front();
                }
                of_kernel.take()?
            }
        };
        if let Some(lost) = Lost::read(&record) {
            let cause = lost.cause.known().unwrap_or(LossCause::Overwritten);
            *self.counts.lost.entry(cause).or_default() += lost.records;
        }
        self.counts.unasked += u64::from(self.unasked.contains(&record.event));
        Some(record)
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
