//! Execution times of posted jobs that are not those of their operations.

use std::collections::HashMap;
use talea_record::JobId;
use talea_record::event::JobWcet;
use talea_time::{Duration, Work};

/// More jobs than these, told of and not released, can only be those whose releases were lost.
const LIMIT: usize = 1 << 14;

/// What is told just before such jobs are released.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnWcets(HashMap<u64, Duration>);

impl OwnWcets {
    /// The job that is released next of its operation has this one.
    pub fn hear(&mut self, told: JobWcet) {
        if self.0.len() >= LIMIT {
            self.0.clear();
        }
        self.0.insert(told.job.pack(), told.wcet);
    }

    /// That of a job which is released now, if it was told of.
    #[inline]
    pub fn released(&mut self, job: JobId) -> Option<Work> {
        if self.0.is_empty() {
            return None;
        }
        self.0.remove(&job.pack()).map(|wcet| Work::from_nanos(wcet.as_nanos()))
    }
}
