//! Rings are emptied by somebody who does nothing else, and read from memory.
//!
//! Whoever merges, names and writes records takes longer at times than a ring has room for. So a [`StreamDrawer`] copies all that is in
//! the rings of a stream, as often as its caller makes a pass, and the readers of these rings find it in memory, as much as there may
//! be ([`DrawingMemory`]): what comes beyond stays in the rings, and is lost when it is overwritten there.
//!
//! ```text
//!  rings  --RingDrawer-->  chunks  --RingReader-->  records in order, filtered, with losses
//!              '--------  empty buffers  -----'
//! ```
//! Passing a chunk on neither locks nor waits. A buffer goes back when it has been read, so that a recorder at work does not ask the
//! system for memory.

use super::RingReader;
use super::reader::{Later, is_used};
use crate::Record;
use crate::event::LossCause;
use crate::mapping::Mapping;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use talea_ring::control::{Bit, Control};
use talea_ring::header::Place;
use talea_ring::slots::Slots;

/// Records of a chunk.
const CHUNK: usize = 2048;
/// Buffers with room for as many are used again.
const WORTH_KEEPING: usize = 256;

type Words = [u64; Record::WORDS];

/// Records of a ring, one after the other.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The number of the first.
    pub first: u64,
    /// Records lost just before it.
    pub lost: u64,
    /// Why.
    pub cause: LossCause,
    pub records: Vec<Words>,
}

/// How much memory there is for what has been copied and not yet read, for all streams of a recorder.
#[derive(Clone, Debug)]
pub struct DrawingMemory(Arc<Used>);

#[derive(Debug)]
struct Used {
    bytes: AtomicU64,
    limit: u64,
}

impl DrawingMemory {
    /// At most this many bytes.
    pub fn new(limit: u64) -> Self {
        DrawingMemory(Arc::new(Used { bytes: AtomicU64::new(0), limit }))
    }

    /// Whether there is room for more.
    pub fn has_room(&self) -> bool {
        self.0.bytes.load(Ordering::Relaxed) < self.0.limit
    }

    /// So many bytes have been copied.
    pub fn take(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many bytes have been read.
    pub fn give_back(&self, bytes: usize) {
        self.0.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

/// What has been copied of a ring, for its reader.
#[derive(Debug)]
pub(crate) struct Drawn {
    chunks: Receiver<Chunk>,
    empty: Sender<Vec<Words>>,
    memory: DrawingMemory,
}

impl Drawn {
    /// The next records.
    pub(super) fn next(&mut self) -> Option<Chunk> {
        self.chunks.try_recv().ok()
    }

    /// The records of a chunk have been read.
    pub(super) fn give_back(&mut self, mut records: Vec<Words>) {
        self.memory.give_back(size_of_val(&records[..]));
        if records.capacity() >= WORTH_KEEPING {
            records.clear();
            // Nobody copies any more: the buffer is not needed.
            let _ = self.empty.send(records);
        }
    }
}

/// Copies what is in one ring.
#[derive(Debug)]
pub(crate) struct RingDrawer {
    mapping: Arc<Mapping>,
    place: Place,
    later: Option<Later>,
    cursor: u64,
    /// Lost and not yet passed on, and why.
    lost: u64,
    cause: LossCause,
    out: Option<(Sender<Chunk>, Receiver<Vec<Words>>)>,
}

impl RingDrawer {
    pub(super) fn new(mapping: &Arc<Mapping>, place: &Place, later: Option<Later>, cursor: u64) -> Self {
        let (mapping, place) = (Arc::clone(mapping), place.clone());
        RingDrawer { mapping, place, later, cursor, lost: 0, cause: LossCause::Overwritten, out: None }
    }

    /// Where what is copied will be found.
    fn connect(&mut self, memory: &DrawingMemory) -> Drawn {
        let ((chunks_in, chunks), (empty, empty_out)) = (channel(), channel());
        self.out = Some((chunks_in, empty_out));
        Drawn { chunks, empty, memory: memory.clone() }
    }

    /// Copies all that is in the ring, as far as there is memory, and returns the part of the ring that was full.
    fn draw(&mut self, memory: &DrawingMemory) -> f64 {
        let Some((out, empty)) = &self.out else { return 0.0 };
        if !is_used(&self.mapping, self.later) {
            return 0.0;
        }
        let words = self.mapping.words();
        let slots = Slots::new(&words[self.place.head()], &words[self.place.slots.clone()]);
        let capacity = self.place.slots.len() / Record::WORDS;
        let end = words[self.place.head()].load(Ordering::Relaxed);
        let waiting = end.saturating_sub(self.cursor);
        while self.cursor < end {
            if !memory.has_room() {
                // What is overwritten until there is room again is lost for want of memory.
                self.cause = LossCause::RecorderFull;
                break;
            }
            let count = (end - self.cursor).min(CHUNK as u64) as usize;
            let used = (count >= WORTH_KEEPING).then(|| empty.try_recv().ok()).flatten();
            let room = if count >= WORTH_KEEPING { CHUNK } else { count };
            let mut records = used.unwrap_or_else(|| Vec::with_capacity(room));
            let batch = slots.read(&mut self.cursor, count, &mut records);
            self.lost = self.lost.saturating_add(batch.lost);
            if records.is_empty() {
                continue;
            }
            memory.take(size_of_val(&records[..]));
            let (first, lost) = (self.cursor - batch.read as u64, std::mem::take(&mut self.lost));
            let cause = std::mem::replace(&mut self.cause, LossCause::Overwritten);
            if out.send(Chunk { first, lost, cause, records }).is_err() {
                // Nobody reads any more.
                self.out = None;
                break;
            }
        }
        waiting as f64 / capacity as f64
    }
}

/// Copies what is in the rings of a stream, in passes over all of them.
#[derive(Debug)]
pub struct StreamDrawer {
    rings: Vec<RingDrawer>,
    control: Arc<Mapping>,
    control_bytes: Range<u64>,
    bit: Bit,
    memory: DrawingMemory,
}

impl StreamDrawer {
    /// For the consumer with this bit in these control pages. The readers are given what is copied from where they are.
    pub(crate) fn new(
        readers: Vec<RingReader>,
        (control, control_bytes): (&Arc<Mapping>, &Range<u64>),
        bit: Bit,
        memory: &DrawingMemory,
    ) -> (Self, Vec<RingReader>) {
        let mut rings: Vec<RingDrawer> = readers.iter().map(RingReader::drawer).collect();
        let fed = |(reader, ring): (RingReader, &mut RingDrawer)| reader.fed(ring.connect(memory));
        let readers = readers.into_iter().zip(&mut rings).map(fed).collect();
        let (control, control_bytes) = (Arc::clone(control), control_bytes.clone());
        (StreamDrawer { rings, control, control_bytes, bit, memory: memory.clone() }, readers)
    }

    /// Copies all that is in the rings, as far as there is memory, and returns how full the fullest was, 1 being full. Does not wait, and
    /// does not allocate once there are enough buffers.
    pub fn pass(&mut self) -> f64 {
        let control = Control::new(self.control.part(self.control_bytes.clone()));
        let pass = control.begin_pass(self.bit);
        let fullest = self.rings.iter_mut().map(|ring| ring.draw(&self.memory)).fold(0.0, f64::max);
        if self.memory.has_room() {
            control.finish_pass(self.bit, pass);
        }
        fullest
    }
}
