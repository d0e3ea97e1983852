//! One change of a hierarchy, as a value.

use crate::exact::Span;
use crate::guarantee::Guarantee;
use crate::hierarchy::{Edge, Hierarchy, Scheduler};
use crate::request::Request;
use crate::scheduler::{Algorithm, SchedulerKind, article};
use serde::Serialize;
use std::fmt;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
pub enum Change {
    /// A child asks for something else.
    Request {
        /// Position among the edges of the hierarchy.
        edge: usize,
        /// Who is asked.
        parent: String,
        /// Who asks.
        child: String,
        /// What it asks for now.
        from: Request,
        /// What it should ask for.
        to: Request,
    },
    /// A scheduler has another quantum.
    Quantum {
        /// The scheduler.
        scheduler: String,
        /// Its quantum.
        from: Span,
        /// The other one.
        to: Span,
    },
    /// A scheduler is of another kind. What its children then ask for follows as changes of their requests.
    Algorithm {
        /// The scheduler.
        scheduler: String,
        /// Its algorithm.
        from: Algorithm,
        /// The other one.
        to: Algorithm,
    },
    /// A join takes the guarantee of another parent.
    Takes {
        /// The join.
        join: String,
        /// The parent.
        parent: String,
    },
    /// A limit stands between a scheduler and its child, which asks it for this guarantee.
    Limit {
        /// Position of the edge among those of the hierarchy.
        edge: usize,
        /// The scheduler above.
        parent: String,
        /// The one below.
        child: String,
        /// The name of the limit.
        name: String,
        /// What the child asks it for.
        request: Guarantee,
    },
    /// A child is under another scheduler.
    Move {
        /// Position of the edge among those of the hierarchy.
        edge: usize,
        /// The child.
        child: String,
        /// Who schedules it.
        from: String,
        /// Who should.
        to: String,
        /// What it then asks for.
        request: Request,
    },
    /// A thread requires something else.
    Requirement {
        /// The thread.
        thread: String,
        /// What it requires.
        from: Guarantee,
        /// What it should require.
        to: Guarantee,
    },
}

impl Change {
    /// Changes `hierarchy`.
    ///
    /// # Panics
    /// If it is not a change of this hierarchy.
    pub fn apply(&self, hierarchy: &mut Hierarchy) {
        match self {
            Change::Request { edge, to, .. } => hierarchy.edges[*edge].request = to.clone(),
            Change::Algorithm { scheduler, to, .. } => {
                self::scheduler(hierarchy, scheduler).algorithm = to.clone()
            }
            Change::Takes { join, parent } => {
                let algorithm = &mut scheduler(hierarchy, join).algorithm;
                *algorithm = algorithm.clone().taking(Some(parent.clone()));
            }
            Change::Quantum { scheduler, to, .. } => {
                self::scheduler(hierarchy, scheduler).algorithm.set_quantum(to.clone());
            }
            Change::Limit { edge, name, request, child, .. } => {
                let algorithm = Algorithm::new(SchedulerKind::LIMIT, &Span::zero());
                hierarchy.schedulers.push(Scheduler { name: name.clone(), algorithm });
                hierarchy.edges[*edge].child = name.clone();
                let request = Request::Guarantee(request.clone());
                hierarchy.edges.push(Edge { parent: name.clone(), child: child.clone(), request });
            }
            Change::Move { edge, to, request, .. } => {
                let moved = &mut hierarchy.edges[*edge];
                moved.parent = to.clone();
                moved.request = request.clone();
            }
            Change::Requirement { thread, to, .. } => {
                let named = hierarchy.threads.iter_mut().find(|other| other.name == *thread);
                named.expect("a thread of this hierarchy").requires = Some(to.clone());
            }
        }
    }
}

fn scheduler<'h>(hierarchy: &'h mut Hierarchy, name: &str) -> &'h mut Scheduler {
    let named = hierarchy.schedulers.iter_mut().find(|scheduler| scheduler.name == name);
    named.expect("a scheduler of this hierarchy")
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Request { parent, child, from, to, .. } => {
                write!(f, "let {child} ask {parent} for {to} instead of {from}")
            }
            Change::Quantum { scheduler, from, to } => {
                write!(f, "give {scheduler} a quantum of {to} instead of {from}")
            }
            Change::Algorithm { scheduler, from, to } => {
                write!(f, "make {scheduler} {} {to} scheduler instead of {from}", article(to.name()))?;
                to.quantum().map_or(Ok(()), |quantum| write!(f, " (quantum {quantum})"))
            }
            Change::Takes { join, parent } => write!(f, "let {join} take the guarantee of {parent}"),
            Change::Limit { parent, child, request, name, .. } => {
                write!(f, "put a limit \"{name}\" between {parent} and {child}, which asks it for {request}")
            }
            Change::Move { child, from, to, request, .. } => {
                write!(f, "put {child} under {to} instead of {from}, asking for {request}")
            }
            Change::Requirement { thread, from, to } => {
                write!(f, "let {thread} require {to} instead of {from}")
            }
        }
    }
}
