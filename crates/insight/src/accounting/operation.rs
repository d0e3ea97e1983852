//! The books of one operation: its jobs.

use super::distribution::Recorder;
use super::window::{Instance, Stage, Window};

#[derive(Debug)]
pub(super) struct OperationState {
    pub task: u32,
    pub lane: u32,
    pub is_first: bool,
    pub is_last: bool,
    pub released: u64,
    pub completed: u64,
    pub aborted: u64,
    pub preemptions: u64,
    pub met: u64,
    pub missed: u64,
    /// Jobs in flight; `None` for the only operation of a task, which fares as its task does.
    pub in_flight: Option<Window>,
    pub response: Recorder,
    pub lateness: Recorder,
}

/// What the end of a job means for its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    InTime,
    Missed,
    /// It was given up and had none to miss.
    NoDeadline,
}

impl OperationState {
    /// A job was released.
    #[inline]
    pub fn begin(&mut self, number: u64, release_ns: i64, deadline_ns: i64) {
        let Some(window) = &mut self.in_flight else { return };
        if window.is_new(number) {
            let job = Instance { number, release_ns, deadline_ns, remaining: 1, stage: Stage::Pending };
            self.missed +=
                u64::from(window.push(job).is_some_and(|given_up| given_up.stage == Stage::Pending));
        }
    }

    /// A job ended.
    #[inline]
    pub fn end(&mut self, number: u64, verdict: Verdict) {
        let Some(window) = &mut self.in_flight else { return };
        if window.is_new(number) {
            window.pass(number);
        }
        if let Some(job) = window.find(number) {
            job.stage = Stage::Resolved;
        }
        window.trim();
        self.met += u64::from(verdict == Verdict::InTime);
        self.missed += u64::from(verdict == Verdict::Missed);
    }

    /// Whether this is the first that is told of a job of a task with several operations.
    pub fn is_unseen(&self, number: u64) -> bool {
        self.in_flight.as_ref().is_some_and(|window| window.is_new(number))
    }

    /// Whether it is the only operation of its task, which follows its jobs.
    pub fn is_alone(&self) -> bool {
        self.in_flight.is_none()
    }

    /// Whether its job of an unresolved instance has not ended.
    pub fn is_unfinished(&mut self, number: u64) -> bool {
        let Some(window) = &mut self.in_flight else { return true };
        window.is_new(number) || window.find(number).is_some_and(|job| job.stage != Stage::Resolved)
    }

    /// Counts the jobs in flight whose deadlines have passed.
    pub fn expire(&mut self, end_ns: i64) {
        if let Some(window) = &mut self.in_flight {
            self.missed += window.expire(end_ns).0;
        }
    }
}
