//! A recorded run once more: operations are called with what they were handed then, and what they publish and push is compared with what
//! they published and pushed.
//!
//! A run that [keeps its values](crate::Run::keep_values) can be replayed, on threads or simulated. `talea replay TRACE -- PROGRAM` asks a program
//! for that: at the first [`Run::prepare`](crate::Run::prepare) or [`Run::run`](crate::Run::run) that it comes to, it replays the trace and ends. So
//! that has to be the system of the trace, and what the program does between `prepare` and `run` is not done, unless the run has room for posted work: then
//! operations are declared there, and `run` replays. [`replay`] does it within a program, in a test for one; a [`ReplayRun`] does the same for work that is
//! posted.
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
use talea_runtime::{JobContext, Operations, PostingRoom};

pub use talea_record::CallOutcome;
pub use talea_replay::{
    Difference, NotCalled, OutputReport, PostedReport, Replay, ReplayError, ReplayFileError, ReplayReport,
    TableDifference, What,
};
pub use talea_runtime::ReplayWorkplace;

/// Calls the operations again as the trace in this file tells, in the order in which their jobs ended, and compares what they publish and push. Those that
/// have said that they have to do with something [outside](crate::run::Ports::outside) are not called, nor those that take events which the trace does
/// not have, nor work that was posted, for which there is [`ReplayRun`].
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

/// A replay that is set up as a [`Run`](crate::Run) is, with the work that the program posts.
///
/// ```
/// use std::sync::{Arc, OnceLock};
/// use talea::replay::ReplayRun;
/// use talea::run::{Declaration, KeptOutputs, Operations, PostedOperation, PostingRoom};
/// use talea::simulation::VirtualRun;
/// use talea::{Duration, Instant, System, TaskBuilder, Work};
///
/// type Alarm = Arc<OnceLock<PostedOperation>>;
/// let task = TaskBuilder::new("watch", Duration::from_millis(10)).wcet(Work::from_micros(100));
/// let system = System::builder("alarms").task(task).build()?;
/// let operations = |alarm: &Alarm, every: u64| {
///     let alarm = Arc::clone(alarm);
///     Operations::synthetic().with("watch", move |job| {
///         if job.instance() % every == 0 {
///             let alarm = alarm.get().expect("it is declared before the run begins");
///             _ = job.post(*alarm, job.instance());
///         }
///     })
/// };
/// let declaration = || Declaration::new("alarm", Duration::from_millis(5)).wcet(Work::from_micros(50));
/// let room = PostingRoom { operations: 1, jobs: 4, posters: 0 };
/// # let folder = tempfile::tempdir()?;
/// # let trace = folder.path().join("alarms.talea");
///
/// let alarm = Alarm::default();
/// let prepared = VirtualRun::new(&system).operations(operations(&alarm, 3)).posting(room).prepare()?;
/// alarm.set(prepared.workplace().declare(declaration(), |_| ())?).expect("once");
/// let mut simulation = prepared.into_simulation().with_kept_values(&system, &KeptOutputs::All)?;
/// let mut log = talea::trace::LogWriter::create(&trace, simulation.metadata())?;
/// simulation.advance(Instant::ZERO + Duration::from_secs(1), &mut log);
/// simulation.finish(&mut log);
/// log.finish()?;
///
/// for (every, is_same) in [(3, true), (2, false)] {
///     let alarm = Alarm::default();
///     let replay = ReplayRun::new(&system).operations(operations(&alarm, every)).posting(room).prepare(&trace)?;
///     alarm.set(replay.workplace().declare(declaration(), |_| ())?).expect("once");
///     let report = replay.run()?;
///     assert_eq!(report.first.is_none(), is_same);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing happens until `prepare` and `run`"]
pub struct ReplayRun<'a> {
    system: &'a System,
    operations: Operations,
    posting: PostingRoom,
}

impl<'a> ReplayRun<'a> {
    /// One of a run of `system`, with synthetic work.
    pub fn new(system: &'a System) -> Self {
        ReplayRun { system, operations: Operations::synthetic(), posting: PostingRoom::default() }
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

    /// Room for operations that are declared at the [workplace](PreparedReplay::workplace). How many jobs and threads there could be says nothing here.
    pub fn posting(mut self, room: PostingRoom) -> Self {
        self.posting = room;
        self
    }

    /// Makes everything ready to replay the trace in this file.
    ///
    /// # Errors
    /// As of [`replay`].
    pub fn prepare(self, trace: &Path) -> Result<PreparedReplay, ReplayFileError> {
        let ReplayRun { system, operations, posting } = self;
        let mut prepared = talea_replay::PreparedReplay::open(system, operations, trace)?;
        let workplace = prepared.workplace(posting);
        Ok(PreparedReplay { prepared, workplace })
    }
}

/// A replay that has yet to begin.
#[derive(Debug)]
#[must_use = "nothing happens until `run`"]
pub struct PreparedReplay {
    prepared: talea_replay::PreparedReplay,
    workplace: ReplayWorkplace,
}

impl PreparedReplay {
    /// The way in for work that the description does not have: what was declared when the trace was recorded is declared here again, now or in jobs that are
    /// called again, by the time at which the first of its own is. It is found by its name.
    pub fn workplace(&self) -> ReplayWorkplace {
        self.workplace.clone()
    }

    /// Replays the trace to its end.
    ///
    /// # Errors
    /// The trace cannot be read any further.
    pub fn run(self) -> Result<ReplayReport, ReplayFileError> {
        self.prepared.run()
    }
}
