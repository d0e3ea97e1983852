//! What the kernel keeps from real-time threads, by throttling or by its fair server.

use crate::setting::read;
use talea_time::{Duration, Work};

/// What the kernel keeps for ordinary threads, or from real-time ones: the fair server since 6.12, throttling before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrdinaryPart {
    /// How much.
    pub amount: Work,
    /// Of each of these.
    pub period: Duration,
}

/// Whom `sched_rt_runtime_us` holds off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttling {
    /// Real-time threads, though the processor may stay idle: all kernels before 6.12, and those that divide real-time time
    /// among groups.
    Threads,
    /// Nobody: it limits what deadline reservations are admitted.
    Admission,
}

impl Throttling {
    /// `budget` is that of the root group, if the kernel has groups.
    pub fn of(release: &str, budget: Option<&str>) -> Self {
        if version(release) < (6, 12) || budget.is_some() {
            Throttling::Threads
        } else {
            Throttling::Admission
        }
    }
}

/// Major and minor version.
pub fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// By what real-time threads are kept from a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptFrom {
    /// `sched_rt_runtime_us`.
    Throttling,
    /// The deadline server for ordinary threads.
    FairServer,
}

/// What the kernel keeps from real-time threads in each second, by the one of the two mechanisms that keeps more.
pub fn ordinary_part() -> Option<OrdinaryPart> {
    greater(kept_parts())
}

/// What the kernel keeps from real-time threads, by each of the two mechanisms if it does.
pub fn kept_parts() -> Vec<(KeptFrom, OrdinaryPart)> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    parts(
        &release,
        [
            read("/proc/sys/kernel/sched_rt_runtime_us").as_deref(),
            read("/proc/sys/kernel/sched_rt_period_us").as_deref(),
        ],
        Throttling::of(&release, read("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").as_deref()),
        [
            read("/sys/kernel/debug/sched/fair_server/cpu0/runtime").as_deref(),
            read("/sys/kernel/debug/sched/fair_server/cpu0/period").as_deref(),
        ],
    )
}

/// As [`kept_parts`]: `throttling` and `server` are runtime and period, in microseconds and in nanoseconds.
fn parts(
    release: &str,
    throttling: [Option<&str>; 2],
    whom: Throttling,
    server: [Option<&str>; 2],
) -> Vec<(KeptFrom, OrdinaryPart)> {
    const USUAL: [i64; 2] = [50_000_000, 1_000_000_000];
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let mut parts = Vec::new();
    if let (Throttling::Threads, [Some(runtime), Some(period)]) = (whom, throttling.map(number))
        && runtime >= 0
    {
        parts.push((KeptFrom::Throttling, [(period - runtime) * 1_000, period * 1_000]));
    }
    match server.map(number) {
        [Some(runtime), Some(period)] => parts.push((KeptFrom::FairServer, [runtime, period])),
        _ if version(release) >= (6, 12) => parts.push((KeptFrom::FairServer, USUAL)),
        _ => {}
    }
    // Both have a period above zero.
    let sound = parts.into_iter().filter(|(_, [amount, period])| *amount > 0 && *period > 0);
    let part = |[amount, period]: [i64; 2]| OrdinaryPart {
        amount: Work::from_nanos(amount),
        period: Duration::from_nanos(period),
    };
    sound.map(|(by, numbers)| (by, part(numbers))).collect()
}

/// The one that keeps the greater share.
fn greater(parts: Vec<(KeptFrom, OrdinaryPart)>) -> Option<OrdinaryPart> {
    let parts = parts.into_iter().map(|(_, part)| part);
    parts.max_by(|a, b| {
        let product = |one: &OrdinaryPart, other: &OrdinaryPart| {
            i128::from(one.amount.as_nanos()) * i128::from(other.period.as_nanos())
        };
        product(a, b).cmp(&product(b, a))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_of_what_is_kept_from_real_time_threads_counts() {
        let part = |release, budget, rt, server| {
            let kept = parts(release, [Some(rt), Some("1000000")], Throttling::of(release, budget), server);
            let found = greater(kept);
            found.map(|part| (part.amount.as_nanos(), part.period.as_nanos()))
        };
        let second = 1_000_000_000;
        assert_eq!(part("6.1.0", None, "950000", [None; 2]), Some((50_000_000, second)), "throttling");
        assert_eq!(part("6.1.0", None, "-1", [None; 2]), None);
        assert_eq!(part("6.12.0", None, "500000", [None; 2]), Some((50_000_000, second)), "the usual server");
        assert_eq!(part("6.12.0", None, "950000", [Some("0"), Some("1000000000")]), None);
        assert_eq!(part("6.18.0", Some("x"), "500000", [Some("0"), Some("1")]), Some((500_000_000, second)));
        let server = [Some("100000000"), Some("500000000")];
        assert_eq!(part("6.18.0", Some("x"), "950000", server), Some((100_000_000, 500_000_000)));
    }
}
