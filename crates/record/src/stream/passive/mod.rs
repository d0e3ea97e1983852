//! Passive entities: state that is updated in place and copied out when somebody looks.
//!
//! | Entity | Writers | An update | What a reader gets |
//! |---|---|---|---|
//! | [`Counter`] | any number | one atomic addition | the sum of the additions it sees |
//! | [`Gauge`] | any number | one atomic addition, which may be negative | the sum of the additions it sees |
//! | [`Histogram`] | any number | one atomic addition | each count as of its own instant, not all of one instant |
//! | [`Object`] | one at a time | its words and a sequence number | all words of one update |
//!
//! Counters, gauges and histograms count from when their stream is published, whether or not anybody asks. An object is switched like
//! events: while nobody wants it, setting it does nothing, and it keeps what it had. They
//! stand in the passive area of the stream that the updating thread writes to (see [`super::local`]). Looking does not
//! reset them. Resetting, which [`super::Operator::take`] does, takes each count exactly once, whoever adds meanwhile; gauges, which say how many there
//! are, it leaves as they are.

mod counter;
mod gauge;
mod histogram;
mod made;
pub mod object;

pub use crate::passive::{HistogramReading, ObjectField, PassiveEntry, PassiveKind, Reading, ReadingError};
pub use counter::Counter;
pub use gauge::{Gauge, StreamNumber};
pub use histogram::Histogram;
pub use made::{Made, made};
pub use object::{Object, Structure};

use super::declare::DeclaredFamily;
use super::local;
use super::thread::{ASKED, switch, with_passive};
use crate::passive::PASSIVE_WORDS;
use crate::ring::RingWriter;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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
        Entity::placed(family, number, u32::MAX)
    }

    /// The same, of a family that is registered.
    const fn placed(family: &'static DeclaredFamily, number: usize, place: u32) -> Self {
        Entity { family, number, place: AtomicU32::new(place) }
    }

    /// Gives its words, `length` of them, to `count`, whether or not anybody wants it; `None` if the thread has no stream.
    #[inline(always)]
    fn count<T>(&self, length: usize, count: impl FnOnce(&[AtomicU64]) -> T) -> Option<T> {
        self.attach();
        self.look(length, count)
    }

    /// The same with the whole area, in which it and others have [words](Self::word).
    #[inline(always)]
    fn count_in_area<T>(&self, count: impl FnOnce(&[AtomicU64]) -> T) -> Option<T> {
        self.attach();
        with_passive(0, PASSIVE_WORDS, count)
    }

    /// Its first word, of the whole area. Its family is registered.
    #[inline(always)]
    fn word<'area>(&self, area: &'area [AtomicU64]) -> &'area AtomicU64 {
        &area[self.place.load(Ordering::Relaxed) as usize]
    }

    /// Finds the thread its stream, and registers the family, where that has not been done. Whether anybody wants it changes nothing.
    #[inline(always)]
    fn attach(&self) {
        if switch(self.family.switch(self.number)) == ASKED {
            let _ = local::is_wanted(self.family, self.number);
        }
    }

    /// Gives its words in the stream of `writer`, `length` of them, to `count`, whichever stream the thread has; nothing if its family is not
    /// registered.
    #[inline]
    fn count_in(&self, writer: &RingWriter, length: usize, count: impl FnOnce(&[AtomicU64])) {
        if let Some(words) = writer.passive(self.place.load(Ordering::Relaxed) as usize, length) {
            count(words);
        }
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
