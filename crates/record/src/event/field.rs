//! Types that fields of events can have: how a value stands in a record, how it is decoded, what exports show of it.

use super::Codes;
use crate::declaration::{FieldKind, Part, Place, Text};
use crate::record::{JobId, Record};
use std::fmt;
use std::marker::PhantomData;
use talea_time::{Duration, Instant};

/// What the number in a field stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Meaning {
    /// Itself.
    Number,
    /// The deadline of the record's job, of which there may be none; see [`Record::deadline`].
    Deadline,
    /// Index into [`crate::Metadata::nodes`].
    Node,
    /// Index into [`crate::Metadata::lanes`].
    Lane,
    /// Index into [`crate::Metadata::operations`].
    Operation,
    /// Index into [`crate::Metadata::edges`].
    Edge,
    /// Index into [`crate::Metadata::outputs`].
    Output,
    /// Index into [`crate::Metadata::inputs`].
    Input,
    /// Index into [`crate::Metadata::publications`].
    Publication,
    /// One of a list that the format fixes.
    Code(Codes),
    /// A job, as [`JobId::pack`] writes it.
    Job,
    /// A job or none, see [`JobOrNone`].
    JobOrNone,
    /// 1 is yes and 0 no.
    Flag,
    /// A thread of the machine, as the kernel numbers it: see [`crate::Metadata::thread`].
    Thread,
}

impl Meaning {
    /// Whether not every number stands for something.
    pub(crate) const fn is_checked(self) -> bool {
        !matches!(self, Meaning::Number | Meaning::Deadline | Meaning::JobOrNone | Meaning::Thread)
    }
}

/// A type that a field of an event can have.
pub trait FieldType: Copy {
    /// How the field is decoded.
    const KIND: FieldKind;
    /// What its number stands for.
    const MEANING: Meaning;
    /// The number that stands for none, if there may be none.
    const NONE: Option<u64>;
    /// Writes the value into a place where nothing stands yet.
    fn put(self, place: Place, record: &mut Record);
    /// The value that [`Self::put`] wrote.
    fn take(place: Place, record: &Record) -> Self;

    /// The number that stands there, if there is one; of what is longer than a word, its first 64 bits.
    #[inline(always)]
    fn number(place: Place, record: &Record) -> Option<u64> {
        let bits = match Self::KIND.bits() {
            bits @ 1..64 => bits,
            _ => 64,
        };
        let number = place.raw(record) & (u64::MAX >> (64 - bits));
        (Self::NONE != Some(number)).then_some(number)
    }
}

/// A [`FieldType`] of at most 64 bits.
pub trait WordType: Copy {
    /// How the field is decoded.
    const KIND: FieldKind;
    /// What its number stands for.
    const MEANING: Meaning = Meaning::Number;
    /// The number that stands for none, if there may be none.
    const NONE: Option<u64> = None;
    /// The value in the lowest bits of a word, the others 0.
    fn bits(self) -> u64;
    /// The value that [`Self::bits`] gave; higher bits may be a neighbour's.
    fn from_bits(bits: u64) -> Self;
}

impl<T: WordType> FieldType for T {
    const KIND: FieldKind = <T as WordType>::KIND;
    const MEANING: Meaning = <T as WordType>::MEANING;
    const NONE: Option<u64> = <T as WordType>::NONE;

    #[inline(always)]
    fn put(self, place: Place, record: &mut Record) {
        let bits = self.bits() << place.shift;
        match place.part {
            Part::Causal => record.causal |= bits,
            Part::First => record.words[0] |= bits,
            Part::Second => record.words[1] |= bits,
            Part::Arg => record.arg |= bits as u16,
            Part::Source => record.source = bits as u16,
        }
    }

    #[inline(always)]
    fn take(place: Place, record: &Record) -> Self {
        T::from_bits(place.raw(record))
    }
}

macro_rules! word_types {
    ($($type:ty, $kind:ident, $value:ident => $bits:expr, $back:ident => $from:expr;)*) => {
        $(impl WordType for $type {
            const KIND: FieldKind = FieldKind::$kind;
            #[inline(always)]
            fn bits(self) -> u64 {
                let $value = self;
                $bits
            }
            #[inline(always)]
            fn from_bits($back: u64) -> Self {
                $from
            }
        })*
    };
}

word_types! {
    u64, U64, value => value, bits => bits;
    i64, I64, value => value as u64, bits => bits as i64;
    f64, F64, value => value.to_bits(), bits => f64::from_bits(bits);
    u32, U32, value => u64::from(value), bits => bits as u32;
    i32, I32, value => u64::from(value as u32), bits => bits as i32;
    f32, F32, value => u64::from(value.to_bits()), bits => f32::from_bits(bits as u32);
    u16, U16, value => u64::from(value), bits => bits as u16;
    i16, I16, value => u64::from(value as u16), bits => bits as i16;
    u8, U8, value => u64::from(value), bits => bits as u8;
    i8, I8, value => u64::from(value as u8), bits => bits as i8;
    bool, Bool, value => u64::from(value), bits => bits as u8 != 0;
    Instant, Instant, value => value.as_nanos() as u64, bits => Instant::from_nanos(bits as i64);
    Duration, Duration, value => value.as_nanos() as u64, bits => Duration::from_nanos(bits as i64);
    [u8; 8], Bytes8, value => u64::from_le_bytes(value), bits => bits.to_le_bytes();
}

macro_rules! optional_types {
    ($($type:ty, $kind:ident, $meaning:ident, $none:expr;)*) => {
        $(impl WordType for Option<$type> {
            const KIND: FieldKind = FieldKind::$kind;
            const MEANING: Meaning = Meaning::$meaning;
            const NONE: Option<u64> = Some($none);
            #[inline(always)]
            fn bits(self) -> u64 {
                self.map_or($none, WordType::bits)
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                let is_none = bits & (u64::MAX >> (64 - FieldKind::$kind.bits())) == $none;
                (!is_none).then(|| WordType::from_bits(bits))
            }
        })*
    };
}

// An index or a job that there is not is written as all ones, an instant as 0.
optional_types! {
    u16, U16, Number, u16::MAX as u64;
    u32, U32, Number, u32::MAX as u64;
    JobId, Job, Job, u64::MAX;
    Instant, Instant, Number, 0;
}

impl WordType for JobId {
    const KIND: FieldKind = FieldKind::Job;
    const MEANING: Meaning = Meaning::Job;

    #[inline(always)]
    fn bits(self) -> u64 {
        self.pack()
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        JobId::unpack(bits)
    }
}

impl WordType for Flag {
    const KIND: FieldKind = FieldKind::U16;
    const MEANING: Meaning = Meaning::Flag;

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.0)
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Flag(bits as u16 == 1)
    }
}

/// Yes or no in 16 bits: 1 is yes, everything else no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag(pub bool);

/// A job, or none, where older traces have nothing: 0 for none, else one more than [`JobId::pack`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobOrNone(pub Option<JobId>);

impl WordType for JobOrNone {
    const KIND: FieldKind = FieldKind::U64;
    const MEANING: Meaning = Meaning::JobOrNone;

    #[inline(always)]
    fn bits(self) -> u64 {
        self.0.map_or(0, |job| job.pack() + 1)
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        JobOrNone(bits.checked_sub(1).map(JobId::unpack))
    }
}

/// A value of a fixed list.
pub trait Coded: Copy + Eq {
    /// The list.
    const CODES: Codes;
    /// Its number.
    fn code(self) -> u16;
    /// The value with this number.
    fn from_code(code: u16) -> Option<Self>;
}

/// A value of the list `C` as a record has it, which a damaged or newer one may not know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code<C>(u16, PhantomData<C>);

impl<C: Coded> Code<C> {
    /// The value, if the list has it.
    #[inline]
    pub fn known(self) -> Option<C> {
        C::from_code(self.0)
    }

    /// Its number.
    pub fn number(self) -> u16 {
        self.0
    }
}

impl<C: Coded> From<C> for Code<C> {
    #[inline]
    fn from(value: C) -> Self {
        Code(value.code(), PhantomData)
    }
}

impl<C: Coded> PartialEq<C> for Code<C> {
    #[inline]
    fn eq(&self, value: &C) -> bool {
        self.0 == value.code()
    }
}

impl<C: Coded + fmt::Debug> fmt::Debug for Code<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some(value) => value.fmt(f),
            None => self.0.fmt(f),
        }
    }
}

impl<C: Coded> WordType for Code<C> {
    const KIND: FieldKind = FieldKind::U16;
    const MEANING: Meaning = Meaning::Code(C::CODES);

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.0)
    }

    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Code(bits as u16, PhantomData)
    }
}

impl FieldType for [u8; 16] {
    const KIND: FieldKind = FieldKind::Bytes16;
    const MEANING: Meaning = Meaning::Number;
    const NONE: Option<u64> = None;

    #[inline(always)]
    fn put(self, _: Place, record: &mut Record) {
        let bits = u128::from_le_bytes(self);
        record.words = [bits as u64, (bits >> 64) as u64];
    }

    #[inline(always)]
    fn take(_: Place, record: &Record) -> Self {
        let [low, high] = record.words.map(u128::from);
        (high << 64 | low).to_le_bytes()
    }
}

impl FieldType for Text {
    const KIND: FieldKind = FieldKind::Text;
    const MEANING: Meaning = Meaning::Number;
    const NONE: Option<u64> = None;

    #[inline(always)]
    fn put(self, _: Place, record: &mut Record) {
        record.words = self.words();
    }

    #[inline(always)]
    fn take(_: Place, record: &Record) -> Self {
        Text::from_words(record.words)
    }
}
