//! Jobs as the policies see them.

use talea_time::{Instant, Work};

/// One released job of one operation: everything an ordering may depend on, and a tag for its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// When it was released (for a successor: when its last predecessor completed).
    pub release: Instant,
    /// Absolute deadline.
    pub deadline: Instant,
    /// Worst-case execution time it declares.
    pub wcet: Work,
    /// Position of its operation in its lane's member list.
    pub rank: u32,
    /// Number among the jobs of its operation, from 0.
    pub number: u64,
    /// Whatever the owner of the queue finds the job by; policies never look at it.
    pub tag: u32,
}
