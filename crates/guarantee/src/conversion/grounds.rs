//! On what grounds a scheduler gives a guarantee, as a sentence.

use super::admission::Test;
use crate::exact::{Ratio, Share, Span};
use crate::notation::print_ratio;
use serde::{Serialize, Serializer};
use std::fmt;

/// Why a scheduler can give what it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grounds {
    /// Nothing comes between this child and what its parent is given.
    HighestPriority {
        /// How many children are higher.
        rank: usize,
        /// How many processors there are.
        processors: usize,
    },
    /// A higher child may never stop.
    LowerPriority {
        /// How many processors there are.
        processors: usize,
    },
    /// A join runs its child whenever one of its parents runs it.
    Joined {
        /// Whether a maximum was lost.
        softened: bool,
    },
    /// A limit stops its child when the amount is used.
    Limited,
    /// Time sharing, and orders without an admission test, promise nothing.
    Nothing,
    /// What was asked for has been admitted.
    Admitted {
        /// How that was decided.
        test: Test,
        /// Sum of what the children ask for.
        load: Ratio,
        /// Speed of the processor that it is part of.
        pace: Share,
    },
    /// What was asked for has been admitted by a scheduler that does not have a processor of its own.
    AdmittedOfShare {
        /// How it would be decided on one.
        test: Test,
        /// Sum of what the children ask for.
        load: Ratio,
        /// What the scheduler is given: its share,
        share: Share,
        /// and how far that may be behind.
        error: Span,
    },
    /// The formula of start-time fair queuing.
    StartTimeFair {
        /// What the scheduler is given: its share,
        share: Share,
        /// and how far that may be behind.
        error: Span,
        /// Its quantum.
        quantum: Span,
        /// Its children.
        threads: u64,
        /// This child's part of the weights.
        fraction: Share,
    },
    /// A quantum behind what the scheduler itself is given.
    Eevdf {
        /// What the scheduler is given: its share,
        share: Share,
        /// and how far that may be behind.
        error: Span,
        /// Its quantum.
        quantum: Span,
        /// This child's part of the weights.
        fraction: Share,
    },
    /// A fraction of the share.
    Fraction {
        /// The scheduler's own share.
        share: Share,
        /// This child's part of the weights.
        fraction: Share,
    },
    /// A fraction of several shares, with weights made feasible.
    Surplus {
        /// Sum of the scheduler's shares.
        sum: Ratio,
        /// How many there are.
        processors: usize,
        /// This child's part of them.
        fraction: Ratio,
    },
    /// What the conversion of an own kind says.
    Stated(String),
}

impl fmt::Display for Grounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grounds::HighestPriority { processors: 1, .. } => f.write_str("it has the highest priority"),
            Grounds::HighestPriority { rank, processors } => {
                write!(f, "{rank} of its siblings are higher, and there are {processors} processors")
            }
            Grounds::LowerPriority { processors: 1 } => f.write_str("a higher child may run for ever"),
            Grounds::LowerPriority { .. } => f.write_str("higher children may take every processor for ever"),
            Grounds::Joined { softened: true } => {
                f.write_str("it runs whenever this parent runs it, and possibly more, so it has no maximum")
            }
            Grounds::Joined { softened: false } => f.write_str("it runs whenever this parent runs it"),
            Grounds::Limited => f.write_str("it is stopped when the amount of the period is used"),
            Grounds::Nothing => f.write_str("it promises nothing"),
            Grounds::Admitted { test, load, pace } => {
                write!(f, "asked for and admitted: {test}, here {}", print_ratio(load))?;
                match pace.is_whole() {
                    true => Ok(()),
                    false => write!(f, ", in the time of a processor of speed {pace}"),
                }
            }
            Grounds::AdmittedOfShare { test: Test::Harmonic, load, share, .. } => {
                write!(f, "asked for and admitted: together {} of {share}", print_ratio(load))
            }
            Grounds::AdmittedOfShare { load, share, error, .. } => write!(
                f,
                "asked for and admitted: together {}, and what is due within any time t is at most {share} × t − {error}",
                print_ratio(load)
            ),
            Grounds::StartTimeFair { share, error, quantum, threads, fraction } => write!(
                f,
                "of {share} the fraction {fraction}, behind by ({fraction} × {threads} × {quantum} + {fraction} × \
                 {error}) / {share} + {quantum}"
            ),
            Grounds::Eevdf { share, error, quantum, fraction } if error.is_zero() => {
                write!(f, "of {share} the fraction {fraction}, behind by the quantum of {quantum}")
            }
            Grounds::Eevdf { share, error, quantum, fraction } => {
                write!(
                    f,
                    "of {share} the fraction {fraction}, behind by {quantum} and the fraction of {error}"
                )
            }
            Grounds::Fraction { share, fraction } => write!(f, "of {share} the fraction {fraction}"),
            Grounds::Surplus { sum, processors, fraction } => write!(
                f,
                "of {} on {processors} processors the fraction {}, at most one of them",
                print_ratio(sum),
                print_ratio(fraction)
            ),
            Grounds::Stated(why) => f.write_str(why),
        }
    }
}

/// The sentence.
impl Serialize for Grounds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
