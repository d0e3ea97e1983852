use super::*;

fn facts() -> Facts {
    Facts {
        paranoid: Some(2),
        capabilities: 0,
        filtered: false,
        global_numbers: true,
        tracefs: Tracefs::At("/sys/kernel/tracing"),
        locked_kib: Some(516),
        locked_limit: Some(8 << 20),
        descriptors: Some(1024),
    }
}

fn wanting(scope: KernelScope, events: &[KernelEvent]) -> KernelOptions {
    KernelOptions { scope, events: events.iter().copied().collect(), ..KernelOptions::default() }
}

fn cause(facts: &Facts, scope: KernelScope, event: KernelEvent, attempt: Attempt, errno: i32) -> Cause {
    let error = io::Error::from_raw_os_error(errno);
    explain(facts, &wanting(scope, &[event]), KernelPart::Events(event), attempt, &error).cause
}

const EPERM: i32 = 1;
const ESRCH: i32 = 3;
const EACCES: i32 = 13;
const EINVAL: i32 = 22;
const ENODEV: i32 = 19;
const EMFILE: i32 = 24;
const ENOSYS: i32 = 38;
const OPEN: Attempt = Attempt::Open { cpu: 0 };
const POINT: Attempt = Attempt::Tracepoint { cpu: 0 };
const OWN: KernelScope = KernelScope::Process(7);

#[test]
fn the_level_that_suffices_is_named() {
    let level = |scope, event, attempt| {
        let error = io::Error::from_raw_os_error(EACCES);
        let facts = Facts { paranoid: Some(4), ..facts() };
        explain(&facts, &wanting(scope, &[event]), KernelPart::Events(event), attempt, &error).remedy
    };
    let machine = KernelScope::Machine;
    for (remedy, expected) in [
        (level(machine, KernelEvent::Switches, OPEN), 0),
        (level(machine, KernelEvent::Wakeups, POINT), -1),
        (level(machine, KernelEvent::SystemCalls, POINT), -1),
        (level(OWN, KernelEvent::Switches, OPEN), 2),
        (level(OWN, KernelEvent::SystemCalls, POINT), 1),
        (level(OWN, KernelEvent::Wakeups, POINT), -1),
    ] {
        assert!(remedy.contains(&format!("perf_event_paranoid={expected}`")), "{expected}: {remedy}");
        assert!(remedy.contains("setcap cap_perfmon"), "{remedy}");
    }
}

#[test]
fn the_remedy_suffices_for_everything_wanted() {
    let error = io::Error::from_raw_os_error(EACCES);
    let obstacle = |events: &[KernelEvent]| {
        explain(&facts(), &wanting(KernelScope::Machine, events), KernelPart::Buffers, OPEN, &error)
    };
    let both = obstacle(&[KernelEvent::Switches, KernelEvent::Wakeups]);
    assert!(both.found.contains("must not exceed 0"), "{both}");
    assert!(both.remedy.contains("perf_event_paranoid=-1`"), "{both}");
    assert!(obstacle(&[KernelEvent::Switches]).remedy.contains("perf_event_paranoid=0`"));
}

#[test]
fn the_same_error_has_different_causes() {
    let (machine, switches) = (KernelScope::Machine, KernelEvent::Switches);
    let of = |facts: &Facts, scope| cause(facts, scope, switches, OPEN, EACCES);
    assert_eq!(of(&facts(), machine), Cause::Paranoid);
    assert_eq!(of(&Facts { paranoid: Some(0), ..facts() }, machine), Cause::SecurityModule);
    assert_eq!(of(&Facts { paranoid: Some(0), filtered: true, ..facts() }, machine), Cause::Seccomp);
    assert_eq!(of(&Facts { capabilities: CAP_PERFMON, ..facts() }, machine), Cause::SecurityModule);
    assert_eq!(of(&facts(), OWN), Cause::NotYours);
    assert_eq!(of(&Facts { paranoid: None, ..facts() }, machine), Cause::NoPerf);
}

#[test]
fn errors_that_are_no_refusals_are_told_apart() {
    let of = |scope, errno| cause(&facts(), scope, KernelEvent::Switches, OPEN, errno);
    assert_eq!(of(KernelScope::Machine, ENOSYS), Cause::NoPerf);
    assert_eq!(of(KernelScope::Machine, ENODEV), Cause::NoSuchProcessor);
    assert_eq!(of(KernelScope::Machine, EINVAL), Cause::TooOld);
    assert_eq!(of(KernelScope::Machine, EMFILE), Cause::Descriptors);
    assert_eq!(of(OWN, ESRCH), Cause::NoSuchProcess);
    assert_eq!(of(KernelScope::Machine, ESRCH), Cause::Other);
}

#[test]
fn locked_memory_names_what_would_suffice() {
    let error = io::Error::from_raw_os_error(EPERM);
    let attempt = Attempt::Map { bytes: 1 << 20 };
    let obstacle = explain(&facts(), &KernelOptions::default(), KernelPart::Buffers, attempt, &error);
    assert_eq!(obstacle.cause, Cause::LockedMemory);
    assert!(obstacle.found.contains("perf_event_mlock_kb is 516"), "{obstacle}");
    assert!(obstacle.remedy.contains("perf_event_mlock_kb=1028`"), "{obstacle}");
}

#[test]
fn tracefs_is_missing_closed_or_lacks_something() {
    let of = |facts: &Facts, error| explain_tracepoint(facts, KernelEvent::Wakeups, &error);
    let missing = of(&Facts { tracefs: Tracefs::Missing, ..facts() }, TracepointError::NoTracefs);
    assert!(missing.cause == Cause::NoTracefs && missing.remedy.contains("mount -t tracefs"), "{missing}");
    let closed = Facts { tracefs: Tracefs::Closed("/sys/kernel/tracing"), ..facts() };
    assert_eq!(of(&closed, TracepointError::NoTracefs).cause, Cause::TracefsUnreadable);
    let absent = of(&facts(), TracepointError::Missing("sched/sched_waking"));
    assert!(absent.cause == Cause::NoTracepoint && absent.found.contains("sched/sched_waking"), "{absent}");
}

#[test]
fn the_status_file_is_read_by_name() {
    let status = "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\nCapEff:\t0000004000000000\n";
    assert_eq!(field(status, "Seccomp:"), "2");
    assert_eq!(u64::from_str_radix(field(status, "CapEff:"), 16), Ok(CAP_PERFMON));
    assert_eq!(field(status, "NoSuch:"), "");
}
