//! Documents that one writer appends while others read.
//!
//! ```text
//! word
//!    0  bytes used behind this word
//!       then the documents, in whole words
//! ```
//! What is appended becomes visible with one store to word 0, so a reader sees whole documents at any time, also in the file
//! of a process that was killed.

use crate::primitive::Word;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const WORD_BYTES: usize = size_of::<u64>();

/// The region in memory.
#[derive(Debug)]
pub struct Region<'a, W> {
    used: &'a W,
    words: &'a [W],
}

impl<'a, W: Word> Region<'a, W> {
    /// A region in these words, all 0 at first.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(words: &'a [W]) -> Self {
        let (used, words) = words.split_first().expect("a region has words");
        Region { used, words }
    }

    /// Bytes that are not used yet.
    pub fn room(&self) -> usize {
        (self.words.len() * WORD_BYTES).saturating_sub(self.used.load(Relaxed) as usize)
    }

    /// Where the next document will stand, in bytes from the beginning of the region.
    pub fn end(&self) -> usize {
        WORD_BYTES + self.used.load(Relaxed) as usize
    }

    /// Appends whole words of bytes and then makes them visible. Only the region's one writer may.
    ///
    /// # Panics
    /// If they are not whole words or there is no [room](Self::room) for them.
    pub fn append(&self, bytes: &[u8]) {
        assert!(bytes.len().is_multiple_of(WORD_BYTES) && bytes.len() <= self.room());
        let used = self.used.load(Relaxed);
        let words = &self.words[used as usize / WORD_BYTES..];
        for (word, chunk) in words.iter().zip(bytes.chunks_exact(WORD_BYTES)) {
            word.store(u64::from_le_bytes(chunk.try_into().expect("a word of bytes")), Relaxed);
        }
        self.used.store(used + bytes.len() as u64, Release);
    }

    /// What was appended behind the first `from` bytes; `None` if the number of bytes used cannot be true.
    pub fn read(&self, from: usize) -> Option<Vec<u8>> {
        let used = usize::try_from(self.used.load(Relaxed)).ok()?;
        // The mapping may be read-only, hence no acquire load (see `slots`).
        W::fence(Acquire);
        if used > self.words.len() * WORD_BYTES || !used.is_multiple_of(WORD_BYTES) || used < from {
            return None;
        }
        let words = &self.words[from / WORD_BYTES..used / WORD_BYTES];
        Some(words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect())
    }
}
