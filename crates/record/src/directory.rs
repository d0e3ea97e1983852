//! The directory of a file: the families that its records may belong to, and what is defined while it lasts, appended while others
//! read.
//!
//! ```text
//! word
//!    0  bytes used behind this word
//!       then for each family or definition: a word with the length of its document in bytes, and the document, JSON padded
//!       with zeros to whole words
//! ```
//! There is one writer. What it appends becomes visible with one store to word 0, so a reader sees whole documents at
//! any time, also in the file of a process that was killed.

use crate::declaration::{FIRST_FREE, FIRST_MADE, Family};
use crate::definition::Definition;
use crate::event::builtin;
use crate::namespace::{NameSpace, NameSpaceError};
use crate::passive::{PASSIVE_ALIGNMENT, PASSIVE_WORDS, PassiveEntry, ReadingError};
use crate::record::Event;
use crate::suggestion::nearest;
use crate::written;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use talea_ring::control::ASSIGNABLE;
use talea_ring::primitive::Word;
use talea_ring::region::Region;
use thiserror::Error;

const WORD_BYTES: usize = size_of::<u64>();
/// Switches of a builtin family: its events' numbers, whatever they are, find their place.
const BUILTIN_SPAN: usize = 32;
/// First switch of families that are not builtin.
pub(crate) const FIRST_SWITCH: usize = 8 * BUILTIN_SPAN;

const _: () = {
    let mut index = 0;
    while index < builtin::ALL.len() {
        let family = &builtin::ALL[index];
        assert!((family.number as usize) < FIRST_SWITCH / BUILTIN_SPAN);
        let Cow::Borrowed(events) = family.events else { panic!() };
        let mut event = 0;
        while event < events.len() {
            assert!((events[event].number as usize) < BUILTIN_SPAN);
            event += 1;
        }
        index += 1;
    }
};

/// The switch of an event that Talea itself declares.
///
/// # Panics
/// If the event is not of a builtin family.
#[inline]
pub const fn builtin_switch(event: Event) -> usize {
    let (family, number) = ((event.0 >> 8) as usize, (event.0 & 0xff) as usize);
    assert!(family < FIRST_SWITCH / BUILTIN_SPAN && number < BUILTIN_SPAN, "not an event of Talea");
    family * BUILTIN_SPAN + number
}

/// A family as it stands in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its events.
    pub family: Family,
    /// The switch of event number 0; those of the others follow.
    pub switch: usize,
    /// Its counters, gauges, histograms and objects.
    pub passive: Vec<PassiveEntry>,
}

impl Entry {
    /// Switches from [`Self::switch`] on that belong to the family: one for each event number up to the greatest,
    /// and one for each passive entity.
    pub fn span(&self) -> usize {
        event_span(&self.family) + self.passive.len()
    }
}

/// Switches that a family's events take.
pub(crate) fn event_span(family: &Family) -> usize {
    family.events.iter().map(|event| usize::from(event.number) + 1).max().unwrap_or(0)
}

/// Why a directory cannot be used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// A length reaches beyond the region or what is used of it.
    #[error("entry {entry} reaches beyond its end")]
    Length {
        /// The entry, counted from 0.
        entry: usize,
    },
    /// A document is not what it should be.
    #[error("entry {entry}: {source}")]
    Document {
        /// The entry, counted from 0.
        entry: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A family contradicts itself or another one.
    #[error(transparent)]
    Family(#[from] NameSpaceError),
    /// The number, switches or places of a family are not where a family's can be.
    #[error("family \"{0}\" has a number, switches or places that it cannot have")]
    Place(String),
}

/// The families of a file.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    space: NameSpace,
    entries: Vec<Entry>,
    definitions: Vec<Definition>,
    /// Bytes of the region that have been read.
    used: usize,
}

impl Directory {
    /// The builtin families and those of the file.
    pub fn name_space(&self) -> &NameSpace {
        &self.space
    }

    /// Bytes of the region that have been read.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// The families of the file, in the order in which they were registered.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What was defined while the run lasted, in order.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The switch of an event; `None` if it is not known.
    pub fn switch(&self, event: Event) -> Option<usize> {
        let (family, entry) = self.space.event(event)?;
        if usize::from(family.number) < FIRST_SWITCH / BUILTIN_SPAN {
            return Some(builtin_switch(event));
        }
        let registered = self.entries.iter().find(|entry| entry.family.number == family.number)?;
        Some(registered.switch + usize::from(entry.number))
    }

    /// The passive entity called `name`, as `family.name`.
    ///
    /// # Errors
    /// If there is none.
    pub fn passive(&self, name: &str) -> Result<&PassiveEntry, ReadingError> {
        let of = |entry: &Entry, passive: &PassiveEntry| format!("{}.{}", entry.family.name, passive.name);
        let all = || {
            self.entries.iter().flat_map(|entry| entry.passive.iter().map(move |passive| (entry, passive)))
        };
        if let Some((_, found)) = all().find(|(entry, passive)| of(entry, passive) == name) {
            return Ok(found);
        }
        if self.entities().any(|(family, event, _)| format!("{family}.{event}") == name) {
            return Err(ReadingError::Event(name.to_owned()));
        }
        let names: Vec<String> = all().map(|(entry, passive)| of(entry, passive)).collect();
        let suggestion = nearest(name, names.iter().map(String::as_str));
        Err(ReadingError::Unknown { name: name.to_owned(), suggestion })
    }

    /// Every event and passive entity there is: family, name and switch.
    pub(crate) fn entities(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        let events = self.space.families().iter().flat_map(|family| {
            family.events.iter().map(|entry| {
                let switch = self.switch(family.event(entry)).expect("the family is known");
                (family.name.as_ref(), entry.name.as_ref(), switch)
            })
        });
        let passive = self.entries.iter().flat_map(|entry| {
            entry
                .passive
                .iter()
                .map(|passive| (entry.family.name.as_ref(), passive.name.as_ref(), passive.switch))
        });
        events.chain(passive)
    }

    /// Takes in what was appended to the region since the last time.
    ///
    /// # Errors
    /// If the region is damaged; what was taken in before stays.
    pub fn refresh<W: Word>(&mut self, region: &Region<'_, W>) -> Result<(), DirectoryError> {
        let entry = self.entries.len() + self.definitions.len();
        let bytes = region.read(self.used).ok_or(DirectoryError::Length { entry })?;
        self.parse(&bytes)
    }

    /// Takes in the documents in `bytes`, which follow what has been read.
    pub(crate) fn parse(&mut self, mut bytes: &[u8]) -> Result<(), DirectoryError> {
        while !bytes.is_empty() {
            let entry = self.entries.len() + self.definitions.len();
            let cut = || DirectoryError::Length { entry };
            let (length, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
            let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
            let document = rest.get(..length).ok_or_else(cut)?;
            let padded = length.checked_next_multiple_of(WORD_BYTES).ok_or_else(cut)?;
            let wrong = |source| DirectoryError::Document { entry, source };
            match document.starts_with(DEFINITION) {
                true => {
                    let Defined { define } = written::document(document).map_err(wrong)?;
                    self.definitions.push(define);
                }
                false => self.add(written::document(document).map_err(wrong)?)?,
            }
            bytes = rest.get(padded..).ok_or_else(cut)?;
            self.used += WORD_BYTES + padded;
        }
        Ok(())
    }

    fn add(&mut self, entry: Entry) -> Result<(), DirectoryError> {
        let first = self.entries.last().map_or(FIRST_SWITCH, |last| last.switch + last.span());
        let end = entry.switch.checked_add(entry.span());
        let is_made = entry.family.number >= FIRST_MADE && entry.family.events.is_empty();
        let is_placed = (entry.family.number >= FIRST_FREE || is_made)
            && entry.switch >= first
            && end.is_some_and(|end| end <= ASSIGNABLE)
            && check_passive(&entry).is_ok();
        if !is_placed {
            return Err(DirectoryError::Place(entry.family.name.into_owned()));
        }
        self.space.add(entry.family.clone())?;
        self.entries.push(entry);
        Ok(())
    }
}

/// How the document of a definition begins, which tells it from a family's.
const DEFINITION: &[u8] = b"{\"define\":";

/// A definition as it stands in a directory.
#[derive(Serialize, Deserialize)]
struct Defined<D> {
    define: D,
}

/// A definition as it stands in the region.
pub(crate) fn encode_definition(define: &Definition) -> Vec<u8> {
    encode_document(&Defined { define })
}

/// An entry as it stands in the region.
pub(crate) fn encode(entry: &Entry) -> Vec<u8> {
    encode_document(entry)
}

fn encode_document(document: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(document).expect("a document is plain numbers and texts");
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend(json);
    bytes.resize(bytes.len().next_multiple_of(WORD_BYTES), 0);
    bytes
}

/// A passive entity that cannot be where its entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Misplaced;

/// Checks what a damaged file may have wrong about an entry's passive entities.
fn check_passive(entry: &Entry) -> Result<(), Misplaced> {
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
