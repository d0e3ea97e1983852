//! What is said of events before there are any, in descriptions of systems and in programs: which quality of service they are to have, and which
//! types of them somebody is interested in.

#![forbid(unsafe_code)]

mod pattern;
pub mod qos;

pub use pattern::{TypePattern, TypePatternError};
