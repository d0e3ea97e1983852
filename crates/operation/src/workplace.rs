//! What is asked of a run by those who have work done there that the description of the system does not have.

use crate::context::{Code, JobContext};
use crate::events::EventNote;
use crate::posting::{Declaration, NotPosted, Posted, PostedOperation};
use crate::services::JobServices;
use std::error::Error;
use std::sync::Arc;
use talea_model::{OperationId, PublicationId};
use talea_policy::release::guard::WaitingEvents;
use talea_time::{Duration, Instant};

/// After how long it is tried again to post a job that is [due at an instant](Workplace::post_at) and found no room, or came before the run.
pub const TRY_AGAIN: Duration = Duration::from_millis(1);

/// What can post: a job, or a thread that has been given the means.
pub trait Post {
    /// The current instant on the clock of the run, for what is posted: the code of a job that is to be replayed asks [`JobContext::now`].
    fn now(&self) -> Instant;

    /// Posts a job.
    ///
    /// # Errors
    /// [`NotPosted`].
    fn post_work(&mut self, posted: Posted) -> Result<u64, NotPosted>;

    /// Posts a job that may be executed before this returns, in the midst of the one that posts it: if both are of one lane, nothing that waits
    /// there comes before it, and the one that posts it is no posted one itself. Where `released` was [read](Self::now) for it, and nothing recorded since,
    /// it is released then.
    ///
    /// # Errors
    /// [`NotPosted`].
    fn post_here(&mut self, posted: Posted, released: Option<Instant>) -> Result<u64, NotPosted> {
        _ = released;
        self.post_work(posted)
    }

    /// Whether it may wait for something, since nothing waits for it that has a deadline.
    fn may_wait(&self) -> bool;

    /// The operation and the instance of the job that posts, if one does.
    fn job(&self) -> Option<(OperationId, u64)> {
        None
    }

    /// What executes the job that posts, if one does that has code.
    fn services(&self) -> Option<&dyn JobServices> {
        None
    }

    /// A channel tells something of the job that posts, of the instant `at`, which is recorded if that is wanted. Of who is no job nothing is.
    fn note(&mut self, note: EventNote, at: Instant) {
        _ = (note, at);
    }
}

impl Post for &JobContext<'_> {
    fn now(&self) -> Instant {
        self.services.clock()
    }

    fn post_work(&mut self, posted: Posted) -> Result<u64, NotPosted> {
        self.services.post(posted)
    }

    fn post_here(&mut self, posted: Posted, released: Option<Instant>) -> Result<u64, NotPosted> {
        self.services.post_here(posted, released)
    }

    fn may_wait(&self) -> bool {
        false
    }

    fn job(&self) -> Option<(OperationId, u64)> {
        Some(self.identity())
    }

    fn services(&self) -> Option<&dyn JobServices> {
        Some(self.services)
    }

    fn note(&mut self, note: EventNote, at: Instant) {
        self.services.note(note, at);
    }
}

impl Post for &dyn JobServices {
    fn now(&self) -> Instant {
        self.clock()
    }

    fn post_work(&mut self, posted: Posted) -> Result<u64, NotPosted> {
        self.post(posted)
    }

    fn post_here(&mut self, posted: Posted, released: Option<Instant>) -> Result<u64, NotPosted> {
        (**self).post_here(posted, released)
    }

    fn may_wait(&self) -> bool {
        false
    }
}

impl<P: Post> Post for &mut P {
    fn now(&self) -> Instant {
        (**self).now()
    }

    fn post_work(&mut self, posted: Posted) -> Result<u64, NotPosted> {
        (**self).post_work(posted)
    }

    fn post_here(&mut self, posted: Posted, released: Option<Instant>) -> Result<u64, NotPosted> {
        (**self).post_here(posted, released)
    }

    fn may_wait(&self) -> bool {
        (**self).may_wait()
    }

    fn job(&self) -> Option<(OperationId, u64)> {
        (**self).job()
    }

    fn services(&self) -> Option<&dyn JobServices> {
        (**self).services()
    }

    fn note(&mut self, note: EventNote, at: Instant) {
        (**self).note(note, at);
    }
}

/// A channel that a program has made, for records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramChannel<'a> {
    /// Its name, which others may have as well.
    pub name: &'a str,
    /// Which one it is, of all of the process.
    pub number: u64,
}

/// A task that is released by what comes to a channel, or by time there.
pub trait ChannelTask: Send + Sync {
    /// Time counts from this start of the run; nothing has come yet.
    fn begin(&self, start: Instant);

    /// It is `now`. How many jobs are to be released.
    fn time_came(&self, now: Instant) -> usize;

    /// The events that wait for its jobs `now`, against a release at that instant. What has expired is gone then.
    fn waiting(&self, release: Instant, now: Instant) -> WaitingEvents;
}

/// Code of an operation whose jobs are posted.
pub struct PostedCode {
    whole: Code,
    in_two: Option<(Beginning, Code)>,
    again: Option<Again>,
    turns: Option<usize>,
}

/// What is done when a job begins, by the instant at which it does.
pub type Beginning = Box<dyn FnMut(Instant) + Send>;

/// What is done in place of a job that is replayed, which was handed these bytes. False if they cannot be read, and nothing was done.
pub type Again = Box<dyn FnMut(&JobContext<'_>, &[u8]) -> bool + Send>;

impl std::fmt::Debug for PostedCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostedCode").field("is_in_two", &self.in_two.is_some()).finish_non_exhaustive()
    }
}

impl PostedCode {
    /// Called for each job.
    pub fn new(code: impl FnMut(&JobContext<'_>) + Send + 'static) -> Self {
        PostedCode { whole: Box::new(code), in_two: None, again: None, turns: None }
    }

    /// The same in two parts, for who calls code when a job has done its work, as simulations do, and not when it begins: `begin` is called when the job
    /// begins, and takes what others have left for it, and `end` does the rest. `end` does it all where `begin` was not called for the job, which happens where
    /// another job of the operation had begun and has not ended.
    #[must_use]
    pub fn in_two(
        mut self,
        begin: impl FnMut(Instant) + Send + 'static,
        end: impl FnMut(&JobContext<'_>) + Send + 'static,
    ) -> Self {
        self.in_two = Some((Box::new(begin), Box::new(end)));
        self
    }

    /// `again` is called in place of a job that is replayed, with all that the job then had [kept](JobServices::keep) of what it was handed.
    #[must_use]
    pub fn again(mut self, again: impl FnMut(&JobContext<'_>, &[u8]) -> bool + Send + 'static) -> Self {
        self.again = Some(Box::new(again));
        self
    }

    /// It is called by turns with the code of all operations that say this number: one call at a time, of code that all of them share. So a replay goes by the
    /// order of the calls, which need not be that in which jobs of several lanes ended.
    #[must_use]
    pub fn by_turns(mut self, of: usize) -> Self {
        self.turns = Some(of);
        self
    }

    /// The number by which it is called [by turns](Self::by_turns), if it is.
    pub fn turns(&self) -> Option<usize> {
        self.turns
    }

    /// Whether its jobs can be replayed by what they had kept.
    pub fn has_again(&self) -> bool {
        self.again.is_some()
    }

    /// For replays: what is done in place of jobs, if that is something else.
    pub fn take_again(&mut self) -> Option<Again> {
        self.again.take()
    }

    /// For who calls it when a job begins.
    pub fn whole(self) -> Code {
        self.whole
    }

    /// For who calls the second part when a job has done its work.
    pub fn parts(self) -> (Option<Beginning>, Code) {
        match self.in_two {
            Some((begin, end)) => (Some(begin), end),
            None => (None, self.whole),
        }
    }
}

/// Where operations can be declared while a run lasts.
pub trait Workplace: Send + Sync {
    /// The current instant on the clock of the run.
    fn now(&self) -> Instant;

    /// Declares an operation, for each job of which `code` is called, one job at a time.
    ///
    /// # Errors
    /// Why it cannot be; nothing has changed.
    fn declare(
        &self,
        declaration: Declaration,
        code: PostedCode,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>>;

    /// The task of the system whose first operation this is, to be released by posting a job of it. `channel_task` is told of the instants for which
    /// [`post_at`](Self::post_at) asks, from the start of the run on, and asked what waits where a release has waited for its turn.
    ///
    /// # Errors
    /// It cannot be released here.
    fn task(
        &self,
        first: OperationId,
        channel_task: Box<dyn ChannelTask>,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>>;

    /// Posts a job of the operation when this instant has come, or of a task tells it of the instant; of several instants that are waited for,
    /// at the earliest alone, and the job sees what else there is. Neither allocates nor waits.
    fn post_at(&self, at: Instant, operation: PostedOperation);

    /// The number by which records name events of this type, `Domain/Name`, that a program pushes into this channel. Asked once for each. None where
    /// records name none, or have no room for another one. Allocates, and may wait.
    fn publication(&self, channel: ProgramChannel<'_>, event_type: &str) -> Option<PublicationId> {
        _ = (channel, event_type);
        None
    }
}

/// Does what is left to do when it is known where deliveries are work.
pub type Binding = Box<dyn FnOnce(Arc<dyn Workplace>) -> Result<(), Box<dyn Error + Send + Sync>> + Send>;
