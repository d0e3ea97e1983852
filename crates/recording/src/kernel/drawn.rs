//! A processor's records, decoded by one thread and taken from memory by another.

use super::source::{Delivery, KernelSource, Rest};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use talea_record::Record;
use talea_record::merge::RecordSource;
use talea_record::ring::DrawingMemory;

/// Records decoded at once, which take less than a millisecond.
const AT_ONCE: usize = 2048;

/// Decodes what is in a processor's buffer.
#[derive(Debug)]
pub struct KernelDrawer {
    source: KernelSource,
    out: Sender<Vec<Record>>,
}

/// What was decoded, in order.
#[derive(Debug)]
pub struct KernelFeed {
    decoded: Receiver<Vec<Record>>,
    delivery: Delivery,
    memory: DrawingMemory,
    ready: VecDeque<Record>,
}

impl KernelSource {
    /// The source in two parts: one that empties the kernel's buffer and one that has what was in it.
    pub fn into_drawn(self, memory: &DrawingMemory) -> (KernelDrawer, KernelFeed) {
        let (out, decoded) = channel();
        let (delivery, memory) = (self.delivery(), memory.clone());
        let feed = KernelFeed { decoded, delivery, memory, ready: VecDeque::new() };
        (KernelDrawer { source: self, out }, feed)
    }
}

impl KernelDrawer {
    /// Decodes what is in the buffer, or so much of it that whoever else waits for the caller need not wait for long.
    pub fn draw(&mut self, memory: &DrawingMemory) -> Rest {
        let (records, rest) = self.source.draw(AT_ONCE);
        if !records.is_empty() {
            memory.take(size_of_val(&records[..]));
            // Where nobody takes them any more, nobody misses them.
            let _ = self.out.send(records);
        }
        rest
    }
}

impl RecordSource for KernelFeed {
    #[inline]
    fn peek(&mut self) -> Option<Record> {
        if self.ready.is_empty() {
            let records = self.decoded.try_recv().ok()?;
            self.memory.give_back(size_of_val(&records[..]));
            self.ready = records.into();
        }
        self.ready.front().copied()
    }

    #[inline]
    fn take(&mut self) -> Option<Record> {
        self.peek()?;
        let record = self.ready.pop_front()?;
        self.delivery.told(record)
    }
}
