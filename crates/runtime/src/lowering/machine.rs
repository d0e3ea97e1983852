//! What the kernel offers a node, found out by trying and reading, so that nothing is promised by version number alone.

use talea_linux::affinity::AffinityError;
use talea_linux::sched::{self, Policy, SchedError};
use talea_linux::thread::{SpawnError, spawn};
use talea_linux::throttling::ordinary_part;

use std::fs;
use std::ops::RangeInclusive;
pub use talea_linux::throttling::OrdinaryPart;
use talea_time::{Duration, Work};

/// What the kernel offers this process on the processors of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Real-time priorities, or what is refused with its remedy.
    pub real_time: Result<(), String>,
    /// After how long SCHED_RR threads of one priority take turns (sched_rr_get_interval(2)).
    pub round_robin_slice: Option<Duration>,
    /// What ordinary threads get before real-time threads, if they get any.
    pub ordinary: Option<OrdinaryPart>,
    /// Reservations for threads that are bound to these processors.
    pub reservations: Result<Reservations, Refusal>,
}

/// How SCHED_DEADLINE can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservations {
    /// When a thread at the end of its budget is stopped.
    pub budgets: Budgets,
    /// The most that is admitted, in millionths of a processor.
    pub bandwidth: u64,
    /// The periods that are taken.
    pub periods: RangeInclusive<Duration>,
}

/// When a thread at the end of its budget is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budgets {
    /// At the end.
    Punctual,
    /// At the next clock tick.
    AtTicks,
}

/// Why there are no reservations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Threads that are bound to these processors may not have them, others may.
    RootDomain,
    /// For this reason.
    Other(String),
}

/// The priority that is tried.
const TRIED: u8 = *super::hierarchy::PRIORITIES.end() + 1;
const STACK: usize = 64 * 1024;
/// So little of a processor that there is room for it if there is for anything.
const LITTLE: Policy = Policy::Deadline {
    runtime: Work::from_nanos(100_000),
    deadline: Duration::from_millis(100),
    period: Duration::from_millis(100),
};

impl Machine {
    /// What there is for a node on `cpus`. Creates threads for some microseconds, and changes nothing.
    pub fn examine(cpus: &[u16]) -> Self {
        let slice = move || {
            let changed = sched::set_self(Policy::RoundRobin(TRIED));
            changed.ok().and_then(|()| sched::round_robin_slice())
        };
        let real_time = match spawn("probe", Policy::Fifo(TRIED), cpus, STACK, slice) {
            Ok(thread) => Ok(thread.join().ok().flatten()),
            Err(refused) => Err(refused.to_string()),
        };
        Machine {
            round_robin_slice: real_time.clone().ok().flatten(),
            real_time: real_time.map(|_| ()),
            ordinary: ordinary_part(),
            reservations: reservations(cpus),
        }
    }
}

fn reservations(cpus: &[u16]) -> Result<Reservations, Refusal> {
    let probe = |cpus: &[u16]| match spawn("probe", LITTLE, cpus, STACK, || ()) {
        Ok(thread) => {
            // It does nothing that could panic.
            let _ended = thread.join();
            Ok(())
        }
        Err(refused) => Err(refused),
    };
    match (probe(cpus), probe(&[])) {
        (Ok(()), _) => Ok(offer()),
        (Err(SpawnError::Policy { source: SchedError::DeadlineNotPermitted { .. }, .. }), Ok(())) => {
            Err(Refusal::RootDomain)
        }
        (Err(SpawnError::Cpus { source: AffinityError::NotAvailable { refused, allowed }, .. }), _) => {
            Err(Refusal::Other(AffinityError::NotAvailable { refused, allowed }.to_string()))
        }
        (Err(refused), _) => Err(Refusal::Other(refused.to_string())),
    }
}

fn offer() -> Reservations {
    const MILLION: u64 = 1_000_000;
    let number = |name: &str| -> Option<i64> {
        fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
    };
    let micros = |name: &str, usual: i64| Duration::from_micros(number(name).unwrap_or(usual));
    let bandwidth = match (number("sched_rt_runtime_us"), number("sched_rt_period_us")) {
        (Some(runtime), Some(period)) if runtime >= 0 && period > 0 => {
            runtime as u64 * MILLION / period as u64
        }
        _ => MILLION,
    };
    let features = fs::read_to_string("/sys/kernel/debug/sched/features").unwrap_or_default();
    let is_punctual = features.split_whitespace().any(|feature| feature == "HRTICK_DL");
    Reservations {
        budgets: if is_punctual { Budgets::Punctual } else { Budgets::AtTicks },
        bandwidth,
        // The kernel's own limits unless set otherwise, kernel/sched/deadline.c.
        periods: micros("sched_deadline_period_min_us", 100)
            ..=micros("sched_deadline_period_max_us", 1 << 22),
    }
}

/// The kernel admits these policies together on `cpus`, or the first that it does not, by position, with what it said.
pub(crate) fn admits(policies: &[Policy], cpus: &[u16]) -> Result<(), (usize, String)> {
    let stop = talea_linux::stop::StopFlag::new();
    let mut threads = Vec::with_capacity(policies.len());
    let mut refused = Ok(());
    for (position, &policy) in policies.iter().enumerate() {
        let wait = stop.clone();
        match spawn("probe", policy, cpus, STACK, move || wait.sleep_until(talea_time::Instant::MAX)) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                refused = Err((position, error.to_string()));
                break;
            }
        }
    }
    stop.stop();
    threads.into_iter().for_each(|thread| _ = thread.join());
    refused
}
