//! Reading bytes that anybody may have written.

use crate::limits::Limits;
use crate::problem::{Problem, WireError};

/// What is left of the bytes of an event.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    pub limits: Limits,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], limits: Limits) -> Self {
        Reader { bytes, at: 0, limits }
    }

    /// Where it is.
    pub fn at(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The problem is here.
    pub fn problem(&self, problem: Problem) -> WireError {
        WireError { at: self.at, problem }
    }

    pub fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        if count > self.left() {
            return Err(WireError { at: self.bytes.len(), problem: Problem::End(what) });
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    pub fn byte(&mut self, what: &'static str) -> Result<u8, WireError> {
        Ok(self.take(1, what)?[0])
    }

    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub fn number(&mut self, what: &'static str) -> Result<u64, WireError> {
        let began = self.at;
        let wrong = || WireError { at: began, problem: Problem::Number(what) };
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(wrong());
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return if byte == 0 && shift > 0 { Err(wrong()) } else { Ok(number) };
            }
        }
        Err(wrong())
    }

    /// A number of this range.
    pub fn number_in(
        &mut self,
        range: impl std::ops::RangeBounds<u64>,
        what: &'static str,
    ) -> Result<u64, WireError> {
        let began = self.at;
        let number = self.number(what)?;
        match range.contains(&number) {
            true => Ok(number),
            false => Err(WireError { at: began, problem: Problem::Range(what) }),
        }
    }

    pub fn signed(&mut self, what: &'static str) -> Result<i64, WireError> {
        let number = self.number(what)?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// How many of something there are, at most as many as limits say.
    pub fn count(&mut self, most: usize, what: &'static str) -> Result<usize, WireError> {
        let began = self.at;
        let has = usize::try_from(self.number(what)?).unwrap_or(usize::MAX);
        match has <= most {
            true => Ok(has),
            false => Err(WireError { at: began, problem: Problem::Limit { what, has, most } }),
        }
    }

    fn text_of(&mut self, bytes: usize, what: &'static str) -> Result<&'a str, WireError> {
        let began = self.at;
        let text = std::str::from_utf8(self.take(bytes, what)?);
        text.map_err(|error| WireError { at: began + error.valid_up_to(), problem: Problem::Utf8(what) })
    }

    pub fn text(&mut self, what: &'static str) -> Result<&'a str, WireError> {
        let bytes = self.count(self.limits.bytes, what)?;
        self.text_of(bytes, what)
    }

    /// A text that is a name.
    pub fn name(&mut self, what: &'static str) -> Result<&'a str, WireError> {
        let bytes = self.count(self.limits.name_bytes, what)?;
        self.text_of(bytes, what)
    }

    pub fn optional_name(&mut self, what: &'static str) -> Result<Option<&'a str>, WireError> {
        match self.count(self.limits.name_bytes.saturating_add(1), what)? {
            0 => Ok(None),
            more => self.text_of(more - 1, what).map(Some),
        }
    }
}
