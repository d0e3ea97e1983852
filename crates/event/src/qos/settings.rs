//! What is set at a level, and what that comes to.

use super::problem::{QosError, QosProblem, QosProblems};
use super::property::{Level, MOST_EVENTS, PropertyName, PropertyValue, number_from};
use std::collections::BTreeMap;
use std::str::FromStr;
use talea_time::Duration;

macro_rules! policy {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $value:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$of])* $value,)*
        }

        impl $name {
            /// All of them, in the order in which they are listed here.
            pub const ALL: &[Self] = &[$($name::$value),*];
        }

        impl FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                match text {
                    $(stringify!($value) => Ok($name::$value),)*
                    _ => Err(()),
                }
            }
        }
    };
}

policy! {
    /// Whether something survives the end of the process.
    Reliability {
        /// It does not.
        BestEffort,
        /// It does.
        Persistent,
    }
}

policy! {
    /// In which order the events that wait for a consumer are delivered; equal ones as they came.
    OrderPolicy {
        /// As they came.
        Any,
        /// As they came.
        Fifo,
        /// The greatest priority first.
        Priority,
        /// The one first that expires first.
        Deadline,
    }
}

policy! {
    /// Which event goes when there is no room for another one.
    DiscardPolicy {
        /// The oldest.
        Any,
        /// The oldest.
        Fifo,
        /// The one that comes.
        Lifo,
        /// The oldest of the lowest priority; the one that comes if its priority is no higher than that.
        Priority,
        /// The one that expires first; the one that comes if it does not expire later than that.
        Deadline,
    }
}

/// Properties with values, for one level. Those that are not among them stay what they are.
///
/// ```
/// use talea_event::qos::{OrderPolicy, QosSettings};
/// use talea_time::Duration;
///
/// let settings = QosSettings::new().order(OrderPolicy::Priority).timeout(Duration::from_millis(20));
/// # drop(settings);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QosSettings(BTreeMap<PropertyName, PropertyValue>);

impl QosSettings {
    /// None.
    pub fn new() -> Self {
        QosSettings::default()
    }

    /// The same with this property. Whether the value can be is checked when the settings are used.
    #[must_use]
    pub fn with(mut self, property: PropertyName, value: PropertyValue) -> Self {
        self.0.insert(property, value);
        self
    }

    /// The same with the property of this name, and the value that this text means.
    ///
    /// # Errors
    /// There is no such property, or its values are of another kind.
    pub fn with_text(self, name: &str, value: &str) -> Result<Self, QosProblem> {
        let property = PropertyName::named(name)?;
        Ok(self.with(property, property.parse(value)?))
    }

    /// [`PropertyName::Priority`].
    #[must_use]
    pub fn priority(self, priority: i16) -> Self {
        self.with(PropertyName::Priority, PropertyValue::Number(priority.into()))
    }

    /// [`PropertyName::Timeout`].
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(PropertyName::Timeout, PropertyValue::Time(timeout))
    }

    /// [`PropertyName::OrderPolicy`].
    #[must_use]
    pub fn order(self, order: OrderPolicy) -> Self {
        self.with(PropertyName::OrderPolicy, PropertyValue::Order(order))
    }

    /// [`PropertyName::DiscardPolicy`].
    #[must_use]
    pub fn discard(self, discard: DiscardPolicy) -> Self {
        self.with(PropertyName::DiscardPolicy, PropertyValue::Discard(discard))
    }

    /// [`PropertyName::MaxEventsPerConsumer`].
    #[must_use]
    pub fn max_events(self, events: u32) -> Self {
        self.with(PropertyName::MaxEventsPerConsumer, PropertyValue::Number(events.into()))
    }

    /// The newest of so many events wait, and older ones go: the least of memory that loses nothing new (`keep_last` of DDS and ROS 2).
    #[must_use]
    pub fn keep_last(self, events: u32) -> Self {
        self.max_events(events).order(OrderPolicy::Fifo).discard(DiscardPolicy::Fifo)
    }

    /// [`PropertyName::MaximumBatchSize`].
    #[must_use]
    pub fn max_batch(self, events: u32) -> Self {
        self.with(PropertyName::MaximumBatchSize, PropertyValue::Number(events.into()))
    }

    /// [`PropertyName::PacingInterval`].
    #[must_use]
    pub fn pacing(self, interval: Duration) -> Self {
        self.with(PropertyName::PacingInterval, PropertyValue::Time(interval))
    }

    /// [`PropertyName::BlockingPolicy`].
    #[must_use]
    pub fn blocking(self, limit: Duration) -> Self {
        self.with(PropertyName::BlockingPolicy, PropertyValue::Time(limit))
    }

    /// [`PropertyName::MinimumSeparation`].
    #[must_use]
    pub fn separation(self, separation: Duration) -> Self {
        self.with(PropertyName::MinimumSeparation, PropertyValue::Time(separation))
    }

    /// What they are, by name.
    pub fn iter(&self) -> impl Iterator<Item = (PropertyName, PropertyValue)> + '_ {
        self.0.iter().map(|(property, value)| (*property, *value))
    }

    /// Whether they can be set at this level.
    ///
    /// # Errors
    /// Every problem.
    pub fn check(&self, level: Level) -> Result<(), QosProblems> {
        let wrong = self.iter().filter_map(|(property, value)| property.check(value, level).err());
        let problems: Vec<QosProblem> = wrong.collect();
        if problems.is_empty() { Ok(()) } else { Err(QosProblems(problems)) }
    }
}

/// What counts, with everything that was set and not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qos {
    /// The priority of events that state none.
    pub priority: i16,
    /// How long events are worth being delivered that state nothing.
    pub timeout: Option<Duration>,
    /// Whether start times count.
    pub start_times: bool,
    /// Whether stop times count.
    pub stop_times: bool,
    /// The order of deliveries.
    pub order: OrderPolicy,
    /// What goes when there is no room.
    pub discard: DiscardPolicy,
    /// How many events may wait for a consumer.
    pub max_events: u32,
    /// How many are delivered at once at most.
    pub max_batch: u32,
    /// How long a batch may be awaited.
    pub pacing: Option<Duration>,
    /// How long suppliers wait for room.
    pub blocking: Option<Duration>,
    /// The least time between deliveries.
    pub separation: Option<Duration>,
    /// How long after a delivery failed it is tried again.
    pub retry: Duration,
    /// The level at which each property was set last.
    origins: BTreeMap<PropertyName, Level>,
}

impl Default for Qos {
    /// Where nothing was set: 100 events in the order in which they come, the oldest going first; start and stop times count.
    fn default() -> Self {
        Qos {
            priority: 0,
            timeout: None,
            start_times: true,
            stop_times: true,
            order: OrderPolicy::Any,
            discard: DiscardPolicy::Any,
            max_events: 100,
            max_batch: 1,
            pacing: None,
            blocking: None,
            separation: None,
            retry: Duration::from_secs(10),
            origins: BTreeMap::new(),
        }
    }
}

impl Qos {
    /// What this comes to with settings at a level.
    ///
    /// # Errors
    /// Every problem.
    pub fn with(&self, settings: &QosSettings, level: Level) -> Result<Self, QosProblems> {
        let mut problems = settings.check(level).err().map_or_else(Vec::new, |problems| problems.0);
        let mut qos = self.clone();
        for (property, value) in settings.iter() {
            qos.put(property, value);
            qos.origins.insert(property, level);
        }
        if i64::from(qos.max_batch) < qos.least_batch() {
            let allowed = "with a PacingInterval, MaximumBatchSize is at least 2";
            problems.push(PropertyName::MaximumBatchSize.problem(QosError::UnavailableValue, allowed));
        }
        if qos.max_batch > qos.max_events {
            let allowed = format!("no more than MaxEventsPerConsumer wait, which is {}", qos.max_events);
            problems.push(PropertyName::MaximumBatchSize.problem(QosError::UnavailableValue, allowed));
        }
        if problems.is_empty() { Ok(qos) } else { Err(QosProblems(problems)) }
    }

    /// The level at which the property was set last; none if it is as it is by itself.
    pub fn origin(&self, property: PropertyName) -> Option<Level> {
        self.origins.get(&property).copied()
    }

    /// What can be set at this level beside all that counts already: of each property its name and the values that it may have then, for people
    /// (what `validate_qos` returns).
    pub fn available(&self, level: Level) -> Vec<(PropertyName, String)> {
        self.available_within(level, (MOST_EVENTS as usize, MOST_EVENTS as usize))
    }

    /// The same where there is memory for no more than so many events that wait, and so many at once.
    pub fn available_within(&self, level: Level, memory: (usize, usize)) -> Vec<(PropertyName, String)> {
        let of_level = PropertyName::ALL.iter().filter(|property| property.levels().contains(&level));
        of_level.map(|property| (*property, self.allowed(*property, memory))).collect()
    }

    /// The values that a property may have where the others stay what they are.
    fn allowed(&self, property: PropertyName, (events, batch): (usize, usize)) -> String {
        match property {
            PropertyName::MaxEventsPerConsumer => number_from(self.max_batch.into(), events as i64),
            PropertyName::MaximumBatchSize => {
                number_from(self.least_batch(), i64::from(self.max_events).min(batch as i64))
            }
            PropertyName::PacingInterval if self.max_batch == 1 => {
                "it is 0 unless MaximumBatchSize is at least 2".into()
            }
            _ => property.allowed(),
        }
    }

    /// The least `MaximumBatchSize` that goes with the pacing.
    fn least_batch(&self) -> i64 {
        if self.pacing.is_some() { 2 } else { 1 }
    }

    fn put(&mut self, property: PropertyName, value: PropertyValue) {
        let some = |time: Duration| (time > Duration::ZERO).then_some(time);
        match (property, value) {
            (PropertyName::Priority, PropertyValue::Number(number)) => self.priority = number as i16,
            (PropertyName::Timeout, PropertyValue::Time(time)) => self.timeout = some(time),
            (PropertyName::StartTimeSupported, PropertyValue::Flag(flag)) => self.start_times = flag,
            (PropertyName::StopTimeSupported, PropertyValue::Flag(flag)) => self.stop_times = flag,
            (PropertyName::OrderPolicy, PropertyValue::Order(order)) => self.order = order,
            (PropertyName::DiscardPolicy, PropertyValue::Discard(discard)) => self.discard = discard,
            (PropertyName::MaxEventsPerConsumer, PropertyValue::Number(number)) => {
                self.max_events = number as u32;
            }
            (PropertyName::MaximumBatchSize, PropertyValue::Number(number)) => self.max_batch = number as u32,
            (PropertyName::PacingInterval, PropertyValue::Time(time)) => self.pacing = some(time),
            (PropertyName::BlockingPolicy, PropertyValue::Time(time)) => self.blocking = some(time),
            (PropertyName::MinimumSeparation, PropertyValue::Time(time)) => self.separation = some(time),
            (PropertyName::RetryInterval, PropertyValue::Time(time)) => self.retry = time,
            // Best effort is what there is, and the others are an event's own or not of this kind, which the check says.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(problems: Result<Qos, QosProblems>) -> Vec<(String, QosError)> {
        problems.unwrap_err().0.into_iter().map(|problem| (problem.property, problem.error)).collect()
    }

    #[test]
    fn settings_merge_and_say_where_they_came_from() {
        let channel = QosSettings::new().order(OrderPolicy::Priority).max_events(8);
        let channel = Qos::default().with(&channel, Level::Channel).expect("fine");
        let proxy = QosSettings::new().timeout(Duration::from_millis(5)).max_events(2);
        let proxy = channel.with(&proxy, Level::Proxy).expect("fine");
        assert_eq!((proxy.order, proxy.max_events), (OrderPolicy::Priority, 2));
        assert_eq!(proxy.timeout, Some(Duration::from_millis(5)));
        let origins = [PropertyName::OrderPolicy, PropertyName::MaxEventsPerConsumer, PropertyName::Priority]
            .map(|property| proxy.origin(property));
        assert_eq!(origins, [Some(Level::Channel), Some(Level::Proxy), None]);
        // A second call does not undo what the first one set.
        let paced = QosSettings::new().pacing(Duration::from_secs(1)).max_batch(2);
        assert_eq!(proxy.with(&paced, Level::Proxy).expect("fine").order, OrderPolicy::Priority);
    }

    #[test]
    fn every_problem_is_told_and_nothing_is_set() {
        let settings = QosSettings::new()
            .with(PropertyName::EventReliability, PropertyValue::Reliability(Reliability::Persistent))
            .with(PropertyName::StartTime, PropertyValue::Time(Duration::ZERO))
            .with(PropertyName::Priority, PropertyValue::Number(40_000))
            .with(PropertyName::Timeout, PropertyValue::Flag(true))
            .with(PropertyName::RetryInterval, PropertyValue::Time(Duration::ZERO))
            .max_batch(4)
            .max_events(3);
        let expected = [
            ("EventReliability", QosError::UnsupportedValue),
            ("Priority", QosError::BadValue),
            ("StartTime", QosError::UnavailableProperty),
            ("Timeout", QosError::BadType),
            ("RetryInterval", QosError::BadValue),
            ("MaximumBatchSize", QosError::UnavailableValue),
        ];
        let told = errors(Qos::default().with(&settings, Level::Channel));
        assert_eq!(told, expected.map(|(name, error)| (name.to_owned(), error)));
        let paced = QosSettings::new().pacing(Duration::from_millis(1));
        let told = errors(Qos::default().with(&paced, Level::Proxy));
        assert_eq!(told, [("MaximumBatchSize".to_owned(), QosError::UnavailableValue)]);
    }

    /// What is told as available can be set, and what lies beyond it cannot.
    #[test]
    fn what_is_available_goes_together_with_what_counts() {
        let told = |qos: &Qos, property: PropertyName, level: Level| {
            qos.available(level).into_iter().find(|(other, _)| *other == property).map(|(_, allowed)| allowed)
        };
        let plain = Qos::default();
        let paced = QosSettings::new().pacing(Duration::from_millis(1)).max_batch(3).max_events(8);
        let paced = plain.with(&paced, Level::Admin).expect("fine");
        let [events, batch, pacing] = [
            PropertyName::MaxEventsPerConsumer,
            PropertyName::MaximumBatchSize,
            PropertyName::PacingInterval,
        ];
        assert_eq!(told(&plain, batch, Level::Proxy).as_deref(), Some("it is a number from 1 to 100"));
        assert_eq!(told(&paced, batch, Level::Proxy).as_deref(), Some("it is a number from 2 to 8"));
        assert_eq!(told(&paced, events, Level::Proxy).as_deref(), Some("it is a number from 3 to 65536"));
        assert!(told(&plain, pacing, Level::Proxy).expect("its level").contains("MaximumBatchSize"));
        assert_eq!(told(&paced, pacing, Level::Proxy), Some(pacing.allowed()));
        for (least, most) in [(2, 8), (3, 8)] {
            assert!(paced.with(&QosSettings::new().max_batch(least), Level::Proxy).is_ok());
            assert!(paced.with(&QosSettings::new().max_batch(most + 1), Level::Proxy).is_err());
        }
        assert!(paced.with(&QosSettings::new().max_batch(1), Level::Proxy).is_err());
        assert!(paced.with(&QosSettings::new().max_events(2), Level::Proxy).is_err());
        assert_eq!(told(&plain, PropertyName::MinimumSeparation, Level::Channel), None, "not its level");
        assert_eq!(told(&plain, PropertyName::StartTime, Level::Proxy), None);
    }

    #[test]
    fn properties_are_read_by_their_names() {
        let set = |name, value| QosSettings::new().with_text(name, value);
        assert_eq!(set("OrderPolicy", "Deadline"), Ok(QosSettings::new().order(OrderPolicy::Deadline)));
        assert_eq!(set("Timeout", "20ms"), Ok(QosSettings::new().timeout(Duration::from_millis(20))));
        assert_eq!(set("Priority", "-3"), Ok(QosSettings::new().priority(-3)));
        let problem = set("Orderpolicy", "Fifo").unwrap_err();
        assert!(problem.error == QosError::BadProperty && problem.allowed.contains("OrderPolicy"));
        let problem = set("OrderPolicy", "Lifo").unwrap_err();
        assert_eq!((problem.error, problem.allowed.contains("Deadline")), (QosError::BadValue, true));
        for property in PropertyName::ALL {
            assert_eq!(PropertyName::named(property.as_str()), Ok(*property));
            assert!(!property.levels().is_empty() && property.parse("~").is_err());
        }
    }
}
