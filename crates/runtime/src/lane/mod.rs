//! Lanes as executors: what is posted into a lane is ordered by its queue and executed, one job after the other or one
//! preempting the other.
//!
//! ```text
//!  release thread, ─push──▶ inbox ──▶ LaneAgent: take in, elect ──▶ execute ──▶ successors' inboxes
//!  successors,      ring                    │                          ▲
//!  posters                                  └──────── Enforcement ─────┘
//! ```
//!
//! The agent is the same wherever a lane stands. What differs is its [`Enforcement`]: in which thread the elected job executes, who sees to it that the
//! kernel runs that, and lets go of it when a higher lane, or in a preemptive one a better job, has work.
//!
//! | Enforcement | The lane's thread | Jobs execute | Preemption between lanes |
//! |---|---|---|---|
//! | [`KernelPriorities`] | has a policy of the kernel of its own: SCHED_FIFO, or what a hierarchy was lowered to | in it | the kernel's |
//! | [`preemptive`] | decides alone, above the others | in threads of which the lane has several, at two priorities | the kernel's |
//! | `hierarchy::lanes` | is a member of a managed set | in it | by the schedulers above it |
//! | `stepped` | is the caller's, which steps all lanes | in it | none |
//!
//! An enforcement by other means of the kernel (reservations, cgroups, sched_ext) is one more implementation of that trait.

mod agent;
mod enforcement;
mod execute;
mod preemption;
pub(crate) mod preemptive;
mod stepped;

pub(crate) use agent::{Elected, LaneAgent, Step};
pub(crate) use enforcement::{Enforcement, JobHost, KernelPriorities};
pub(crate) use execute::Candidate;
pub(crate) use stepped::UnsteppedLane;
pub use stepped::{LaneStep, SteppedLanes, SteppedLanesSetUp};
