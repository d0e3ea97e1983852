//! The families that Talea itself writes.

use super::{EventEntry, Family, Field, FieldKind, Part};
use std::borrow::Cow;

/// Every builtin family, in the order of their numbers.
pub const ALL: &[Family] = &[RUN, JOB, DISPATCH, KERNEL, HIERARCHY];

/// An [`EventEntry`] in a constant; functions cannot make one, for its borrowed lists would end with their call.
macro_rules! event {
    ($number:literal, $name:literal, $about:literal, [$($field:expr),* $(,)?] $(,)?) => {
        EventEntry {
            number: $number,
            name: Cow::Borrowed($name),
            about: Cow::Borrowed($about),
            fields: Cow::Borrowed(&[$($field),*]),
        }
    };
    ($number:literal, $name:literal, $about:literal, $fields:ident $(,)?) => {
        EventEntry {
            number: $number,
            name: Cow::Borrowed($name),
            about: Cow::Borrowed($about),
            fields: Cow::Borrowed($fields),
        }
    };
}

/// A [`Family`] in a constant.
macro_rules! family {
    ($number:literal, $name:literal, $about:literal, [$($event:expr),* $(,)?] $(,)?) => {
        Family {
            number: $number,
            name: Cow::Borrowed($name),
            about: Cow::Borrowed($about),
            events: Cow::Borrowed(&[$($event),*]),
        }
    };
}

use FieldKind::{Duration, I32, I64, Instant, Job, Text, U16, U32, U64};
use Part::{Arg, Causal, First, Second, Source};

/// A run's own events.
pub const RUN: Family = family!(
    0x00,
    "run",
    "The run itself: its beginning, its end, its threads, and what was lost.",
    [
        event!(
            1,
            "run-start",
            "A run began; planned_end is 0 for none.",
            [Field::new("planned_end", Instant, First), Field::new("node", U16, Source)],
        ),
        event!(
            2,
            "run-end",
            "A run ended; nothing after this instant counts; how is 1 if its process was gone, and not by its own word.",
            [Field::new("node", U16, Source), Field::new("how", U16, Arg)],
        ),
        event!(
            3,
            "lost",
            "Records before this one, after the instant since, are lost; ring is 65535 for the kernel's.",
            [
                Field::new("records", U64, First),
                Field::new("since", Instant, Second),
                Field::new("ring", U16, Source),
            ],
        ),
        event!(
            4,
            "thread",
            "A thread of the run is at work; lane is 65535 for one that serves no lane.",
            [
                Field::new("tid", U32, First),
                Field::new("pid", U32, First).shifted(32),
                Field::new("node", U32, Second),
                Field::new("lane", U16, Source),
                Field::new("role", U16, Arg),
            ],
        ),
    ],
);

const RELEASED: &[Field] = &[
    Field::new("job", Job, Causal),
    Field::new("lane", U16, Source),
    Field::new("nominal", Instant, First),
    Field::new("deadline", Instant, Second),
];

/// The events of jobs.
pub const JOB: Family = family!(
    0x01,
    "job",
    "The life of every job, from which all results are computed.",
    [
        event!(1, "release", "A job was released.", RELEASED),
        event!(
            2,
            "start",
            "A job began to execute; depth jobs were in its lane, itself included.",
            [Field::new("job", Job, Causal), Field::new("lane", U16, Source), Field::new("depth", U16, Arg)],
        ),
        event!(
            3,
            "preempt",
            "A running job lost its processor; by is all ones if unknown.",
            [Field::new("job", Job, Causal), Field::new("lane", U16, Source), Field::new("by", Job, First)],
        ),
        event!(
            4,
            "resume",
            "A preempted job got a processor again.",
            [Field::new("job", Job, Causal), Field::new("lane", U16, Source)],
        ),
        event!(5, "complete", "A job completed.", RELEASED),
        event!(
            6,
            "skip",
            "A job was not released; its whole instance is skipped.",
            [
                Field::new("job", Job, Causal),
                Field::new("lane", U16, Source),
                Field::new("nominal", Instant, First),
                Field::new("deadline", Instant, Second),
                Field::new("reason", U16, Arg),
            ],
        ),
        event!(
            7,
            "abort",
            "A job was aborted; running is 1 if it had its processor.",
            [
                Field::new("job", Job, Causal),
                Field::new("lane", U16, Source),
                Field::new("nominal", Instant, First),
                Field::new("deadline", Instant, Second),
                Field::new("running", U16, Arg),
            ],
        ),
    ],
);

/// What dispatching itself costs and does.
pub const DISPATCH: Family = family!(
    0x02,
    "dispatch",
    "What lies between the jobs: wake-ups, queueing, timers, messages, and their cost.",
    [
        event!(
            1,
            "cost",
            "A processor spent the time up to now on dispatching; kind says on what.",
            [
                Field::new("cost", Duration, First),
                Field::new("count", U32, Second),
                Field::new("node", U32, Second).shifted(32),
                Field::new("lane", U16, Source),
                Field::new("kind", U16, Arg),
            ],
        ),
        event!(2, "wake", "A lane's thread runs again after it slept.", [Field::new("lane", U16, Source)]),
        event!(
            3,
            "sleep",
            "A lane has nothing to do and its thread goes to sleep.",
            [Field::new("lane", U16, Source)],
        ),
        event!(
            4,
            "timer",
            "The release thread is about to release what was due at an instant.",
            [
                Field::new("due", Instant, First),
                Field::new("woken", Instant, Second),
                Field::new("node", U16, Source),
            ],
        ),
        event!(
            5,
            "send",
            "A completed job is told to an operation on another node.",
            [Field::new("job", Job, Causal), Field::new("to", U64, First), Field::new("lane", U16, Source)],
        ),
        event!(
            6,
            "receive",
            "Word of a predecessor of the job came from another node; sent is when it left, 0 if unknown.",
            [
                Field::new("job", Job, Causal),
                Field::new("sent", Instant, First),
                Field::new("lane", U16, Source),
            ],
        ),
    ],
);

const INTERRUPT: &[Field] = &[Field::new("irq", U64, First), Field::new("kind", U16, Arg)];

/// What the kernel did.
pub const KERNEL: Family = family!(
    0x03,
    "kernel",
    "The kernel's own view: who had which processor, who woke whom, interrupts and system calls.",
    [
        event!(
            1,
            "switch",
            "A processor went from one thread to another; a thread of all ones is not observed; preempted is 1 if the first \
             could go on.",
            [
                Field::new("from_tid", U32, First),
                Field::new("to_tid", U32, First).shifted(32),
                Field::new("from_pid", U32, Second),
                Field::new("to_pid", U32, Second).shifted(32),
                Field::new("preempted", U16, Arg),
            ],
        ),
        event!(
            2,
            "wakeup",
            "A thread was made ready; context is 1 for a thread, 2 for a soft interrupt, 3 for an interrupt.",
            [
                Field::new("tid", U32, First),
                Field::new("waker_tid", U32, First).shifted(32),
                Field::new("target_cpu", U32, Second),
                Field::new("priority", I32, Second).shifted(32),
                Field::new("context", U16, Arg),
            ],
        ),
        event!(3, "irq-enter", "An interrupt handler began; kind is 1 device, 2 soft, 3 local.", INTERRUPT),
        event!(4, "irq-exit", "An interrupt handler ended; kind is 1 device, 2 soft, 3 local.", INTERRUPT),
        event!(
            5,
            "syscall-enter",
            "A thread entered a system call.",
            [Field::new("number", U64, First), Field::new("tid", U32, Second)],
        ),
        event!(
            6,
            "syscall-exit",
            "A thread left a system call.",
            [
                Field::new("result", I64, First),
                Field::new("tid", U32, Second),
                Field::new("number", U32, Second).shifted(32),
            ],
        ),
        event!(
            7,
            "thread-name",
            "The name of a thread.",
            [
                Field::new("name", Text, First),
                Field::new("tid", U32, Causal),
                Field::new("pid", U32, Causal).shifted(32),
            ],
        ),
        event!(
            8,
            "thread-exit",
            "A thread ended.",
            [Field::new("tid", U32, First), Field::new("pid", U32, First).shifted(32)],
        ),
    ],
);

/// What hierarchies of schedulers say about themselves.
pub const HIERARCHY: Family = family!(
    0x04,
    "hierarchy",
    "Hierarchies of schedulers: guarantees that were not kept.",
    [event!(
        1,
        "violation",
        "A guarantee was broken in a window; side is 1 if less was received than promised, 2 if more.",
        [
            Field::new("amount", Duration, Causal),
            Field::new("edge", U16, Source),
            Field::new("from", Instant, First),
            Field::new("to", Instant, Second),
            Field::new("side", U16, Arg),
        ],
    )],
);
