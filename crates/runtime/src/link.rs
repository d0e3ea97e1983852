//! Messages between the processes of a run: one named pipe per node, which the node's process reads and
//! all others write.
//!
//! A write of up to 4096 bytes into a pipe is atomic, and every message has the same length, so any number
//! of writers share one pipe and a reader always finds whole messages. A pipe holds more than 4096 messages, if the kernel
//! lets it have as much room as is asked for; a full one refuses instead of blocking. Pipes have no limit on their queue other than that; datagram sockets
//! stop at ten messages on many machines.

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::{Errno, read, write};
use rustix::pipe::fcntl_setpipe_size;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use talea_record::JobId;
use talea_time::Instant;

/// A predecessor of `job` has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub job: JobId,
    /// The absolute end-to-end deadline of the instance.
    pub deadline: Instant,
    /// When the predecessor's timer expires, if its successors wait for that.
    pub timer: Instant,
}

const BYTES: usize = 24;
/// What a pipe is asked to have room for.
const ROOM: usize = 1 << 17;
/// Ends the receiver; not a packed job of any system.
const STOP: [u8; BYTES] = [0xff; BYTES];

impl Message {
    fn encode(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.job.pack().to_le_bytes());
        bytes[8..16].copy_from_slice(&self.deadline.as_nanos().to_le_bytes());
        bytes[16..].copy_from_slice(&self.timer.as_nanos().to_le_bytes());
        bytes
    }

    fn decode(bytes: [u8; BYTES]) -> Self {
        let word = |from: usize| u64::from_le_bytes(bytes[from..from + 8].try_into().expect("eight bytes"));
        let instant = |from| Instant::from_nanos(word(from) as i64);
        Message { job: JobId::unpack(word(0)), deadline: instant(8), timer: instant(16) }
    }
}

/// The ways to the nodes in other processes.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// By node; `None` for the nodes of this process.
    pipes: Vec<Option<OwnedFd>>,
}

/// The path of a node's pipe.
fn path_of(directory: &Path, node: usize) -> PathBuf {
    directory.join(format!("node-{node}"))
}

/// Makes the pipes of `nodes` nodes in the run's directory.
pub(crate) fn create(directory: &Path, nodes: usize) -> Result<(), Errno> {
    (0..nodes).try_for_each(|node| {
        mknodat(CWD, path_of(directory, node), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
    })
}

impl Link {
    /// Opens the pipes of all nodes but `own`. Opening for reading and writing does not wait for the
    /// reader to be there, and a message to a node that has not opened its end yet waits in the pipe.
    pub fn open(directory: &Path, nodes: usize, own: usize) -> Result<Self, Errno> {
        let pipes = (0..nodes)
            .map(|node| (node != own).then(|| open_pipe(directory, node, OFlags::NONBLOCK)).transpose())
            .collect::<Result<_, _>>()?;
        Ok(Link { pipes })
    }

    /// Whether there are other processes.
    pub fn is_open(&self) -> bool {
        !self.pipes.is_empty()
    }

    /// Sends without blocking or allocating.
    ///
    /// # Errors
    /// `AGAIN` if the pipe is full.
    pub fn send(&self, node: usize, message: Message) -> Result<(), Errno> {
        let pipe = self.pipes.get(node).and_then(Option::as_ref).ok_or(Errno::NOTCONN)?;
        write(pipe, &message.encode()).map(|_| ())
    }
}

fn open_pipe(directory: &Path, node: usize, flags: OFlags) -> Result<OwnedFd, Errno> {
    let pipe = open(path_of(directory, node), OFlags::RDWR | OFlags::CLOEXEC | flags, Mode::empty())?;
    // Whoever may not have more has room for some thousand messages as well.
    let _ = fcntl_setpipe_size(&pipe, ROOM);
    Ok(pipe)
}

/// The receiving end of this process's own pipe.
#[derive(Debug)]
pub(crate) struct Inlet {
    pipe: OwnedFd,
}

/// Ends the receiver of this process, from any thread.
#[derive(Debug)]
pub(crate) struct InletStop {
    pipe: OwnedFd,
}

/// Messages taken with one system call.
const BATCH: usize = 64;

impl Inlet {
    /// Opens the pipe of `own`.
    pub fn open(directory: &Path, own: usize) -> Result<(Self, InletStop), Errno> {
        let pipe = open_pipe(directory, own, OFlags::empty())?;
        let stop = open_pipe(directory, own, OFlags::NONBLOCK)?;
        Ok((Inlet { pipe }, InletStop { pipe: stop }))
    }

    /// Waits for messages, gives each to `take`, and says whether there will be more.
    pub fn receive(&mut self, mut take: impl FnMut(Message)) -> Result<Received, Errno> {
        let mut buffer = [0; BYTES * BATCH];
        let length = match read(&self.pipe, &mut buffer) {
            Err(Errno::INTR) => return Ok(Received::More),
            other => other?,
        };
        let (messages, rest) = buffer[..length].as_chunks::<BYTES>();
        assert!(rest.is_empty(), "whole messages are written and read");
        for &bytes in messages {
            if bytes == STOP {
                return Ok(Received::End);
            }
            take(Message::decode(bytes));
        }
        Ok(Received::More)
    }
}

/// Whether a receiver goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    More,
    End,
}

impl InletStop {
    /// Ends the receiver after what is in the pipe.
    pub fn stop(&self) -> Result<(), Errno> {
        write(&self.pipe, &STOP).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::OperationId;

    #[test]
    fn messages_arrive_whole_in_order_and_the_stop_comes_last() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        create(directory.path(), 2).expect("pipes");
        let link = Link::open(directory.path(), 2, 0).expect("the other pipe");
        let message = |instance| Message {
            job: JobId { operation: OperationId::from_index(7), instance },
            deadline: Instant::from_nanos(-5),
            timer: Instant::from_nanos(i64::MIN),
        };
        (0..100).for_each(|instance| link.send(1, message(instance)).expect("room"));
        let (mut inlet, stop) = Inlet::open(directory.path(), 1).expect("our pipe");
        stop.stop().expect("room");
        let mut received = Vec::new();
        while inlet.receive(|message| received.push(message)).expect("readable") == Received::More {}
        assert_eq!(received, (0..100).map(message).collect::<Vec<_>>());
    }

    #[test]
    fn a_full_pipe_refuses_instead_of_blocking() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        create(directory.path(), 2).expect("pipes");
        let link = Link::open(directory.path(), 2, 0).expect("the other pipe");
        let job = JobId { operation: OperationId::from_index(0), instance: 0 };
        let mut sent = 0;
        while link.send(1, Message { job, deadline: Instant::ZERO, timer: Instant::ZERO }).is_ok() {
            sent += 1;
        }
        assert!(sent >= 256, "only {sent} messages fit");
    }
}
