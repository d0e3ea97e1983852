//! Publications and subscriptions under construction.

use crate::channel::{
    Channel, Condition, EventTake, EventTypeName, Mapped, Publication, Subscription, SubscriptionOwner,
};
use crate::description::Task;
use crate::operation::OperationAddress;
use crate::ports::{FieldValues, Output, SyntheticField};
use crate::suggest::known_words;
use crate::validate::label;
use crate::{Place, Violation};
use talea_event::qos::QosSettings;
use talea_event::{TypePattern, TypePatternError};
use talea_time::Duration;

/// That an operation pushes events, under construction.
#[derive(Clone, Debug)]
pub struct PublicationBuilder {
    channel: String,
    event_type: String,
    bytes: u32,
    fields: Vec<SyntheticField>,
    header_fields: Vec<SyntheticField>,
    priority: Option<i16>,
    timeout: Option<Duration>,
    source: u32,
}

impl PublicationBuilder {
    /// Events of this type, `Domain/Name`, into the channel of this name; synthetic ones have eight bytes, all of them zero.
    pub fn new(channel: impl Into<String>, event_type: impl Into<String>) -> Self {
        let (channel, event_type) = (channel.into(), event_type.into());
        PublicationBuilder {
            channel,
            event_type,
            bytes: Output::DEFAULT_BYTES,
            fields: Vec::new(),
            header_fields: Vec::new(),
            priority: None,
            timeout: None,
            source: 0,
        }
    }

    /// Another size of synthetic events.
    pub fn bytes(mut self, bytes: u32) -> Self {
        self.bytes = bytes;
        self
    }

    /// Adds a whole number to synthetic events.
    pub fn field(mut self, name: impl Into<String>, values: FieldValues) -> Self {
        self.fields.push(SyntheticField { name: name.into(), values });
        self
    }

    /// Adds a whole number to the header of synthetic events.
    pub fn header_field(mut self, name: impl Into<String>, values: FieldValues) -> Self {
        self.header_fields.push(SyntheticField { name: name.into(), values });
        self
    }

    /// Their priority; greater is more urgent.
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = Some(priority);
        self
    }

    /// How long after its push an event is worth being delivered.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The number of their source.
    pub fn source(mut self, source: u32) -> Self {
        self.source = source;
        self
    }

    /// With an index for the name of the channel; the first one stands in for one that does not exist.
    pub(super) fn resolve(
        self,
        (operation, event): (OperationAddress, usize),
        tasks: &[Task],
        channels: &[Channel],
        violations: &mut Vec<Violation>,
    ) -> Publication {
        let PublicationBuilder {
            channel,
            event_type,
            bytes,
            fields,
            header_fields,
            priority,
            timeout,
            source,
        } = self;
        let place = Place::Publication(operation.task, operation.subtask, event, "channel");
        let subject = || {
            let task = &tasks[operation.task];
            format!("{} publishes events", label(task, &task.subtasks[operation.subtask]))
        };
        let channel = find(&channel, channels, place, subject, violations);
        let Ok(event_type): Result<EventTypeName, _> = event_type.parse();
        Publication { channel, event_type, bytes, fields, header_fields, priority, timeout, source }
    }
}

/// Which events a task is released by, or an operation takes, under construction.
#[derive(Clone, Debug)]
pub struct SubscriptionBuilder {
    channel: String,
    types: Vec<String>,
    condition: Option<Condition>,
    filter: Option<String>,
    priority_by: Vec<Mapped<i16>>,
    timeout_by: Vec<Mapped<Duration>>,
    take: EventTake,
    qos: QosSettings,
}

impl SubscriptionBuilder {
    /// All events of the channel of this name.
    pub fn new(channel: impl Into<String>) -> Self {
        SubscriptionBuilder {
            channel: channel.into(),
            types: Vec::new(),
            condition: None,
            filter: None,
            priority_by: Vec::new(),
            timeout_by: Vec::new(),
            take: EventTake::DEFAULT,
            qos: QosSettings::new(),
        }
    }

    /// Events of these types: `Domain/Name`, in which a `*` at the end of domain or name stands for any rest.
    pub fn types<Name: Into<String>>(mut self, types: impl IntoIterator<Item = Name>) -> Self {
        self.types.extend(types.into_iter().map(Into::into));
        self
    }

    /// Those of them of which this constraint holds.
    pub fn filter(mut self, constraint: impl Into<String>) -> Self {
        self.filter = Some(constraint.into());
        self
    }

    /// When this comes true, in place of an event of certain types.
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    /// Which priority events have for the subscriber, by the first of these that is about them.
    pub fn priority_by(mut self, entries: impl IntoIterator<Item = Mapped<i16>>) -> Self {
        self.priority_by.extend(entries);
        self
    }

    /// How long after their push events are worth being delivered to the subscriber, by the first of these that is about them.
    pub fn timeout_by(mut self, entries: impl IntoIterator<Item = Mapped<Duration>>) -> Self {
        self.timeout_by.extend(entries);
        self
    }

    /// How many of the events that wait a job takes that something else has released.
    pub fn take(mut self, take: EventTake) -> Self {
        self.take = take;
        self
    }

    /// What differs from the quality of service of the channel.
    pub fn qos(mut self, qos: QosSettings) -> Self {
        self.qos = qos;
        self
    }

    pub(super) fn resolve(
        self,
        owner: SubscriptionOwner,
        tasks: &[Task],
        channels: &[Channel],
        violations: &mut Vec<Violation>,
    ) -> Subscription {
        let SubscriptionBuilder { channel, types, condition, filter, priority_by, timeout_by, take, qos } =
            self;
        let place = Place::Subscription(owner, "channel");
        let subject = || match owner {
            SubscriptionOwner::Task(task) => format!("task \"{}\" is released by events", tasks[task].name),
            SubscriptionOwner::Operation(OperationAddress { task, subtask }) => {
                format!("{} takes events", label(&tasks[task], &tasks[task].subtasks[subtask]))
            }
        };
        let channel = find(&channel, channels, place, subject, violations);
        let parsed: Result<Vec<TypePattern>, TypePatternError> =
            types.iter().map(|pattern| pattern.parse()).collect();
        let types = parsed.unwrap_or_else(|error| {
            let message = format!("{} of types: {error}", subject());
            let remedy = "write Domain/Name, Domain/Begin* or Domain";
            violations.push(Violation::error(Place::Subscription(owner, "types"), message, remedy));
            vec![TypePattern::all()]
        });
        if condition.is_some() && !types.is_empty() {
            let message = format!("{} of types and by a condition", subject());
            let remedy = "name the types in the condition alone";
            violations.push(Violation::error(Place::Subscription(owner, "types"), message, remedy));
        }
        let types = if types.is_empty() { vec![TypePattern::all()] } else { types };
        let condition = condition.unwrap_or_else(|| Condition::of_types(types));
        Subscription { channel, condition, filter, priority_by, timeout_by, take, qos }
    }
}

fn find(
    name: &str,
    channels: &[Channel],
    place: Place,
    subject: impl Fn() -> String,
    violations: &mut Vec<Violation>,
) -> usize {
    channels.iter().position(|channel| channel.name == name).unwrap_or_else(|| {
        let message = format!("{} of channel \"{name}\", which does not exist", subject());
        let remedy = match channels {
            [] => format!("add a [[channel]] with name = \"{name}\""),
            channels => known_words(name, channels.iter().map(|channel| channel.name.as_str())),
        };
        violations.push(Violation::error(place, message, remedy));
        0
    })
}
