//! How the kernel is built and set.

use super::{Finding, read};
use rustix::thread::{ClockId, current_timer_slack};
use rustix::time::clock_getres;
use talea_linux::throttling::{Throttling, version};

pub(super) fn examine() -> Vec<Finding> {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    vec![
        preemption(
            &uname.version().to_string_lossy(),
            read("/sys/kernel/realtime").as_deref(),
            read("/sys/kernel/debug/sched/preempt").as_deref(),
        ),
        throttling(
            read("/proc/sys/kernel/sched_rt_runtime_us").as_deref(),
            read("/proc/sys/kernel/sched_rt_period_us").as_deref(),
            Throttling::of(&release, read("/sys/fs/cgroup/cpu/cpu.rt_runtime_us").as_deref()),
        ),
        fair_server(
            &release,
            read("/sys/kernel/debug/sched/fair_server/cpu0/runtime").as_deref(),
            Debugfs::of(read("/sys/kernel/security/lockdown").as_deref()),
        ),
        timer_resolution(),
        timer_slack(),
        swap(&read("/proc/swaps").unwrap_or_default()),
        huge_pages(read("/sys/kernel/mm/transparent_hugepage/enabled").as_deref()),
    ]
}

/// `version` is that of `uname -v`; the two files exist on some kernels only.
fn preemption(version: &str, realtime: Option<&str>, dynamic: Option<&str>) -> Finding {
    const NAME: &str = "kernel preemption";
    if realtime == Some("1") || version.contains("PREEMPT_RT") {
        return Finding::ok(NAME, "PREEMPT_RT");
    }
    // The file marks the mode in force: "none voluntary (full) lazy".
    let in_force = dynamic.and_then(|modes| Some(modes.split_once('(')?.1.split_once(')')?.0));
    match in_force {
        Some(mode @ ("full" | "lazy")) => Finding::ok(NAME, format!("dynamic, now {mode}; not PREEMPT_RT")),
        Some(mode) => Finding::warn(
            NAME,
            format!("dynamic, now {mode}: system calls of others delay real-time threads"),
            "`echo full | sudo tee /sys/kernel/debug/sched/preempt`, or preempt=full on the kernel command line",
        ),
        None if version.contains("PREEMPT") => {
            let model = version.split(' ').find(|word| word.contains("PREEMPT")).unwrap_or("PREEMPT");
            Finding::ok(NAME, format!("{model}; not PREEMPT_RT"))
        }
        None => Finding::warn(
            NAME,
            "the kernel is not preemptible: system calls of others delay real-time threads",
            "use a kernel with PREEMPT_DYNAMIC (preempt=full) or PREEMPT_RT; latencies of some ms remain otherwise",
        ),
    }
}

fn throttling(runtime: Option<&str>, period: Option<&str>, whom: Throttling) -> Finding {
    const NAME: &str = "real-time throttling";
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let (Some(runtime), Some(period)) = (number(runtime), number(period)) else {
        return Finding::ok(NAME, "this kernel has none to set");
    };
    if runtime < 0 {
        return Finding::ok(NAME, "off: a runaway real-time thread can take the machine");
    }
    if runtime == 0 {
        return Finding::fail(
            NAME,
            "sched_rt_runtime_us is 0: no thread may be real-time",
            "`sudo sysctl kernel.sched_rt_runtime_us=950000`",
        );
    }
    let percent = 100 * runtime / period.max(1);
    let found = format!("real-time and deadline threads get at most {percent} % of each {period} us");
    if percent < 95 {
        return Finding::warn(
            NAME,
            found,
            "`sudo sysctl kernel.sched_rt_runtime_us=950000`, the kernel's default",
        );
    }
    match whom {
        Throttling::Admission => Finding::ok(NAME, found),
        Throttling::Threads => Finding::warn(
            NAME,
            format!("{found}; the rest is withheld in one piece, even if the CPU stays idle"),
            "matters above 95 % real-time load only, of which hierarchies leave the kernel its part in small slices; `talea run \
             --unthrottle` turns it off while it runs, and then a runaway FIFO thread takes its CPU",
        ),
    }
}

/// Whether the kernel's debugfs can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Debugfs {
    Open,
    /// Kernel lockdown closes it, to root, too.
    Closed,
}

impl Debugfs {
    /// `lockdown` marks the mode in force: "none [integrity] confidentiality".
    fn of(lockdown: Option<&str>) -> Self {
        match lockdown {
            Some(modes) if modes.contains('[') && !modes.contains("[none]") => Debugfs::Closed,
            _ => Debugfs::Open,
        }
    }
}

/// Since 6.12 a deadline server runs ordinary threads 50 ms a second where FIFO threads starve them.
fn fair_server(release: &str, runtime: Option<&str>, debugfs: Debugfs) -> Finding {
    const NAME: &str = "fair server";
    match runtime.map(str::parse::<u64>) {
        Some(Ok(0)) => Finding::ok(NAME, "off: FIFO threads are never held off"),
        Some(Ok(ns)) => Finding::warn(
            NAME,
            format!("a FIFO thread that never sleeps is held off for {} ms a second", ns / 1_000_000),
            "matters above 95 % real-time load only; `echo 0 | sudo tee \
             /sys/kernel/debug/sched/fair_server/cpu*/runtime` turns it off, and then a runaway FIFO thread takes its CPU",
        ),
        _ if version(release) >= (6, 12) && debugfs == Debugfs::Closed => Finding::warn(
            NAME,
            format!(
                "Linux {release} has one (50 ms a second by default); kernel lockdown closes its setting"
            ),
            "matters above 95 % real-time load only, of which hierarchies on threads leave it its part in small slices",
        ),
        _ if version(release) >= (6, 12) => Finding::warn(
            NAME,
            format!("Linux {release} has one (50 ms a second by default); its setting is not readable"),
            "matters above 95 % real-time load only; `sudo mount -t debugfs none /sys/kernel/debug` to see it, if \
             the kernel has debugfs",
        ),
        _ => Finding::ok(NAME, format!("Linux {release} has none")),
    }
}

fn timer_resolution() -> Finding {
    const NAME: &str = "timer resolution";
    let resolution = clock_getres(ClockId::Monotonic);
    if (resolution.tv_sec, resolution.tv_nsec) == (0, 1) {
        return Finding::ok(NAME, "1 ns: high-resolution timers");
    }
    Finding::warn(
        NAME,
        format!("{} ns: releases happen at clock ticks only", resolution.tv_nsec),
        "remove highres=off from the kernel command line, or use a kernel with CONFIG_HIGH_RES_TIMERS",
    )
}

fn timer_slack() -> Finding {
    const NAME: &str = "timer slack";
    match current_timer_slack() {
        Ok(ns) => Finding::ok(NAME, format!("{ns} ns for ordinary threads; Talea's own set theirs to 1 ns")),
        Err(errno) => Finding::warn(
            NAME,
            format!("not readable: {errno}"),
            "allow prctl in the seccomp profile in force; without it unprivileged releases are 50 us late",
        ),
    }
}

/// `swaps` is the text of /proc/swaps: a header and one line for each area.
fn swap(swaps: &str) -> Finding {
    const NAME: &str = "swap";
    let areas: Vec<&str> = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    if areas.is_empty() {
        return Finding::ok(NAME, "none");
    }
    Finding::warn(
        NAME,
        format!("on ({}): memory that is not locked can be paged out", areas.join(", ")),
        "nothing while memory can be locked; otherwise `sudo swapoff -a` for the time of a run",
    )
}

fn huge_pages(setting: Option<&str>) -> Finding {
    const NAME: &str = "transparent huge pages";
    match setting {
        None => Finding::ok(NAME, "this kernel has none"),
        Some(modes) if modes.contains("[always]") => Finding::warn(
            NAME,
            "always: the kernel may stop a thread to move its memory together",
            "`echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`",
        ),
        Some(modes) => Finding::ok(NAME, modes),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status::{self, Fail, Ok, Warn};
    use super::*;

    #[test]
    fn preemption_models_are_told_apart() {
        let status = |version, realtime, dynamic| preemption(version, realtime, dynamic).status;
        assert_eq!(status("#1 SMP PREEMPT_RT Debian", None, None), Ok);
        assert_eq!(status("#1 SMP", Some("1"), None), Ok);
        assert_eq!(status("#1 SMP PREEMPT_DYNAMIC", None, Some("none voluntary (full) lazy")), Ok);
        assert_eq!(status("#1 SMP PREEMPT_DYNAMIC", None, Some("none (voluntary) full")), Warn);
        assert_eq!(status("#1 SMP PREEMPT Mon", None, None), Ok);
        assert_eq!(status("#1 SMP Mon", None, None), Warn);
    }

    #[test]
    fn throttling_below_the_default_is_noticed() {
        let status = |runtime| throttling(Some(runtime), Some("1000000"), Throttling::Admission).status;
        assert_eq!([status("-1"), status("950000"), status("500000"), status("0")], [Ok, Ok, Warn, Fail]);
        assert_eq!(throttling(None, None, Throttling::Threads).status, Ok);
    }

    #[test]
    fn throttling_that_leaves_processors_idle_is_noticed() {
        let status = |release, budget| {
            throttling(Some("950000"), Some("1000000"), Throttling::of(release, budget)).status
        };
        assert_eq!(status("5.10.0", None), Warn);
        assert_eq!(status("6.11.2", None), Warn);
        assert_eq!(status("6.12.0", None), Ok);
        assert_eq!(status("6.18.44-fc", Some("950000")), Warn);
    }

    #[test]
    fn the_fair_server_is_known_by_version_or_setting() {
        let cases: [(&str, Option<&str>, Status); 4] = [
            ("6.1.0-13-amd64", None, Ok),
            ("6.12.1", None, Warn),
            ("6.18.44-fc", Some("50000000"), Warn),
            ("7.0.0-rc1", Some("0"), Ok),
        ];
        for (release, runtime, expected) in cases {
            assert_eq!(fair_server(release, runtime, Debugfs::Open).status, expected, "{release}");
        }
        let remedy =
            |lockdown| fair_server("6.18.1", None, Debugfs::of(lockdown)).remedy.expect("there is one");
        assert!(remedy(Some("[none] integrity confidentiality")).contains("debugfs"));
        assert!(!remedy(Some("none [integrity] confidentiality")).contains("debugfs"));
        assert!(remedy(None).contains("debugfs"));
    }

    #[test]
    fn swap_areas_are_named() {
        assert_eq!(swap("Filename\tType\tSize").status, Ok);
        let on = swap("Filename Type Size\n/dev/sda2 partition 1024\n/swapfile file 2048");
        assert!(on.status == Warn && on.found.contains("/dev/sda2, /swapfile"), "{on:?}");
    }

    #[test]
    fn huge_pages_on_demand_are_fine() {
        assert_eq!(huge_pages(Some("[always] madvise never")).status, Warn);
        assert_eq!(huge_pages(Some("always [madvise] never")).status, Ok);
    }
}
