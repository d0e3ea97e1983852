//! The Linux runtime: a validated [`talea_model::System`] on real threads.
//!
//! [`Executive::prepare`] does everything that may fail or take time: it lowers the strategy's lanes to
//! kernel priorities, locks memory, creates every thread with its attributes and every table at its full
//! size. [`Prepared::run`] then opens the gate. From the start instant on, releasing, dispatching and
//! tracing neither allocate nor take a lock; the only system calls are wake-ups, the timer, and the
//! priority changes of preemptive lanes.
//!
//! ```text
//!  release thread ──push──► inbox ──► lane thread: order, elect, run ──► successors' inboxes
//!   (per node, 80)   ring    (lock-free)  (79, 78, … by level)             │
//!        │                                   │                            └─► other processes: a pipe
//!        └────────────── rings ◄─────────────┘
//!                          │
//!                      collector (ordinary thread): accounting, results handed out
//! ```
//!
//! The decisions are not made here: [`talea_policy::strategy`] sorts operations into lanes and
//! [`talea_policy::lane::LaneQueue`] orders each lane, the same objects that decide in the simulator.
//!
//! | Module | Concept |
//! |---|---|
//! | [`lowering`] | lanes to kernel priorities, a pure function |
//! | [`cluster`] | several nodes as several processes |
//! | `prepare`, `run` | setting up, and the run as a whole |
//! | `release`, `flow`, `execute` | a job from its release to its completion |
//! | `lane_thread`, `preemptive` | the two kinds of lanes |
//! | `job_table`, `join` | bounded, preallocated state of jobs and joins |
//! | `seat` | preemption between lanes, seen without system calls |
//! | [`inbox`], [`bell`], [`timer`], [`burn`], [`sys`] | what all of it stands on |

pub mod bell;
pub mod burn;
pub mod doctor;
pub mod inbox;
mod primitive;
pub mod sys;
pub mod timer;

#[cfg(not(loom))]
pub mod cluster;
#[cfg(not(loom))]
mod collector;
#[cfg(not(loom))]
mod crew;
#[cfg(not(loom))]
mod execute;
#[cfg(not(loom))]
mod flow;
#[cfg(not(loom))]
mod job_table;
#[cfg(not(loom))]
mod join;
#[cfg(not(loom))]
mod lane_thread;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
pub mod lowering;
#[cfg(not(loom))]
mod operation;
#[cfg(not(loom))]
mod options;
#[cfg(not(loom))]
mod outcome;
#[cfg(not(loom))]
mod preemptive;
#[cfg(not(loom))]
mod prepare;
#[cfg(not(loom))]
mod recorder;
#[cfg(not(loom))]
mod release;
#[cfg(not(loom))]
mod run;
#[cfg(not(loom))]
mod seat;
#[cfg(not(loom))]
mod store;
#[cfg(not(loom))]
mod thread_clock;

#[cfg(not(loom))]
pub use collector::{Ending, FinishedJob, OnFinished};
#[cfg(not(loom))]
pub use operation::{JobContext, Operation, Operations, UnknownOperation};
#[cfg(not(loom))]
pub use options::{RtMode, RunOptions, Start, UnknownRtMode};
#[cfg(not(loom))]
pub use outcome::{LostNode, Mishaps, NodeSpin, OperationPanic, Outcome, Stopped, ThreadAttributes};
#[cfg(not(loom))]
pub use prepare::{Executive, PrepareError};
#[cfg(not(loom))]
pub use run::{Prepared, StopHandle};
