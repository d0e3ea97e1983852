//! What a run tells: events of your own, traces read back, and why a deadline was missed.
//!
//! # Events of your own
//!
//! A [`family!`](crate::family) declares events with typed fields. What an operation tells by them stands in the trace of the run,
//! on the same clock, and others can follow it live ([`stream`]).
//!
//! ```
//! talea::family! {
//!     /// What the filter does.
//!     nav {
//!         /// A position was computed.
//!         fix(latitude: f64, longitude: f64);
//!     }
//! }
//! nav::fix(47.1, 8.5);
//! ```
//!
//! # Reading a trace
//!
//! A trace that was [kept](crate::Run::keep_trace) is opened by [`TraceFile`] and replayed into any [`Sink`], such as the
//! [`Accounting`] that makes a [`Report`] of it. [`explain()`](explain::explain) splits the response times in it into causes, from
//! a file or, as here, from a simulation:
//!
//! ```
//! use std::convert::Infallible;
//! use talea::simulation::Simulation;
//! use talea::trace::explain::{Question, Which, explain};
//! use talea::{Duration, Instant, System, TaskBuilder, Work};
//!
//! let task = |name, period| TaskBuilder::new(name, Duration::from_millis(period));
//! let system = System::builder("late")
//!     .task(task("short", 10).wcet(Work::from_millis(2)))
//!     .task(task("long", 100).wcet(Work::from_millis(25)))
//!     .build()?;
//! let mut simulation = Simulation::new(&system)?;
//! let metadata = simulation.metadata().clone();
//! let mut records = Vec::new();
//! simulation.advance(Instant::ZERO + Duration::from_secs(1), &mut records);
//!
//! let question = Question { which: Which::Failed, task: None, limit: 3 };
//! let answer = explain(&metadata, question, |sink| {
//!     records.iter().for_each(|record| sink.record(*record));
//!     Ok::<(), Infallible>(())
//! })?;
//! for missed in &answer.list {
//!     println!("{}: {}", answer.name(missed.subject), answer.sentence(missed));
//! }
//! # assert!(!answer.list.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use talea_export as export;
pub use talea_export::format_record;
pub use talea_insight::{Accounting, Report, explain};
pub use talea_record::declaration::{LongBytes, LongText, Text};
pub use talea_record::{
    Damage, Definition, Event, JobId, LogError, LogWriter, Metadata, NameSpace, Record, Records, Replayed,
    Sink, TraceError, TraceFile, TraceKind, family, stream,
};
