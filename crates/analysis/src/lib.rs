//! Exact schedulability analysis in integer nanoseconds.
//!
//! * [`task`]: the sporadic task that all analyses speak of.
//! * [`utilisation`]: exact sums, and the bounds of Liu and Layland and of Bini.
//! * [`fixed_priority`]: response times under preemptive and non-preemptive fixed priorities.
//! * [`edf`]: processor demand and response times under preemptive and non-preemptive EDF.
//! * [`chain`]: end-to-end bounds for chains of subtasks on several processors.
//! * [`critical_set`]: the tasks that maximum urgency first protects.
//! * [`sensitivity`]: how much execution times and periods can change before a test fails.
//! * [`effort`]: every search has a budget of steps and says so when it is used up.
//!
//! Everything is exact: times are integers with checked arithmetic, utilisations are compared with 1 as integers or
//! rationals, never in floating point. A result that cannot be represented is an error value. The analyses know
//! nothing of threads or simulators.

#![forbid(unsafe_code)]

pub mod chain;
pub mod critical_set;
mod division;
pub mod edf;
pub mod effort;
pub mod fixed_priority;
mod recurrence;
pub mod sensitivity;
pub mod system;
pub mod task;
pub mod utilisation;

pub use effort::{AnalysisError, Effort};
pub use task::{Task, TaskError};
