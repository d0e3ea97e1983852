//! What schedulers make of the guarantees that they are given (Regehr and Stankovic 2001, section 5.1).
//!
//! [`table`] holds the published table. The functions here apply a row: rewrite what is given to something that
//! the scheduler accepts, admit what its children ask for, and label the edges below. A kind's declaration names the one that is its
//! own; an own kind may name one of them, call one and change what it makes, or do all of it by itself. An [`Offer`] holds all that
//! a conversion depends on, so that none has to know how kinds are declared or looked up.
//!
//! * `structural`: fixed priority, join, limit and time sharing, which have no algorithm-specific parameters.
//! * `shares`: proportional shares, with and without bounded error.
//! * `reservations`: reservations and slower processors, which have an admission test ([`admission`]).

pub mod admission;
mod grounds;
mod readjust;
mod reservations;
mod shares;
mod structural;
pub mod table;

use crate::exact::{Share, Span};
use crate::guarantee::{Guarantee, Kind};
use crate::label::Label;
use crate::request::Request;
use crate::rewrite::{Choice, Rewritten};
use admission::Overload;
use serde::Serialize;
use std::num::NonZeroU32;
use thiserror::Error;

pub use grounds::Grounds;
pub use readjust::readjust;
pub use reservations::{admitted_job_by_job, reserve, reserve_of_share, reserve_on_average};
pub use shares::{eevdf, in_the_long_run, start_time_fair, surplus_fair};
pub use structural::{fixed_priority, join, limit, nothing};

/// A guarantee that a scheduler is given, as the scheduler uses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// Which of the guarantees that it is given: the position among the edges into it.
    pub input: usize,
    /// The rewrites that make it acceptable; none if it is used as it is.
    pub steps: Vec<Rewritten>,
}

/// A guarantee that a scheduler gives, and on what grounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The guarantee.
    pub label: Label,
    /// Why.
    pub grounds: Grounds,
}

/// What a scheduler makes of what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// What it uses.
    pub accepted: Vec<Accepted>,
    /// What it gives, for each of its children in order.
    pub outputs: Vec<Output>,
}

/// Why a scheduler can make nothing of what it is given.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// Nothing that it is given can be rewritten to anything that it accepts.
    #[error("it is given {}, and accepts only {}", listed(.given, " and "), listed(.accepts, " or "))]
    Unacceptable {
        /// What it is given.
        given: Vec<Label>,
        /// What it accepts.
        accepts: Vec<String>,
    },
    /// Its children ask for more than it can admit.
    #[error("{0}")]
    Overload(#[from] Box<Overload>),
}

fn listed<T: ToString>(items: &[T], between: &str) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(between)
}

impl Refused {
    /// What is `given` is none of what a scheduler accepts, and cannot be rewritten to it.
    pub fn unacceptable(given: &[Label], accepts: &[Kind]) -> Refused {
        let accepts = accepts.iter().map(|kind| kind.name().to_string()).collect();
        Refused::Unacceptable { given: given.to_vec(), accepts }
    }
}

/// What a scheduler is given, and what its children ask of it.
///
/// The requests are of the form that its kind declares, which [`Graph`](crate::hierarchy::Graph) checks.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Its quantum, if its guarantees depend on one.
    pub quantum: Option<&'a Span>,
    /// The test by which its kind admits children, if the kind declares one.
    pub admission: Option<admission::Test>,
    /// Of a join: the position of the guarantee that it takes.
    pub taken: usize,
    /// What it is given: one for each edge into it.
    pub given: &'a [Label],
    /// What its children ask for, in the order of its edges.
    pub requests: &'a [&'a Request],
}

impl Offer<'_> {
    /// The weights that the children ask for.
    ///
    /// # Panics
    /// If they ask for something else.
    pub fn weights(&self) -> Vec<NonZeroU32> {
        let weight = |request: &&Request| match request {
            Request::Weight(weight) => *weight,
            other => panic!("a graph has weights under share schedulers, not {other}"),
        };
        self.requests.iter().map(weight).collect()
    }

    /// The quantum.
    ///
    /// # Panics
    /// If the kind does not declare one that its guarantees depend on.
    pub fn quantum(&self) -> &Span {
        self.quantum.expect("the kind declares a quantum")
    }

    /// The test by which the kind admits its children.
    ///
    /// # Panics
    /// If it declares none.
    pub fn admission(&self) -> admission::Test {
        self.admission.expect("the kind declares how it admits")
    }
}

/// The first of `kinds` that `given` is or can be rewritten to, with the rewrites.
pub fn accept(given: &Label, kinds: &[Kind]) -> Option<(Label, Vec<Rewritten>)> {
    kinds.iter().find_map(|kind| {
        if given.guarantee().kind() == *kind {
            return Some((given.clone(), Vec::new()));
        }
        let step = given.rewrite(*kind, &Choice::default()).ok()?;
        Some((step.label.clone(), vec![step]))
    })
}

/// The share and the error of a guarantee that is a share with bounded error.
fn bounded(label: &Label) -> Option<(&Share, &Span)> {
    match label.guarantee() {
        Guarantee::Psbe { share, error } => Some((share, error)),
        _ => None,
    }
}
