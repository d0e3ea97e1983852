//! Random choices, read from bytes: a shorter tape, or one of smaller bytes, gives a smaller thing, so that what fails shrinks.

/// Bytes that decide, followed by zeros without end.
#[derive(Debug)]
pub struct Tape {
    bytes: Vec<u8>,
    next: usize,
}

impl Tape {
    /// One of these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Tape { bytes, next: 0 }
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        let byte = self.bytes.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        usize::from(byte) * count / 256
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Any number of 64 bits.
    pub fn number(&mut self) -> u64 {
        let bytes = [(); 8].map(|()| self.below(256) as u8);
        u64::from_le_bytes(bytes)
    }

    /// Once in `times`; never at the end of the tape.
    pub fn is_one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// Up to `most` things.
    pub fn list<T>(&mut self, most: usize, mut each: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(most + 1);
        (0..count).map(|_| each(self)).collect()
    }
}
