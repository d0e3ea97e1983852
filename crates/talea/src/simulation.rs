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
//! [`simulate`] gives the report of a whole simulation. A [`VirtualRun`] is set up as a [`Run`](crate::Run) is, with the same code, the same channels of events
//! and the same posted work. A [`Simulation`] is advanced step by step, into whatever takes its records: the accounting, a trace file, a program of yours.

use crate::run::with_room_for;
use talea_insight::{Accounting, Report};
use talea_model::System;
use talea_notification::EventChannelFactory;
use talea_policy::strategy::plan_lanes_of;
use talea_runtime::{JobContext, Operations, PostingRoom};
use talea_time::{Duration, Instant};

pub use talea_sim::{DispatchRecords, Simulation, SimulationError, VirtualPoster, VirtualWorkplace};

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
    Ok(report(Simulation::with_operations(system, &plans, operations)?, duration))
}

fn report(mut simulation: Simulation, duration: Duration) -> Report {
    let mut accounting = Accounting::new(simulation.metadata(), SAMPLE);
    simulation.advance(Instant::ZERO + duration, &mut accounting);
    let end = simulation.now();
    simulation.finish(&mut accounting);
    accounting.finish(end)
}

/// A run of a system in virtual time, set up as a [`Run`](crate::Run) is: with the program's own operations, channels of events with its consumers and
/// suppliers, and work that it posts.
///
/// Deliveries and posted work are jobs of their lanes, as on threads: ordered by the lane's discipline, recorded, accounted and judged alike. Each needs
/// [`Declaration::wcet`](crate::run::Declaration::wcet) of a processor, and its code is called when it has had that; a delivery has the event that was the first when it
/// began. What the program does outside of jobs, as its threads would, is [called at instants](VirtualWorkplace::call_at).
///
/// ```
/// use talea::notification::{Event, EventChannelFactory, Outcome, StructuredEvent};
/// use talea::run::{Declaration, Operations, PostingRoom};
/// use talea::simulation::VirtualRun;
/// use talea::{Duration, Instant, System, TaskBuilder, Work};
///
/// let factory = EventChannelFactory::new();
/// let channel = factory.create_with_defaults("health");
/// let display = channel.consumer("display").connect(|_| Outcome::Ok)?;
/// let mut supplier = channel.supplier("gauge").connect()?;
///
/// let gauge = TaskBuilder::new("gauge", Duration::from_millis(10)).wcet(Work::from_micros(100));
/// let system = System::builder("robot").task(gauge).build()?;
/// let prepared = VirtualRun::new(&system)
///     .operation("gauge", move |job| {
///         let battery = StructuredEvent::new("Robot", "Battery", "left");
///         supplier.push(job, &Event::structured(battery).expect("it has no header")).expect("it is small");
///     })
///     .events(&factory)
///     .posting(PostingRoom { operations: 1, jobs: 4, posters: 0 })
///     .prepare()?;
/// let workplace = prepared.workplace();
/// let alarm = Declaration::new("alarm", Duration::from_millis(5)).wcet(Work::from_micros(50));
/// let alarm = workplace.declare(alarm, |job| assert_eq!(job.handle(), 7))?;
/// workplace.call_at(Instant::ZERO + Duration::from_millis(25), move |outside| {
///     outside.post(alarm, 7).expect("there is room");
///     None
/// });
/// let report = prepared.run(Duration::from_secs(1));
/// assert_eq!(display.statistics().delivered, 100);
/// let met: Vec<_> = report.tasks.iter().map(|task| (task.name.as_str(), task.met)).collect();
/// assert_eq!(met, [("gauge", 100), ("health.display", 100), ("alarm", 1)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing happens until `prepare` and `run`"]
pub struct VirtualRun<'a> {
    system: &'a System,
    operations: Operations,
    posting: PostingRoom,
    events: Option<&'a EventChannelFactory>,
}

impl<'a> VirtualRun<'a> {
    /// One of `system`, with synthetic work.
    pub fn new(system: &'a System) -> Self {
        let (operations, posting) = (Operations::synthetic(), PostingRoom::default());
        VirtualRun { system, operations, posting, events: None }
    }

    /// Calls `code` for every job of the operation `name`, as [`Run::operation`](crate::Run::operation) does.
    pub fn operation(mut self, name: &str, code: impl FnMut(&JobContext<'_>) + Send + 'static) -> Self {
        self.operations = self.operations.with(name, code);
        self
    }

    /// Calls this code, instead of all that was given before.
    pub fn operations(mut self, operations: Operations) -> Self {
        self.operations = operations;
        self
    }

    /// Room for work that the description does not have, which is [declared and posted](PreparedSimulation::workplace). How many threads could post says nothing here.
    pub fn posting(mut self, room: PostingRoom) -> Self {
        self.posting = room;
        self
    }

    /// Delivers the events of this factory's channels. There is room for the consumers that are connected now; for others to come, [`Self::posting`]
    /// makes some.
    pub fn events(mut self, factory: &'a EventChannelFactory) -> Self {
        self.events = Some(factory);
        self
    }

    /// Makes everything ready, at instant 0.
    ///
    /// # Errors
    /// See [`SimulationError`]; nothing has been simulated.
    pub fn prepare(self) -> Result<PreparedSimulation, SimulationError> {
        let VirtualRun { system, operations, posting, events } = self;
        let system = &super::planned(system);
        let plans = plan_lanes_of(system).map_err(SimulationError::Anomalies)?;
        let room = events.map_or(posting, |events| with_room_for(events, posting));
        let (simulation, workplace) = Simulation::with_posting(system, &plans, operations, room)?;
        if let Some(events) = events {
            let bound = events.bind(workplace.clone());
            bound.map_err(|error| SimulationError::Channels(error.to_string()))?;
        }
        Ok(PreparedSimulation { simulation, workplace })
    }
}

/// A simulation that has yet to begin.
#[must_use = "nothing happens until `run`"]
pub struct PreparedSimulation {
    simulation: Simulation,
    workplace: VirtualWorkplace,
}

impl PreparedSimulation {
    /// The way in for work that the description does not have.
    pub fn workplace(&self) -> VirtualWorkplace {
        self.workplace.clone()
    }

    /// Simulates `duration` of virtual time, and returns what the records say.
    ///
    /// # Panics
    /// If the program's code does, or keeps virtual time from going on.
    pub fn run(self, duration: Duration) -> Report {
        report(self.simulation, duration)
    }

    /// To be advanced by the caller, into what takes its records.
    pub fn into_simulation(self) -> Simulation {
        self.simulation
    }
}
