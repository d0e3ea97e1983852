//! Waiting for what another process or the kernel does.

use std::time::{Duration, Instant};

/// Longer than any machine needs for what tests wait for, and less than a run waits for processes that do not get ready.
const PATIENCE: Duration = Duration::from_secs(45);
const LOOK: Duration = Duration::from_millis(5);

/// Waits until `condition` holds. What another process or the kernel has done can only be looked for again and again.
///
/// # Panics
/// If it does not hold within 45 seconds, naming `what` was waited for.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "still not so: {what}");
        std::thread::sleep(LOOK);
    }
}
