//! The way to the nodes in other processes, and what has come of the promises of the links to this one.

use crate::layout::OperationSite;
use crate::options::{Links, RunOptions};
use rustix::io::Errno;
use std::path::Path;
use talea_linux::clock::MonotonicClock;
use talea_model::{OperationId, System};
use talea_record::{JobId, LossReason};
use talea_time::{Clock, Instant};
use talea_transport::simulated::{self, SimulatedLink};
use talea_transport::{Identity, Inbox, Message, Peer, Pipes, PromiseWatch, Refusal, Sent, Transport};

/// What a process that has one node of several shares among its threads.
pub(crate) struct Link {
    pub transport: Box<dyn Transport>,
    pub promises: PromiseWatch,
    /// How many messages from others are held at most until they are due.
    room: usize,
}

impl Link {
    /// The pipes of this process, which has the node `own`, to the others of the run, and over them the links of the system if they are
    /// to be imposed.
    pub fn open(system: &System, directory: &Path, own: usize, options: &RunOptions) -> Result<Self, Errno> {
        // Later starts have greater epochs: processes of one machine share a clock.
        let peer = Peer { node: own as u16, epoch: MonotonicClock.now().as_nanos() as u64 };
        let pipes = Pipes::open(directory, system.nodes.len(), peer)?;
        let promises = PromiseWatch::new(system, own);
        Ok(match options.links {
            Links::Judge => Link { transport: Box::new(pipes), promises, room: 0 },
            Links::Impose => Link {
                transport: Box::new(SimulatedLink::new(pipes, MonotonicClock, system)),
                promises: promises.with_tolerance(options.tolerance),
                room: simulated::room(system, own),
            },
        })
    }
}

/// Why a message that was refused does not reach its node, as records say it.
pub(crate) fn reason_of(refusal: Refusal) -> LossReason {
    match refusal {
        Refusal::Full => LossReason::Full,
        Refusal::Absent => LossReason::Absent,
        Refusal::Left => LossReason::Left,
        Refusal::TooLong => LossReason::TooLong,
    }
}

/// What a completed job tells an operation on another node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion<'a> {
    pub job: JobId,
    pub to: OperationId,
    pub at: Instant,
    /// The absolute end-to-end deadline of the instance.
    pub deadline: Instant,
    /// When the job's timer expires, if the operation is to wait for that.
    pub timer: Option<Instant>,
    /// What the job published, as bytes.
    pub values: &'a [u8],
}

impl Link {
    /// Tells a node of the completion of a job of the operation `from`.
    pub fn tell(
        &self,
        node: usize,
        from: &OperationSite,
        completion: Completion<'_>,
    ) -> Result<Sent, Refusal> {
        let Completion { job, to, at, deadline, timer, values: payload } = completion;
        let identity = Identity { peer: self.transport.own(), job };
        let (period, band) = (from.period, from.band);
        let (reply_to, not_before) = (None, None);
        let message =
            Message { identity, to, reply_to, sent: at, deadline, period, band, timer, not_before, payload };
        self.transport.send(node, &message)
    }

    /// What the receiver of a system of so many nodes needs.
    pub fn inbox(&self, nodes: usize) -> Inbox {
        Inbox::new(nodes).with_room(self.room)
    }
}
