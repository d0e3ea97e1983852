//! Declarations of families of events: their names and numbers, and what each event's words mean.
//!
//! A [`Family`] is plain data, made once from its declaration and stored beside the records, so that every
//! listing, decoder and exporter works for families it has never heard of. The families that Talea itself writes
//! are in [`event::builtin`](crate::event::builtin); programs add theirs from [`FIRST_FREE`] on.
//!
//! After Niehaus et al.'s data streams, in which subsystems register families of entities and consumers list and
//! switch them by number or name.

use crate::record::{Event, JobId, Record};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use talea_text::printable;

mod long;
mod text;

pub use long::{Extent, LONGEST, LongBytes, LongText, cut_bytes, cut_text, is_bound};
pub use text::Text;

/// The first family number that is not reserved for Talea.
pub const FIRST_FREE: u8 = 0x40;

/// The first number of the families without events that Talea makes while a program runs; up to [`FIRST_FREE`].
pub(crate) const FIRST_MADE: u8 = 0x10;

/// Events that belong together and are listed and switched together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Family {
    /// Its number: the high byte of its [`Event`]s.
    pub number: u8,
    /// Its name, unique within a name space.
    pub name: Cow<'static, str>,
    /// What it is about, one sentence.
    pub about: Cow<'static, str>,
    /// Its events, in the order of their numbers.
    pub events: Cow<'static, [EventEntry]>,
}

impl Family {
    /// Whether records can be of this family: one that Talea makes while a program runs has no events, and means something in a stream alone.
    pub fn has_records(&self) -> bool {
        self.number < FIRST_MADE || self.number >= FIRST_FREE
    }
}

/// One kind of event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventEntry {
    /// Its number within the family: the low byte of its [`Event`].
    pub number: u8,
    /// Its name, unique within the family.
    pub name: Cow<'static, str>,
    /// What it says, one sentence.
    pub about: Cow<'static, str>,
    /// What its words mean.
    pub fields: Cow<'static, [Field]>,
}

/// A value in a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its name, unique within the event.
    pub name: Cow<'static, str>,
    /// Its type.
    pub kind: FieldKind,
    /// Where it stands.
    pub place: Place,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldKind {
    /// 64 bits without sign.
    U64,
    /// 64 bits with sign.
    I64,
    /// 64 bits, floating point.
    F64,
    /// 32 bits without sign.
    U32,
    /// 32 bits with sign.
    I32,
    /// 32 bits, floating point.
    F32,
    /// 16 bits without sign.
    U16,
    /// 16 bits with sign.
    I16,
    /// 8 bits without sign.
    U8,
    /// 8 bits with sign.
    I8,
    /// 8 bits, 0 or 1.
    Bool,
    /// 64 bits: nanoseconds on the trace's clock.
    Instant,
    /// 64 bits: nanoseconds.
    Duration,
    /// 64 bits: a packed [`JobId`].
    Job,
    /// Both words: up to 16 bytes of UTF-8, padded with zeros.
    Text,
    /// 64 bits: 8 bytes, the first one lowest.
    Bytes8,
    /// Both words: 16 bytes, likewise.
    Bytes16,
    /// 16 bits, an [`Extent`]: up to so many bytes of UTF-8, which stand in records before the event.
    LongText(u16),
    /// 16 bits, likewise: up to so many bytes.
    LongBytes(u16),
}

/// Where a field stands in a record; `shift` counts bits from the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The part of the record.
    pub part: Part,
    /// Its lowest bit in that part.
    pub shift: u8,
}

/// A part of a record that fields stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// [`Record::causal`].
    Causal,
    /// `words[0]` of [`Record::words`].
    First,
    /// `words[1]` of [`Record::words`].
    Second,
    /// [`Record::arg`].
    Arg,
    /// [`Record::source`].
    Source,
}

/// A decoded field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number without sign.
    Unsigned(u64),
    /// A number with sign.
    Signed(i64),
    /// A number with a fraction.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// Nanoseconds on the trace's clock.
    Instant(i64),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A job.
    Job(JobId),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// The first of more bytes than the field has room for.
    CutBytes(Vec<u8>),
    /// A long field of which some bytes are lost.
    Missing,
}

impl FieldKind {
    /// Most bytes that a long field has; `None` of one that stands in its record.
    pub const fn bound(self) -> Option<u16> {
        match self {
            FieldKind::LongText(most) | FieldKind::LongBytes(most) => Some(most),
            _ => None,
        }
    }

    /// As it is written in listings, without its bound.
    const fn name(self) -> &'static str {
        match self {
            FieldKind::U64 => "u64",
            FieldKind::I64 => "i64",
            FieldKind::F64 => "f64",
            FieldKind::U32 => "u32",
            FieldKind::I32 => "i32",
            FieldKind::F32 => "f32",
            FieldKind::U16 => "u16",
            FieldKind::I16 => "i16",
            FieldKind::U8 => "u8",
            FieldKind::I8 => "i8",
            FieldKind::Bool => "bool",
            FieldKind::Instant => "instant",
            FieldKind::Duration => "duration",
            FieldKind::Job => "job",
            FieldKind::Text => "text",
            FieldKind::Bytes8 => "bytes8",
            FieldKind::Bytes16 => "bytes16",
            FieldKind::LongText(_) => "text",
            FieldKind::LongBytes(_) => "bytes",
        }
    }

    /// Bits it occupies from its lowest one on; those that have both words are 128.
    pub const fn bits(self) -> u32 {
        match self {
            FieldKind::U8 | FieldKind::I8 | FieldKind::Bool => 8,
            FieldKind::U16 | FieldKind::I16 | FieldKind::LongText(_) | FieldKind::LongBytes(_) => 16,
            FieldKind::U32 | FieldKind::I32 | FieldKind::F32 => 32,
            FieldKind::Text | FieldKind::Bytes16 => 128,
            _ => 64,
        }
    }
}

impl Part {
    /// Bits of the part.
    pub const fn bits(self) -> u32 {
        match self {
            Part::Causal | Part::First | Part::Second => 64,
            Part::Arg | Part::Source => 16,
        }
    }

    #[inline]
    fn of(self, record: &Record) -> u64 {
        match self {
            Part::Causal => record.causal,
            Part::First => record.words[0],
            Part::Second => record.words[1],
            Part::Arg => u64::from(record.arg),
            Part::Source => u64::from(record.source),
        }
    }
}

impl Place {
    /// What stands there, from its lowest bit on; bits above the field are the neighbours'.
    #[inline]
    pub fn raw(self, record: &Record) -> u64 {
        self.part.of(record) >> self.shift
    }
}

impl Field {
    /// A field of this name and type at the lowest bit of `part`.
    pub const fn new(name: &'static str, kind: FieldKind, part: Part) -> Self {
        Field { name: Cow::Borrowed(name), kind, place: Place { part, shift: 0 } }
    }

    /// The same field, `shift` bits further up.
    #[must_use]
    pub const fn shifted(mut self, shift: u8) -> Self {
        self.place.shift = shift;
        self
    }

    /// Whether the field lies within its part, as a damaged file's may not.
    pub const fn fits(&self) -> bool {
        match self.kind {
            FieldKind::Text | FieldKind::Bytes16 => {
                matches!(self.place, Place { part: Part::First, shift: 0 })
            }
            FieldKind::LongText(most) | FieldKind::LongBytes(most) => {
                is_bound(most as usize) && matches!(self.place, Place { part: Part::Arg, shift: 0 })
            }
            kind => self.place.shift as u32 + kind.bits() <= self.place.part.bits(),
        }
    }

    /// The field's value in `record`, of whose long field there are these bytes, as [`EventParts::of`](crate::EventParts::of) finds them.
    ///
    /// # Panics
    /// If the field does not [fit](Self::fits); name spaces from files are checked when they are read.
    pub fn value(&self, record: &Record, long: Option<&[u8]>) -> Value {
        assert!(self.fits(), "field {} reaches beyond its part of the record", self.name);
        let raw = self.place.raw(record);
        match self.kind {
            FieldKind::U64 => Value::Unsigned(raw),
            FieldKind::U32 => Value::Unsigned(u64::from(raw as u32)),
            FieldKind::U16 => Value::Unsigned(u64::from(raw as u16)),
            FieldKind::U8 => Value::Unsigned(u64::from(raw as u8)),
            FieldKind::I64 => Value::Signed(raw as i64),
            FieldKind::I32 => Value::Signed(i64::from(raw as i32)),
            FieldKind::I16 => Value::Signed(i64::from(raw as i16)),
            FieldKind::I8 => Value::Signed(i64::from(raw as i8)),
            FieldKind::F64 => Value::Float(f64::from_bits(raw)),
            FieldKind::F32 => Value::Float(f64::from(f32::from_bits(raw as u32))),
            FieldKind::Bool => Value::Bool(raw as u8 != 0),
            FieldKind::Instant => Value::Instant(raw as i64),
            FieldKind::Duration => Value::Duration(raw as i64),
            FieldKind::Job => Value::Job(JobId::unpack(raw)),
            FieldKind::Text => Value::Text(Text::from_words(record.words).as_written()),
            FieldKind::Bytes8 => Value::Bytes(raw.to_le_bytes().into()),
            FieldKind::Bytes16 => Value::Bytes(record.words.map(u64::to_le_bytes).concat()),
            FieldKind::LongText(_) | FieldKind::LongBytes(_) => {
                let extent = Extent::from_bits(record.arg);
                // Who hands on bytes without looking has others.
                let long = long.filter(|bytes| bytes.len() == extent.bytes());
                long.map_or(Value::Missing, |bytes| self.long_value(bytes, extent))
            }
        }
    }
}

impl Field {
    fn long_value(&self, bytes: &[u8], extent: Extent) -> Value {
        match (self.kind, extent.is_cut()) {
            (FieldKind::LongText(_), false) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            (FieldKind::LongText(_), true) => Value::Text(String::from_utf8_lossy(bytes).into_owned() + "…"),
            (_, false) => Value::Bytes(bytes.into()),
            (_, true) => Value::CutBytes(bytes.into()),
        }
    }
}

impl Family {
    /// The number that records of this family's event carry.
    pub fn event(&self, entry: &EventEntry) -> Event {
        Event(u16::from(self.number) << 8 | u16::from(entry.number))
    }
}

/// As it is written in listings; of a long one with its bound, as in `text[200]`.
impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.bound().map_or(Ok(()), |most| write!(f, "[{most}]"))
    }
}

impl fmt::Display for Value {
    /// Numbers as they are; instants and durations as nanoseconds; a job as `operation/instance` by number; bytes as two hexadecimal
    /// digits each; what was cut with `…` at its end, and nothing of what is missing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unsigned(value) => value.fmt(f),
            Value::Signed(value) | Value::Instant(value) | Value::Duration(value) => value.fmt(f),
            Value::Float(value) => value.fmt(f),
            Value::Bool(value) => value.fmt(f),
            Value::Job(job) => write!(f, "{}/{}", job.operation.index(), job.instance),
            Value::Text(text) => f.write_str(&printable(text)),
            Value::Bytes(bytes) => write_digits(bytes, f),
            Value::CutBytes(bytes) => {
                write_digits(bytes, f)?;
                f.write_str("…")
            }
            Value::Missing => Ok(()),
        }
    }
}

fn write_digits(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_time::Instant;

    fn record(words: [u64; 2]) -> Record {
        let (event, source, cpu, arg) = (Event(0x4000), 7, 0, 0x1234);
        Record { time: Instant::ZERO, causal: 5, words, event, source, cpu, arg }
    }

    #[test]
    fn fields_are_cut_out_of_their_words() {
        let record = record([0xffff_fffe_0000_0003, 1.5f64.to_bits()]);
        let value = |kind, part, shift| Field::new("x", kind, part).shifted(shift).value(&record, None);
        assert_eq!(value(FieldKind::U32, Part::First, 0), Value::Unsigned(3));
        assert_eq!(value(FieldKind::I32, Part::First, 32), Value::Signed(-2));
        assert_eq!(value(FieldKind::F64, Part::Second, 0), Value::Float(1.5));
        assert_eq!(value(FieldKind::U8, Part::Arg, 8), Value::Unsigned(0x12));
        assert_eq!(value(FieldKind::U64, Part::Causal, 0), Value::Unsigned(5));
    }

    #[test]
    fn texts_come_back_and_are_cut_between_characters() {
        let field = Field::new("name", FieldKind::Text, Part::First);
        let there_and_back = |text: &str| field.value(&record(Text::new(text).words()), None);
        assert_eq!(there_and_back("lane 3"), Value::Text("lane 3".into()));
        assert_eq!(there_and_back("exactly-16-bytes"), Value::Text("exactly-16-bytes".into()));
        assert_eq!(there_and_back("fifteen bytes..é"), Value::Text("fifteen bytes..".into()));
    }
}
