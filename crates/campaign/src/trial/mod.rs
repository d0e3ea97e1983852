//! What is tried, one kind a file.

pub mod bounds;
pub mod changes;
pub mod inputs;
pub mod replays;
pub mod simulated;
pub mod strangers;
pub mod threads;

/// Something that does not hold, with what was tried.
#[derive(Debug)]
pub struct Fault {
    pub what: String,
    pub input: Vec<u8>,
}

impl Fault {
    pub fn new(what: impl Into<String>, input: impl Into<Vec<u8>>) -> Self {
        Fault { what: what.into(), input: input.into() }
    }
}
