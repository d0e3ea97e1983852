//! A recorded run once more: operations are called with what they were handed then, and what they publish and push is compared with what
//! they published and pushed.
//!
//! A run that [keeps its values](crate::Run::keep_values) can be replayed, on threads or simulated. `talea replay TRACE -- PROGRAM` asks a program
//! for that: at the first [`Run::prepare`](crate::Run::prepare) or [`Run::run`](crate::Run::run) that it comes to, it replays the trace and ends. So
//! that has to be the system of the trace, and what the program does between `prepare` and `run` is not done; jobs that are posted from an
//! operation are answered that they are not ([`NotPosted::Replayed`](crate::run::NotPosted)). [`replay`] does it within a program, in a test for
//! one.
//!
//! ```
//! use talea::{Duration, OutputBuilder, RtMode, Run, System, TaskBuilder, Work};
//! use talea::run::{KeptOutputs, Operations, OutputKind};
//!
//! let task = TaskBuilder::new("count", Duration::from_millis(5)).wcet(Work::from_micros(100));
//! let system = System::builder("counter").task(task.output(OutputBuilder::new("sum"))).build()?;
//! let operations = |step: u64| {
//!     Operations::synthetic().with_ports("count", move |ports| {
//!         let sum = ports.output_of::<u64>("sum", OutputKind::any().plain(), || 0);
//!         let mut total = 0;
//!         move |job| {
//!             total += step;
//!             job.set(sum, total);
//!         }
//!     })
//! };
//! # let folder = tempfile::tempdir()?;
//! # let trace = folder.path().join("counter.talea");
//! Run::new(&system)
//!     .operations(operations(1))
//!     .keep_values(KeptOutputs::All)
//!     .keep_trace(&trace)
//!     .realtime(RtMode::Off)
//!     .duration(Duration::from_secs(1))
//!     .run()?;
//! let same = talea::replay(&system, operations(1), &trace)?;
//! assert!(same.compared() > 0 && same.first.is_none());
//! let other = talea::replay(&system, operations(2), &trace)?;
//! assert!(other.differing() == other.compared());
//! assert!(other.first.expect("it differs").to_string().starts_with("count.sum of job "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;
use talea_model::System;
use talea_runtime::Operations;

pub use talea_replay::{
    Difference, OutputReport, PostedReport, Replay, ReplayError, ReplayFileError, ReplayReport,
    TableDifference, What,
};

/// Calls the operations again as the trace in this file tells, in the order in which their jobs ended, and compares what they publish and push. Those that
/// have said that they have to do with something [outside](crate::run::Ports::outside) are not called, nor those that take events which the trace does
/// not have.
///
/// # Errors
/// [`ReplayFileError`]: the trace cannot be read, is of another system, or keeps neither values nor events; or the code does not fit the system.
pub fn replay(
    system: &System,
    operations: Operations,
    trace: &Path,
) -> Result<ReplayReport, ReplayFileError> {
    talea_replay::replay_file(system, operations, trace)
}
