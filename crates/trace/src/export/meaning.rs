//! What the numbers in fields of builtin events stand for, so that exports show names.

use crate::namespace::{Field, builtin};
use crate::{CostKind, Event, InterruptKind, Record, RunEnd, SkipReason, ThreadRole, WakeContext};

/// What a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Meaning {
    /// Itself.
    Number,
    /// The deadline of the record's job, of which there may be none; see [`Record::deadline`].
    Deadline,
    /// Index into [`crate::Metadata::nodes`].
    Node,
    /// Index into [`crate::Metadata::lanes`], or [`Record::NO_LANE`].
    Lane,
    /// Index into [`crate::Metadata::operations`].
    Operation,
    /// One of a list that the format fixes.
    Code(Codes),
}

/// A fixed list of values with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Codes {
    /// [`RunEnd`].
    RunEnd,
    /// [`SkipReason`].
    SkipReason,
    /// [`CostKind`].
    CostKind,
    /// [`ThreadRole`].
    ThreadRole,
    /// [`WakeContext`].
    WakeContext,
    /// [`InterruptKind`].
    InterruptKind,
}

impl Codes {
    /// The list's name, an identifier.
    pub fn name(self) -> &'static str {
        match self {
            Codes::RunEnd => "run_end",
            Codes::SkipReason => "skip_reason",
            Codes::CostKind => "cost_kind",
            Codes::ThreadRole => "thread_role",
            Codes::WakeContext => "wake_context",
            Codes::InterruptKind => "interrupt_kind",
        }
    }

    /// Values and their names.
    pub fn entries(self) -> &'static [(u16, &'static str)] {
        match self {
            Codes::RunEnd => &[(RunEnd::Over as u16, "over"), (RunEnd::CutOff as u16, "cut-off")],
            Codes::SkipReason => {
                &[(SkipReason::Overrun as u16, "overrun"), (SkipReason::Full as u16, "full")]
            }
            Codes::CostKind => &[
                (CostKind::Switch as u16, "switch"),
                (CostKind::Queue as u16, "queue"),
                (CostKind::Release as u16, "release"),
                (CostKind::Delivery as u16, "delivery"),
            ],
            Codes::ThreadRole => &[
                (ThreadRole::Lane as u16, "lane"),
                (ThreadRole::Release as u16, "release"),
                (ThreadRole::Receiver as u16, "receiver"),
                (ThreadRole::Program as u16, "program"),
                (ThreadRole::Companion as u16, "companion"),
            ],
            Codes::WakeContext => &[
                (WakeContext::Thread as u16, "thread"),
                (WakeContext::SoftInterrupt as u16, "soft-interrupt"),
                (WakeContext::Interrupt as u16, "interrupt"),
            ],
            Codes::InterruptKind => &[
                (InterruptKind::Device as u16, "device"),
                (InterruptKind::Soft as u16, "soft"),
                (InterruptKind::Local as u16, "local"),
            ],
        }
    }

    /// The name of `value`, if the list has it.
    pub fn label(self, value: u64) -> Option<&'static str> {
        self.entries().iter().find(|(code, _)| u64::from(*code) == value).map(|(_, name)| *name)
    }
}

/// What the numbers in `field` of `event` stand for. Fields of other families than the builtin ones are numbers.
pub(super) fn of(event: Event, field: &Field) -> Meaning {
    if usize::from(event.family()) >= builtin::ALL.len() {
        return Meaning::Number;
    }
    match (event, field.name.as_ref()) {
        (Event::RUN_END, "how") => Meaning::Code(Codes::RunEnd),
        (Event::SKIP, "reason") => Meaning::Code(Codes::SkipReason),
        (Event::COST, "kind") => Meaning::Code(Codes::CostKind),
        (Event::THREAD, "role") => Meaning::Code(Codes::ThreadRole),
        (Event::WAKEUP, "context") => Meaning::Code(Codes::WakeContext),
        (Event::IRQ_ENTER | Event::IRQ_EXIT, "kind") => Meaning::Code(Codes::InterruptKind),
        (Event::SEND, "to") => Meaning::Operation,
        (Event::RELEASE | Event::COMPLETE | Event::SKIP | Event::ABORT, "deadline") => Meaning::Deadline,
        (_, "lane") => Meaning::Lane,
        (_, "node") => Meaning::Node,
        _ => Meaning::Number,
    }
}

/// The value of `lane` fields that name none.
pub(super) const NO_LANE: u64 = Record::NO_LANE as u64;
