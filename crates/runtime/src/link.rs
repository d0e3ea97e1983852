//! The way to the nodes in other processes, and what has come of the promises of the links to this one.

use crate::flow::{JobFlow, Shared, Signal};
use crate::options::{Links, RunOptions};
use rustix::io::Errno;
use std::path::Path;
use talea_linux::clock::MonotonicClock;
use talea_model::System;
use talea_record::LossReason;
use talea_record::event::{MessageLost, NodeLeft, Receive};
use talea_time::{Clock, Instant};
use talea_transport::simulated::{self, SimulatedLink};
use talea_transport::{Arrived, Inbox, Message, Peer, Pipes, PromiseWatch, Received, Refusal, Transport};

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

/// Takes what other processes send to the node `own`, and only enqueues, until the run is over.
///
/// # Panics
/// If the way into this process is broken.
pub(crate) fn receive(shared: &Shared, own: usize, inbox: &mut Inbox, flow: &mut JobFlow) {
    let link = shared.link.as_ref().expect("only where there are other processes is there a receiver");
    loop {
        let mut take = |arrived: Arrived<'_>| {
            let now = MonotonicClock.now();
            match arrived {
                Arrived::Message(message) => link.take(shared, &message, flow, now),
                // The transport refuses from now on what is sent to it. How its process ended is the coordinator's to tell.
                Arrived::Left(Peer { node, epoch }) => {
                    flow.recorder.put(now, NodeLeft { epoch, left: u32::from(node), node: own as u16 });
                }
                Arrived::Dropped(message) => {
                    let job = message.identity.job;
                    let (to, lane) =
                        (message.to.index() as u64, shared.layout.operation(job.operation).lane as u16);
                    flow.recorder.put(now, MessageLost { job, to, lane, why: LossReason::NoRoom.into() });
                }
                Arrived::Appeared(_) => {}
            }
        };
        let received = link.transport.receive(inbox, None, &mut take);
        flow.ring(shared);
        match received {
            Ok(Received::More) => {}
            Ok(Received::End) => return,
            Err(error) => panic!("receiving what other nodes send failed: {error}"),
        }
    }
}

impl Link {
    /// What the receiver of a system of so many nodes needs.
    pub fn inbox(&self, nodes: usize) -> Inbox {
        Inbox::new(nodes).with_room(self.room)
    }

    fn take(&self, shared: &Shared, message: &Message<'_>, flow: &mut JobFlow, now: Instant) {
        let clock = self.transport.clock_of(usize::from(message.identity.peer.node));
        let _ = self.promises.see(message, clock, now);
        let signal = Signal::of(message);
        let lane = shared.layout.operation(message.to).lane as u16;
        let sent = Some(clock.range(message.sent).0);
        flow.recorder.put_if_wanted(now, Receive { job: signal.job, sent, lane });
        flow.arrive(shared, signal, now);
    }
}
