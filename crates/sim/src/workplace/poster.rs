//! What code of the program has that is called at an instant, as a thread of the program has a poster.

use super::{Arriving, PostedJob, VirtualWorkplace};
use std::cell::RefCell;
use talea_operation::{EventNote, KeptEvent, NotPosted, Post, Posted, PostedOperation};
use talea_record::{Definition, JobId};
use talea_time::Instant;

/// What a job or a call has posted, and what channels have told, in their order.
#[derive(Default)]
pub(crate) struct Told {
    pub posted: Vec<Arriving>,
    /// What jobs wanted to post when all was over.
    pub refused: Vec<PostedJob>,
    /// By task: how many jobs have been posted so far.
    pub posted_before: Vec<u64>,
    pub notes: Vec<EventNote>,
    /// Whether what channels of the program hand on, and what jobs push there, is to be recorded.
    pub keeps_events: bool,
    /// That of the job that is called, in its order; without bytes, what has none, or more than are kept.
    pub kept: Vec<(KeptEvent, Option<Vec<u8>>)>,
    /// What the code of jobs has brought about that whoever takes the records knows, and the tables of the simulation do not have.
    pub defined: Vec<Definition>,
}

impl Told {
    pub fn post(
        &mut self,
        workplace: &VirtualWorkplace,
        posted: Posted,
        by: Option<JobId>,
        now: Instant,
    ) -> Result<u64, NotPosted> {
        let arriving = workplace.claim(posted, by, now).inspect_err(|refused| {
            let Posted { operation: PostedOperation { id: operation, .. }, handle, wcet, .. } = posted;
            let next = workplace.next_number(operation).filter(|_| *refused == NotPosted::NotRunning);
            if let Some(instance) = next.filter(|_| by.is_some()) {
                let id = JobId { operation, instance };
                self.refused.push(PostedJob { id, deadline: now, wcet, handle, by });
            }
        })?;
        let number = match arriving {
            Arriving::Instance(task) => {
                let number = self.posted_before[task];
                self.posted_before[task] += 1;
                Ok(number)
            }
            Arriving::Job(job) => Ok(job.id.instance),
            Arriving::NoRoom(_) => Err(NotPosted::Full),
        };
        self.posted.push(arriving);
        number
    }
}

/// The means of [code that is called at an instant](VirtualWorkplace::call_at) to post, and to push events.
pub struct VirtualPoster<'a> {
    pub(crate) now: Instant,
    pub(crate) told: &'a RefCell<Told>,
    pub(crate) workplace: &'a VirtualWorkplace,
}

impl std::fmt::Debug for VirtualPoster<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VirtualPoster").field("now", &self.now).finish_non_exhaustive()
    }
}

impl VirtualPoster<'_> {
    /// The current instant, from the common start.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Posts a job of the operation, which is due within the operation's deadline from now. `handle` is what the job
    /// [finds](talea_operation::JobContext::handle). Returns its number among the operation's jobs; not every number comes.
    ///
    /// # Errors
    /// [`NotPosted`].
    pub fn post(&mut self, operation: PostedOperation, handle: u64) -> Result<u64, NotPosted> {
        self.post_work(Posted::new(operation).handle(handle))
    }

    /// The same with a deadline, from the common start, or an execution time of its own.
    ///
    /// # Errors
    /// [`NotPosted`].
    pub fn post_work(&mut self, posted: Posted) -> Result<u64, NotPosted> {
        self.told.borrow_mut().post(self.workplace, posted, None, self.now)
    }
}

impl Post for VirtualPoster<'_> {
    fn now(&self) -> Instant {
        self.now
    }

    fn post_work(&mut self, posted: Posted) -> Result<u64, NotPosted> {
        VirtualPoster::post_work(self, posted)
    }

    /// Nothing happens in virtual time while it waits.
    fn may_wait(&self) -> bool {
        false
    }
}
