//! Bytes that a job leaves for those that follow it.
//!
//! An operation's code attaches a payload to its job's completion, and the code of its successors reads it, on the same node or over a link.
//! All room is there before the run: for each instance in the window of an operation with code a place for each of its predecessors. A place
//! is written before the predecessor's completion counts, so the job that this releases finds it; the instance stands beside the bytes, so
//! that nobody takes what another instance left for its own.
//!
//! ```text
//!   stamp:   instance and length ──(1)──► WRITING ──(2)──► instance and length
//!   reader:  stamp, bytes, stamp: the same twice, and of this instance
//! ```

use crate::window::Windows;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use talea_model::OperationId;
use talea_record::JobId;
use thiserror::Error;

/// The longest payload: what fits into a cache line.
pub const PAYLOAD_BYTES: usize = 64;
const WORDS: usize = PAYLOAD_BYTES / size_of::<u64>();
const LENGTH_BITS: u32 = 8;
/// No instance has this stamp: they are counted in fewer bits.
const EMPTY: u64 = u64::MAX;
const WRITING: u64 = u64::MAX - 1;

/// Up to [`PAYLOAD_BYTES`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    bytes: [u8; PAYLOAD_BYTES],
    length: usize,
}

/// A payload that is longer than [`PAYLOAD_BYTES`]. It has been counted, and nothing has been attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a payload of {0} bytes is longer than {PAYLOAD_BYTES}")]
pub struct PayloadTooLong(pub usize);

impl Payload {
    /// No bytes.
    pub(crate) const EMPTY: Payload = Payload { bytes: [0; PAYLOAD_BYTES], length: 0 };

    fn of(bytes: &[u8]) -> Option<Self> {
        let mut payload = Payload { length: bytes.len(), ..Payload::EMPTY };
        payload.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(payload)
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// What one predecessor of one instance left.
struct Place {
    stamp: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// An operation with code: whose payloads it can read.
pub(crate) struct Reading {
    pub window: usize,
    /// Its predecessors, with their names; none for an operation that reads nothing.
    pub predecessors: Vec<(OperationId, Box<str>)>,
}

/// The payloads of one process.
pub(crate) struct Payloads {
    /// By operation of this process.
    readers: Box<[Reading]>,
    windows: Windows,
    places: Box<[Place]>,
    refused: AtomicU64,
    lost: AtomicU64,
}

impl Payloads {
    /// Room for what operations of this process can read, in their order.
    ///
    /// # Panics
    /// If a window is not a power of two.
    pub fn new(readers: impl IntoIterator<Item = Reading>) -> Self {
        let readers: Box<[Reading]> = readers.into_iter().collect();
        let windows = readers.iter().map(|reader| {
            // Places of one instance stand together: a window of so many instances.
            if reader.predecessors.is_empty() {
                0
            } else {
                reader.window * reader.predecessors.len().next_power_of_two()
            }
        });
        let windows = Windows::new(windows);
        let place = |_| Place { stamp: AtomicU64::new(EMPTY), words: [const { AtomicU64::new(0) }; WORDS] };
        let places = (0..windows.places()).map(place).collect();
        Payloads { readers, windows, places, refused: AtomicU64::new(0), lost: AtomicU64::new(0) }
    }

    /// Payloads that were longer than they may be, and those that were lost because their place was that of another instance.
    pub fn counts(&self) -> (u64, u64) {
        (self.refused.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }

    /// These bytes as a payload.
    pub fn attach(&self, bytes: &[u8]) -> Result<Payload, PayloadTooLong> {
        Payload::of(bytes).ok_or_else(|| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            PayloadTooLong(bytes.len())
        })
    }

    /// These bytes are not left to anybody.
    pub fn lose(&self, bytes: &[u8]) {
        self.lost.fetch_add(u64::from(!bytes.is_empty()), Ordering::Relaxed);
    }

    fn place(&self, reader: usize, instance: u64, position: usize) -> &Place {
        let together = self.readers[reader].predecessors.len().next_power_of_two() as u64;
        &self.places[self.windows.place(reader, instance * together + position as u64) as usize]
    }

    /// The job `from` leaves these bytes for the job of the same instance of an operation of this process, by its number there. To be called
    /// before that is told of the completion.
    pub fn put(&self, reader: usize, from: JobId, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let position =
            self.readers[reader].predecessors.iter().position(|(operation, _)| *operation == from.operation);
        let (Some(position), Some(payload)) = (position, Payload::of(bytes)) else { return };
        let place = self.place(reader, from.instance, position);
        if place.stamp.swap(WRITING, Ordering::Acquire) == WRITING {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // Whoever reads one of the words also sees that they are being written.
        fence(Ordering::Release);
        for (word, bytes) in place.words.iter().zip(payload.bytes.chunks_exact(size_of::<u64>())) {
            word.store(u64::from_le_bytes(bytes.try_into().expect("eight bytes")), Ordering::Relaxed);
        }
        let stamp = from.instance << LENGTH_BITS | payload.length as u64;
        place.stamp.store(stamp, Ordering::Release);
    }

    /// What the predecessor at this position left for the reader's job of this instance.
    fn get(&self, reader: usize, instance: u64, position: usize) -> Option<Payload> {
        let place = self.place(reader, instance, position);
        let stamp = place.stamp.load(Ordering::Acquire);
        if [EMPTY, WRITING].contains(&stamp) || stamp >> LENGTH_BITS != instance {
            return None;
        }
        let mut payload = Payload { length: (stamp & ((1 << LENGTH_BITS) - 1)) as usize, ..Payload::EMPTY };
        for (word, bytes) in place.words.iter().zip(payload.bytes.chunks_exact_mut(size_of::<u64>())) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        fence(Ordering::Acquire);
        (place.stamp.load(Ordering::Relaxed) == stamp).then_some(payload)
    }

    /// The same of the first predecessor, in the order of the file, that is called so and left anything: by its whole name, or that of the
    /// subtask alone; of any if no name is given.
    pub fn read(&self, reader: usize, instance: u64, from: Option<&str>) -> Option<Payload> {
        // What is posted has no predecessors, and no place here.
        let predecessors = self.readers.get(reader)?.predecessors.iter().enumerate();
        let is_it = |name: &str| {
            from.is_none_or(|from| {
                name == from || name.rsplit_once('.').is_some_and(|(_, subtask)| subtask == from)
            })
        };
        predecessors
            .filter(|(_, (_, name))| is_it(name))
            .find_map(|(position, _)| self.get(reader, instance, position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads(window: usize) -> Payloads {
        let name = |index: usize, name: &str| (OperationId::from_index(index), name.into());
        let nothing = Reading { window, predecessors: Vec::new() };
        Payloads::new([
            nothing,
            Reading { window, predecessors: vec![name(3, "t.a"), name(5, "t.b"), name(6, "t.c")] },
        ])
    }

    fn job(operation: usize, instance: u64) -> JobId {
        JobId { operation: OperationId::from_index(operation), instance }
    }

    #[test]
    fn each_instance_finds_what_each_predecessor_left_for_it() {
        let payloads = payloads(4);
        let read = |instance, from| payloads.read(1, instance, from).map(|payload| payload.to_vec());
        payloads.put(1, job(3, 6), &[1, 2]);
        payloads.put(1, job(5, 6), &[9; PAYLOAD_BYTES]);
        payloads.put(1, job(5, 7), &[7]);
        payloads.put(1, job(4, 6), &[8]);
        payloads.put(0, job(3, 6), &[8]);
        assert_eq!(
            (read(6, None), read(6, Some("a")), read(6, Some("t.a"))),
            (Some(vec![1, 2]), Some(vec![1, 2]), Some(vec![1, 2]))
        );
        assert_eq!((read(6, Some("b")), read(7, None)), (Some(vec![9; PAYLOAD_BYTES]), Some(vec![7])));
        assert_eq!((read(6, Some("c")), read(6, Some("z")), read(2, None)), (None, None, None));
        // The place is the next one's now.
        payloads.put(1, job(3, 10), &[5]);
        assert_eq!((read(6, Some("a")), read(10, Some("a"))), (None, Some(vec![5])));
        payloads.put(1, job(3, 14), &[]);
        assert_eq!(read(14, None), None, "nothing was left");
        assert_eq!(payloads.read(0, 6, None), None);
    }

    #[test]
    fn what_is_too_long_is_refused_and_counted() {
        let payloads = payloads(2);
        assert_eq!(payloads.attach(&[0; PAYLOAD_BYTES + 1]), Err(PayloadTooLong(65)));
        assert_eq!(payloads.attach(&[4; 3]).expect("short")[..], [4, 4, 4]);
        assert_eq!(payloads.counts(), (1, 0));
    }

    #[test]
    fn a_reader_never_sees_half_of_one_and_half_of_another() {
        let payloads = payloads(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..20_000_u64 {
                    // Two instances that share a place, as when one overtakes the other.
                    let instance = round % 2 * 2;
                    payloads.put(1, job(3, instance), &[instance as u8; PAYLOAD_BYTES]);
                }
            });
            for _ in 0..20_000 {
                for instance in [0, 2] {
                    if let Some(payload) = payloads.read(1, instance, Some("a")) {
                        assert_eq!(payload[..], [instance as u8; PAYLOAD_BYTES]);
                    }
                }
            }
        });
        assert_eq!(payloads.counts(), (0, 0), "there was one writer");
    }
}
