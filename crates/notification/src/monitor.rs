//! Statistics by their standard names, over time.

use crate::channel::{EventChannel, EventChannelFactory};
use crate::statistics::{ChannelStatistics, QUEUE_SIZE, Statistic};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use talea_time::Instant;
use thiserror::Error;

/// Reads the statistics of factories and their channels by name, as `factory/channel/QueueSize`, `factory/ActiveEventChannelCount` or `FactoryNames`
/// (the standard's monitoring; the commands beside it are [`EventChannelFactory::destroy`] and those to remove a
/// [consumer](EventChannel::remove_consumer), a [supplier](EventChannel::remove_supplier) or an [admin](crate::ConsumerAdmin::destroy)).
///
/// Whoever reads a number takes a sample of it: what is told of it is of all samples since it was cleared last. A channel whose name another one of its
/// factory has, too, or begins with `#`, is named by its number, as `factory/#3/QueueSize`.
#[derive(Default)]
pub struct Monitor {
    factories: BTreeMap<String, EventChannelFactory>,
    samples: Mutex<BTreeMap<Key, Numeric>>,
}

/// Of which factory, and channel if it is of one, which statistic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    factory: String,
    channel: Option<u32>,
    statistic: String,
}

/// A statistic that there is.
enum Found {
    FactoryNames,
    Of(Key, Option<EventChannel>),
}

/// What becomes of the samples of a statistic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Keep,
    Clear,
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("factories", &self.factories.keys()).finish_non_exhaustive()
    }
}

/// What a [`Monitor`] tells of a statistic.
#[derive(Clone, Debug, PartialEq)]
pub enum Monitored {
    /// It is a number; times in nanoseconds.
    Numeric(Numeric),
    /// It is a list of names, as it is now.
    Names(Vec<String>),
}

/// The samples of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numeric {
    /// How many they are.
    pub count: u64,
    /// Their mean.
    pub average: f64,
    /// The sum of their squares.
    pub sum_of_squares: f64,
    /// The least.
    pub minimum: f64,
    /// The greatest.
    pub maximum: f64,
    /// The last.
    pub last: f64,
}

impl Numeric {
    /// None yet.
    const NONE: Numeric = Numeric {
        count: 0,
        average: 0.0,
        sum_of_squares: 0.0,
        minimum: f64::INFINITY,
        maximum: f64::NEG_INFINITY,
        last: 0.0,
    };

    fn with(self, sample: f64) -> Self {
        let count = self.count + 1;
        Numeric {
            count,
            average: self.average + (sample - self.average) / count as f64,
            sum_of_squares: self.sum_of_squares + sample * sample,
            minimum: self.minimum.min(sample),
            maximum: self.maximum.max(sample),
            last: sample,
        }
    }
}

/// There is no such statistic (`InvalidName`).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no statistic \"{0}\"; Monitor::names lists those that there are")]
pub struct UnknownStatistic(pub String);

const FACTORY_NAMES: &str = "FactoryNames";
/// Of a factory.
const OF_FACTORY: [&str; 4] = [
    "ActiveEventChannelCount",
    "InactiveEventChannelCount",
    "ActiveEventChannelNames",
    "InactiveEventChannelNames",
];

impl Monitor {
    /// One that knows no factory yet.
    pub fn new() -> Self {
        Monitor::default()
    }

    /// Reads the statistics of this factory, too, under this name; those of another one of the same name no more.
    #[must_use]
    pub fn with(mut self, name: &str, factory: &EventChannelFactory) -> Self {
        self.factories.insert(name.into(), factory.clone());
        self
    }

    /// The names of all statistics that there are now.
    pub fn names(&self) -> Vec<String> {
        let mut names = vec![FACTORY_NAMES.to_owned()];
        for (factory, made) in &self.factories {
            names.extend(OF_FACTORY.iter().map(|name| format!("{factory}/{name}")));
            for (channel, _) in channels(made) {
                let of_channel = ChannelStatistics::NAMES.iter().copied().chain([QUEUE_SIZE]);
                names.extend(of_channel.map(|name| format!("{factory}/{channel}/{name}")));
            }
        }
        names
    }

    /// The channel of this path, as `factory/channel`, if there is one.
    pub fn channel(&self, path: &str) -> Option<EventChannel> {
        self.located(path).map(|(_, channel)| channel)
    }

    /// A channel with the name of its factory.
    fn located(&self, path: &str) -> Option<(&str, EventChannel)> {
        self.factories.iter().find_map(|(factory, made)| {
            let own = path.strip_prefix(factory.as_str())?.strip_prefix('/')?;
            let (_, channel) = channels(made).into_iter().find(|(name, _)| name == own)?;
            Some((factory.as_str(), channel))
        })
    }

    /// A statistic as of `now`, with those of its samples that were taken before (`get_statistic`).
    ///
    /// # Errors
    /// There is none of this name.
    pub fn get(&self, name: &str, now: Instant) -> Result<Monitored, UnknownStatistic> {
        self.read(name, now, Then::Keep)
    }

    /// The same, after which no sample is known (`get_and_clear_statistic`).
    ///
    /// # Errors
    /// As [`Self::get`]; nothing is cleared.
    pub fn get_and_clear(&self, name: &str, now: Instant) -> Result<Monitored, UnknownStatistic> {
        self.read(name, now, Then::Clear)
    }

    /// No sample of the statistic is known from now on (`clear_statistic`). What the channel itself counts stays.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn clear(&self, name: &str) -> Result<(), UnknownStatistic> {
        if let Found::Of(key, _) = self.find(name)? {
            self.samples().remove(&key);
        }
        Ok(())
    }

    fn samples(&self) -> MutexGuard<'_, BTreeMap<Key, Numeric>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Result<Found, UnknownStatistic> {
        if name == FACTORY_NAMES {
            return Ok(Found::FactoryNames);
        }
        let found = name.rsplit_once('/').and_then(|(path, statistic)| {
            let key = |factory: &str, channel| Key {
                factory: factory.into(),
                channel,
                statistic: statistic.into(),
            };
            if self.factories.contains_key(path) {
                return OF_FACTORY.contains(&statistic).then(|| Found::Of(key(path, None), None));
            }
            let is_known = statistic == QUEUE_SIZE || ChannelStatistics::NAMES.contains(&statistic);
            let (factory, channel) = self.located(path).filter(|_| is_known)?;
            Some(Found::Of(key(factory, Some(channel.id())), Some(channel)))
        });
        found.ok_or_else(|| UnknownStatistic(name.into()))
    }

    fn read(&self, name: &str, now: Instant, then: Then) -> Result<Monitored, UnknownStatistic> {
        let Found::Of(key, channel) = self.find(name)? else {
            return Ok(Monitored::Names(self.factories.keys().cloned().collect()));
        };
        let statistic = match &channel {
            None => of_factory(&self.factories[&key.factory], &key.statistic),
            Some(channel) if key.statistic == QUEUE_SIZE => {
                Statistic::Number(channel.queued_bytes(now) as u64)
            }
            Some(channel) => channel.statistics(now).named(&key.statistic).expect("it is one of the names"),
        };
        let number = match statistic {
            Statistic::Names(names) => return Ok(Monitored::Names(names)),
            Statistic::Number(number) => number,
        };
        let mut samples = self.samples();
        if !samples.contains_key(&key) {
            // Those of channels that are gone are not asked for any more.
            samples.retain(|known, _| self.has(known));
        }
        let of_key = samples.get(&key).copied().unwrap_or(Numeric::NONE).with(number as f64);
        match then {
            Then::Keep => samples.insert(key, of_key),
            Then::Clear => samples.remove(&key),
        };
        Ok(Monitored::Numeric(of_key))
    }

    fn has(&self, key: &Key) -> bool {
        let factory = &self.factories[&key.factory];
        key.channel.is_none_or(|channel| factory.channel(channel).is_some())
    }
}

/// The channels of a factory by name, or by number where several have the same.
fn channels(factory: &EventChannelFactory) -> Vec<(String, EventChannel)> {
    let all: Vec<EventChannel> =
        factory.all().into_iter().filter_map(|number| factory.channel(number)).collect();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    all.iter().for_each(|channel| *names.entry(channel.name().to_owned()).or_default() += 1);
    let named = |channel: EventChannel| match names[channel.name()] {
        1 if !channel.name().starts_with('#') => (channel.name().to_owned(), channel),
        _ => (format!("#{}", channel.id()), channel),
    };
    all.into_iter().map(named).collect()
}

/// What a factory has by one of its names. A channel is active if a consumer or a supplier is connected to it.
fn of_factory(factory: &EventChannelFactory, name: &str) -> Statistic {
    let is_of_active = name.starts_with("Active");
    let channels = channels(factory).into_iter().filter(|(_, channel)| channel.is_active() == is_of_active);
    let names: Vec<String> = channels.map(|(name, _)| name).collect();
    if name.ends_with("Count") { Statistic::Number(names.len() as u64) } else { Statistic::Names(names) }
}
