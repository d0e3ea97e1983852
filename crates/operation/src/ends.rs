//! What an operation reads and writes by.

use crate::events::{EventNote, TakenEvent};
use crate::pushes::PushedBytes;
use crate::reading::Reading;
use crate::services::JobServices;
use std::any::Any;
use std::cell::RefCell;
use talea_channel::{Input, KeptEnd, Output};
use talea_model::{OperationId, PublicationId};
use talea_time::Instant;

/// The ends of an operation at channels: what it takes and what it pushes. Whoever makes channels gives each operation that publishes or has subscribed
/// its ends.
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
    /// The job of this instance begins, and has what one had that is [kept](Self::keep) as these bytes. False if they are none.
    fn begin_again(&mut self, instance: u64, from: &[u8]) -> bool;
    /// Whether all that its jobs may take can be bytes.
    fn are_bytes(&self) -> bool;
    /// From now on, what jobs take comes to this end, too, as bytes; none if what may come has none, or nothing comes.
    fn keep(&mut self) -> Option<Box<dyn KeptEnd>>;
    /// From now on, what jobs push comes to these ends, too, as bytes: for each publication for whose pushes there was to be room; none if they
    /// are never bytes.
    fn keep_pushes(&mut self) -> Vec<(PublicationId, Option<Box<dyn KeptEnd>>)>;
    /// From now on, what jobs push as one of these publications is made bytes of at once, up to so many, which allocates, and is there to be
    /// [taken](Self::pushed). Returns of which publications it is; those of others are never bytes.
    fn log_pushes(&mut self, wanted: &dyn Fn(PublicationId) -> bool, most: usize) -> Vec<PublicationId>;
    /// What was [pushed](Self::log_pushes) since the last call, in its order.
    fn pushed(&mut self) -> Vec<PushedBytes>;
    /// For the pushes of these numbers of the job that is called next there is no room, and for all others there is.
    fn refuse_again(&mut self, refused: Vec<u16>);
    /// The job of this instance, which has no code, has completed: pushes what the description says.
    fn push_synthetic(&mut self, services: &dyn JobServices, instance: u64);
    /// The job of this instance is over, and does not have its events any more.
    fn leave(&mut self, instance: u64);
    /// What the code of the operation has not opened, in words.
    fn unopened(&self) -> Vec<String>;
    /// The same, for who made it.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// The ends of an operation's connections, in the order of the description.
pub(crate) struct Ends {
    pub operation: OperationId,
    pub inputs: Box<[Box<dyn Input>]>,
    /// Their numbers among all inputs of the system.
    pub input_ids: Box<[usize]>,
    /// Written while inputs are read, one job at a time.
    pub outputs: Box<[RefCell<Box<dyn Output>>]>,
    /// At channels, if it has any.
    pub events: Option<RefCell<Box<dyn EventEnds>>>,
    /// What it reads of the descriptor that releases its task, if it does.
    pub reading: Option<RefCell<Box<Reading>>>,
}
