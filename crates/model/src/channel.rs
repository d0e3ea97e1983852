//! Channels of events: which operations publish events into them, and which tasks are released by those that they have subscribed to.
//!
//! An event goes to each task that has subscribed to its type and whose filter it passes, waits there in the order that the quality of service says,
//! and releases the task; the job that begins takes the first that waits. So, unlike the values of an output, one event may release many tasks, and
//! one task be released by the events of many operations, which need not know each other.

use crate::keyword::keywords;
use crate::operation::OperationAddress;
use crate::ports::SyntheticField;
use std::fmt;
use std::str::FromStr;
use talea_event::TypePattern;
use talea_event::qos::QosSettings;
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
    /// The priority of the events, from -32767 to 32767, greater is more urgent; where none is given the subscriptions say it.
    pub priority: Option<i16>,
    /// How long after its push an event is worth being delivered; where none is given the subscriptions say it.
    pub timeout: Option<Duration>,
}

impl Publication {
    /// The range of priorities.
    pub const PRIORITIES: std::ops::RangeInclusive<i16> = -32_767..=32_767;
}

keywords! {
    /// Which event of a type counts while the others of a conjunction are awaited.
    Collect {
        /// The first; others are left out.
        First = "first",
        /// The latest.
        Latest = "latest",
    }
}

/// That a task is released by events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Index into [`Description::channels`](crate::Description::channels).
    pub channel: usize,
    /// The types of the events, at least one.
    pub types: Vec<TypePattern>,
    /// A constraint in the constraint language that holds of them.
    pub filter: Option<String>,
    /// Where it is given, an event of each of the types is awaited, and they release the task together (a conjunction); else each does alone.
    pub collect: Option<Collect>,
    /// How long after the first of them a conjunction is given up.
    pub within: Option<Duration>,
    /// What differs from the quality of service of the channel.
    pub qos: QosSettings,
}

impl Subscription {
    /// Which of the types an event of this type of this channel is of, by their places.
    pub fn parts_of<'s>(
        &'s self,
        channel: usize,
        event_type: &'s EventTypeName,
    ) -> impl Iterator<Item = usize> + 's {
        let EventTypeName { domain, name } = event_type;
        let of_type = |pattern: &TypePattern| pattern.matches(domain, name);
        let types = self.types.iter().enumerate().filter(move |_| channel == self.channel);
        types.filter(move |(_, pattern)| of_type(pattern)).map(|(place, _)| place)
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
