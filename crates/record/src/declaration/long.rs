//! Texts and bytes of an event that are longer than its record.
//!
//! What stands in the record of such a field is its [`Extent`], in [`Part::Arg`](super::Part::Arg). The bytes stand in records of their own
//! before it: see [`crate::parts`]. So two words are left for the other fields of the event, and it has one long field.

/// The greatest bound that a declaration may give a long field, in bytes.
pub const LONGEST: usize = 256;

/// A text of at most `MOST` bytes, 1 to [`LONGEST`], as the long field of an event. What is longer is cut between characters, and shown with
/// `…` at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongText<'a, const MOST: usize>(&'a str);

/// Bytes, at most `MOST` of them, 1 to [`LONGEST`], as the long field of an event. What is longer is cut, and shown with `…` at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongBytes<'a, const MOST: usize>(&'a [u8]);

/// How many bytes of a long field there are, and whether there were more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent(u16);

impl Extent {
    const CUT: u16 = 1 << 15;

    /// Of what had `length` bytes, of which so many are kept.
    #[inline]
    const fn new(kept: usize, length: usize) -> Self {
        Extent(kept as u16 | if kept < length { Self::CUT } else { 0 })
    }

    /// As it stands in a record.
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        Extent(bits)
    }

    /// What [`Self::from_bits`] was given.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Bytes that there are.
    #[inline]
    pub const fn bytes(self) -> usize {
        (self.0 & !Self::CUT) as usize
    }

    /// Whether there were more.
    #[inline]
    pub const fn is_cut(self) -> bool {
        self.0 & Self::CUT != 0
    }
}

/// Whether a long field may have this bound.
pub const fn is_bound(most: usize) -> bool {
    1 <= most && most <= LONGEST
}

/// At most `most` bytes of a text, cut between its characters if it is UTF-8.
#[inline]
pub fn cut_text(text: &[u8], most: usize) -> (&[u8], Extent) {
    let is_inside = |at: usize| text[at] & 0xc0 == 0x80;
    let mut end = text.len().min(most);
    if end < text.len() {
        // A character has at most four bytes; what is longer is none.
        let start = (end.saturating_sub(3)..=end).rev().find(|at| !is_inside(*at));
        end = start.unwrap_or(end);
    }
    (&text[..end], Extent::new(end, text.len()))
}

/// At most `most` bytes.
#[inline]
pub fn cut_bytes(bytes: &[u8], most: usize) -> (&[u8], Extent) {
    let end = bytes.len().min(most);
    (&bytes[..end], Extent::new(end, bytes.len()))
}

impl<'a, const MOST: usize> LongText<'a, MOST> {
    /// The bound as a field has it.
    pub const BOUND: u16 = {
        assert!(is_bound(MOST), "a long text has a bound of 1 to 256 bytes");
        MOST as u16
    };

    /// At most `MOST` bytes of `text`.
    #[inline]
    pub const fn new(text: &'a str) -> Self {
        LongText(text)
    }

    /// All of the text.
    #[inline]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0.as_bytes()
    }
}

impl<'a, const MOST: usize> LongBytes<'a, MOST> {
    /// The bound as a field has it.
    pub const BOUND: u16 = {
        assert!(is_bound(MOST), "long bytes have a bound of 1 to 256");
        MOST as u16
    };

    /// At most `MOST` of these bytes.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        LongBytes(bytes)
    }

    /// All of them.
    #[inline]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

impl<'a, const MOST: usize> From<&'a str> for LongText<'a, MOST> {
    fn from(text: &'a str) -> Self {
        LongText::new(text)
    }
}

impl<'a, const MOST: usize> From<&'a [u8]> for LongBytes<'a, MOST> {
    fn from(bytes: &'a [u8]) -> Self {
        LongBytes::new(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_that_are_no_text_are_cut_at_the_bound() {
        assert_eq!(cut_text(&[0x80; 20], 16), (&[0x80; 16][..], Extent::new(16, 20)));
        assert_eq!(cut_text(b"abc", 3), (&b"abc"[..], Extent::new(3, 3)));
        assert_eq!(cut_text("aé".as_bytes(), 2), (&b"a"[..], Extent::new(1, 3)));
    }

    proptest! {
        /// As the standard library cuts; and the extent says what became of it.
        #[test]
        fn texts_are_cut_between_characters(text in "\\PC{0,80}", most in 1usize..=LONGEST) {
            let (kept, extent) = cut_text(text.as_bytes(), most);
            prop_assert_eq!(kept, &text.as_bytes()[..text.floor_char_boundary(most)]);
            prop_assert_eq!((extent.bytes(), extent.is_cut()), (kept.len(), kept.len() < text.len()));
        }
    }
}
