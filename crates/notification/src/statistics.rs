//! What is counted.

use std::sync::atomic::{AtomicU64, Ordering};
use talea_time::Duration;

/// What became of the events that came to a consumer; each of them is counted once, but for those that still wait.
#[derive(Debug, Default)]
pub(crate) struct ConsumerCounts {
    pub delivered: AtomicU64,
    pub filtered: AtomicU64,
    pub expired: AtomicU64,
    pub too_soon: AtomicU64,
    pub discarded: AtomicU64,
    pub no_room: AtomicU64,
    pub refused: AtomicU64,
    pub failed: AtomicU64,
    pub incompatible: AtomicU64,
    pub grouped: AtomicU64,
    // Beside these:
    pub filter_errors: AtomicU64,
    pub retried: AtomicU64,
    pub blocked: AtomicU64,
    pub waited_for_serial: AtomicU64,
    latency_sum_ns: AtomicU64,
    latency_max_ns: AtomicU64,
}

impl ConsumerCounts {
    #[inline]
    pub fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
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
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ConsumerStatistics {
            delivered: read(&self.delivered),
            filtered: read(&self.filtered),
            expired: read(&self.expired),
            too_soon: read(&self.too_soon),
            discarded: read(&self.discarded),
            no_room: read(&self.no_room),
            refused: read(&self.refused),
            failed: read(&self.failed),
            incompatible: read(&self.incompatible),
            grouped: read(&self.grouped),
            lost_sets: 0,
            filter_errors: read(&self.filter_errors),
            retried: read(&self.retried),
            blocked: read(&self.blocked),
            waited_for_serial: read(&self.waited_for_serial),
            latency_sum: Duration::from_nanos(read(&self.latency_sum_ns) as i64),
            latency_max: Duration::from_nanos(read(&self.latency_max_ns) as i64),
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
