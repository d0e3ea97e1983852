//! rt-app: threads of runs, sleeps, timers and resumes on Linux, described in a dialect of JSON.
//!
//! # From rt-app
//!
//! | rt-app | description |
//! |---|---|
//! | a thread with a `timer` of some period | a task of this period; `delay` is its phase |
//! | `run`, `runtime` in a round | the execution time; the longest round is the wcet |
//! | `dl-runtime`, `dl-deadline`, `dl-period` | the wcet, the deadline; the period, where no timer has one |
//! | rounds and phases of different work, but the same period and resumes | an execution-time list |
//! | other rounds and phases | a task per job, with the period of the whole round and a phase |
//! | `run` and `sleep` without timer | a task whose period is their sum |
//! | `suspend` at the start of the round | a subtask after those that `resume` it |
//! | a thread that only resumes others | nothing; those are first subtasks of its task |
//! | `instance` | as many tasks |
//! | `cpus` | a node per distinct set; threads without it share one of all processors that the file names |
//! | SCHED_DEADLINE for all | strategy `edf`, preemptive, late work keeps its place |
//! | SCHED_FIFO or SCHED_RR for all | `rms` if the priorities are by rate, `criticality` if there are at most five |
//! | locks, conditions, barriers, memory, devices, `fork`, finite loops, … | listed as lost |
//!
//! Threads called `task.subtask` get both names.
//!
//! # To rt-app
//!
//! A thread per subtask, which runs as long as its `exec` says, with `dl-runtime`, `dl-deadline` and
//! `dl-period` for what the task promises. First subtasks have an absolute timer; each resumes its
//! successors. Strategy `edf` becomes SCHED_DEADLINE, the others SCHED_FIFO with fixed priorities.
//! Keys are made unique with numbers, so strict JSON readers read the file too. Times are whole
//! microseconds of 31 bits; what is finer or longer is rounded and listed.
//!
//! Execution times are written out for up to 10,000 rounds; uniform ones become their mean.

mod chains;
mod export;
mod import;
mod json;
mod keys;
mod nodes;
mod policies;
mod release;
mod role;
mod steps;
mod thread;
mod values;
mod writer;

pub use export::export;
pub use import::import;
