//! The head of a trace file, shared by ring files and logs.
//!
//! ```text
//! byte
//!    0  magic "TALEATRC"        written last: a file without it is not finished being created
//!    8  format version (u32; 5, and 3 and 4 are read), kind (u32: 1 rings, 2 log)
//!   16  bytes per record (u32), number of rings (u32; 0 in a log)
//!   24  records per ring, a power of two (0 in a log)
//!   32  offset of the metadata, 40 length of the metadata
//!   48  offset of the first ring or record, 56 bytes from one ring to the next (0 in a log)
//!   64  name of the clock, 16 bytes padded with zeros: "CLOCK_MONOTONIC" or "virtual"
//!   80  offset of the control pages, 88 their bytes (0 in a log)
//!   96  offset of the directory, 104 its bytes
//!  112  offset of the passive area, 120 its bytes (0 in a log)
//!  128  metadata: JSON
//!       log: the directory and then records and seals of 40 bytes each from the data offset (both at multiples of 8) to the
//!            end of the file
//!       rings: control pages, directory, passive area and from the data offset the rings, each at a multiple of 4096
//! ```
//!
//! Behind the rings that the head counts, up to the end of the file, there may be later ones of 1024 records each: holes, until a
//! thread needs one. How many have been used is in the control pages.
//!
//! What the control pages hold is in [`talea_ring::control`], the directory in [`crate::directory`], the
//! rings in [`crate::ring`]. Directory and passive area are holes in the file until something stands there.
//!
//! All numbers are little-endian, on disk and in the mapping; Talea builds for little-endian machines only.

use crate::directory::DirectoryError;
use crate::metadata::MetadataError;
use crate::passive::{PASSIVE_WORDS, ReadingError};
use crate::record::Record;
use crate::{Metadata, Origin};
use std::io;
use std::ops::Range;
use talea_ring::control::CONTROL_WORDS;
use talea_ring::header::Place;
use thiserror::Error;

#[cfg(target_endian = "big")]
compile_error!("trace files are mapped as little-endian words");

pub(crate) const MAGIC: [u8; 8] = *b"TALEATRC";
/// The version of logs and of rings that is written. What is read besides has the same form with less in it: version 4 has no events with long fields
/// (`crate::parts`), whose declarations who reads no later one does not understand; version 3 does not define threads and publications either, so that who
/// reads no later one would break off where it comes upon these.
const VERSION: u32 = 5;
/// The oldest version that is read. Logs of version 2 had no seals. In rings of version 2 who registered a family switched it on for those who want
/// everything; since version 3 they have done so themselves, beforehand. Neither would hear of the families of the other.
const OLDEST_VERSION: u32 = 3;
/// Bytes of the fixed part.
pub(crate) const HEADER_BYTES: usize = 128;
/// Rings start on pages, so that prefaulting one touches no other.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// State, name and head of a ring: one page before its slots.
pub(crate) const RING_HEADER_BYTES: u64 = PAGE_BYTES;
/// Records of each ring that a file has beyond those that its head counts: for threads that come when all others are taken.
pub(crate) const LATER_CAPACITY: u64 = 1024;
/// As many later rings as a file can have, so that all rings can be numbered.
pub(crate) const LATER_MOST: u32 = 4096;
/// Bytes of the control pages of a ring file.
const CONTROL_BYTES: u64 = CONTROL_WORDS as u64 * 8;
/// Bytes of the directory: room for some hundred families.
const DIRECTORY_BYTES: u64 = 256 << 10;
/// Bytes of the passive area of a ring file.
pub(crate) const PASSIVE_BYTES: u64 = 8 * PASSIVE_WORDS as u64;
const KIND_RINGS: u32 = 1;
const KIND_LOG: u32 = 2;

/// Why a file could not be read as a trace.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// What is named is no file.
    #[error("{0}")]
    NoFile(talea_text::ReadError),
    /// The file has no content.
    #[error("the file is empty; was the run that should have written it killed before it began?")]
    Empty,
    /// The file does not begin as a trace does.
    #[error("this is not a Talea trace")]
    NotATrace,
    /// The file's writer has not finished creating it, or died on the way.
    #[error("the trace is not complete from its creation; if the run has only just begun, try again")]
    Unfinished,
    /// Another version of the format.
    #[error(
        "the trace has format version {found}, but this Talea reads versions {OLDEST_VERSION} to {VERSION}"
    )]
    OtherVersion {
        /// The file's version.
        found: u32,
    },
    /// The time stamps are from a clock this version does not know.
    #[error("the trace uses an unknown clock \"{0}\"")]
    UnknownClock(String),
    /// A part of the head contradicts the others or the format.
    #[error("the head of the trace is damaged: {0}")]
    CorruptHeader(&'static str),
    /// The file is shorter than its head says.
    #[error("the trace is cut off: it has {has} bytes of at least {needs}")]
    Truncated {
        /// Bytes the head asks for.
        needs: u64,
        /// Bytes the file has.
        has: u64,
    },
    /// Somebody made the file of a stream shorter while it was read.
    #[error("the file was made shorter while it was read, by another program; what was in it is lost")]
    Shortened,
    /// The metadata are not what they should be.
    #[error("the metadata of the trace are damaged: {0}")]
    UnreadableMetadata(#[from] serde_json::Error),
    /// The metadata contradict themselves.
    #[error("the metadata of the trace are damaged: {0}")]
    InconsistentMetadata(#[from] MetadataError),
    /// Metadata or families of a log are not what its writer wrote.
    #[error(
        "the metadata or the directory of the trace are damaged: they have another checksum than when written"
    )]
    AlteredTables,
    /// The families are not what they should be.
    #[error("the directory of the trace is damaged: {0}")]
    Directory(#[from] DirectoryError),
    /// What was to be read is not there.
    #[error(transparent)]
    Reading(#[from] ReadingError),
}

/// The most bytes of metadata that are read: those of a million operations.
const METADATA_LIMIT: u64 = 256 << 20;

/// The fixed part of a file's head, validated against the file's length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub body: Body,
    pub clock: Clock,
    pub metadata_bytes: u64,
    pub regions: Regions,
    pub data_offset: u64,
    /// Rings of [`LATER_CAPACITY`] records behind the others; the length of the file tells.
    pub later: u32,
}

/// Where the regions between metadata and data stand, in bytes; empty ones begin at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Regions {
    /// Consumers and switches.
    pub control: Range<u64>,
    /// Families.
    pub directory: Range<u64>,
    /// Counters, histograms and objects.
    pub passive: Range<u64>,
}

impl Regions {
    fn of(body: Body, metadata_end: u64) -> Self {
        match body {
            Body::Rings { .. } => {
                let control = metadata_end.next_multiple_of(PAGE_BYTES);
                let directory = control + CONTROL_BYTES;
                let passive = directory + DIRECTORY_BYTES;
                Regions {
                    control: control..directory,
                    directory: directory..passive,
                    passive: passive..passive + PASSIVE_BYTES,
                }
            }
            Body::Log => {
                let directory = metadata_end.next_multiple_of(8);
                Regions { control: 0..0, directory: directory..directory + DIRECTORY_BYTES, passive: 0..0 }
            }
        }
    }

    fn end(&self) -> u64 {
        self.directory.end.max(self.passive.end)
    }

    fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        [&self.control, &self.directory, &self.passive].into_iter()
    }
}

/// What follows the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Rings { count: u32, capacity: u64 },
    Log,
}

/// The clock of the time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Monotonic,
    Virtual,
}

impl Clock {
    pub fn of(origin: Origin) -> Self {
        match origin {
            Origin::Simulation { .. } => Clock::Virtual,
            Origin::Threads { .. } => Clock::Monotonic,
        }
    }

    fn name(self) -> &'static [u8] {
        match self {
            Clock::Monotonic => b"CLOCK_MONOTONIC",
            Clock::Virtual => b"virtual",
        }
    }

    fn from_name(padded: &[u8]) -> Result<Self, TraceError> {
        let end = padded.iter().position(|byte| *byte == 0).unwrap_or(padded.len());
        [Clock::Monotonic, Clock::Virtual]
            .into_iter()
            .find(|clock| clock.name() == &padded[..end])
            .ok_or_else(|| TraceError::UnknownClock(String::from_utf8_lossy(&padded[..end]).into_owned()))
    }
}

/// Bytes from one ring of `capacity` records to the next; `None` beyond 64 bits.
pub(crate) fn ring_stride(capacity: u64) -> Option<u64> {
    capacity
        .checked_mul(Record::BYTES as u64)?
        .checked_next_multiple_of(PAGE_BYTES)?
        .checked_add(RING_HEADER_BYTES)
}

/// The place of a ring of `capacity` records from byte `start` on.
pub(crate) fn place_at(start: u64, capacity: u64) -> Place {
    const WORD: u64 = size_of::<u64>() as u64;
    let slots = ((start + RING_HEADER_BYTES) / WORD) as usize;
    Place { header: (start / WORD) as usize, slots: slots..slots + capacity as usize * Record::WORDS }
}

impl Header {
    /// The head of a file with `metadata_bytes` bytes of metadata.
    pub fn new(body: Body, clock: Clock, metadata_bytes: u64) -> Self {
        let regions = Regions::of(body, HEADER_BYTES as u64 + metadata_bytes);
        let data_offset = regions.end();
        Header { body, clock, metadata_bytes, regions, data_offset, later: 0 }
    }

    /// Length of a ring file; the length of a log before its first record. `None` beyond 64 bits.
    pub fn file_bytes(&self) -> Option<u64> {
        match self.body {
            Body::Rings { count, capacity } => {
                ring_stride(capacity)?.checked_mul(u64::from(count))?.checked_add(self.data_offset)
            }
            Body::Log => Some(self.data_offset),
        }
    }

    /// Length of a ring file with its later rings, which begin at [`Self::file_bytes`].
    pub fn all_bytes(&self) -> Option<u64> {
        ring_stride(LATER_CAPACITY)?.checked_mul(u64::from(self.later))?.checked_add(self.file_bytes()?)
    }

    /// The rings that the head counts; none of a log.
    pub fn places(&self) -> Vec<Place> {
        let Body::Rings { count, capacity } = self.body else { return Vec::new() };
        let stride = ring_stride(capacity).expect("checked with the head");
        debug_assert!(self.data_offset.is_multiple_of(PAGE_BYTES));
        (0..u64::from(count)).map(|ring| place_at(self.data_offset + ring * stride, capacity)).collect()
    }

    /// The bytes of later ring `number`, which begin at a page.
    pub fn later_bytes(&self, number: usize) -> Range<u64> {
        let stride = ring_stride(LATER_CAPACITY).expect("a small number");
        let start = self.file_bytes().expect("checked with the head") + number as u64 * stride;
        start..start + stride
    }

    /// The place of later ring `number` in the whole file.
    pub fn later_place(&self, number: usize) -> Place {
        place_at(self.later_bytes(number).start, LATER_CAPACITY)
    }

    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let (kind, rings, capacity) = match self.body {
            Body::Rings { count, capacity } => (KIND_RINGS, count, capacity),
            Body::Log => (KIND_LOG, 0, 0),
        };
        let stride = if capacity == 0 { 0 } else { ring_stride(capacity).expect("validated before") };
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        for (at, value) in [(8, VERSION), (12, kind), (16, Record::BYTES as u32), (20, rings)] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let longs = [
            (24, capacity),
            (32, HEADER_BYTES as u64),
            (40, self.metadata_bytes),
            (48, self.data_offset),
            (56, stride),
        ];
        for (at, value) in longs {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes[64..64 + self.clock.name().len()].copy_from_slice(self.clock.name());
        for (at, region) in (80..).step_by(16).zip(self.regions.iter()) {
            bytes[at..at + 8].copy_from_slice(&region.start.to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&(region.end - region.start).to_le_bytes());
        }
        bytes
    }

    /// Reads the head of a file of `file_bytes` bytes from its first bytes, fewer than 128 if the file
    /// is shorter.
    pub fn decode(bytes: &[u8], file_bytes: u64) -> Result<Self, TraceError> {
        if file_bytes == 0 {
            return Err(TraceError::Empty);
        }
        if bytes.get(..8) == Some(&[0; 8]) {
            return Err(TraceError::Unfinished);
        }
        if !bytes.starts_with(&MAGIC) {
            return Err(TraceError::NotATrace);
        }
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(TraceError::Truncated { needs: HEADER_BYTES as u64, has: file_bytes });
        };
        let short = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("inside the head"));
        let long = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("inside the head"));
        if !(OLDEST_VERSION..=VERSION).contains(&short(8)) {
            return Err(TraceError::OtherVersion { found: short(8) });
        }
        let body = match (short(12), short(20), long(24)) {
            (KIND_RINGS, count @ 1.., capacity @ 2..) if capacity.is_power_of_two() => {
                Body::Rings { count, capacity }
            }
            (KIND_LOG, 0, 0) => Body::Log,
            (KIND_RINGS | KIND_LOG, _, _) => {
                return Err(TraceError::CorruptHeader("number or capacity of rings"));
            }
            _ => return Err(TraceError::CorruptHeader("kind")),
        };
        if short(16) != Record::BYTES as u32 {
            return Err(TraceError::CorruptHeader("record size"));
        }
        if long(32) != HEADER_BYTES as u64 {
            return Err(TraceError::CorruptHeader("metadata offset"));
        }
        let metadata_bytes = long(40);
        if metadata_bytes > METADATA_LIMIT {
            // A file may claim any length, also by a hole.
            return Err(TraceError::CorruptHeader(
                "length of the metadata, of which at most 256 MiB are read",
            ));
        }
        let metadata_end = metadata_bytes.saturating_add(HEADER_BYTES as u64);
        if metadata_end > file_bytes {
            return Err(TraceError::Truncated { needs: metadata_end, has: file_bytes });
        }
        let mut header = Header::new(body, Clock::from_name(&bytes[64..80])?, metadata_bytes);
        if header.data_offset != long(48) {
            return Err(TraceError::CorruptHeader("data offset"));
        }
        let places = (80..).step_by(16).map(|at| (long(at), long(at + 8)));
        if !header.regions.iter().map(|region| (region.start, region.end - region.start)).eq(places.take(3)) {
            return Err(TraceError::CorruptHeader("place of the control pages, directory or passive area"));
        }
        let needs = header.file_bytes().ok_or(TraceError::CorruptHeader("capacity of rings"))?;
        if needs > file_bytes {
            return Err(TraceError::Truncated { needs, has: file_bytes });
        }
        let mut in_this_version = *bytes;
        in_this_version[8..12].copy_from_slice(&VERSION.to_le_bytes());
        if header.encode() != in_this_version {
            return Err(TraceError::CorruptHeader("ring stride or padding"));
        }
        if let Body::Rings { .. } = body {
            let stride = ring_stride(LATER_CAPACITY).expect("a small number");
            header.later = u32::try_from((file_bytes - needs) / stride).unwrap_or(0).min(LATER_MOST);
        }
        Ok(header)
    }
}

/// The metadata as it stands in a file.
pub(crate) fn encode_metadata(metadata: &Metadata) -> Vec<u8> {
    serde_json::to_vec(metadata).expect("metadata are plain numbers and texts")
}
