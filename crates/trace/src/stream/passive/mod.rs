//! Passive entities: state that is updated in place and copied out when somebody looks.

use super::control::ASSIGNABLE;
use super::directory::{Entry, event_span};
use crate::layout::PASSIVE_BYTES;
use crate::namespace::FieldKind;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;

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
        /// What each bucket spans.
        width: u64,
        /// How many buckets there are.
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
    /// Its type.
    pub kind: FieldKind,
}

impl PassiveKind {
    /// Words it takes in the passive area.
    pub(crate) fn words(&self) -> usize {
        match self {
            PassiveKind::Counter => 1,
            PassiveKind::Histogram { buckets, .. } => 2 + *buckets as usize,
            PassiveKind::Object { fields } => 2 + fields.len(),
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
