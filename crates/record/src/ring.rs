//! Rings in a shared file: the trace of a running process, readable while it runs and after it died.
//!
//! Each thread that traces owns one ring of a [`RingFile`] through its [`RingWriter`]: writing a record
//! is five stores and a counter, without waiting, allocation or system call; the oldest record is
//! overwritten. A [`RingReader`] follows one ring with its own cursor, from the same process or from
//! another one through [`crate::TraceFile`]; the number of readers costs the writer nothing. Records
//! that were overwritten before a reader came are delivered as one [`Event::LOST`](crate::Event::LOST) record in their
//! place. Since the file is a shared mapping, what was written survives the process, also after SIGKILL.
//!
//! From the data offset of the file on (see `layout`), each ring has
//! ```text
//! byte
//!    0  state: 0 not yet written to, 1 writer at work, 2 writer closed it, 3 being taken over
//!    8  length of the writer's name, 16 the name, up to 128 bytes of UTF-8
//!  144  the writer's thread: its number and 32 bits further its process (0: not told), 152 its node, 32 bits further its
//!       lane and 48 bits further its role, as in a THREAD record
//!  256  head: records ever written, alone in its pair of cache lines
//! 4096  slots of 40 bytes, then zeros to the next page
//! ```
//! The protocol between writer and readers is in [`talea_ring::slots`].
//!
//! **Where to put the file.** On tmpfs (`/dev/shm`) the stores are plain memory accesses after
//! [`RingFile::prefault`]. On a disk file system the kernel writes pages back now and then and the next
//! store to such a page takes a fault, which can take long; the log of a collector belongs there, the
//! rings of real-time threads do not.
//!
//! **Spare rings.** Rings that are not promised to a writer by name are claimed by threads while the process runs, and
//! given back when the thread ends; the next thread continues behind what the last one wrote, as soon as consumers that read by passes
//! (see [`talea_ring::control`]) have read that. While there is no such ring, threads take *later* rings: small ones behind the others,
//! holes in the file until then. A reader never misses a ring: all of them have their places from the beginning.

mod drawn;
mod reader;
mod writer;

pub use drawn::{DrawingMemory, StreamDrawer};
pub(crate) use reader::Later;
pub use reader::RingReader;
pub use talea_ring::header::RingState;
pub use writer::{Definer, RingWriter};

use crate::layout::{Body, Clock, Header, LATER_MOST, PAGE_BYTES, encode_metadata, ring_stride};
use crate::live::LiveFile;
use crate::live::process::Owner;
use crate::live::registry::{self, RegisterError};
use crate::mapping::Mapping;
use crate::{Metadata, Record};
use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_text::links::LinkError;
use talea_time::Instant;
use thiserror::Error;

const _: () = assert!(Record::WORDS == talea_ring::slots::WORDS, "rings have room for records");

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
    /// The families of this process cannot be entered.
    #[error("cannot create {path}: {source}")]
    Families {
        /// The file.
        path: PathBuf,
        /// Why.
        source: RegisterError,
    },
    /// What is there is a device or a pipe, which is not replaced, and cannot be written to at several places.
    #[error("{path} is a device or a pipe, and this is written to at several places; it needs a file")]
    NoFile {
        /// The device or pipe.
        path: PathBuf,
    },
    /// What is there is a link that leads where nothing should be written.
    #[error("{source}; {}", .source.remedy())]
    Link {
        /// The link.
        #[from]
        source: LinkError,
    },
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
    live: Arc<LiveFile>,
    /// Whether the writer of each ring that was asked for by name has been handed out.
    taken: Vec<bool>,
}

/// The rings that a file is to have.
#[derive(Clone, Copy, Debug)]
pub struct RingShape<'a> {
    /// One ring for each of these names (cut at 128 bytes).
    pub writers: &'a [String],
    /// Further rings, for threads that come later.
    pub spare: usize,
    /// Records that each ring holds at least; rounded up to a power of two.
    pub capacity: usize,
    /// Small rings beyond these, which take memory only when threads come while all spare ones are taken or not yet read.
    pub later: usize,
}

impl RingFile {
    /// Who enters definitions into the file while it is written.
    pub fn definer(&self) -> Definer {
        Definer::of(&self.live)
    }

    /// Creates the file with one ring for each of `writers` (their names, cut at 128 bytes), each of at
    /// least `capacity` records, rounded up to a power of two. A file that is already there is
    /// replaced, not overwritten, so that a process still reading it is not disturbed. Only the user may open it.
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
        Self::create_shaped(path, metadata, RingShape { writers, spare: 0, capacity, later: 0 })
    }

    /// As [`Self::create`], with spare rings.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_shaped(
        path: &Path,
        metadata: &Metadata,
        shape: RingShape<'_>,
    ) -> Result<Self, CreateError> {
        Self::create_announcing(path, metadata, shape, 0)
    }

    /// As [`Self::create_shaped`], of a process that waits for the recorder `announced`, if that is not 0.
    pub(crate) fn create_announcing(
        path: &Path,
        metadata: &Metadata,
        shape: RingShape<'_>,
        announced: u64,
    ) -> Result<Self, CreateError> {
        let RingShape { writers, spare, capacity, later } = shape;
        let rings = writers.len().saturating_add(spare);
        let later = later.min(LATER_MOST as usize);
        if rings == 0 || rings + later >= usize::from(u16::MAX) - 1 {
            return Err(CreateError::Writers(rings));
        }
        let too_large = || CreateError::Capacity(capacity as u64);
        let capacity = (capacity.max(2) as u64).checked_next_power_of_two().ok_or_else(too_large)?;
        let json = encode_metadata(metadata);
        let body = Body::Rings { count: rings as u32, capacity };
        ring_stride(capacity).ok_or_else(too_large)?;
        let mut header = Header::new(body, Clock::of(metadata.origin), json.len() as u64);
        header.later = later as u32;
        let bytes = header.file_bytes().filter(|bytes| *bytes <= i64::MAX as u64).ok_or_else(too_large)?;

        let file = replace(path)?;
        let live = fill(file, &header, &json, bytes, (writers, announced)).map_err(|failure| {
            // The half-made file is of no use; that it cannot be removed changes nothing in the report.
            let _ = std::fs::remove_file(path);
            match failure {
                Failure::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
                    CreateError::NoSpace { path: path.into(), bytes }
                }
                Failure::Io(source) => CreateError::Io { path: path.into(), source },
                Failure::Families(source) => CreateError::Families { path: path.into(), source },
            }
        })?;
        Ok(RingFile { live, taken: vec![false; writers.len()] })
    }

    /// Tells from which instant arrivals of the run count, as soon as that is known; metadata that are read from the
    /// file from then on have it.
    pub fn set_run_start(&self, start: Instant) {
        self.live.control().set_run_start(start.as_nanos());
    }

    /// The writer of ring `index`.
    ///
    /// # Panics
    /// If there is no such ring, or its writer was handed out before: a ring has one writer.
    pub fn writer(&mut self, index: usize) -> RingWriter {
        assert!(!std::mem::replace(&mut self.taken[index], true), "ring {index} has its writer already");
        RingWriter::open(&self.live, index)
    }

    /// The writer of a spare ring, which goes by `name` from now on; `None` if all are taken.
    pub fn claim(&self, name: &str) -> Option<RingWriter> {
        RingWriter::claim(&self.live, name)
    }

    /// Readers of all rings from their beginning, for a collector in the same process.
    pub fn readers(&self) -> Vec<RingReader> {
        live_readers(&self.live)
    }

    /// Touches every page, so that writing causes no page fault later (on tmpfs; see the module).
    pub fn prefault(&self) {
        let regions = self.live.regions();
        let bytes = 8 * self.live.mapping.words().len() as u64;
        self.live.mapping.prefault(0..regions.control.end);
        self.live.mapping.prefault(regions.passive.end..bytes);
    }

    pub(crate) fn live(&self) -> &Arc<LiveFile> {
        &self.live
    }
}

/// Creates an empty file at `path` in place of a file that is there, or of a link, but of nothing else.
pub(crate) fn replace(path: &Path) -> Result<File, CreateError> {
    let error = |source| CreateError::Io { path: path.into(), source };
    let is_ours = |kind: FileType| kind.is_file() || kind.is_symlink() || kind.is_dir();
    if std::fs::symlink_metadata(path).is_ok_and(|there| !is_ours(there.file_type())) {
        return Err(CreateError::NoFile { path: path.into() });
    }
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
        _ => {}
    }
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path).map_err(error)
}

enum Failure {
    Io(io::Error),
    Families(RegisterError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Io(error)
    }
}

/// Gives the new file its length and content; the magic comes last.
fn fill(
    file: File,
    header: &Header,
    json: &[u8],
    bytes: u64,
    (writers, announced): (&[String], u64),
) -> Result<Arc<LiveFile>, Failure> {
    file.set_len(header.all_bytes().expect("not longer than the rings themselves can be"))?;
    // With the first page of the directory, which everybody reads: also to read a hole takes memory, of a file on tmpfs.
    allocate(&file, 0..header.regions.directory.start + PAGE_BYTES)?;
    allocate(&file, header.data_offset..bytes)?;
    let head = header.encode();
    file.write_all_at(&head[8..], 8)?;
    file.write_all_at(json, head.len() as u64)?;
    let mapping = Mapping::writable(&file, bytes)?;
    // In a process that locks its memory, mapping the file has filled the holes.
    empty(&file, header.regions.directory.start + PAGE_BYTES..header.regions.passive.end)?;
    let places = header.places();
    for (place, name) in places.iter().zip(writers) {
        place.header_in(&mapping).set_name(name);
    }
    let live = Arc::new(LiveFile::new(mapping, file, header, places, writers.len())?);
    live.control().initialise(Owner::current().word());
    live.control().announce(announced);
    registry::join(&live).map_err(Failure::Families)?;
    let magic = u64::from_le_bytes(*head.first_chunk().expect("the head starts with the magic"));
    live.mapping.words()[0].store(magic, Ordering::Release);
    Ok(live)
}

/// Makes a hole of this part of the file, where its file system can.
fn empty(file: &File, bytes: Range<u64>) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match fallocate(file, flags, bytes.start, bytes.end - bytes.start) {
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Reserves all blocks of this part of the file, with zeros.
fn allocate(file: &File, bytes: Range<u64>) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    match fallocate(file, FallocateFlags::empty(), bytes.start, bytes.end - bytes.start) {
        Ok(()) => return Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(errno.into()),
    }
    let zeros = vec![0; 1 << 16];
    let mut at = bytes.start;
    while at < bytes.end {
        let length = (bytes.end - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..length as usize], at)?;
        at += length;
    }
    Ok(())
}

/// Readers of all rings of an opened file with this validated head, which is mapped as a whole.
pub(crate) fn open_readers(mapping: &Arc<Mapping>, header: &Header) -> Vec<RingReader> {
    let mut places = header.places();
    let first_later = places.len();
    places.extend((0..header.later as usize).map(|number| header.later_place(number)));
    let control = header.regions.control.start;
    let reader = |(index, place): (usize, &talea_ring::header::Place)| {
        let later = index.checked_sub(first_later).map(|number| Later { control, number });
        RingReader::new(mapping, place, index, later)
    };
    places.iter().enumerate().map(reader).collect()
}

/// Readers of all rings of a file that this process writes.
pub(crate) fn live_readers(live: &LiveFile) -> Vec<RingReader> {
    let (mapping, header) = live.whole();
    open_readers(&mapping, &header)
}
