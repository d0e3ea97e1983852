//! Passive entities as they stand in a file: counters, gauges, histograms and objects, each with its words in the passive area.
//!
//! The words of a histogram:
//!
//! ```text
//! word
//!    0  values below the first bucket, 1 values above the last
//!    2  values in each bucket
//! ```

mod reading;

pub use reading::{HistogramReading, Reading, ReadingError};
pub(crate) use reading::{histogram, read, take};

use crate::declaration::FieldKind;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;

/// Words of a histogram before the buckets.
pub(crate) const OUTSIDE: usize = 2;
/// Words of the passive area.
pub(crate) const PASSIVE_WORDS: usize = 1 << 17;
/// Entities begin at multiples of this many words, so that none shares a cache line with another.
pub(crate) const PASSIVE_ALIGNMENT: usize = 8;

/// A passive entity as it stands in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassiveEntry {
    /// Its name, unique within the family.
    pub name: Cow<'static, str>,
    /// What it says, one sentence.
    pub about: Cow<'static, str>,
    /// What it is.
    pub kind: PassiveKind,
    /// Its switch.
    pub switch: usize,
    /// Its first word in the passive area.
    pub place: usize,
}

/// The kinds of passive entities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum PassiveKind {
    /// A number that is added to.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// How often values fell where.
    Histogram {
        /// Where the first bucket begins.
        lower: i64,
        /// What each bucket spans, at least 1.
        width: u64,
        /// How many buckets there are, at least 1.
        buckets: u32,
    },
    /// A structure, replaced as a whole.
    Object {
        /// Its fields, a word each.
        fields: Cow<'static, [ObjectField]>,
    },
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectField {
    /// Its name, unique within the object.
    pub name: Cow<'static, str>,
    /// Its type, any but text.
    pub kind: FieldKind,
}

impl ObjectField {
    /// A field of this name and type.
    pub const fn new(name: &'static str, kind: FieldKind) -> Self {
        ObjectField { name: Cow::Borrowed(name), kind }
    }
}

impl PassiveKind {
    /// Words it takes in the passive area.
    pub(crate) fn words(&self) -> usize {
        match self {
            PassiveKind::Counter | PassiveKind::Gauge => 1,
            PassiveKind::Histogram { buckets, .. } => OUTSIDE + *buckets as usize,
            PassiveKind::Object { fields } => talea_ring::object::HEAD + fields.len(),
        }
    }

    pub(crate) fn is_possible(&self) -> bool {
        match self {
            PassiveKind::Counter | PassiveKind::Gauge => true,
            PassiveKind::Histogram { width, buckets, .. } => *width > 0 && *buckets > 0,
            PassiveKind::Object { fields } => {
                fields.iter().all(|field| field.kind.bits() <= 64 && field.kind.bound().is_none())
            }
        }
    }
}

/// The words of an entity in the passive area.
pub(crate) fn words_of(entry: &PassiveEntry) -> Range<usize> {
    entry.place..entry.place + entry.kind.words()
}
