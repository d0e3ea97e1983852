//! Running users' closures as the operations of a system.

use talea_model::System;
use talea_runtime::timer::Tail;
use talea_runtime::{
    Executive, FinishedJob, JobContext, Operations, Outcome, PrepareError, Prepared, RtMode, RunOptions,
};
use talea_sim::{Simulation, SimulationError};
use talea_time::{Duration, Instant};
use talea_trace::{Accounting, Report};

/// A run of a system on real threads of this process, to be set up and then run.
///
/// Operations without code burn synthetic processor time as the system describes, so a program can be built up
/// operation by operation.
#[must_use = "nothing happens until `run`"]
pub struct Run<'a> {
    system: &'a System,
    operations: Operations,
    options: RunOptions,
    on_finished: Option<talea_runtime::OnFinished>,
}

impl<'a> Run<'a> {
    /// A run of `system` until it is stopped, with real-time scheduling as far as it is permitted.
    pub fn new(system: &'a System) -> Self {
        let (operations, options) = (Operations::synthetic(), RunOptions::default());
        Run { system, operations, options, on_finished: None }
    }

    /// Runs `code` for every job of the operation `name`: the task's name, or `task.subtask`.
    ///
    /// `code` runs on its lane's thread. It learns the job's release, deadline and number from the
    /// [`JobContext`], and asks it now and then whether to stop if it takes long.
    pub fn operation(mut self, name: &str, code: impl Fn(&JobContext<'_>) + Send + Sync + 'static) -> Self {
        self.operations = self.operations.with(name, code);
        self
    }

    /// Hands out every job that has ended, with its response time and lateness, on an ordinary thread.
    pub fn on_finished(mut self, callback: impl FnMut(&FinishedJob<'_>) + Send + 'static) -> Self {
        self.on_finished = Some(Box::new(callback));
        self
    }

    /// Ends the run this long after its start.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.options.duration = Some(duration);
        self
    }

    /// How much to insist on real-time scheduling.
    pub fn realtime(mut self, mode: RtMode) -> Self {
        self.options.rt = mode;
        self
    }

    /// How long to spin before each release for a more punctual one.
    pub fn tail(mut self, tail: Tail) -> Self {
        self.options.tail = tail;
        self
    }

    /// Keeps the trace of the run in this file.
    pub fn keep_trace(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.options.keep_log = Some(path.into());
        self
    }

    /// Makes everything ready and leaves the threads waiting at the start: for a program that wants a
    /// [`StopHandle`](crate::StopHandle) or to look at the threads before it starts them.
    ///
    /// # Errors
    /// See [`PrepareError`]; no thread is left over.
    pub fn prepare(self) -> Result<Prepared, PrepareError> {
        let prepared = Executive::prepare(self.system, self.operations, self.options)?;
        Ok(match self.on_finished {
            Some(callback) => prepared.on_finished(callback),
            None => prepared,
        })
    }

    /// Runs to the end and returns what the records say.
    ///
    /// # Errors
    /// See [`PrepareError`]; nothing has run.
    pub fn run(self) -> Result<Outcome, PrepareError> {
        self.prepare()?.run()
    }
}

/// Simulates `system` for `duration` of virtual time with synthetic work.
///
/// # Errors
/// See [`SimulationError`]; nothing has been simulated.
pub fn simulate(system: &System, duration: Duration) -> Result<Report, SimulationError> {
    let mut simulation = Simulation::new(system)?;
    let mut accounting = Accounting::new(simulation.metadata(), Duration::from_secs(1));
    simulation.advance(Instant::ZERO + duration, &mut accounting);
    let end = simulation.now();
    simulation.finish(&mut accounting);
    Ok(accounting.finish(end))
}
