//! Messages between the processes of one machine: one named pipe per node, which the node's process reads and all others write.
//!
//! A write of up to 4096 bytes into a pipe is atomic, so any number of writers share one pipe and messages follow each other whole. A
//! full one refuses instead of blocking. Pipes have no limit on their queue other than their size; datagram sockets stop at ten messages on
//! many machines. All processes read one clock.

use crate::clock::ClockMapping;
use crate::counts::{Counts, Refusal, Sent, Tally};
use crate::inbox::Inbox;
use crate::message::{Message, PAYLOAD_BYTES, Packet, Peer};
use crate::news::{Arrived, Received};
use crate::transport::Transport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::{Errno, read, write, writev};
use rustix::pipe::fcntl_setpipe_size;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use talea_time::Duration;

/// The ways to the nodes in other processes, and the way into this one.
#[derive(Debug)]
pub struct Pipes {
    own: Peer,
    /// By node; `None` for the own one.
    ways: Vec<Option<OwnedFd>>,
    inlet: OwnedFd,
    /// The writing end of the own pipe.
    stop: OwnedFd,
    /// By node: whether it has left and not come again.
    left: Box<[AtomicBool]>,
    leaves_silently: AtomicBool,
    tally: Tally,
}

/// The path of a node's pipe.
fn path_of(directory: &Path, node: usize) -> PathBuf {
    directory.join(format!("node-{node}"))
}

/// Makes the pipes of `nodes` nodes in a directory.
///
/// # Errors
/// What the system says.
pub fn create(directory: &Path, nodes: usize) -> Result<(), Errno> {
    (0..nodes).try_for_each(|node| {
        mknodat(CWD, path_of(directory, node), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
    })
}

/// Says to the node `to` that a peer has left. Whoever started the peer's process says so when that has ended, for a process that is killed
/// cannot: what it wrote before stands before this in the pipe.
///
/// # Errors
/// `AGAIN` as long as there is no room in the pipe; else what the system says.
pub fn say_left(directory: &Path, to: usize, peer: Peer) -> Result<(), Errno> {
    let way = open(path_of(directory, to), OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
    write(&way, &Packet::Left(peer).header()).map(drop)
}

/// What a pipe is asked to have room for: more than 4096 messages without payload.
const ROOM: usize = 1 << 19;

fn open_pipe(directory: &Path, node: usize, flags: OFlags) -> Result<OwnedFd, Errno> {
    let pipe = open(path_of(directory, node), OFlags::RDWR | OFlags::CLOEXEC | flags, Mode::empty())?;
    // Whoever may not have more has room for some hundred messages as well.
    let _ = fcntl_setpipe_size(&pipe, ROOM);
    Ok(pipe)
}

impl Pipes {
    /// Opens the pipes of all `nodes` nodes, and tells the others that this start of the node `own` is there. Opening for reading and writing
    /// does not wait for the reader to be there, and a message to a node that has not opened its end yet waits in the pipe.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(directory: &Path, nodes: usize, own: Peer) -> Result<Self, Errno> {
        let node = usize::from(own.node);
        let ways = (0..nodes)
            .map(|other| (other != node).then(|| open_pipe(directory, other, OFlags::NONBLOCK)).transpose())
            .collect::<Result<Vec<_>, _>>()?;
        let inlet = open_pipe(directory, node, OFlags::empty())?;
        let stop = open_pipe(directory, node, OFlags::NONBLOCK)?;
        let left = (0..nodes).map(|_| AtomicBool::new(false)).collect();
        let pipes = Pipes {
            own,
            ways,
            inlet,
            stop,
            left,
            leaves_silently: AtomicBool::new(false),
            tally: Tally::default(),
        };
        pipes.tell_all(Packet::Appeared(own));
        Ok(pipes)
    }

    /// Tells news of this node to the others, as far as there is room: whoever does not hear of an appearance hears of it by the first message.
    fn tell_all(&self, packet: Packet<'_>) {
        for way in self.ways.iter().flatten() {
            let _ = write(way, &packet.header());
        }
    }

    fn put(&self, to: usize, message: &Message<'_>) -> Result<(), Refusal> {
        let way = self.ways.get(to).and_then(Option::as_ref).ok_or(Refusal::Absent)?;
        if self.left[to].load(Ordering::Relaxed) {
            return Err(Refusal::Left);
        }
        if message.payload.len() > PAYLOAD_BYTES {
            return Err(Refusal::TooLong);
        }
        let header = Packet::Message(*message).header();
        let written = match message.payload {
            [] => write(way, &header),
            payload => writev(way, &[IoSlice::new(&header), IoSlice::new(payload)]),
        };
        match written {
            Ok(_) => Ok(()),
            Err(Errno::AGAIN) => Err(Refusal::Full),
            Err(_) => Err(Refusal::Absent),
        }
    }

    /// Which peers are there decides about what is sent from now on.
    fn note(&self, arrived: Arrived<'_>) {
        let (Arrived::Appeared(peer) | Arrived::Left(peer)) = arrived else { return };
        if let Some(left) = self.left.get(usize::from(peer.node)) {
            left.store(matches!(arrived, Arrived::Left(_)), Ordering::Relaxed);
        }
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        if !self.leaves_silently.load(Ordering::Relaxed) {
            self.tell_all(Packet::Left(self.own));
        }
    }
}

impl Transport for Pipes {
    fn own(&self) -> Peer {
        self.own
    }

    /// One system call.
    fn send(&self, to: usize, message: &Message<'_>) -> Result<Sent, Refusal> {
        self.tally.count(self.put(to, message))
    }

    fn receive(
        &self,
        inbox: &mut Inbox,
        within: Option<Duration>,
        take: &mut dyn FnMut(Arrived<'_>),
    ) -> std::io::Result<Received> {
        if let Some(within) = within {
            let within = within.max(Duration::ZERO).as_nanos();
            let timeout = Timespec { tv_sec: within / 1_000_000_000, tv_nsec: within % 1_000_000_000 };
            match poll(&mut [PollFd::new(&self.inlet, PollFlags::IN)], Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => return Ok(Received::More),
                other => other?,
            };
        }
        match read(&self.inlet, inbox.room()) {
            Err(Errno::INTR) => Ok(Received::More),
            length => Ok(inbox.filled(length?, &self.tally, &mut |arrived| {
                self.note(arrived);
                take(arrived);
            })),
        }
    }

    fn stop_receiving(&self) -> std::io::Result<()> {
        Ok(write(&self.stop, &Packet::Stop.header()).map(drop)?)
    }

    fn leave_silently(&self) {
        self.leaves_silently.store(true, Ordering::Relaxed);
    }

    fn clock_of(&self, _: usize) -> ClockMapping {
        ClockMapping::SAME
    }

    fn counts(&self) -> Counts {
        self.tally.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::message;

    fn two() -> (tempfile::TempDir, Pipes, Pipes) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        create(directory.path(), 2).expect("pipes");
        let open = |node| Pipes::open(directory.path(), 2, Peer { node, epoch: 11 }).expect("pipes");
        let (one, other) = (open(0), open(1));
        (directory, one, other)
    }

    #[test]
    fn messages_arrive_whole_in_order_and_the_stop_comes_last() {
        let (_directory, one, other) = two();
        let payload: Vec<u8> = (0..PAYLOAD_BYTES).map(|byte| byte as u8).collect();
        let length = |counter: u64| if counter % 10 == 3 { PAYLOAD_BYTES } else { counter as usize };
        for counter in 0..50 {
            one.send(1, &message(0, counter, &payload[..length(counter)])).expect("there is room");
        }
        drop(one);
        other.stop_receiving().expect("there is room");
        let (mut inbox, mut counter, mut news) = (Inbox::new(2), 0, Vec::new());
        let mut take = |arrived: Arrived<'_>| match arrived {
            Arrived::Message(received) => {
                assert_eq!(received, message(0, counter, &payload[..length(counter)]));
                counter += 1;
            }
            other => news.push(format!("{other:?}")),
        };
        while other.receive(&mut inbox, None, &mut take).expect("it is readable") == Received::More {}
        assert_eq!(counter, 50);
        assert_eq!(news, ["Appeared(Peer { node: 0, epoch: 11 })", "Left(Peer { node: 0, epoch: 11 })"]);
        assert_eq!(other.counts(), Counts::default());
    }

    #[test]
    fn a_full_pipe_refuses_instead_of_blocking_and_counts_it() {
        let (_directory, one, _other) = two();
        let mut sent = 0;
        while one.send(1, &message(0, 0, &[])).is_ok() {
            sent += 1;
        }
        assert!(sent >= 64, "only {sent} messages fit");
        assert_eq!(one.send(1, &message(0, 0, &[])), Err(Refusal::Full));
        assert_eq!(one.send(0, &message(0, 0, &[])), Err(Refusal::Absent), "to itself");
        assert_eq!(one.send(7, &message(0, 0, &[])), Err(Refusal::Absent));
        assert_eq!(one.send(1, &message(0, 0, &[0; PAYLOAD_BYTES + 1])), Err(Refusal::TooLong));
        let counts = one.counts();
        assert_eq!((counts.sent, counts.full, counts.absent, counts.too_long), (sent, 2, 2, 1));
        assert_eq!(counts.refused(), 5);
    }

    #[test]
    fn a_reply_names_the_job_that_it_is_the_answer_to() {
        let (_directory, one, other) = two();
        let question = message(0, 17, &[1, 2, 3]);
        one.send(1, &question).expect("there is room");
        let mut inboxes = [Inbox::new(2), Inbox::new(2)];
        let mut answered = None;
        let mut answer = |arrived: Arrived<'_>| {
            let Arrived::Message(asked) = arrived else { return };
            let reply = Message { reply_to: Some(asked.identity.job), ..message(1, 4, asked.payload) };
            answered = Some(other.send(0, &reply));
        };
        let _ = other.receive(&mut inboxes[1], Some(Duration::ZERO), &mut answer).expect("it is readable");
        assert_eq!(answered, Some(Ok(Sent::Sent)));
        let mut heard = Vec::new();
        let mut take = |arrived: Arrived<'_>| {
            if let Arrived::Message(reply) = arrived {
                heard.push((reply.reply_to, reply.identity.peer.node, reply.payload.to_vec()));
            }
        };
        let _ = one.receive(&mut inboxes[0], Some(Duration::ZERO), &mut take).expect("it is readable");
        assert_eq!(heard, [(Some(question.identity.job), 1, vec![1, 2, 3])]);
    }

    #[test]
    fn a_peer_that_has_left_is_refused_until_it_comes_again() {
        let (directory, one, other) = two();
        let mut inbox = Inbox::new(2);
        let mut hear = |pipes: &Pipes| {
            let mut news = Vec::new();
            let mut take = |arrived: Arrived<'_>| news.push(format!("{arrived:?}"));
            let _ = pipes.receive(&mut inbox, Some(Duration::ZERO), &mut take).expect("it is readable");
            news
        };
        let peer = |epoch| Peer { node: 1, epoch };
        hear(&one);
        assert_eq!(one.send(1, &message(0, 0, &[])), Ok(Sent::Sent));
        let (here, left) = (other.own(), |peer| format!("{:?}", Arrived::Left(peer)));
        // Its process is killed, and whoever started it says so; then it says so itself, which nobody needs.
        say_left(directory.path(), 0, here).expect("there is room");
        assert_eq!(hear(&one), [left(here)]);
        drop(other);
        assert_eq!(hear(&one), [""; 0]);
        assert_eq!(one.send(1, &message(0, 1, &[])), Err(Refusal::Left));
        let again = Pipes::open(directory.path(), 2, peer(here.epoch + 1)).expect("pipes");
        assert_eq!(hear(&one), [format!("{:?}", Arrived::Appeared(again.own()))]);
        assert_eq!(one.send(1, &message(0, 2, &[])), Ok(Sent::Sent));
        let counts = one.counts();
        assert_eq!((counts.sent, counts.left, counts.refused(), counts.stale), (2, 1, 1, 0));
        again.leave_silently();
        drop(again);
        assert_eq!(hear(&one), [""; 0], "nobody is told");
    }

    #[test]
    fn sending_and_receiving_do_not_allocate() {
        let (_directory, one, other) = two();
        let (mut inbox, mut received) = (Inbox::new(2), 0);
        let allocated = allocation_counter::measure(|| {
            for counter in 0..100 {
                one.send(1, &message(0, counter, &[1, 2, 3])).expect("there is room");
                let mut take =
                    |arrived: Arrived<'_>| received += u32::from(matches!(arrived, Arrived::Message(_)));
                let _ = other.receive(&mut inbox, Some(Duration::ZERO), &mut take).expect("it is readable");
            }
        });
        assert_eq!((allocated.count_total, received), (0, 100));
    }
}
