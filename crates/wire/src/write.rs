//! Writing, or counting what would be written.

use thiserror::Error;

/// The memory that was given is too small for the event. What it holds now is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the event has {needed} bytes, and there is room for {room}")]
pub struct NoRoom {
    /// Bytes that the event has.
    pub needed: usize,
    /// Bytes that there is room for.
    pub room: usize,
}

/// Takes bytes as far as there is room, and counts all of them.
pub(crate) struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut [u8]) -> Self {
        Writer { out, len: 0 }
    }

    /// How many bytes `write` writes.
    pub fn count(write: impl FnOnce(&mut Writer<'_>)) -> usize {
        let mut writer = Writer::new(&mut []);
        write(&mut writer);
        writer.len
    }

    pub fn finish(self) -> Result<usize, NoRoom> {
        let (needed, room) = (self.len, self.out.len());
        if needed <= room { Ok(needed) } else { Err(NoRoom { needed, room }) }
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(place) = self.out.get_mut(self.len..end) {
            place.copy_from_slice(bytes);
        }
        self.len = end;
    }

    pub fn byte(&mut self, byte: u8) {
        self.bytes(&[byte]);
    }

    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    pub fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)) as u64);
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub fn optional(&mut self, text: Option<&str>) {
        match text {
            None => self.number(0),
            Some(text) => {
                self.number(text.len() as u64 + 1);
                self.bytes(text.as_bytes());
            }
        }
    }
}
