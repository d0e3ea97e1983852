//! Scheduling policies of threads: set, and read back.

use crate::Tid;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::marker::PhantomData;
use talea_time::{Duration, Work};
use thiserror::Error;

/// A scheduling policy of Linux with its parameters, as far as Talea uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER: time sharing, with the nice value the thread has.
    Other,
    /// SCHED_FIFO at a priority from 1 (least) to 99.
    Fifo(u8),
    /// SCHED_RR at a priority from 1 (least) to 99: threads of one priority take turns by the kernel's
    /// slice.
    RoundRobin(u8),
    /// SCHED_DEADLINE: `runtime` of processor time within `deadline` of the start of each `period`.
    Deadline {
        /// Processor time per period, at least 1 µs.
        runtime: Work,
        /// Relative deadline, between runtime and period.
        deadline: Duration,
        /// Period.
        period: Duration,
    },
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Other => f.write_str("SCHED_OTHER"),
            Policy::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Policy::RoundRobin(priority) => write!(f, "SCHED_RR {priority}"),
            Policy::Deadline { runtime, deadline, period } if deadline == period => {
                write!(f, "SCHED_DEADLINE {runtime}/{period}")
            }
            Policy::Deadline { runtime, deadline, period } => {
                write!(f, "SCHED_DEADLINE {runtime}/{deadline}/{period}")
            }
        }
    }
}

/// Why a policy could not be set or read. The thread keeps the policy it had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchedError {
    /// The process lacks the privilege for a real-time priority as high as this.
    #[error(
        "{wanted} was refused: it needs CAP_SYS_NICE or RLIMIT_RTPRIO of at least {priority}, and the limit \
         is {limit}; grant one of them (`sudo setcap cap_sys_nice+ep PROGRAM`, systemd LimitRTPRIO={priority}, or \
         \"@realtime - rtprio {priority}\" in /etc/security/limits.conf); with a cgroup that has \
         cpu.rt_runtime_us = 0, raise that as well"
    )]
    PriorityNotPermitted {
        /// What was asked for.
        wanted: Policy,
        /// Its priority.
        priority: u8,
        /// RLIMIT_RTPRIO in force.
        limit: u64,
    },
    /// SCHED_DEADLINE needs a capability; no limit grants it.
    #[error(
        "{wanted} was refused: it needs CAP_SYS_NICE (`sudo setcap cap_sys_nice+ep PROGRAM`) and a thread \
         that may run on every CPU of its root domain"
    )]
    DeadlineNotPermitted {
        /// What was asked for.
        wanted: Policy,
    },
    /// Admission control of SCHED_DEADLINE refused the bandwidth.
    #[error(
        "{wanted} does not fit: the sum of runtime/period of all deadline threads may not exceed \
         sched_rt_runtime_us/sched_rt_period_us (in /proc/sys/kernel) times the number of CPUs"
    )]
    NoBandwidth {
        /// What was asked for.
        wanted: Policy,
    },
    /// A parameter is outside what Linux defines.
    #[error(
        "{wanted} is not a policy: real-time priorities are 1 to 99, and a deadline policy needs \
         1us <= runtime <= deadline <= period"
    )]
    OutOfRange {
        /// What was asked for.
        wanted: Policy,
    },
    /// The thread has a policy that Talea never sets (batch, idle, or newer).
    #[error("the thread has Linux scheduling policy number {0}, which Talea does not use")]
    Foreign(u32),
    /// The thread ended or never existed.
    #[error("there is no thread {0}")]
    NoSuchThread(i32),
    /// The kernel refused for another reason.
    #[error("the kernel refused to handle the scheduling policy: {0}")]
    Os(Errno),
}

/// `struct sched_attr` in its first version, which every kernel with the call understands.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const ATTRIBUTES_SIZE: u32 = size_of::<Attributes>() as u32;
const _: () = assert!(ATTRIBUTES_SIZE == 48, "SCHED_ATTR_SIZE_VER0");

/// Sets the policy of the calling thread.
///
/// # Errors
/// See [`SchedError`].
pub fn set_self(policy: Policy) -> Result<(), SchedError> {
    set(0, policy)
}

/// Sets the policy of another thread of this machine.
///
/// # Errors
/// See [`SchedError`].
pub fn set_thread(thread: Tid, policy: Policy) -> Result<(), SchedError> {
    set(thread.as_raw_nonzero().get(), policy)
}

fn set(tid: i32, policy: Policy) -> Result<(), SchedError> {
    check(policy)?;
    let code = match policy {
        // The older call leaves the nice value alone, which the newer one would overwrite.
        Policy::Other => set_classic(tid, libc::SCHED_OTHER, 0),
        Policy::Fifo(priority) => set_classic(tid, libc::SCHED_FIFO, priority),
        Policy::RoundRobin(priority) => set_classic(tid, libc::SCHED_RR, priority),
        Policy::Deadline { runtime, deadline, period } => {
            let attributes = Attributes {
                size: ATTRIBUTES_SIZE,
                policy: libc::SCHED_DEADLINE as u32,
                runtime: runtime.as_nanos() as u64,
                deadline: deadline.as_nanos() as u64,
                period: period.as_nanos() as u64,
                ..Attributes::default()
            };
            // SAFETY: the attributes are a live `sched_attr` of the size they state; the kernel
            // only reads them.
            unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const attributes, 0u32) as i32 }
        }
    };
    if code == 0 { Ok(()) } else { Err(refused(tid, policy, last_errno())) }
}

/// Sets the policy of a thread of somebody else, which keeps it from what it creates: that begins with the ordinary policy, so
/// that neither a flood of threads nor a forgotten child is real-time by inheritance.
///
/// # Errors
/// See [`SchedError`]; a reservation is refused as [`SchedError::OutOfRange`].
pub fn lend(thread: Tid, policy: Policy) -> Result<(), SchedError> {
    check(policy)?;
    let tid = thread.as_raw_nonzero().get();
    let code = match policy {
        // It is what children begin with anyway.
        Policy::Other => set_classic(tid, libc::SCHED_OTHER, 0),
        Policy::Fifo(priority) => set_classic(tid, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority),
        Policy::RoundRobin(priority) => {
            set_classic(tid, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, priority)
        }
        Policy::Deadline { .. } => return Err(SchedError::OutOfRange { wanted: policy }),
    };
    if code == 0 { Ok(()) } else { Err(refused(tid, policy, last_errno())) }
}

/// How long a SCHED_RR thread runs before the next of its priority, as the kernel rounds it; the calling thread has to be one.
pub fn round_robin_slice() -> Option<Duration> {
    let mut slice = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `slice` is writable for the call; 0 is the calling thread.
    let code = unsafe { libc::sched_rr_get_interval(0, &raw mut slice) };
    (code == 0).then(|| Duration::from_nanos(slice.tv_sec * 1_000_000_000 + slice.tv_nsec))
}

fn set_classic(tid: i32, policy: i32, priority: u8) -> i32 {
    let parameters = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: the parameters are live for the call; the kernel only reads them.
    unsafe { libc::sched_setscheduler(tid, policy, &raw const parameters) }
}

/// The policy of a thread (`None`: the calling one) as the kernel has it.
///
/// # Errors
/// See [`SchedError`].
pub fn get(thread: Option<Tid>) -> Result<Policy, SchedError> {
    let tid = thread.map_or(0, |tid| tid.as_raw_nonzero().get());
    let mut attributes = Attributes::default();
    // SAFETY: the attributes are writable for the size that is passed along.
    let code =
        unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attributes, ATTRIBUTES_SIZE, 0u32) };
    if code != 0 {
        return Err(match last_errno() {
            Errno::SRCH => SchedError::NoSuchThread(tid),
            other => SchedError::Os(other),
        });
    }
    match attributes.policy as i32 {
        libc::SCHED_OTHER => Ok(Policy::Other),
        libc::SCHED_FIFO => Ok(Policy::Fifo(attributes.priority as u8)),
        libc::SCHED_RR => Ok(Policy::RoundRobin(attributes.priority as u8)),
        libc::SCHED_DEADLINE => Ok(Policy::Deadline {
            runtime: Work::from_nanos(attributes.runtime as i64),
            deadline: Duration::from_nanos(attributes.deadline as i64),
            period: Duration::from_nanos(attributes.period as i64),
        }),
        _ => Err(SchedError::Foreign(attributes.policy)),
    }
}

/// The calling thread above others while this lives. Threads that it creates meanwhile begin with the ordinary policy, if they have none of their own.
#[derive(Debug)]
#[must_use]
pub struct Raised {
    before: Policy,
    /// Whether what it created began with the ordinary policy.
    was_kept: bool,
    /// It is of the thread that made it.
    _own: PhantomData<*const ()>,
}

impl Raised {
    /// To this priority of SCHED_FIFO; none, and nothing has changed, if the thread stands as high already or may not.
    pub fn to(priority: u8) -> Option<Self> {
        let before = get(None).ok()?;
        let is_below = match before {
            Policy::Other => true,
            Policy::Fifo(own) | Policy::RoundRobin(own) => own < priority,
            Policy::Deadline { .. } => false,
        };
        let was_kept = resets_on_fork(rustix::thread::gettid());
        let raised = is_below && set_classic(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority) == 0;
        raised.then_some(Raised { before, was_kept, _own: PhantomData })
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        let (policy, priority) = match self.before {
            Policy::Fifo(priority) => (libc::SCHED_FIFO, priority),
            Policy::RoundRobin(priority) => (libc::SCHED_RR, priority),
            Policy::Other | Policy::Deadline { .. } => (libc::SCHED_OTHER, 0),
        };
        let kept = policy | libc::SCHED_RESET_ON_FORK;
        // To take it back takes a capability that what it creates is ordinary.
        let back = if self.was_kept { [kept, kept] } else { [policy, kept] };
        let is_back = back.into_iter().any(|policy| set_classic(0, policy, priority) == 0);
        assert!(is_back, "a thread may go back to where it was lower");
    }
}

/// Whether what a thread creates begins with the ordinary policy, as after [`lend`].
pub fn resets_on_fork(thread: Tid) -> bool {
    // SAFETY: the call takes a number.
    let policy = unsafe { libc::sched_getscheduler(thread.as_raw_nonzero().get()) };
    policy >= 0 && policy & libc::SCHED_RESET_ON_FORK != 0
}

/// Whether the parameters are in the range Linux defines.
pub(crate) fn check(wanted: Policy) -> Result<(), SchedError> {
    let sound = match wanted {
        Policy::Other => true,
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => (1..=99).contains(&priority),
        Policy::Deadline { runtime, deadline, period } => {
            runtime.as_nanos() >= 1_024 && runtime.at_full_speed() <= deadline && deadline <= period
        }
    };
    if sound { Ok(()) } else { Err(SchedError::OutOfRange { wanted }) }
}

/// What the kernel's error number means for this wish.
pub(crate) fn refused(tid: i32, wanted: Policy, errno: Errno) -> SchedError {
    match (errno, wanted) {
        (Errno::PERM, Policy::Fifo(priority) | Policy::RoundRobin(priority)) => {
            SchedError::PriorityNotPermitted { wanted, priority, limit: rtprio_limit() }
        }
        (Errno::PERM, Policy::Deadline { .. }) => SchedError::DeadlineNotPermitted { wanted },
        (Errno::BUSY, Policy::Deadline { .. }) => SchedError::NoBandwidth { wanted },
        (Errno::INVAL, _) => SchedError::OutOfRange { wanted },
        (Errno::SRCH, _) => SchedError::NoSuchThread(tid),
        (other, _) => SchedError::Os(other),
    }
}

/// RLIMIT_RTPRIO: the highest SCHED_FIFO priority granted without the capability; 0: none.
fn rtprio_limit() -> u64 {
    getrlimit(Resource::Rtprio).current.unwrap_or(u64::MAX)
}

/// How often the calling thread has had to leave its processor to others, and has left it by itself. A system call of some 0.2 µs.
pub fn own_switches() -> (i64, i64) {
    // SAFETY: zero is a valid `rusage`, which is writable for the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let code = libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        assert_eq!(code, 0, "a thread can read its own usage");
        usage
    };
    (usage.ru_nivcsw, usage.ru_nvcsw)
}

/// What the last system call of the calling thread by way of libc was refused with.
pub fn last_errno() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    Errno::from_raw_os_error(code.expect("the last error came from a system call"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_checked_before_the_kernel_is_asked() {
        for wanted in [
            Policy::Fifo(0),
            Policy::Fifo(100),
            Policy::RoundRobin(0),
            Policy::Deadline {
                runtime: Work::from_millis(3),
                deadline: Duration::from_millis(2),
                period: Duration::from_millis(4),
            },
            Policy::Deadline {
                runtime: Work::from_nanos(500),
                deadline: Duration::from_millis(2),
                period: Duration::from_millis(4),
            },
        ] {
            assert_eq!(set_self(wanted), Err(SchedError::OutOfRange { wanted }));
        }
    }

    #[test]
    fn a_missing_thread_is_named() {
        // The largest thread id Linux can give is 4194303.
        let nobody = Tid::from_raw(4_194_304).unwrap();
        assert_eq!(get(Some(nobody)), Err(SchedError::NoSuchThread(4_194_304)));
        assert_eq!(set_thread(nobody, Policy::Other), Err(SchedError::NoSuchThread(4_194_304)));
    }

    #[test]
    fn a_raised_thread_goes_back_to_what_it_was_and_none_is_lowered() {
        let in_thread = || {
            let Some(raised) = Raised::to(7) else { return false };
            assert_eq!(get(None), Ok(Policy::Fifo(7)));
            let of_new = || std::thread::spawn(|| get(None)).join().expect("it asks only");
            assert_eq!(of_new(), Ok(Policy::Other), "nobody else is raised");
            {
                let higher = Raised::to(8).expect("what was permitted once is so again");
                assert_eq!(get(None), Ok(Policy::Fifo(8)));
                assert!(Raised::to(8).is_none() && Raised::to(3).is_none());
                drop(higher);
            }
            assert_eq!(get(None), Ok(Policy::Fifo(7)));
            assert_eq!(of_new(), Ok(Policy::Other));
            drop(raised);
            assert_eq!(get(None), Ok(Policy::Other));
            true
        };
        if !std::thread::spawn(in_thread).join().expect("all is as said") {
            eprintln!("skipped: {}", set_self(Policy::Fifo(7)).expect_err("it was refused"));
        }
    }

    #[test]
    fn policies_read_as_linux_writes_them() {
        let deadline = |deadline| Policy::Deadline {
            runtime: Work::from_millis(2),
            deadline: Duration::from_millis(deadline),
            period: Duration::from_millis(10),
        };
        assert_eq!(Policy::Fifo(7).to_string(), "SCHED_FIFO 7");
        assert_eq!(Policy::RoundRobin(7).to_string(), "SCHED_RR 7");
        assert_eq!(Policy::Other.to_string(), "SCHED_OTHER");
        assert_eq!(deadline(10).to_string(), "SCHED_DEADLINE 2ms/10ms");
        assert_eq!(deadline(5).to_string(), "SCHED_DEADLINE 2ms/5ms/10ms");
    }
}
