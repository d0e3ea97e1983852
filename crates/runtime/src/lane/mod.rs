//! Lanes as executors: what is posted into a lane is ordered by its queue and executed, one job after the other or one
//! preempting the other.
//!
//! ```text
//!  release thread, ─push──▶ inbox ──▶ LaneAgent: take in, elect ──▶ execute ──▶ successors' inboxes
//!  successors,      ring                    │                          ▲
//!  posters                                  └──────── Enforcement ─────┘
//! ```
//!
//! The agent is the same wherever the lane stands. What differs is its [`Enforcement`]: who sees to it that the kernel runs the
//! job that was elected, and lets go of it when a higher lane has work.
//!
//! | Enforcement | The lane's thread | Preemption between lanes |
//! |---|---|---|
//! | [`KernelPriorities`] | has a SCHED_FIFO priority of its own; as own thread of a lowered hierarchy, the policy found for it | the kernel's |
//! | `hierarchy::lanes` | is a member of a managed set | that of the schedulers above it |
//! | [`Stepped`] | is the caller's, which steps the agent | none |
//! | [`preemptive`] | one that decides, and several that execute, at three priorities | the kernel's; inside the lane, the controller's |
//!
//! An enforcement by other means of the kernel (reservations, cgroups, sched_ext) is one more implementation of that trait.

mod agent;
mod enforcement;
mod execute;
mod preemption;
pub(crate) mod preemptive;
mod stepped;

pub(crate) use agent::LaneAgent;
pub(crate) use enforcement::{Enforcement, JobHost, KernelPriorities};
pub(crate) use preemption::LanePreemption;
pub use stepped::{LaneStep, SteppedLane, SteppedLaneSetUp};
