//! Values that go from one operation to others.
//!
//! An operation's *output* is read by any number of *inputs* of others; each such pair is a *connection*. A job writes its value in place and
//! publishes it when it completes; a job that begins takes what there is for it. In between the value lies in a slot and is never copied:
//! what goes through the queue of a connection is the slot's number.
//!
//! ```text
//!            value()          publish: a hold for each reader             take                  leave
//!   free ──────────► written ────────────────────────────────► queued ──────────► held by a job ──────► free,
//!    ▲                  │                                        │                                     when nobody holds it
//!    └── nothing reads ─┘                                        └── dropped: no room, or overtaken, counted
//! ```
//!
//! Nothing here reads a clock: who publishes says from when on a value is *visible*, and who takes, as of which instant. So implicit
//! communication (visible at the completion, taken at the beginning), logical execution time (visible at the end of the period, taken as of the
//! arrival) and the way over a link are different instants, and the simulator and threads drive the same code.
//!
//! All room is made beforehand, for everything that connections can hold at once, so an output always finds a slot
//! ([`OutputPort::new`] says how many there are).

mod codec;
mod connection;
mod input;
mod kept;
pub mod mailbox;
mod output;
mod slots;
#[cfg(test)]
mod tests;

pub use codec::Codec;
pub use connection::{Connection, WhenFull};
pub use input::{Input, InputPort, Moment, Take, Taken};
pub use kept::{KeptBytes, KeptEnd};
pub use output::{
    Dropped, Encoded, FullReader, Handling, Output, OutputPort, Published, Reach, Reader, Visible,
};

use talea_time::Instant;

/// What is known of a value beside itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The instance of the job that wrote it.
    pub instance: u64,
    /// From when on it is there for readers.
    pub visible_at: Instant,
}
