//! What this machine grants a real-time program and what it withholds, found out by trying.
//!
//! A capability listed in proc does not mean that a call succeeds (security modules, cgroups and
//! user name spaces have a say), so whatever can be tried is tried, in a scratch thread that leaves
//! no trace. What cannot be tried is read. Each finding that is not fine comes with the commands
//! that change it; whether to run them is the user's decision.
//!
//! | File | Looks at |
//! |---|---|
//! | `grants` | what needs a privilege: priorities, reservations, locked memory |
//! | `events` | which of the kernel's events a trace can have |
//! | `kernel` | how the kernel is built and set: preemption, throttling, swap, huge pages |
//! | `machine` | processors and clocks: time stamp counter, governor, idle states, isolation |
//!
//! [`measure`](measure()) measures what the machine costs.

mod events;
mod grants;
mod kernel;
mod machine;
mod measure;

use std::fmt;

pub use measure::{Thoroughness, measure};
use talea_linux::setting::read;

/// How a finding bears on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing to do.
    Ok,
    /// A run works, but less punctually or with less to see.
    Warn,
    /// `--rt strict` cannot run.
    Fail,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "fail",
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, in two or three words.
    pub name: &'static str,
    /// How it bears on a run.
    pub status: Status,
    /// What was found, as a sentence.
    pub found: String,
    /// What to do about it, with commands; none where nothing is to be done.
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Finding { name, status: Status::Ok, found: found.into(), remedy: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { name, status: Status::Warn, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn fail(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding { name, status: Status::Fail, found: found.into(), remedy: Some(remedy.into()) }
    }
}

/// Examines the machine as far as the calling process may. Takes some milliseconds, changes
/// nothing, and always answers every question, in the same order.
pub fn examine() -> Vec<Finding> {
    let mut findings = grants::examine();
    findings.extend(events::examine());
    findings.extend(kernel::examine());
    findings.extend(machine::examine());
    findings
}

/// Runs a trial in a thread of its own, so that what it sets on itself ends with it.
fn in_scratch_thread<T: Send + 'static>(trial: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(trial).join().expect("a trial answers with a result instead of panicking")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_that_is_not_fine_has_a_remedy() {
        let findings = examine();
        for finding in &findings {
            println!("{:4} {}: {}", finding.status, finding.name, finding.found);
            assert!(!finding.found.is_empty(), "{finding:?}");
            assert!(finding.status == Status::Ok || finding.remedy.is_some(), "{finding:?}");
        }
        let mut names: Vec<_> = findings.iter().map(|finding| finding.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), findings.len(), "names tell findings apart");
    }

    #[test]
    fn examining_changes_nothing_about_the_caller() {
        let state = || (talea_linux::sched::get(None), talea_linux::affinity::get(None));
        let before = state();
        examine();
        assert_eq!(state(), before);
    }
}
