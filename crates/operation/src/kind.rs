//! What can be done with the values of an output besides handing them on.

use bytemuck::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;
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

    /// How they become bytes, if they do.
    pub fn codec(&self) -> Option<Codec<T>> {
        self.0.codec
    }

    /// Whether they can be compared.
    pub fn compares(&self) -> bool {
        self.0.same.is_some()
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

    /// They become bytes in the [postcard](https://postcard.jamesmunns.com) format, so that they can go to another process, and be kept. Making bytes
    /// of a value does not allocate; making a value of bytes does where the type does, as for a vector.
    #[must_use]
    pub fn serialized(self) -> Self
    where
        T: Serialize + DeserializeOwned,
    {
        let encode = |value: &T, to: &mut [u8]| postcard::to_slice(value, to).ok().map(|bytes| bytes.len());
        let decode = |value: &mut T, from: &[u8]| match postcard::take_from_bytes(from) {
            Ok((decoded, [])) => {
                *value = decoded;
                true
            }
            Ok(_) | Err(_) => false,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialized_values_come_back_and_what_is_none_is_refused() {
        let codec = OutputKind::<(u32, Vec<String>)>::any().serialized().0.codec.expect("it has bytes");
        let value = (7, vec!["a".to_owned(), "bc".to_owned()]);
        let mut bytes = [0; 16];
        let length = (codec.encode)(&value, &mut bytes).expect("there is room");
        let mut read = (0, Vec::new());
        assert!((codec.decode)(&mut read, &bytes[..length]));
        assert_eq!(read, value);
        for short in 0..length {
            assert_eq!((codec.encode)(&value, &mut bytes[..short]), None);
            assert!(!(codec.decode)(&mut read, &bytes[..short]));
        }
        assert!(!(codec.decode)(&mut read, &bytes[..length + 1]), "with something behind it");
        assert_eq!(read, value, "what is refused changes nothing");
    }
}
