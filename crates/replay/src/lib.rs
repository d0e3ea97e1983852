//! Replays: the operations of a recorded run called again, in the order in which their jobs ended then, with the values that they took, the
//! instants at which they began and the answers that they were given; what they publish and push is compared with what they published and pushed.
//!
//! ```text
//!   records ──► steps, in order: begin, take, end ──► operation: take again ─ call ─ compare ─ publish what was recorded
//!      │                             ▲
//!      └──► values, some time after the end of their job
//! ```
//!
//! An operation that uses only what it is handed does the same again, bit for bit. Each is judged by itself: what others take of it is what was
//! recorded, also where it publishes something else now. One that has to do with something [outside](talea_operation::Ports::outside) is not
//! called; one that reads the [descriptor](talea_operation::Ports::descriptor) which releases it reads what it read then. What the tables of the trace
//! have otherwise than the description is told.
//!
//! Operations whose jobs a program posted are declared at the [workplace](Replay::workplace) of the replay and found by their names; their jobs have turns as others
//! do, with the handles that are recorded, and posting is answered as it was. Those that channels of the program post are handed the events that they had then, past the channel.

#![forbid(unsafe_code)]

mod answers;
mod compare;
mod replay;
mod report;
mod request;
mod steps;
mod unverified;

pub use replay::{Replay, ReplayError};
pub use report::{Difference, NotCalled, OutputReport, PostedReport, ReplayReport, What};
pub use request::{PreparedReplay, REPORT, ReplayFileError, Request, TRACE, replay_file};
pub use talea_record::difference::Difference as TableDifference;
