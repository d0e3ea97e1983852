//! What is computed from records.
//!
//! | Module | What it answers |
//! |---|---|
//! | [`accounting`] | what the run achieved |
//! | [`schedule`] | who ran where and when |
//! | [`explain`] | why a job took as long as it did |
//! | [`flow`] | which jobs led to a job, and what came of it |
//! | [`machine`] | who used the processors, where there is no system |
//! | [`usage`] | what the processors' time went into |
//! | [`promises`] | which guarantees of hierarchies were broken |
//! | [`receipts`] | what was received of what hierarchies granted |
//! | [`verify`] | whether the policy was obeyed |
//!
//! Everything here takes records of a [`talea_record::Metadata`] and gives values; nothing here knows who wrote them.

#![forbid(unsafe_code)]

pub mod accounting;
pub mod decisions;
pub mod explain;
pub mod flow;
mod hierarchy;
pub mod machine;
mod occupancy;
mod own_wcets;
pub mod promises;
pub mod receipts;
mod releasing;
pub mod schedule;
mod seen_numbers;
pub mod usage;
pub mod verify;

pub use accounting::{Accounting, Report, Samples};
pub use hierarchy::EdgeState;
pub use machine::Machine;
pub use promises::Promises;
pub use schedule::{Runner, Segment, Segments};
pub use usage::Usage;
