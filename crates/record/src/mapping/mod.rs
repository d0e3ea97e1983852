//! A file as shared 64-bit atomics, and what the way of an event into it needs beyond safe code.
//!
//! Everything above works on the slice [`Mapping::words`] with bounds-checked indices. [`counter`] reads the processor's counter,
//! [`fork`] keeps processes that are forked off out of the mapping, and [`cut`] lets the process live when a file is made shorter.

mod claims;
pub(crate) mod counter;
mod cut;
pub(crate) mod fork;
pub(crate) mod unattached;

use cut::Watch;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_ring::primitive::Memory;

impl Memory for Mapping {
    type Word = AtomicU64;

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        Mapping::words(self)
    }
}

const WORD_BYTES: u64 = size_of::<AtomicU64>() as u64;

/// A mapped file, or a part of one.
///
/// Nothing in Talea shortens a trace file. Where somebody else does, what is gone reads as zeros from then on, and the mapping
/// [says so](Self::is_cut).
#[derive(Debug)]
pub(crate) struct Mapping {
    /// Ends before the mapping does.
    watch: Watch,
    map: MmapRaw,
    access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl Mapping {
    /// Maps the first `bytes` bytes of `file`, which has at least as many, for reading and writing.
    pub fn writable(file: &File, bytes: u64) -> io::Result<Self> {
        Self::writable_part(file, 0..bytes)
    }

    /// Maps these bytes of `file`, which has them all, for reading and writing. The first is at a page.
    pub fn writable_part(file: &File, bytes: Range<u64>) -> io::Result<Self> {
        Ok(Self::of(options(bytes)?.map_raw(file)?, Access::Write))
    }

    /// Maps the first `bytes` bytes of `file`, which has at least as many, for reading only.
    pub fn readable(file: &File, bytes: u64) -> io::Result<Self> {
        Ok(Self::of(options(0..bytes)?.map_raw_read_only(file)?, Access::Read))
    }

    fn of(map: MmapRaw, access: Access) -> Self {
        Mapping { watch: Watch::over(map.as_mut_ptr(), map.len()), map, access }
    }

    /// Whether somebody has made the file shorter, and something that is gone was wanted.
    pub fn is_cut(&self) -> bool {
        self.watch.is_cut()
    }

    /// The mapped file as words. Words of a read-only mapping must not be stored to, or the process
    /// gets SIGSEGV.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        let length = self.map.len() / size_of::<AtomicU64>();
        // SAFETY: the mapping is page aligned, at least this long, and lives as long as `self`. Every
        // bit pattern is a u64. All accesses through it, in this and in other processes running
        // Talea, are atomic, so they do not race; loads from read-only mappings are relaxed (see
        // `talea_ring::slots`), which is permitted on read-only memory.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast::<AtomicU64>(), length) }
    }

    /// The words of a mapping, for whoever keeps the mapping for as long as the words are used.
    ///
    /// # Safety
    /// The caller keeps an `Arc` of the mapping until after the last use of the words, whose lifetime does not say how
    /// long that is, and does not give them away for longer.
    pub unsafe fn pinned(mapping: &Arc<Mapping>) -> &'static [AtomicU64] {
        let words = mapping.words();
        // SAFETY: the words stay where they are and mapped until the last `Arc` of the mapping is dropped, which the
        // caller promises to come after their last use.
        unsafe { std::slice::from_raw_parts(words.as_ptr(), words.len()) }
    }

    /// The words of these bytes of the mapping.
    pub fn part(&self, bytes: Range<u64>) -> &[AtomicU64] {
        &self.words()[(bytes.start / WORD_BYTES) as usize..(bytes.end / WORD_BYTES) as usize]
    }

    /// Makes the system provide the pages of these bytes now, so that later stores cause no page fault. Words
    /// keep their values, also while others write them.
    ///
    /// # Panics
    /// If the mapping is read-only.
    pub fn prefault(&self, bytes: Range<u64>) {
        assert_eq!(self.access, Access::Write, "only a writer prefaults");
        for page in self.part(bytes).chunks((crate::layout::PAGE_BYTES / WORD_BYTES) as usize) {
            page[0].fetch_or(0, Ordering::Relaxed);
        }
    }
}

fn options(bytes: Range<u64>) -> io::Result<MmapOptions> {
    let length = bytes.end - bytes.start;
    let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut options = MmapOptions::new();
    options.len(length).offset(bytes.start);
    Ok(options)
}
