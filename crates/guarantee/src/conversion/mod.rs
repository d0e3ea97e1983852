//! What every scheduler makes of the guarantees that it is given (Regehr and Stankovic 2001, section 5.1).
//!
//! [`table`] holds the published table. The functions here apply a row: rewrite what is given to something that
//! the scheduler accepts, admit what its children ask for, and label the edges below.
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

use crate::algorithm::Algorithm;
use crate::exact::{Share, Span};
use crate::guarantee::{Guarantee, Kind};
use crate::hierarchy::Request;
use crate::label::Label;
use crate::rewrite::{Choice, Rewritten};
use admission::Overload;
use serde::Serialize;
use std::num::NonZeroU32;
use thiserror::Error;

pub use grounds::Grounds;
pub use readjust::readjust;

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
    #[error("it is given {}, and accepts only {}", join(.given, " and "), join(.accepts, " or "))]
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

fn join<T: ToString>(items: &[T], between: &str) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(between)
}

impl Refused {
    fn unacceptable(given: &[Label], accepts: &[Kind]) -> Refused {
        let accepts = accepts.iter().map(|kind| kind.name().to_string()).collect();
        Refused::Unacceptable { given: given.to_vec(), accepts }
    }
}

/// Applies a scheduler to the guarantees that it is `given`, one for each edge into it, and the requests of its
/// children. `taken` is the position of the guarantee that a join takes.
///
/// The requests are of the form that the algorithm wants, which [`Graph`](crate::hierarchy::Graph) checks.
///
/// # Errors
/// What it is given is unacceptable, or it cannot admit its children.
pub fn convert(
    algorithm: &Algorithm,
    taken: usize,
    given: &[Label],
    requests: &[&Request],
) -> Result<Converted, Refused> {
    match algorithm {
        Algorithm::FixedPriority => Ok(structural::fixed_priority(given, requests)),
        Algorithm::Join { .. } => Ok(structural::join(given, taken, requests.len())),
        Algorithm::Limit => structural::limit(given, requests),
        Algorithm::TimeSharing
        | Algorithm::Linux
        | Algorithm::Windows2000
        | Algorithm::RoundRobin
        | Algorithm::Fifo
        | Algorithm::EarliestDeadline
        | Algorithm::LeastLaxity => Ok(structural::time_sharing(given, requests.len())),
        Algorithm::ProportionalShare { quantum } | Algorithm::StartTimeFair { quantum } => {
            shares::start_time_fair(given, quantum, &weights(requests))
        }
        Algorithm::Eevdf { quantum } => shares::eevdf(given, quantum, &weights(requests)),
        Algorithm::Lottery | Algorithm::Stride | Algorithm::WarpedShare => {
            shares::in_the_long_run(given, &weights(requests))
        }
        Algorithm::SurplusFair => shares::surplus_fair(given, &weights(requests)),
        Algorithm::Reservation
        | Algorithm::ConstantBandwidth
        | Algorithm::TotalBandwidth
        | Algorithm::Spring => reservations::reserve(given, admission::Test::Utilisation, requests),
        Algorithm::ResourceKernel => reservations::reserve(given, admission::Test::RateMonotonic, requests),
        Algorithm::Rialto | Algorithm::RialtoNt => {
            reservations::reserve(given, admission::Test::PowersOfTwo, requests)
        }
        // Who is admitted is told job by job, so what is admitted here promises nobody anything: a job longer than its allowance never
        // is, and one that is not runs in the background, where the allowance is no maximum either.
        Algorithm::StatisticalRateMonotonic => {
            let admitted = reservations::reserve(given, admission::Test::Harmonic, requests)?;
            Ok(Converted { outputs: vec![structural::nothing(); requests.len()], ..admitted })
        }
        Algorithm::BssI | Algorithm::PShed => {
            reservations::reserve(given, admission::Test::Utilisation, requests)
        }
    }
}

fn weights(requests: &[&Request]) -> Vec<NonZeroU32> {
    let weight = |request: &&Request| match request {
        Request::Weight(weight) => *weight,
        other => panic!("a graph has weights under share schedulers, not {other}"),
    };
    requests.iter().map(weight).collect()
}

/// The first of `kinds` that `given` is or can be rewritten to, with the rewrites.
fn accept(given: &Label, kinds: &[Kind]) -> Option<(Label, Vec<Rewritten>)> {
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
