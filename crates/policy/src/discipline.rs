//! Disciplines: the order inside a lane, as a key function.
//!
//! Every key is a *constant* of a waiting job: laxity `deadline - now - left` is compared between jobs at
//! the same `now`, so `deadline - left` orders alike, and `left` changes only while a job runs (`docs/policies.md`).
//! That is why a lane is a heap and never rescans.

use crate::job::Job;
use serde::{Deserialize, Serialize};
use std::fmt;
use talea_model::Laxity;
use talea_time::{Instant, Work};

/// The order of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discipline {
    /// By release.
    Fifo,
    /// By absolute deadline.
    Deadline,
    /// By laxity.
    Laxity,
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Discipline::Fifo => "fifo",
            Discipline::Deadline => "deadline",
            Discipline::Laxity => "laxity",
        })
    }
}

impl Discipline {
    /// The primary key of `job` after it has executed for `executed`; the smallest is served first.
    pub fn urgency(self, job: &Job, executed: Work, laxity: Laxity) -> Instant {
        match self {
            Discipline::Fifo => job.release,
            Discipline::Deadline => job.deadline,
            Discipline::Laxity => {
                let left = match laxity {
                    Laxity::Declared => job.wcet,
                    Laxity::Remaining => job.wcet - executed,
                };
                // Who has no deadline stays without when it has run for longer than it declared.
                job.deadline.saturating_add(-left.at_full_speed())
            }
        }
    }

    /// Whether the order of two jobs may change while one of them runs, so that a preemptive lane has to
    /// choose anew even when nothing in it has changed.
    pub fn moves_while_running(self, laxity: Laxity) -> bool {
        self == Discipline::Laxity && laxity == Laxity::Remaining
    }
}
