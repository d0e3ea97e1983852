//! Lanes as executors: what is posted into a lane is ordered by its queue and executed, one job after the other or one
//! preempting the other.
//!
//! ```text
//!  release thread, ─push──▶ inbox ──▶ LaneAgent: take in, elect ──▶ execute ──▶ successors' inboxes
//!  successors,      ring                    │                          ▲
//!  posters                                  └──────── Enforcement ─────┘
//! ```
//!
//! The agent is the same wherever a lane stands that is not preemptive. What differs is its [`Enforcement`]: who sees to it that the kernel runs the
//! job that was elected, and lets go of it when a higher lane has work.
//!
//! | Enforcement | The lane's thread | Preemption between lanes |
//! |---|---|---|
//! | [`KernelPriorities`] | has a policy of the kernel of its own: SCHED_FIFO, or what a hierarchy was lowered to | the kernel's |
//! | `hierarchy::lanes` | is a member of a managed set | by the schedulers above it |
//! | `stepped` | is the caller's, which steps all lanes | none |
//!
//! A [preemptive] lane has no agent: it decides about jobs that have begun, so its thread, the controller, executes none and has a loop of its
//! own. It elects from the same queue, and jobs run by the same [`execute`](execute::execute) in threads of which it has several, at three
//! priorities.
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
pub(crate) use execute::Candidate;
pub(crate) use preemption::LanePreemption;
pub(crate) use stepped::UnsteppedLane;
pub use stepped::{LaneStep, SteppedLanes, SteppedLanesSetUp};
