//! The scheduling algorithms that the guarantee system knows, by name.

use crate::exact::Span;
use crate::guarantee::Kind;
use serde::Serialize;
use std::fmt;
use thiserror::Error;

/// An algorithm with the parameters that its guarantees depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Algorithm {
    /// Preemptive, one virtual processor at each priority.
    FixedPriority,
    /// Runs its one child whenever any of its parents runs it.
    Join {
        /// The parent whose guarantee the child takes; left open, the first one with which all is well.
        #[serde(skip_serializing_if = "Option::is_none")]
        takes: Option<String>,
    },
    /// Stops its one child when the reserved amount is used.
    Limit,
    /// The proportional-share scheduler of HLS, with warps of zero.
    ProportionalShare {
        /// Quantum, more than zero.
        #[serde(rename = "quantum_ns")]
        quantum: Span,
    },
    /// Start-time fair queuing (Goyal, Guo and Vin 1996).
    #[serde(rename = "sfq")]
    StartTimeFair {
        /// Quantum, more than zero.
        #[serde(rename = "quantum_ns")]
        quantum: Span,
    },
    /// Earliest eligible virtual deadline first (Stoica et al. 1996).
    Eevdf {
        /// Quantum, more than zero.
        #[serde(rename = "quantum_ns")]
        quantum: Span,
    },
    /// Lottery scheduling (Waldspurger and Weihl 1994).
    Lottery,
    /// Stride scheduling (Waldspurger and Weihl 1995).
    Stride,
    /// Surplus fair scheduling of several processors (Chandra et al. 2000).
    #[serde(rename = "sfs")]
    SurplusFair,
    /// The reservation scheduler of HLS: EDF with budgets.
    Reservation,
    /// Constant-bandwidth servers that stop when their budget is used (Abeni and Buttazzo 1998).
    #[serde(rename = "cbs")]
    ConstantBandwidth,
    /// Total-bandwidth servers (Spuri and Buttazzo 1996).
    #[serde(rename = "tbs")]
    TotalBandwidth,
    /// The resource kernel: rate-monotonic reserves, hard or soft (Oikawa and Rajkumar 1999).
    ResourceKernel,
    /// Rialto: a precomputed schedule (Jones, Rosu and Rosu 1997).
    Rialto,
    /// Rialto/NT (Jones and Regehr 1999).
    RialtoNt,
    /// Spring: a plan made on arrival (Stankovic et al. 1999).
    Spring,
    /// Statistical rate-monotonic scheduling: an allowance in every superperiod (Atlas and Bestavros 1998).
    #[serde(rename = "srms")]
    StatisticalRateMonotonic,
    /// BSS-I: uniformly slower processors (Lipari and Baruah 2000).
    BssI,
    /// PShED: the same with protection of applications from each other (Lipari, Carpenter and Baruah 2000).
    #[serde(rename = "pshed")]
    PShed,
    /// Any time-sharing scheduler, round robin among them.
    TimeSharing,
    /// The scheduler of Linux for ordinary threads.
    Linux,
    /// The scheduler of Windows 2000.
    #[serde(rename = "windows-2000")]
    Windows2000,
    /// The proportional-share scheduler of HLS with warps: whoever is warped is served ahead of its share for a while, so
    /// that only the long run is promised (Duda and Cheriton 1999).
    WarpedShare,
    /// Everybody in turn for a quantum.
    RoundRobin,
    /// In the order of arrival, without an admission test.
    Fifo,
    /// Earliest deadline first, without an admission test.
    #[serde(rename = "edf")]
    EarliestDeadline,
    /// Least laxity first, without an admission test.
    #[serde(rename = "laxity")]
    LeastLaxity,
}

/// How many virtual processors a scheduler takes from its parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intake {
    /// One: it schedules one processor.
    One,
    /// Any number.
    Several,
}

/// What a child asks of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing.
    Nothing,
    /// A priority of its own.
    Priority,
    /// A relative share.
    Weight,
    /// A guarantee of one of these kinds.
    Guarantee(&'static [Kind]),
    /// A guarantee of this kind, or nothing for as much as there is.
    AtMost(Kind),
}

/// Why a description is of no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AlgorithmError {
    /// There is no such kind.
    #[error("unknown kind of scheduler \"{kind}\"; {}", .nearest.map_or_else(|| format!("write one of {}", names().join(", ")), |near| format!("did you mean \"{near}\"?")))]
    UnknownKind {
        /// What was written.
        kind: String,
        /// The most similar kind, if one is similar.
        nearest: Option<&'static str>,
    },
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
    match kind {
        "sfq" | "sfs" | "srms" => "an",
        _ if kind.starts_with(['a', 'e', 'i', 'o', 'u']) => "an",
        _ => "a",
    }
}

fn names() -> Vec<&'static str> {
    Algorithm::every(&Span::zero()).iter().map(Algorithm::name).collect()
}

impl Algorithm {
    /// The algorithm of this name with these parameters.
    ///
    /// # Errors
    /// There is none of this name, or it has other parameters.
    pub fn named(
        kind: &str,
        quantum: Option<Span>,
        takes: Option<String>,
    ) -> Result<Algorithm, AlgorithmError> {
        let every = Algorithm::every(quantum.as_ref().unwrap_or(&Span::zero()));
        let Some(found) = every.into_iter().find(|algorithm| algorithm.name() == kind) else {
            let distance = |name: &&str| strsim::osa_distance(&kind.to_lowercase(), name);
            let nearest = names().into_iter().min_by_key(distance);
            let nearest = nearest.filter(|name| distance(name) <= (kind.len() / 3).max(1));
            return Err(AlgorithmError::UnknownKind { kind: kind.into(), nearest });
        };
        match (&found, found.quantum().is_some(), quantum.is_some(), takes) {
            (_, true, false, _) => Err(AlgorithmError::NeedsQuantum(found.name())),
            (_, false, true, _) => Err(AlgorithmError::NoQuantum(found.name())),
            (Algorithm::Join { .. }, _, _, takes) => Ok(Algorithm::Join { takes }),
            (_, _, _, Some(_)) => Err(AlgorithmError::TakesNothing(found.name())),
            (_, _, _, None) => Ok(found),
        }
    }

    /// One of each, with a quantum of `quantum` where there is one: in the order of the published table, then those that it
    /// does not list.
    pub fn every(quantum: &Span) -> [Algorithm; 27] {
        let quantum = || quantum.clone();
        [
            Algorithm::FixedPriority,
            Algorithm::Join { takes: None },
            Algorithm::Limit,
            Algorithm::ProportionalShare { quantum: quantum() },
            Algorithm::Reservation,
            Algorithm::TimeSharing,
            Algorithm::BssI,
            Algorithm::PShed,
            Algorithm::ConstantBandwidth,
            Algorithm::Eevdf { quantum: quantum() },
            Algorithm::Linux,
            Algorithm::Windows2000,
            Algorithm::Lottery,
            Algorithm::Stride,
            Algorithm::ResourceKernel,
            Algorithm::Rialto,
            Algorithm::RialtoNt,
            Algorithm::StartTimeFair { quantum: quantum() },
            Algorithm::SurplusFair,
            Algorithm::Spring,
            Algorithm::TotalBandwidth,
            Algorithm::StatisticalRateMonotonic,
            Algorithm::WarpedShare,
            Algorithm::RoundRobin,
            Algorithm::Fifo,
            Algorithm::EarliestDeadline,
            Algorithm::LeastLaxity,
        ]
    }

    /// The name in system files.
    pub const fn name(&self) -> &'static str {
        match self {
            Algorithm::FixedPriority => "fixed-priority",
            Algorithm::Join { .. } => "join",
            Algorithm::Limit => "limit",
            Algorithm::ProportionalShare { .. } => "proportional-share",
            Algorithm::StartTimeFair { .. } => "sfq",
            Algorithm::Eevdf { .. } => "eevdf",
            Algorithm::Lottery => "lottery",
            Algorithm::Stride => "stride",
            Algorithm::SurplusFair => "sfs",
            Algorithm::Reservation => "reservation",
            Algorithm::ConstantBandwidth => "cbs",
            Algorithm::TotalBandwidth => "tbs",
            Algorithm::ResourceKernel => "resource-kernel",
            Algorithm::Rialto => "rialto",
            Algorithm::RialtoNt => "rialto-nt",
            Algorithm::Spring => "spring",
            Algorithm::StatisticalRateMonotonic => "srms",
            Algorithm::BssI => "bss-i",
            Algorithm::PShed => "pshed",
            Algorithm::TimeSharing => "time-sharing",
            Algorithm::Linux => "linux",
            Algorithm::Windows2000 => "windows-2000",
            Algorithm::WarpedShare => "warped-share",
            Algorithm::RoundRobin => "round-robin",
            Algorithm::Fifo => "fifo",
            Algorithm::EarliestDeadline => "edf",
            Algorithm::LeastLaxity => "laxity",
        }
    }

    /// The quantum, if the algorithm has one that its guarantees depend on.
    pub fn quantum(&self) -> Option<&Span> {
        match self {
            Algorithm::ProportionalShare { quantum }
            | Algorithm::StartTimeFair { quantum }
            | Algorithm::Eevdf { quantum } => Some(quantum),
            _ => None,
        }
    }

    /// How many virtual processors it takes from its parents.
    pub const fn intake(&self) -> Intake {
        match self {
            Algorithm::FixedPriority
            | Algorithm::Join { .. }
            | Algorithm::SurplusFair
            | Algorithm::TimeSharing
            | Algorithm::Linux
            | Algorithm::Windows2000 => Intake::Several,
            _ => Intake::One,
        }
    }

    /// Whether it has one child, or any number of them.
    pub const fn has_one_child(&self) -> bool {
        matches!(self, Algorithm::Join { .. } | Algorithm::Limit)
    }

    /// What its children ask of it.
    pub const fn demand(&self) -> Demand {
        match self {
            Algorithm::FixedPriority => Demand::Priority,
            Algorithm::Limit => Demand::AtMost(Kind::Resbh),
            Algorithm::ProportionalShare { .. }
            | Algorithm::StartTimeFair { .. }
            | Algorithm::Eevdf { .. }
            | Algorithm::Lottery
            | Algorithm::Stride
            | Algorithm::SurplusFair
            | Algorithm::WarpedShare => Demand::Weight,
            Algorithm::Reservation
            | Algorithm::ConstantBandwidth
            | Algorithm::Spring
            | Algorithm::StatisticalRateMonotonic => Demand::Guarantee(&[Kind::Resbh]),
            Algorithm::TotalBandwidth => Demand::Guarantee(&[Kind::Resbs]),
            Algorithm::ResourceKernel => Demand::Guarantee(&[Kind::Resbs, Kind::Resbh]),
            Algorithm::Rialto | Algorithm::RialtoNt => Demand::Guarantee(&[Kind::Rescs]),
            Algorithm::BssI | Algorithm::PShed => Demand::Guarantee(&[Kind::Resu]),
            Algorithm::Join { .. }
            | Algorithm::TimeSharing
            | Algorithm::Linux
            | Algorithm::Windows2000
            | Algorithm::RoundRobin
            | Algorithm::Fifo
            | Algorithm::EarliestDeadline
            | Algorithm::LeastLaxity => Demand::Nothing,
        }
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
