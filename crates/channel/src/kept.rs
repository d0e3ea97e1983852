//! Values that are recorded: an output has one end more, which no job reads, but the thread that records.

use crate::codec::Codec;
use crate::input::{Input, InputPort, Moment};
use crate::{Connection, Stamp};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use talea_time::Instant;

/// A value that is to be recorded, as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBytes<'a> {
    /// These are its bytes.
    Bytes(&'a [u8]),
    /// It has more than are recorded.
    TooLong,
    /// The code that makes bytes of it panicked.
    Failed,
}

/// The end of an output by which its values are recorded.
pub trait KeptEnd: Send {
    /// Calls `each` with each value since the last call that is visible as of this instant, as bytes, with the help of `buffer`, which has room for
    /// as many as are kept. Waits for nothing, and nobody waits for it.
    fn take_all(&mut self, as_of: Instant, buffer: &mut [u8], each: &mut dyn FnMut(Stamp, KeptBytes<'_>));
    /// The connection.
    fn connection(&self) -> &Arc<Connection>;
}

/// See [`KeptEnd`].
pub(crate) struct KeptPort<T> {
    pub input: InputPort<T>,
    pub codec: Codec<T>,
}

impl<T: Send + Sync + 'static> KeptEnd for KeptPort<T> {
    fn take_all(&mut self, as_of: Instant, buffer: &mut [u8], each: &mut dyn FnMut(Stamp, KeptBytes<'_>)) {
        while self.input.take(Moment { instance: 0, as_of }).values > 0 {
            for (value, stamp) in self.input.values() {
                let encode = self.codec.encode;
                // It reads a value that nobody writes, and what it has written of it is not used.
                let encoded = catch_unwind(AssertUnwindSafe(|| encode(value, buffer)));
                each(
                    stamp,
                    match encoded {
                        Ok(Some(bytes)) => KeptBytes::Bytes(&buffer[..bytes]),
                        Ok(None) => KeptBytes::TooLong,
                        Err(_) => KeptBytes::Failed,
                    },
                );
            }
            self.input.leave();
        }
    }

    fn connection(&self) -> &Arc<Connection> {
        Input::connection(&self.input)
    }
}
