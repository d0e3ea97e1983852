//! Posted work: jobs of operations that the description of the system does not have, released by a program while the run lasts.

use std::sync::atomic::{AtomicU64, Ordering};
use talea_model::{Criticality, OperationId, TIME_LIMIT};
use talea_time::{Duration, Instant, Work};
use thiserror::Error;

/// Why work was not posted. Nothing has happened but for the record of a refusal that is one of the posted work's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotPosted {
    /// As many jobs of the operation as there is room for are unfinished. It counts as skipped.
    #[error(
        "as many jobs of the operation as there is room for are unfinished; give PostingRoom more jobs, or post less"
    )]
    Full,
    /// The run has not begun, or is over.
    #[error("the run has not begun, or is over")]
    NotRunning,
    /// Its execution time is none, or longer than [`TIME_LIMIT`].
    #[error("a job that is posted with an execution time of its own needs one above 0, of ten years at most")]
    NoExecution,
    /// The job is replayed, and had posted nothing there; or it is not known what it was told.
    #[error("the job is replayed, and the trace does not tell what came of this when it was recorded")]
    Replayed,
    /// The operation was declared for another run.
    #[error("the operation was declared for another run, or simulation; declare it for this one, too")]
    OtherRun,
}

/// An operation that was declared while a run lasts, by which its jobs are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PostedOperation {
    /// Its number.
    pub id: OperationId,
    /// Whose it is: runs and simulations of a process are numbered.
    pub run: u64,
}

/// How much work can be posted that the description of the system does not have. The default is none.
///
/// All memory for it is taken when the run is prepared, in every lane, because each of them may be given all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostingRoom {
    /// Operations that can be declared.
    pub operations: usize,
    /// Jobs of each of them that can be in flight, rounded up to a power of two.
    pub jobs: usize,
    /// Threads of the program that can post, one after the other too: the place of one that has ended is not given again. Operations
    /// can post as well, and do not count.
    pub posters: usize,
}

impl PostingRoom {
    /// Jobs of one operation that can be in flight.
    pub fn window(&self) -> usize {
        self.jobs.max(1).next_power_of_two()
    }

    /// Jobs of all operations that can be in flight.
    pub fn all_jobs(&self) -> usize {
        self.operations * self.window()
    }
}

impl PostedOperation {
    /// The number of a run that begins now: no other one of the process has it, nor a simulation.
    pub fn next_run() -> u64 {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        RUNS.fetch_add(1, Ordering::Relaxed)
    }
}

/// What an operation is whose jobs are to be posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// See [`Self::node`].
    pub node: Option<String>,
    /// See [`Self::in_lanes`].
    pub lanes: Option<String>,
    /// See [`Self::lane`].
    pub level: Option<usize>,
    /// How long after they were posted its jobs are due.
    pub deadline: Duration,
    /// See [`Self::wcet`].
    pub wcet: Work,
    /// See [`Self::period`].
    pub period: Duration,
    /// See [`Self::criticality`].
    pub criticality: Criticality,
    /// See [`Self::outside`].
    pub is_outside: bool,
    /// Whether a channel posts its jobs, by which it hands on events: a replay hands these on again, if they are in the trace, whatever is posted. Channels say it.
    pub is_of_channel: bool,
}

impl Declaration {
    /// An operation of this name, whose jobs are due so long after they were posted.
    pub fn new(name: &str, deadline: Duration) -> Self {
        let (name, criticality) = (name.to_owned(), Criticality::DEFAULT);
        let (node, lanes, level) = (None, None, None);
        let (wcet, period) = (Work::ZERO, Duration::ZERO);
        let (is_outside, is_of_channel) = (false, false);
        Declaration {
            name,
            node,
            lanes,
            level,
            deadline,
            wcet,
            period,
            criticality,
            is_outside,
            is_of_channel,
        }
    }

    /// The node it runs on. The first one unless told otherwise.
    #[must_use]
    pub fn node(mut self, name: &str) -> Self {
        self.node = Some(name.to_owned());
        self
    }

    /// The scheduler of kind `lanes` in whose lanes it is, by name. Needed if its node has several, unless its [lane](Self::lane) is said.
    #[must_use]
    pub fn in_lanes(mut self, scheduler: &str) -> Self {
        self.lanes = Some(scheduler.to_owned());
        self
    }

    /// The lane it runs in, by its level on the node, 0 highest; under several schedulers of kind `lanes` those of the next, in file order,
    /// follow those of the first. Unless told otherwise it is the one of its own period or
    /// criticality, whichever the strategy goes by, or the next lower one.
    #[must_use]
    pub fn lane(mut self, level: usize) -> Self {
        self.level = Some(level);
        self
    }

    /// The longest that a job executes, which orders lanes that go by laxity. Nobody enforces it.
    #[must_use]
    pub fn wcet(mut self, wcet: Work) -> Self {
        self.wcet = wcet;
        self
    }

    /// The least time between two jobs, by which rate-based strategies choose the lane. Nobody enforces it.
    #[must_use]
    pub fn period(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// What a missed deadline means. Medium unless told otherwise.
    #[must_use]
    pub fn criticality(mut self, criticality: Criticality) -> Self {
        self.criticality = criticality;
        self
    }

    /// Its code has to do with something outside, as of operations that [say so](crate::Ports::outside), or uses what the program has put behind the handle
    /// otherwise than in jobs: it is not called when the run is replayed.
    #[must_use]
    pub fn outside(mut self) -> Self {
        self.is_outside = true;
        self
    }
}

/// A job to be posted. How critical it is, and so its lane, its operation says: a job's code is called in one lane.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    /// Whose.
    pub operation: PostedOperation,
    /// Where none is given, the operation's own counts, from now on.
    pub deadline: Option<Instant>,
    /// Where none is given, the [operation's own](Declaration::wcet) counts.
    pub wcet: Option<Work>,
    /// What the job finds.
    pub handle: u64,
}

impl Posted {
    /// A job of the operation, with its deadline and its execution time, and 0 as its handle.
    pub fn new(operation: PostedOperation) -> Self {
        Posted { operation, deadline: None, wcet: None, handle: 0 }
    }

    /// What the job [finds](crate::JobContext::handle).
    #[must_use]
    pub fn handle(mut self, handle: u64) -> Self {
        self.handle = handle;
        self
    }

    /// Its deadline, on the clock of the run; one in the past is now.
    #[must_use]
    pub fn due(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The longest that this job executes: lanes that go by laxity order it by that, and in simulations it takes that long. Nobody enforces it.
    #[must_use]
    pub fn wcet(mut self, wcet: Work) -> Self {
        self.wcet = Some(wcet);
        self
    }

    /// What it says itself.
    ///
    /// # Errors
    /// [`NotPosted::NoExecution`].
    pub fn check(&self) -> Result<(), NotPosted> {
        let can_be = |wcet: Work| wcet > Work::ZERO && wcet <= TIME_LIMIT.as_work();
        if self.wcet.is_none_or(can_be) { Ok(()) } else { Err(NotPosted::NoExecution) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_its_own_length_has_one_that_fits_the_clock() {
        let operation = PostedOperation { id: OperationId::from_index(0), run: 1 };
        let check = |wcet: Work| Posted::new(operation).wcet(wcet).check();
        assert_eq!(Posted::new(operation).check(), Ok(()));
        assert_eq!([Work::from_nanos(1), TIME_LIMIT.as_work()].map(check), [Ok(()); 2]);
        for wcet in [Work::ZERO, Work::from_nanos(-1), TIME_LIMIT.as_work() + Work::from_nanos(1), Work::MAX]
        {
            assert_eq!(check(wcet), Err(NotPosted::NoExecution), "{wcet:?}");
        }
    }
}
