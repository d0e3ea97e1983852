//! Orders of jobs without an admission test, and the lanes of tasks.

use super::{LACKS_NOTHING, rows};
use crate::conversion::table;
use crate::scheduler::{
    Affects, Alike, Asks, Children, Conserving, Declaration, Parameter, Preset, SchedulerKind, Scope, Timers,
    Values,
};

/// What the orders have in common.
const ORDER: Declaration = Declaration {
    alike: Some(Alike::Promises("time-sharing")),
    parameters: &[Parameter {
        name: "capacity",
        values: Values::Integer { min: 1, max: 1_000_000 },
        preset: Preset::Integer(64),
        affects: Affects::Schedule,
        about: "How many of its threads can wait at a time before it takes more memory, which nothing else does while it runs.",
    }],
    children: Children::Threads,
    conversions: &table::TIME_SHARING,
    conserving: Conserving::Always,
    timers: Timers::None,
    kernel_lacks: "the kernel orders nobody by the deadlines of single bursts: SCHED_DEADLINE is a reservation",
    ..Declaration::PLAIN
};

rows! {
    /// In the order of arrival, without an admission test.
    FIFO = Declaration {
        name: "fifo",
        about: "Runs jobs in the order of arrival, without an admission test. The same code as edf and laxity, with another order.",
        source: "folklore",
        kernel_lacks: LACKS_NOTHING,
        place: 24,
        ..ORDER
    };
    /// Earliest deadline first, without an admission test.
    EDF = Declaration {
        name: "edf",
        about: "Runs the job with the earliest deadline (earliest deadline first), without an admission test. The same code as fifo and \
                laxity, with another order.",
        source: "Liu and Layland 1973",
        place: 25,
        ..ORDER
    };
    /// Least laxity first, without an admission test.
    LAXITY = Declaration {
        name: "laxity",
        about: "Runs the job with the least laxity, the time that it can still wait and make its deadline, without an admission test. \
                The same code as fifo and edf, with another order.",
        source: "Mok 1983",
        place: 26,
        ..ORDER
    };
    /// Tasks of the node, in the lanes into which the strategy sorts them.
    LANES = Declaration {
        name: "lanes",
        about: "A place of tasks in a hierarchy: it stands for all lanes into which the strategy sorts those that name it, or all of \
                the node where it is the only one.",
        source: "Kokyu: Gill et al. 2002",
        children: Children::Tasks,
        asks: Asks::NoChildren,
        timers: Timers::None,
        kernel_lacks: "the order inside lanes is decided by their threads",
        scope: Scope::Files,
        ..Declaration::PLAIN
    };
}
