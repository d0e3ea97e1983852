//! One process of a run of several.

use super::agreement::Agreement;
use super::wire::{DIRECTORY_VARIABLE, FromMember, NODE_VARIABLE, ToMember, control_of, receive, send};
use crate::error::PrepareError;
use crate::layout::Hosted;
use crate::options::RunOptions;
use crate::outcome::Stopped;
use crate::prepare::{Execution, prepare};
use crate::run::Ended;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use talea_linux::sched::Policy;
use talea_linux::thread::spawn;
use talea_manage::STACK;
use talea_model::System;
use talea_operation::Operations;
use talea_time::Instant;
use thiserror::Error;

/// A place in a run of several processes, as the coordinator gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    directory: PathBuf,
    node: String,
}

/// Why a member could not take part. The coordinator has been told, unless the connection is the problem.
#[derive(Debug, Error)]
pub enum MemberError {
    /// The system has no node of that name.
    #[error("the system has no node \"{0}\"; was the system file changed while the run was starting?")]
    NoSuchNode(String),
    /// The connection to the coordinator failed.
    #[error("the connection to the coordinator in {directory} failed: {source}")]
    Control {
        /// The run's directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The node could not be prepared.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
}

impl Membership {
    /// The place that a coordinator gave this process, if one did. A command that may be a member asks
    /// this before anything else.
    pub fn from_environment() -> Option<Self> {
        let directory = std::env::var_os(DIRECTORY_VARIABLE)?.into();
        let node = std::env::var(NODE_VARIABLE).ok()?;
        Some(Membership { directory, node })
    }

    /// The name of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Takes part in the run and returns when it is over, or the coordinator is gone. The process ignores
    /// SIGHUP from then on.
    ///
    /// # Errors
    /// See [`MemberError`].
    pub fn run(
        self,
        system: &System,
        operations: Operations,
        options: RunOptions,
    ) -> Result<(), MemberError> {
        ignore_hangup();
        let taken = self.take_part(system, operations, options);
        let gone = match &taken {
            Ok(coordinator) => *coordinator == Coordinator::Gone,
            Err(MemberError::Control { source, .. }) => hung_up(source),
            Err(_) => false,
        };
        if gone {
            clear(&self.directory);
        }
        taken.map(|_| ())
    }

    /// Takes part without clearing up after a coordinator that is gone.
    fn take_part(
        &self,
        system: &System,
        operations: Operations,
        options: RunOptions,
    ) -> Result<Coordinator, MemberError> {
        let found = system.nodes.iter().position(|node| node.name == self.node);
        let node = found.ok_or_else(|| MemberError::NoSuchNode(self.node.clone()))?;
        let directory = self.directory.clone();
        let lost = |source| MemberError::Control { directory: directory.clone(), source };
        let mut to = UnixStream::connect(control_of(&directory)).map_err(lost)?;
        let mut from = BufReader::new(to.try_clone().map_err(lost)?);
        send(&mut to, &FromMember::Hello { node, agreement: Agreement::of(system, &options) })
            .map_err(lost)?;

        let hosted = Hosted::Node { node, directory: directory.clone() };
        let mut prepared = match prepare(system, operations, options, Execution::Threads(hosted)) {
            Ok(prepared) => prepared,
            Err(error) => {
                send(&mut to, &FromMember::Failed { message: error.to_string() }).map_err(lost)?;
                return Err(error.into());
            }
        };
        let ready = FromMember::Ready {
            realtime: prepared.is_realtime(),
            epoch: prepared.epoch().expect("a member has a link"),
            missing: prepared.missing().to_vec(),
            threads: prepared.threads(),
        };
        send(&mut to, &ready).map_err(lost)?;
        // Another member's threads may take the processor that this one would begin on.
        let raised = prepared.raise();
        let at_ns = match receive(&mut from) {
            Ok(Some(ToMember::Start { at_ns })) => at_ns,
            Ok(Some(ToMember::Stop)) => return Ok(Coordinator::Present),
            Ok(None) | Err(_) => return Ok(Coordinator::Gone),
        };

        let stop = prepared.stop_handle();
        // With memory locked, all of a stack takes memory.
        let listener = spawn("listener", Policy::Other, &[], STACK, move || {
            // A stop, the end of the connection, and nonsense all mean that the run is over.
            let told = matches!(receive(&mut from), Ok(Some(ToMember::Stop)));
            stop.stop();
            told
        });
        let listener = listener.expect("there is room for one more thread");
        let Ended { stopped, spin, mishaps, hierarchies, .. } =
            prepared.run_threads(Instant::from_nanos(at_ns), raised);
        let finished =
            send(&mut to, &FromMember::Finished { stopped, spin, mishaps: Box::new(mishaps), hierarchies });
        // Ends the listener if the coordinator has not hung up by itself.
        let _ = to.shutdown(Shutdown::Both);
        let told = listener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if stopped == Stopped::Interrupted && !told {
            return Ok(Coordinator::Gone);
        }
        finished.map_err(lost)?;
        Ok(Coordinator::Present)
    }
}

/// Whether the coordinator was still there when the member was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coordinator {
    Present,
    Gone,
}

/// Whether a failure of the connection means that nobody is at its other end. The coordinator listens
/// before it starts the first member, so one that refuses is gone as well.
fn hung_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset)
}

/// A member is a process group of its own. If it is stopped when its coordinator ends, Linux sends the group
/// SIGHUP and lets it go on; it then has to live long enough to clear up.
fn ignore_hangup() {
    // SAFETY: SIGHUP may be ignored, and no code runs in a handler.
    let before = unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    assert_ne!(before, libc::SIG_ERR, "SIGHUP can be ignored");
}

/// The coordinator is gone and can no longer remove the run's directory, which may hold memory.
fn clear(directory: &Path) {
    // Another member may have been faster.
    let _ = std::fs::remove_dir_all(directory);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RtMode;
    use std::os::unix::net::UnixListener;
    use talea_model::{Strategy, TaskBuilder};
    use talea_time::{Duration, Work};
    use tempfile::TempDir;

    fn take_part(directory: &TempDir) -> Result<(), MemberError> {
        let task = TaskBuilder::new("job", Duration::from_millis(5)).wcet(Work::from_nanos(1_000)).on("one");
        let system = System::builder("test").strategy(Strategy::Edf).node("one", [0]).task(task).build();
        let options = RunOptions { rt: RtMode::Off, ..RunOptions::default() };
        let membership = Membership { directory: directory.path().into(), node: "one".into() };
        membership.run(&system.expect("a system"), Operations::synthetic(), options)
    }

    #[test]
    fn a_coordinator_that_was_gone_before_the_greeting_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        drop(UnixListener::bind(control_of(directory.path())).expect("a socket"));
        assert!(matches!(take_part(&directory), Err(MemberError::Control { .. })));
        assert!(!directory.path().exists());
    }

    #[test]
    fn a_coordinator_that_goes_before_the_start_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        talea_transport::pipe::create(directory.path(), 1).expect("a pipe");
        let listener = UnixListener::bind(control_of(directory.path())).expect("a socket");
        // It hangs up at some time between the greeting and the wait for the start.
        let coordinator = std::thread::spawn(move || drop(listener.accept().expect("a member")));
        let _ = take_part(&directory);
        coordinator.join().expect("it hung up");
        assert!(!directory.path().exists());
    }
}
