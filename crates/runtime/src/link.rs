//! The way to the nodes in other processes, and what has come of the promises of the links to this one.

use rustix::io::Errno;
use std::path::Path;
use talea_linux::clock::MonotonicClock;
use talea_model::System;
use talea_time::Clock;
use talea_transport::{Peer, Pipes, PromiseWatch, Transport};

/// What a process that has one node of several shares among its threads.
pub(crate) struct Link {
    pub transport: Box<dyn Transport>,
    pub promises: PromiseWatch,
}

impl Link {
    /// The pipes of this process, which has the node `own`, to the others of the run.
    pub fn open(system: &System, directory: &Path, own: usize) -> Result<Self, Errno> {
        // Later starts have greater epochs: processes of one machine share a clock.
        let peer = Peer { node: own as u16, epoch: MonotonicClock.now().as_nanos() as u64 };
        let pipes = Pipes::open(directory, system.nodes.len(), peer)?;
        Ok(Link { transport: Box::new(pipes), promises: PromiseWatch::new(system, own) })
    }
}
