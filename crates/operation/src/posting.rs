//! Posted work: jobs of operations that the description of the system does not have, released by a program while the run lasts.

use talea_model::OperationId;
use talea_time::Instant;
use thiserror::Error;

/// Why work was not posted. Nothing has happened but for the record of a refusal that is one of the posted work's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotPosted {
    /// As many jobs of the operation as there is room for are unfinished. It counts as skipped.
    #[error(
        "as many jobs of the operation as there is room for are unfinished; give RunOptions::posting more jobs, or post less"
    )]
    Full,
    /// The run has not begun, or is over.
    #[error("the run has not begun, or is over")]
    NotRunning,
    /// The job is simulated.
    #[error("simulations have no room for posted work")]
    Simulated,
    /// The job is replayed.
    #[error("what is posted is not replayed")]
    Replayed,
    /// The operation was declared for another run.
    #[error("the operation was declared for another run; declare it with this run's dispatcher, too")]
    OtherRun,
}

/// An operation that was declared while a run lasts, by which its jobs are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PostedOperation {
    /// Its number.
    pub id: OperationId,
    /// Whose it is: runs of a process are numbered.
    pub run: u64,
}

/// A job to be posted.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    /// Whose.
    pub operation: PostedOperation,
    /// Where none is given, the operation's own counts, from now on.
    pub deadline: Option<Instant>,
    /// What the job finds.
    pub handle: u64,
}
