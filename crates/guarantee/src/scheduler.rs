//! Kinds of schedulers: what each is called, what can be said of one, what it accepts and gives, and what it promises.
//!
//! A kind is a [`Declaration`], a plain value, and a [`SchedulerKind`] is a handle to one. The built-in ones are the rows of
//! one table; a program [registers](register) its own, and from then on they are found by name like the built-in ones.
//! What is looked up here is all that the guarantee system and system files know of a scheduler; its code is elsewhere.
//!
//! * [`declaration`]: what there is to say of a kind.
//! * [`parameter`]: what can be said of one scheduler of a kind, beside its place.
//! * [`algorithm`]: a kind with the parameters that its guarantees depend on.

pub mod algorithm;
mod catalog;
pub mod declaration;
pub mod parameter;
mod table;

use crate::suggest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::str::FromStr;
use talea_time::Duration;

pub use algorithm::{Algorithm, AlgorithmError, article};
pub use catalog::{RegisterError, all, register};
pub use declaration::{
    Alike, Asks, Behind, BelowSlower, Children, Conserving, Deadlines, Declaration, Demand, Intake, Periods,
    Plans, Scope, Timers,
};
pub use parameter::{Affects, Parameter, Preset, Values};

/// A kind of scheduler. Two are the same if they have the same name; they are ordered by it, and written as it.
#[derive(Clone, Copy)]
pub struct SchedulerKind(&'static Declaration);

impl SchedulerKind {
    /// The kind of this declaration, whether it is registered or not.
    pub const fn of(declaration: &'static Declaration) -> Self {
        SchedulerKind(declaration)
    }

    /// The kind of this name or synonym.
    pub fn named(name: &str) -> Option<SchedulerKind> {
        all().into_iter().find(|kind| kind.name == name || kind.synonyms.contains(&name))
    }

    /// Every kind that a system file can name: the built-in ones in the order of the documentation, then the registered ones.
    pub fn in_files() -> Vec<SchedulerKind> {
        all().into_iter().filter(|kind| kind.scope != Scope::Derivations).collect()
    }

    /// Every kind that the guarantee system converts: the built-in ones in the order of the published table and then those that
    /// it does not list, then the registered ones.
    pub fn in_derivations() -> Vec<SchedulerKind> {
        let mut kinds: Vec<_> = all().into_iter().filter(|kind| kind.scope != Scope::Files).collect();
        kinds.sort_by_key(|kind| kind.place);
        kinds
    }

    /// What it is declared as, for longer than the handle.
    pub const fn declaration(self) -> &'static Declaration {
        self.0
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The parameter of this name.
    pub fn parameter(self, name: &str) -> Option<&'static Parameter> {
        self.0.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// Whether it chooses anew after a quantum.
    pub fn has_quantum(self) -> bool {
        self.parameter(Parameter::QUANTUM.name).is_some()
    }

    /// The quantum where none is given, if it has one.
    pub fn preset_quantum(self) -> Option<Duration> {
        match self.parameter(Parameter::QUANTUM.name)?.preset {
            Preset::Nanos(nanos) => Some(Duration::from_nanos(nanos)),
            other => panic!("a quantum is a time, not {other:?}"),
        }
    }

    /// Whether it takes one of its parents' guarantees.
    pub fn chooses_parent(self) -> bool {
        self.parameter(Parameter::TAKES.name).is_some()
    }

    /// Whether it has one child at most.
    pub fn has_one_child(self) -> bool {
        self.0.children == Children::One
    }

    /// Whether it takes virtual processors from several parents, or several processors at the root.
    pub fn takes_several(self) -> bool {
        self.0.intake == Intake::Several
    }
}

impl Deref for SchedulerKind {
    type Target = Declaration;

    fn deref(&self) -> &Declaration {
        self.0
    }
}

impl PartialEq for SchedulerKind {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for SchedulerKind {}

impl PartialOrd for SchedulerKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SchedulerKind {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(other.0.name)
    }
}

impl Hash for SchedulerKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for SchedulerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for SchedulerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
    }
}

/// A text that names no kind of scheduler, or none that is known in the place where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    /// What was given.
    pub text: String,
    /// The names that would have been understood, those of the program's own kinds last.
    pub known: Vec<&'static str>,
    /// The name or synonym most like what was given, if one is like it.
    pub nearest: Option<&'static str>,
}

impl UnknownKind {
    /// `text` where one of these `kinds` was wanted.
    fn among(kinds: &[SchedulerKind], text: &str) -> Self {
        let names =
            kinds.iter().flat_map(|kind| [kind.name()].into_iter().chain(kind.synonyms.iter().copied()));
        let nearest = suggest::nearest(text, names);
        UnknownKind { text: text.into(), known: kinds.iter().map(|kind| kind.name()).collect(), nearest }
    }

    /// What to write instead.
    pub fn remedy(&self) -> String {
        match self.nearest {
            Some(nearest) => format!("did you mean \"{nearest}\"?"),
            None => format!("write one of {}", self.known.join(", ")),
        }
    }
}

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown kind of scheduler \"{}\"; {}", self.text, self.remedy())
    }
}

impl std::error::Error for UnknownKind {}

impl FromStr for SchedulerKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let in_files = |kind: &SchedulerKind| kind.scope != Scope::Derivations;
        let found = SchedulerKind::named(text).filter(in_files);
        found.ok_or_else(|| UnknownKind::among(&SchedulerKind::in_files(), text))
    }
}

impl Serialize for SchedulerKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for SchedulerKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|unknown: UnknownKind| serde::de::Error::custom(unknown))
    }
}
