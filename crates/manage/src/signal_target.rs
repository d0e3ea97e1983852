//! To whom a signal goes.

use rustix::process::{Signal, kill_process, kill_process_group};
use talea_linux::Tid;
use talea_linux::proc::is_in_group;

/// Processes of other programs that are held together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalTarget {
    Process(Tid),
    /// A command with its group, of which it is the leader.
    Group(Tid),
}

impl SignalTarget {
    pub(crate) fn process(self) -> Tid {
        match self {
            SignalTarget::Process(process) | SignalTarget::Group(process) => process,
        }
    }

    /// Whether a signal to it is one to this process.
    pub(crate) fn reaches(self, process: Tid) -> bool {
        match self {
            SignalTarget::Process(own) => own == process,
            SignalTarget::Group(leader) => is_in_group(process, leader).unwrap_or(true),
        }
    }

    pub(crate) fn send(self, signal: Signal) {
        let _gone = match self {
            SignalTarget::Process(process) => kill_process(process, signal),
            SignalTarget::Group(leader) => kill_process_group(leader, signal),
        };
    }

    /// As `kill(2)` takes it: the number of a process, or that of a group below zero.
    pub fn as_raw(self) -> i32 {
        match self {
            SignalTarget::Process(process) => process.as_raw_nonzero().get(),
            SignalTarget::Group(leader) => -leader.as_raw_nonzero().get(),
        }
    }
}
