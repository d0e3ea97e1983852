//! Ctrl-C and termination: the run ends with the results so far; a second one ends the process.

use super::draft;
use super::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

/// A flag that the first Ctrl-C sets.
pub fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    on_interrupt(move || set.store(true, Ordering::Relaxed))?;
    Ok(flag)
}

/// Calls `stop` at the first Ctrl-C or termination signal; the second one ends the process at once.
pub fn on_interrupt(stop: impl Fn() + Send + 'static) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot catch Ctrl-C: {error}"), "");
    let mut signals = signals().map_err(failed)?;
    let mut await_signal = move || signals.read_exact(&mut [0]).is_ok();
    let handle = move || {
        if await_signal() {
            stop();
        }
        if await_signal() {
            draft::remove_under_way();
            std::process::exit(130);
        }
    };
    // A run locks memory, and then all of a stack takes memory.
    let thread = Builder::new().name("ctrl-c".into()).stack_size(256 * 1024);
    thread.spawn(handle).map(drop).map_err(failed)
}

/// From where each signal that asks the process to end can be read as one byte.
fn signals() -> io::Result<UnixStream> {
    let (signals, tell) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        pipe::register(signal, tell.try_clone()?)?;
    }
    Ok(signals)
}
