//! Streams of packets, one file per processor.
//!
//! ```text
//! byte
//!    0  magic 0xC1FC1FC1 (u32), id of the stream class (u32)
//!    8  time of the first and of the last event (u64 each)
//!   24  bits of content, bits of the packet (u64 each; the same, nothing is padded)
//!   40  number of the packet in its stream (u64)
//!   48  records of the stream that were lost up to the packet's end (u64)
//!   56  the processor (u32), in streams of processors only
//!       events: id (u16), time (u64), members as their `Layout` has them
//! ```
//!
//! A packet is kept in memory until it is full and then appended to its file, which is opened for that only, so that
//! neither memory nor open files grow with the trace or with the number of processors.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes of content after which a packet ends.
const PACKET_BYTES: usize = 1 << 16;
/// Bytes in all unfinished packets together after which all of them end.
const PENDING_BYTES: usize = 1 << 25;
const MAGIC: u32 = 0xC1FC_1FC1;

/// The class of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StreamClass {
    /// Events of one processor.
    Processor = 0,
    /// Events that happened on no particular processor.
    Elsewhere = 1,
}

/// All streams of an export.
#[derive(Debug)]
pub(super) struct Streams {
    folder: PathBuf,
    /// By processor; `None` is the stream of what happened on none.
    streams: BTreeMap<Option<u16>, Stream>,
    /// Bytes in unfinished packets.
    pending: usize,
    /// Events whose time had to be raised.
    raised: u64,
}

#[derive(Debug)]
struct Stream {
    cpu: Option<u16>,
    packet: Vec<u8>,
    /// Times of the first and last event of the packet, the same in an empty one.
    begin: u64,
    last: u64,
    number: u64,
    discarded: u64,
}

/// Name of the stream file of a processor, or of what happened on none.
fn file_name(cpu: Option<u16>) -> String {
    cpu.map_or_else(|| "elsewhere".into(), |cpu| format!("cpu_{cpu}"))
}

/// Whether an export may have written a file of this name.
pub(super) fn is_stream_file(name: &str) -> bool {
    name == file_name(None) || name.strip_prefix("cpu_").is_some_and(|number| number.parse::<u16>().is_ok())
}

impl Streams {
    /// Streams in `folder`, which has none of their files yet.
    pub fn new(folder: &Path) -> Self {
        Streams { folder: folder.into(), streams: BTreeMap::new(), pending: 0, raised: 0 }
    }

    /// Appends an event to its processor's stream; `members` appends its members to what it is given.
    ///
    /// Times within a stream may not fall: an event that is earlier than the one before gets that one's time and is
    /// counted in [`Self::raised`].
    pub fn event(
        &mut self,
        cpu: Option<u16>,
        id: u16,
        time: i64,
        members: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let stream = self.streams.entry(cpu).or_insert_with(|| Stream::new(cpu));
        let time_now = u64::try_from(time).unwrap_or(0).max(stream.last);
        self.raised += u64::from(i64::try_from(time_now) != Ok(time));
        let before = stream.packet.len();
        if before == 0 {
            stream.begin_packet(time_now);
        }
        stream.last = time_now;
        stream.packet.extend_from_slice(&id.to_le_bytes());
        stream.packet.extend_from_slice(&time_now.to_le_bytes());
        members(&mut stream.packet);
        self.pending += stream.packet.len() - before;
        if stream.packet.len() >= PACKET_BYTES {
            self.pending -= stream.packet.len();
            stream.end_packet(&self.folder)?;
        } else if self.pending >= PENDING_BYTES {
            return self.end_packets();
        }
        Ok(())
    }

    /// Counts `records` as lost from the processor's stream just before the event that comes next there, at `time`.
    /// The packet under way ends, so that the loss lies between two packets.
    pub fn lost(&mut self, cpu: Option<u16>, time: i64, records: u64) -> io::Result<()> {
        let stream = self.streams.entry(cpu).or_insert_with(|| Stream::new(cpu));
        if stream.packet.is_empty() && stream.number == 0 {
            stream.begin_packet(u64::try_from(time).unwrap_or(0));
            self.pending += stream.packet.len();
        }
        if !stream.packet.is_empty() {
            self.pending -= stream.packet.len();
            stream.end_packet(&self.folder)?;
        }
        stream.discarded = stream.discarded.saturating_add(records);
        Ok(())
    }

    /// Writes all unfinished packets.
    pub fn end_packets(&mut self) -> io::Result<()> {
        self.pending = 0;
        for stream in self.streams.values_mut().filter(|stream| !stream.packet.is_empty()) {
            stream.end_packet(&self.folder)?;
            // Many processors share the memory for unfinished packets.
            stream.packet = Vec::new();
        }
        Ok(())
    }

    /// The classes that there are streams of.
    pub fn classes(&self) -> Vec<StreamClass> {
        let mut classes: Vec<_> = self.streams.keys().map(|cpu| class(*cpu)).collect();
        classes.sort();
        classes.dedup();
        classes
    }

    /// Events whose time was before that of an event already in their stream, or before 0.
    pub fn raised(&self) -> u64 {
        self.raised
    }
}

fn class(cpu: Option<u16>) -> StreamClass {
    if cpu.is_some() { StreamClass::Processor } else { StreamClass::Elsewhere }
}

impl Stream {
    fn new(cpu: Option<u16>) -> Self {
        Stream { cpu, packet: Vec::new(), begin: 0, last: 0, number: 0, discarded: 0 }
    }

    /// Leaves room for what is known at the end.
    fn begin_packet(&mut self, time: u64) {
        self.begin = time;
        self.last = time;
        let head = self.head(0);
        self.packet.extend_from_slice(&head);
    }

    fn end_packet(&mut self, folder: &Path) -> io::Result<()> {
        let head = self.head(self.packet.len() as u64 * 8);
        self.packet[..head.len()].copy_from_slice(&head);
        let path = folder.join(file_name(self.cpu));
        let mut file = match self.number {
            0 => File::create_new(path)?,
            _ => OpenOptions::new().append(true).open(path)?,
        };
        file.write_all(&self.packet)?;
        self.packet.clear();
        self.number += 1;
        Ok(())
    }

    fn head(&self, bits: u64) -> Vec<u8> {
        let mut head = Vec::with_capacity(60);
        head.extend_from_slice(&MAGIC.to_le_bytes());
        head.extend_from_slice(&(class(self.cpu) as u32).to_le_bytes());
        for long in [self.begin, self.last, bits, bits, self.number, self.discarded] {
            head.extend_from_slice(&long.to_le_bytes());
        }
        if let Some(cpu) = self.cpu {
            head.extend_from_slice(&u32::from(cpu).to_le_bytes());
        }
        head
    }
}
