//! Posted work: jobs of operations that the description of the system does not have, released by a program while the run lasts.

use talea_model::OperationId;
use talea_time::Instant;
use thiserror::Error;

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
    pub(crate) fn window(&self) -> usize {
        self.jobs.max(1).next_power_of_two()
    }

    /// Jobs of all operations that can be in flight.
    pub(crate) fn all_jobs(&self) -> usize {
        self.operations * self.window()
    }
}

/// Why work was not posted. Nothing has happened but for the record of a refusal that is one of the posted work's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotPosted {
    /// As many jobs of the operation as there is [room](PostingRoom::jobs) for are unfinished. It counts as skipped.
    #[error(
        "as many jobs of the operation as there is room for are unfinished; give RunOptions::posting more jobs, or post less"
    )]
    Full,
    /// The run has not begun, or is over.
    #[error("the run has not begun, or is over")]
    NotRunning,
    /// The operation was declared for another run.
    #[error("the operation was declared for another run; declare it with this run's dispatcher, too")]
    OtherRun,
}

/// An operation that was [declared](crate::Dispatcher::declare), by which its jobs are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PostedOperation {
    pub(crate) id: OperationId,
    /// Whose it is: runs of a process are numbered.
    pub(crate) run: u64,
}

/// A job to be posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pub operation: PostedOperation,
    /// Where none is given, the operation's own counts, from now on.
    pub deadline: Option<Instant>,
    pub handle: u64,
}
