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

/// What the kernel keeps from real-time threads in each second, by the one of the two mechanisms that keeps more.
pub fn ordinary_part() -> Option<OrdinaryPart> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    greater_part(
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

/// As [`ordinary_part`]: `throttling` and `server` are runtime and period, in microseconds and in nanoseconds.
fn greater_part(
    release: &str,
    throttling: [Option<&str>; 2],
    whom: Throttling,
    server: [Option<&str>; 2],
) -> Option<OrdinaryPart> {
    const USUAL: [i64; 2] = [50_000_000, 1_000_000_000];
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let mut parts = Vec::new();
    if let (Throttling::Threads, [Some(runtime), Some(period)]) = (whom, throttling.map(number))
        && runtime >= 0
    {
        parts.push([(period - runtime) * 1_000, period * 1_000]);
    }
    match server.map(number) {
        [Some(runtime), Some(period)] => parts.push([runtime, period]),
        _ if version(release) >= (6, 12) => parts.push(USUAL),
        _ => {}
    }
    // The greater share, both of which have a period above zero.
    let greatest = parts.into_iter().filter(|[amount, period]| *amount > 0 && *period > 0).max_by(|a, b| {
        let product = |part: i64, period: i64| i128::from(part) * i128::from(period);
        product(a[0], b[1]).cmp(&product(b[0], a[1]))
    });
    greatest.map(|[amount, period]| OrdinaryPart {
        amount: Work::from_nanos(amount),
        period: Duration::from_nanos(period),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_of_what_is_kept_from_real_time_threads_counts() {
        let part = |release, budget, rt, server| {
            let found =
                greater_part(release, [Some(rt), Some("1000000")], Throttling::of(release, budget), server);
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
