//! The Linux runtime: a validated [`talea_model::System`] on real threads.
//!
//! [`Executive::prepare`] does everything that may fail or take time: it lowers the strategy's lanes to
//! kernel priorities, locks memory, creates every thread with its attributes and every table at its full
//! size. [`Prepared::run`] then opens the gate. From the start instant on, releasing, dispatching and
//! tracing neither allocate nor take a lock; the only system calls are wake-ups, the timer, and the
//! priority changes of preemptive lanes. On nodes with a hierarchy of schedulers there is the lock of the managed set, see
//! [`talea_manage`].
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
//! | [`lowering`] | lanes, and hierarchies of schedulers, to kernel settings: pure functions |
//! | [`cluster`] | several nodes as several processes |
//! | `hierarchy` | a description's hierarchy of schedulers, run |
//! | `lowered` | the same where the kernel does it all |
//! | `prepare`, `run` | setting up, and the run as a whole |
//! | `release`, `flow`, `execute` | a job from its release to its completion |
//! | `lane_thread`, `preemptive` | the two kinds of lanes |
//! | `job_table`, `join`, `window` | bounded, preallocated state of jobs and joins, and its size |
//! | `occupancy`, `preemption` | preemption between lanes, seen without system calls |
//! | [`talea_ring`], [`talea_linux`] | what all of it stands on |

pub mod cluster;
mod collector;
mod crew;
pub mod doctor;
mod error;
mod execute;
mod flow;
mod hierarchy;
mod job_table;
mod join;
mod lane_thread;
mod layout;
mod link;
mod lowered;
pub mod lowering;
mod names;
mod occupancy;
mod operation;
mod options;
mod outcome;
mod plans;
mod preemption;
mod preemptive;
mod prepare;
mod recorder;
mod release;
mod ruled;
mod run;
mod store;
mod window;

pub use collector::{Ending, FinishedJob, OnFinished};
pub use error::PrepareError;
pub use hierarchy::{HierarchyError, absentees};
pub use operation::{JobContext, Operation, Operations, UnknownOperation};
pub use options::{Lower, RtMode, RunOptions, Start, StopHandle, UnknownRtMode};
pub use outcome::{
    HierarchyOutcome, LostNode, MemberOutcome, Mishaps, NodeSpin, OperationPanic, Outcome, ParkingOutcome,
    ScheduledBy, Stopped, ThreadAttributes,
};
pub use prepare::Executive;
pub use run::Prepared;
pub use talea_manage::{JudgedBy, LongestSpell, ShortQuantum};
