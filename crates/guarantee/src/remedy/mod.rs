//! What to change so that a hierarchy composes correctly.
//!
//! Every remedy has been tried: the hierarchy was changed and derived anew. Numbers are as near to what they were as
//! a nanosecond, a weight of one or a ten-thousandth of a processor allows. Nearest come first: changed parameters,
//! then changed structure, then weaker requirements; among the same, the smallest relative change.

mod change;
mod parameters;
mod requirement;
mod structure;
mod trial;

use crate::derivation::{Failure, Problem};
use crate::exact::Ratio;
use crate::hierarchy::{Graph, Hierarchy};
use serde::Serialize;
use std::fmt;
use trial::Trial;

pub use change::Change;

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
    /// The one in question receives what it needs and nobody new fails, but so many others still do.
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

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Who does not receive what it needs: the first finding of the failure.
    pub node: String,
    /// Remedies, the nearest first. Empty if none of those looked for helps.
    pub remedies: Vec<Remedy>,
    /// Whether the search came to its end.
    pub search: Search,
}

/// How far a search came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// All that was meant to be tried was tried.
    Finished,
    /// The hierarchy is so large that not everything was tried.
    CutShort,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<String> = self.changes.iter().map(Change::to_string).collect();
        f.write_str(&changes.join(", and "))?;
        match self.effect {
            Effect::Holds => Ok(()),
            Effect::OthersRemain(1) => f.write_str(" (one other problem remains)"),
            Effect::OthersRemain(others) => write!(f, " ({others} other problems remain)"),
        }
    }
}

/// Looks for remedies against the first finding of a failure of `hierarchy`.
///
/// # Panics
/// If the failure is not one of this hierarchy.
pub fn advise(hierarchy: &Hierarchy, failure: &Failure) -> Advice {
    let graph = Graph::new(hierarchy).expect("a hierarchy that was derived makes sense");
    let finding = &failure.findings[0];
    let mut trial = Trial::new(&graph, failure);
    match &finding.problem {
        Problem::Scheduler(crate::conversion::Refused::Overload(_)) => {
            parameters::shrink_children(&mut trial);
            structure::other_algorithms(&mut trial);
        }
        Problem::Scheduler(crate::conversion::Refused::Unacceptable { .. }) => {
            parameters::change_ancestors(&mut trial);
            structure::rearrange(&mut trial);
            structure::other_algorithms(&mut trial);
            structure::move_elsewhere(&mut trial);
        }
        Problem::Requirement { required, received } => {
            parameters::ask_for_it(&mut trial, required);
            parameters::change_ancestors(&mut trial);
            structure::rearrange(&mut trial);
            structure::put_a_limit(&mut trial, required);
            structure::other_algorithms(&mut trial);
            structure::move_elsewhere(&mut trial);
            requirement::weaken(&mut trial, required, received);
        }
    }
    let search = trial.search();
    let mut remedies = trial.into_remedies();
    remedies.sort_by(|one, other| {
        (one.effect, one.class, &one.distance).cmp(&(other.effect, other.class, &other.distance))
    });
    Advice { node: finding.node.clone(), remedies, search }
}
