//! A member's part in a run: what arrives for it, and how far it is.

use std::sync::Arc;
use talea_model::OperationId;
use talea_policy::demand;
use talea_policy::job::Job;
use talea_record::JobId;
use talea_record::event::Dates;
use talea_time::{Duration, Instant, Work};

/// When the jobs of a task arrive, and are due.
#[derive(Clone, Debug)]
pub struct TaskTimes {
    /// Distance between arrivals.
    pub period: Duration,
    /// After the arrival.
    pub deadline: Duration,
    /// The first arrival after the common start.
    pub phase: Duration,
}

impl TaskTimes {
    /// The arrival of `instance` when arrivals count from `start`.
    pub fn arrival(&self, start: Instant, instance: u64) -> Instant {
        let periods = i64::try_from(instance).ok().and_then(|count| self.period.checked_mul(count));
        match periods.and_then(|distance| distance.checked_add(self.phase)) {
            Some(distance) => start.saturating_add(distance),
            None => Instant::MAX,
        }
    }
}

/// What becomes of a member's jobs, which are done one after the other. Jobs `done..arrived` are not done yet.
#[derive(Clone, Debug)]
pub struct ThreadJobs {
    /// What its jobs are of.
    pub operation: OperationId,
    /// The member's place in records.
    pub lane: u16,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// The most that a job takes.
    pub wcet: Work,
    arrived: u64,
    done: u64,
    progress: Progress,
}

/// When jobs arrive.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// The thread as a task; what never ends arrives once.
    pub task: Arc<TaskTimes>,
    /// The greatest delay of a release after the arrival.
    pub jitter: Duration,
    /// The stream of [`demand`] that each instance's delay is drawn from.
    pub jitter_stream: u64,
    /// How often they arrive.
    pub how_often: HowOften,
}

/// How often jobs arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HowOften {
    /// Once, at the start.
    Once,
    /// Each period.
    Periodically,
}

/// How far the first job that is not done is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    NotBegun,
    /// On the place of this number.
    Running(usize),
    Preempted,
}

/// What a processor means for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gained {
    /// It begins.
    Starts,
    /// It goes on.
    Resumes,
}

impl ThreadJobs {
    /// Nothing has arrived yet.
    pub fn new(operation: OperationId, lane: u16, arrivals: Arrivals, wcet: Work) -> Self {
        ThreadJobs { operation, lane, arrivals, wcet, arrived: 0, done: 0, progress: Progress::NotBegun }
    }

    /// When its next job is released, nominal arrivals counting from `start`; never if it has had all.
    pub fn next_release(&self, start: Instant) -> Instant {
        if self.arrivals.how_often == HowOften::Once && self.arrived > 0 {
            return Instant::MAX;
        }
        let Arrivals { task, jitter, jitter_stream, .. } = &self.arrivals;
        let delay = demand::release_jitter_from(*jitter, *jitter_stream, self.arrived);
        task.arrival(start, self.arrived).saturating_add(delay)
    }

    /// The next job is released. Returns its number.
    pub fn arrive(&mut self) -> u64 {
        self.arrived += 1;
        self.arrived - 1
    }

    /// Jobs that are not done.
    pub fn backlog(&self) -> u64 {
        self.arrived - self.done
    }

    /// The number of the first that is not done.
    pub fn current(&self) -> Option<u64> {
        (self.done < self.arrived).then_some(self.done)
    }

    /// A job of the thread, by its number.
    pub fn id(&self, number: u64) -> JobId {
        JobId { operation: self.operation, instance: number }
    }

    /// Nominal release and deadline of a job, as records have them.
    pub fn dates(&self, number: u64, start: Instant) -> Dates {
        let nominal = self.arrivals.task.arrival(start, number);
        let deadline = nominal.saturating_add(self.arrivals.task.deadline);
        Dates { nominal, deadline }
    }

    /// What the hierarchy is asked for at `now` on behalf of the first job that is not done.
    pub fn job(&self, start: Instant, now: Instant, tag: u32) -> Option<Job> {
        let number = self.current()?;
        let nominal = self.arrivals.task.arrival(start, number);
        let deadline = nominal.saturating_add(self.arrivals.task.deadline);
        Some(Job { release: now, deadline, wcet: self.wcet, rank: 0, number, tag })
    }

    /// The member has got the processor of `place`. Says what that means for its job, if it has one.
    pub(crate) fn gain(&mut self, place: usize) -> Option<(u64, Gained)> {
        let number = self.current()?;
        let gained = match std::mem::replace(&mut self.progress, Progress::Running(place)) {
            Progress::NotBegun => Gained::Starts,
            Progress::Preempted => Gained::Resumes,
            Progress::Running(_) => return None,
        };
        Some((number, gained))
    }

    /// The member has lost the processor of `place`. Returns the job that was running there, if one was.
    pub(crate) fn lose(&mut self, place: usize) -> Option<u64> {
        if self.progress != Progress::Running(place) {
            return None;
        }
        self.progress = Progress::Preempted;
        self.current()
    }

    /// The current job is done. Returns its number and where it ran.
    pub fn complete(&mut self) -> Option<(u64, Option<usize>)> {
        let number = self.current()?;
        self.done += 1;
        let place = match std::mem::replace(&mut self.progress, Progress::NotBegun) {
            Progress::Running(place) => Some(place),
            Progress::NotBegun | Progress::Preempted => None,
        };
        Some((number, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(how_often: HowOften) -> ThreadJobs {
        let ms = Duration::from_millis;
        let task = TaskTimes { period: ms(10), deadline: ms(8), phase: ms(3) };
        let arrivals = Arrivals { task: Arc::new(task), jitter: Duration::ZERO, jitter_stream: 0, how_often };
        ThreadJobs::new(OperationId::from_index(4), 2, arrivals, Work::from_millis(1))
    }

    #[test]
    fn arrivals_do_not_drift_and_what_never_ends_arrives_once() {
        let start = Instant::from_nanos(1_000);
        let mut bursts = jobs(HowOften::Periodically);
        for number in 0..5 {
            let expected = start + Duration::from_millis(3) + Duration::from_millis(10 * number);
            assert_eq!(bursts.next_release(start), expected);
            assert_eq!(bursts.arrive(), number as u64);
        }
        assert_eq!(bursts.backlog(), 5);
        let mut once = jobs(HowOften::Once);
        once.arrive();
        assert_eq!(once.next_release(start), Instant::MAX);
    }

    #[test]
    fn a_job_starts_is_preempted_resumes_and_completes() {
        let mut jobs = jobs(HowOften::Periodically);
        assert_eq!((jobs.gain(0), jobs.complete()), (None, None), "nothing to do");
        jobs.arrive();
        assert_eq!(jobs.gain(1), Some((0, Gained::Starts)));
        assert_eq!(jobs.lose(0), None, "it does not run there");
        assert_eq!(jobs.lose(1), Some(0));
        assert_eq!(jobs.gain(0), Some((0, Gained::Resumes)));
        assert_eq!(jobs.complete(), Some((0, Some(0))));
        assert_eq!(jobs.lose(0), None, "it is done");
        jobs.arrive();
        assert_eq!(jobs.gain(0), Some((1, Gained::Starts)));
    }

    #[test]
    fn a_job_carries_its_absolute_deadline() {
        let mut jobs = jobs(HowOften::Periodically);
        let start = Instant::from_nanos(0);
        assert_eq!(jobs.job(start, start, 7), None);
        jobs.arrive();
        jobs.arrive();
        jobs.complete();
        let now = start + Duration::from_millis(14);
        let job = jobs.job(start, now, 7).expect("the second");
        assert_eq!((job.number, job.tag, job.release), (1, 7, now));
        assert_eq!(job.deadline, start + Duration::from_millis(21));
    }
}
