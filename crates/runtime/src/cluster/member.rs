//! One process of a run of several.

use super::wire::{
    DIRECTORY_VARIABLE, FromMember, NODE_VARIABLE, ToMember, control_of, fingerprint, receive, send,
};
use crate::operation::Operations;
use crate::options::RunOptions;
use crate::outcome::Stopped;
use crate::prepare::{Hosted, PrepareError, prepare};
use crate::run::Ended;
use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use talea_model::System;
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

    /// Takes part in the run and returns when it is over, or the coordinator is gone.
    ///
    /// # Errors
    /// See [`MemberError`].
    pub fn run(
        self,
        system: &System,
        operations: Operations,
        options: RunOptions,
    ) -> Result<(), MemberError> {
        let found = system.nodes.iter().position(|node| node.name == self.node);
        let node = found.ok_or_else(|| MemberError::NoSuchNode(self.node.clone()))?;
        let directory = self.directory.clone();
        let lost = |source| MemberError::Control { directory: directory.clone(), source };
        let mut to = UnixStream::connect(control_of(&directory)).map_err(lost)?;
        let mut from = BufReader::new(to.try_clone().map_err(lost)?);
        send(&mut to, &FromMember::Hello { node, fingerprint: fingerprint(system, &options) })
            .map_err(lost)?;

        let hosted = Hosted::Node { node, directory: directory.clone() };
        let mut prepared = match prepare(system, operations, options, hosted) {
            Ok(prepared) => prepared,
            Err(error) => {
                send(&mut to, &FromMember::Failed { message: error.to_string() }).map_err(lost)?;
                return Err(error.into());
            }
        };
        let ready = FromMember::Ready {
            realtime: prepared.is_realtime(),
            missing: prepared.missing().to_vec(),
            threads: prepared.threads(),
        };
        send(&mut to, &ready).map_err(lost)?;
        let at_ns = match receive(&mut from) {
            Ok(Some(ToMember::Start { at_ns })) => at_ns,
            Ok(Some(ToMember::Stop)) => return Ok(()),
            Ok(None) | Err(_) => {
                clear(&directory);
                return Ok(());
            }
        };

        let stop = prepared.stop_handle();
        let listener = std::thread::spawn(move || {
            // A stop, the end of the connection, and nonsense all mean that the run is over.
            let told = matches!(receive(&mut from), Ok(Some(ToMember::Stop)));
            stop.stop();
            told
        });
        let Ended { stopped, spin, mishaps, .. } = prepared.run_threads(Instant::from_nanos(at_ns));
        let finished = send(&mut to, &FromMember::Finished { stopped, spin, mishaps });
        // Ends the listener if the coordinator has not hung up by itself.
        let _ = to.shutdown(Shutdown::Both);
        let told = listener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if stopped == Stopped::Interrupted && !told {
            clear(&directory);
        }
        finished.map_err(lost)
    }
}

/// The coordinator is gone and can no longer remove the run's directory, which may hold memory.
fn clear(directory: &Path) {
    // Another member may have been faster.
    let _ = std::fs::remove_dir_all(directory);
}
