//! Talea for programs: describe a system once, bring the operations as closures, and check, simulate or run it.
//!
//! ```no_run
//! use talea::{Duration, Run, System, TaskBuilder, Work};
//!
//! let system = System::builder("blinker")
//!     .task(TaskBuilder::new("blink", Duration::from_millis(100)).wcet(Work::from_millis(1)))
//!     .build()?;
//! let outcome = Run::new(&system)
//!     .operation("blink", |job| println!("job {} has {} left", job.instance(), job.laxity()))
//!     .duration(Duration::from_secs(1))
//!     .run()?;
//! println!("{} of {} in time", outcome.report.tasks[0].met, outcome.report.tasks[0].released);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate only gathers: the parts are `talea-model` (descriptions), `talea-policy` (decisions), `talea-sim`
//! (virtual time), `talea-runtime` (real threads) and `talea-trace` (records and what is computed from them).

#![forbid(unsafe_code)]

mod embed;

pub use embed::{Run, simulate};
pub use talea_model::{
    Criticality, Execution, LaneDispatch, Late, Laxity, Overrun, Parsed, Problems, Strategy, SubtaskBuilder,
    System, SystemBuilder, TaskBuilder, Violations, parse, read,
};
pub use talea_runtime::{Ending, FinishedJob, JobContext, Outcome, PrepareError, RtMode, StopHandle};
pub use talea_sim::SimulationError;
pub use talea_time::{Duration, Instant, Work};
pub use talea_trace::{Report, family, stream};
