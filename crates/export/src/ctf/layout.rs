//! How the records of one event stand in a packet: the members of its TSDL structure, and their bytes.

use super::kernel::{self, KernelLayout};
use super::text::{Distinct, identifier};
use crate::threads::Threads;
use talea_record::declaration::{EventEntry, FIRST_FREE, Family, Field, FieldKind, Part, Place, Text};
use talea_record::event::{Meaning, Switch};
use talea_record::{Event, EventParts, JobId, Record};
use talea_text::printable;
use talea_time::Instant;

/// How the records of one event are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The event; its number is the id.
    pub event: Event,
    /// Its name in the export.
    pub name: String,
    /// What it says, one sentence.
    pub about: String,
    /// Its members in the order of their bytes.
    pub members: Vec<Member>,
}

/// A member of an event's structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name, legal in TSDL and unique in the event.
    pub identifier: String,
    /// Its type.
    pub kind: Type,
    content: Content,
}

/// The type of a member. All of them stand on whole bytes, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    /// A number without sign of so many bits.
    Unsigned(u8),
    /// A number with sign of so many bits.
    Signed(u8),
    /// A floating-point number of so many bits.
    Float(u8),
    /// One byte, 0 or 1.
    Bool,
    /// UTF-8, ended by a zero.
    Text,
    /// A number without sign of so many bits, whose values have names.
    Named(Meaning, u8),
}

/// Where a member's bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// So many bytes from this place on.
    Bytes(Place, u8),
    /// The deadline of the job in 8 bytes, [`NO_DEADLINE`] if there is none.
    Deadline,
    /// Whether the byte at this place is not 0.
    Flag(Place),
    /// Both words as text.
    Text,
    /// The long field, which is one of bytes as two hexadecimal digits each, with `…` behind what was cut.
    Long(FieldKind),
    /// So many bytes from this place on as two hexadecimal digits each.
    Digits(Place, u8),
    /// The operation of the job at this place, in 4 bytes.
    JobOperation(Place),
    /// The instance of the job at this place, in 8 bytes.
    JobInstance(Place),
    /// The name of the thread at this place.
    ThreadName(Place),
    /// The kernel's priority of the thread at this place, in 4 bytes.
    ThreadPriority(Place),
    /// The state in which a thread left its processor, in 8 bytes: 0 if it could have gone on, else 1.
    LeftState,
    /// The process of the thread that wrote an event of a program, in 4 bytes, -1 if it is not known.
    WriterProcess,
    /// The thread, likewise.
    WriterThread,
}

/// What stands for the deadline of a job that has none: the end of time.
pub(super) const NO_DEADLINE: i64 = i64::MAX;

impl Layout {
    /// The layout of a declared event.
    pub fn new(family: &Family, entry: &EventEntry) -> Self {
        let event = family.event(entry);
        Layout::with_names(family, entry, event, kernel::layout(event))
    }

    /// The layout of a declared event, exported as `id` with LTTng's names.
    pub fn with_names(
        family: &Family,
        entry: &EventEntry,
        id: Event,
        kernel: Option<&'static KernelLayout>,
    ) -> Self {
        let event = family.event(entry);
        let mut members = Members::default();
        for extra in kernel.map_or(&[][..], |kernel| kernel.before) {
            members.push(extra.name, extra.kind, extra.content);
        }
        for field in entry.fields.iter() {
            let name = kernel.map_or(field.name.as_ref(), |kernel| kernel.rename(&field.name));
            members.field(name, event.meaning(&field.name), field);
        }
        let has_causal = entry.fields.iter().any(|field| field.place.part == Part::Causal);
        if family.number >= FIRST_FREE && !has_causal {
            members.field("causal", Meaning::Number, &Field::new("causal", FieldKind::U64, Part::Causal));
        }
        if family.number >= FIRST_FREE {
            members.push("vpid", Type::Signed(32), Content::WriterProcess);
            members.push("vtid", Type::Signed(32), Content::WriterThread);
        }
        let name =
            kernel.map_or_else(|| format!("{}:{}", family.name, entry.name), |kernel| kernel.name.to_owned());
        Layout { event: id, name, about: entry.about.clone().into_owned(), members: members.list }
    }

    /// The layout of an event that no family declares: its record as it stands.
    pub fn undeclared(event: Event) -> Self {
        let mut members = Members::default();
        for (name, kind, part) in [
            ("causal", FieldKind::U64, Part::Causal),
            ("word0", FieldKind::U64, Part::First),
            ("word1", FieldKind::U64, Part::Second),
            ("source", FieldKind::U16, Part::Source),
            ("arg", FieldKind::U16, Part::Arg),
        ] {
            members.field(name, Meaning::Number, &Field::new(name, kind, part));
        }
        let about = "An event that no family declares.".to_owned();
        Layout { event, name: format!("undeclared:{:#06x}", event.0), about, members: members.list }
    }

    /// Appends the members of `record` to `bytes`.
    pub fn write(&self, record: &Record, threads: &Threads, parts: &EventParts, bytes: &mut Vec<u8>) {
        for member in &self.members {
            member.content.write(record, threads, parts, bytes);
        }
    }
}

#[derive(Default)]
struct Members {
    list: Vec<Member>,
    names: Distinct,
}

impl Members {
    fn push(&mut self, name: &str, kind: Type, content: Content) {
        self.list.push(Member { identifier: self.names.name(identifier(name)), kind, content });
    }

    fn field(&mut self, name: &str, meaning: Meaning, field: &Field) {
        let bits = field.kind.bits() as u8;
        let bytes = Content::Bytes(field.place, bits / 8);
        let plain = |kind| match meaning {
            Meaning::Number
            | Meaning::Deadline
            | Meaning::Job
            | Meaning::JobOrNone
            | Meaning::Flag
            | Meaning::Thread => kind,
            named => Type::Named(named, bits),
        };
        match field.kind {
            FieldKind::U64 | FieldKind::U32 | FieldKind::U16 | FieldKind::U8 => {
                self.push(name, plain(Type::Unsigned(bits)), bytes);
            }
            FieldKind::Instant if meaning == Meaning::Deadline => {
                self.push(name, Type::Signed(bits), Content::Deadline);
            }
            FieldKind::I64
            | FieldKind::I32
            | FieldKind::I16
            | FieldKind::I8
            | FieldKind::Instant
            | FieldKind::Duration => self.push(name, Type::Signed(bits), bytes),
            FieldKind::F64 | FieldKind::F32 => self.push(name, Type::Float(bits), bytes),
            FieldKind::Bool => self.push(name, Type::Bool, Content::Flag(field.place)),
            FieldKind::Text => self.push(name, Type::Text, Content::Text),
            long @ (FieldKind::LongText(_) | FieldKind::LongBytes(_)) => {
                self.push(name, Type::Text, Content::Long(long));
            }
            FieldKind::Bytes8 | FieldKind::Bytes16 => {
                self.push(name, Type::Text, Content::Digits(field.place, bits / 8));
            }
            FieldKind::Job => {
                let operation = Type::Named(Meaning::Operation, 32);
                self.push(&format!("{name}_operation"), operation, Content::JobOperation(field.place));
                self.push(&format!("{name}_instance"), Type::Unsigned(64), Content::JobInstance(field.place));
            }
        }
    }
}

impl Content {
    fn write(self, record: &Record, threads: &Threads, parts: &EventParts, bytes: &mut Vec<u8>) {
        match self {
            Content::Bytes(place, count) => {
                bytes.extend_from_slice(&place.raw(record).to_le_bytes()[..usize::from(count)]);
            }
            Content::Deadline => {
                let deadline = record.deadline().map_or(NO_DEADLINE, Instant::as_nanos);
                bytes.extend_from_slice(&deadline.to_le_bytes());
            }
            Content::Flag(place) => bytes.push(u8::from(place.raw(record) as u8 != 0)),
            Content::Text => text(&Text::from_words(record.words).padded(), bytes),
            Content::Long(kind) => {
                let value = Field::new("", kind, Part::Arg).value(record, parts.of(record));
                bytes.extend_from_slice(value.to_string().as_bytes());
                bytes.push(0);
            }
            Content::Digits(place, count) => {
                let both = record.words.map(u64::to_le_bytes).concat();
                let one = place.raw(record).to_le_bytes();
                let raw = if count == 16 { &both[..] } else { &one };
                let digits: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
                text(digits.as_bytes(), bytes);
            }
            Content::JobOperation(place) => {
                let (operation, _) = JobId::numbers(place.raw(record));
                bytes.extend_from_slice(&(operation as u32).to_le_bytes());
            }
            Content::JobInstance(place) => {
                let (_, instance) = JobId::numbers(place.raw(record));
                bytes.extend_from_slice(&instance.to_le_bytes());
            }
            Content::ThreadName(place) => match place.raw(record) as u32 {
                0 => text(format!("swapper/{}", record.cpu).as_bytes(), bytes),
                Record::UNSEEN_THREAD => text(b"unobserved", bytes),
                tid => text(threads.name(tid).unwrap_or("unknown").as_bytes(), bytes),
            },
            Content::ThreadPriority(place) => {
                let priority = kernel::priority(threads.priority(place.raw(record) as u32));
                bytes.extend_from_slice(&priority.to_le_bytes());
            }
            Content::WriterProcess => {
                let pid = threads.writer(record).map_or(-1, |writer| writer.pid as i32);
                bytes.extend_from_slice(&pid.to_le_bytes());
            }
            Content::WriterThread => {
                let tid = threads.writer(record).map_or(-1, |writer| writer.tid as i32);
                bytes.extend_from_slice(&tid.to_le_bytes());
            }
            Content::LeftState => {
                let could_go_on = Switch::read(record).is_some_and(|switch| switch.preempted.0);
                bytes.extend_from_slice(&i64::from(!could_go_on).to_le_bytes());
            }
        }
    }
}

/// The part of `raw` before its first zero as UTF-8, what is none replaced and what is hidden shown as [`Field::value`] does, and a zero.
fn text(raw: &[u8], bytes: &mut Vec<u8>) {
    let end = raw.iter().position(|byte| *byte == 0).unwrap_or(raw.len());
    bytes.extend_from_slice(printable(&String::from_utf8_lossy(&raw[..end])).as_bytes());
    bytes.push(0);
}
