//! Will it hold? Verdicts with bounds, advice, and what hierarchies promise, before anything runs.
//!
//! [`check`](check()) analyses a system as it is deployed. A bound proves a deadline, a simulated miss refutes it, and what
//! is neither stays open:
//!
//! ```
//! use talea::check::Verdict;
//! use talea::{Duration, System, TaskBuilder, Work};
//!
//! let task = |name, period| TaskBuilder::new(name, Duration::from_millis(period));
//! let system = System::builder("logger")
//!     .task(task("blink", 100).wcet(Work::from_millis(5)))
//!     .task(task("log", 1_000).wcet(Work::from_millis(60)))
//!     .build()?;
//! let check = talea::check(&system)?;
//! assert!(check.holds());
//! let blink = &check.report.tasks[0];
//! assert_eq!(blink.verdict, Verdict::Holds);
//! println!("at most {:?} ns, of it mostly {:?}", blink.bound_ns, blink.dominated_by);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`advice`] ranks all strategies on the system, [`sensitivity`] says by how much execution times may grow and periods
//! shrink. On a node that a hierarchy schedules, [`hierarchy`] derives what everybody is promised, by which rule, and where
//! somebody does not receive what it needs, what would help:
//!
//! ```
//! use talea::check::hierarchy::Composition;
//! use talea::{Request, SchedulerBuilder, SchedulerKind, System, ThreadBuilder, ThreadWork};
//!
//! let system = System::builder("player")
//!     .scheduler(SchedulerBuilder::new("reserved", SchedulerKind::RESERVATION))
//!     .thread(
//!         ThreadBuilder::new("video", ThreadWork::CpuBound)
//!             .requires("RESBH 10ms 33ms".parse()?)
//!             .under("reserved", Request::Guarantee("RESBH 5ms 33ms".parse()?)),
//!     )
//!     .build()?;
//! let hierarchy = &talea::check(&system)?.hierarchies[0];
//! assert_eq!(hierarchy.verdict, Composition::Fails);
//! assert_eq!(hierarchy.findings[0].node, "video");
//! let counsel = hierarchy.advice.as_ref().expect("there is some where it fails");
//! assert_eq!(counsel.each[0].node, "video");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use talea_check::*;
