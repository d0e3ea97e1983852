//! Values that are kept: an end of an output that nobody's jobs read, but whoever records what was published.

use crate::codec::Codec;
use crate::input::{Input, InputPort, Moment};
use crate::{Connection, Stamp};
use std::sync::Arc;
use talea_time::Instant;

/// What becomes of a value that is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping<'a> {
    /// These are its bytes.
    Bytes(&'a [u8]),
    /// It has more than are kept.
    TooLong,
}

/// The end of an output by which its values are kept.
pub trait Keeper: Send {
    /// Calls `keep` with each value since the last call that is visible as of this instant, as bytes, with the help of `buffer`, which has room for
    /// as many as are kept. Waits for nothing, and nobody waits for it.
    fn keep(&mut self, as_of: Instant, buffer: &mut [u8], keep: &mut dyn FnMut(Stamp, Keeping<'_>));
    /// The connection.
    fn connection(&self) -> &Arc<Connection>;
}

/// See [`Keeper`].
pub(crate) struct KeeperPort<T> {
    pub input: InputPort<T>,
    pub codec: Codec<T>,
}

impl<T: Send + Sync + 'static> Keeper for KeeperPort<T> {
    fn keep(&mut self, as_of: Instant, buffer: &mut [u8], keep: &mut dyn FnMut(Stamp, Keeping<'_>)) {
        while self.input.take(Moment { instance: 0, as_of }).values > 0 {
            for (value, stamp) in self.input.values() {
                match (self.codec.encode)(value, buffer) {
                    Some(bytes) => keep(stamp, Keeping::Bytes(&buffer[..bytes])),
                    None => keep(stamp, Keeping::TooLong),
                }
            }
            self.input.leave();
        }
    }

    fn connection(&self) -> &Arc<Connection> {
        Input::connection(&self.input)
    }
}
