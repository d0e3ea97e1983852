//! What an operation reads and writes by.

use crate::events::EventEnds;
use std::cell::RefCell;
use talea_channel::{Input, Output};
use talea_model::OperationId;

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
}
