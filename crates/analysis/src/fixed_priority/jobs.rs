//! The jobs of one task in its busy period, examined one after the other.

use super::Response;
use crate::effort::AnalysisError;
use crate::recurrence::{TIME_MAX, duration};
use crate::task::Numbers;

/// What a search is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// The worst response time, however long.
    Worst,
    /// Whether the deadline is met: the search ends at the first job that misses it.
    Deadline,
}

/// What has been seen of a task's jobs. Job 0 is released at 0, after its whole jitter; the others follow as early as
/// they can.
pub(super) struct Jobs {
    task: Numbers,
    search: Search,
    worst: u64,
    worst_job: u64,
}

impl Jobs {
    pub(super) fn new(task: Numbers, search: Search) -> Self {
        Jobs { task, search, worst: 0, worst_job: 0 }
    }

    /// When job `number` arrives; job 0 does so before 0.
    fn arrival(&self, number: u64) -> i128 {
        i128::from(number) * i128::from(self.task.period) - i128::from(self.task.jitter)
    }

    /// The latest completion of job `number` worth finding.
    pub(super) fn cap(&self, number: u64) -> u64 {
        match self.search {
            Search::Worst => TIME_MAX,
            Search::Deadline => {
                let deadline = self.arrival(number) + i128::from(self.task.deadline);
                deadline.clamp(0, i128::from(TIME_MAX)) as u64
            }
        }
    }

    /// Takes note that job `number` completes at `completion`.
    ///
    /// # Errors
    /// [`AnalysisError::Overflow`] where the response time is no time.
    pub(super) fn complete(&mut self, number: u64, completion: u64) -> Result<(), AnalysisError> {
        let response = i128::from(completion) - self.arrival(number);
        let response = u64::try_from(response).map_err(|_| AnalysisError::Overflow)?;
        if response > self.worst {
            (self.worst, self.worst_job) = (response, number);
        }
        Ok(())
    }

    /// The answer if job `number` completes after its [`cap`](Self::cap): it misses its deadline.
    ///
    /// # Errors
    /// [`AnalysisError::Overflow`] where the cap was the range of times and no deadline.
    pub(super) fn beyond<T>(&self, number: u64) -> Result<Option<T>, AnalysisError> {
        if self.cap(number) < TIME_MAX { Ok(None) } else { Err(AnalysisError::Overflow) }
    }

    /// Whether job `number + 1` arrives, and may so be released, only when everything until `window` is done.
    pub(super) fn ended_by(&self, number: u64, window: u64) -> bool {
        i128::from(window) <= self.arrival(number + 1)
    }

    /// The worst of the jobs seen.
    pub(super) fn worst(&self, busy_period: Option<u64>) -> Result<Response, AnalysisError> {
        let busy_period = busy_period.map(duration).transpose()?;
        Ok(Response { worst: duration(self.worst)?, job: self.worst_job, busy_period })
    }
}
