//! What a receiver needs: room for bytes, room for messages that are not to be delivered yet, and which peers are there.

use crate::counts::Tally;
use crate::message::{HEADER_BYTES, Identity, MESSAGE_BYTES, Message, Packet, Peer};
use crate::news::{Arrived, Received};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use talea_time::Instant;

/// Bytes that are taken at once; any number of whole messages fits.
const BYTES: usize = 16 * MESSAGE_BYTES;

/// The state of the one thread that receives; all its room is taken when it is made.
#[derive(Debug)]
pub struct Inbox {
    bytes: Box<[u8]>,
    /// What has been read and not been taken yet: the beginning of a packet.
    filled: usize,
    peers: Peers,
    pub(crate) held: Held,
}

/// The start of each node that was heard of last.
#[derive(Debug)]
struct Peers {
    epochs: Box<[Heard]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Never,
    /// It is there.
    Present(u64),
    /// This start of it has left.
    Gone(u64),
}

impl Inbox {
    /// Of a node in a system of `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        let peers = Peers { epochs: vec![Heard::Never; nodes].into() };
        Inbox { bytes: vec![0; BYTES].into(), filled: 0, peers, held: Held::default() }
    }

    /// With room for so many messages that are not to be delivered yet, as a simulated link needs it.
    #[must_use]
    pub fn with_room(mut self, messages: usize) -> Self {
        self.held = Held::new(messages);
        self
    }

    /// Whether a node is there, as far as it has said.
    pub fn is_present(&self, node: usize) -> bool {
        matches!(self.peers.epochs.get(node), Some(Heard::Present(_)))
    }

    /// Where bytes are read to.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.filled..]
    }

    /// So many bytes have been read: gives what is whole to `take`.
    pub(crate) fn filled(
        &mut self,
        length: usize,
        tally: &Tally,
        take: &mut dyn FnMut(Arrived<'_>),
    ) -> Received {
        let end = self.filled + length;
        let mut begin = 0;
        let received = loop {
            match Packet::read(&self.bytes[begin..end]) {
                Ok(Some((Packet::Stop, length))) => {
                    begin += length;
                    break Received::End;
                }
                Ok(Some((packet, length))) => {
                    begin += length;
                    self.peers.hear(packet, tally, take);
                }
                Ok(None) => break Received::More,
                Err(_) => {
                    // Where the next one begins is not known.
                    tally.count_garbled();
                    begin = end;
                    break Received::More;
                }
            }
        };
        self.bytes.copy_within(begin..end, 0);
        self.filled = end - begin;
        received
    }
}

impl Peers {
    fn hear(&mut self, packet: Packet<'_>, tally: &Tally, take: &mut dyn FnMut(Arrived<'_>)) {
        let (Packet::Message(Message { identity: Identity { peer, .. }, .. })
        | Packet::Appeared(peer)
        | Packet::Left(peer)) = packet
        else {
            return;
        };
        let Some(heard) = self.epochs.get_mut(usize::from(peer.node)) else { return tally.count_garbled() };
        match *heard {
            Heard::Present(known) | Heard::Gone(known) if peer.epoch < known => return tally.count_stale(),
            // It said so itself, and so does whoever started it.
            Heard::Gone(known) if peer.epoch == known && matches!(packet, Packet::Left(_)) => return,
            Heard::Gone(known) if peer.epoch == known => return tally.count_stale(),
            Heard::Present(known) if peer.epoch == known => {}
            before => {
                if let Heard::Present(epoch) = before {
                    take(Arrived::Left(Peer { epoch, ..peer }));
                }
                *heard = Heard::Present(peer.epoch);
                take(Arrived::Appeared(peer));
            }
        }
        match packet {
            Packet::Message(message) => take(Arrived::Message(message)),
            Packet::Left(_) => {
                *heard = Heard::Gone(peer.epoch);
                take(Arrived::Left(peer));
            }
            Packet::Appeared(_) | Packet::Stop => {}
        }
    }
}

/// Messages that have come and are not to be delivered yet.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Due instant, order of coming, and slot.
    order: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    slots: Box<[[u8; MESSAGE_BYTES]]>,
    free: Vec<usize>,
    came: u64,
}

impl Held {
    fn new(messages: usize) -> Self {
        Held {
            order: BinaryHeap::with_capacity(messages),
            slots: vec![[0; MESSAGE_BYTES]; messages].into(),
            free: (0..messages).collect(),
            came: 0,
        }
    }

    /// The instant at which the first of them is due.
    pub fn next(&self) -> Option<Instant> {
        self.order.peek().map(|Reverse((due, ..))| *due)
    }

    /// Keeps a message until `due`. Returns whether there was room.
    pub fn put(&mut self, due: Instant, message: Message<'_>) -> bool {
        let Some(slot) = self.free.pop() else { return false };
        let (header, payload) = self.slots[slot].split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&Packet::Message(message).header());
        payload[..message.payload.len()].copy_from_slice(message.payload);
        self.order.push(Reverse((due, self.came, slot)));
        self.came += 1;
        true
    }

    /// Gives up what is not due yet, and returns how many messages that was.
    pub fn discard(&mut self) -> usize {
        let held = self.order.len();
        self.free.extend(self.order.drain().map(|Reverse((_, _, slot))| slot));
        held
    }

    /// Gives a message that is due at `now` to `take`. Returns whether there was one.
    pub fn deliver(&mut self, now: Instant, take: &mut dyn FnMut(Arrived<'_>)) -> bool {
        let Some(Reverse((due, _, slot))) = self.order.peek().copied() else { return false };
        if due > now {
            return false;
        }
        self.order.pop();
        match Packet::read(&self.slots[slot]) {
            Ok(Some((Packet::Message(message), _))) => take(Arrived::Message(message)),
            _ => unreachable!("a whole message was put there"),
        }
        self.free.push(slot);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::message;

    /// What these packets come to, in pieces of `piece` bytes.
    fn heard(packets: &[Packet<'_>], piece: usize) -> (Vec<String>, Tally) {
        let (mut inbox, tally, mut seen) = (Inbox::new(2), Tally::default(), Vec::new());
        let bytes: Vec<u8> = packets
            .iter()
            .flat_map(|packet| {
                let payload: &[u8] =
                    if let Packet::Message(message) = packet { message.payload } else { &[] };
                packet.header().into_iter().chain(payload.iter().copied())
            })
            .collect();
        for piece in bytes.chunks(piece) {
            inbox.room()[..piece.len()].copy_from_slice(piece);
            let received = inbox.filled(piece.len(), &tally, &mut |arrived| {
                seen.push(match arrived {
                    Arrived::Message(message) => format!("message {:?}", message.payload),
                    Arrived::Appeared(peer) => format!("appeared {}", peer.epoch),
                    Arrived::Left(peer) => format!("left {}", peer.epoch),
                    Arrived::Dropped(_) => unreachable!("nothing is held"),
                });
            });
            assert_eq!(received, Received::More);
        }
        (seen, tally)
    }

    #[test]
    fn peers_appear_before_their_messages_and_a_new_start_ends_the_one_before() {
        let of = |epoch, payload: &'static [u8]| {
            let mut message = message(1, 0, payload);
            message.identity.peer.epoch = epoch;
            Packet::Message(message)
        };
        let peer = |epoch| Peer { node: 1, epoch };
        let packets = [
            Packet::Appeared(peer(5)),
            of(5, &[1]),
            of(7, &[2, 2]),
            of(5, &[3]),
            Packet::Left(peer(5)),
            Packet::Left(peer(7)),
            Packet::Left(peer(7)),
            of(7, &[4]),
            Packet::Appeared(peer(8)),
            Packet::Message(message(9, 0, &[])),
        ];
        for piece in [1, 7, 80, 100, 1_000] {
            let (seen, tally) = heard(&packets, piece);
            assert_eq!(
                seen,
                [
                    "appeared 5",
                    "message [1]",
                    "left 5",
                    "appeared 7",
                    "message [2, 2]",
                    "left 7",
                    "appeared 8"
                ]
            );
            assert_eq!((tally.counts().stale, tally.counts().garbled), (3, 1));
        }
    }

    #[test]
    fn what_is_held_comes_in_the_order_of_its_instants_and_there_is_so_much_room() {
        let at = Instant::from_nanos;
        let mut held = Held::new(3);
        let numbers: Vec<[u8; 1]> = (0..4).map(|number| [number]).collect();
        let put = |held: &mut Held, due, number: usize| held.put(at(due), message(0, 0, &numbers[number]));
        assert!(
            put(&mut held, 9, 0) && put(&mut held, 5, 1) && put(&mut held, 5, 2) && !put(&mut held, 1, 3)
        );
        let mut seen = Vec::new();
        let mut take = |arrived: Arrived<'_>| {
            if let Arrived::Message(message) = arrived {
                seen.push(message.payload[0]);
            }
        };
        assert_eq!(held.next(), Some(at(5)));
        assert!(!held.deliver(at(4), &mut take));
        while held.deliver(at(9), &mut take) {}
        assert_eq!((seen, held.next()), (vec![1, 2, 0], None));
        assert!(put(&mut held, 1, 3), "there is room again");
        assert!(put(&mut held, 2, 2));
        assert_eq!((held.discard(), held.next()), (2, None));
        assert!((0..3).all(|number| put(&mut held, 1, number)), "all of it is free");
    }
}
