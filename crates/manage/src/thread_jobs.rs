//! A member's part in a run: what arrives for it, and how far it is.

use talea_model::OperationId;
use talea_policy::job::Job;
use talea_policy::release::Arrivals;
use talea_record::JobId;
use talea_record::event::Dates;
use talea_time::{Instant, Work};

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
        self.arrivals.at(start, self.arrived).release
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
        let nominal = self.arrivals.nominal(start, number);
        Dates { nominal, deadline: self.arrivals.deadline(nominal) }
    }

    /// What the hierarchy is asked for at `now` on behalf of the first job that is not done.
    pub fn job(&self, start: Instant, now: Instant, tag: u32) -> Option<Job> {
        let number = self.current()?;
        let Dates { deadline, .. } = self.dates(number, start);
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
    use talea_policy::release::Pattern;
    use talea_time::Duration;

    fn jobs() -> ThreadJobs {
        let ms = Duration::from_millis;
        let pattern = Pattern::Periodic { phase: ms(3), period: ms(10) };
        let arrivals = Arrivals { pattern, deadline: ms(8), jitter: Duration::ZERO, jitter_stream: 0 };
        ThreadJobs::new(OperationId::from_index(4), 2, arrivals, Work::from_millis(1))
    }

    #[test]
    fn what_has_arrived_and_is_not_done_waits() {
        let start = Instant::from_nanos(1_000);
        let mut bursts = jobs();
        for number in 0..5 {
            assert_eq!(bursts.next_release(start), bursts.dates(number, start).nominal);
            assert_eq!(bursts.arrive(), number);
        }
        assert_eq!(bursts.backlog(), 5);
    }

    #[test]
    fn a_job_starts_is_preempted_resumes_and_completes() {
        let mut jobs = jobs();
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
        let mut jobs = jobs();
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
