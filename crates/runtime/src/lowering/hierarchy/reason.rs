//! Why a part of a hierarchy is not lowered.

use crate::lowering::machine::OrdinaryPart;
use talea_linux::affinity::list;
use talea_model::SchedulerKind;
use talea_time::Duration;
use thiserror::Error;

/// Why the infrastructure keeps a scheduler or thread.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// Nothing in the kernel does the same.
    #[error("{}", kind.kernel_lacks)]
    Kind {
        /// Its kind.
        kind: SchedulerKind,
    },
    /// The kernel has no virtual processors that several give.
    #[error("it is under several schedulers, and in the kernel a thread has one place")]
    SeveralParents,
    /// Several processors are ordered when the kernel balances them.
    #[error(
        "its node has {cpus} cpus; the kernel spreads real-time threads over several as it balances them, not as the \
         hierarchy says"
    )]
    SeveralCpus {
        /// How many.
        cpus: usize,
    },
    /// Somebody else has the processor, too.
    #[error("cpu {cpu} is also that of node \"{with}\"; the threads of both would get into each other's way")]
    SharedCpu {
        /// The processor.
        cpu: u16,
        /// The other node.
        with: String,
    },
    /// Promises that cannot be derived are judged by the infrastructure alone.
    #[error("the hierarchy does not compose, and what is not derived only the infrastructure can judge")]
    NotComposed,
    /// Promises that are not known to be kept are judged by the infrastructure alone.
    #[error(
        "{parent} is not known to keep what it promises {child}, and whether it does only the infrastructure can judge"
    )]
    NotKnownToBeKept {
        /// The scheduler that gives the first of them.
        parent: String,
        /// Who receives it.
        child: String,
    },
    /// Others of the hierarchy are to come first.
    #[error("deadline threads come before all priorities of the kernel, but here {above} comes first")]
    BelowOthers {
        /// One of those.
        above: String,
    },
    /// Others of the hierarchy are to come behind.
    #[error("ordinary threads come behind all others in the kernel, but here {below} comes behind them")]
    AboveOthers {
        /// One of those.
        below: String,
    },
    /// Only threads take turns in the kernel.
    #[error("\"{child}\" takes a turn in it as a whole; in the kernel only threads take turns")]
    TurnsOfSchedulers {
        /// The scheduler below.
        child: String,
    },
    /// A process has as many turns as it has threads.
    #[error("\"{program}\" is a program, of which every thread would have a turn of its own")]
    ProgramAmongOthers {
        /// The thread of the description.
        program: String,
    },
    /// A reservation of the kernel is one thread's.
    #[error(
        "\"{program}\" is a program, whose threads share a reservation; the kernel reserves for single threads"
    )]
    ProgramReserved {
        /// The thread of the description.
        program: String,
    },
    /// There is one slice for the whole machine.
    #[error(
        "its quantum is {quantum}, but the kernel's slice is {}, for the whole machine \
         (/proc/sys/kernel/sched_rr_timeslice_ms)",
        slice.map_or_else(|| "unknown".into(), |slice| slice.to_string())
    )]
    Slice {
        /// The quantum.
        quantum: Duration,
        /// The kernel's, as it rounds it.
        slice: Option<Duration>,
    },
    /// Levels are not nice values.
    #[error("its children ask for levels, which are no nice values")]
    OrdinaryLevels,
    /// The kernel brings ordinary threads forward.
    #[error(
        "the kernel gives ordinary threads {} of each {} before those that are to come first, which may leave them less \
         because of {because}",
        part.amount, part.period
    )]
    OrdinaryPart {
        /// How much, and how often.
        part: OrdinaryPart,
        /// Who is too much with those above it.
        because: String,
    },
    /// The levels do not fit.
    #[error("it has {needed} levels of priority, and there are {available} for lowered threads")]
    TooManyLevels {
        /// How many there are.
        needed: usize,
        /// How many fit.
        available: usize,
    },
    /// The privilege is missing.
    #[error("the kernel does not permit it: {refused}")]
    NotPermitted {
        /// What is refused, with its remedy.
        refused: String,
    },
    /// Deadline threads may not be bound to some of the processors.
    #[error(
        "the kernel reserves for threads that may run on every cpu of their root domain alone, which is more than cpu {}; an \
         exclusive cpuset with these cpus would make them one",
        list(cpus)
    )]
    RootDomain {
        /// The node's.
        cpus: Vec<u16>,
    },
    /// A period or budget that the kernel does not take.
    #[error("\"{thread}\": the kernel takes periods from {least} to {most} and budgets from 1.024us on")]
    OutOfRange {
        /// The thread.
        thread: String,
        /// The shortest period.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// Budgets end at clock ticks.
    #[error(
        "\"{thread}\" may come to the end of its budget, which this kernel notices at its next clock tick; only bursts below \
         the budget and no more frequent than its periods never do (HRTICK_DL in /sys/kernel/debug/sched/features makes \
         it punctual)"
    )]
    Ticks {
        /// The thread.
        thread: String,
    },
    /// The kernel would not admit it.
    #[error(
        "with the {:.1} % of the thread that releases bursts {:.1} % of a processor would be reserved, of which the kernel \
         admits {:.1} % (/proc/sys/kernel/sched_rt_runtime_us)",
        super::RELEASE_BUDGET.as_nanos() as f64 * 100.0 / super::RELEASE_PERIOD.as_nanos() as f64,
        *asked as f64 / 10_000.0, *offered as f64 / 10_000.0
    )]
    Bandwidth {
        /// All reservations, in millionths of a processor.
        asked: u64,
        /// The most that is admitted.
        offered: u64,
    },
    /// Its scheduler stays.
    #[error("below {above}, which stays")]
    Below {
        /// The scheduler above.
        above: String,
    },
    /// It could be lowered, but not beside what cannot.
    #[error(
        "the kernel could, but beside {with}, which stays, it would take time from threads, or give them some, of which no \
         budget and no promise knows"
    )]
    BesideKept {
        /// Who stays for a reason of its own.
        with: String,
    },
}
