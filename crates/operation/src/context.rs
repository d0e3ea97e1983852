//! A job as its operation's code sees it.

use crate::ends::{Ends, EventEnds};
use crate::events::EventNote;
use crate::ports::{Descriptor, Input, Output};
use crate::posting::{NotPosted, Posted, PostedOperation};
use crate::reading::NotRead;
use crate::services::JobServices;
use std::any::Any;
use std::cell::RefMut;
use talea_channel::{InputPort, OutputPort, Stamp};
use talea_model::OperationId;
use talea_policy::job::Job;
use talea_time::{Duration, Instant};

/// A job as its operation sees it.
pub struct JobContext<'a> {
    pub(crate) services: &'a dyn JobServices,
    pub(crate) name: &'a str,
    pub(crate) job: &'a Job,
    /// When it began.
    pub(crate) started: Instant,
    /// What came with it, if it was posted.
    pub(crate) handle: u64,
    pub(crate) ends: &'a Ends,
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

    /// The operation and the number of the instance.
    pub fn identity(&self) -> (OperationId, u64) {
        (self.ends.operation, self.job.number)
    }

    /// What the poster gave with it: a handle to data of the program's, or a number. 0 if the job was not posted, or a channel did.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// The value that the job took of this input: the newest, if it took several. None if there was none.
    ///
    /// # Panics
    /// If the token is another operation's.
    #[inline]
    pub fn get<T: 'static>(&self, input: Input<T>) -> Option<&T> {
        self.port(input).newest().map(|(value, _)| value)
    }

    /// All values that the job took of this input, the oldest first.
    ///
    /// # Panics
    /// If the token is another operation's.
    pub fn all<T: 'static>(
        &self,
        input: Input<T>,
    ) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator {
        self.port(input).values().map(|(value, _)| value)
    }

    /// Which job wrote the newest value that this one took, and from when on it was visible.
    ///
    /// # Panics
    /// If the token is another operation's.
    pub fn stamp<T: 'static>(&self, input: Input<T>) -> Option<Stamp> {
        self.port(input).newest().map(|(_, stamp)| stamp)
    }

    /// How long before the job began the newest value that it took had been published.
    ///
    /// # Panics
    /// If the token is another operation's.
    pub fn age<T: 'static>(&self, input: Input<T>) -> Option<Duration> {
        self.stamp(input).map(|stamp| self.started - stamp.visible_at)
    }

    #[inline]
    fn port<T: 'static>(&self, input: Input<T>) -> &InputPort<T> {
        assert_eq!(input.operation, self.ends.operation, "an input's token is used by its own operation");
        let port: &dyn Any = self.ends.inputs[input.place].as_ref();
        port.downcast_ref().expect("types were checked when the operations were assembled")
    }

    /// The value that the job publishes on this output when it completes, to be written in place: it is what some earlier job left there. A job
    /// that does not call this publishes nothing.
    ///
    /// # Panics
    /// If the token is another operation's, or the job is still writing the value.
    #[inline]
    pub fn write<T: Send + Sync + 'static>(&self, output: Output<T>) -> RefMut<'_, T> {
        assert_eq!(output.operation, self.ends.operation, "an output's token is used by its own operation");
        RefMut::map(self.ends.outputs[output.place].borrow_mut(), |port| {
            let port: &mut dyn Any = port.as_mut();
            let port: Option<&mut OutputPort<T>> = port.downcast_mut();
            port.expect("types were checked when the operations were assembled").value()
        })
    }

    /// Publishes `value` on this output when the job completes.
    ///
    /// # Panics
    /// As [`Self::write`].
    #[inline]
    pub fn set<T: Send + Sync + 'static>(&self, output: Output<T>, value: T) {
        *self.write(output) = value;
    }

    /// Reads of the descriptor that releases the task, without waiting, as long as nobody else reads it. Returns how many bytes there were; 0
    /// at the end, when the other side has closed it, and of an empty datagram. A run that keeps it hands the job the same again when it is replayed.
    ///
    /// # Errors
    /// [`NotRead`].
    ///
    /// # Panics
    /// If the token is another operation's.
    pub fn read(&self, descriptor: Descriptor, buffer: &mut [u8]) -> Result<usize, NotRead> {
        let reading = self.ends.reading.as_ref().filter(|_| descriptor.operation == self.ends.operation);
        let reading = reading.expect("a descriptor's token is used by its own operation");
        reading.borrow_mut().read(buffer, |buffer| self.services.read(buffer))
    }

    /// The job's ends at channels, if it has any, for who has made them.
    pub fn event_ends(&self) -> Option<RefMut<'_, dyn EventEnds>> {
        self.ends.events.as_ref().map(|ends| RefMut::map(ends.borrow_mut(), |ends| ends.as_mut()))
    }

    /// What executes the job, for who pushes events in it.
    pub fn services(&self) -> &dyn JobServices {
        self.services
    }

    /// A channel tells something of the instant `at`, of an event that the job pushes or takes.
    pub fn note(&self, note: EventNote, at: Instant) {
        self.services.note(note, at);
    }

    /// Posts a job of a declared operation, which is due within that operation's deadline from now. Returns its number among
    /// that operation's jobs; not every number comes. Where lanes have real-time priorities and the node one processor, a job of a higher
    /// lane runs before this returns. Neither allocates nor waits, but for the lock of the schedulers above the lane, if there are any.
    ///
    /// # Errors
    /// [`NotPosted`].
    pub fn post(&self, operation: PostedOperation, handle: u64) -> Result<u64, NotPosted> {
        self.post_work(Posted::new(operation).handle(handle))
    }

    /// The same with a deadline or an execution time of its own: the job's own [`deadline`](Self::deadline), for one, where what is posted
    /// is a part of the job.
    ///
    /// # Errors
    /// [`NotPosted`].
    pub fn post_work(&self, posted: Posted) -> Result<u64, NotPosted> {
        self.services.post(posted)
    }

    /// When the job was due for release: arrival plus jitter for a first subtask, else
    /// the completion of the last predecessor. On CLOCK_MONOTONIC; in simulations from the common start.
    pub fn release(&self) -> Instant {
        self.job.release
    }

    /// When the job began. What it does with its inputs alone, and with this instant, it does again when it is replayed.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The absolute end-to-end deadline of the instance.
    pub fn deadline(&self) -> Instant {
        self.job.deadline
    }

    /// The current instant, on the same clock. In simulations code takes no time, and this is when the job completes.
    pub fn now(&self) -> Instant {
        self.services.now()
    }

    /// How long the job may still be delayed and meet its deadline, if it needs its whole worst case from
    /// now on: deadline - now - wcet. Negative: it is late, unless it needs less.
    pub fn laxity(&self) -> Duration {
        self.job.deadline - self.now() - self.job.wcet.at_full_speed()
    }

    /// Whether the job is to stop: its instance was aborted, or the run is over. An operation that takes
    /// long asks now and then and returns when told; nothing is ever torn out of its hands.
    pub fn aborted(&self) -> bool {
        self.services.is_to_stop()
    }
}

/// A user's operation, called once per job. Its jobs run one at a time, each after the one before has returned, so it may keep
/// what it likes from job to job. They need not be on the same thread: a preemptive lane has several, so that a job of one operation
/// can be preempted by a job of another.
pub type Code = Box<dyn FnMut(&JobContext<'_>) + Send>;
