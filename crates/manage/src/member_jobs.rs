//! What a member does in a run: the jobs of a thread of the description, or those of a lane.
//!
//! A thread's jobs are numbered arrivals, which the set itself brings about. A lane's come through its inbox, and only its
//! own thread knows which it runs: it says so when one begins and when it ends, under the dispatcher's lock, so that
//! preemptions in between are recorded of the right one.

use crate::thread_jobs::{Gained, ThreadJobs};
use talea_policy::job::Job;
use talea_record::JobId;
use talea_time::Instant;

/// What a member does in a run.
#[derive(Clone, Debug)]
pub enum MemberJobs {
    /// The jobs of a thread of the description.
    Thread(ThreadJobs),
    /// The jobs of a lane.
    Lane(LaneJobs),
}

/// A lane's thread as records have it.
#[derive(Clone, Debug)]
pub struct LaneJobs {
    /// Index over the lanes of all nodes.
    lane: u16,
    /// Where the hierarchy lets it run.
    place: Option<usize>,
    job: Option<UnderWay>,
    /// What the hierarchy has been asked for last, unless that has ended: the first of what has been released, or what the lane's thread is
    /// about to begin.
    offered: Option<Job>,
}

/// The job that a lane has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UnderWay {
    id: JobId,
    has_processor: bool,
}

impl MemberJobs {
    pub(crate) fn as_thread(&self) -> Option<&ThreadJobs> {
        match self {
            MemberJobs::Thread(jobs) => Some(jobs),
            MemberJobs::Lane(_) => None,
        }
    }

    pub(crate) fn as_thread_mut(&mut self) -> Option<&mut ThreadJobs> {
        match self {
            MemberJobs::Thread(jobs) => Some(jobs),
            MemberJobs::Lane(_) => None,
        }
    }

    pub(crate) fn as_lane_mut(&mut self) -> Option<&mut LaneJobs> {
        match self {
            MemberJobs::Lane(jobs) => Some(jobs),
            MemberJobs::Thread(_) => None,
        }
    }

    /// The member's place in records.
    pub(crate) fn lane(&self) -> u16 {
        match self {
            MemberJobs::Thread(jobs) => jobs.lane,
            MemberJobs::Lane(jobs) => jobs.lane,
        }
    }

    /// The job that is or will be next, as far as the set knows.
    pub(crate) fn current(&self) -> Option<JobId> {
        match self {
            MemberJobs::Thread(jobs) => Some(jobs.id(jobs.current()?)),
            MemberJobs::Lane(jobs) => jobs.job.map(|job| job.id),
        }
    }

    /// Jobs that are not done, as far as the set knows.
    pub(crate) fn backlog(&self) -> u64 {
        match self {
            MemberJobs::Thread(jobs) => jobs.backlog(),
            MemberJobs::Lane(jobs) => u64::from(jobs.job.is_some()),
        }
    }

    /// What the hierarchy is asked for at `now`, if it is a particular job.
    pub(crate) fn job(&self, start: Instant, now: Instant, tag: u32) -> Option<Job> {
        match self {
            MemberJobs::Thread(jobs) => jobs.job(start, now, tag),
            MemberJobs::Lane(jobs) => jobs.offered.map(|job| Job { tag, ..job }),
        }
    }

    /// The member has got the processor of `place`. Says what that means for its job, if anything.
    pub(crate) fn gain(&mut self, place: usize) -> Option<(JobId, Gained)> {
        match self {
            MemberJobs::Thread(jobs) => {
                let (number, gained) = jobs.gain(place)?;
                Some((jobs.id(number), gained))
            }
            MemberJobs::Lane(jobs) => jobs.gain(place).map(|job| (job, Gained::Resumes)),
        }
    }

    /// The member has lost the processor of `place`. Returns the job that was running there, if one was.
    pub(crate) fn lose(&mut self, place: usize) -> Option<JobId> {
        match self {
            MemberJobs::Thread(jobs) => {
                let number = jobs.lose(place)?;
                Some(jobs.id(number))
            }
            MemberJobs::Lane(jobs) => jobs.lose(place),
        }
    }
}

impl LaneJobs {
    /// A lane that has begun no job.
    pub fn new(lane: u16) -> Self {
        LaneJobs { lane, place: None, job: None, offered: None }
    }

    /// The hierarchy is to be asked for this job. Returns whether it was another one before.
    pub(crate) fn offer(&mut self, job: Job) -> bool {
        let before = self.offered.replace(job);
        before.is_none_or(|before| (before.rank, before.number) != (job.rank, job.number))
    }

    /// Whether no job is under way, and none has been offered but one that another `precedes`.
    pub(crate) fn waits_for(&self, precedes: impl FnOnce(&Job) -> bool) -> bool {
        self.job.is_none() && self.offered.as_ref().is_none_or(precedes)
    }

    /// The lane's thread begins a job. Returns whether the hierarchy lets it run: a parked thread may use an idle processor,
    /// and one that is being lowered on another processor runs on for a moment.
    pub(crate) fn begin(&mut self, id: JobId) -> bool {
        let has_processor = self.place.is_some();
        self.job = Some(UnderWay { id, has_processor });
        has_processor
    }

    /// The job has ended.
    pub(crate) fn end(&mut self) {
        (self.job, self.offered) = (None, None);
    }

    fn gain(&mut self, place: usize) -> Option<JobId> {
        self.place = Some(place);
        let job = self.job.as_mut()?;
        let regained = !std::mem::replace(&mut job.has_processor, true);
        regained.then_some(job.id)
    }

    fn lose(&mut self, place: usize) -> Option<JobId> {
        if self.place != Some(place) {
            return None;
        }
        self.place = None;
        let job = self.job.as_mut()?;
        let lost = std::mem::replace(&mut job.has_processor, false);
        lost.then_some(job.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::OperationId;
    use talea_time::Work;

    fn job(instance: u64) -> JobId {
        JobId { operation: OperationId::from_index(3), instance }
    }

    #[test]
    fn a_lane_without_a_job_gains_and_loses_processors_unrecorded() {
        let mut lane = LaneJobs::new(2);
        assert_eq!((lane.gain(0), lane.lose(0)), (None, None));
    }

    #[test]
    fn the_job_that_a_lane_has_begun_is_preempted_and_resumes_where_the_lane_does() {
        let mut lane = LaneJobs::new(2);
        lane.gain(0);
        assert!(lane.begin(job(7)));
        assert_eq!(lane.lose(1), None, "it does not run there");
        assert_eq!(lane.lose(0), Some(job(7)));
        assert_eq!(lane.gain(1), Some(job(7)));
        lane.end();
        assert!(lane.begin(job(8)), "the lane still has its processor");
        lane.end();
        assert_eq!(lane.lose(1), None, "nothing is under way");
    }

    #[test]
    fn a_lane_is_asked_for_what_comes_first_until_it_begins_a_job() {
        let mut lane = LaneJobs::new(2);
        let at = |number: u64| Job {
            release: Instant::ZERO,
            deadline: Instant::MAX,
            wcet: Work::ZERO,
            rank: 0,
            number,
            tag: 9,
        };
        assert!(lane.waits_for(|_| false), "nothing has been offered");
        assert!(lane.offer(at(7)) && !lane.offer(at(7)));
        assert!(lane.waits_for(|offered| offered.number > 6) && !lane.waits_for(|_| false));
        assert!(lane.offer(at(6)));
        lane.begin(job(6));
        assert!(!lane.waits_for(|_| true), "it keeps the lane");
        assert_eq!(
            MemberJobs::Lane(lane.clone()).job(Instant::ZERO, Instant::ZERO, 3).map(|job| job.tag),
            Some(3)
        );
        lane.end();
        assert!(lane.waits_for(|_| false) && lane.offered.is_none());
    }

    #[test]
    fn a_job_that_begins_without_leave_has_to_be_let_run_first() {
        let mut lane = LaneJobs::new(2);
        assert!(!lane.begin(job(0)));
        assert_eq!(lane.gain(0), Some(job(0)));
        assert_eq!(lane.lose(0), Some(job(0)));
    }
}
