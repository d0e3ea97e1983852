//! What a process does with what comes from others.

use crate::flow::{JobFlow, Shared, Signal};
use crate::link::Link;
use crate::operation::Behaviour;
use std::sync::atomic::Ordering;
use talea_linux::clock::MonotonicClock;
use talea_operation::Stamp;
use talea_record::LossReason;
use talea_record::event::{JobOrNone, MessageLost, NodeLeft, Receive};
use talea_time::{Clock, Instant};
use talea_transport::{Arrived, Inbox, Message, Peer, Received};

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
                Arrived::Message(message) => take_message(shared, link, &message, flow, now),
                // The transport refuses from now on what is sent to it. How its process ended is the coordinator's to tell.
                Arrived::Left(Peer { node, epoch }) => {
                    flow.recorder.put(now, NodeLeft { epoch, left: u32::from(node), node: own as u16 });
                }
                Arrived::Dropped(message) => {
                    let job = message.identity.job;
                    let (to, lane) =
                        (message.to.index() as u64, shared.layout.operation(job.operation).lane as u16);
                    flow.recorder.put(
                        now,
                        MessageLost { job, to, instance: job.instance, lane, why: LossReason::NoRoom.into() },
                    );
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

fn take_message(shared: &Shared, link: &Link, message: &Message<'_>, flow: &mut JobFlow, now: Instant) {
    let clock = link.transport.clock_of(usize::from(message.identity.peer.node));
    let _ = link.promises.see(message, clock, now);
    let signal = Signal::of(message, clock);
    let lane = shared.layout.operation(message.to).lane as u16;
    let sent = Some(clock.range(message.sent).0);
    let from = JobOrNone(Some(message.identity.job));
    flow.recorder.put_if_wanted(now, Receive { job: signal.job, sent, from, lane });
    if let Behaviour::Operation { operation, .. } = shared.behaviour(message.identity.job.operation)
        && !message.payload.is_empty()
    {
        let stamp = Stamp { instance: message.identity.job.instance, visible_at: now };
        // Each successor has a message of its own, with the values that it reads.
        let from = shared.layout.operation(message.identity.job.operation);
        let inputs = &shared.layout.operation(message.to).inputs;
        let is_meant = |output: usize, reader: usize| {
            let input = from.outputs[output].readers.get(reader);
            input.is_none_or(|input| inputs.iter().any(|place| place.id == *input))
        };
        // Of an operation of another process no job runs here, and this thread alone publishes what it sends.
        if !operation.take().receive(message.payload, stamp, is_meant) {
            shared.tally.values_unread.fetch_add(1, Ordering::Relaxed);
        }
    }
    flow.arrive(shared, signal, now);
}
