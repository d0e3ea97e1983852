//! Every table and key of a system file, declared once.
//!
//! The reader refuses what is not declared here and fills in the defaults; the JSON Schema is
//! generated from the same declarations.

mod channel;
mod hierarchy;
mod parameters;
mod ports;

use crate::description::*;
use crate::trigger::{Communication, Excess};
use crate::validate::{CPU_LIMIT, NODE_LIMIT};
pub(crate) use channel::{CHANNEL, PRIORITY_BY, PUBLICATION, SUBSCRIPTION, TIMEOUT_BY};
pub(crate) use hierarchy::{SCHEDULER, THREAD, UNDER};
use ports::COUNT;
pub(crate) use ports::{CHAIN, INPUT, OUTPUT, TRIGGER};

/// A table of the file: what it is for and what may stand in it.
#[derive(Debug)]
pub(crate) struct Table {
    /// How its header is written, `[[task]]`, or what it is called without one; empty for the file itself.
    pub header: &'static str,
    /// What the table describes.
    pub doc: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub presence: Presence,
    /// For the schema: meaning and, where it is not obvious, effect.
    pub doc: &'static str,
}

/// What values a key takes.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A name given to the item.
    Name,
    /// A name of several words.
    Title,
    /// The name of a node.
    NodeName,
    /// The name of an output, with that of its operation.
    OutputName,
    /// Names of operations.
    OperationNames,
    /// Whole numbers by name, each in one of its forms.
    Fields,
    /// The name of a channel.
    ChannelName,
    /// Properties of quality of service by name.
    Properties,
    /// A type of events.
    EventType,
    /// Patterns of types of events.
    EventTypes,
    /// A text in the constraint language.
    Constraint,
    /// What has to come of several events and over time.
    Condition,
    /// One of the forms in which something outside happens.
    Arrivals,
    /// A word or a table.
    WordOr(&'static str, &'static Table),
    /// A time, or that it is inherited.
    Deadline,
    /// How many predecessors a subtask waits for: "all", "first" or a number.
    Join,
    /// The names of two nodes.
    TwoNodes,
    /// Names of subtasks of the same task.
    SubtaskNames,
    /// A number from 0 to 1.
    Share,
    /// A time with a unit.
    Time,
    /// One of these, the keywords of a type.
    Word(fn() -> Vec<&'static str>),
    /// A kind of scheduler.
    Scheduler,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// 0 to 4 or a name.
    Criticality,
    /// A whole number in a range, both ends included.
    Integer { min: i128, max: i128 },
    /// Processor numbers.
    Cpus,
    /// One of the forms of an execution time.
    Execution,
    /// The name of a scheduler.
    SchedulerName,
    /// The name of a scheduler of kind `lanes`.
    LanesName,
    /// A guarantee in its notation.
    Guarantee,
    /// One of the forms of a thread's synthetic work.
    Work,
    /// A command with its arguments.
    Command,
    /// Who runs when, or the file that says so.
    Plan,
    /// One table.
    One(&'static Table),
    /// A list of tables.
    Many(&'static Table),
    /// A key of the design that this version does not know yet; the text says what to do instead.
    Later(&'static str),
    /// A key of earlier versions; the text says what to write instead.
    Former(&'static str),
}

/// Whether a key must be there, and what it is if it is not.
#[derive(Debug)]
pub(crate) enum Presence {
    Required,
    Optional,
    Default(Literal),
    /// The default depends on something else, in words.
    DefaultFrom(&'static str),
}

/// A default value.
#[derive(Debug)]
pub(crate) enum Literal {
    Text(&'static str),
    Integer(i64),
    Integers(&'static [i64]),
}

impl Table {
    pub(crate) fn find(&self, name: &str) -> Option<&'static Key> {
        self.every().find(|key| key.name == name)
    }

    /// All its keys: the declared ones, and in a scheduler's table the parameters of all kinds.
    fn every(&self) -> impl Iterator<Item = &'static Key> + Clone + use<> {
        let parameters = if std::ptr::eq(self, &SCHEDULER) { parameters::keys() } else { Vec::new() };
        self.keys.iter().chain(parameters)
    }

    /// Whether it stands in a list within a line instead of having a header.
    pub(crate) fn is_inline(&self) -> bool {
        self.entry().is_some()
    }

    /// How an entry is written that stands in a list within a line.
    pub(crate) fn entry(&self) -> Option<&'static str> {
        match () {
            () if std::ptr::eq(self, &UNDER) => Some("{ scheduler = \"...\" }"),
            () if std::ptr::eq(self, &OUTPUT) => Some("{ name = \"...\" }"),
            () if std::ptr::eq(self, &INPUT) => Some("{ name = \"...\", from = \"task.output\" }"),
            () if std::ptr::eq(self, &TRIGGER) => Some("{ output = \"task.output\" }"),
            () if std::ptr::eq(self, &PUBLICATION) => Some("{ channel = \"...\", type = \"Domain/Name\" }"),
            () if std::ptr::eq(self, &PRIORITY_BY) => Some("{ filter = \"...\", priority = 1 }"),
            () if std::ptr::eq(self, &TIMEOUT_BY) => Some("{ filter = \"...\", timeout = \"...\" }"),
            () if std::ptr::eq(self, &SUBSCRIPTION) => Some("{ channel = \"...\" }"),
            () => None,
        }
    }

    /// The parameters of schedulers among its keys, but for those that every reader knows.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.every().skip(self.keys.len())
    }

    /// The keys that can be written.
    pub(crate) fn known(&self) -> impl Iterator<Item = &'static Key> + Clone + use<> {
        self.every().filter(|key| !matches!(key.kind, Kind::Later(_) | Kind::Former(_)))
    }
}

use Literal::{Integer, Integers, Text};
use Presence::{Default, DefaultFrom, Optional, Required};

fn words<T: Copy>(all: &[T], keyword: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().copied().map(keyword).collect()
}

/// A keyword type's values, all of them known.
macro_rules! word {
    ($keyword:ident) => {
        Kind::Word(|| words($keyword::ALL, $keyword::keyword))
    };
}

const TIME: Kind = Kind::Time;

/// The file.
pub(crate) static FILE: Table = Table {
    header: "",
    doc: "A real-time system: nodes, and what runs on them: end-to-end tasks made of subtasks, and threads under \
          hierarchies of schedulers.",
    keys: &[
        Key { name: "system", kind: Kind::One(&SYSTEM), presence: Required, doc: SYSTEM.doc },
        Key { name: "overhead", kind: Kind::One(&OVERHEAD), presence: Optional, doc: OVERHEAD.doc },
        Key {
            name: "node",
            kind: Kind::Many(&NODE),
            presence: DefaultFrom("one node \"local\" with cpus = [0]"),
            doc: NODE.doc,
        },
        Key { name: "link", kind: Kind::Many(&LINK), presence: Optional, doc: LINK.doc },
        Key { name: "task", kind: Kind::Many(&TASK), presence: Optional, doc: TASK.doc },
        Key { name: "chain", kind: Kind::Many(&CHAIN), presence: Optional, doc: CHAIN.doc },
        Key { name: "scheduler", kind: Kind::Many(&SCHEDULER), presence: Optional, doc: SCHEDULER.doc },
        Key { name: "thread", kind: Kind::Many(&THREAD), presence: Optional, doc: THREAD.doc },
        Key { name: "channel", kind: Kind::Many(&CHANNEL), presence: Optional, doc: CHANNEL.doc },
    ],
};

/// `[system]`.
pub(crate) static SYSTEM: Table = Table {
    header: "[system]",
    doc: "What concerns the system as a whole.",
    keys: &[
        Key { name: "name", kind: Kind::Name, presence: Required, doc: "The system's name, for reports." },
        Key {
            name: "strategy",
            kind: word!(Strategy),
            presence: Default(Text(Strategy::DEFAULT.keyword())),
            doc: "How operations are sorted into lanes; between lanes the higher always preempts. Nodes with \
                  [[scheduler]] tables have lanes only where a scheduler of kind \"lanes\" stands.",
        },
        Key {
            name: "lane_dispatch",
            kind: word!(LaneDispatch),
            presence: Default(Text("nonpreemptive")),
            doc: "What happens inside one lane when a more urgent job arrives: a started job keeps its lane, or \
                  the lane chooses anew.",
        },
        Key {
            name: "laxity",
            kind: word!(Laxity),
            presence: Default(Text("declared")),
            doc: "Which laxity orders a laxity lane: deadline minus now minus the whole worst case, or minus \
                  what is left of it.",
        },
        Key {
            name: "late",
            kind: word!(Late),
            presence: Default(Text("last")),
            doc: "Where jobs that can no longer make their deadline stand in deadline and laxity lanes: behind \
                  all others, or where their key puts them.",
        },
        Key {
            name: "sync",
            kind: word!(Synchronisation),
            presence: Default(Text(Synchronisation::DEFAULT.keyword())),
            doc: "When a subtask with predecessors is released, in tasks that do not say it themselves: as soon as \
                  they have completed, or then but no earlier than a period after its previous release (a guard; \
                  at an idle point of its node all guards are reset, or one waiting instance passes), or at the \
                  end of response bounds of the subtasks before it, counted from the task's arrival \
                  (phase-modification) or from the predecessor's release (modified-phase-modification).",
        },
        Key {
            name: "seed",
            kind: Kind::Integer { min: 0, max: u64::MAX as i128 },
            presence: Default(Integer(1)),
            doc: "Seed of every pseudo-random choice: execution times and release jitter.",
        },
        Key {
            name: "message_delay",
            kind: Kind::Former(
                "add a table of its own, [[link]] with delay = the time; without from and to it is of all nodes",
            ),
            presence: Optional,
            doc: "",
        },
    ],
};

/// `[overhead]`.
pub(crate) static OVERHEAD: Table = Table {
    header: "[overhead]",
    doc: "What the mechanisms cost, in the simulator and in the bounds.",
    keys: &[
        Key {
            name: "switch",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "A processor is given to another job than the one it ran last.",
        },
        Key {
            name: "queue",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "One insertion into or removal from a lane's queue.",
        },
        Key {
            name: "timer",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "A timer expiry that releases a job.",
        },
        Key {
            name: "message",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "Receiving a message from another node.",
        },
        Key {
            name: "push",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "Finding out who has subscribed to an event, for each that an operation publishes in a channel.",
        },
        Key {
            name: "filter",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "Evaluating a filter of a subscription, also one by which priorities or timeouts are said, for each event of its types.",
        },
        Key {
            name: "delivery",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "Having the queue of a subscription take an event, for each of its types, whether or not its filter lets it through.",
        },
    ],
};

/// `[[node]]`.
pub(crate) static NODE: Table = Table {
    header: "[[node]]",
    doc: "A computer, or a part of one: a set of processors that schedules on its own.",
    keys: &[
        Key { name: "name", kind: Kind::Name, presence: Required, doc: "Unique among the nodes." },
        Key {
            name: "cpus",
            kind: Kind::Cpus,
            presence: Default(Integers(&[0])),
            doc: "Processors by their Linux number; the simulator uses only how many there are.",
        },
    ],
};

/// `[[link]]`.
pub(crate) static LINK: Table = Table {
    header: "[[link]]",
    doc: "How messages travel from one node to another: both ways between two, from one to another, or, where it names none, \
          between every two nodes that no other link joins. Where there is no link, messages arrive at once. The simulator draws \
          the time and the losses of messages, check counts with the longest time, and a run counts the messages that took \
          longer, or with --impose-links draws as the simulator does.",
    keys: &[
        Key {
            name: "between",
            kind: Kind::TwoNodes,
            presence: Optional,
            doc: "The two nodes that it joins, both ways.",
        },
        Key {
            name: "from",
            kind: Kind::NodeName,
            presence: Optional,
            doc: "The node that sends, in one direction.",
        },
        Key { name: "to", kind: Kind::NodeName, presence: Optional, doc: "The node that receives." },
        Key {
            name: "delay",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "The least time between the completion of a subtask and the release of its successor on the other node.",
        },
        Key {
            name: "jitter",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "The greatest time beyond that, drawn uniformly per message; messages may overtake each other.",
        },
        Key {
            name: "loss",
            kind: Kind::Share,
            presence: Default(Integer(0)),
            doc: "The share of messages that never arrive, from 0 to 1. What waits for a lost message is not released.",
        },
    ],
};

/// `[[task]]`.
pub(crate) static TASK: Table = Table {
    header: "[[task]]",
    doc: "An end-to-end task: a chain or graph of subtasks, released together once per period or by a trigger. A task of one \
          subtask has its wcet, exec, node, outputs and inputs directly.",
    keys: &[
        Key { name: "name", kind: Kind::Name, presence: Required, doc: "Unique among the tasks." },
        Key {
            name: "period",
            kind: TIME,
            presence: Optional,
            doc: "Distance between arrivals, above zero. A task has this or a trigger, or else a subscription that releases it.",
        },
        Key {
            name: "trigger",
            kind: Kind::WordOr("external", &TRIGGER),
            presence: Optional,
            doc: "What releases it in place of a period: values on an output of another task, or something outside, a descriptor or a \
                  handle that the program gives.",
        },
        Key {
            name: "subscription",
            kind: Kind::One(&SUBSCRIPTION),
            presence: Optional,
            doc: "The events of a channel that release it, where it has neither a period nor a trigger. Beside one of these, of a task of one \
                  subtask: the events of which each of its jobs takes the next one when it begins, if one waits.",
        },
        Key {
            name: "separation",
            kind: TIME,
            presence: Optional,
            doc: "How far apart releases by the trigger, or by events, are at least, above zero. A trigger from outside has to have one.",
        },
        Key {
            name: "burst",
            kind: COUNT,
            presence: DefaultFrom("1, with a separation"),
            doc: "How many releases may come at once after a pause: in any time D there are at most burst - 1 + D / separation, rounded up.",
        },
        Key {
            name: "excess",
            kind: word!(Excess),
            presence: DefaultFrom("defer, with a separation"),
            doc: "What happens to what triggers it earlier than that: its release waits, or it releases nothing, or it releases at once \
                  against what the analysis counts with. All of it is counted.",
        },
        Key {
            name: "arrivals",
            kind: Kind::Arrivals,
            presence: DefaultFrom("every separation, with a trigger from outside"),
            doc: "When something outside happens in simulations and in runs without code.",
        },
        Key {
            name: "deadline",
            kind: Kind::Deadline,
            presence: DefaultFrom("the period or the separation"),
            doc: "From the arrival to the completion of the last subtask; shorter or longer than the period. \"inherited\", of a task that \
                  values or events of others release: each instance has arrival and deadline of the job that releases it.",
        },
        Key {
            name: "phase",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "Arrival of the first job after the common start.",
        },
        Key {
            name: "jitter",
            kind: TIME,
            presence: Default(Text("0s")),
            doc: "Greatest delay between arrival and release, drawn uniformly per job; shorter than the period.",
        },
        Key {
            name: "criticality",
            kind: Kind::Criticality,
            presence: Default(Text(Criticality::DEFAULT.keyword())),
            doc: "What a missed deadline means; 3 and 4, high and very-high, are critical (hard). \"inherited\", of a task that \
                  releases others by values or events, or whose events others take: the highest of theirs, and of those whom they release.",
        },
        Key {
            name: "importance",
            kind: Kind::Integer { min: i32::MIN as i128, max: i32::MAX as i128 },
            presence: Default(Integer(0)),
            doc: "Static subpriority among operations of one lane; larger is more important.",
        },
        Key {
            name: "overrun",
            kind: word!(Overrun),
            presence: Default(Text("queue")),
            doc: "What happens at a release while the previous job's first subtask is unfinished: the new job \
                  waits (queue), or is not released (skip-next), or the old one is told to stop (abort). With merge the new \
                  job waits, unless the old one has not begun yet: then that one stands for both, and takes the newest values when \
                  it begins, as a ROS 2 subscription of depth 1 has it.",
        },
        Key {
            name: "sync",
            kind: word!(Synchronisation),
            presence: DefaultFrom("that of `[system]`"),
            doc: "When a subtask with predecessors is released, see `[system]`.",
        },
        Key {
            name: "communication",
            kind: word!(Communication),
            presence: Default(Text(Communication::DEFAULT.keyword())),
            doc: "When values between it and other tasks are published and taken: when a job completes and begins, or under logical \
                  execution time at the end of its period and at its arrival.",
        },
        Key {
            name: "model",
            kind: Kind::Later("leave it out; every subtask is an operation of its own"),
            presence: Optional,
            doc: "",
        },
        Key {
            name: "wcet",
            kind: TIME,
            presence: Optional,
            doc: "Worst-case execution time of a task of one subtask.",
        },
        Key {
            name: "exec",
            kind: Kind::Execution,
            presence: DefaultFrom("the wcet"),
            doc: "What the synthetic work of a task of one subtask really takes.",
        },
        Key {
            name: "node",
            kind: Kind::NodeName,
            presence: DefaultFrom("the only node"),
            doc: "Where a task of one subtask runs.",
        },
        Key {
            name: "lanes",
            kind: Kind::LanesName,
            presence: DefaultFrom("the only scheduler of kind lanes on its node, if there is one"),
            doc: "The scheduler of kind lanes under which a task of one subtask has its lane.",
        },
        Key {
            name: "outputs",
            kind: Kind::Many(&OUTPUT),
            presence: Optional,
            doc: "What a task of one subtask publishes.",
        },
        Key {
            name: "inputs",
            kind: Kind::Many(&INPUT),
            presence: Optional,
            doc: "What a task of one subtask takes.",
        },
        Key {
            name: "events",
            kind: Kind::Many(&PUBLICATION),
            presence: Optional,
            doc: "What a task of one subtask pushes into channels.",
        },
        Key { name: "subtask", kind: Kind::Many(&SUBTASK), presence: Optional, doc: SUBTASK.doc },
    ],
};

/// `[[task.subtask]]`.
pub(crate) static SUBTASK: Table = Table {
    header: "[[task.subtask]]",
    doc: "One step of the task above it: an operation that runs on one node.",
    keys: &[
        Key { name: "name", kind: Kind::Name, presence: Required, doc: "Unique within its task." },
        Key {
            name: "node",
            kind: Kind::NodeName,
            presence: DefaultFrom("the only node"),
            doc: "Where it runs.",
        },
        Key {
            name: "lanes",
            kind: Kind::LanesName,
            presence: DefaultFrom("the only scheduler of kind lanes on its node, if there is one"),
            doc: "The scheduler of kind lanes under which it has its lane.",
        },
        Key {
            name: "wcet",
            kind: TIME,
            presence: Required,
            doc: "Worst-case execution time, above zero: what policies and analysis count with.",
        },
        Key {
            name: "exec",
            kind: Kind::Execution,
            presence: DefaultFrom("the wcet"),
            doc: "What synthetic work really takes.",
        },
        Key { name: "outputs", kind: Kind::Many(&OUTPUT), presence: Optional, doc: "What it publishes." },
        Key { name: "inputs", kind: Kind::Many(&INPUT), presence: Optional, doc: "What it takes." },
        Key {
            name: "events",
            kind: Kind::Many(&PUBLICATION),
            presence: Optional,
            doc: "What it pushes into channels.",
        },
        Key {
            name: "subscription",
            kind: Kind::One(&SUBSCRIPTION),
            presence: Optional,
            doc: "The events of a channel of which each of its jobs takes the next one when it begins, if one waits, whatever has released it.",
        },
        Key {
            name: "after",
            kind: Kind::SubtaskNames,
            presence: DefaultFrom("the subtask before it"),
            doc: "The predecessors; an empty list makes it a first subtask.",
        },
        Key {
            name: "join",
            kind: Kind::Join,
            presence: Default(Text("all")),
            doc: "How many of several predecessors it waits for: all, the first, or this many. Predecessors that \
                  complete later are counted as late.",
        },
        Key {
            name: "bound",
            kind: TIME,
            presence: DefaultFrom("what the analysis finds, where it is needed"),
            doc: "Bound on the time from its release until its successors know of its completion, after which \
                  phase-modification and modified-phase-modification release them; under phase-modification that of \
                  a first subtask counts from the arrival.",
        },
    ],
};

/// The range of processor numbers, for the reader and the schema.
pub(crate) const CPUS: std::ops::RangeInclusive<i128> = 0..=CPU_LIMIT as i128 - 1;

/// The number of tables a list may have, where there is a limit.
pub(crate) fn most_tables(table: &Table) -> Option<usize> {
    std::ptr::eq(table, &NODE).then_some(NODE_LIMIT)
}
