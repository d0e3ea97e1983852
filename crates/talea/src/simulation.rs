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
use talea_policy::strategy::plan_lanes_of;
use talea_runtime::Operations;
use talea_time::{Duration, Instant};

pub use talea_sim::{DispatchRecords, Simulation, SimulationError};

/// Length of the samples over which a report judges effectiveness.
const SAMPLE: Duration = Duration::from_secs(1);

/// Simulates `system` for `duration` of virtual time with synthetic work, planned releases after the bounds that the analysis finds.
///
/// # Errors
/// See [`SimulationError`]; nothing has been simulated.
pub fn simulate(system: &System, duration: Duration) -> Result<Report, SimulationError> {
    simulate_operations(system, Operations::synthetic(), duration)
}

/// The same with the program's own code, the same that [`Run::operations`](crate::Run::operations) takes: called at the completion of each
/// job in virtual time, with the values that the job took when it began. What it writes is published then. How long a job executes is
/// drawn, as for synthetic work.
///
/// ```
/// use talea::run::Operations;
/// use talea::{Duration, InputBuilder, OutputBuilder, SubtaskBuilder, System, TaskBuilder, Work};
///
/// let step = |name| SubtaskBuilder::new(name).wcet(Work::from_micros(100));
/// let task = TaskBuilder::new("arm", Duration::from_millis(10))
///     .subtask(step("sense").output(OutputBuilder::new("angle")))
///     .subtask(step("move").input(InputBuilder::new("angle").from("arm.sense.angle")));
/// let system = System::builder("robot").task(task).build()?;
/// let operations = Operations::synthetic()
///     .with_ports("arm.sense", |ports| {
///         let angle = ports.output::<u64>("angle");
///         move |job| job.set(angle, job.instance())
///     })
///     .with_ports("arm.move", |ports| {
///         let angle = ports.input::<u64>("angle");
///         move |job| assert_eq!(job.get(angle), Some(&job.instance()))
///     });
/// let report = talea::simulation::simulate_operations(&system, operations, Duration::from_secs(1))?;
/// assert_eq!(report.tasks[0].met, 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`SimulationError`]; nothing has been simulated.
pub fn simulate_operations(
    system: &System,
    operations: Operations,
    duration: Duration,
) -> Result<Report, SimulationError> {
    let system = &super::planned(system);
    let plans = plan_lanes_of(system).map_err(SimulationError::Anomalies)?;
    let mut simulation = Simulation::with_operations(system, &plans, operations)?;
    let mut accounting = Accounting::new(simulation.metadata(), SAMPLE);
    simulation.advance(Instant::ZERO + duration, &mut accounting);
    let end = simulation.now();
    simulation.finish(&mut accounting);
    Ok(accounting.finish(end))
}
