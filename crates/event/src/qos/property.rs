//! The properties: their names, kinds, ranges and the levels at which they can be set.

use super::problem::{QosError, QosProblem};
use super::settings::{DiscardPolicy, OrderPolicy, Reliability};
use std::fmt;
use talea_time::Duration;

/// Where a property is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// For all of a channel.
    Channel,
    /// For the proxies of an admin.
    Admin,
    /// For one supplier or consumer.
    Proxy,
    /// For one event, in its header.
    Message,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Channel => "channel",
            Level::Admin => "admin",
            Level::Proxy => "proxy",
            Level::Message => "message",
        })
    }
}

/// A value of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyValue {
    /// Of `EventReliability` and `ConnectionReliability`.
    Reliability(Reliability),
    /// Of `OrderPolicy`.
    Order(OrderPolicy),
    /// Of `DiscardPolicy`.
    Discard(DiscardPolicy),
    /// A number.
    Number(i64),
    /// A length of time.
    Time(Duration),
    /// Yes or no.
    Flag(bool),
}

impl fmt::Display for PropertyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PropertyValue::Reliability(value) => write!(f, "{value:?}"),
            PropertyValue::Order(value) => write!(f, "{value:?}"),
            PropertyValue::Discard(value) => write!(f, "{value:?}"),
            PropertyValue::Number(value) => write!(f, "{value}"),
            PropertyValue::Time(value) => write!(f, "{value}"),
            PropertyValue::Flag(value) => write!(f, "{value}"),
        }
    }
}

/// What values of a property are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Reliability,
    Order,
    Discard,
    /// A number from the first to the last.
    Number(i64, i64),
    /// A length of time of at least this.
    Time(Duration),
    Flag,
}

/// The longest time that a property may state: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// Events that a consumer can have waiting at most: room for all of them is made beforehand.
pub(crate) const MOST_EVENTS: i64 = 1 << 16;

macro_rules! properties {
    ($($(#[$doc:meta])* $name:ident: $kind:expr, $($level:ident)|+;)*) => {
        /// The properties, by their standard names where they are the standard's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum PropertyName {
            $($(#[$doc])* $name,)*
        }

        impl PropertyName {
            /// All of them.
            pub const ALL: &'static [PropertyName] = &[$(PropertyName::$name,)*];

            /// As it is written.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(PropertyName::$name => stringify!($name),)*
                }
            }

            /// The levels at which it can be set.
            pub fn levels(self) -> &'static [Level] {
                match self {
                    $(PropertyName::$name => &[$(Level::$level,)*],)*
                }
            }

            pub(crate) fn kind(self) -> Kind {
                match self {
                    $(PropertyName::$name => $kind,)*
                }
            }
        }
    };
}

properties! {
    /// Whether events survive the end of the process. `Persistent` is refused: events are not kept.
    EventReliability: Kind::Reliability, Channel | Message;
    /// Whether connections survive it. `Persistent` is refused: connections are not kept.
    ConnectionReliability: Kind::Reliability, Channel | Admin | Proxy;
    /// The priority of events that state none; of a consumer, of all that are delivered to it and state none.
    Priority: Kind::Number(-32_767, 32_767), Channel | Admin | Proxy | Message;
    /// Not delivered before. Only an event has one.
    StartTime: Kind::Time(Duration::ZERO), Message;
    /// Not delivered after. Only an event has one.
    StopTime: Kind::Time(Duration::ZERO), Message;
    /// How long after their push events that state nothing are worth being delivered; 0 for ever.
    Timeout: Kind::Time(Duration::ZERO), Channel | Admin | Proxy | Message;
    /// Whether the start times of events count.
    StartTimeSupported: Kind::Flag, Channel | Admin | Proxy;
    /// Whether the stop times of events count.
    StopTimeSupported: Kind::Flag, Channel | Admin | Proxy;
    /// In which order the events of a consumer are delivered.
    OrderPolicy: Kind::Order, Channel | Admin | Proxy;
    /// Which event goes when a consumer has as many as it may have.
    DiscardPolicy: Kind::Discard, Channel | Admin | Proxy;
    /// How many events may wait for a consumer.
    MaxEventsPerConsumer: Kind::Number(1, MOST_EVENTS), Channel | Admin | Proxy;
    /// How many events a consumer of sequences is given at once, at most.
    MaximumBatchSize: Kind::Number(1, MOST_EVENTS), Channel | Admin | Proxy;
    /// How long a consumer of sequences is not called while less than `MaximumBatchSize` events wait for it; 0 not at all.
    PacingInterval: Kind::Time(Duration::ZERO), Channel | Admin | Proxy;
    /// How long a supplier waits for room at a consumer that has as many events as it may have; 0 not at all.
    BlockingPolicy: Kind::Time(Duration::ZERO), Channel | Admin | Proxy;
    /// The least time between two deliveries to a consumer; events in between are discarded, the newest last.
    MinimumSeparation: Kind::Time(Duration::ZERO), Admin | Proxy;
    /// How long after a delivery failed for a passing reason it is tried again.
    RetryInterval: Kind::Time(Duration::from_nanos(1)), Channel | Admin | Proxy;
}

/// What a number may be, for people.
pub(crate) fn number_from(least: i64, most: i64) -> String {
    format!("it is a number from {least} to {most}")
}

impl fmt::Display for PropertyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PropertyName {
    /// The property of this name.
    ///
    /// # Errors
    /// [`QosError::BadProperty`], with all names.
    pub fn named(name: &str) -> Result<Self, QosProblem> {
        PropertyName::ALL.iter().copied().find(|property| property.as_str() == name).ok_or_else(|| {
            let all: Vec<&str> = PropertyName::ALL.iter().map(|property| property.as_str()).collect();
            let allowed = format!("the properties are {}", all.join(", "));
            QosProblem { property: name.to_owned(), error: QosError::BadProperty, allowed }
        })
    }

    /// What values it may have, for people.
    pub fn allowed(self) -> String {
        match self.kind() {
            Kind::Reliability => "it is BestEffort".into(),
            Kind::Order => "it is Any, Fifo, Priority or Deadline".into(),
            Kind::Discard => "it is Any, Fifo, Lifo, Priority or Deadline".into(),
            Kind::Number(least, most) => number_from(least, most),
            Kind::Time(Duration::ZERO) => format!("it is a length of time up to {LONGEST}"),
            Kind::Time(_) => format!("it is a length of time of more than 0, up to {LONGEST}"),
            Kind::Flag => "it is true or false".into(),
        }
    }

    /// A problem with it.
    pub fn problem(self, error: QosError, allowed: impl Into<String>) -> QosProblem {
        QosProblem { property: self.as_str().into(), error, allowed: allowed.into() }
    }

    /// The value as which this text is meant, such as `5ms`, `Priority` or `true`.
    ///
    /// # Errors
    /// [`QosError::BadType`], or of an enumeration [`QosError::BadValue`].
    pub fn parse(self, text: &str) -> Result<PropertyValue, QosProblem> {
        let value = match self.kind() {
            Kind::Reliability => text.parse().ok().map(PropertyValue::Reliability),
            Kind::Order => text.parse().ok().map(PropertyValue::Order),
            Kind::Discard => text.parse().ok().map(PropertyValue::Discard),
            Kind::Number(..) => text.parse().ok().map(PropertyValue::Number),
            Kind::Time(_) => text.parse().ok().map(PropertyValue::Time),
            Kind::Flag => text.parse().ok().map(PropertyValue::Flag),
        };
        // A word that is none of an enumeration's is no value of it; a number that is none is of another kind.
        let error = match self.kind() {
            Kind::Reliability | Kind::Order | Kind::Discard => QosError::BadValue,
            Kind::Number(..) | Kind::Time(_) | Kind::Flag => QosError::BadType,
        };
        value.ok_or_else(|| self.problem(error, self.allowed()))
    }

    /// Whether it may have this value at this level.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(self, value: PropertyValue, level: Level) -> Result<(), QosProblem> {
        if !self.levels().contains(&level) {
            let levels: Vec<String> = self.levels().iter().map(Level::to_string).collect();
            let allowed = format!("its levels are {}", levels.join(", "));
            return Err(self.problem(QosError::UnavailableProperty, allowed));
        }
        let bad_value = || Err(self.problem(QosError::BadValue, self.allowed()));
        match (self.kind(), value) {
            (Kind::Reliability, PropertyValue::Reliability(Reliability::Persistent)) => {
                let allowed = "nothing is kept when the process ends; it is BestEffort";
                Err(self.problem(QosError::UnsupportedValue, allowed))
            }
            (Kind::Reliability, PropertyValue::Reliability(Reliability::BestEffort))
            | (Kind::Order, PropertyValue::Order(_))
            | (Kind::Discard, PropertyValue::Discard(_))
            | (Kind::Flag, PropertyValue::Flag(_)) => Ok(()),
            (Kind::Number(least, most), PropertyValue::Number(number)) => match number {
                number if (least..=most).contains(&number) => Ok(()),
                _ => bad_value(),
            },
            (Kind::Time(least), PropertyValue::Time(time)) => match time {
                time if (least..=LONGEST).contains(&time) => Ok(()),
                _ => bad_value(),
            },
            _ => Err(self.problem(QosError::BadType, self.allowed())),
        }
    }
}
