//! One processor's buffer as a source of records.

use super::decode::{Decoder, Raw, Undecodable, lost};
use super::names::Names;
use perf_event::Sampler;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_record::Record;
use talea_record::event::Lost;
use talea_record::merge::RecordSource;
use talea_time::Instant;

/// Records decoded at once.
const READ_AHEAD: usize = 256;
/// Records kept back while more may come, since a record can belong before the one in front of it in the buffer.
const KEPT: usize = 4;
/// More than any record that is asked for has; longer ones that also span the buffer's end are not decoded.
const SPLIT_BYTES: usize = 512;
/// In [`Tally::lost_in_all`] while the stream is at work.
const UNKNOWN: u64 = u64::MAX;

/// What one processor's source has read, and what it lost. Written by the source, read by the stream.
#[derive(Debug)]
pub(super) struct Tally {
    pub records: AtomicU64,
    pub undecodable: AtomicU64,
    /// Lost according to LOST records delivered.
    pub lost: AtomicU64,
    /// Lost according to the events themselves, known once they have stopped.
    pub lost_in_all: AtomicU64,
}

impl Tally {
    /// The record is on its way.
    fn note(&self, record: &Record) {
        if let Some(lost) = lost_records(record) {
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }
}

/// What the sources of all processors have in common as their records are delivered, in the order of time, and what is
/// counted for one of them.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub names: Arc<Names>,
    pub tally: Arc<Tally>,
}

impl Delivery {
    /// What is delivered of a record whose turn has come. See [`Names::told`].
    #[inline]
    pub fn told(&self, record: Record) -> Option<Record> {
        let told = self.names.told(record);
        self.tally.records.fetch_add(u64::from(told.is_some()), Ordering::Relaxed);
        told
    }
}

impl Default for Tally {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Tally { records: zero(), undecodable: zero(), lost: zero(), lost_in_all: AtomicU64::new(UNKNOWN) }
    }
}

/// What is left in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing that was there before.
    Nothing,
    /// Records.
    More,
}

/// What the kernel tells of one processor, in the order of time.
///
/// Reading neither waits nor makes a system call, and allocates nothing in the steady state: a thread's birth, naming
/// and end may touch the table of names. What is read makes room for the kernel at once.
pub struct KernelSource {
    cpu: u16,
    ring: Sampler,
    decoder: Decoder,
    /// Decoded and not yet taken.
    queue: VecDeque<Record>,
    split: Box<[u8; SPLIT_BYTES]>,
    delivery: Delivery,
    /// The latest time seen.
    latest: Instant,
}

impl KernelSource {
    pub(super) fn new(cpu: u16, ring: Sampler, decoder: Decoder, delivery: Delivery, start: Instant) -> Self {
        let queue = VecDeque::with_capacity(2 * READ_AHEAD);
        let split = Box::new([0; SPLIT_BYTES]);
        KernelSource { cpu, ring, decoder, queue, split, delivery, latest: start }
    }

    /// Lets `records`, all of one instant, come first.
    pub(super) fn begin_with(&mut self, records: Vec<Record>) {
        self.queue.extend(records);
    }

    /// The processor it is about.
    pub fn cpu(&self) -> u16 {
        self.cpu
    }

    /// For whoever delivers what [`Self::draw`] takes.
    pub(super) fn delivery(&self) -> Delivery {
        self.delivery.clone()
    }

    /// Takes what is in the buffer, at most about `most` records and then says that there is more; not the latest ones while others keep
    /// coming that may belong before them.
    pub(super) fn draw(&mut self, most: usize) -> (Vec<Record>, Rest) {
        let mut drawn = Vec::new();
        loop {
            let before = self.queue.len();
            self.refill();
            let has_more = self.queue.len() >= READ_AHEAD;
            // What was kept the last time is taken when nothing has come since.
            let kept = if self.queue.len() == before { 0 } else { KEPT };
            let count = self.queue.len().saturating_sub(kept);
            drawn.extend(self.queue.drain(..count).inspect(|record| self.delivery.tally.note(record)));
            if !has_more {
                return (drawn, Rest::Nothing);
            }
            if drawn.len() >= most {
                return (drawn, Rest::More);
            }
        }
    }

    fn refill(&mut self) {
        let before = self.queue.len();
        while self.queue.len() < READ_AHEAD {
            let Some(record) = self.ring.next_record() else {
                self.append_trailing_loss();
                break;
            };
            let (kind, misc) = (record.ty(), record.misc());
            let decoded = match contiguous(record.data(), &mut self.split) {
                Some(body) => self.decoder.decode(Raw { kind, misc, body }, &mut self.queue),
                None => Err(Undecodable),
            };
            if decoded == Err(Undecodable) {
                self.delivery.tally.undecodable.fetch_add(1, Ordering::Relaxed);
            }
        }
        if let Some(latest) = self.queue.back().filter(|_| self.queue.len() > before) {
            self.latest = latest.time;
        }
    }

    /// Losses at the very end are in no record, because the kernel writes that with the next one.
    fn append_trailing_loss(&mut self) {
        let lost_in_all = self.delivery.tally.lost_in_all.load(Ordering::Acquire);
        if lost_in_all == UNKNOWN {
            return;
        }
        let waiting: u64 = self.queue.iter().filter_map(lost_records).sum();
        let told = self.delivery.tally.lost.load(Ordering::Relaxed) + waiting;
        if lost_in_all > told {
            let time = self.queue.back().map_or(self.latest, |last| last.time);
            self.queue.push_back(lost(self.cpu, time, lost_in_all - told));
        }
    }
}

/// The bytes in one piece: as they are, or copied to `buffer` where they span the end of the kernel's.
fn contiguous<'a>(parts: &[&'a [u8]], buffer: &'a mut [u8; SPLIT_BYTES]) -> Option<&'a [u8]> {
    match parts {
        [whole] => Some(whole),
        _ => {
            let mut length = 0;
            for part in parts {
                buffer.get_mut(length..length + part.len())?.copy_from_slice(part);
                length += part.len();
            }
            Some(&buffer[..length])
        }
    }
}

fn lost_records(record: &Record) -> Option<u64> {
    Some(Lost::read(record)?.records)
}

impl RecordSource for KernelSource {
    #[inline]
    fn peek(&mut self) -> Option<Record> {
        if self.queue.len() <= KEPT {
            self.refill();
        }
        self.queue.front().copied()
    }

    #[inline]
    fn take(&mut self) -> Option<Record> {
        self.peek()?;
        let record = self.queue.pop_front()?;
        self.delivery.tally.note(&record);
        self.delivery.told(record)
    }
}

impl fmt::Debug for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelSource")
            .field("cpu", &self.cpu)
            .field("tally", &self.delivery.tally)
            .finish_non_exhaustive()
    }
}
