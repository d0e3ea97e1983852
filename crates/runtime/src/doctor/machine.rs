//! Processors and clocks.

use super::{Finding, read};

const CPU: &str = "/sys/devices/system/cpu";

pub(super) fn examine() -> Vec<Finding> {
    let clocksource = "/sys/devices/system/clocksource/clocksource0";
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    vec![
        clock_source(
            read(&format!("{clocksource}/current_clocksource")).as_deref(),
            read(&format!("{clocksource}/available_clocksource")).as_deref(),
        ),
        time_stamp_counter(flags),
        governor(read(&format!("{CPU}/cpu0/cpufreq/scaling_governor")).as_deref()),
        idle_states(&read_idle_states()),
        isolation(read(&format!("{CPU}/isolated")).as_deref(), read(&format!("{CPU}/nohz_full")).as_deref()),
        virtual_machine(flags),
    ]
}

fn clock_source(current: Option<&str>, available: Option<&str>) -> Finding {
    const NAME: &str = "clock source";
    match current {
        Some("tsc") => Finding::ok(NAME, "tsc: clocks are read without a system call"),
        Some(name @ ("kvm-clock" | "hyperv_clocksource_tsc_page" | "arch_sys_counter")) => {
            Finding::ok(NAME, format!("{name}: clocks are read without a system call"))
        }
        Some(name) if available.is_some_and(|all| all.split(' ').any(|one| one == "tsc")) => Finding::warn(
            NAME,
            format!("{name}: each reading of a clock is a system call"),
            "`echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource`",
        ),
        Some(name) => Finding::warn(
            NAME,
            format!("{name}: each reading of a clock may be a system call"),
            "the kernel distrusts this machine's time stamp counter; look at `dmesg | grep -i tsc`",
        ),
        None => Finding::warn(NAME, "not readable", "mount sysfs (`sudo mount -t sysfs none /sys`)"),
    }
}

fn time_stamp_counter(flags: &str) -> Finding {
    const NAME: &str = "time stamp counter";
    if !cfg!(target_arch = "x86_64") {
        return Finding::ok(NAME, "not an x86 processor; records are stamped by CLOCK_MONOTONIC");
    }
    let missing: Vec<&str> = ["constant_tsc", "nonstop_tsc"]
        .into_iter()
        .filter(|flag| !flags.split_whitespace().any(|one| one == *flag))
        .collect();
    if missing.is_empty() {
        return Finding::ok(NAME, "constant and nonstop");
    }
    Finding::warn(
        NAME,
        format!("the processor does not promise {}", missing.join(" and ")),
        "in a virtual machine pass the host's through (qemu: `-cpu host,+invtsc`); otherwise fix the frequency and \
         turn idle states off, or trace with CLOCK_MONOTONIC",
    )
}

fn governor(governor: Option<&str>) -> Finding {
    const NAME: &str = "frequency governor";
    match governor {
        None => Finding::ok(NAME, "the frequency is not this kernel's to choose"),
        Some("performance") => Finding::ok(NAME, "performance"),
        Some(other) => Finding::warn(
            NAME,
            format!("{other}: execution times vary with the frequency"),
            "`sudo cpupower frequency-set -g performance`, or `echo performance | sudo tee \
             /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`",
        ),
    }
}

/// Names and exit latencies in microseconds of the enabled idle states of the first CPU.
fn read_idle_states() -> Vec<(String, u64)> {
    let state = |number: u32| {
        let field = |name: &str| read(&format!("{CPU}/cpu0/cpuidle/state{number}/{name}"));
        Some((field("name")?, field("latency")?.parse().ok()?, field("disable")? == "0"))
    };
    (0..).map_while(state).filter(|state| state.2).map(|(name, latency, _)| (name, latency)).collect()
}

/// Above this a wake-up is dominated by the processor's own.
const IDLE_EXIT_US_MAX: u64 = 20;

fn idle_states(enabled: &[(String, u64)]) -> Finding {
    const NAME: &str = "idle states";
    let Some((name, latency_us)) = enabled.iter().max_by_key(|(_, latency_us)| *latency_us) else {
        return Finding::ok(NAME, "none that this kernel manages");
    };
    let found = format!("the deepest is {name}, left in {latency_us} us");
    if *latency_us <= IDLE_EXIT_US_MAX {
        return Finding::ok(NAME, found);
    }
    Finding::warn(
        NAME,
        found,
        format!(
            "`sudo cpupower idle-set -D {IDLE_EXIT_US_MAX}`, or hold /dev/cpu_dma_latency open with a 0 in it, or \
             processor.max_cstate=1 on the kernel command line"
        ),
    )
}

fn isolation(isolated: Option<&str>, tickless: Option<&str>) -> Finding {
    let named = |list: Option<&str>| match list {
        None | Some("" | "(null)") => "none".to_owned(),
        Some(cpus) => cpus.to_owned(),
    };
    Finding {
        remedy: Some(
            "for the least jitter give a node CPUs of its own: isolcpus=domain,managed_irq,1 nohz_full=1 \
             rcu_nocbs=1 on the kernel command line, and name them in its `cpus`"
                .into(),
        ),
        ..Finding::ok(
            "isolated CPUs",
            format!("isolcpus: {}; nohz_full: {}", named(isolated), named(tickless)),
        )
    }
}

fn virtual_machine(flags: &str) -> Finding {
    const NAME: &str = "virtual machine";
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return Finding::ok(NAME, "no");
    }
    Finding::warn(
        NAME,
        "yes: the host decides when these processors run, and waking an idle one costs tens of microseconds",
        "expect that much in tails; on the host pin the virtual processors and give them real-time priority, or \
         measure on bare metal",
    )
}

#[cfg(test)]
mod tests {
    use super::super::Status::{Ok, Warn};
    use super::*;

    #[test]
    fn clock_sources_that_need_a_call_are_warned_of() {
        assert_eq!(clock_source(Some("tsc"), None).status, Ok);
        assert_eq!(clock_source(Some("kvm-clock"), Some("kvm-clock")).status, Ok);
        let hpet = clock_source(Some("hpet"), Some("tsc hpet acpi_pm"));
        assert!(hpet.status == Warn && hpet.remedy.unwrap().contains("echo tsc"));
        assert!(clock_source(Some("hpet"), Some("hpet")).remedy.unwrap().contains("dmesg"));
        assert_eq!(clock_source(None, None).status, Warn);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_counter_that_may_stop_is_warned_of() {
        assert_eq!(time_stamp_counter(": fpu constant_tsc nonstop_tsc").status, Ok);
        let stops = time_stamp_counter(": fpu constant_tsc");
        assert!(stops.status == Warn && stops.found.contains("nonstop_tsc"), "{stops:?}");
    }

    #[test]
    fn slow_idle_states_and_governors_are_warned_of() {
        let states = |latency| [("POLL".into(), 0), ("C6".into(), latency)];
        assert_eq!(idle_states(&[]).status, Ok);
        assert_eq!(idle_states(&states(10)).status, Ok);
        assert_eq!(idle_states(&states(133)).status, Warn);
        assert_eq!(governor(None).status, Ok);
        assert_eq!(governor(Some("performance")).status, Ok);
        assert_eq!(governor(Some("powersave")).status, Warn);
    }

    #[test]
    fn isolation_is_told() {
        assert_eq!(isolation(Some(""), Some("(null)")).found, "isolcpus: none; nohz_full: none");
        assert_eq!(isolation(Some("1"), None).found, "isolcpus: 1; nohz_full: none");
    }
}
