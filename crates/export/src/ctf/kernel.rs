//! Kernel events under the names that LTTng gives them, so that what knows LTTng's kernel traces knows these.
//!
//! Trace Compass takes a trace for one of the kernel if its environment says `domain = "kernel"`, and builds its
//! views of processors and threads from `sched_switch`, `sched_wakeup`, `sched_process_exit` and `irq_handler_*`,
//! whose fields it finds by LTTng's names. What LTTng has and the records lack is derived: names of threads from
//! the latest thread-name record, priorities from the latest wake-up (120, the ordinary one, before; they are the kernel's, not LTTng's 100 less), and the state
//! in which a thread left its processor from whether it could have gone on. Soft interrupts, which are records of the
//! same events as others, are events of their own in LTTng, and here. System calls are called `unknown` with
//! their number as `id`, as LTTng calls those that it has no name for.

use super::layout::{Content, Layout, Type};
use talea_record::declaration::{Part, Place};
use talea_record::{Event, InterruptKind, NameSpace, Record, Typed};

/// What differs from the declaration.
#[derive(Debug)]
pub(super) struct KernelLayout {
    event: Event,
    /// Name of the event.
    pub name: &'static str,
    renamed: &'static [(&'static str, &'static str)],
    /// Members that stand before the declared fields.
    pub before: &'static [Extra],
}

/// A member that no field has.
#[derive(Debug)]
pub(super) struct Extra {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Type,
    /// Where it comes from.
    pub content: Content,
}

const FIRST_LOW: Place = Place { part: Part::First, shift: 0 };
const FIRST_HIGH: Place = Place { part: Part::First, shift: 32 };

/// Ids of soft interrupts in the export, which no record has.
const SOFT_ENTER: Event = Event(Event::IRQ_ENTER.0 | 0x80);
const SOFT_EXIT: Event = Event(Event::IRQ_EXIT.0 | 0x80);

const fn extra(name: &'static str, kind: Type, content: Content) -> Extra {
    Extra { name, kind, content }
}

const LAYOUTS: &[KernelLayout] = &[
    KernelLayout {
        event: Event::SWITCH,
        name: "sched_switch",
        renamed: &[
            ("from_tid", "prev_tid"),
            ("to_tid", "next_tid"),
            ("from_pid", "prev_pid"),
            ("to_pid", "next_pid"),
        ],
        before: &[
            extra("prev_comm", Type::Text, Content::ThreadName(FIRST_LOW)),
            extra("prev_prio", Type::Signed(32), Content::ThreadPriority(FIRST_LOW)),
            extra("prev_state", Type::Signed(64), Content::LeftState),
            extra("next_comm", Type::Text, Content::ThreadName(FIRST_HIGH)),
            extra("next_prio", Type::Signed(32), Content::ThreadPriority(FIRST_HIGH)),
        ],
    },
    KernelLayout {
        event: Event::WAKEUP,
        name: "sched_wakeup",
        renamed: &[("priority", "prio")],
        before: &[extra("comm", Type::Text, Content::ThreadName(FIRST_LOW))],
    },
    KernelLayout { event: Event::IRQ_ENTER, name: "irq_handler_entry", renamed: &[], before: &[] },
    KernelLayout { event: Event::IRQ_EXIT, name: "irq_handler_exit", renamed: &[], before: &[] },
    KernelLayout { event: SOFT_ENTER, name: "softirq_entry", renamed: &[("irq", "vec")], before: &[] },
    KernelLayout { event: SOFT_EXIT, name: "softirq_exit", renamed: &[("irq", "vec")], before: &[] },
    KernelLayout {
        event: Event::SYSCALL_ENTER,
        name: "syscall_entry_unknown",
        renamed: &[("number", "id")],
        before: &[],
    },
    KernelLayout {
        event: Event::SYSCALL_EXIT,
        name: "syscall_exit_unknown",
        renamed: &[("number", "id"), ("result", "ret")],
        before: &[],
    },
    KernelLayout {
        event: Event::THREAD_EXIT,
        name: "sched_process_exit",
        renamed: &[],
        before: &[
            extra("comm", Type::Text, Content::ThreadName(FIRST_LOW)),
            extra("prio", Type::Signed(32), Content::ThreadPriority(FIRST_LOW)),
        ],
    },
];

/// What differs for `event`, if anything does.
pub(super) fn layout(event: Event) -> Option<&'static KernelLayout> {
    LAYOUTS.iter().find(|layout| layout.event == event)
}

impl KernelLayout {
    /// LTTng's name of a field.
    pub fn rename<'a>(&self, field: &'a str) -> &'a str {
        self.renamed.iter().find(|(ours, _)| *ours == field).map_or(field, |(_, lttng)| lttng)
    }
}

/// The event as which `record` is exported.
pub(super) fn split(record: &Record) -> Event {
    match record.typed() {
        Typed::IrqEnter(interrupt) if interrupt.kind == InterruptKind::Soft => SOFT_ENTER,
        Typed::IrqExit(interrupt) if interrupt.kind == InterruptKind::Soft => SOFT_EXIT,
        _ => record.event,
    }
}

/// The layouts of the events that only [`split`] gives.
pub(super) fn split_layouts(names: &NameSpace) -> impl Iterator<Item = Layout> {
    [(Event::IRQ_ENTER, SOFT_ENTER), (Event::IRQ_EXIT, SOFT_EXIT)].into_iter().filter_map(|(event, soft)| {
        let (family, entry) = names.event(event)?;
        Some(Layout::with_names(family, entry, soft, layout(soft)))
    })
}

/// The kernel's priority of a thread: 99 less a real-time priority, 100 to 139 of ordinary threads. Of one that was not seen to be made
/// ready it is taken to be the ordinary one, 120.
pub(super) fn priority(known: Option<i32>) -> i32 {
    known.unwrap_or(120)
}
