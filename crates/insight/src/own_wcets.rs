//! Execution times of posted jobs that are not those of their operations.

use std::collections::HashMap;
use talea_record::JobId;
use talea_record::event::JobWcet;
use talea_time::{Duration, Instant, Work};

/// More jobs than these, told of and not released, can only be those whose releases were lost.
const LIMIT: usize = 1 << 14;

/// What is told just before such jobs are released.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnWcets {
    told: HashMap<u64, Duration>,
    /// When the first record was made behind those that were lost last.
    lost_until: Option<Instant>,
}

impl OwnWcets {
    /// The job that is released next of its operation has this one.
    pub fn hear(&mut self, told: JobWcet) {
        if self.told.len() >= LIMIT {
            self.told.clear();
        }
        self.told.insert(told.job.pack(), told.wcet);
    }

    /// Records of the run were lost before one that was made at `until`.
    pub fn lose(&mut self, until: Instant) {
        self.lost_until = Some(until);
    }

    /// Whether that of a job which is released at `now` may be among the records that were lost: it is told at the same instant.
    pub fn is_in_doubt(&self, job: JobId, now: Instant) -> bool {
        self.lost_until == Some(now) && !self.told.contains_key(&job.pack())
    }

    /// That of a job which is released now, if it was told of.
    #[inline]
    pub fn released(&mut self, job: JobId) -> Option<Work> {
        if self.told.is_empty() {
            return None;
        }
        self.told.remove(&job.pack()).map(|wcet| Work::from_nanos(wcet.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::OperationId;

    #[test]
    fn what_is_told_of_jobs_that_never_come_takes_bounded_room() {
        let mut own = OwnWcets::default();
        let job = |instance: u64| JobId { operation: OperationId::from_index(1), instance };
        let told = |instance: u64| JobWcet { job: job(instance), lane: 0, wcet: Duration::from_nanos(7) };
        (0..=2 * LIMIT as u64).for_each(|instance| own.hear(told(instance)));
        assert!(own.told.len() <= LIMIT);
        let last = job(2 * LIMIT as u64);
        assert_eq!((own.released(last), own.released(last)), (Some(Work::from_nanos(7)), None));
    }
}
