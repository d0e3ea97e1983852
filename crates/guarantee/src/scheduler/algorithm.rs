//! A kind of scheduler with the parameters that its guarantees depend on.

use super::{Affects, Parameter, SchedulerKind, Scope, UnknownKind};
use crate::conversion::{Converted, Offer, Refused};
use crate::exact::Span;
use crate::label::Label;
use crate::request::Request;
use serde::Serialize;
use std::fmt;
use thiserror::Error;

/// A scheduler as far as its guarantees depend on what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Algorithm {
    kind: SchedulerKind,
    /// Present if the guarantees of the kind depend on it.
    #[serde(rename = "quantum_ns", skip_serializing_if = "Option::is_none")]
    quantum: Option<Span>,
    /// Of a kind that takes one of its parents' guarantees: the parent; left open, the first one with which all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    takes: Option<String>,
}

/// Why a description is of no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AlgorithmError {
    /// There is no such kind.
    #[error(transparent)]
    UnknownKind(#[from] UnknownKind),
    /// The guarantees of this kind depend on a quantum.
    #[error("the guarantees of {0} depend on its quantum; write one, such as 10ms")]
    NeedsQuantum(&'static str),
    /// This kind has no quantum, or its guarantees do not depend on it.
    #[error("the guarantees of {0} do not depend on a quantum; leave it out")]
    NoQuantum(&'static str),
    /// Only a join takes one of its parents' guarantees.
    #[error("{0} does not choose among its parents; only a join \"takes\" the guarantee of one")]
    TakesNothing(&'static str),
}

/// The article before a kind of scheduler, as it is spoken: "an eevdf", "an sfq", "a stride".
pub fn article(kind: &str) -> &'static str {
    const VOWELS: [char; 5] = ['a', 'e', 'i', 'o', 'u'];
    // Letters whose names begin with a vowel, in a word that has none and so is spelt.
    const SPOKEN: [char; 7] = ['f', 'h', 'l', 'm', 'n', 's', 'x'];
    let word = kind.split('-').next().unwrap_or(kind);
    let is_spelt = !word.contains(VOWELS) && !word.contains('y');
    if word.starts_with(VOWELS) || (is_spelt && word.starts_with(SPOKEN)) { "an" } else { "a" }
}

impl Algorithm {
    /// The algorithm of a kind; `quantum` counts if the guarantees of the kind depend on one.
    pub fn new(kind: SchedulerKind, quantum: &Span) -> Self {
        let depends = kind
            .parameter(Parameter::QUANTUM.name)
            .is_some_and(|parameter| parameter.affects == Affects::Guarantees);
        Algorithm { kind, quantum: depends.then(|| quantum.clone()), takes: None }
    }

    /// A join that takes the guarantee of this parent; left open, the first one with which all is well.
    pub fn join(takes: Option<String>) -> Self {
        Algorithm::new(SchedulerKind::JOIN, &Span::zero()).taking(takes)
    }

    /// The same taking the guarantee of this parent; left open, that of the first one with which all is well.
    pub fn taking(self, takes: Option<String>) -> Self {
        Algorithm { takes, ..self }
    }

    /// The algorithm of this name with these parameters.
    ///
    /// # Errors
    /// There is none of this name, or it has other parameters.
    pub fn named(
        kind: &str,
        quantum: Option<Span>,
        takes: Option<String>,
    ) -> Result<Algorithm, AlgorithmError> {
        let found = SchedulerKind::named(kind).filter(|found| found.scope != Scope::Files);
        let found = found.ok_or_else(|| UnknownKind::among(&SchedulerKind::in_derivations(), kind))?;
        let has_quantum = quantum.is_some();
        let algorithm = Algorithm::new(found, &quantum.unwrap_or_else(Span::zero));
        match (algorithm.quantum.is_some(), has_quantum) {
            (true, false) => Err(AlgorithmError::NeedsQuantum(found.name())),
            (false, true) => Err(AlgorithmError::NoQuantum(found.name())),
            _ if takes.is_some() && !found.chooses_parent() => {
                Err(AlgorithmError::TakesNothing(found.name()))
            }
            _ => Ok(algorithm.taking(takes)),
        }
    }

    /// One of each kind, with a quantum of `quantum` where there is one, in the order of
    /// [`in_derivations`](SchedulerKind::in_derivations).
    pub fn every(quantum: &Span) -> Vec<Algorithm> {
        SchedulerKind::in_derivations().into_iter().map(|kind| Algorithm::new(kind, quantum)).collect()
    }

    /// Applies it to the guarantees that it is `given`, one for each edge into it, and the requests of its children. `taken` is the
    /// position of the guarantee that a join takes.
    ///
    /// # Errors
    /// What it is given is unacceptable, or it cannot admit its children.
    pub fn convert(
        &self,
        taken: usize,
        given: &[Label],
        requests: &[&Request],
    ) -> Result<Converted, Refused> {
        let (quantum, admission) = (self.quantum(), self.kind.admission);
        (self.kind.convert)(&Offer { quantum, admission, taken, given, requests })
    }

    /// What it is.
    pub fn kind(&self) -> SchedulerKind {
        self.kind
    }

    /// The name in system files.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The quantum, if the algorithm has one that its guarantees depend on.
    pub fn quantum(&self) -> Option<&Span> {
        self.quantum.as_ref()
    }

    /// The parent whose guarantee is taken, if that is decided.
    pub fn takes(&self) -> Option<&str> {
        self.takes.as_deref()
    }

    /// The same with another quantum.
    ///
    /// # Panics
    /// If it has none.
    pub fn set_quantum(&mut self, quantum: Span) {
        assert!(self.quantum.is_some(), "{self} has no quantum");
        self.quantum = Some(quantum);
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_are_spoken() {
        for kind in ["eevdf", "sfq", "sfs", "srms", "explicit-plan", "edf", "mlf"] {
            assert_eq!(article(kind), "an", "{kind}");
        }
        for kind in
            ["stride", "spring", "tbs", "cbs", "bss-i", "pshed", "fifo", "lottery", "windows-2000", "linux"]
        {
            assert_eq!(article(kind), "a", "{kind}");
        }
    }

    #[test]
    fn names_with_their_parameters_and_no_others() {
        let quantum = Span::from_millis(3);
        for algorithm in Algorithm::every(&quantum) {
            let named = Algorithm::named(algorithm.name(), algorithm.quantum().cloned(), None);
            assert_eq!(named.as_ref(), Ok(&algorithm));
            let json = serde_json::to_value(&algorithm).expect("JSON");
            assert_eq!(json["kind"], algorithm.name());
        }
        let refused = |kind, quantum, takes: Option<&str>| {
            let error = Algorithm::named(kind, quantum, takes.map(String::from)).expect_err(kind);
            error.to_string()
        };
        assert!(refused("reservations", None, None).contains("did you mean \"reservation\"?"));
        assert!(refused("magic", None, None).contains("write one of fixed-priority, join, limit"));
        assert!(refused("sfq", None, None).contains("write one, such as 10ms"));
        assert!(refused("lottery", Some(quantum), None).contains("leave it out"));
        assert!(refused("limit", None, Some("res")).contains("only a join"));
    }
}
