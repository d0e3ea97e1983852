//! What is said of the events of channels, beside values of ports. Channels themselves are not known here.

use talea_event::{EventLoss, Outcome};
use talea_model::{OperationId, PublicationId};

/// An event that a job has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenEvent {
    /// As what it was published; `None` if that has no number.
    pub publication: Option<PublicationId>,
    /// The operation and the instance of the job that pushed it.
    pub from: Option<(OperationId, u64)>,
}

/// What channels tell of themselves while jobs push and take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventNote {
    /// The job pushes an event.
    Pushed(PublicationId),
    /// The job, of an operation that a program has declared, takes an event.
    Taken {
        /// The event.
        event: TakenEvent,
        /// Which of those of the job it is, from 0.
        number: u32,
    },
    /// Events are lost on their way to the task whose first operation this is.
    Lost {
        /// The operation.
        operation: OperationId,
        /// How many.
        events: u32,
        /// Why.
        why: EventLoss,
    },
    /// The job waits for another one to end a call, at this instant of the note.
    Blocked {
        /// The other one: its operation and instance, if that is known.
        by: Option<(OperationId, u64)>,
    },
    /// It has waited.
    Unblocked,
    /// The code of a consumer has said this in the job of what it was handed in one call, in a run that is to be replayed.
    Answered {
        /// What it said.
        outcome: Outcome,
        /// Which of the calls of the job it was, from 0.
        call: u32,
    },
    /// What the job took was to be kept, and there was no room for it.
    NotKept,
    /// What the job pushes was to be kept, and there is no room for it.
    PushNotKept(PublicationId),
}

/// What of the events of a program's own channels is recorded, so that deliveries can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptEvent {
    /// What the job is handed, behind what it was handed before.
    Taken(TakenPart),
    /// What it pushes as this publication, or wants to, and how that is answered.
    Pushed(PublicationId),
}

/// Whether the job is handed more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenPart {
    /// It may be.
    More,
    /// No more comes.
    Last,
}
