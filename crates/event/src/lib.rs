//! What is said of events before there are any, in descriptions of systems and in programs: which quality of service they are to have, which
//! types of them somebody is interested in, and what is to come of several of them.

#![forbid(unsafe_code)]

mod condition;
mod header;
mod pattern;
pub mod qos;

use talea_time::Duration;

/// What a step of holding an event against a constraint ([`talea_etcl::Program::steps`]) takes at most, several times what is measured of most of them.
pub const EVALUATION_STEP: Duration = Duration::from_nanos(10);

/// Why an event that was pushed is not delivered to who wanted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventLoss {
    /// As many waited as may, and it went by the discard policy.
    Discarded,
    /// It was not worth being delivered any more.
    Expired,
}

/// What the code of a consumer says of what it was given. A panic is [`Outcome::Fail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has it.
    Ok,
    /// Not now: again after the retry interval, unless it expires before.
    Retry,
    /// It cannot make anything of it.
    Discard,
    /// The consumer is gone: it is disconnected, and all that waits for it is discarded.
    Fail,
}

pub use condition::{Collect, Condition, Leaf};
pub use header::{
    AnyEvent, FIELDS, FIELDS_BYTES_MOST, FIELDS_MOST, HEADER, KNOWN_FIELDS, StatedTime, in_header,
    picked_in_header, spelled_in_header, time_in_header,
};
pub use pattern::{TypePattern, TypePatternError};
