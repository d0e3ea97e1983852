//! Families of counters and gauges that are made while a program runs, for things of which it has any number.

use super::{Counter, Gauge, StreamNumber};
use crate::declaration::{FIRST_FREE, Family};
use crate::live::registry::RegisterError;
use crate::passive::PassiveKind;
use crate::stream::declare::{DeclaredFamily, DeclaredPassive};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

/// The entities of a family that was made.
#[derive(Debug)]
pub struct Made<const COUNTERS: usize, const GAUGES: usize> {
    /// Its counters, as they were given.
    pub counters: [Counter; COUNTERS],
    /// Its gauges, as they were given.
    pub gauges: [Gauge; GAUGES],
}

impl<const COUNTERS: usize, const GAUGES: usize> Made<COUNTERS, GAUGES> {
    /// Adds to several of its counters and gauges at once, which are given by their numbers. That costs less than adding to one after the other. Returns in
    /// which stream, that of the calling thread; `None` if that has none: then nothing knows of it, and nobody is asked for gauges.
    ///
    /// # Panics
    /// If there is no such counter or gauge.
    #[inline]
    pub fn add<const N: usize, const M: usize>(
        &self,
        counters: [(usize, u64); N],
        gauges: impl FnOnce() -> [(usize, i64); M],
    ) -> Option<StreamNumber> {
        const { assert!(COUNTERS > 0, "whether the family is registered is known of the first") };
        self.counters[0].0.count_in_area(|area| {
            for (number, amount) in counters {
                self.counters[number].0.word(area).fetch_add(amount, Ordering::Relaxed);
            }
            for (number, amount) in gauges() {
                self.gauges[number].0.word(area).fetch_add(amount as u64, Ordering::Relaxed);
            }
        })?;
        Some(StreamNumber::of_thread())
    }
}

/// Makes a family of this name with counters and gauges of these names, each with one sentence about it, and registers it. It has one of Talea's own
/// numbers, so that it takes none from families of the program. It stays for as long as the process, and so does the memory of a call that fails: call this
/// once for each name, and keep what it returns.
///
/// # Errors
/// See [`RegisterError`]; of such families a process has at most 48.
pub fn made<const COUNTERS: usize, const GAUGES: usize>(
    name: &str,
    about: &str,
    counters: &[(&'static str, &'static str); COUNTERS],
    gauges: &[(&'static str, &'static str); GAUGES],
) -> Result<&'static Made<COUNTERS, GAUGES>, RegisterError> {
    let unplaced = std::iter::repeat_with(|| AtomicU32::new(u32::MAX)).take(COUNTERS + GAUGES);
    let places: &'static [AtomicU32] = unplaced.collect::<Vec<_>>().leak();
    let counters = counters.iter().map(|entity| (entity, PassiveKind::Counter));
    let entities = counters.chain(gauges.iter().map(|entity| (entity, PassiveKind::Gauge)));
    let passive = entities.zip(places).map(|(((name, about), kind), place)| DeclaredPassive {
        name,
        about,
        kind,
        place,
    });
    let events = Cow::Borrowed(&[] as &[_]);
    // The number is found when it is registered.
    let family =
        Family { number: FIRST_FREE, name: name.to_owned().into(), about: about.to_owned().into(), events };
    let family = Box::leak(Box::new(DeclaredFamily::made(family, passive.collect::<Vec<_>>().leak())));
    family.register()?;
    let place = |number: usize| places[number].load(Ordering::Relaxed);
    Ok(Box::leak(Box::new(Made {
        counters: std::array::from_fn(|number| Counter::placed(family, number, place(number))),
        gauges: std::array::from_fn(|gauge| {
            let number = COUNTERS + gauge;
            Gauge::placed(family, number, place(number))
        }),
    })))
}
