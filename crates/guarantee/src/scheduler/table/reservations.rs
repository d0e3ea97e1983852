//! Reservations and uniformly slower processors: what is asked for is given if it can be admitted.

use super::{LACKS_NOTHING, rows};
use crate::conversion::admission::Test;
use crate::conversion::{self, table};
use crate::guarantee::Kind;
use crate::scheduler::{
    Affects, Alike, Asks, Behind, BelowSlower, Children, Conserving, Deadlines, Declaration, Parameter,
    Periods, Plans, Preset, SchedulerKind, Timers, Values,
};

/// What all of them have in common.
const ADMITTING: Declaration =
    Declaration { admission: Some(Test::Utilisation), convert: conversion::reserve, ..Declaration::PLAIN };

/// What hard reservations by earliest deadline have in common.
const HARD: Declaration = Declaration {
    asks: Asks::Guarantee(&[Kind::Resbh]),
    conversions: &table::HARD,
    convert: conversion::reserve_of_share,
    ..ADMITTING
};

/// What both Rialtos have in common.
const RIALTO: Declaration = Declaration {
    parameters: &[Parameter::TURN],
    asks: Asks::GuaranteeOrJobs(&[Kind::Rescs]),
    admission: Some(Test::PowersOfTwo),
    conversions: &table::RIALTO,
    below_slower: BelowSlower::Unknown,
    plans: Plans::Everything,
    kernel_lacks: "the kernel follows no plans",
    ..ADMITTING
};

/// What both kinds of uniformly slower processors have in common.
const SLOWER: Declaration = Declaration {
    behind: Behind::Deadlines,
    parameters: &[Parameter::TURN],
    asks: Asks::Guarantee(&[Kind::Resu]),
    conversions: &table::SLOWER,
    deadlines: Deadlines::GoneBy,
    kernel_lacks: "the kernel knows of no deadlines of single bursts",
    ..ADMITTING
};

rows! {
    /// The reservation scheduler of HLS: EDF with budgets.
    RESERVATION = Declaration {
        name: "reservation",
        about: "Gives every child its budget in every period, the one whose period ends first before the others. A child whose budget is used \
                up waits for its next period.",
        source: "Regehr and Stankovic 2001; Abeni and Buttazzo 1998",
        periods: Periods::WhenUnsafe,
        timers: Timers::Budgets,
        kernel_lacks: LACKS_NOTHING,
        place: 4,
        ..HARD
    };
    /// Constant-bandwidth servers that stop when their budget is used (Abeni and Buttazzo 1998).
    CBS = Declaration {
        name: "cbs",
        synonyms: &["constant-bandwidth"],
        about: "Constant-bandwidth servers (CBS) that stop at the end of their budget.",
        source: "Abeni and Buttazzo 1998",
        alike: Some(Alike::Code("reservation")),
        periods: Periods::WhenUnsafe,
        timers: Timers::Budgets,
        kernel_lacks: LACKS_NOTHING,
        place: 8,
        ..HARD
    };
    /// Total-bandwidth servers (Spuri and Buttazzo 1996).
    TBS = Declaration {
        name: "tbs",
        synonyms: &["total-bandwidth"],
        about: "Total-bandwidth servers (TBS): each request gets the deadline by which it can be served at the reserved rate, and the one \
                with the earliest deadline is served first, in pieces of at most the budget. No child is stopped at the end of its budget.",
        source: "Spuri and Buttazzo 1996",
        asks: Asks::Guarantee(&[Kind::Resbs]),
        conversions: &table::SOFT,
        kernel_lacks: "a deadline thread of the kernel stops at the end of its budget, this one's do not",
        place: 20,
        ..ADMITTING
    };
    /// The resource kernel: rate-monotonic reserves, hard or soft (Oikawa and Rajkumar 1999).
    RESOURCE_KERNEL = Declaration {
        name: "resource-kernel",
        about: "Gives every child its reserve, an amount in every period; the one with the shortest period runs first. Reserves are \
                admitted by their response times. When its hard reserve is used up, a child stops; when a soft one is, it competes \
                with the children that have no reserve.",
        source: "Oikawa and Rajkumar 1999",
        parameters: &[
            Parameter::TURN,
            Parameter {
                name: "enforcement",
                values: Values::Word(&["soft", "firm"]),
                preset: Preset::Word("soft"),
                affects: Affects::Schedule,
                about: "What a child may do whose soft reserve (RESBS) is used up: compete with the children that have none (soft), or \
                        run only when no other child wants to (firm).",
            },
        ],
        asks: Asks::Guarantee(&[Kind::Resbs, Kind::Resbh]),
        admission: Some(Test::RateMonotonic),
        conversions: &table::KERNEL,
        timers: Timers::Budgets,
        convert: conversion::reserve_of_share,
        below_slower: BelowSlower::Unknown,
        periods: Periods::WhenOver,
        kernel_lacks: "the kernel orders reservations by deadline, this one by period",
        place: 14,
        ..ADMITTING
    };
    /// Rialto: a precomputed schedule (Jones, Rosu and Rosu 1997).
    RIALTO = Declaration {
        name: "rialto",
        about: "Continuous reservations by a precomputed plan: every child has slots at the same offsets in each of its periods, which are \
                shortened to powers of two of a common one. Children without a slot run in the time that is left. A child that \
                reserves nothing asks for a time constraint for each burst, when it begins: its worst case by its deadline. It is \
                accepted if what is left suffices for all of them by earliest deadline first; else the burst takes turns with the others. \
                Lanes that reserve nothing ask for the job that they have elected, for what remains of its worst case, and end that \
                constraint when they elect another one.",
        source: "Jones, Roşu and Roşu 1997",
        place: 15,
        ..RIALTO
    };
    /// Rialto/NT (Jones and Regehr 1999).
    RIALTO_NT = Declaration {
        name: "rialto-nt",
        about: "As rialto, which was published a second time for Windows NT.",
        source: "Jones and Regehr 1999",
        alike: Some(Alike::Code("rialto")),
        place: 16,
        ..RIALTO
    };
    /// Spring: a plan made on arrival (Stankovic et al. 1999).
    SPRING = Declaration {
        name: "spring",
        about: "Plans when a child is added: a reservation is one uninterrupted piece in each period, and further children are admitted if \
                the plan has room. The search for a plan is bounded, so that it may refuse a child that would fit. A \
                child that reserves nothing asks for a guarantee for each burst, when it begins: one piece of its worst case by its \
                deadline. It is accepted if an order of all pieces is found; else the burst takes turns with the others. Lanes that \
                reserve nothing ask for the job that they have elected, for what remains of its worst case, and end that guarantee when \
                they elect another one.",
        source: "Stankovic et al. 1999",
        parameters: &[
            Parameter::TURN,
            Parameter {
                name: "effort",
                values: Values::Integer { min: 1, max: 1_000_000 },
                preset: Preset::Integer(24_000),
                affects: Affects::Schedule,
                about: "How many choices are tried for each child, some for each piece of the longest plan, before it is refused; and as \
                        many for each burst or job of a child that reserves nothing.",
            },
        ],
        asks: Asks::GuaranteeOrJobs(&[Kind::Resbh]),
        below_slower: BelowSlower::Unknown,
        plans: Plans::Everything,
        kernel_lacks: "the kernel follows no plans",
        place: 19,
        conversions: &table::PLANNED,
        convert: conversion::reserve,
        ..HARD
    };
    /// Statistical rate-monotonic scheduling: an allowance in every superperiod (Atlas and Bestavros 1998).
    SRMS = Declaration {
        name: "srms",
        synonyms: &["statistical-rate-monotonic"],
        about: "Statistical rate-monotonic scheduling: a child has an allowance in every superperiod, which is the next longer period. A job \
                is admitted at its release if its execution time fits into what is left of the allowance, and else runs in the \
                background. So no guarantee covers all jobs.",
        source: "Atlas and Bestavros 1998",
        parameters: &[Parameter::TURN],
        children: Children::Bursts,
        asks: Asks::Guarantee(&[Kind::Resbh]),
        admission: Some(Test::Harmonic),
        conversions: &table::STATISTICAL,
        convert: conversion::admitted_job_by_job,
        kernel_lacks: "the kernel admits threads, not single bursts",
        place: 21,
        ..ADMITTING
    };
    /// BSS-I: uniformly slower processors (Lipari and Baruah 2000).
    BSS_I = Declaration {
        name: "bss-i",
        about: "Bandwidth-sharing servers: each child has a processor that is uniformly slower by its rate, if it announces its deadlines and \
                keeps them.",
        source: "Lipari and Baruah 2000",
        place: 6,
        ..SLOWER
    };
    /// PShED: the same with protection of applications from each other (Lipari, Carpenter and Baruah 2000).
    PSHED = Declaration {
        name: "pshed",
        about: "As bss-i, with protection of the children from each other.",
        source: "Lipari, Carpenter and Baruah 2000",
        alike: Some(Alike::Code("bss-i")),
        place: 7,
        ..SLOWER
    };
    /// Constant-bandwidth servers as published, which do not stop (Abeni and Buttazzo 1998).
    SOFT_CBS = Declaration {
        behind: Behind::Periods,
        name: "soft-cbs",
        about: "Constant-bandwidth servers as published: a child that has used up its budget goes on with a deadline one period later, \
                so that the processor is never idle while a child wants it. Time that a child receives in advance may be missing later, \
                so only the share in the long run is promised. The same code as reservation but for what a child does whose budget is used up.",
        source: "Abeni and Buttazzo 1998",
        asks: Asks::Guarantee(&[Kind::Resbs]),
        conversions: &table::AVERAGE,
        conserving: Conserving::Always,
        timers: Timers::BudgetsReceived,
        convert: conversion::reserve_on_average,
        kernel_lacks: "a deadline thread of the kernel stops at the end of its budget, this one's do not",
        place: 27,
        ..ADMITTING
    };
}
