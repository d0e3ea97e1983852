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
//! Each of these layers names only those above it in this table, and what the crate stands on, [`talea_ring`], [`talea_linux`] and
//! [`talea_manage`]:
//!
//! | Module | Concept |
//! |---|---|
//! | `options`, `outcome`, `layout`, `names` | what a run is asked for and leaves, its fixed tables, what it is called |
//! | [`lowering`], [`doctor`] | lanes, and hierarchies of schedulers, to kernel settings: pure functions; what this machine grants |
//! | `job_table`, `join`, `guard_post`, `trigger_table`, `window`, `link`, `occupancy` | bounded, preallocated state of jobs, joins, triggers, pipes and processors |
//! | `operation`, `posting_table`, `recorder` | what a job does, and how a thread records it |
//! | `flow`, `triggering`, `values`, `receiving`, `guarding`, `release`, `poster` | a job from its release to its lane, and to its successors |
//! | `lane` | executing what is in a lane, by whatever enforces its decisions |
//! | `statistics`, `control` | what others are told of channels, and may ask of a node |
//! | `hierarchy`, `lowered` | a description's hierarchy of schedulers, run by a managed set, or by the kernel alone |
//! | `error`, `plans`, `store`, `collector`, `threads`, `hierarchy_node` | what a run is set up of: tables, rings, threads, nodes |
//! | `dispatcher` | work that the description does not have, posted while the run lasts |
//! | `prepare`, `run` | setting up, and the run as a whole |
//! | [`cluster`] | several nodes as several processes |

mod alarms;
pub mod cluster;
mod collector;
mod control;
mod counts;
mod dispatcher;
pub mod doctor;
mod error;
mod flow;
mod guard_post;
mod guarding;
mod hierarchy;
mod hierarchy_node;
mod job_table;
mod join;
mod keeping;
mod kept_events;
mod lane;
mod layout;
mod limits;
mod link;
mod lowered;
pub mod lowering;
mod names;
mod occupancy;
mod operation;
mod options;
mod outcome;
mod plans;
mod poster;
mod posting_table;
mod prepare;
mod receiving;
mod recorder;
mod release;
mod run;
mod statistics;
mod steal;
mod store;
mod threads;
mod trigger_table;
mod triggering;
mod values;
mod window;
mod workplace;

pub use collector::{Ending, FinishedJob, OnFinished};
pub use dispatcher::{Dispatcher, NoPoster};
pub use error::PrepareError;
pub use hierarchy::{HierarchyError, absentees};
pub use hierarchy_node::leaving_of;
pub use lane::{LaneStep, SteppedLanes, SteppedLanesSetUp};
pub use limits::limits;
pub use options::{
    JudgeBy, Links, LostNodes, Lower, RtMode, RunOptions, Slicing, Start, StopHandle, UnknownRtMode,
};
pub use outcome::{
    BoundOverrun, EarlyArrivals, HierarchyOutcome, LostNode, MemberOutcome, Mishaps, NodeSpin,
    OperationPanic, Outcome, ParkingOutcome, ScheduledBy, Stopped, ThreadAttributes,
};
pub use poster::Poster;
pub use prepare::Executive;
pub use run::Prepared;
pub use statistics::MonitorServer;
pub use talea_analysis::system::Leaving;
pub use talea_manage::{ForeignChanges, JudgedBy, LongestWithheld, ShortQuantum, ToldBy, Withholder};
pub use talea_operation::{
    Declaration, DeclareError, Descriptor, Input, JobContext, KeptOutputs, LostValues, NotPosted, NotRead,
    OperationError, OperationErrors, Operations, Output, OutputKind, Ports, Post, Posted, PostedCode,
    PostedOperation, PostingRoom, ReplayWorkplace, Stamp, SyntheticValue, Value, Workplace,
};
pub use triggering::{ExternalTrigger, NotTriggered, TriggerError};
pub use workplace::RunWorkplace;
