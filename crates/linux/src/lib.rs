//! What Talea asks of Linux for real-time threads, one concept a file, each call with a typed error that says what
//! was refused and how to have it granted. It knows neither systems nor schedulers.
//!
//! | File | Concept |
//! |---|---|
//! | [`sched`] | scheduling policies: set, read back |
//! | [`affinity`] | which CPUs a thread may use |
//! | [`memory`] | locked and prefaulted memory |
//! | [`thread`] | threads created with their policy and CPUs, attributes read back |
//! | [`clock`] | the monotonic clock, a thread's processor time |
//! | [`cpu`] | the CPU a thread runs on |
//! | [`cpu_time`] | the processor time of other threads and of processes |
//! | [`cpu_account`] | what several of them have received together |
//! | [`peer`] | who is at the other end of a Unix socket |
//! | [`pi_lock`] | a lock that lends its holder the priority of those that wait |
//! | [`replaced`] | a value that is replaced as a whole while others read it without a lock |
//! | [`proc`] | what proc tells of threads and processes |
//! | [`cgroup`] | control groups: which there are, and starting, holding, ending and accounting processes in one |
//! | [`seccomp`] | calls by which a program would change how it is scheduled, answered by somebody else |
//! | [`signal_safe`] | the same where nothing may be allocated, locked or panicked |
//! | [`timer`] | sleeping until an instant, the last microseconds spinning |
//! | [`ready`] | sleeping until an instant, a ring or a descriptor that is ready |
//! | [`burn`] | synthetic work: so much processor time, burnt |
//! | [`throttling`] | what the kernel keeps from real-time threads |
//! | [`unthrottle`] | lifting that for a while |
//! | [`setting`] | settings of the kernel |
//! | [`stdio`] | where programs print |
//! | [`stop`] | the word that ends a run, on which threads can sleep |
//! | [`bpf`] | small programs that the kernel runs at its tracepoints |
//! | [`watch`] | what these tell of chosen threads: time received, who had which processor, wake-ups, forks, ends |

pub mod affinity;
pub mod bpf;
pub mod burn;
pub mod cgroup;
pub mod clock;
pub mod cpu;
pub mod cpu_account;
pub mod cpu_time;
pub mod memory;
pub mod peer;
pub mod pi_lock;
pub mod proc;
pub mod ready;
pub mod replaced;
pub mod sched;
pub mod seccomp;
pub mod setting;
pub mod signal_safe;
pub mod stdio;
pub mod steal;
pub mod stop;
pub mod thread;
pub mod throttling;
pub mod timer;
pub mod unthrottle;
pub mod watch;

/// A kernel thread id.
pub type Tid = rustix::thread::Pid;
