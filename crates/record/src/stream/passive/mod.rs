//! Passive entities: state that is updated in place and copied out when somebody looks.
//!
//! | Entity | Writers | An update | What a reader gets |
//! |---|---|---|---|
//! | [`Counter`] | any number | one atomic addition | the sum of the additions it sees |
//! | [`Histogram`] | any number | one atomic addition | each count as of its own instant, not all of one instant |
//! | [`Object`] | one at a time | its words and a sequence number | all words of one update |
//!
//! They are switched like events: while nobody wants one, updating it does nothing, and it keeps what it had. They
//! stand in the passive area of the stream that the updating thread writes to (see [`super::local`]). Looking does not
//! reset them. Resetting, which [`super::Operator::take`] does, takes each count exactly once, whoever adds meanwhile.

mod counter;
mod histogram;
pub mod object;
mod reading;

pub use counter::Counter;
pub use histogram::Histogram;
pub use object::{Object, Structure};
pub use reading::{HistogramReading, Reading, ReadingError};
pub(crate) use reading::{read, take};

use super::declare::DeclaredFamily;
use super::directory::{Entry, event_span};
use super::local;
use crate::layout::PASSIVE_BYTES;
use crate::mapping::thread::{ASKED, switch, with_passive};
use crate::namespace::FieldKind;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use talea_ring::control::ASSIGNABLE;

/// Words of the passive area.
pub(crate) const PASSIVE_WORDS: usize = (PASSIVE_BYTES / 8) as usize;
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
            PassiveKind::Counter => 1,
            PassiveKind::Histogram { buckets, .. } => histogram::OUTSIDE + *buckets as usize,
            PassiveKind::Object { fields } => talea_ring::object::HEAD + fields.len(),
        }
    }

    fn is_possible(&self) -> bool {
        match self {
            PassiveKind::Counter => true,
            PassiveKind::Histogram { width, buckets, .. } => *width > 0 && *buckets > 0,
            PassiveKind::Object { fields } => fields.iter().all(|field| field.kind != FieldKind::Text),
        }
    }
}

/// A passive entity that cannot be where its entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misplaced;

/// Checks what a damaged file may have wrong about an entry's passive entities.
pub(crate) fn check_passive(entry: &Entry) -> Result<(), Misplaced> {
    let first = entry.switch + event_span(&entry.family);
    for (index, passive) in entry.passive.iter().enumerate() {
        let words = passive.kind.words();
        let is_inside = passive.place.checked_add(words).is_some_and(|end| end <= PASSIVE_WORDS);
        let is_placed = is_inside && passive.place.is_multiple_of(PASSIVE_ALIGNMENT);
        let is_switched = passive.switch == first + index && passive.switch < ASSIGNABLE;
        if !(is_placed && is_switched && passive.kind.is_possible()) {
            return Err(Misplaced);
        }
    }
    Ok(())
}

/// The words of an entity in the passive area.
pub(crate) fn words_of(entry: &PassiveEntry) -> Range<usize> {
    entry.place..entry.place + entry.kind.words()
}

/// A passive entity as its declaration makes it: the way to its words.
#[derive(Debug)]
pub(crate) struct Entity {
    family: &'static DeclaredFamily,
    /// Its switch, from the family's first on.
    number: usize,
    /// Its first word, once its family is registered.
    place: AtomicU32,
}

impl Entity {
    const fn new(family: &'static DeclaredFamily, number: usize) -> Self {
        Entity { family, number, place: AtomicU32::new(u32::MAX) }
    }

    /// Gives its words, `length` of them, to `update` if anybody wants it.
    #[inline(always)]
    fn update(&self, length: usize, update: impl FnOnce(&[AtomicU64])) {
        let found = switch(self.family.switch(self.number));
        if found == 0 || found == ASKED && !local::is_wanted(self.family, self.number) {
            return;
        }
        self.look(length, update);
    }

    /// Gives its words to `look`, wanted or not; `None` if the thread has no stream or the family is not registered.
    #[inline(always)]
    fn look<T>(&self, length: usize, look: impl FnOnce(&[AtomicU64]) -> T) -> Option<T> {
        with_passive(self.place.load(Ordering::Relaxed) as usize, length, look)
    }
}
