//! Looking at passive entities from outside.

use super::{OUTSIDE, PassiveEntry, PassiveKind};
use crate::declaration::{Field, Part, Value};
use crate::record::{Event, Record};
use std::sync::atomic::Ordering::Relaxed;
use talea_ring::object::Copied;
use talea_ring::primitive::SharedWord;
use talea_time::Instant;
use thiserror::Error;

/// What a passive entity held when it was looked at.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// A counter's value.
    Counter(u64),
    /// A gauge's value.
    Gauge(i64),
    /// A histogram's counts.
    Histogram(HistogramReading),
    /// An object's fields with their names; `None` if nothing was set, or it was being replaced all the time.
    Object(Option<Vec<(String, Value)>>),
}

/// A histogram's counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramReading {
    /// Where the first bucket begins.
    pub lower: i64,
    /// What each bucket spans.
    pub width: u64,
    /// Values below the first bucket.
    pub below: u64,
    /// Values in each bucket.
    pub inside: Vec<u64>,
    /// Values above the last bucket.
    pub above: u64,
}

/// Why a passive entity cannot be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadingError {
    /// There is no such family or entity.
    #[error("there is no \"{name}\"{}", suggestion.as_ref().map_or(String::new(), |name| format!("; did you mean \"{name}\"?")))]
    Unknown {
        /// What was asked for, as `family.name`.
        name: String,
        /// The most similar name.
        suggestion: Option<String>,
    },
    /// It is an event.
    #[error("\"{0}\" is an event, which is followed and not read")]
    Event(String),
}

/// Reads an entity that stands in `words`.
pub(crate) fn read<W: SharedWord>(entry: &PassiveEntry, words: &[W]) -> Reading {
    look(entry, words, |word| word.load(Relaxed))
}

/// Reads an entity that stands in `words`, which are writable, and begins its counts anew.
pub(crate) fn take<W: SharedWord>(entry: &PassiveEntry, words: &[W]) -> Reading {
    look(entry, words, |word| word.swap(0, Relaxed))
}

fn look<W: SharedWord>(entry: &PassiveEntry, words: &[W], look: impl Fn(&W) -> u64) -> Reading {
    match &entry.kind {
        PassiveKind::Counter => Reading::Counter(look(&words[0])),
        // What there is stays there, whoever takes counts.
        PassiveKind::Gauge => Reading::Gauge(words[0].load(Relaxed) as i64),
        PassiveKind::Histogram { lower, width, .. } => {
            Reading::Histogram(histogram(*lower, *width, words, look))
        }
        PassiveKind::Object { fields } => {
            let decode = |(field, word): (&super::ObjectField, u64)| {
                let (time, cpu, source) = (Instant::ZERO, Record::NO_CPU, Record::NO_LANE);
                let words = [word, 0];
                let record = Record { time, causal: 0, words, event: Event(0), source, cpu, arg: 0 };
                let placed = Field { name: field.name.clone(), ..Field::new("", field.kind, Part::First) };
                (field.name.clone().into_owned(), placed.value(&record, None))
            };
            let copy = Copied::new(words).wait_for_copy();
            Reading::Object(copy.map(|copy| fields.iter().zip(copy).map(decode).collect()))
        }
    }
}

/// A reading of these words, each read by `look`.
pub(crate) fn histogram<W: SharedWord>(
    lower: i64,
    width: u64,
    words: &[W],
    look: impl Fn(&W) -> u64,
) -> HistogramReading {
    let inside = words[OUTSIDE..].iter().map(&look).collect();
    HistogramReading { lower, width, below: look(&words[0]), inside, above: look(&words[1]) }
}
