//! Why a hierarchy does not compose correctly.

use super::Derivation;
use crate::conversion::Refused;
use crate::hierarchy::Fault;
use crate::label::Label;
use crate::rewrite::{Choice, Rewritten, Rule};
use serde::{Serialize, Serializer};
use std::fmt;
use thiserror::Error;

/// Why there is no complete derivation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotDerived {
    /// The hierarchy makes no sense; nothing has been derived.
    #[error("{}", lines(.0))]
    Malformed(Vec<Fault>),
    /// Somebody does not receive what it needs.
    #[error("{0}")]
    Failed(Box<Failure>),
}

fn lines<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join("\n")
}

/// A derivation that did not reach everybody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Who does not receive what it needs, in the order of the derivation: at least one. Whatever is only below such a
    /// scheduler has not been looked at.
    pub findings: Vec<Finding>,
    /// What could be derived all the same.
    pub derived: Derivation,
    /// How many ways there were to decide joins that leave it open; all have been tried.
    pub alternatives: usize,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lines(&self.findings))?;
        match self.alternatives {
            0 | 1 => Ok(()),
            others => write!(f, "\n({others} ways to decide which parents joins take from were tried)"),
        }
    }
}

/// A scheduler or a thread that does not receive what it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name.
    pub node: String,
    /// What is wrong.
    pub problem: Problem,
    /// How many edges had been labelled before.
    pub after: usize,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.node, self.problem)
    }
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// The scheduler can make nothing of what it is given.
    #[error("{0}")]
    Scheduler(#[from] Refused),
    /// The thread requires something else.
    #[error("it requires {required}, but receives {received}{}", at_best(.required, .received))]
    Requirement {
        /// What it requires.
        required: Box<Label>,
        /// What it receives.
        received: Box<Label>,
    },
}

/// What the received guarantee is as one of the required kind, or why it is none, as a clause.
fn at_best(required: &Label, received: &Label) -> String {
    let kind = required.guarantee().kind();
    let period = required.guarantee().as_reservation().map(|required| required.period().clone());
    match received.rewrite(kind, &Choice { period, ..Choice::default() }) {
        Ok(Rewritten { rule: Rule::Same, .. }) => String::new(),
        Ok(Rewritten { rule, label }) => format!(", which is {label} ({rule})"),
        Err(reason) => format!("; {reason}"),
    }
}

impl Problem {
    /// The kind of problem as one word.
    pub fn word(&self) -> &'static str {
        match self {
            Problem::Scheduler(Refused::Unacceptable { .. }) => "unacceptable",
            Problem::Scheduler(Refused::Overload(_)) => "admission",
            Problem::Requirement { .. } => "requirement",
        }
    }
}

/// The word and the sentence.
impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields {
            reason: &'static str,
            message: String,
        }
        Fields { reason: self.word(), message: self.to_string() }.serialize(serializer)
    }
}
