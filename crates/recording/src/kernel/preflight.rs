//! What stands between a program and the kernel's events, and who can remove it.
//!
//! Nothing is predicted: whether an event can be had is found out by opening it. [`Facts`] then explain a refusal, and
//! the explanation is a function of what was tried, the error and the facts alone.

use super::options::{KernelEvent, KernelOptions, KernelScope};
use super::tracepoint::TracepointError;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::fs::read_to_string;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;

/// A part of a stream that can be refused by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelPart {
    /// The buffers, without which there is nothing.
    Buffers,
    /// A kind of event.
    Events(KernelEvent),
}

impl fmt::Display for KernelPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelPart::Buffers => f.pad("buffers"),
            KernelPart::Events(event) => event.fmt(f),
        }
    }
}

/// Why a part cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// kernel.perf_event_paranoid forbids it to programs without CAP_PERFMON.
    Paranoid,
    /// A seccomp filter refuses the call, as container engines' default profiles do.
    Seccomp,
    /// The caller's privileges suffice, but something else refuses: a security module, or kernel lockdown.
    SecurityModule,
    /// The process belongs to somebody else.
    NotYours,
    /// There is no such process.
    NoSuchProcess,
    /// The kernel is built without perf events.
    NoPerf,
    /// The kernel does not know what is asked of it.
    TooOld,
    /// No tracefs is mounted.
    NoTracefs,
    /// The descriptions of tracepoints are not readable.
    TracefsUnreadable,
    /// The kernel has no such tracepoint, or describes it otherwise than expected.
    NoTracepoint,
    /// The buffers exceed what the user may lock.
    LockedMemory,
    /// Too many open files.
    Descriptors,
    /// A processor is offline or does not exist.
    NoSuchProcessor,
    /// Anything else that the system says.
    Other,
}

/// A refusal, with the way around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What cannot be had.
    pub part: KernelPart,
    /// Why, for programs.
    pub cause: Cause,
    /// Why, as a sentence with the values that decide.
    pub found: String,
    /// What to do, with commands.
    pub remedy: String,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.part, self.found, self.remedy)
    }
}

/// What can be had of what is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preflight {
    /// What can, in the order of [`KernelEvent::ALL`].
    pub available: Vec<KernelEvent>,
    /// What cannot.
    pub obstacles: Vec<Obstacle>,
    /// What to know about the events that can be had.
    pub caveats: Vec<String>,
}

/// Opens everything that `options` ask for, closes it again, and says what stood in the way. Takes some milliseconds
/// and changes nothing.
pub fn preflight(options: &KernelOptions) -> Preflight {
    super::assemble::assemble(options, &Facts::read()).preflight(options)
}

/// Where tracepoints are described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tracefs {
    /// A directory with readable descriptions.
    At(&'static str),
    /// It is there, but closed to this process.
    Closed(&'static str),
    /// Not mounted.
    Missing,
}

/// What decides about perf events in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// kernel.perf_event_paranoid; none if the kernel has no perf events.
    pub paranoid: Option<i32>,
    /// The effective capabilities.
    pub capabilities: u64,
    /// Whether a seccomp filter is in force.
    pub filtered: bool,
    /// Whether threads have the same numbers here as in the kernel's own messages.
    pub global_numbers: bool,
    pub tracefs: Tracefs,
    /// kernel.perf_event_mlock_kb, per processor and user.
    pub locked_kib: Option<u64>,
    /// RLIMIT_MEMLOCK in bytes; none for unlimited.
    pub locked_limit: Option<u64>,
    /// RLIMIT_NOFILE; none for unlimited.
    pub descriptors: Option<u64>,
}

const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
/// The number of the namespace file of the first pid namespace is part of the kernel's interface.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

impl Facts {
    pub fn read() -> Self {
        let number = |path: &str| read_to_string(path).ok()?.trim().parse().ok();
        let status = read_to_string("/proc/thread-self/status").unwrap_or_default();
        let namespace = std::fs::read_link("/proc/self/ns/pid");
        Facts {
            paranoid: number("/proc/sys/kernel/perf_event_paranoid").map(|level: i64| level as i32),
            capabilities: u64::from_str_radix(field(&status, "CapEff:"), 16).unwrap_or(0),
            filtered: !matches!(field(&status, "Seccomp:"), "" | "0"),
            global_numbers: namespace.map_or(true, |name| name.as_os_str() == FIRST_PID_NAMESPACE),
            tracefs: find_tracefs(),
            locked_kib: number("/proc/sys/kernel/perf_event_mlock_kb").map(|kib: i64| kib as u64),
            locked_limit: getrlimit(Resource::Memlock).current,
            descriptors: getrlimit(Resource::Nofile).current,
        }
    }

    fn is_privileged(&self) -> bool {
        self.capabilities & (CAP_PERFMON | CAP_SYS_ADMIN) != 0
    }
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
}

fn find_tracefs() -> Tracefs {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let mut closed = None;
    for place in places {
        match read_to_string(format!("{place}/events/sched/sched_waking/format")) {
            Ok(_) => return Tracefs::At(place),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => closed = closed.or(Some(place)),
            // Another tracepoint may be there although this one is not.
            Err(_) if std::path::Path::new(place).join("events/header_page").exists() => {
                return Tracefs::At(place);
            }
            Err(_) => {}
        }
    }
    closed.map_or_else(|| mounted_for_us().map_or(Tracefs::Missing, Tracefs::At), Tracefs::Closed)
}

/// A tracefs that this process alone sees, and that ends with it: where nobody has mounted one and the caller may.
fn mounted_for_us() -> Option<&'static str> {
    static MOUNT: OnceLock<Option<(OwnedFd, String)>> = OnceLock::new();
    let mount = || {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
        fsconfig_create(&context).ok()?;
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY;
        let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).ok()?;
        let place = format!("/proc/self/fd/{}", root.as_raw_fd());
        Some((root, place))
    };
    MOUNT.get_or_init(mount).as_ref().map(|(_root, place)| place.as_str())
}

/// What was tried when the system refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Opening an event that needs no tracepoint.
    Open { cpu: u16 },
    /// Opening a tracepoint.
    Tracepoint { cpu: u16 },
    /// Mapping a buffer of so many bytes.
    Map { bytes: usize },
    /// Listing the threads of a process.
    List,
}

/// The greatest kernel.perf_event_paranoid with which programs without privileges may make the attempt for an event.
fn paranoid_max(scope: KernelScope, event: Option<KernelEvent>, attempt: Attempt) -> i32 {
    match (scope, attempt) {
        (KernelScope::Machine, Attempt::Tracepoint { .. }) => -1,
        (KernelScope::Machine, _) => 0,
        // The kernel lets everybody trace their own system calls, given that they may look into the kernel at all.
        (KernelScope::Process(_), Attempt::Tracepoint { .. }) if event == Some(KernelEvent::SystemCalls) => 1,
        (KernelScope::Process(_), Attempt::Tracepoint { .. }) => -1,
        (KernelScope::Process(_), _) => 2,
    }
}

/// The greatest kernel.perf_event_paranoid with which such programs get all that is wanted.
fn paranoid_for_all(options: &KernelOptions) -> i32 {
    let each = options.events.iter().map(|event| match event {
        KernelEvent::Switches | KernelEvent::Names => 2,
        _ => paranoid_max(options.scope, Some(*event), Attempt::Tracepoint { cpu: 0 }),
    });
    each.chain([paranoid_max(options.scope, None, Attempt::Open { cpu: 0 })]).min().unwrap_or(2)
}

/// Explains why `attempt` failed with `error` when `part` was wanted.
pub(super) fn explain(
    facts: &Facts,
    options: &KernelOptions,
    part: KernelPart,
    attempt: Attempt,
    error: &io::Error,
) -> Obstacle {
    use rustix::io::Errno;
    let scope = options.scope;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let (cause, found, remedy) = match (attempt, errno) {
        (Attempt::Map { bytes }, Some(Errno::PERM | Errno::NOMEM)) => locked(facts, bytes),
        (_, Some(Errno::PERM | Errno::ACCESS)) => refused(facts, options, part, attempt, error),
        (_, Some(Errno::NOSYS)) => no_perf(),
        (_, Some(Errno::MFILE | Errno::NFILE)) => descriptors(facts),
        (Attempt::Open { cpu } | Attempt::Tracepoint { cpu }, Some(Errno::NODEV | Errno::NXIO)) => (
            Cause::NoSuchProcessor,
            format!("processor {cpu} is offline or does not exist"),
            "choose from those in /sys/devices/system/cpu/online".into(),
        ),
        (_, Some(Errno::SRCH | Errno::NOENT)) if matches!(scope, KernelScope::Process(_)) => (
            Cause::NoSuchProcess,
            format!("{} has ended or never was", process(scope)),
            "give the number of a running process".into(),
        ),
        // The library reports E2BIG, an attribute that the kernel does not know, in this way.
        (_, Some(Errno::INVAL)) | (_, None) => (
            Cause::TooOld,
            format!("the kernel does not know what is asked of it ({error})"),
            "use Linux 5.13 or later".into(),
        ),
        _ => (Cause::Other, error.to_string(), "see perf_event_open(2)".into()),
    };
    Obstacle { part, cause, found, remedy }
}

fn process(scope: KernelScope) -> String {
    match scope {
        KernelScope::Machine => "the machine".into(),
        KernelScope::Process(pid) => format!("process {pid}"),
    }
}

fn refused(
    facts: &Facts,
    options: &KernelOptions,
    part: KernelPart,
    attempt: Attempt,
    error: &io::Error,
) -> (Cause, String, String) {
    const CAPABILITY: &str = "`sudo setcap cap_perfmon+ep $(command -v talea)`";
    let scope = options.scope;
    let Some(paranoid) = facts.paranoid else { return no_perf() };
    let event = match part {
        KernelPart::Events(event) => Some(event),
        KernelPart::Buffers => None,
    };
    let allowed = paranoid_max(scope, event, attempt);
    if !facts.is_privileged() && paranoid > allowed {
        let suffices = paranoid_for_all(options);
        return (
            Cause::Paranoid,
            format!(
                "kernel.perf_event_paranoid is {paranoid}, and for programs without CAP_PERFMON it must not exceed \
                 {allowed} for this"
            ),
            format!(
                "`sudo sysctl kernel.perf_event_paranoid={suffices}`, or {CAPABILITY}; in a container: \
                 `--cap-add=perfmon`"
            ),
        );
    }
    if let (KernelScope::Process(pid), false) = (scope, facts.is_privileged()) {
        return (
            Cause::NotYours,
            format!("process {pid} is not open to this user ({error})"),
            format!("run as the user of process {pid}, or {CAPABILITY}"),
        );
    }
    if facts.filtered {
        return (
            Cause::Seccomp,
            format!("a seccomp filter refuses perf_event_open ({error})"),
            "allow perf_event_open in the container's seccomp profile, or start it with `--cap-add=perfmon` or \
             `--security-opt seccomp=unconfined`"
                .into(),
        );
    }
    (
        Cause::SecurityModule,
        format!("refused although the privileges suffice ({error})"),
        "a security module or kernel lockdown forbids it: look at `cat /sys/kernel/security/lockdown` and \
         `dmesg | grep -i -e denied -e lockdown`"
            .into(),
    )
}

fn no_perf() -> (Cause, String, String) {
    (
        Cause::NoPerf,
        "the kernel has no perf events".into(),
        "use a kernel with CONFIG_PERF_EVENTS; under gVisor and the like there are none".into(),
    )
}

fn descriptors(facts: &Facts) -> (Cause, String, String) {
    let limit = facts.descriptors.map_or("unlimited".into(), |limit| limit.to_string());
    (
        Cause::Descriptors,
        format!("too many open files (the limit is {limit})"),
        "`ulimit -n 65536`; a process is followed with some files for each of its threads on each processor, so \
         follow it before it has many, or choose fewer processors"
            .into(),
    )
}

fn locked(facts: &Facts, bytes: usize) -> (Cause, String, String) {
    let kib = bytes.div_ceil(1024);
    let shown = |value: Option<u64>| value.map_or("unlimited".into(), |value| value.to_string());
    (
        Cause::LockedMemory,
        format!(
            "{kib} KiB of buffer for each processor exceed what this user may lock: kernel.perf_event_mlock_kb is {} \
             for each processor and all of the user's programs together, RLIMIT_MEMLOCK {} bytes",
            shown(facts.locked_kib),
            shown(facts.locked_limit)
        ),
        format!(
            "make the buffer smaller, or `sudo sysctl kernel.perf_event_mlock_kb={}`, or `ulimit -l unlimited`, or \
             `sudo setcap cap_perfmon,cap_ipc_lock+ep $(command -v talea)`",
            kib + 4
        ),
    )
}

/// Explains why a tracepoint that `event` is made of cannot be had.
pub(super) fn explain_tracepoint(facts: &Facts, event: KernelEvent, error: &TracepointError) -> Obstacle {
    const MOUNT: &str = "`sudo mount -t tracefs nodev /sys/kernel/tracing`";
    let (cause, found, remedy) = match (error, &facts.tracefs) {
        (TracepointError::NoTracefs, Tracefs::Closed(place)) => closed(place),
        (TracepointError::NoTracefs, _) => {
            (Cause::NoTracefs, "tracefs, which describes tracepoints, is not mounted".into(), MOUNT.into())
        }
        (TracepointError::Unreadable(place, error), _) if error.kind() == io::ErrorKind::PermissionDenied => {
            closed(place)
        }
        (TracepointError::Unreadable(place, error), _) => (
            Cause::TracefsUnreadable,
            format!("the description of {place} cannot be read: {error}"),
            MOUNT.into(),
        ),
        (TracepointError::Missing(place), _) => (
            Cause::NoTracepoint,
            format!("this kernel has no tracepoint {place}"),
            "use a kernel with CONFIG_TRACEPOINTS, CONFIG_FTRACE_SYSCALLS and CONFIG_EVENT_TRACING".into(),
        ),
        (TracepointError::Strange(place), _) => (
            Cause::NoTracepoint,
            format!("this kernel describes the tracepoint {place} in an unknown way"),
            format!("please report `cat /sys/kernel/tracing/events/{place}/format`"),
        ),
    };
    Obstacle { part: KernelPart::Events(event), cause, found, remedy }
}

fn closed(place: &str) -> (Cause, String, String) {
    (
        Cause::TracefsUnreadable,
        format!("the descriptions of tracepoints in {place} are not readable for this user"),
        "`sudo setcap cap_perfmon,cap_dac_read_search+ep $(command -v talea)`, or `sudo mount -o \
         remount,mode=750,gid=$(id -g) /sys/kernel/tracing`"
            .into(),
    )
}

#[cfg(test)]
mod tests;
