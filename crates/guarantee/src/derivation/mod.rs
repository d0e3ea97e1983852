//! The guarantee on every edge of a hierarchy, derived from the root down (Regehr and Stankovic 2001, section 3.3).
//!
//! The root is given the processors. As soon as all edges into a scheduler are labelled, what they give is
//! rewritten to something that the scheduler accepts, its children are admitted, and the edges below it are
//! labelled. A hierarchy composes correctly if every scheduler and every thread receives something that it accepts.
//! Schedulers are taken breadth first, their edges in the order of the hierarchy; the graph has no circles, so it ends.
//!
//! Where a join leaves open which parent's guarantee it takes, only guarantees that no other parent's exceeds
//! come into question, and they are tried in order ([`choice`](self)).

mod choice;
mod explain;
mod failure;
mod walk;

use crate::conversion::{Accepted, Grounds};
use crate::guarantee::Guarantee;
use crate::hierarchy::{Graph, Hierarchy};
use crate::label::Label;
use crate::rewrite::Rewritten;
use serde::Serialize;

pub use explain::{Explanation, GuaranteePlace, Step};
pub use failure::{Failure, Finding, NotDerived, Problem};

/// The guarantees of a hierarchy, or of the part of it that could be derived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Derivation {
    /// What the root is given, one for each processor.
    pub given: Vec<Label>,
    /// Labelled edges, in the order in which they were derived.
    pub edges: Vec<DerivedEdge>,
    /// Schedulers with an acceptable guarantee, in that order.
    pub schedulers: Vec<DerivedScheduler>,
    /// Threads that receive what they require, in that order.
    pub threads: Vec<DerivedThread>,
}

/// An edge with its guarantee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DerivedEdge {
    /// Its position among the edges of the hierarchy.
    pub edge: usize,
    /// The scheduler that gives the guarantee.
    pub parent: String,
    /// The scheduler or thread that receives it.
    pub child: String,
    /// The guarantee.
    #[serde(rename = "guarantee")]
    pub label: Label,
    /// On what grounds it is given.
    pub because: Grounds,
}

/// A scheduler with what it uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DerivedScheduler {
    /// Its name.
    pub name: String,
    /// Its algorithm.
    pub algorithm: &'static str,
    /// The edges into it; none for the root, which is given the processors.
    pub edges: Vec<usize>,
    /// Of a join, whose guarantee its child is given, as a position among `edges`; 0 of all others.
    pub takes: usize,
    /// What it uses of the guarantees on these edges, or of the processors, and as what.
    pub accepted: Vec<Accepted>,
}

/// A thread with what it receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DerivedThread {
    /// Its name.
    pub name: String,
    /// The edge into it.
    pub edge: usize,
    /// What it receives.
    pub receives: Label,
    /// What it requires, if not anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<Guarantee>,
    /// The rewrites that show that it does.
    pub steps: Vec<Rewritten>,
}

impl Derivation {
    /// The labelled edge from `parent` to `child`; the first, if there are several.
    pub fn between(&self, parent: &str, child: &str) -> Option<&DerivedEdge> {
        self.edges.iter().find(|edge| edge.parent == parent && edge.child == child)
    }
}

/// Derives the guarantee on every edge from what the root is given of its processors.
///
/// # Errors
/// The hierarchy makes no sense, or somebody does not receive what it needs: then everybody who does not, in the order
/// of the derivation, and what could be derived all the same.
pub fn derive(hierarchy: &Hierarchy) -> Result<Derivation, NotDerived> {
    let graph = Graph::new(hierarchy).map_err(NotDerived::Malformed)?;
    let given = vec![Label::real(hierarchy.given.clone()); hierarchy.processors.get() as usize];
    choice::search(&graph, &given).map_err(NotDerived::Failed)
}
