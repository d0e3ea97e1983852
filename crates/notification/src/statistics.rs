//! What is counted.

use std::sync::atomic::{AtomicU64, Ordering};
use talea_record::stream::passive::Counter;
use talea_time::Duration;

talea_record::family! {
    /// What the channels of a process count together, from the beginning of its stream.
    pub channel {
        /// Events that were pushed.
        counter pushed;
        /// Pushes that were refused because as many events waited as may.
        counter rejected;
        /// Events that were delivered, each once for each consumer.
        counter delivered;
        /// Events that came to a consumer who is to have them, each once for each.
        counter queued;
        /// Events that filters did not let through, or that came too soon after another one.
        counter filtered;
        /// Events that expired before they were delivered.
        counter expired;
        /// Events that went for want of room, or because their consumer was disconnected.
        counter overflows;
        /// Events that the code of their consumer refused or failed with, or that carried something else than it takes.
        counter failed;
    }
}

/// A count of a consumer, and that of all channels in the stream of the calling thread.
#[derive(Debug)]
pub(crate) struct Count {
    own: AtomicU64,
    all: Option<&'static Counter>,
}

impl Count {
    const fn new(all: Option<&'static Counter>) -> Self {
        Count { own: AtomicU64::new(0), all }
    }

    #[inline]
    pub fn add(&self, events: u64) {
        self.own.fetch_add(events, Ordering::Relaxed);
        if let Some(all) = self.all {
            all.add(events);
        }
    }

    pub fn read(&self) -> u64 {
        self.own.load(Ordering::Relaxed)
    }
}

/// What became of the events that came to a consumer; each of them is counted once, but for those that still wait.
#[derive(Debug)]
pub(crate) struct ConsumerCounts {
    pub delivered: Count,
    pub filtered: Count,
    pub expired: Count,
    pub too_soon: Count,
    pub discarded: Count,
    pub no_room: Count,
    pub refused: Count,
    pub failed: Count,
    pub incompatible: Count,
    pub grouped: Count,
    // Beside these:
    pub filter_errors: AtomicU64,
    pub retried: Count,
    pub blocked: Count,
    pub waited_for_serial: Count,
    latency_sum_ns: AtomicU64,
    latency_max_ns: AtomicU64,
}

impl ConsumerCounts {
    pub const fn new() -> Self {
        ConsumerCounts {
            delivered: Count::new(Some(&channel::delivered)),
            filtered: Count::new(Some(&channel::filtered)),
            expired: Count::new(Some(&channel::expired)),
            too_soon: Count::new(Some(&channel::filtered)),
            discarded: Count::new(Some(&channel::overflows)),
            no_room: Count::new(Some(&channel::overflows)),
            refused: Count::new(Some(&channel::failed)),
            failed: Count::new(Some(&channel::failed)),
            incompatible: Count::new(Some(&channel::failed)),
            grouped: Count::new(None),
            filter_errors: AtomicU64::new(0),
            retried: Count::new(None),
            blocked: Count::new(None),
            waited_for_serial: Count::new(None),
            latency_sum_ns: AtomicU64::new(0),
            latency_max_ns: AtomicU64::new(0),
        }
    }

    #[inline]
    pub fn deliver(&self, latency: Duration) {
        let latency = latency.as_nanos().max(0).unsigned_abs();
        self.latency_sum_ns.fetch_add(latency, Ordering::Relaxed);
        if latency > self.latency_max_ns.load(Ordering::Relaxed) {
            self.latency_max_ns.fetch_max(latency, Ordering::Relaxed);
        }
    }

    pub fn read(&self) -> ConsumerStatistics {
        let nanoseconds = |time: &AtomicU64| Duration::from_nanos(time.load(Ordering::Relaxed) as i64);
        ConsumerStatistics {
            delivered: self.delivered.read(),
            filtered: self.filtered.read(),
            expired: self.expired.read(),
            too_soon: self.too_soon.read(),
            discarded: self.discarded.read(),
            no_room: self.no_room.read(),
            refused: self.refused.read(),
            failed: self.failed.read(),
            incompatible: self.incompatible.read(),
            grouped: self.grouped.read(),
            lost_sets: 0,
            filter_errors: self.filter_errors.load(Ordering::Relaxed),
            retried: self.retried.read(),
            blocked: self.blocked.read(),
            waited_for_serial: self.waited_for_serial.read(),
            latency_sum: nanoseconds(&self.latency_sum_ns),
            latency_max: nanoseconds(&self.latency_max_ns),
        }
    }
}

/// What became of the events that came to a consumer. The first nine add up to those that came and do not wait any more, and were
/// not taken in by a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerStatistics {
    /// Handed on, and taken.
    pub delivered: u64,
    /// Not let through by filters.
    pub filtered: u64,
    /// Expired before they were delivered.
    pub expired: u64,
    /// Came sooner after another one than [`MinimumSeparation`](crate::qos::PropertyName::MinimumSeparation) lets them.
    pub too_soon: u64,
    /// Went for want of room by the [`DiscardPolicy`](crate::qos::DiscardPolicy), or because the consumer was disconnected.
    pub discarded: u64,
    /// Came so fast that not even that could be decided.
    pub no_room: u64,
    /// The consumer's code could make nothing of them.
    pub refused: u64,
    /// The consumer's code failed.
    pub failed: u64,
    /// Carried something else than the consumer has said that it takes ([`content`](crate::ConsumerBuilder::content)).
    pub incompatible: u64,
    /// Events that a [`Condition`](crate::Condition) over several has taken in. What it came true with counts as events that come to the consumer.
    pub grouped: u64,
    /// Sets of events for which there was no memory, since the consumer has as many as it may; they came to nobody.
    pub lost_sets: u64,
    /// Constraints that could not be evaluated, each time.
    pub filter_errors: u64,
    /// Deliveries that are tried again.
    pub retried: u64,
    /// Pushes that waited for room.
    pub blocked: u64,
    /// Deliveries that waited for another one of a consumer that has one at a time.
    pub waited_for_serial: u64,
    /// From push to delivery, of all that were delivered.
    pub latency_sum: Duration,
    /// The longest of these.
    pub latency_max: Duration,
}

impl ConsumerStatistics {
    /// Events that came and do not wait any more.
    pub fn settled(&self) -> u64 {
        let ConsumerStatistics { delivered, filtered, expired, too_soon, discarded, no_room, .. } = self;
        let lost = self.refused + self.failed + self.incompatible;
        delivered + filtered + expired + too_soon + discarded + no_room + lost
    }
}

/// What is counted of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelStatistics {
    /// Connected consumers: their names, how many events wait for each, and what became of the others.
    pub consumers: Vec<(String, usize, ConsumerStatistics)>,
    /// Names of connected suppliers.
    pub suppliers: Vec<String>,
    /// Numbers of admins of consumers.
    pub consumer_admins: Vec<u32>,
    /// Numbers of admins of suppliers.
    pub supplier_admins: Vec<u32>,
    /// Events that wait, each once for each consumer.
    pub queued: usize,
    /// Events that were pushed.
    pub pushed: u64,
    /// Pushes that were refused because as many events waited as may.
    pub rejected: u64,
    /// How long the event has waited that has waited longest.
    pub oldest: Duration,
}

/// A statistic by its standard name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// A number; times in nanoseconds.
    Number(u64),
    /// Names.
    Names(Vec<String>),
}

impl ChannelStatistics {
    /// The names that [`Self::named`] knows.
    pub const NAMES: [&'static str; 12] = [
        "ConsumerCount",
        "SupplierCount",
        "ConsumerNames",
        "SupplierNames",
        "ConsumerAdminCount",
        "SupplierAdminCount",
        "ConsumerAdminNames",
        "SupplierAdminNames",
        "QueueElementCount",
        "OldestEvent",
        "SlowestConsumers",
        "QueueOverflows",
    ];

    /// The statistic of this standard name, if there is one.
    pub fn named(&self, name: &str) -> Option<Statistic> {
        let number = |number: usize| Statistic::Number(number as u64);
        let numbers = |numbers: &[u32]| Statistic::Names(numbers.iter().map(u32::to_string).collect());
        Some(match name {
            "ConsumerCount" => number(self.consumers.len()),
            "SupplierCount" => number(self.suppliers.len()),
            "ConsumerNames" => Statistic::Names(self.consumers.iter().map(|one| one.0.clone()).collect()),
            "SupplierNames" => Statistic::Names(self.suppliers.clone()),
            "ConsumerAdminCount" => number(self.consumer_admins.len()),
            "SupplierAdminCount" => number(self.supplier_admins.len()),
            "ConsumerAdminNames" => numbers(&self.consumer_admins),
            "SupplierAdminNames" => numbers(&self.supplier_admins),
            "QueueElementCount" => number(self.queued),
            "OldestEvent" => Statistic::Number(self.oldest.as_nanos().unsigned_abs()),
            "SlowestConsumers" => Statistic::Names(self.slowest()),
            "QueueOverflows" => {
                Statistic::Number(self.consumers.iter().map(|(_, _, one)| one.discarded + one.no_room).sum())
            }
            _ => return None,
        })
    }

    /// The consumers for which most events wait, if any do.
    fn slowest(&self) -> Vec<String> {
        let most = self.consumers.iter().map(|one| one.1).max().unwrap_or(0);
        let slowest = self.consumers.iter().filter(|one| one.1 == most && most > 0);
        slowest.map(|one| one.0.clone()).collect()
    }
}
