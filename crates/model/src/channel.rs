//! Channels of events: which operations publish events into them, which tasks are released by those that they have subscribed to, and which operations
//! take them when something else has released them.
//!
//! An event goes to each subscriber of its type whose filter it passes, and waits there in the order that the quality of service says; the job that
//! begins takes the first that waits. A task with a subscription in place of a period or a trigger is released by each of its events. So, unlike the
//! values of an output, one event may release many tasks, and one task be released by the events of many operations, which need not know each other.

use crate::keyword::keywords;
use crate::operation::OperationAddress;
use crate::ports::SyntheticField;
use std::fmt;
use std::str::FromStr;
use talea_etcl::Constraint;
use talea_event::qos::QosSettings;
use talea_event::{AnyEvent, EVALUATION_STEP};
use talea_time::Duration;

/// A channel of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Unique among the channels.
    pub name: String,
    /// The quality of service of what comes out of it, where a subscription does not say otherwise.
    pub qos: QosSettings,
}

/// The type of an event: a domain, and a name in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventTypeName {
    /// The domain, such as `Robot`.
    pub domain: String,
    /// The name in the domain, such as `Battery`.
    pub name: String,
}

impl fmt::Display for EventTypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.domain, self.name)
    }
}

impl FromStr for EventTypeName {
    type Err = std::convert::Infallible;

    /// `domain/name`; without a slash the name is empty, which the rules refuse.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (domain, name) = text.split_once('/').unwrap_or((text, ""));
        Ok(EventTypeName { domain: domain.into(), name: name.into() })
    }
}

/// That the jobs of an operation push an event into a channel when they complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Index into [`Description::channels`](crate::Description::channels).
    pub channel: usize,
    /// The type of the events, one of each per operation and channel.
    pub event_type: EventTypeName,
    /// Size of what the events carry where no program makes them, at most [`Output::BYTES_LIMIT`](crate::Output::BYTES_LIMIT).
    pub bytes: u32,
    /// The numbers in it, by which filters decide.
    pub fields: Vec<SyntheticField>,
    /// The numbers in their header where no program makes them, which filters find by `$.header.variable_header(name)`.
    pub header_fields: Vec<SyntheticField>,
    /// The priority of the events, from -32767 to 32767, greater is more urgent; where none is given the subscriptions say it.
    pub priority: Option<i16>,
    /// How long after its push an event is worth being delivered; where none is given the subscriptions say it.
    pub timeout: Option<Duration>,
    /// The number of their source, by which conditions decide.
    pub source: u32,
}

impl Publication {
    /// The range of priorities.
    pub const PRIORITIES: std::ops::RangeInclusive<i16> = -32_767..=32_767;

    /// The most bytes that the fields of the header have as they are sent: how many there are, and of each its name, a number, and a byte for the length of
    /// the one and the kind of the other.
    pub fn header_bytes(&self) -> usize {
        const COUNT: usize = 2;
        const NUMBER: usize = 10;
        let bytes = |field: &SyntheticField| field.name.len() + NUMBER + 2;
        let fields: usize = self.header_fields.iter().map(bytes).sum();
        if self.header_fields.is_empty() { 0 } else { COUNT + fields }
    }
}

/// What releases a task that has subscribed to events, with filters in the constraint language.
pub type Condition = talea_event::Condition<String>;

/// Whose a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubscriptionOwner {
    /// The task at this index, which its events release.
    Task(usize),
    /// The operation, whose jobs take what waits when they begin, whatever has released them.
    Operation(OperationAddress),
}

impl SubscriptionOwner {
    /// The task by index, or that of the operation.
    pub fn task(self) -> usize {
        match self {
            SubscriptionOwner::Task(task) | SubscriptionOwner::Operation(OperationAddress { task, .. }) => {
                task
            }
        }
    }
}

keywords! {
    /// How many of the events that wait a job takes that something else has released.
    EventTake {
        /// The first, in the order of the quality of service.
        Next = "next",
        /// All that wait when it begins, in that order; no more than may wait.
        All = "all",
    }
}

impl EventTake {
    /// That of a subscription that states none.
    pub const DEFAULT: EventTake = EventTake::Next;
}

/// Which events a task is released by, or an operation takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Index into [`Description::channels`](crate::Description::channels).
    pub channel: usize,
    /// Each time that it comes true, the events of which it did wait for a job together, and release the task that is released by them.
    pub condition: Condition,
    /// A constraint in the constraint language that holds of all events with which the condition is fed.
    pub filter: Option<String>,
    /// The priority that events have for the subscriber, whatever they and the quality of service say: that of the first entry that is about them.
    pub priority_by: Vec<Mapped<i16>>,
    /// How long after its push an event is worth being delivered to the subscriber, in the same way.
    pub timeout_by: Vec<Mapped<Duration>>,
    /// How many of them a job takes. The jobs of a task that they release have one each.
    pub take: EventTake,
    /// What differs from the quality of service of the channel.
    pub qos: QosSettings,
}

/// An entry of a mapping filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped<Value> {
    /// A constraint in the constraint language, of events that it is about. The last entry may have none, and is about all others then.
    pub filter: Option<String>,
    /// What these events have.
    pub value: Value,
}

impl<Value> Mapped<Value> {
    /// The most entries of one kind that a subscription has.
    pub const LIMIT: usize = 64;

    /// Events of which this constraint holds have this value, if no entry before is about them.
    pub fn when(filter: impl Into<String>, value: Value) -> Self {
        Mapped { filter: Some(filter.into()), value }
    }

    /// Events that no entry is about have this value.
    pub fn otherwise(value: Value) -> Self {
        Mapped { filter: None, value }
    }
}

/// How often something comes, by the producers of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrivals<Producer> {
    /// As often as what this one makes.
    Of(Producer),
    /// As often as any of these; none never comes.
    Any(Vec<Arrivals<Producer>>),
    /// Once for each time that all of these have come.
    All(Vec<Arrivals<Producer>>),
    /// Once for so many of these.
    Nth(u32, Box<Arrivals<Producer>>),
    /// No more often than that.
    Every(Duration),
    /// Once.
    Once,
}

impl<Producer> Arrivals<Producer> {
    /// All producers.
    pub fn producers(&self) -> Vec<&Producer> {
        match self {
            Arrivals::Of(producer) => vec![producer],
            Arrivals::Any(parts) | Arrivals::All(parts) => {
                parts.iter().flat_map(Arrivals::producers).collect()
            }
            Arrivals::Nth(_, part) => part.producers(),
            Arrivals::Every(_) | Arrivals::Once => Vec::new(),
        }
    }

    /// Whether it comes at all.
    pub fn can_come(&self) -> bool {
        match self {
            Arrivals::Any(parts) => parts.iter().any(Arrivals::can_come),
            Arrivals::All(parts) => parts.iter().all(Arrivals::can_come),
            Arrivals::Nth(_, part) => part.can_come(),
            Arrivals::Of(_) | Arrivals::Every(_) | Arrivals::Once => true,
        }
    }
}

impl Subscription {
    /// Which of the condition's [leaves](talea_event::Condition::leaves) an event of this publication may be, by their places; none at all if it has
    /// nothing to do with them. Those whose events are not handed on are left out.
    pub fn leaves_of(&self, publication: &Publication) -> Option<Vec<usize>> {
        if publication.channel != self.channel {
            return None;
        }
        let EventTypeName { domain, name } = &publication.event_type;
        let leaves = self.condition.leaves();
        let may_be: Vec<usize> = (0..leaves.len())
            .filter(|leaf| leaves[*leaf].condition.may_be((domain, name), publication.source))
            .collect();
        let hands_on = |leaf: &usize| leaves[*leaf].hands_on;
        (!may_be.is_empty()).then(|| may_be.into_iter().filter(hands_on).collect())
    }

    /// Whether an event of this publication may be among those that a job has.
    pub fn hands_on(&self, publication: &Publication) -> bool {
        self.leaves_of(publication).is_some_and(|leaves| !leaves.is_empty())
    }

    /// How often it comes true at most, given the producers of the events of some leaves, each of them once.
    pub fn arrivals<Producer>(
        &self,
        mut producers: impl FnMut(&[usize]) -> Vec<Producer>,
    ) -> Arrivals<Producer> {
        arrivals(&self.condition, false, &mut 0, &mut producers)
    }

    /// Whether a filter may leave events out.
    pub fn is_filtered(&self) -> bool {
        self.filter.is_some() || !self.condition.filters().is_empty()
    }

    /// How often events are held against a filter at most for each that is pushed: to see whether it concerns the task, and again in the condition;
    /// and, of all with which the condition comes true, for their priority and their timeout.
    pub fn filterings(&self) -> usize {
        let filters = usize::from(self.filter.is_some()) + 2 * self.condition.filters().len();
        let priorities = self.priority_by.iter().filter(|entry| entry.filter.is_some()).count();
        let timeouts = self.timeout_by.iter().filter(|entry| entry.filter.is_some()).count();
        let events = match self.condition.comes_at_once() {
            true => 1,
            false => {
                let leaves = self.condition.leaves().iter().filter(|leaf| leaf.hands_on).count();
                leaves.saturating_mul(self.condition.events_of_leaf())
            }
        };
        filters + events * (priorities + timeouts)
    }

    /// How long it may take to hold an event against all of these filters, whatever it carries. An event that is not worth being delivered for so long
    /// may expire before it has been judged.
    pub fn longest_filtering(&self) -> Duration {
        let own = self.filter.iter().map(String::as_str);
        // As above.
        let in_condition = self.condition.filters().into_iter().flat_map(|filter| [filter.as_str(); 2]);
        let mapping = self.priority_by.iter().filter_map(|entry| entry.filter.as_deref());
        let mapping = mapping.chain(self.timeout_by.iter().filter_map(|entry| entry.filter.as_deref()));
        let steps = |text: &str| {
            let program = Constraint::parse(text).and_then(|constraint| constraint.compile::<AnyEvent>());
            program.map_or(0, |program| i64::from(program.steps()))
        };
        EVALUATION_STEP * own.chain(in_condition).chain(mapping).map(steps).sum::<i64>()
    }

    /// The timeouts that an event may have for the task, of which this is stated by itself or by the quality of service.
    pub fn timeouts(&self, stated: Option<Duration>) -> impl Iterator<Item = Duration> + '_ {
        let is_decided = self.timeout_by.last().is_some_and(|last| last.filter.is_none());
        self.timeout_by.iter().map(|entry| entry.value).chain(stated.filter(|_| !is_decided))
    }
}

/// `is_again`: whether it is begun anew, again and again.
fn arrivals<Producer>(
    condition: &Condition,
    is_again: bool,
    leaf: &mut usize,
    producers: &mut impl FnMut(&[usize]) -> Vec<Producer>,
) -> Arrivals<Producer> {
    let mut of = |leaves: &[usize]| Arrivals::Any(producers(leaves).into_iter().map(Arrivals::Of).collect());
    if condition.is_of_one_event() {
        *leaf += 1;
        return of(&[*leaf - 1]);
    }
    match condition {
        Condition::Any(parts) => {
            let (mut leaves, mut others) = (Vec::new(), Vec::new());
            for part in parts {
                if part.is_of_one_event() {
                    leaves.push(*leaf);
                    *leaf += 1;
                } else {
                    others.push(arrivals(part, is_again, leaf, producers));
                }
            }
            // An event that may be several of them makes it come true once.
            others.extend(producers(&leaves).into_iter().map(Arrivals::Of));
            Arrivals::Any(others)
        }
        Condition::All { parts, .. } | Condition::InOrder { parts, .. } => {
            // The parts of a sequence begin anew each time that their turn comes.
            let is_again = is_again || matches!(condition, Condition::InOrder { .. });
            Arrivals::All(parts.iter().map(|part| arrivals(part, is_again, leaf, producers)).collect())
        }
        Condition::Times { part, count, .. } => {
            Arrivals::Nth(*count, Box::new(arrivals(part, is_again, leaf, producers)))
        }
        Condition::After(time) if is_again => Arrivals::Every(*time),
        Condition::Every(period) => Arrivals::Every(*period),
        // It begins anew after it has come true.
        Condition::Unless { within, .. } => {
            *leaf += condition.leaves().len();
            Arrivals::Every(*within)
        }
        _ => Arrivals::Once,
    }
}

/// A publication by its indices, before publications are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicationAddress {
    /// The operation that publishes it.
    pub operation: OperationAddress,
    /// Index into the subtask's events.
    pub event: usize,
}
