//! Talea for programs: describe a system once, bring the operations as closures, and check, simulate or run it.
//!
//! ```
//! use talea::{Duration, RtMode, Run, System, TaskBuilder, Work};
//!
//! let system = System::builder("blinker")
//!     .task(TaskBuilder::new("blink", Duration::from_millis(10)).wcet(Work::from_millis(1)))
//!     .build()?;
//! let outcome = Run::new(&system)
//!     .operation("blink", |job| println!("job {} has {} left", job.instance(), job.laxity()))
//!     .realtime(RtMode::Off)
//!     .duration(Duration::from_millis(50))
//!     .run()?;
//! println!("{} of {} in time", outcome.report.tasks[0].met, outcome.report.tasks[0].released);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | Module | What it is for |
//! |---|---|
//! | [`system`] | describing: tasks and subtasks, nodes, costs, hierarchies of schedulers and threads; in code or from files |
//! | [`check`](mod@check) | whether it will hold: verdicts with bounds, advice, what hierarchies promise |
//! | [`schedulers`] | schedulers of your own, by name like the built-in ones |
//! | [`guarantee`] | what schedulers promise each other, and how the promises of a hierarchy are derived |
//! | [`simulation`] | the system in virtual time |
//! | [`run`](mod@run) | the system on real threads, with operations of your own |
//! | [`notification`] | events: channels, filters, quality of service, delivered as work of the run's lanes |
//! | [`replay`](mod@replay) | a recorded run once more, with the same operations or others |
//! | [`hierarchy`] | schedulers over threads of your own, changed by calls while they run |
//! | [`trace`] | events of your own, reading traces, and explaining what is in them |
//! | `figure` | pictures of all that as SVG, with the feature of that name |
//! | `interchange` | task sets of rt-app, SimSo and tables, with the feature of that name |
//!
//! What nearly every program names stands at the root, too.
//!
//! The crate gathers and adds nothing of its own but [`Run`] and [`simulate`]: the parts are `talea-model`
//! (descriptions), `talea-guarantee` (promises), `talea-policy` (decisions), `talea-check` (verdicts),
//! `talea-sim` (virtual time), `talea-runtime` (real threads), `talea-notification` (events), `talea-record` (what runs
//! write), `talea-insight` (what is computed from it) and `talea-export` (traces for others).

#![forbid(unsafe_code)]

pub mod check;
pub mod guarantee;
pub mod hierarchy;
pub mod notification;
pub mod replay;
pub mod run;
pub mod schedulers;
pub mod simulation;
pub mod system;
pub mod trace;

/// The system as it is executed: with the response bounds that its protocols release by. Whoever executes it says which is missing.
fn planned(system: &System) -> System {
    let plans = talea_policy::strategy::plan_lanes_of(system).ok();
    plans.and_then(|plans| check::planned(system, &plans).ok()).unwrap_or_else(|| system.clone())
}

pub use check::check;
pub use replay::replay;
pub use run::{JobContext, Outcome, PrepareError, RtMode, Run};
pub use simulation::simulate;
pub use system::{
    ChainBuilder, Communication, Criticality, Excess, Execution, InputBuilder, Join, LaneDispatch, Late,
    Laxity, LinkBuilder, LossRate, OutputBuilder, Overhead, Overrun, PublicationBuilder, Request,
    SchedulerBuilder, SchedulerKind, Strategy, SubscriptionBuilder, SubtaskBuilder, Synchronisation, System,
    SystemBuilder, TaskBuilder, ThreadBuilder, ThreadWork, parse, read,
};
#[cfg(feature = "figure")]
pub use talea_figure as figure;
#[cfg(feature = "interchange")]
pub use talea_interchange as interchange;
pub use talea_record::family;
pub use talea_time::{Duration, Instant, Work};
pub use trace::Report;
