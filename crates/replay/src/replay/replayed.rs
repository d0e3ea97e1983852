//! An operation that is replayed, and its jobs.

use talea_model::{OperationId, System};
use talea_operation::{HandedAgain, Operation};
use talea_record::{JobId, Metadata};
use talea_time::Instant;

/// What is replayed of an operation.
pub(super) struct Replayed {
    pub operation: Operation,
    /// The job that has taken values last and has not ended.
    pub holder: Option<JobId>,
    /// Whether all its jobs have been done again as they were, so that it has kept what it kept then.
    pub is_on_track: bool,
    pub taken: TakenBeside,
    /// Where its jobs find what a channel of the program handed to them.
    pub handed: Option<HandedAgain>,
    /// By which number it is called [by turns](talea_operation::PostedCode::by_turns) with others, if it is.
    pub turns: Option<usize>,
}

impl Replayed {
    /// What its jobs do besides, or have had besides, is not in the trace: they are not done again.
    pub fn is_outside(&self) -> bool {
        self.operation.is_outside() || self.taken == TakenBeside::Unkept && self.operation.has_code()
    }
}

/// What jobs of an operation take beside values: events, or what they read from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakenBeside {
    Nothing,
    /// Events that are in the trace.
    Events,
    /// What they read, which is in the trace.
    Reads,
    /// It is not in the trace.
    Unkept,
}

impl TakenBeside {
    pub fn of((system, metadata): (&System, &Metadata), id: OperationId, operation: &Operation) -> Self {
        match (system.takes_events(id), operation.reads()) {
            (false, None) => TakenBeside::Nothing,
            (false, Some(_)) if metadata.operations[id.index()].keeps_reads => TakenBeside::Reads,
            // A run of several processes says only that they were to be kept.
            (true, _) if metadata.keeps_events_of(id) && operation.events_are_bytes() => TakenBeside::Events,
            _ => TakenBeside::Unkept,
        }
    }
}

/// A job that has begun.
#[derive(Debug)]
pub(super) struct Begun {
    pub started: Instant,
    /// Whether it has what it had then.
    pub is_intact: bool,
}
