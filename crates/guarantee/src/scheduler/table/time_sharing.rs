//! Time sharing and explicit plans, which promise nothing.

use super::{LACKS_NOTHING, rows};
use crate::conversion::table;
use crate::scheduler::{
    Affects, Alike, Asks, BelowSlower, Conserving, Declaration, Intake, Parameter, Preset, SchedulerKind,
    Timers, Values,
};

/// How long a turn is, and how those by levels treat their children.
const HABITS: &[Parameter] = &[
    Parameter::TURN,
    Parameter {
        name: "boost",
        values: Values::Integer { min: 0, max: 15 },
        preset: Preset::Integer(2),
        affects: Affects::Schedule,
        about: "By how many levels a child that wakes up is raised, up to the highest; it loses one with each quantum that it uses up.",
    },
    Parameter {
        name: "starvation",
        values: Values::Time,
        preset: Preset::Nanos(4_000_000_000),
        affects: Affects::Schedule,
        about: "How long a child waits in vain before it is let through, for twice the quantum at the highest level.",
    },
    Parameter {
        name: "base_level",
        values: Values::Integer { min: 0, max: 15 },
        preset: Preset::Integer(8),
        affects: Affects::Schedule,
        about: "The level of children that ask for none.",
    },
];

/// What all of them have in common.
const SHARING: Declaration = Declaration {
    parameters: HABITS,
    intake: Intake::Several,
    asks: Asks::Level,
    conserving: Conserving::Always,
    timers: Timers::Quanta,
    conversions: &table::TIME_SHARING,
    kernel_lacks: "the kernel shares time in another way (kind \"linux\" is its way)",
    ..Declaration::PLAIN
};

rows! {
    /// Any time-sharing scheduler.
    TIME_SHARING = Declaration {
        name: "time-sharing",
        about: "Sixteen levels of priority; the children of the highest level that want to run take turns. A child that wakes up is raised for a \
                while, one that uses its quantum up is lowered again, and one that has waited for long runs once.",
        source: "after desktop systems; Solomon and Russinovich 2000",
        place: 5,
        ..SHARING
    };
    /// The scheduler of Linux for ordinary threads.
    LINUX = Declaration {
        name: "linux",
        about: "As Linux schedules ordinary threads: where possible the kernel itself does it, elsewhere it is time-sharing.",
        source: "Linux",
        alike: Some(Alike::Code("time-sharing")),
        kernel_lacks: LACKS_NOTHING,
        place: 10,
        ..SHARING
    };
    /// The scheduler of Windows 2000.
    WINDOWS_2000 = Declaration {
        name: "windows-2000",
        about: "As Windows 2000 schedules ordinary threads.",
        source: "Solomon and Russinovich 2000",
        alike: Some(Alike::Code("time-sharing")),
        place: 11,
        ..SHARING
    };
    /// Everybody in turn for a quantum.
    ROUND_ROBIN = Declaration {
        name: "round-robin",
        about: "Runs the children in turn, for a quantum at a time.",
        source: "folklore",
        alike: Some(Alike::Promises("time-sharing")),
        parameters: &[Parameter::TURN],
        intake: Intake::One,
        asks: Asks::Nothing,
        kernel_lacks: LACKS_NOTHING,
        place: 23,
        ..SHARING
    };
    /// An explicit plan (Niehaus et al.: KURT).
    EXPLICIT_PLAN = Declaration {
        name: "explicit-plan",
        about: "Follows a plan that says who runs when and for how long. An entry that is late, because whoever it is for came late or the \
                processor was elsewhere, is served as soon as possible for its whole duration, so that later ones may be late too: no \
                guarantee is made of a plan. An entry that nobody has come for until its duration has passed is forfeited.",
        source: "Niehaus et al.: KURT",
        alike: Some(Alike::Promises("time-sharing")),
        parameters: &[
            Parameter::PLAN,
            Parameter::CYCLE,
            Parameter {
                name: "gaps",
                values: Values::Word(&["released", "event-driven"]),
                preset: Preset::Word("released"),
                affects: Affects::Schedule,
                about: "Who runs while no entry is being served: nobody of this scheduler (released, KURT's focused mode), or the children \
                        that want to, in the order in which they began to want to (event-driven).",
            },
        ],
        intake: Intake::One,
        asks: Asks::Nothing,
        below_slower: BelowSlower::Unknown,
        conserving: Conserving::Unstated,
        timers: Timers::Plan,
        kernel_lacks: "the kernel follows no plans",
        place: 28,
        ..SHARING
    };
}
