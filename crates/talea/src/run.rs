//! A system on real threads of this process, with closures as its operations.
//!
//! ```
//! use talea::{Duration, RtMode, Run, System, TaskBuilder, Work};
//!
//! let system = System::builder("counter")
//!     .task(TaskBuilder::new("count", Duration::from_millis(10)).wcet(Work::from_millis(1)))
//!     .build()?;
//! let mut jobs = 0;
//! let outcome = Run::new(&system)
//!     .operation("count", move |job| {
//!         jobs += 1;
//!         println!("job {}, the {jobs}. that runs", job.instance());
//!     })
//!     .on_finished(|job| println!("{} {}: {} in {}", job.operation, job.instance, job.met(), job.response))
//!     .realtime(RtMode::Off)
//!     .duration(Duration::from_secs(1))
//!     .run()?;
//! assert!(outcome.report.tasks[0].released > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Real-time priorities and locked memory are asked for unless [`RtMode::Off`] is given; what is not permitted stands in
//! [`Outcome::missing`] with its remedy.

use talea_model::System;
use talea_notification::EventChannelFactory;
use talea_runtime::{Executive, OnFinished};
use talea_time::Duration;

pub use talea_linux::timer::Tail;
pub use talea_manage::control;
pub use talea_runtime::{
    BoundOverrun, Declaration, DeclareError, Descriptor, Dispatcher, EarlyArrivals, Ending, ExternalTrigger,
    FinishedJob, HierarchyOutcome, Input, JobContext, JudgeBy, KeptOutputs, LaneStep, Links, LostNodes,
    Lower, Mishaps, NoPoster, NotPosted, NotRead, NotTriggered, OperationError, OperationErrors, Operations,
    Outcome, Output, OutputKind, Ports, Post, Posted, PostedCode, PostedOperation, Poster, PostingRoom,
    PrepareError, Prepared, RtMode, RunOptions, Stamp, SteppedLanes, SteppedLanesSetUp, StopHandle, Stopped,
    SyntheticValue, TriggerError, Value, Workplace,
};

/// The same with room for the consumers and the pulled suppliers that the channels of a factory have now.
pub(crate) fn with_room_for(events: &EventChannelFactory, room: PostingRoom) -> PostingRoom {
    let (operations, jobs) = events.needs();
    PostingRoom { operations: room.operations + operations, jobs: room.jobs.max(jobs), ..room }
}

/// A run of a system on real threads of this process, to be set up and then run.
///
/// Operations without code burn synthetic processor time as the system describes, so a program can be built up
/// operation by operation.
#[must_use = "nothing happens until `run`"]
pub struct Run<'a> {
    system: &'a System,
    operations: Operations,
    options: RunOptions,
    on_finished: Option<OnFinished>,
    events: Option<&'a EventChannelFactory>,
}

impl<'a> Run<'a> {
    /// A run of `system` until it is stopped, with real-time scheduling as far as it is permitted.
    pub fn new(system: &'a System) -> Self {
        let (operations, options) = (Operations::synthetic(), RunOptions::default());
        Run { system, operations, options, on_finished: None, events: None }
    }

    /// Runs `code` for every job of the operation `name`: the task's name, or `task.subtask`.
    ///
    /// `code` runs on its lane's thread, for one job at a time, so what it owns it keeps from job to job. It learns the
    /// job's release, deadline and number from the [`JobContext`], and asks it now and then whether to stop if it takes long.
    pub fn operation(mut self, name: &str, code: impl FnMut(&JobContext<'_>) + Send + 'static) -> Self {
        self.operations = self.operations.with(name, code);
        self
    }

    /// The same with code that takes and publishes values. `register` opens each of the operation's inputs and outputs, which the description
    /// names, and returns the code, which keeps the tokens. That all types agree is found out before anything runs.
    ///
    /// ```
    /// use talea::{Duration, InputBuilder, OutputBuilder, RtMode, Run, SubtaskBuilder, System, TaskBuilder, Work};
    ///
    /// let step = |name| SubtaskBuilder::new(name).wcet(Work::from_micros(100));
    /// let task = TaskBuilder::new("arm", Duration::from_millis(10))
    ///     .subtask(step("sense").output(OutputBuilder::new("angle")))
    ///     .subtask(step("move").input(InputBuilder::new("angle").from("arm.sense.angle")));
    /// let system = System::builder("robot").task(task).build()?;
    /// let outcome = Run::new(&system)
    ///     .operation_with_ports("arm.sense", |ports| {
    ///         let angle = ports.output::<f64>("angle");
    ///         move |job| job.set(angle, job.instance() as f64)
    ///     })
    ///     .operation_with_ports("arm.move", |ports| {
    ///         let angle = ports.input::<f64>("angle");
    ///         move |job| assert_eq!(job.get(angle), Some(&(job.instance() as f64)))
    ///     })
    ///     .realtime(RtMode::Off)
    ///     .duration(Duration::from_millis(100))
    ///     .run()?;
    /// assert!(outcome.mishaps.panics.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn operation_with_ports<C>(
        mut self,
        name: &str,
        register: impl FnOnce(&mut Ports<'_>) -> C + 'static,
    ) -> Self
    where
        C: FnMut(&JobContext<'_>) + Send + 'static,
    {
        self.operations = self.operations.with_ports(name, register);
        self
    }

    /// Runs this code, instead of all that was given before: [`Operations`] that simulations take as well.
    pub fn operations(mut self, operations: Operations) -> Self {
        self.operations = operations;
        self
    }

    /// Hands out every job that has ended, with its response time and lateness, on an ordinary thread.
    pub fn on_finished(mut self, callback: impl FnMut(&FinishedJob<'_>) + Send + 'static) -> Self {
        self.on_finished = Some(Box::new(callback));
        self
    }

    /// Replaces every option, what the methods here have set as well.
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
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

    /// Room for work that the description does not have, which is [declared and posted](Prepared::dispatcher).
    pub fn posting(mut self, room: PostingRoom) -> Self {
        self.options.posting = room;
        self
    }

    /// Keeps the trace of the run in this file.
    pub fn keep_trace(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.options.keep_log = Some(path.into());
        self
    }

    /// Records the values of these outputs, what these operations take or read from outside, and what is pushed into these channels in the trace, so that
    /// the run can be [replayed](mod@crate::replay). Jobs do not wait for that.
    pub fn keep_values(mut self, outputs: KeptOutputs) -> Self {
        self.options.keep_values = outputs;
        self
    }

    /// Delivers the events of this factory's channels. There is room for the consumers that are connected now; for others to come,
    /// [`Self::posting`] makes some.
    pub fn events(mut self, factory: &'a EventChannelFactory) -> Self {
        self.events = Some(factory);
        self
    }

    /// Makes everything ready and leaves the threads waiting at the start: for a program that wants a
    /// [`StopHandle`] or to look at the threads before it starts them.
    ///
    /// Where `talea replay` has started the program, it replays a trace instead, and the process ends: here, or, where there is [room](Self::posting) for
    /// posted work, or [events](Self::events) are delivered, in [`Prepared::run`], so that the operations are there which are declared between the two.
    /// [`Prepared::is_replay`] says so.
    ///
    /// # Errors
    /// See [`PrepareError`]; no thread is left over.
    pub fn prepare(self) -> Result<Prepared, PrepareError> {
        let can_declare = self.options.posting.operations > 0 || self.events.is_some();
        let mut options = self.options;
        if let Some(events) = self.events {
            options.posting = with_room_for(events, options.posting);
            // One thread posts what waits for its time.
            options.posting.posters += 1;
        }
        if let Some(request) = talea_replay::Request::from_environment() {
            if !can_declare {
                request.fulfil(self.system, self.operations);
            }
            let (workplace, replay) = request.prepare(self.system, self.operations, options.posting);
            if let Some(events) = self.events {
                events.bind(workplace.clone()).map_err(|error| PrepareError::Events(error.into()))?;
            }
            let replay = move || match replay() {};
            return Executive::prepare_replay(&super::planned(self.system), options, workplace, replay);
        }
        let prepared = Executive::prepare(&super::planned(self.system), self.operations, options)?;
        if let Some(events) = self.events {
            let failed = |error: Box<dyn std::error::Error + Send + Sync>| PrepareError::Events(error);
            let workplace = prepared.dispatcher().workplace().map_err(|error| failed(error.into()))?;
            events.bind(workplace).map_err(|error| failed(error.into()))?;
        }
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
