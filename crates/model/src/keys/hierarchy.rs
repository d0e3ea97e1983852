//! The tables of schedulers and threads.

use super::Literal::Text;
use super::Presence::{Default, DefaultFrom, Optional, Required};
use super::{Key, Kind, TIME, Table, words};
use crate::hierarchy::ChildProcesses;

/// `[[scheduler]]`.
pub(crate) static SCHEDULER: Table = Table {
    header: "[[scheduler]]",
    doc: "A scheduler of a node's hierarchy, which takes the place of the strategy's lanes there. The one that is under \
          no other is the root and is given the node's processors.",
    keys: &[
        Key {
            name: "name",
            kind: Kind::Name,
            presence: Required,
            doc: "Unique among schedulers and threads.",
        },
        Key {
            name: "kind",
            kind: Kind::Scheduler,
            presence: Required,
            doc: "What it is: docs/policies.md has each kind, docs/guarantees.md what it accepts and gives.",
        },
        Key {
            name: "node",
            kind: Kind::NodeName,
            presence: DefaultFrom("the node of its parents, or the only node"),
            doc: "Which node the root schedules; all below it are on the same.",
        },
        Key {
            name: "quantum",
            kind: TIME,
            presence: DefaultFrom("10ms, for kinds that have a quantum"),
            doc: "How long a child runs before the scheduler chooses anew, above zero.",
        },
        Key {
            name: "takes",
            kind: Kind::SchedulerName,
            presence: DefaultFrom("the first with which everybody receives what it needs"),
            doc: "Of a join: the parent whose guarantee its child takes.",
        },
        Key {
            name: "under",
            kind: Kind::Many(&UNDER),
            presence: DefaultFrom("nobody: it is the root of its node"),
            doc: UNDER.doc,
        },
    ],
};

/// `[[thread]]`.
pub(crate) static THREAD: Table = Table {
    header: "[[thread]]",
    doc: "A thread under a scheduler. What it does is said by exactly one of work, run, pid and tid.",
    keys: &[
        Key {
            name: "name",
            kind: Kind::Name,
            presence: Required,
            doc: "Unique among schedulers and threads.",
        },
        Key { name: "under", kind: Kind::Many(&UNDER), presence: Required, doc: UNDER.doc },
        Key {
            name: "requires",
            kind: Kind::Guarantee,
            presence: DefaultFrom("nothing: it is content with what it is given"),
            doc: "The guarantee that it has to receive, such as \"PSBE 0.4 60ms\".",
        },
        Key {
            name: "work",
            kind: Kind::Work,
            presence: Optional,
            doc: "Synthetic work: \"cpu-bound\", or bursts that begin every period.",
        },
        Key {
            name: "run",
            kind: Kind::Command,
            presence: Optional,
            doc: "A command with its arguments, started for the run.",
        },
        Key {
            name: "pid",
            kind: Kind::Integer { min: 1, max: i32::MAX as i128 },
            presence: Optional,
            doc: "A process that is there already, by its number, with all of its threads.",
        },
        Key {
            name: "children",
            kind: Kind::Word(|| words(ChildProcesses::ALL, ChildProcesses::keyword)),
            presence: Default(Text(ChildProcesses::All.keyword())),
            doc: "Beside pid: which of the processes that it has started, and those of theirs, are scheduled with it: all, or those that it \
                  starts later.",
        },
        Key {
            name: "tid",
            kind: Kind::Integer { min: 1, max: i32::MAX as i128 },
            presence: Optional,
            doc: "One thread of a process that is there already, by its number (the folder /proc/PID/task has them all), without the \
                  other threads.",
        },
    ],
};

/// An entry of `under`.
pub(crate) static UNDER: Table = Table {
    header: "an entry of \"under\"",
    doc: "Who schedules it, as under = [{ scheduler = \"name\", ... }] with what it asks for: priority, share or guarantee, \
          as the kind of scheduler takes it. Several entries for a join and whatever else takes several processors.",
    keys: &[
        Key { name: "scheduler", kind: Kind::SchedulerName, presence: Required, doc: "The scheduler above." },
        Key {
            name: "priority",
            kind: Kind::Integer { min: i32::MIN as i128, max: i32::MAX as i128 },
            presence: Optional,
            doc: "Under fixed-priority: larger is higher. Under time-sharing: a level from 0 to 15.",
        },
        Key {
            name: "share",
            kind: Kind::Integer { min: 1, max: u32::MAX as i128 },
            presence: Optional,
            doc: "Under a scheduler of shares: a weight beside those of its siblings.",
        },
        Key {
            name: "warp",
            kind: TIME,
            presence: DefaultFrom("0s"),
            doc: "Under proportional-share and sfq, beside share: served by this much of virtual time earlier.",
        },
        Key {
            name: "guarantee",
            kind: Kind::Guarantee,
            presence: Optional,
            doc: "Under a scheduler of reservations or slower processors: what is reserved, such as \
                  \"RESBH 5ms 33ms\" or \"RESU 0.5\".",
        },
    ],
};
