//! Tracepoints: which ones there are for each kind of event, and where their fields stand.
//!
//! Numbers and layouts differ between kernels and are read from tracefs.

use super::decode::{CONTEXT_FLAGS_AT, THREAD_AT};
use super::options::KernelEvent;
use super::preflight::{Facts, Tracefs};
use std::io;
use talea_record::InterruptKind;
use tracepoint_decode::PerfEventFormat;

/// A field of fixed width in a tracepoint's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldAt {
    pub offset: usize,
    pub size: usize,
}

/// What a tracepoint says and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Wakeup {
        tid: FieldAt,
        priority: FieldAt,
        cpu: FieldAt,
    },
    /// A thread was moved to another processor; it corrects the wake-up of the same thread before it.
    Move {
        tid: FieldAt,
        cpu: FieldAt,
    },
    Interrupt {
        edge: Edge,
        kind: InterruptKind,
        number: FieldAt,
    },
    SyscallEnter {
        number: FieldAt,
    },
    SyscallExit {
        number: FieldAt,
        result: FieldAt,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Enter,
    Exit,
}

/// A tracepoint of this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracepoint {
    pub id: u16,
    pub meaning: Meaning,
}

/// Whether an event can be had without a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// No.
    Required,
    /// Some machines do not have it.
    WhereItExists,
}

/// A tracepoint by its place in tracefs.
struct Wanted {
    place: &'static str,
    need: Need,
    meaning: fn(&PerfEventFormat) -> Option<Meaning>,
}

const WAKEUPS: &[Wanted] = &[
    Wanted { place: "sched/sched_waking", need: Need::Required, meaning: wakeup },
    Wanted { place: "sched/sched_wakeup_new", need: Need::Required, meaning: wakeup },
    Wanted { place: "sched/sched_migrate_task", need: Need::WhereItExists, meaning: migration },
];

const SYSCALLS: &[Wanted] = &[
    Wanted {
        place: "raw_syscalls/sys_enter",
        need: Need::Required,
        meaning: |format| Some(Meaning::SyscallEnter { number: field(format, "id")? }),
    },
    Wanted {
        place: "raw_syscalls/sys_exit",
        need: Need::Required,
        meaning: |format| {
            Some(Meaning::SyscallExit { number: field(format, "id")?, result: field(format, "ret")? })
        },
    },
];

/// The interrupts of a processor's own controller have tracepoints of their own on x86; elsewhere the timer is an
/// interrupt like any other. Those of irq_work are left out: perf causes them itself, so the kernel refuses them to perf.
const INTERRUPTS: &[Wanted] = &[
    Wanted { place: "irq/irq_handler_entry", need: Need::Required, meaning: |f| handler(f, Edge::Enter) },
    Wanted { place: "irq/irq_handler_exit", need: Need::Required, meaning: |f| handler(f, Edge::Exit) },
    Wanted { place: "irq/softirq_entry", need: Need::Required, meaning: |f| softirq(f, Edge::Enter) },
    Wanted { place: "irq/softirq_exit", need: Need::Required, meaning: |f| softirq(f, Edge::Exit) },
    local("irq_vectors/local_timer_entry", |f| vector(f, Edge::Enter)),
    local("irq_vectors/local_timer_exit", |f| vector(f, Edge::Exit)),
    local("irq_vectors/reschedule_entry", |f| vector(f, Edge::Enter)),
    local("irq_vectors/reschedule_exit", |f| vector(f, Edge::Exit)),
    local("irq_vectors/call_function_entry", |f| vector(f, Edge::Enter)),
    local("irq_vectors/call_function_exit", |f| vector(f, Edge::Exit)),
    local("irq_vectors/call_function_single_entry", |f| vector(f, Edge::Enter)),
    local("irq_vectors/call_function_single_exit", |f| vector(f, Edge::Exit)),
];

const fn local(place: &'static str, meaning: fn(&PerfEventFormat) -> Option<Meaning>) -> Wanted {
    Wanted { place, need: Need::WhereItExists, meaning }
}

fn wakeup(format: &PerfEventFormat) -> Option<Meaning> {
    Some(Meaning::Wakeup {
        tid: field(format, "pid")?,
        priority: field(format, "prio")?,
        cpu: field(format, "target_cpu")?,
    })
}

fn migration(format: &PerfEventFormat) -> Option<Meaning> {
    Some(Meaning::Move { tid: field(format, "pid")?, cpu: field(format, "dest_cpu")? })
}

fn handler(format: &PerfEventFormat, edge: Edge) -> Option<Meaning> {
    Some(Meaning::Interrupt { edge, kind: InterruptKind::Device, number: field(format, "irq")? })
}

fn softirq(format: &PerfEventFormat, edge: Edge) -> Option<Meaning> {
    Some(Meaning::Interrupt { edge, kind: InterruptKind::Soft, number: field(format, "vec")? })
}

fn vector(format: &PerfEventFormat, edge: Edge) -> Option<Meaning> {
    Some(Meaning::Interrupt { edge, kind: InterruptKind::Local, number: field(format, "vector")? })
}

/// A number of 4 or 8 bytes.
fn field(format: &PerfEventFormat, name: &str) -> Option<FieldAt> {
    let field = format.fields().iter().find(|field| field.name() == name)?;
    let (offset, size) = (usize::from(field.offset()), usize::from(field.size()));
    matches!(size, 4 | 8).then_some(FieldAt { offset, size })
}

/// Why a tracepoint is not to be had.
#[derive(Debug)]
pub(super) enum TracepointError {
    /// There is no tracefs to look in.
    NoTracefs,
    /// This kernel does not have it.
    Missing(&'static str),
    /// Its description cannot be read.
    Unreadable(&'static str, io::Error),
    /// Its description lacks a field.
    Strange(&'static str),
}

/// The tracepoints that `event` is made of; none for events that are not.
///
/// # Errors
/// The first that is required and cannot be had.
pub(super) fn of_event(event: KernelEvent, facts: &Facts) -> Result<Vec<Tracepoint>, TracepointError> {
    let wanted = match event {
        KernelEvent::Switches | KernelEvent::Names => return Ok(Vec::new()),
        KernelEvent::Wakeups => WAKEUPS,
        KernelEvent::Interrupts => INTERRUPTS,
        KernelEvent::SystemCalls => SYSCALLS,
    };
    let Tracefs::At(root) = &facts.tracefs else { return Err(TracepointError::NoTracefs) };
    let mut found = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        match std::fs::read_to_string(format!("{root}/events/{}/format", wanted.place)) {
            Ok(text) => found.push(parse(wanted, &text).ok_or(TracepointError::Strange(wanted.place))?),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(TracepointError::Unreadable(wanted.place, error));
            }
            Err(_) if wanted.need == Need::WhereItExists => {}
            Err(_) => return Err(TracepointError::Missing(wanted.place)),
        }
    }
    Ok(found)
}

fn parse(wanted: &Wanted, text: &str) -> Option<Tracepoint> {
    let system = wanted.place.split('/').next().unwrap_or_default();
    let format = PerfEventFormat::parse(cfg!(target_pointer_width = "64"), system, text)?;
    let place = |name| Some(usize::from(format.fields().iter().find(|field| field.name() == name)?.offset()));
    if (place("common_flags")?, place("common_pid")?) != (CONTEXT_FLAGS_AT, THREAD_AT) {
        return None;
    }
    Some(Tracepoint { id: u16::try_from(format.id()).ok()?, meaning: (wanted.meaning)(&format)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAKING: &str = "name: sched_waking
ID: 375
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;

print fmt: \"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, REC->target_cpu
";

    #[test]
    fn fields_are_found_by_name() {
        let at = |offset| FieldAt { offset, size: 4 };
        let meaning = Meaning::Wakeup { tid: at(24), priority: at(28), cpu: at(32) };
        assert_eq!(parse(&WAKEUPS[0], WAKING), Some(Tracepoint { id: 375, meaning }));
    }

    #[test]
    fn a_layout_without_a_field_is_refused_not_guessed() {
        assert_eq!(parse(&WAKEUPS[0], &WAKING.replace("target_cpu;", "cpu;")), None);
        assert_eq!(parse(&WAKEUPS[0], &WAKING.replace("offset:24;\tsize:4", "offset:24;\tsize:3")), None);
        assert_eq!(
            parse(&WAKEUPS[0], &WAKING.replace("common_pid;\toffset:4", "common_pid;\toffset:8")),
            None
        );
        assert_eq!(parse(&WAKEUPS[0], ""), None);
        assert_eq!(parse(&WAKEUPS[0], &WAKING.replace("ID: 375", "ID: 99999999")), None);
    }
}
