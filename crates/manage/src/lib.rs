//! Any hierarchy of schedulers over real threads, on an unmodified kernel.
//!
//! The hierarchy engine of `talea_policy` decides which thread is to have which processor. The kernel has no such policy, but it
//! always runs the ready thread of the highest real-time priority. So a decision becomes a change of priorities: four of
//! them in a row, for each CPU that is managed.
//!
//! ```text
//!   urgent   controller (reserved where permitted), warden; sentinels that stand in for others
//!   granted  the threads of the member that the hierarchy granted this CPU
//!   beside   the sentinel                       runs: the granted thread has blocked
//!   parked   everybody else, also those that blocked
//!   ─────────
//!   ordinary everything that is not managed; where processors are left unused in slices, those that are parked, too
//! ```
//!
//! *Blocking needs no tracing.* The sentinel of a CPU is always ready. When it runs, the granted thread has blocked: the sentinel
//! parks it, so that its wake-up preempts nobody, tells the hierarchy, and grants the next thread. *Waking up does.* Threads of
//! this process that block by their [`Handle`] are woken by a [`Waker`], in a call; of others, the kernel tells the
//! wake-ups that matter through a filtered tracepoint, or they are looked at every [`LOOK_EVERY`].
//!
//! | File | What it does |
//! |---|---|
//! | [`set`](ManagedSet) | setting up, reading, ending |
//! | `admit` | taking members in |
//! | `state` | what the lock protects: a decision becomes priorities |
//! | `govern`, [`control`] | changing the hierarchy, from the process and from outside |
//! | `sentinel` | one for each CPU: the local dispatcher |
//! | `controller` | timers, wake-ups that the kernel tells |
//! | `warden` | what nobody tells: members that have gone, new threads |
//! | `guardian` | a process that gives everything back if this one is killed |
//! | [`keeper`] | a process that starts programs, contained, and ends them with whatever they have started |
//! | `hold`, `freezer` | hard caps: parked threads that may not run at all |
//! | `origin` | where threads could run before they were bound, also those created since |
//! | `sleep_word`, `handle` | where own threads sleep, and how they are woken |
//! | `managed_run`, `thread_jobs`, `member_jobs`, `run_steps` | a run with arrivals, records and monitors |
//! | [`auditor`](JudgedBy) | what of all grants the kernel withheld |
//! | `slices` | leaving processors unused for moments, before the kernel takes them for longer |
//! | [`switches`](SwitchStream) | who had a processor, by programs in the kernel or events of perf |
//! | `command`, `quantum`, `signal_target` | programs that are started, quanta that can be kept, who gets a signal |
//! | `lock`, `priorities`, `member`, [`talea_linux`] | what all of it stands on |
//!
//! **The lock.** There is one per hierarchy, with priority inheritance; nothing waits under it but for the kernel (to move a
//! thread between CPUs, to freeze a process), and no sentinel or controller is preempted by a thread that it raises while it
//! holds it (see `state`). A waker may be; a thread that waits for the lock then lends it its priority. Who calls the sentinel of
//! its own processor gets in line behind it, and does not run on while others have the lock first. A member in line has not blocked.
//! Order: wake-ups before state.
//! Taking members in allocates under it; dispatching does not allocate. A lane's thread takes it when a job begins and when it
//! ends, for as long as the record takes, and a thread that rings for a lane that sleeps takes it for a decision; ringing for one that
//! is awake is one atomic step, unless a scheduler above guarantees single jobs: then that hears of the job, too.
//!
//! **A program is one member.** Granted, its threads are raised and take turns on the CPU, in an order that is drawn anew each time; it has blocked when
//! all of them have. What a command of ours starts, threads and processes, begins at its creator's level ([`keeper`] contains it and ends it with the
//! set), and the kernel tells of it in the buffer of the wake-ups. Those of its threads that sleep are left alone until they are woken, so that
//! a decision costs nothing for them. A process that was there before is taken in with its threads and children. The threads and processes that it
//! creates from then on begin as ordinary ones and are taken in by the warden. Where somebody changes how its threads are scheduled, the warden
//! puts that back and counts it.
//!
//! **Guarantees that are maxima.** Parking is work-conserving: an idle CPU runs parked threads, last parked first. A member with
//! [`Parking::Held`] is held instead, see `hold`.
//!
//! **Priority that the kernel lends.** A thread that holds a lock with priority inheritance for which a deadline thread waits runs
//! with the deadline thread's priority, and its own cannot be changed until it gives the lock back (`priorities::LENT`). Of the
//! set's own threads it concerns sentinels, which are above everybody for that time anyway. A thread of another program stays where
//! the kernel has it, whatever the hierarchy decides; the warden moves it within [`LOOK_EVERY`] of the end of that,
//! [`Totals::lent`] counts it, and nothing ends by it.
//!
//! **If something dies.** A member that ends or is killed is taken out. If the infrastructure panics, or the guardian is killed,
//! the set ends and the warden gives every thread back what it had. If this process is killed, the guardian does, and ends the
//! commands of ours. It does not if both are killed at once. Where the process is only stopped, its members stay as they are.
//!
//! **What it costs** is measured by `cargo bench -p talea-lab --bench hierarchies`: from a block to the next thread's first
//! instruction, beside a hand-over by priorities alone.

mod admit;
mod auditor;
pub mod beginning;
pub mod command;
pub mod control;
mod controller;
mod definitions;
mod freezer;
mod govern;
pub mod guardian;
mod handle;
mod held_group;
mod hold;
pub mod keeper;
mod lock;
mod managed_run;
mod member;
mod member_jobs;
pub mod naming;
mod options;
pub mod origin;
mod priorities;
mod progress;
mod quantum;
mod run_steps;
mod sentinel;
mod set;
mod shared;
mod signal_target;
mod sleep_word;
mod slices;
mod state;
mod switches;
mod thread_jobs;
pub mod unbinding;
mod wakeups;
mod warden;

pub use admit::{MORE_TO_HOLD, ThreadOptions};
pub use auditor::{Audit, JudgedBy, LongestWithheld, Withholder};
pub use govern::NotDismissed;
pub use handle::{Blocked, Handle, LaneTurn, Waker};
pub use hold::{Held, Parking};
pub use managed_run::{EndedRun, ManagedRun, Marks, RunRecorder};
pub use member::{Blocks, ForeignChanges, MemberId, Received};
pub use member_jobs::{LaneJobs, MemberJobs};
pub use options::{
    Admission, AdmitError, CONTROLLER_BUDGET, CONTROLLER_PERIOD, ControllerPolicy, Options, STACK, SetError,
    Target, WatchedEdge,
};
pub use priorities::{Ordinary, Priorities};
pub use quantum::ShortQuantum;
pub use set::{ManagedSet, Summary};
pub use state::Totals;
pub use switches::{SwitchStream, ToldBy};
pub use thread_jobs::ThreadJobs;
pub use warden::LOOK_EVERY;
