//! Schedulers that pass on, take away, or join what they are given.

use super::{LACKS_NOTHING, rows};
use crate::conversion::{self, table};
use crate::guarantee::Kind;
use crate::scheduler::{
    Asks, Behind, BelowSlower, Children, Conserving, Deadlines, Declaration, Intake, Parameter, Periods,
    SchedulerKind, Timers,
};

const REGEHR: &str = "Regehr and Stankovic 2001";

rows! {
    /// Preemptive, one virtual processor at each priority.
    FIXED_PRIORITY = Declaration {
        behind: Behind::PassedOn,
        name: "fixed-priority",
        about: "Runs the child with the highest priority that wants to run. The highest child is promised all that this scheduler receives, \
                the others nothing, since a higher one may run for ever.",
        source: REGEHR,
        intake: Intake::Several,
        asks: Asks::Priority,
        conversions: &table::FIXED_PRIORITY,
        convert: conversion::fixed_priority,
        conserving: Conserving::Always,
        timers: Timers::None,
        below_slower: BelowSlower::KeptUnderOneParent,
        deadlines: Deadlines::PassedOn,
        periods: Periods::PassedOn,
        kernel_lacks: LACKS_NOTHING,
        place: 0,
        ..Declaration::PLAIN
    };
    /// Runs its one child whenever any of its parents runs it.
    JOIN = Declaration {
        behind: Behind::PassedOn,
        name: "join",
        about: "Runs its one child whenever any of several parents runs it. The child takes the guarantee of one of them, without its \
                maximum.",
        source: REGEHR,
        parameters: &[Parameter::TAKES],
        intake: Intake::Several,
        children: Children::One,
        conversions: &table::JOIN,
        convert: conversion::join,
        conserving: Conserving::Always,
        timers: Timers::None,
        deadlines: Deadlines::PassedOn,
        periods: Periods::PassedOn,
        kernel_lacks: "in the kernel nobody runs in what any of several schedulers gives it",
        place: 1,
        ..Declaration::PLAIN
    };
    /// Stops its one child when the reserved amount is used.
    LIMIT = Declaration {
        behind: Behind::PassedOn,
        name: "limit",
        about: "Runs its one child until it has received its amount in the current period. So a soft reservation becomes a hard one.",
        source: REGEHR,
        children: Children::One,
        asks: Asks::AtMost(Kind::Resbh),
        conversions: &table::LIMIT,
        convert: conversion::limit,
        timers: Timers::Budgets,
        periods: Periods::AsAbove,
        kernel_lacks: "the kernel limits groups with periods of its own, not from a request on",
        place: 2,
        ..Declaration::PLAIN
    };
}
