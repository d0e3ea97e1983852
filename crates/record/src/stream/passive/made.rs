//! Families of counters that are made while a program runs, for things of which it has any number.

use super::Counter;
use crate::declaration::{FIRST_FREE, Family};
use crate::live::registry::RegisterError;
use crate::passive::PassiveKind;
use crate::stream::declare::{DeclaredFamily, DeclaredPassive};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};

/// Makes a family of this name with counters of these names, each with one sentence about it, and registers it. It has one of Talea's own numbers, so
/// that it takes none from families of the program. It stays for as long as the process, and so does the memory of a call that fails: call this once for
/// each name, and keep what it returns.
///
/// # Errors
/// See [`RegisterError`]; of such families a process has at most 48.
pub fn made_counters<const COUNTERS: usize>(
    name: &str,
    about: &str,
    counters: &[(&'static str, &'static str); COUNTERS],
) -> Result<&'static [Counter; COUNTERS], RegisterError> {
    let places: &'static [AtomicU32; COUNTERS] =
        Box::leak(Box::new([const { AtomicU32::new(u32::MAX) }; COUNTERS]));
    let passive = counters.iter().zip(places).map(|((name, about), place)| DeclaredPassive {
        name,
        about,
        kind: PassiveKind::Counter,
        place,
    });
    let events = Cow::Borrowed(&[] as &[_]);
    // The number is found when it is registered.
    let family =
        Family { number: FIRST_FREE, name: name.to_owned().into(), about: about.to_owned().into(), events };
    let family = Box::leak(Box::new(DeclaredFamily::made(family, passive.collect::<Vec<_>>().leak())));
    family.register()?;
    let placed = |number: usize| Counter::placed(family, number, places[number].load(Ordering::Relaxed));
    Ok(Box::leak(Box::new(std::array::from_fn(placed))))
}
