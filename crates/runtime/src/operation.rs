//! What runs when a job runs: a user's closure, or synthetic work.

use crate::job_table::JobTable;
use crate::payloads::{Payload, PayloadTooLong, Payloads};
use crate::posting::{NotPosted, Posted, PostedOperation};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use talea_linux::clock::MonotonicClock;
use talea_model::System;
use talea_policy::job::Job;
use talea_time::{Clock, Duration, Instant};
use thiserror::Error;

/// A user's operation, called once per job. Its jobs run one at a time, each after the one before has returned, so it may keep
/// what it likes from job to job. They need not be on the same thread: a preemptive lane has several, so that a job of one operation
/// can be preempted by a job of another.
pub type Operation = Box<dyn FnMut(&JobContext<'_>) + Send>;

/// Which operations of a system run users' code. All others burn synthetic processor time, as the system
/// describes.
#[derive(Default)]
pub struct Operations {
    by_name: BTreeMap<String, Operation>,
}

/// An operation that the system does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the system has no operation \"{name}\"{}", nearest_hint(.nearest))]
pub struct UnknownOperation {
    /// What was asked for.
    pub name: String,
    /// The operation of the system that is written most alike.
    pub nearest: Option<String>,
}

fn nearest_hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean \"{name}\"?"))
}

impl std::fmt::Debug for Operations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

impl Operations {
    /// Synthetic work everywhere.
    pub fn synthetic() -> Self {
        Self::default()
    }

    /// Runs `code` for every job of the operation `name` (`task`, or `task.subtask`), one job at a time, instead of what
    /// was set before.
    #[must_use]
    pub fn with(mut self, name: &str, code: impl FnMut(&JobContext<'_>) + Send + 'static) -> Self {
        self.by_name.insert(name.to_owned(), Box::new(code));
        self
    }

    /// The behaviour of every operation of `system`, by its number.
    pub(crate) fn resolve(mut self, system: &System) -> Result<Vec<Behaviour>, UnknownOperation> {
        let behaviours = system
            .operations()
            .iter()
            .map(|operation| match self.by_name.remove(&operation.name) {
                Some(code) => Behaviour::User(OneAtATime::new(code)),
                None => Behaviour::Synthetic,
            })
            .collect();
        match self.by_name.into_keys().next() {
            None => Ok(behaviours),
            Some(name) => {
                let nearest = system
                    .operations()
                    .iter()
                    .min_by_key(|operation| strsim::damerau_levenshtein(&operation.name, &name))
                    .map(|operation| operation.name.clone());
                Err(UnknownOperation { name, nearest })
            }
        }
    }
}

/// What a job does.
pub(crate) enum Behaviour {
    /// Burns the processor time that [`talea_policy::demand`] draws for it.
    Synthetic,
    /// Calls the user.
    User(OneAtATime),
}

/// A user's operation, which the threads of its lane share.
///
/// An operation is in one lane, and the lane runs its jobs one at a time: a non-preemptive lane is one thread, and a preemptive
/// one gives a job no thread while another job of the same operation has one (`preemptive`). So the lock is free whenever it is
/// asked for. It is tried and never waited for; it is how the compiler knows what the lanes know.
pub(crate) struct OneAtATime(Mutex<Operation>);

impl OneAtATime {
    pub fn new(code: Operation) -> Self {
        OneAtATime(Mutex::new(code))
    }

    /// The code, for one job.
    ///
    /// # Panics
    /// If another job has it, which no lane lets happen.
    pub fn take(&self) -> MutexGuard<'_, Operation> {
        self.0.try_lock().expect("a lane runs the jobs of an operation one at a time")
    }
}

/// Where a job reads what came before it left, and leaves something for what follows.
pub(crate) struct JobPayloads<'a> {
    pub all: &'a Payloads,
    /// Its operation among those of this process.
    pub reader: usize,
    pub attached: &'a Cell<Payload>,
}

/// A job as its operation sees it.
pub struct JobContext<'a> {
    pub(crate) jobs: &'a JobTable,
    pub(crate) name: &'a str,
    pub(crate) job: &'a Job,
    /// What came with it, if it was posted.
    pub(crate) handle: u64,
    pub(crate) payloads: JobPayloads<'a>,
    /// Called at every cancellation point of the job; says whether the run is over.
    pub(crate) checkpoint: &'a (dyn Fn() -> bool + 'a),
    pub(crate) post: &'a (dyn Fn(Posted) -> Result<u64, NotPosted> + 'a),
}

impl std::fmt::Debug for JobContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobContext")
            .field("operation", &self.name)
            .field("job", self.job)
            .finish_non_exhaustive()
    }
}

impl JobContext<'_> {
    /// The operation's name.
    pub fn operation(&self) -> &str {
        self.name
    }

    /// Number of the task's instance, from 0; skipped instances are counted.
    pub fn instance(&self) -> u64 {
        self.job.number
    }

    /// What the poster gave with it: a handle to data of the program's, or a number. 0 if the job was not posted.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// Posts a job of a declared operation, which is due within that operation's deadline from now. Returns its number among
    /// that operation's jobs; not every number comes. Where lanes have real-time priorities and the node one processor, a job of a higher
    /// lane runs before this returns. Neither allocates nor waits, but for the lock of the schedulers above the lane, if there are any.
    ///
    /// # Errors
    /// [`NotPosted`].
    pub fn post(&self, operation: PostedOperation, handle: u64) -> Result<u64, NotPosted> {
        (self.post)(Posted { operation, deadline: None, handle })
    }

    /// The same with a deadline of its own, on CLOCK_MONOTONIC: the job's own [`deadline`](Self::deadline), for one, where what is posted
    /// is a part of the job.
    ///
    /// # Errors
    /// [`NotPosted`].
    pub fn post_due(
        &self,
        operation: PostedOperation,
        handle: u64,
        deadline: Instant,
    ) -> Result<u64, NotPosted> {
        (self.post)(Posted { operation, deadline: Some(deadline), handle })
    }

    /// When the job was due for release, on CLOCK_MONOTONIC: arrival plus jitter for a first subtask, else
    /// the completion of the last predecessor.
    pub fn release(&self) -> Instant {
        self.job.release
    }

    /// The absolute end-to-end deadline of the instance.
    pub fn deadline(&self) -> Instant {
        self.job.deadline
    }

    /// Attaches these bytes to the completion of the job, instead of what was attached before: the code of each successor can read them, on
    /// whatever node. A job that does not complete leaves nothing.
    ///
    /// # Errors
    /// There are more than [`PAYLOAD_BYTES`](crate::PAYLOAD_BYTES), which is counted in [`Mishaps`](crate::Mishaps).
    pub fn attach(&self, payload: &[u8]) -> Result<(), PayloadTooLong> {
        self.payloads.attached.set(self.payloads.all.attach(payload)?);
        Ok(())
    }

    /// What a predecessor attached to its completion: the first one, in the order of the file, that attached anything. None also where
    /// the instance's place is another one's meanwhile, because more instances are in flight than there is room for.
    pub fn payload(&self) -> Option<Payload> {
        self.payloads.all.read(self.payloads.reader, self.job.number, None)
    }

    /// The same of the predecessor of this name: `task.subtask`, or the subtask alone.
    pub fn payload_of(&self, predecessor: &str) -> Option<Payload> {
        self.payloads.all.read(self.payloads.reader, self.job.number, Some(predecessor))
    }

    /// The current instant on CLOCK_MONOTONIC.
    pub fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    /// How long the job may still be delayed and meet its deadline, if it needs its whole worst case from
    /// now on: deadline - now - wcet. Negative: it is late, unless it needs less.
    pub fn laxity(&self) -> Duration {
        self.job.deadline - self.now() - self.job.wcet.at_full_speed()
    }

    /// Whether the job is to stop: its instance was aborted, or the run is over. An operation that takes
    /// long asks now and then and returns when told; nothing is ever torn out of its hands.
    pub fn aborted(&self) -> bool {
        (self.checkpoint)() || self.jobs.is_stopping(self.job.tag, self.job.number)
    }
}
