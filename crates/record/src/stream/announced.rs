//! Programs that a recorder starts: they wait until it follows them, so that nothing of what they do is missing.
//!
//! ```text
//! recorder                                program
//! starts the program with RECORDER
//!                                         publishes a stream that names the recorder
//!                                         waits
//! finds it, attaches, switches on
//! says so in the stream  ---------------> goes on; from now on its threads have the stream
//! ```
//! Registering a family waits likewise where the recorder has asked for families by name and some are not there yet. No wait is
//! longer than two seconds, and none goes on when the recorder is gone.

use crate::live::LiveFile;
use crate::live::process::{Liveness, Owner};
use std::path::Path;

/// The environment variable that tells a program of its recorder.
pub const RECORDER: &str = "TALEA_RECORDER";
/// The environment variable with the records that each ring of a stream has room for.
pub const RING_RECORDS: &str = "TALEA_RING_RECORDS";
/// The environment variable with the rings that a stream has for threads that come.
pub const RINGS: &str = "TALEA_RINGS";

/// The value of [`RECORDER`] for programs that are started by this process and publish their streams in `directory`.
pub fn announcement(directory: &Path) -> String {
    format!("{:x} {}", Owner::current().word(), directory.display())
}

/// The recorder, as an owner, that this process was started by and that looks into `directory`; 0: none.
pub(super) fn recorder(directory: &Path) -> u64 {
    let told = std::env::var(RECORDER).unwrap_or_default();
    let Some((owner, place)) = told.split_once(' ') else { return 0 };
    let owner = u64::from_str_radix(owner, 16).ok().and_then(Owner::from_word);
    match owner.filter(|owner| Path::new(place) == directory && owner.liveness() == Liveness::Alive) {
        Some(owner) => owner.word(),
        None => 0,
    }
}

/// Waits until the recorder that the stream names follows it.
pub(super) fn wait(live: &LiveFile) {
    live.wait_for_recorder(|control| control.is_attended());
}
