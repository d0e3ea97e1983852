//! What is asked of Linux, against the real kernel. What needs a privilege that is missing says so and is skipped.

mod burn;
mod exec;
mod privileges;
mod thread;
mod timer;
mod watch;

use std::path::Path;
use talea_linux::sched::{self, Policy, SchedError};

/// Whether this process may use SCHED_FIFO up to `priority`; says so if not.
fn may_use_fifo(priority: u8) -> bool {
    let asked = std::thread::spawn(move || sched::set_self(Policy::Fifo(priority))).join().unwrap();
    match asked {
        Ok(()) => true,
        Err(error @ SchedError::PriorityNotPermitted { .. }) => {
            talea_measure::skip(error);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// Whether this process is root and can therefore give up being root; says so if not.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        talea_measure::skip("dropping privileges can only be tested by root");
    }
    root
}

/// The field of a thread's `status` in proc, without the surrounding blanks.
fn status_field(tid: talea_linux::Tid, field: &str) -> String {
    let path = format!("/proc/self/task/{tid}/status");
    let text = std::fs::read_to_string(Path::new(&path)).expect("a live thread has a status");
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{path} has no {field}")).trim().into()
}
