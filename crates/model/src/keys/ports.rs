//! The tables of outputs, inputs, triggers and chains.

use super::Literal::{Integer, Text};
use super::Presence::{Default, DefaultFrom, Optional, Required};
use super::{Key, Kind, TIME, Table, words};
use crate::ports::{Full, Output, PORT_LIMIT, Take};
use crate::trigger::OnValue;

/// The range of capacities and bursts.
pub(super) const COUNT: Kind = Kind::Integer { min: 1, max: PORT_LIMIT as i128 };

/// An entry of `outputs`.
pub(crate) static OUTPUT: Table = Table {
    header: "an entry of \"outputs\"",
    doc: "On what the operation publishes a value when a job of it completes, as outputs = [{ name = \"state\", bytes = 64 }].",
    keys: &[
        Key {
            name: "name",
            kind: Kind::Name,
            presence: Required,
            doc: "Unique among the outputs of its operation.",
        },
        Key {
            name: "bytes",
            kind: Kind::Integer { min: 0, max: Output::BYTES_LIMIT as i128 },
            presence: Default(Integer(Output::DEFAULT_BYTES as i64)),
            doc: "The size of its values where no program makes them.",
        },
        Key {
            name: "fields",
            kind: Kind::Fields,
            presence: Optional,
            doc: "Whole numbers in those values, eight bytes each from their beginning on, for conditions and filters: each a \
                  number, { uniform = [least, greatest] } drawn from the seed and the job's number, or { list = [numbers] }, job after \
                  job the next.",
        },
    ],
};

/// An entry of `inputs`.
pub(crate) static INPUT: Table = Table {
    header: "an entry of \"inputs\"",
    doc: "By what the operation takes values of an output when a job of it begins, as \
          inputs = [{ name = \"state\", from = \"imu.estimate.state\" }].",
    keys: &[
        Key {
            name: "name",
            kind: Kind::Name,
            presence: Required,
            doc: "Unique among the inputs of its operation.",
        },
        Key {
            name: "from",
            kind: Kind::OutputName,
            presence: Required,
            doc: "The output that it reads: the names of the task, of the subtask unless that is all of its task, and of the output.",
        },
        Key {
            name: "take",
            kind: Kind::OneOf(&Take::WORDS),
            presence: DefaultFrom("instance where it reads a predecessor, else latest"),
            doc: "Which values it takes: that of the same instance of its task, published by a direct or indirect predecessor; the \
                  newest; or each that has come since the last job.",
        },
        Key {
            name: "capacity",
            kind: COUNT,
            presence: DefaultFrom("16, for inputs that take each"),
            doc: "How many values wait at most, for inputs that take each.",
        },
        Key {
            name: "full",
            kind: Kind::OneOf(&Full::WORDS),
            presence: DefaultFrom("oldest, for inputs that take each"),
            doc: "What happens to a value when as many wait: the oldest is dropped, or it is dropped itself as the newest, or the \
                  producer, which is not critical then, waits up to a limit. Dropped values are counted.",
        },
        Key {
            name: "limit",
            kind: TIME,
            presence: Optional,
            doc: "How long the producer waits at most, for full = \"block\", above zero.",
        },
    ],
};

/// The table of `trigger`.
pub(crate) static TRIGGER: Table = Table {
    header: "the table of \"trigger\"",
    doc: "The values that release a task, as trigger = { output = \"imu.estimate.state\", every = 20 }.",
    keys: &[
        Key {
            name: "output",
            kind: Kind::OutputName,
            presence: Required,
            doc: "An output of another task, in the same words as from of an input.",
        },
        Key {
            name: "every",
            kind: Kind::Integer { min: 1, max: u32::MAX as i128 },
            presence: Default(Integer(1)),
            doc: "Only every so many of the values that count release it.",
        },
        Key {
            name: "on",
            kind: Kind::Word(|| words(OnValue::ALL, OnValue::keyword)),
            presence: Default(Text(OnValue::Value.keyword())),
            doc: "Which values count: every value, or those that differ from the one before.",
        },
    ],
};

/// `[[chain]]`.
pub(crate) static CHAIN: Table = Table {
    header: "[[chain]]",
    doc: "A cause-effect chain: a path of operations, each connected with the next as its successor, by an input that reads an output of \
          it, by triggering its task, or by events to which its task has subscribed. Its times are bounded and measured, and held against the limits that it has.",
    keys: &[
        Key {
            name: "name",
            kind: Kind::Title,
            presence: Required,
            doc: "Unique among the chains; may consist of several words.",
        },
        Key {
            name: "path",
            kind: Kind::OperationNames,
            presence: Required,
            doc: "The operations along the path, at least two: task, or task.subtask where a task has several.",
        },
        Key {
            name: "latency",
            kind: TIME,
            presence: Optional,
            doc: "Limit from the release of the first operation's job to the completion of the last one's that first used its value. A \
                  job that takes several values or events at once counts with the newest of them in all three times.",
        },
        Key {
            name: "reaction",
            kind: TIME,
            presence: Optional,
            doc: "Limit from an event outside, just after a job of the first operation sampled, to the first completion of the last \
                  operation that has seen it.",
        },
        Key {
            name: "age",
            kind: TIME,
            presence: Optional,
            doc: "Limit from the release of the first operation's job that sampled to the completion of the last one's that used the \
                  sample.",
        },
    ],
};
