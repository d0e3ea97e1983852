//! How a thread of the program posts work.

use crate::flow::{JobFlow, Shared};
use std::marker::PhantomData;
use std::sync::Arc;
use talea_model::OperationId;
use talea_operation::{NotPosted, Posted, PostedOperation};

/// A thread's means to post.
pub struct Poster {
    pub(crate) shared: Arc<Shared>,
    pub(crate) flow: JobFlow,
    /// Its records are those of the thread that made it.
    _of_one_thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Poster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poster").finish_non_exhaustive()
    }
}

impl Poster {
    pub(crate) fn new(shared: Arc<Shared>, flow: JobFlow) -> Self {
        Poster { shared, flow, _of_one_thread: PhantomData }
    }

    /// Whether the run is over, so that nothing is posted any more.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.stop.is_stopped()
    }

    /// Posts a job of the declared operation of this number.
    pub(crate) fn post_declared(&mut self, number: usize) -> Result<u64, NotPosted> {
        let (id, run) = (OperationId::from_index(number), self.shared.posting.run());
        self.post(PostedOperation { id, run }, 0)
    }

    /// Releases a task of the system whose jobs are posted.
    pub(crate) fn release(&mut self, task: usize) -> Result<u64, NotPosted> {
        let first = self.shared.layout.triggered(task).firsts.first().copied();
        let id = first.expect("a task of this process has a first subtask");
        self.post(PostedOperation { id, run: self.shared.posting.run() }, 0)
    }

    /// Posts a job of the operation, which is due within the operation's deadline from now. `handle` is what the job
    /// [finds](crate::JobContext::handle). Returns its number among the operation's jobs; not every number
    /// comes. Neither allocates nor waits, with a system call at most, to wake its lane. Where the lane is below other schedulers, it
    /// takes the lock of their set instead and lets them decide.
    ///
    /// # Errors
    /// [`NotPosted`].
    pub fn post(&mut self, operation: PostedOperation, handle: u64) -> Result<u64, NotPosted> {
        self.post_work(Posted::new(operation).handle(handle))
    }

    /// The same with a deadline, on CLOCK_MONOTONIC, or an execution time of its own.
    ///
    /// # Errors
    /// [`NotPosted`].
    pub fn post_work(&mut self, posted: Posted) -> Result<u64, NotPosted> {
        self.flow.post(&self.shared, posted)
    }
}
