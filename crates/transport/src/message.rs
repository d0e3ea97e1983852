//! What a message carries, and its bytes.
//!
//! A header of fixed length, little-endian, with the payload behind it. All of it together has at most [`MESSAGE_BYTES`], which a pipe takes
//! as a whole or not at all.
//!
//! | Bytes | Field |
//! |---|---|
//! | 0 | kind: message, reply, appeared, left, stop |
//! | 1 | band, 0 to 4 |
//! | 2..4 | sender's node |
//! | 4..8 | length of the payload |
//! | 8..16 | sender's start epoch |
//! | 16..24 | sender's job: operation and counter |
//! | 24..32, 32..40 | sent, deadline |
//! | 40..48 | period |
//! | 48..56 | not to be delivered before; 0 for at once |
//! | 56..64 | job that it replies to |
//! | 64..72 | operation that it is for |
//! | 72..80 | timer of the sender's job; the least number for none |

use talea_model::{Criticality, OperationId};
use talea_policy::release::guard::NO_TIMER;
use talea_record::JobId;
use talea_time::{Duration, Instant};

/// The length of the header.
pub const HEADER_BYTES: usize = 80;
/// The most that a message has, header included: what a pipe writes as a whole on every Linux.
pub const MESSAGE_BYTES: usize = 4096;
/// The longest payload.
pub const PAYLOAD_BYTES: usize = MESSAGE_BYTES - HEADER_BYTES;

/// One start of a node: a node that ended and began again is another peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The node by index.
    pub node: u16,
    /// Later starts of a node have greater epochs.
    pub epoch: u64,
}

/// Whose message it is, unambiguous among all nodes and all their starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The sender.
    pub peer: Peer,
    /// The job of the sender: its operation, and the counter of the operation's jobs.
    pub job: JobId,
}

/// Word of a job to an operation on another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Whose word it is.
    pub identity: Identity,
    /// The operation that it is for.
    pub to: OperationId,
    /// The job that it is the answer to, if it is one.
    pub reply_to: Option<JobId>,
    /// When it was sent, on the sender's clock.
    pub sent: Instant,
    /// The absolute end-to-end deadline of the instance, on the sender's clock.
    pub deadline: Instant,
    /// The period of the task.
    pub period: Duration,
    /// How much depends on it: the band in which a transport with several of them carries it.
    pub band: Criticality,
    /// When the timer of the sender's job expires, for which the successor is to wait; on the sender's clock.
    pub timer: Option<Instant>,
    /// Not to be delivered before; a simulated link says so.
    pub not_before: Option<Instant>,
    /// Bytes for the operation, at most [`PAYLOAD_BYTES`].
    pub payload: &'a [u8],
}

/// What goes over the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet<'a> {
    Message(Message<'a>),
    Appeared(Peer),
    Left(Peer),
    /// To oneself: nothing more will be received.
    Stop,
}

const MESSAGE: u8 = 1;
const REPLY: u8 = 2;
const APPEARED: u8 = 3;
const LEFT: u8 = 4;
const STOP: u8 = 5;

impl Packet<'_> {
    /// The header; the payload stands behind it.
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        match self {
            Packet::Message(message) => message.write(&mut bytes),
            Packet::Appeared(peer) => write_peer(&mut bytes, APPEARED, *peer),
            Packet::Left(peer) => write_peer(&mut bytes, LEFT, *peer),
            Packet::Stop => bytes[0] = STOP,
        }
        bytes
    }
}

impl<'a> Packet<'a> {
    /// The first packet of `bytes` and its length; `None` if it is not whole yet.
    ///
    /// # Errors
    /// [`Garbled`]: nobody who keeps to this protocol wrote it.
    pub fn read(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Garbled> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes(header[4..8].try_into().expect("four bytes")) as usize;
        if length > PAYLOAD_BYTES {
            return Err(Garbled);
        }
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let peer = Peer { node: u16::from_le_bytes([header[2], header[3]]), epoch: word(header, 8) };
        let packet = match header[0] {
            kind @ (MESSAGE | REPLY) => Packet::Message(Message {
                identity: Identity { peer, job: JobId::unpack(word(header, 16)) },
                to: operation(word(header, 64))?,
                reply_to: (kind == REPLY).then(|| JobId::unpack(word(header, 56))),
                sent: instant(header, 24),
                deadline: instant(header, 32),
                period: Duration::from_nanos(word(header, 40) as i64),
                band: Criticality::from_level(header[1]).ok_or(Garbled)?,
                timer: Some(instant(header, 72)).filter(|instant| *instant != NO_TIMER),
                not_before: Some(instant(header, 48)).filter(|instant| *instant != Instant::ZERO),
                payload,
            }),
            APPEARED => Packet::Appeared(peer),
            LEFT => Packet::Left(peer),
            STOP => Packet::Stop,
            _ => return Err(Garbled),
        };
        Ok(Some((packet, HEADER_BYTES + length)))
    }
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Garbled;

impl Message<'_> {
    fn write(&self, bytes: &mut [u8; HEADER_BYTES]) {
        write_peer(bytes, if self.reply_to.is_some() { REPLY } else { MESSAGE }, self.identity.peer);
        bytes[1] = self.band.level();
        bytes[4..8].copy_from_slice(&(self.payload.len() as u32).to_le_bytes());
        let words = [
            self.identity.job.pack(),
            self.sent.as_nanos() as u64,
            self.deadline.as_nanos() as u64,
            self.period.as_nanos() as u64,
            self.not_before.map_or(0, |instant| instant.as_nanos() as u64),
            self.reply_to.map_or(0, JobId::pack),
            self.to.index() as u64,
            self.timer.unwrap_or(NO_TIMER).as_nanos() as u64,
        ];
        for (place, word) in bytes[16..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }
}

fn write_peer(bytes: &mut [u8; HEADER_BYTES], kind: u8, peer: Peer) {
    bytes[0] = kind;
    bytes[2..4].copy_from_slice(&peer.node.to_le_bytes());
    bytes[8..16].copy_from_slice(&peer.epoch.to_le_bytes());
}

fn word(header: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"))
}

fn instant(header: &[u8; HEADER_BYTES], at: usize) -> Instant {
    Instant::from_nanos(word(header, at) as i64)
}

fn operation(index: u64) -> Result<OperationId, Garbled> {
    usize::try_from(index)
        .ok()
        .filter(|index| *index < OperationId::LIMIT)
        .map(OperationId::from_index)
        .ok_or(Garbled)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::option;
    use proptest::prelude::*;

    /// A message of the `counter`-th job of operation 3 to operation 7.
    pub fn message(node: u16, counter: u64, payload: &[u8]) -> Message<'_> {
        let job = JobId { operation: OperationId::from_index(3), instance: counter };
        Message {
            identity: Identity { peer: Peer { node, epoch: 11 }, job },
            to: OperationId::from_index(7),
            reply_to: None,
            sent: Instant::from_nanos(1_000),
            deadline: Instant::from_nanos(-5),
            period: Duration::from_millis(20),
            band: Criticality::High,
            timer: None,
            not_before: None,
            payload,
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (node, epoch, counter, reply) in (any::<u16>(), any::<u64>(), 0..1u64 << 40, any::<Option<u16>>()),
            (sent, deadline, due, timer) in (any::<i64>(), any::<i64>(), option::of(1..i64::MAX), option::of(0..i64::MAX)),
            level in 0..5u8,
            payload in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut message = message(node, counter, &payload);
            message.identity.peer.epoch = epoch;
            message.reply_to = reply.map(|number| JobId { instance: u64::from(number), ..message.identity.job });
            message.sent = Instant::from_nanos(sent);
            message.deadline = Instant::from_nanos(deadline);
            message.timer = timer.map(Instant::from_nanos);
            message.not_before = due.map(Instant::from_nanos);
            message.band = Criticality::from_level(level).expect("0 to 4");
            let packet = Packet::Message(message);
            let mut bytes = packet.header().to_vec();
            bytes.extend(&payload);
            for cut in 0..bytes.len() {
                prop_assert_eq!(Packet::read(&bytes[..cut]), Ok(None), "not whole");
            }
            bytes.push(9);
            prop_assert_eq!(Packet::read(&bytes), Ok(Some((packet, HEADER_BYTES + payload.len()))));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Packet::read(&bytes);
        }
    }

    #[test]
    fn news_of_peers_crosses() {
        let peer = Peer { node: 4, epoch: u64::MAX };
        for packet in [Packet::Appeared(peer), Packet::Left(peer), Packet::Stop] {
            assert_eq!(Packet::read(&packet.header()), Ok(Some((packet, HEADER_BYTES))));
        }
    }
}
