//! The system description: nodes, end-to-end tasks of subtasks, criticality, overheads.
//!
//! A [`Description`] is plain values. A [`System`] is a description that satisfies every rule, with its
//! operations numbered; only a `System` can be checked, simulated or run.

#![forbid(unsafe_code)]

mod description;
mod system;
mod validate;

pub use description::*;
pub use system::{Operation, OperationId, System};
pub use validate::{Place, Severity, Violation};
