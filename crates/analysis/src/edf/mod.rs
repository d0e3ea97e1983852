//! Earliest deadline first on one processor: processor demand and worst-case response times.
//!
//! * [`demand`]: the processor demand criterion, deadline by deadline (Baruah, Rosier and Howell 1990).
//! * [`qpa`]: the same verdict, mostly in a few dozen points (Zhang and Burns 2009).
//! * [`nonpreemptive`]: the criterion for jobs that run to completion (George, Rivierre and Spuri 1996).
//! * [`response`]: worst-case response times of both (Spuri 1996; George, Rivierre and Spuri 1996).
//!
//! All are exact for sporadic tasks with arbitrary deadlines; for given phases they are sufficient. Release jitter
//! counts as a deadline that is so much earlier, from a release that is at worst simultaneous with all others. A
//! task's blocking delays deadlines that are not before its own, as under the stack resource policy (Baker 1991); with
//! blocking the tests are sufficient only.
//!
//! The verdicts are sustainable: with shorter execution times, longer periods or deadlines, less jitter or less
//! blocking a set that meets its deadlines still does.

mod blocking;
pub mod demand;
pub mod nonpreemptive;
pub mod qpa;
pub mod response;
mod table;

use blocking::Blocking;
use table::Table;
use talea_time::Duration;

/// What a test of deadlines found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every job meets its deadline, whatever the phases.
    Schedulable,
    /// The utilisation exceeds 1.
    Overloaded,
    /// A job misses a deadline in some legal arrival sequence.
    Miss {
        /// That deadline, counted from the beginning of the busy period.
        deadline: Duration,
    },
}

impl Verdict {
    /// Whether every job meets its deadline.
    pub fn is_schedulable(self) -> bool {
        self == Verdict::Schedulable
    }
}
