//! The tables of channels, of what operations publish into them and of what tasks subscribe to.

use super::Literal::Integer;
use super::Presence::{Default, DefaultFrom, Optional, Required};
use super::{Key, Kind, TIME, Table, words};
use crate::channel::{EventTake, Publication};
use crate::ports::Output;

/// `[[channel]]`.
pub(crate) static CHANNEL: Table = Table {
    header: "[[channel]]",
    doc: "A channel of events. Operations publish events into it, and tasks that have subscribed to their types are released by them, or take \
          them in jobs that something else releases; who publishes and who subscribes need not know each other.",
    keys: &[
        Key { name: "name", kind: Kind::Name, presence: Required, doc: "Unique among the channels." },
        Key {
            name: "qos",
            kind: Kind::Properties,
            presence: Optional,
            doc: "The quality of service of what comes out of it, by the standard's names: Priority and Timeout of events that state none, \
                  OrderPolicy and DiscardPolicy, and MaxEventsPerConsumer, how many events may wait for a subscriber.",
        },
    ],
};

/// An entry of `events`.
pub(crate) static PUBLICATION: Table = Table {
    header: "an entry of \"events\"",
    doc: "That a job of the operation pushes an event into a channel when it completes, as \
          events = [{ channel = \"health\", type = \"Robot/Battery\" }].",
    keys: &[
        Key {
            name: "channel",
            kind: Kind::ChannelName,
            presence: Required,
            doc: "The channel into which they are pushed.",
        },
        Key {
            name: "type",
            kind: Kind::EventType,
            presence: Required,
            doc: "A domain and a name in it, by which tasks subscribe; each type once per operation and channel.",
        },
        Key {
            name: "bytes",
            kind: Kind::Integer { min: 0, max: Output::BYTES_LIMIT as i128 },
            presence: Default(Integer(Output::DEFAULT_BYTES as i64)),
            doc: "The size of what the events carry where no program makes them.",
        },
        Key {
            name: "fields",
            kind: Kind::Fields,
            presence: Optional,
            doc: "Whole numbers in it, for filters, in the same forms as those of outputs.",
        },
        Key {
            name: "header_fields",
            kind: Kind::Fields,
            presence: Optional,
            doc: "Whole numbers in their header where no program makes them, in the same forms, which filters find by \
                  $.header.variable_header(name): a mission, a leg of a route.",
        },
        Key {
            name: "priority",
            kind: Kind::Integer {
                min: *Publication::PRIORITIES.start() as i128,
                max: *Publication::PRIORITIES.end() as i128,
            },
            presence: DefaultFrom("what the quality of service says"),
            doc: "Their priority; greater is more urgent.",
        },
        Key {
            name: "timeout",
            kind: TIME,
            presence: DefaultFrom("what the quality of service says"),
            doc: "How long after its push an event is worth being delivered, above zero; then it is discarded, and counted.",
        },
        Key {
            name: "source",
            kind: Kind::Integer { min: 0, max: u32::MAX as i128 },
            presence: Default(Integer(0)),
            doc: "The number of their source, by which conditions decide.",
        },
    ],
};

const CONJUNCTION: &str =
    "write when = { all = [types], collect = \"latest\", within = \"100ms\" } in place of types";

const MAPPED: Key = Key {
    name: "filter",
    kind: Kind::Constraint,
    presence: DefaultFrom("all others, in the last entry"),
    doc: "A constraint of the events that the entry is about. Where it cannot be evaluated, the entry is not about the event.",
};

/// An entry of `priority_by`.
pub(crate) static PRIORITY_BY: Table = Table {
    header: "an entry of \"priority_by\"",
    doc: "Which priority some events have, as priority_by = [{ filter = \"charge < 5\", priority = 9 }, { priority = 1 }]. Events that no entry \
          is about have what they state, or else what the quality of service says. Of several events, with which a condition comes true, the \
          greatest counts.",
    keys: &[
        MAPPED,
        Key {
            name: "priority",
            kind: Kind::Integer {
                min: *Publication::PRIORITIES.start() as i128,
                max: *Publication::PRIORITIES.end() as i128,
            },
            presence: Required,
            doc: "Their priority; greater is more urgent.",
        },
    ],
};

/// An entry of `timeout_by`.
pub(crate) static TIMEOUT_BY: Table = Table {
    header: "an entry of \"timeout_by\"",
    doc: "How long some events are worth being delivered, as timeout_by = [{ filter = \"charge < 5\", timeout = \"5ms\" }, { timeout = \"1s\" }]. \
          Events that no entry is about have what they state, or else what the quality of service says. Of several events, with which a \
          condition comes true, the shortest counts.",
    keys: &[
        MAPPED,
        Key {
            name: "timeout",
            kind: TIME,
            presence: Required,
            doc: "How long after its push such an event is worth being delivered, above zero; then it is discarded, and counted.",
        },
    ],
};

/// The table of `subscription`.
pub(crate) static SUBSCRIPTION: Table = Table {
    header: "the table of \"subscription\"",
    doc: "The events that release a task which has neither a period nor a trigger, or that jobs of a task of one subtask, or of a subtask, take \
          when something else has released them, as subscription = { channel = \"health\", types = [\"Robot/*\"], filter = \"charge < 20\" }. \
          They wait in the order of the quality of service, and each job takes the first; \
          all first subtasks of an instance have the same.",
    keys: &[
        Key {
            name: "channel",
            kind: Kind::ChannelName,
            presence: Required,
            doc: "The channel of which it has them.",
        },
        Key {
            name: "types",
            kind: Kind::EventTypes,
            presence: DefaultFrom("all"),
            doc: "The types, Domain/Name; a * at the end of domain or name stands for any rest.",
        },
        Key {
            name: "filter",
            kind: Kind::Constraint,
            presence: Optional,
            doc: "A constraint that holds of all of the events, in the constraint language: fields by their names, and $source, $priority, \
                  $domain_name, $type_name and $Timeout, and $curtime, in nanoseconds.",
        },
        Key {
            name: "when",
            kind: Kind::Condition,
            presence: DefaultFrom("an event of one of the types"),
            doc: "In place of types: what has to come, of several events and over time, freely nested. The events of which it came true \
                  release the task together, or are taken together, then without after, every and unless.",
        },
        Key {
            name: "priority_by",
            kind: Kind::Many(&PRIORITY_BY),
            presence: DefaultFrom("what the events state"),
            doc: "Which priority events have for this subscriber, whatever they state: that of the first entry whose filter holds of them.",
        },
        Key {
            name: "timeout_by",
            kind: Kind::Many(&TIMEOUT_BY),
            presence: DefaultFrom("what the events state"),
            doc: "How long after their push events are worth being delivered to this subscriber, whatever they state: as the first entry says whose \
                  filter holds of them.",
        },
        Key {
            name: "take",
            kind: Kind::Word(|| words(EventTake::ALL, EventTake::keyword)),
            presence: DefaultFrom("next"),
            doc: "How many of the events that wait a job takes that something else has released: the next one, or all that wait when it begins, no more \
                  than MaxEventsPerConsumer. Jobs of a task that they release have one each.",
        },
        Key { name: "collect", kind: Kind::Former(CONJUNCTION), presence: Optional, doc: "" },
        Key { name: "within", kind: Kind::Former(CONJUNCTION), presence: Optional, doc: "" },
        Key {
            name: "qos",
            kind: Kind::Properties,
            presence: DefaultFrom("that of the channel"),
            doc: "What differs from the quality of service of the channel.",
        },
    ],
};
