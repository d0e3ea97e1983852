//! Ctrl-C and termination: the run ends with the results so far; a second one ends the process.

use super::draft;
use super::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the first Ctrl-C sets.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    on_interrupt(move || set.store(true, Ordering::Relaxed))?;
    Ok(flag)
}

/// Calls `stop` at the first Ctrl-C or termination signal; the second one ends the process at once.
pub fn on_interrupt(stop: impl Fn() + Send + 'static) -> Result<(), Failure> {
    let mut first = true;
    ctrlc::set_handler(move || {
        if !std::mem::take(&mut first) {
            draft::remove_under_way();
            std::process::exit(130);
        }
        stop();
    })
    .map_err(|error| Failure::new(format!("cannot catch Ctrl-C: {error}"), ""))
}
