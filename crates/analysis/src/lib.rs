//! Exact schedulability analysis in integer nanoseconds.
//!
//! * [`task`]: the sporadic task that all analyses speak of.
//! * [`effort`]: every search has a budget of steps and says so when it is used up.
//!
//! Everything is exact: times are integers with checked arithmetic, utilisations are compared with 1 as integers or
//! rationals, never in floating point. A result that cannot be represented is an error value. The analyses know
//! nothing of threads or simulators.

#![forbid(unsafe_code)]

pub mod effort;
pub mod task;

pub use effort::{AnalysisError, Effort};
pub use task::{Task, TaskError};
