//! Whole systems in virtual time.
//!
//! The simulator drives the same [`Engine`](talea_policy::hierarchy::Engine) and lane queues as the policies'
//! tests do, and writes the same records as the Linux runtime. It is deterministic: the same system and seed
//! give the same records, byte for byte. Nothing it keeps grows with simulated time, only with the backlog.
//!
//! At one instant, in this order: jobs complete, and what their code posts is released; messages arrive and tasks are released; work that is due then is
//! posted, and code of the program that is to be called then is ([`VirtualWorkplace`]); guards that are due let successors through, also
//! those that an idle point opens (at which nothing that was released earlier on the node is unfinished); schedulers' timers fire; then every
//! node decides once (completions first, then releases, then the choice).
//!
//! Costs ([`Overhead`](talea_model::Overhead)) are processor time:
//! * `switch` is paid by a job whenever it gets a processor that last ran another job;
//! * `queue` is paid twice by every job, for its insertion and its removal;
//! * `message` is paid by a job that a message released;
//! * `timer`, of an arrival or a guard, is an interrupt on the node's first processor: whoever runs there after the release pays, so it
//!   also delays jobs of higher lanes.
//!
//! A trace can tell of them ([`DispatchRecords`]): what a job pays it pays first, an interrupt at once.
//!
//! A thread below a scheduler is a task whose jobs are its bursts: one after the other in the same place of the hierarchy.

#![forbid(unsafe_code)]

mod agenda;
mod calendar;
mod flow;
mod ledger;
mod node;
mod simulation;
mod values;
mod workplace;

pub use simulation::{DispatchRecords, Mishaps, Simulation, SimulationError};
pub use workplace::{VirtualPoster, VirtualWorkplace};
