//! A hierarchy of schedulers and threads as plain values.
//!
//! An edge is one virtual processor: the parent schedules the child. Nothing here has to make sense;
//! [`Graph::new`] lists everything that does not.

mod fault;
mod graph;

use crate::exact::Span;
use crate::guarantee::Guarantee;
use crate::request::Request;
use crate::scheduler::{Algorithm, AlgorithmError};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

pub use fault::Fault;
pub use graph::{Graph, Node, NodeId};

/// A hierarchy for the processors of one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hierarchy {
    /// How many processors the scheduler at the root is given.
    #[serde(default = "one")]
    pub processors: NonZeroU32,
    /// What it is given of each of them: less than the whole inside a virtual machine, say.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub given: Guarantee,
    /// The schedulers. The one without a parent is the root.
    pub schedulers: Vec<Scheduler>,
    /// The threads, which are leaves.
    pub threads: Vec<Thread>,
    /// Who schedules whom, in the order in which the children are listed.
    pub edges: Vec<Edge>,
}

const fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

const fn whole() -> Guarantee {
    Guarantee::All
}

fn is_whole(given: &Guarantee) -> bool {
    *given == Guarantee::All
}

/// One scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SchedulerFields")]
pub struct Scheduler {
    /// Its name, which no other scheduler or thread has.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub algorithm: Algorithm,
}

/// A scheduler as it is written: what its kind does not have is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchedulerFields {
    name: String,
    kind: String,
    quantum_ns: Option<Span>,
    takes: Option<String>,
}

impl TryFrom<SchedulerFields> for Scheduler {
    type Error = AlgorithmError;

    fn try_from(fields: SchedulerFields) -> Result<Self, AlgorithmError> {
        let SchedulerFields { name, kind, quantum_ns, takes } = fields;
        Ok(Scheduler { name, algorithm: Algorithm::named(&kind, quantum_ns, takes)? })
    }
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    /// Its name, which no other thread or scheduler has.
    pub name: String,
    /// The guarantee that it has to receive, if any will not do. Below a uniformly slower processor amounts
    /// of reservations count that processor's time, as those on its edge do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<Guarantee>,
}

/// One virtual processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The scheduler above.
    pub parent: String,
    /// The scheduler or thread below.
    pub child: String,
    /// What the child asks for.
    #[serde(default)]
    pub request: Request,
}
