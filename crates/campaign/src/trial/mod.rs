//! What is tried, one kind a file.

pub mod bounds;
pub mod changes;
pub mod inputs;
pub mod replays;
pub mod simulated;
pub mod strangers;
pub mod threads;

use std::path::Path;

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

/// Tries something in a folder of its own, which is kept, and named, if it does not hold.
fn in_folder(trial: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    trial(folder.path())
        .map_err(|what| format!("{what}\n  what was written is in {}", folder.keep().display()))
}
