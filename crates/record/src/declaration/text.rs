//! Text in a record.

use std::fmt;
use talea_text::printable;

/// Up to 16 bytes of UTF-8, padded with zeros, in both words of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Text([u64; 2]);

impl Text {
    /// Bytes that it has room for.
    pub const BYTES: usize = 16;

    /// At most [`Self::BYTES`] bytes of `text`, cut between characters.
    pub fn new(text: &str) -> Self {
        Text::from_bytes(&text.as_bytes()[..text.floor_char_boundary(Self::BYTES)])
    }

    /// The first bytes up to a zero, as a kernel has them, whether or not they are UTF-8.
    pub fn from_bytes(text: &[u8]) -> Self {
        let mut bytes = [0; Self::BYTES];
        let length = text.iter().position(|byte| *byte == 0).unwrap_or(text.len()).min(bytes.len());
        bytes[..length].copy_from_slice(&text[..length]);
        let (low, high) = bytes.split_at(8);
        Text([low, high].map(|half| u64::from_le_bytes(*half.first_chunk().expect("half of 16 bytes"))))
    }

    /// The text in both words of a record.
    #[inline]
    pub const fn from_words(words: [u64; 2]) -> Self {
        Text(words)
    }

    /// The words of a record that has it.
    #[inline]
    pub const fn words(self) -> [u64; 2] {
        self.0
    }

    /// Its bytes and the zeros behind.
    pub fn padded(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (half, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            half.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The text as it was written, whatever is in it.
    pub fn as_written(self) -> String {
        let bytes = self.padded();
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}

/// Without what is [hidden](talea_text::is_hidden): a thread may call itself anything.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&printable(&self.as_written()))
    }
}
