//! Values as bytes.

/// How values become bytes, and bytes values.
#[derive(Debug)]
pub struct Codec<T> {
    /// Writes the value, and returns how many bytes it has; `None` if it does not fit.
    pub encode: fn(&T, &mut [u8]) -> Option<usize>,
    /// Reads the value; false if it is none, and then it may be half read.
    pub decode: fn(&mut T, &[u8]) -> bool,
}

impl<T> Clone for Codec<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Codec<T> {}
