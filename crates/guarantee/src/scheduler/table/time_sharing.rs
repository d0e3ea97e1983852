//! Time sharing, which promises nothing.

use super::{LACKS_NOTHING, rows};
use crate::conversion::table;
use crate::scheduler::{Alike, Asks, Declaration, Intake, Parameter, SchedulerKind};

/// What all of them have in common.
const SHARING: Declaration = Declaration {
    parameters: &[Parameter::TURN],
    intake: Intake::Several,
    asks: Asks::Level,
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
        intake: Intake::One,
        asks: Asks::Nothing,
        kernel_lacks: LACKS_NOTHING,
        place: 23,
        ..SHARING
    };
}
