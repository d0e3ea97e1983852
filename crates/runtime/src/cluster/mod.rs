//! Several nodes as several processes of one machine, with a common start instant.
//!
//! A *coordinator* ([`run_cluster`]) starts one *member* ([`Membership`]) per node by running a command of
//! the caller's once for each; that command is expected to arrive at [`Membership::from_environment`] and
//! [`Membership::run`] with the same system and options.
//!
//! ```text
//!   coordinator                                     member (one per node)
//!   private directory, pipes, control socket
//!   start processes ──────────────────────────────► connect
//!                    ◄─────────────────── hello ─── which node, system and options as texts
//!                                                   prepare: threads, rings in the directory
//!                    ◄──────────── ready / failed ──
//!   all ready: start instant ──── start ──────────► open the gate
//!   follow all rings                                run; messages go from pipe to pipe
//!   stop asked for ────────────── stop ───────────► end early
//!                    ◄──────────────── finished ────
//!   one report from all rings                       exit
//! ```
//!
//! A member whose process ends early leaves the run. The coordinator says so to the others, in their pipes, behind all that it had sent; then
//! it ends them, too, or lets them go on without it ([`LostNodes`](crate::LostNodes)).
//!
//! The rings are shared memory that the coordinator reads while they are written, so what a member that is
//! killed has recorded is not lost. A member ends when its control connection ends: no member outlives its
//! coordinator. Members are put into process groups of their own, so that Ctrl-C on a terminal reaches
//! the coordinator only, which then stops them in order.

mod agreement;
mod coordinator;
mod departures;
mod member;
mod wire;

pub use coordinator::{ClusterError, run_cluster};
pub use member::{MemberError, Membership};
