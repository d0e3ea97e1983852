//! What a managed set is to be, and why it, or a member, is refused.

use crate::hold::Parking;
use crate::priorities::Priorities;
use crate::slices;
use rustix::io::Errno;
use rustix::process::getpid;
use std::io;
use talea_linux::Tid;
use talea_linux::affinity::AffinityError;
use talea_linux::proc;
use talea_linux::thread::SpawnError;
use talea_model::{ChildProcesses, Slices, ThreadWork};
use talea_policy::arrangement::{ChangeCause, Promise};
use talea_policy::hierarchy::{Parameters, Refusal, SchedulerId};
use talea_time::{Duration, Work};
use thiserror::Error;

/// Of a thread that no user's code runs on, in bytes.
pub const STACK: usize = 256 * 1024;
/// What the controller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerPolicy {
    /// [`Self::Reserved`] if the kernel grants it, else [`Self::Urgent`].
    BestPermitted,
    /// SCHED_DEADLINE with this much per [`CONTROLLER_PERIOD`].
    Reserved(Work),
    /// SCHED_FIFO above all that is managed.
    Urgent,
}

/// The period of the controller's reservation. Once its budget is used up nobody decides until the period's end, so that is short.
pub const CONTROLLER_PERIOD: Duration = Duration::from_millis(1);
/// What the controller reserves where nothing else is said: it needs 5 to 20 µs for each timer or wake-up.
pub const CONTROLLER_BUDGET: Work = Work::from_micros(400);
/// What it makes do with where the kernel has not as much to give.
pub(crate) const CONTROLLER_BUDGET_MIN: Work = Work::from_micros(100);

/// What a managed set is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// The CPUs, in the order of the hierarchy's processors.
    pub cpus: Vec<u16>,
    /// The real-time priorities that the set takes.
    pub priorities: Priorities,
    /// What the controller is.
    pub controller: ControllerPolicy,
    /// Where the controller may run; anywhere if nothing is named. The kernel reserves for threads that may run anywhere alone.
    pub controller_cpus: Vec<u16>,
    /// How much of each processor is left to ordinary threads, in small pieces, so that the kernel takes nothing from real-time ones;
    /// none if nothing is. Where something is, parked threads are ordinary ones.
    pub slices: Option<Slices>,
    /// Members at a time, at most.
    pub members_max: usize,
    /// Threads of processes that were there before, together, at most. Others that such a process creates stay ordinary ones. Commands have no
    /// such limit.
    pub threads_max: usize,
}

impl Options {
    /// A set on these CPUs, and the rest as it usually is: it leaves what this machine's kernel would take.
    pub fn on(cpus: &[u16]) -> Self {
        Options {
            cpus: cpus.to_vec(),
            priorities: Priorities::default(),
            controller: ControllerPolicy::BestPermitted,
            controller_cpus: Vec::new(),
            slices: slices::usual(),
            members_max: 64,
            threads_max: crate::guardian::THREADS_MAX / 2,
        }
    }
}

/// Where a member goes.
#[derive(Clone, Copy, Debug)]
pub struct Admission<'a> {
    /// What it is called.
    pub name: &'a str,
    /// The scheduler above it.
    pub parent: SchedulerId,
    /// What it asks of that scheduler.
    pub parameters: Parameters,
    /// Whether it may use processors that nobody else wants.
    pub parking: Parking,
    /// The edge above it, which a run of the set judges and records from the first decision about the member on; none in a set without
    /// a run, or where the edge is watched otherwise.
    pub edge: Option<WatchedEdge<'a>>,
}

/// The edge above a member, for a run.
#[derive(Clone, Copy, Debug)]
pub struct WatchedEdge<'a> {
    /// What the scheduler is called.
    pub parent: &'a str,
    /// What it promises.
    pub promise: Option<&'a Promise>,
    /// Who takes the member in, and why.
    pub cause: ChangeCause,
}

impl Admission<'_> {
    /// Why the edge goes again if the member cannot be taken in.
    pub(crate) fn not_admitted(&self) -> ChangeCause {
        self.edge.map_or(ChangeCause::DESCRIBED, |edge| edge.cause).not_admitted()
    }
}

/// Threads that exist already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// All threads of the process with this number and of such processes that it has started, those that they will create included. They are one
    /// member: granted, they take turns on its processor.
    Process(u32, ChildProcesses),
    /// The thread with this number alone.
    Thread(u32),
}

impl Target {
    /// What a description says of threads that exist already; nothing if the threads are to be created.
    pub fn of(work: &ThreadWork) -> Option<Self> {
        match *work {
            ThreadWork::Process { number, children } => Some(Target::Process(number, children)),
            ThreadWork::Thread(number) => Some(Target::Thread(number)),
            ThreadWork::CpuBound | ThreadWork::Bursts { .. } | ThreadWork::Command(_) => None,
        }
    }

    /// The number by which they are named.
    pub fn number(self) -> u32 {
        let (Target::Process(number, _) | Target::Thread(number)) = self;
        number
    }

    /// The process, and the thread by whose number it was found, for the member of this name.
    ///
    /// # Errors
    /// There is none of this number, it is the kernel's, or of this process.
    pub fn find(self, name: &str) -> Result<(Tid, Tid), AdmitError> {
        let number = self.number();
        let missing = || self.missing(name);
        let tid = i32::try_from(number).ok().and_then(Tid::from_raw).ok_or_else(missing)?;
        let process = proc::process_of(tid).ok_or_else(missing)?;
        match self {
            _ if proc::is_kernel_thread(tid) => Err(AdmitError::Kernel { name: name.into(), number }),
            _ if process == getpid() => Err(AdmitError::Own { name: name.into(), number }),
            Target::Process(..) if process != tid => Err(missing()),
            Target::Process(..) | Target::Thread(_) => Ok((process, tid)),
        }
    }

    /// That there is none.
    pub(crate) fn missing(self, name: &str) -> AdmitError {
        let (what, number) = match self {
            Target::Process(number, _) => ("process", number),
            Target::Thread(number) => ("thread", number),
        };
        AdmitError::Missing { name: name.into(), what, number }
    }
}

/// Why there is no managed set. Nothing has changed.
#[derive(Debug, Error)]
pub enum SetError {
    /// Processors of the hierarchy and CPUs are to match.
    #[error(
        "the hierarchy schedules {processors} processors and is given {cpus} CPUs; name as many, each once"
    )]
    Cpus {
        /// Processors of the hierarchy.
        processors: usize,
        /// CPUs named, doubles counted once.
        cpus: usize,
    },
    /// The CPUs cannot be had.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// More members or threads than the guardian can remember.
    #[error("at most {most} {what} can be guarded, and {asked} are asked for")]
    TooMany {
        /// Members or threads.
        what: &'static str,
        /// How many.
        asked: usize,
        /// The limit.
        most: usize,
    },
    /// A sentinel, the controller or the warden cannot be.
    #[error(transparent)]
    Thread(#[from] SpawnError),
    /// The thread that judges what is received cannot be.
    #[error("the thread that judges what is received cannot be started: {0}")]
    Auditor(std::io::Error),
    /// The guardian's process cannot be.
    #[error("the guardian, which restores threads if this process is killed, cannot be started: {0}")]
    Guardian(Errno),
    /// The keeper's process cannot be.
    #[error("the keeper, which starts programs and ends them, cannot be started: {0}")]
    Keeper(Errno),
    /// The timer or its descriptor cannot be.
    #[error("the controller's timer cannot be made: {0}")]
    Timer(Errno),
}

/// Why a member was not taken in. It is as it was before.
#[derive(Debug, Error)]
pub enum AdmitError {
    /// The scheduler refuses it.
    #[error("{name}: {source}")]
    Refused {
        /// The member.
        name: String,
        /// The scheduler's reason.
        source: Refusal,
    },
    /// The thread cannot be created.
    #[error(transparent)]
    Thread(#[from] SpawnError),
    /// The command cannot be started.
    #[error("{name}: {command} cannot be started: {source}")]
    Command {
        /// The member.
        name: String,
        /// The program.
        command: String,
        /// The reason.
        source: io::Error,
    },
    /// There is no such process or thread (any more).
    #[error("{name}: there is no {what} {number}")]
    Missing {
        /// The member.
        name: String,
        /// Process or thread.
        what: &'static str,
        /// Its number.
        number: u32,
    },
    /// It belongs to the set's own process, whose threads are spawned.
    #[error("{name}: {number} belongs to this process, whose threads are to be spawned as managed ones")]
    Own {
        /// The member.
        name: String,
        /// The process or thread.
        number: u32,
    },
    /// Somebody else schedules it with real-time priority.
    #[error(
        "{name}: thread {tid} has a real-time policy already, which managing it would take away; start it without \
         (`chrt -o 0 PROGRAM`) or leave it out"
    )]
    RealTime {
        /// The member.
        name: String,
        /// The thread.
        tid: u32,
    },
    /// The kernel does not permit it.
    #[error(
        "{name}: the priority of thread {tid} cannot be changed: {errno}; it needs CAP_SYS_NICE (`sudo setcap cap_sys_nice+ep PROGRAM`)"
    )]
    NotPermitted {
        /// The member.
        name: String,
        /// The thread.
        tid: u32,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The kernel lends it the priority of a deadline thread that waits for a lock of it.
    #[error(
        "{name}: thread {tid} holds a lock for which a thread of policy SCHED_DEADLINE waits, and until it gives it back Linux \
         does not let its priority be changed; try again"
    )]
    Lent {
        /// The member.
        name: String,
        /// The thread.
        tid: u32,
    },
    /// Already a member.
    #[error("{name}: thread {tid} is managed already")]
    Managed {
        /// The member.
        name: String,
        /// The thread.
        tid: u32,
    },
    /// No room.
    #[error("{name}: at most {most} {what} are managed at a time")]
    TooMany {
        /// The member.
        name: String,
        /// Members or threads.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// A single thread of another process can be parked only.
    #[error(
        "{name}: a single thread of another process cannot be held; attach its whole process, or let it use idle processors"
    )]
    CannotHold {
        /// The member.
        name: String,
    },
    /// Not all of its processes can be held.
    #[error(
        "{name}: without a cgroup (version 2, writable) not all of its processes can be held together; let it use idle processors, or take \
         in a process without its children"
    )]
    OutOfReach {
        /// The member.
        name: String,
    },
    /// It is a thread of the kernel.
    #[error(
        "{name}: {number} is a thread of the kernel, which nobody else may schedule; name a program's process"
    )]
    Kernel {
        /// The member.
        name: String,
        /// Its number.
        number: u32,
    },
    /// Its wake-ups cannot be told.
    #[error("{name}: its wake-ups cannot be watched: {source}")]
    Wakeups {
        /// The member.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// The set has ended.
    #[error("{name}: the managed set has ended")]
    Ended {
        /// The member.
        name: String,
    },
}
