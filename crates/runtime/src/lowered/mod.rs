//! A node's hierarchy that was [lowered](crate::lowering::hierarchy): its threads run with plain settings of the kernel, which does
//! what the schedulers say, and nobody dispatches.
//!
//! ```text
//!  release thread ──push, ring──▶ own threads, each a lane with its policy   nobody between them
//!  (above all)                    START … COMPLETE in their own rings
//!
//!  warden ──policy, SIGCONT──▶ programs and processes           guardian: gives back what they had if this process is killed
//!  (above all, where there are programs)
//! ```
//!
//! *Who executes.* Own threads are lanes of one operation in order of arrival, released and executed like those of any node; what stands
//! here is what lanes do not have: programs of others, and an account of what each thread received.
//!
//! *What is recorded.* Releases come from the release thread, starts and completions from the threads themselves. Where
//! all threads are of the run and their switches [nest](Switches::Nested), who begins says whom it displaced; elsewhere
//! the records say nothing of preemptions. A program's start is not known; its end is, within [`warden::LOOK_EVERY`].
//!
//! *What is judged.* Nothing: a promise is about the time in which somebody wants a processor, and nobody sees that. What
//! each receives by the kernel's account is told.
//!
//! *What is given back.* Own threads end with the process. Programs are ordinary again at the end of the run, whoever
//! ends it; they never pass their policy on to what they create, which the warden takes in.
//!
//! | File | What it does |
//! |---|---|
//! | `node` | the programs of the node, and what came of all its threads |
//! | `program`, `warden` | programs of others |
//! | `control` | why nobody else can control it |
//!
//! [`Switches::Nested`]: crate::lowering::hierarchy::Switches::Nested

mod control;
mod node;
mod program;
mod warden;

pub(crate) use node::{LoweredNode, OwnThread, rings_of};
