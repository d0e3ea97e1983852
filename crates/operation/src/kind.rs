//! What can be done with the values of an output besides handing them on.

use bytemuck::Pod;
use talea_channel::{Codec, Handling};

/// What may go through a port: made beforehand, written by one thread, read by others.
pub trait Value: Default + Send + Sync + 'static {}

impl<T: Default + Send + Sync + 'static> Value for T {}

/// What can be done with the values of an output besides handing them on.
#[derive(Debug)]
pub struct OutputKind<T>(pub(crate) Handling<T>);

impl<T> OutputKind<T> {
    /// Values of any type.
    pub fn any() -> Self {
        OutputKind(Handling::NONE)
    }

    /// They can be compared, so that tasks can be triggered when they change.
    #[must_use]
    pub fn compared(mut self) -> Self
    where
        T: PartialEq,
    {
        self.0.same = Some(T::eq);
        self
    }

    /// They are plain bytes, so that they can go to another process, and be kept.
    #[must_use]
    pub fn plain(self) -> Self
    where
        T: Pod,
    {
        let encode = |value: &T, to: &mut [u8]| {
            let bytes = bytemuck::bytes_of(value);
            to.get_mut(..bytes.len())?.copy_from_slice(bytes);
            Some(bytes.len())
        };
        let decode = |value: &mut T, from: &[u8]| {
            let bytes = bytemuck::bytes_of_mut(value);
            let fits = bytes.len() == from.len();
            if fits {
                bytes.copy_from_slice(from);
            }
            fits
        };
        self.encoded(encode, decode)
    }

    /// They become bytes by `encode`, which returns how many, or `None` if they do not fit, and values again by `decode`, which says whether
    /// they are one.
    #[must_use]
    pub fn encoded(
        mut self,
        encode: fn(&T, &mut [u8]) -> Option<usize>,
        decode: fn(&mut T, &[u8]) -> bool,
    ) -> Self {
        self.0.codec = Some(Codec { encode, decode });
        self
    }
}
