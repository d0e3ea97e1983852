//! What threads find that write to no stream: also those of a process that is forked off, whose parent had one.

use std::sync::atomic::{AtomicU64, Ordering};
use talea_ring::control::SWITCHES;

/// The switches of events and passive entities.
pub(crate) type Switches = [AtomicU64; SWITCHES];

/// The switches of threads that are attached to nothing.
pub(crate) static UNATTACHED: Switches = [const { AtomicU64::new(0) }; SWITCHES];

/// Whether threads that are not attached are to ask, because there is a stream for them.
pub(crate) fn set_unattached(word: u64) {
    UNATTACHED.iter().for_each(|switch| switch.store(word, Ordering::Relaxed));
}
