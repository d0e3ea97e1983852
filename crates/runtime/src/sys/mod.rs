//! What the runtime asks of Linux, one concept a file, each call with a typed error that says what
//! was refused and how to have it granted.
//!
//! | File | Concept |
//! |---|---|
//! | [`sched`] | scheduling policies: set, read back |
//! | [`affinity`] | which CPUs a thread may use |
//! | [`memory`] | locked and prefaulted memory |
//! | [`thread`] | threads created with their policy and CPUs, attributes read back |
//! | [`clock`] | the monotonic clock, a thread's processor time |
//! | [`cpu`] | the CPU a thread runs on |
//! | [`setting`] | settings of the kernel |
//! | [`stdio`] | where programs print |
//! | [`stop`] | the word that ends a run, on which threads can sleep |

pub mod affinity;
pub mod clock;
pub mod cpu;
pub mod memory;
pub mod sched;
pub mod setting;
pub mod stdio;
pub mod stop;
pub mod thread;

/// A kernel thread id.
pub type Tid = rustix::thread::Pid;
