//! What to change so that a hierarchy composes correctly.
//!
//! Every remedy has been tried: the hierarchy was changed and derived anew, what is derived for the child that is to be helped is
//! [known to be kept](crate::proviso), and the schedulers that there are take it, if a [`Judge`] asks them. Numbers are as near to
//! what they were as a nanosecond, a weight of one or a ten-thousandth of a processor allows, but for schedulers whose plans may take
//! a number and refuse a nearer and a farther one: there it is one that they take. Nearest come first: changed parameters,
//! then changed structure, then weaker requirements; among the same, the smallest relative change. A change that breaks another
//! requirement is not offered.

mod advice;
mod change;
mod parameters;
mod requirement;
mod structure;
mod trial;

use crate::exact::Ratio;
use crate::hierarchy::Hierarchy;
use serde::Serialize;
use std::fmt;

pub use advice::{Advice, Counsel, ForAll, Search, advise, counsel};
pub use change::Change;

/// No shorter quantum is advised, in nanoseconds: real threads are not handed a processor for less.
pub const LEAST_QUANTUM_NS: u64 = 50_000;

/// Whoever knows what the schedulers themselves say of a hierarchy, which may admit less than the published conversions do.
pub type Judge<'j> = dyn FnMut(&Hierarchy) -> Ruling + 'j;

/// What the schedulers themselves say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruling {
    /// Whom they refuse.
    pub refused: Vec<Refusal>,
    /// What it cost to ask, in edges that could have been derived instead.
    pub effort: usize,
}

/// A scheduler that does not take a child.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// The scheduler.
    pub scheduler: String,
    /// The child; the scheduler itself where it is it that cannot be set up.
    pub child: String,
}

/// A change that helps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// What to change, all of it together.
    pub changes: Vec<Change>,
    /// What that achieves.
    pub effect: Effect,
    /// What kind of change it is.
    pub class: Class,
    /// How far it is from what there was, within its class.
    #[serde(skip)]
    distance: Ratio,
}

/// What a remedy achieves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Everybody receives what it needs.
    Holds,
    /// The one in question receives what it needs and nobody fails who did not, but so many others still do, or those turn out to
    /// who could not be looked at before.
    OthersRemain(usize),
}

/// The kinds of change, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Parameters of edges and schedulers.
    Parameter,
    /// Another scheduler in the place of one, or one more.
    Structure,
    /// Threads ask for less.
    Requirement,
}

impl Class {
    /// The farthest kind among some changes.
    fn of(changes: &[Change]) -> Class {
        let class = |change: &Change| match change {
            Change::Request { .. } | Change::Quantum { .. } => Class::Parameter,
            Change::Algorithm { .. } | Change::Takes { .. } | Change::Limit { .. } | Change::Move { .. } => {
                Class::Structure
            }
            Change::Requirement { .. } => Class::Requirement,
        };
        changes.iter().map(class).max().unwrap_or(Class::Parameter)
    }
}

impl Remedy {
    /// What to change, without what that achieves.
    pub fn words(&self) -> String {
        let changes: Vec<String> = self.changes.iter().map(Change::to_string).collect();
        changes.join(", and ")
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words())?;
        match self.effect {
            Effect::Holds => Ok(()),
            Effect::OthersRemain(1) => f.write_str(" (one other problem remains)"),
            Effect::OthersRemain(others) => write!(f, " ({others} other problems remain)"),
        }
    }
}
