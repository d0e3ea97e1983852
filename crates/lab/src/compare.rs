//! One system under several strategies, on one clock, with the identical demand.

use talea_check::score::{Kind, Score};
use talea_insight::{Accounting, Report};
use talea_model::{Strategy, System};
use talea_policy::strategy::plan_lanes_of;
use talea_runtime::{Executive, Operations, PrepareError, RunOptions, StopHandle};
use talea_sim::{Simulation, SimulationError};
use talea_time::{Duration, Instant};

/// Where time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// In the simulator.
    Virtual,
    /// On real threads of this process.
    Real,
}

/// What to compare, and how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The strategies, in the order of the rows.
    pub strategies: Vec<Strategy>,
    /// Simulator or real threads.
    pub clock: Clock,
    /// How long each strategy runs.
    pub duration: Duration,
    /// Length of the samples of effectiveness and efficiency.
    pub sample: Duration,
    /// How real threads run; `duration` and `sample` come from above.
    pub options: RunOptions,
}

/// One strategy's run.
#[derive(Debug)]
pub struct Trial {
    /// The strategy.
    pub strategy: Strategy,
    /// What the records of its run say.
    pub report: Report,
    /// Whether every lane had a real-time priority; `None` in virtual time.
    pub realtime: Option<bool>,
}

/// Why a comparison could not be made. Trials finished before it are lost.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A strategy cannot be simulated.
    #[error("{strategy}: {cause}")]
    Simulation {
        /// The strategy.
        strategy: Strategy,
        /// Why.
        cause: SimulationError,
    },
    /// A strategy cannot be run.
    #[error("{strategy}: {cause}")]
    Run {
        /// The strategy.
        strategy: Strategy,
        /// Why.
        cause: Box<PrepareError>,
    },
}

/// Is notified of the progress of a comparison or an experiment, and can cancel it.
pub trait Observer {
    /// So many runs are planned.
    fn planned(&mut self, runs: usize);
    /// The run called `name` is about to begin. Where it is on real threads, `stop` ends it early.
    fn starting(&mut self, name: &str, stop: Option<StopHandle>);
    /// Whether to end after the runs made so far.
    fn cancelled(&self) -> bool;
}

/// Runs every strategy in turn.
///
/// # Errors
/// See [`CompareError`].
pub fn compare(
    system: &System,
    plan: &Plan,
    observer: &mut dyn Observer,
) -> Result<Vec<Trial>, CompareError> {
    observer.planned(plan.strategies.len());
    let mut trials = Vec::new();
    for &strategy in &plan.strategies {
        if observer.cancelled() {
            break;
        }
        let system = as_executed(system.with_strategy(strategy));
        let (report, realtime) = match plan.clock {
            Clock::Virtual => {
                observer.starting(strategy.keyword(), None);
                let simulated = simulate(&system, plan, observer);
                (simulated.map_err(|cause| CompareError::Simulation { strategy, cause })?, None)
            }
            Clock::Real => {
                let failed = |cause| CompareError::Run { strategy, cause: Box::new(cause) };
                let options =
                    RunOptions { duration: Some(plan.duration), sample: plan.sample, ..plan.options.clone() };
                let prepared =
                    Executive::prepare(&system, Operations::synthetic(), options).map_err(failed)?;
                observer.starting(strategy.keyword(), Some(prepared.stop_handle()));
                let outcome = prepared.run().map_err(failed)?;
                (outcome.report, Some(outcome.realtime))
            }
        };
        trials.push(Trial { strategy, report, realtime });
    }
    Ok(trials)
}

/// The system with the response bounds that its protocols release by. Whoever executes it says which is missing.
fn as_executed(system: System) -> System {
    let plans = plan_lanes_of(&system).ok();
    plans.and_then(|plans| talea_check::planned(&system, &plans).ok()).unwrap_or(system)
}

/// Simulates, and ends early when the observer cancels.
fn simulate(system: &System, plan: &Plan, observer: &dyn Observer) -> Result<Report, SimulationError> {
    let mut simulation = Simulation::new(system)?;
    let mut accounting = Accounting::new(simulation.metadata(), plan.sample);
    simulation.advance_while(Instant::ZERO + plan.duration, &mut accounting, |_| !observer.cancelled());
    let end = simulation.now();
    simulation.finish(&mut accounting);
    Ok(accounting.finish(end))
}

impl Trial {
    /// The score of the tasks of one kind.
    pub fn score(&self, kind: Kind) -> Score {
        Score::of(&self.report, kind)
    }
}
