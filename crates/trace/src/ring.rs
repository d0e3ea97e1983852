//! Rings in a shared file: the trace of a running process, readable while it runs and after it died.
//!
//! Each thread that traces owns one ring of a [`RingFile`] through its [`RingWriter`]: writing a record
//! is five stores and a counter, without waiting, allocation or system call; the oldest record is
//! overwritten. A [`RingReader`] follows one ring with its own cursor, from the same process or from
//! another one through [`crate::TraceFile`]; the number of readers costs the writer nothing. Records
//! that were overwritten before a reader came are delivered as one [`Event::LOST`] record in their
//! place. Since the file is a shared mapping, what was written survives the process, also after SIGKILL.
//!
//! After the head and metadata (see `layout`), from the data offset on, each ring has
//! ```text
//! byte
//!    0  state: 0 not yet written to, 1 writer at work, 2 writer closed it
//!    8  length of the writer's name, 16 the name, up to 128 bytes of UTF-8
//!  256  head: records ever written, alone in its pair of cache lines
//! 4096  slots of 40 bytes, then zeros to the next page
//! ```
//! The protocol between writer and readers is in [`protocol`].
//!
//! **Where to put the file.** On tmpfs (`/dev/shm`) the stores are plain memory accesses after
//! [`RingFile::prefault`]. On a disk file system the kernel writes pages back now and then and the next
//! store to such a page takes a fault, which can take long; the log of a collector belongs there, the
//! rings of real-time threads do not.

pub mod protocol;

use crate::layout::{Body, Clock, Header, PAGE_BYTES, RING_HEADER_BYTES, encode_metadata, ring_stride};
use crate::mapping::Mapping;
use crate::{Event, Metadata, Record, Sink};
use protocol::Slots;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

const WORD: u64 = size_of::<u64>() as u64;
const STATE_WORD: usize = 0;
const NAME_LENGTH_WORD: usize = 1;
const NAME_WORDS: Range<usize> = 2..18;
const NAME_BYTES: usize = 128;
const HEAD_WORD: usize = 32;
const STATE_OPEN: u64 = 1;
const STATE_CLOSED: u64 = 2;
/// Records a reader copies at once.
const READ_AHEAD: usize = 256;

/// Why a ring file or a log could not be created. No file is left behind.
#[derive(Debug, Error)]
pub enum CreateError {
    /// The file system has no room for the file.
    #[error("no room for the {bytes} bytes of {path}; free some space or make the rings smaller")]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// There is no writer, or more than 65535.
    #[error("a ring file has 1 to 65535 writers, not {0}")]
    Writers(usize),
    /// A capacity whose file would be longer than an address space.
    #[error("rings of {0} records are too large")]
    Capacity(u64),
    /// Another failure of the operating system.
    #[error("cannot create {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A file of rings that this process writes.
#[derive(Debug)]
pub struct RingFile {
    mapping: Arc<Mapping>,
    places: Vec<Place>,
    /// Whether each ring's writer has been handed out.
    taken: Vec<bool>,
}

/// Where a ring is in the mapping, in words.
#[derive(Clone, Debug)]
struct Place {
    header: usize,
    slots: Range<usize>,
}

impl RingFile {
    /// Creates the file with one ring for each of `writers` (their names, cut at 128 bytes), each of at
    /// least `capacity` records, rounded up to a power of two. A file that is already there is
    /// replaced, not overwritten, so that a process still reading it is not disturbed.
    ///
    /// # Errors
    /// See [`CreateError`]. All space is allocated here, so that a full disk is an error now and not
    /// a SIGBUS later.
    pub fn create(
        path: &Path,
        metadata: &Metadata,
        writers: &[String],
        capacity: usize,
    ) -> Result<Self, CreateError> {
        if writers.is_empty() || writers.len() > usize::from(u16::MAX) {
            return Err(CreateError::Writers(writers.len()));
        }
        let too_large = || CreateError::Capacity(capacity as u64);
        let capacity = (capacity.max(2) as u64).checked_next_power_of_two().ok_or_else(too_large)?;
        let json = encode_metadata(metadata);
        let body = Body::Rings { count: writers.len() as u32, capacity };
        ring_stride(capacity).ok_or_else(too_large)?;
        let header = Header::new(body, Clock::of(metadata.origin), json.len() as u64);
        let bytes = header.file_bytes().filter(|bytes| *bytes <= i64::MAX as u64).ok_or_else(too_large)?;

        let file = replace(path)?;
        let mapping = fill(&file, &header, &json, bytes, writers).map_err(|source| {
            // The half-made file is of no use; that it cannot be removed changes nothing in the report.
            let _ = std::fs::remove_file(path);
            match source.kind() {
                io::ErrorKind::StorageFull => CreateError::NoSpace { path: path.into(), bytes },
                _ => CreateError::Io { path: path.into(), source },
            }
        })?;
        let places = places(&header);
        Ok(RingFile { mapping: Arc::new(mapping), taken: vec![false; places.len()], places })
    }

    /// The writer of ring `index`.
    ///
    /// # Panics
    /// If there is no such ring, or its writer was handed out before: a ring has one writer.
    pub fn writer(&mut self, index: usize) -> RingWriter {
        assert!(!std::mem::replace(&mut self.taken[index], true), "ring {index} has its writer already");
        let place = self.places[index].clone();
        self.mapping.words()[place.header + STATE_WORD].store(STATE_OPEN, Ordering::Release);
        RingWriter { mapping: Arc::clone(&self.mapping), place, position: 0 }
    }

    /// Readers of all rings from their beginning, for a collector in the same process.
    pub fn readers(&self) -> Vec<RingReader> {
        readers(&self.mapping, &self.places)
    }

    /// Touches every page, so that writing causes no page fault later (on tmpfs; see the module).
    pub fn prefault(&self) {
        self.mapping.prefault();
    }
}

/// Creates an empty file at `path` in place of what is there.
pub(crate) fn replace(path: &Path) -> Result<File, CreateError> {
    let error = |source| CreateError::Io { path: path.into(), source };
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
        _ => {}
    }
    OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(error)
}

/// Gives the new file its length and content; the magic comes last.
fn fill(file: &File, header: &Header, json: &[u8], bytes: u64, writers: &[String]) -> io::Result<Mapping> {
    allocate(file, bytes)?;
    let head = header.encode();
    file.write_all_at(&head[8..], 8)?;
    file.write_all_at(json, head.len() as u64)?;
    let mapping = Mapping::writable(file, bytes)?;
    let words = mapping.words();
    for (place, name) in places(header).iter().zip(writers) {
        let name = &name.as_bytes()[..name.floor_char_boundary(NAME_BYTES)];
        words[place.header + NAME_LENGTH_WORD].store(name.len() as u64, Ordering::Relaxed);
        for (word, chunk) in words[place.header..][NAME_WORDS].iter().zip(name.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
    }
    let magic = u64::from_le_bytes(*head.first_chunk().expect("the head starts with the magic"));
    words[0].store(magic, Ordering::Release);
    Ok(mapping)
}

/// Reserves all blocks of the file, with zeros.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => return Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(errno.into()),
    }
    let zeros = vec![0; 1 << 16];
    let mut at = 0;
    while at < bytes {
        let length = (bytes - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..length as usize], at)?;
        at += length;
    }
    Ok(())
}

fn places(header: &Header) -> Vec<Place> {
    let Body::Rings { count, capacity } = header.body else { return Vec::new() };
    let stride = ring_stride(capacity).expect("checked with the head");
    debug_assert!(header.data_offset.is_multiple_of(PAGE_BYTES));
    (0..u64::from(count))
        .map(|ring| {
            let start = header.data_offset + ring * stride;
            let slots = ((start + RING_HEADER_BYTES) / WORD) as usize;
            Place { header: (start / WORD) as usize, slots: slots..slots + capacity as usize * Record::WORDS }
        })
        .collect()
}

/// Readers of all rings of an opened file with this validated head.
pub(crate) fn open_readers(mapping: &Arc<Mapping>, header: &Header) -> Vec<RingReader> {
    readers(mapping, &places(header))
}

fn readers(mapping: &Arc<Mapping>, places: &[Place]) -> Vec<RingReader> {
    places
        .iter()
        .enumerate()
        .map(|(index, place)| RingReader {
            mapping: Arc::clone(mapping),
            place: place.clone(),
            index: index as u16,
            cursor: 0,
            end: u64::MAX,
            lost: 0,
            latest: 0,
            raw: Vec::with_capacity(READ_AHEAD),
            ready: VecDeque::with_capacity(READ_AHEAD + 1),
        })
        .collect()
}

/// The one writer of a ring. Dropping it marks the ring closed.
#[derive(Debug)]
pub struct RingWriter {
    mapping: Arc<Mapping>,
    place: Place,
    /// Records written so far; equal to the ring's head.
    position: u64,
}

impl RingWriter {
    /// Records written so far.
    pub fn written(&self) -> u64 {
        self.position
    }
}

impl Sink for RingWriter {
    /// Writes one record: no wait, no allocation, no system call.
    #[inline]
    fn record(&mut self, record: Record) {
        let words = self.mapping.words();
        let slots = Slots::new(&words[self.place.header + HEAD_WORD], &words[self.place.slots.clone()]);
        slots.write(self.position, record.to_words());
        self.position += 1;
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        self.mapping.words()[self.place.header + STATE_WORD].store(STATE_CLOSED, Ordering::Release);
    }
}

/// What a ring's writer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingState {
    /// Nobody has taken the ring's writer yet.
    Unused,
    /// The writer is at work, or died without closing.
    Open,
    /// The writer closed the ring; nothing more will come.
    Closed,
}

/// Follows one ring with a cursor of its own.
#[derive(Debug)]
pub struct RingReader {
    mapping: Arc<Mapping>,
    place: Place,
    index: u16,
    /// The next record to copy out of the ring.
    cursor: u64,
    /// Where to stop: `u64::MAX` follows the writer.
    end: u64,
    /// Records lost and not yet reported, all of them just before the next record.
    lost: u64,
    /// The instant of the last record copied, in nanoseconds; 0 before the first.
    latest: i64,
    raw: Vec<[u64; Record::WORDS]>,
    /// Copied and not yet delivered.
    ready: VecDeque<Record>,
}

impl RingReader {
    /// The next record, without taking it; `None` if there is none at the moment. A
    /// [`Event::LOST`] record has the time of the first record after the gap, `words[0]` records are
    /// lost since the instant `words[1]`, and `source` is the number of the ring in its file.
    #[inline]
    pub fn peek(&mut self) -> Option<Record> {
        if self.ready.is_empty() {
            self.refill();
        }
        self.ready.front().copied()
    }

    /// Takes the next record, as [`Self::peek`] shows it.
    #[inline]
    pub fn take(&mut self) -> Option<Record> {
        self.peek()?;
        self.ready.pop_front()
    }

    /// Stops at what has been written by now, so that reading a ring at work comes to an end.
    pub fn up_to_now(mut self) -> Self {
        self.end = self.written();
        self
    }

    /// What the writer called itself.
    pub fn name(&self) -> String {
        let header = &self.mapping.words()[self.place.header..];
        let length = header[NAME_LENGTH_WORD].load(Ordering::Relaxed).min(NAME_BYTES as u64) as usize;
        let bytes: Vec<u8> =
            header[NAME_WORDS].iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// What the writer is doing. After [`RingState::Closed`], [`Self::take`] drains the rest.
    pub fn state(&self) -> RingState {
        let state = self.mapping.words()[self.place.header + STATE_WORD].load(Ordering::Relaxed);
        std::sync::atomic::fence(Ordering::Acquire);
        match state {
            0 => RingState::Unused,
            STATE_CLOSED => RingState::Closed,
            _ => RingState::Open,
        }
    }

    /// Records ever written to the ring.
    pub fn written(&self) -> u64 {
        self.head().load(Ordering::Relaxed)
    }

    fn head(&self) -> &AtomicU64 {
        &self.mapping.words()[self.place.header + HEAD_WORD]
    }

    /// Copies the next records out of the ring; repeats while everything it copied was overwritten.
    fn refill(&mut self) {
        while self.cursor < self.end {
            let limit = (self.end - self.cursor).min(READ_AHEAD as u64) as usize;
            let (mut cursor, mut raw) = (self.cursor, std::mem::take(&mut self.raw));
            let slots = Slots::new(self.head(), &self.mapping.words()[self.place.slots.clone()]);
            let batch = slots.read(&mut cursor, limit, &mut raw);
            self.cursor = cursor;
            self.lost = self.lost.saturating_add(batch.lost);
            let records = raw.drain(..).map(Record::from_words);
            if batch.read > 0 && self.lost > 0 {
                let mut records = records.peekable();
                let time = records.peek().expect("the batch is not empty").time;
                let words = [std::mem::take(&mut self.lost), self.latest as u64];
                let (event, source, cpu) = (Event::LOST, self.index, Record::NO_CPU);
                self.ready.push_back(Record { time, causal: 0, words, event, source, cpu, arg: 0 });
                self.ready.extend(records);
            } else {
                self.ready.extend(records);
            }
            self.raw = raw;
            self.latest = self.ready.back().map_or(self.latest, |record| record.time.as_nanos());
            if batch.read > 0 || batch.lost == 0 {
                return;
            }
        }
    }
}
