//! A system in virtual time: the same system and seed give the same records, byte for byte.
//!
//! ```
//! use talea::{Duration, System, TaskBuilder, Work};
//!
//! let system = System::builder("blinker")
//!     .task(TaskBuilder::new("blink", Duration::from_millis(100)).wcet(Work::from_millis(1)))
//!     .build()?;
//! let report = talea::simulate(&system, Duration::from_secs(10))?;
//! assert_eq!(report.tasks[0].met, 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`simulate`] gives the report of a whole simulation. A [`Simulation`] is advanced step by step, into whatever takes its
//! records: the accounting, a trace file, a program of yours.

use talea_insight::{Accounting, Report};
use talea_model::System;
use talea_time::{Duration, Instant};

pub use talea_sim::{DispatchRecords, Simulation, SimulationError};

/// Length of the samples over which a report judges effectiveness.
const SAMPLE: Duration = Duration::from_secs(1);

/// Simulates `system` for `duration` of virtual time with synthetic work, planned releases after the bounds that the analysis finds.
///
/// # Errors
/// See [`SimulationError`]; nothing has been simulated.
pub fn simulate(system: &System, duration: Duration) -> Result<Report, SimulationError> {
    let mut simulation = Simulation::new(&super::planned(system))?;
    let mut accounting = Accounting::new(simulation.metadata(), SAMPLE);
    simulation.advance(Instant::ZERO + duration, &mut accounting);
    let end = simulation.now();
    simulation.finish(&mut accounting);
    Ok(accounting.finish(end))
}
