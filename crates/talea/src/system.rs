//! Describing a system: in code, from a file, or as plain values; the rules are the same.
//!
//! Tasks are released periodically and run in lanes, into which the [`Strategy`] sorts them:
//!
//! ```
//! use talea::{Criticality, Duration, LinkBuilder, Overhead, SubtaskBuilder, System, TaskBuilder, Work};
//!
//! let system = System::builder("arm")
//!     .overhead(Overhead { switch: Work::from_micros(5), ..Overhead::default() })
//!     .node("control", [0])
//!     .node("vision", [1])
//!     .link(LinkBuilder::between("control", "vision").delay(Duration::from_micros(200)))
//!     .task(
//!         TaskBuilder::new("balance", Duration::from_millis(5))
//!             .criticality(Criticality::High)
//!             .wcet(Work::from_millis(1))
//!             .on("control"),
//!     )
//!     .task(
//!         TaskBuilder::new("grasp", Duration::from_millis(40))
//!             .subtask(SubtaskBuilder::new("camera").wcet(Work::from_millis(9)).on("vision"))
//!             .subtask(SubtaskBuilder::new("plan").wcet(Work::from_millis(6)).on("control")),
//!     )
//!     .build()?;
//! assert_eq!(system.operations().len(), 3);
//! # Ok::<(), talea::system::Violations>(())
//! ```
//!
//! A node can be scheduled by a hierarchy of schedulers instead, with threads under them:
//!
//! ```
//! use talea::{Duration, Execution, Request, SchedulerBuilder, SchedulerKind, System, ThreadBuilder, ThreadWork, Work};
//!
//! let system = System::builder("player")
//!     .scheduler(SchedulerBuilder::new("reserved", SchedulerKind::RESERVATION))
//!     .thread(
//!         ThreadBuilder::new(
//!             "video",
//!             ThreadWork::Bursts {
//!                 burst: Execution::Constant(Work::from_millis(5)),
//!                 period: Duration::from_millis(33),
//!             },
//!         )
//!         .under("reserved", Request::Guarantee("RESBH 5ms 33ms".parse()?)),
//!     )
//!     .build()?;
//! assert_eq!(system.threads.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Events release tasks, one by one or when a condition over several of them and over time comes true:
//!
//! ```
//! use talea::notification::qos::QosSettings;
//! use talea::system::Condition;
//! use talea::{Duration, PublicationBuilder, SubscriptionBuilder, System, TaskBuilder, Work};
//!
//! let silent = Condition::unless_within(Duration::from_millis(50), "Robot/Tilt".parse()?);
//! let system = System::builder("watched")
//!     .channel("motion", QosSettings::new())
//!     .task(
//!         TaskBuilder::new("imu", Duration::from_millis(5))
//!             .wcet(Work::from_micros(300))
//!             .event(PublicationBuilder::new("motion", "Robot/Tilt")),
//!     )
//!     .task(
//!         TaskBuilder::triggered_by("watchdog", SubscriptionBuilder::new("motion").when(silent))
//!             .deadline(Duration::from_millis(10))
//!             .wcet(Work::from_micros(50)),
//!     )
//!     .build()?;
//! assert_eq!(system.tasks[1].period, Duration::from_millis(50));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use talea_model::*;
