//! A ring file as the process sees it that writes it.

pub(crate) mod process;
pub(crate) mod registry;
#[expect(unsafe_code, reason = "words are kept beside the mapping that they are in")]
pub(crate) mod slots;

use crate::directory::Entry;
use crate::layout::{Header, PAGE_BYTES, Regions};
use crate::mapping::Mapping;
use crate::mapping::fork::Private;
use crate::passive::words_of;
use registry::RegisterError;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use talea_ring::control::Control;
use talea_ring::header::Place;
use talea_ring::region::Region;

/// A ring file that this process writes, mapped as a whole.
#[derive(Debug)]
pub(crate) struct LiveFile {
    /// Before the mapping, which it is not to outlive.
    _private: Private,
    pub mapping: Arc<Mapping>,
    file: File,
    regions: Regions,
    /// All rings: those asked for by name, then the spare ones.
    pub places: Vec<Place>,
    named: usize,
}

impl LiveFile {
    /// A file of this head and these rings, of which the first `named` are promised to writers. It is this process's alone:
    /// one that is forked off has memory of its own in its place.
    ///
    /// # Errors
    /// As [`Private::at_fork`].
    pub fn new(
        mapping: Mapping,
        file: File,
        header: &Header,
        places: Vec<Place>,
        named: usize,
    ) -> io::Result<Self> {
        let private = Private::at_fork(&mapping)?;
        let (mapping, regions) = (Arc::new(mapping), header.regions.clone());
        Ok(LiveFile { _private: private, mapping, file, regions, places, named })
    }

    /// The rings that threads can claim.
    pub fn spare(&self) -> &[Place] {
        &self.places[self.named..]
    }

    pub fn control(&self) -> Control<'_, AtomicU64> {
        Control::new(self.mapping.part(self.regions.control.clone()))
    }

    pub fn region(&self) -> Region<'_, AtomicU64> {
        Region::new(self.mapping.part(self.regions.directory.clone()))
    }

    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Provides memory for a family's document and its passive entities, without showing anything.
    pub fn make_room(&self, entry: &Entry, document: &[u8]) -> Result<(), RegisterError> {
        let name = || entry.family.name.clone().into_owned();
        let passive = entry.passive.iter().map(words_of).map(|words| {
            let place = |word: usize| self.regions.passive.start + 8 * word as u64;
            place(words.start)..place(words.end)
        });
        self.make_room_for(document).map_err(|error| error.for_family(&name()))?;
        for bytes in passive {
            self.provide(bytes).map_err(|source| RegisterError::Io { name: name(), source })?;
        }
        Ok(())
    }

    /// Provides memory for a document, without showing anything.
    pub fn make_room_for(&self, document: &[u8]) -> Result<(), NoRoom> {
        let region = self.region();
        if document.len() > region.room() {
            return Err(NoRoom::InDirectory);
        }
        let start = self.regions.directory.start + region.end() as u64;
        self.provide(start..start + document.len() as u64).map_err(NoRoom::Io)
    }

    fn provide(&self, bytes: Range<u64>) -> io::Result<()> {
        reserve(&self.file, bytes.start, bytes.end - bytes.start)?;
        let page = bytes.start / PAGE_BYTES * PAGE_BYTES;
        self.mapping.prefault(page..bytes.end);
        Ok(())
    }

    /// Enters a family for which there is room. Whoever wants everything has its switches on already.
    pub fn enter(&self, document: &[u8]) {
        self.region().append(document);
    }
}

/// Why a document cannot be entered.
#[derive(Debug, thiserror::Error)]
pub enum NoRoom {
    /// The directory is full.
    #[error("the directory of the stream has no room for more definitions")]
    InDirectory,
    /// The file system has no room.
    #[error("cannot enter a definition into the stream: {0}")]
    Io(io::Error),
}

impl NoRoom {
    fn for_family(self, name: &str) -> RegisterError {
        let name = name.to_owned();
        match self {
            NoRoom::InDirectory => RegisterError::Directory(name),
            NoRoom::Io(source) => RegisterError::Io { name, source },
        }
    }
}

/// Reserves the blocks of this part of a file, where its file system can.
fn reserve(file: &File, start: u64, length: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), start, length) {
        // There the first store to a page of a full disk fails; nothing better is to be had.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
