//! Statistics by their standard names, over time.

use crate::channel::{EventChannel, EventChannelFactory};
use crate::statistics::{ChannelStatistics, Statistic};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use talea_time::Instant;
use thiserror::Error;

/// Reads the statistics of factories and their channels by name, as `factory/channel/QueueSize`, `factory/ActiveEventChannelCount` or `FactoryNames`
/// (the standard's monitoring; the commands beside it are [`EventChannelFactory::destroy`] and those to remove a
/// [consumer](EventChannel::remove_consumer), a [supplier](EventChannel::remove_supplier) or an [admin](crate::ConsumerAdmin::destroy)).
///
/// Whoever reads a number takes a sample of it: what is told of it is of all samples since it was cleared last. A channel whose name another one of its
/// factory has, too, is named by its number.
#[derive(Default)]
pub struct Monitor {
    factories: BTreeMap<String, EventChannelFactory>,
    samples: Mutex<BTreeMap<String, Numeric>>,
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
                names.extend(
                    ChannelStatistics::NAMES.iter().map(|name| format!("{factory}/{channel}/{name}")),
                );
            }
        }
        names
    }

    /// The channel of this path, as `factory/channel`, if there is one.
    pub fn channel(&self, path: &str) -> Option<EventChannel> {
        self.factories.iter().find_map(|(factory, made)| {
            let own = path.strip_prefix(factory.as_str())?.strip_prefix('/')?;
            channels(made).into_iter().find(|(name, _)| name == own).map(|(_, channel)| channel)
        })
    }

    /// A statistic as of `now`, with those of its samples that were taken before (`get_statistic`).
    ///
    /// # Errors
    /// There is none of this name.
    pub fn get(&self, name: &str, now: Instant) -> Result<Monitored, UnknownStatistic> {
        Ok(match self.sample(name, now)? {
            Statistic::Names(names) => Monitored::Names(names),
            Statistic::Number(number) => {
                let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
                let of_name = samples.entry(name.to_owned()).or_insert(Numeric::NONE);
                *of_name = of_name.with(number as f64);
                Monitored::Numeric(*of_name)
            }
        })
    }

    /// The same, after which no sample is known (`get_and_clear_statistic`).
    ///
    /// # Errors
    /// As [`Self::get`]; nothing is cleared.
    pub fn get_and_clear(&self, name: &str, now: Instant) -> Result<Monitored, UnknownStatistic> {
        let monitored = self.get(name, now)?;
        self.forget(name);
        Ok(monitored)
    }

    /// No sample of the statistic is known from now on (`clear_statistic`). What the channel itself counts stays.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn clear(&self, name: &str) -> Result<(), UnknownStatistic> {
        let had = self.forget(name);
        if had || self.names().iter().any(|known| known == name) {
            Ok(())
        } else {
            Err(UnknownStatistic(name.into()))
        }
    }

    fn forget(&self, name: &str) -> bool {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    fn sample(&self, name: &str, now: Instant) -> Result<Statistic, UnknownStatistic> {
        if name == FACTORY_NAMES {
            return Ok(Statistic::Names(self.factories.keys().cloned().collect()));
        }
        let found = name.rsplit_once('/').and_then(|(path, statistic)| match self.factories.get(path) {
            Some(factory) => of_factory(factory, statistic, now),
            None => self.channel(path)?.statistics(now).named(statistic),
        });
        found.ok_or_else(|| UnknownStatistic(name.into()))
    }
}

/// The channels of a factory by name, or by number where several have the same.
fn channels(factory: &EventChannelFactory) -> Vec<(String, EventChannel)> {
    let all: Vec<EventChannel> =
        factory.all().into_iter().filter_map(|number| factory.channel(number)).collect();
    let named = |channel: &EventChannel| match all.iter().filter(|one| one.name() == channel.name()).count() {
        1 => channel.name().to_owned(),
        _ => channel.id().to_string(),
    };
    all.iter().map(|channel| (named(channel), channel.clone())).collect()
}

/// What a factory has by this name. A channel is active if a consumer or a supplier is connected to it.
fn of_factory(factory: &EventChannelFactory, name: &str, now: Instant) -> Option<Statistic> {
    let with = |active: bool| -> Vec<String> {
        let channels = channels(factory).into_iter();
        channels.filter(|(_, one)| one.statistics(now).is_active() == active).map(|(name, _)| name).collect()
    };
    Some(match name {
        "ActiveEventChannelCount" => Statistic::Number(with(true).len() as u64),
        "InactiveEventChannelCount" => Statistic::Number(with(false).len() as u64),
        "ActiveEventChannelNames" => Statistic::Names(with(true)),
        "InactiveEventChannelNames" => Statistic::Names(with(false)),
        _ => return None,
    })
}
