//! The keys of `[[scheduler]]` that come from the declarations of kinds.

use super::{Key, Kind, Presence};
use crate::hierarchy::{SchedulerKind, own_parameters};
use std::sync::{Mutex, PoisonError};
use talea_guarantee::scheduler::{Parameter, Preset, Values};

/// Keys that have been made. They stay, one for each name of a parameter, because kinds do, too.
static MADE: Mutex<Vec<&'static Key>> = Mutex::new(Vec::new());

/// A key for each parameter of any kind but quantum and takes, which every reader knows.
pub(super) fn keys() -> Vec<&'static Key> {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut keys: Vec<&'static Key> = Vec::new();
    for parameter in SchedulerKind::in_files().into_iter().flat_map(own_parameters) {
        if keys.iter().any(|key| key.name == parameter.name) {
            continue;
        }
        let known = made.iter().find(|key| key.name == parameter.name).copied();
        keys.push(known.unwrap_or_else(|| {
            let key: &'static Key = Box::leak(Box::new(key(parameter)));
            made.push(key);
            key
        }));
    }
    keys
}

fn key(parameter: &'static Parameter) -> Key {
    let kind = match parameter.values {
        Values::Time => Kind::Time,
        Values::Integer { min, max } => Kind::Integer { min: min.into(), max: max.into() },
        Values::Word(words) => Kind::OneOf(words),
        Values::Parent => Kind::SchedulerName,
        Values::Plan => Kind::Plan,
    };
    let with_it = SchedulerKind::in_files().into_iter();
    let with_it: Vec<&str> =
        with_it.filter(|kind| kind.parameter(parameter.name).is_some()).map(SchedulerKind::name).collect();
    let preset = match parameter.preset {
        Preset::Nanos(nanos) => talea_time::Duration::from_nanos(nanos).to_string(),
        Preset::Integer(number) => number.to_string(),
        Preset::Word(word) => format!("\"{word}\""),
        Preset::Open(words) => words.into(),
        Preset::Required => "none, it has to be given".into(),
    };
    let default = format!("{preset}, for {}", with_it.join(", "));
    Key {
        name: parameter.name,
        kind,
        presence: Presence::DefaultFrom(Box::leak(default.into_boxed_str())),
        doc: parameter.about,
    }
}
