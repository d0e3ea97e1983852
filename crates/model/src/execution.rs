//! How long work takes.

use std::sync::Arc;
use talea_time::Work;

/// Execution times of synthetic work, job by job.
#[derive(Clone, Debug, PartialEq)]
pub enum Execution {
    /// Every job takes this long.
    Constant(Work),
    /// Uniform between the two, both included, drawn from the system's seed.
    Uniform(Work, Work),
    /// Job `k` takes entry `k` modulo the length, which is at least one. Lists written in the
    /// system file and lists read from a trace file become the same thing.
    List(Arc<[Work]>),
}

impl Execution {
    /// The largest execution time this can produce.
    pub fn max(&self) -> Work {
        match self {
            Execution::Constant(work) => *work,
            Execution::Uniform(_, high) => *high,
            Execution::List(list) => list.iter().copied().max().unwrap_or(Work::ZERO),
        }
    }
}
