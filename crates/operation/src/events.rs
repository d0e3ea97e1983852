//! What operations do with events of channels, beside their ports. Channels themselves are not known here: whoever makes them gives each operation
//! that publishes or has subscribed its ends.

use crate::context::JobContext;
use crate::workplace::Workplace;
use std::any::Any;
use std::error::Error;
use std::sync::Arc;
use talea_event::EventLoss;
use talea_model::{OperationId, PublicationId};
use talea_time::Instant;

/// An event that a job has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenEvent {
    /// As what it was published; `None` if a program pushed it otherwise.
    pub publication: Option<PublicationId>,
    /// The operation and the instance of the job that pushed it.
    pub from: Option<(OperationId, u64)>,
}

/// What channels tell of themselves while jobs push and take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventNote {
    /// The job pushes an event.
    Pushed(PublicationId),
    /// Events are lost on their way to the task whose first operation this is.
    Lost {
        /// The operation.
        operation: OperationId,
        /// How many.
        events: u32,
        /// Why.
        why: EventLoss,
    },
}

/// The ends of an operation at channels: what it takes and what it pushes.
pub trait EventEnds: Any + Send {
    /// The job of this instance begins, and takes of the events that wait those it is to have. Says of each where it is from. Neither allocates
    /// nor waits. A job that has gone before it and is to go on begins once more, and has what it had.
    fn begin(
        &mut self,
        instance: u64,
        now: Instant,
        taken: &mut dyn FnMut(TakenEvent),
        noted: &mut dyn FnMut(EventNote),
    );
    /// A job without code has completed: pushes what the description says.
    fn push_synthetic(&mut self, job: &JobContext<'_>);
    /// The job that began last is over, and does not have its events any more.
    fn leave(&mut self);
    /// What the code of the operation has not opened, in words.
    fn unopened(&self) -> Vec<String>;
    /// The same, for who made it.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// Does what is left to do when it is known where deliveries are work.
pub type Binding = Box<dyn FnOnce(Arc<dyn Workplace>) -> Result<(), Box<dyn Error + Send + Sync>> + Send>;
