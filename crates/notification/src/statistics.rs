//! What is counted.

use crate::event::Event;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use talea_record::stream::RegisterError;
use talea_record::stream::passive::{Gauge, Made, StreamNumber, made as make};
use talea_time::{Duration, Instant};

/// The counters of a channel in the stream of the calling thread, from the beginning of that, and how many there are of what: family `channel-NAME`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelCounters(Option<&'static OfFamily>);

/// What channels of one name count.
#[derive(Debug)]
struct OfFamily {
    made: &'static Made<{ COUNTERS.len() }, { GAUGES.len() }>,
    /// Of the events that wait, and of their bytes, those of which no stream knows, since the thread had none.
    untold_queued: [AtomicI64; 2],
    created: Mutex<Creations>,
}

/// When the channels of a name were made that are there still, and what streams show of that.
#[derive(Debug, Default)]
struct Creations {
    /// In nanoseconds, by their numbers in the process, which are those of their order.
    of_channels: BTreeMap<u64, i64>,
    shown: Told<i64>,
}

impl Creations {
    /// That of the first.
    fn first(&self) -> i64 {
        self.of_channels.first_key_value().map_or(0, |(_, created)| *created)
    }
}

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Pushed,
    Rejected,
    LeftOut,
    Delivered,
    Queued,
    Filtered,
    Expired,
    Overflows,
    Failed,
}

/// Their names and what they count, in the order of [`Counted`]. They are read in this order, so that no more are found delivered than queued.
const COUNTERS: [(&str, &str); 9] = [
    ("pushed", "Events that were pushed."),
    ("rejected", "Pushes that were refused because as many events waited as may."),
    ("left-out", "Events that filters of their suppliers did not let into the channel."),
    ("delivered", "Events that were delivered, each once for each consumer."),
    ("queued", "Events that came to a consumer who is to have them, each once for each."),
    ("filtered", "Events that filters did not let through, or that came too soon after another one."),
    (
        "expired",
        "Events that expired before they were delivered, or before filters of their suppliers could judge them.",
    ),
    ("overflows", "Events that went for want of room, or because their consumer was disconnected."),
    (
        "failed",
        "Events that the code of their consumer refused or failed with, or that carried something else than it takes.",
    ),
];

/// Of a channel, beside [`ChannelStatistics::NAMES`]: bytes, which its users' types tell.
pub(crate) const QUEUE_SIZE: &str = "QueueSize";
/// Of what a channel says how many there are, by their standard names.
const GAUGES: [(&str, &str); 7] = [
    ("ConsumerCount", "Connected consumers."),
    ("SupplierCount", "Connected suppliers."),
    ("ConsumerAdminCount", "Admins of consumers."),
    ("SupplierAdminCount", "Admins of suppliers."),
    (
        "CreationTime",
        "When the channel was made, in nanoseconds on the clock of the run: of several of one name the first that is there still.",
    ),
    ("QueueElementCount", "Events that wait, each once for each consumer."),
    (QUEUE_SIZE, "Bytes of the events that wait, each once for each consumer."),
];

/// The last two of these.
const QUEUED: usize = GAUGES.len() - 2;
const QUEUED_SIZE: usize = GAUGES.len() - 1;

/// How many there are of whom in a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members {
    pub consumers: usize,
    pub suppliers: usize,
    pub consumer_admins: usize,
    pub supplier_admins: usize,
}

impl Members {
    /// Whether anybody is connected.
    fn are_active(self) -> bool {
        self.consumers + self.suppliers > 0
    }

    /// Whether there is a channel at all, which always has its own admins.
    fn are_there(self) -> bool {
        self.consumer_admins > 0
    }
}

/// What each stream has been told, as what there is in a channel: those of a process that publishes several know what their threads have told.
#[derive(Debug)]
pub(crate) struct Told<T>(Vec<(StreamNumber, T)>);

impl<T> Default for Told<T> {
    fn default() -> Self {
        Told(Vec::new())
    }
}

impl<T: Default> Told<T> {
    /// The stream is told this now. Returns what it was told before.
    fn replace(&mut self, stream: StreamNumber, now: T) -> T {
        match self.0.iter_mut().find(|(other, _)| *other == stream) {
            Some((_, told)) => std::mem::replace(told, now),
            None => {
                self.0.push((stream, now));
                T::default()
            }
        }
    }
}

/// How many channels the process has to which somebody is connected, and others: by their standard names, family `channels`.
fn channel_gauges() -> Option<&'static [Gauge; 2]> {
    static CHANNELS: OnceLock<Option<&'static [Gauge; 2]>> = OnceLock::new();
    *CHANNELS.get_or_init(|| {
        let gauges = [
            ("ActiveEventChannelCount", "Channels to which a consumer or a supplier is connected."),
            ("InactiveEventChannelCount", "Channels to which nobody is connected."),
        ];
        make("channels", "The channels of the process.", &[], &gauges).ok().map(|made| &made.gauges)
    })
}

/// The counters of all channels that the process has made.
struct MadeCounters {
    by_family: BTreeMap<Box<str>, ChannelCounters>,
    /// No more can be made.
    is_full: bool,
}

static MADE: Mutex<MadeCounters> = Mutex::new(MadeCounters { by_family: BTreeMap::new(), is_full: false });

impl ChannelCounters {
    /// The counters of the channels of this name; in that of the family, `_` stands for what is neither letter nor digit. A process has room for 48;
    /// beyond that, and where its own families leave no room, a channel shows no counts in its stream.
    pub fn of(name: &str) -> Self {
        let plain = |letter: char| if letter.is_alphanumeric() || letter == '-' { letter } else { '_' };
        let family = format!("channel-{}", name.chars().map(plain).collect::<String>());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counters) = made.by_family.get(family.as_str()) {
            return *counters;
        }
        if made.is_full {
            return ChannelCounters(None);
        }
        let about = "What a channel counts, from the beginning of the stream.";
        let entities = make(&family, about, &COUNTERS, &GAUGES);
        made.is_full = matches!(
            entities,
            Err(RegisterError::Numbers { .. } | RegisterError::Events { .. } | RegisterError::Passive { .. })
        );
        let of_family = |made| {
            let untold_queued = std::array::from_fn(|_| AtomicI64::new(0));
            &*Box::leak(Box::new(OfFamily { made, untold_queued, created: Mutex::default() }))
        };
        let counters = ChannelCounters(entities.ok().map(of_family));
        made.by_family.insert(family.into(), counters);
        counters
    }

    #[inline]
    pub fn add(self, what: Counted, events: u64) {
        if let Some(own) = self.0 {
            own.made.counters[what as usize].add(events);
        }
    }

    /// So many events more wait, or less, of so many bytes, and one is counted. What a thread without a stream says of those that wait, the next one says
    /// that has one.
    #[inline]
    fn add_queued(self, what: Counted, events: i64, bytes: i64) {
        let Some(OfFamily { made, untold_queued, .. }) = self.0 else { return };
        let [untold_events, untold_bytes] = untold_queued;
        let and_untold = |more: i64, untold: &AtomicI64| match untold.load(Ordering::Relaxed) {
            0 => more,
            _ => more + untold.swap(0, Ordering::Relaxed),
        };
        let gauges =
            || [(QUEUED, and_untold(events, untold_events)), (QUEUED_SIZE, and_untold(bytes, untold_bytes))];
        if made.add([(what as usize, 1)], gauges).is_none() {
            untold_events.fetch_add(events, Ordering::Relaxed);
            untold_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// The channel of this number in the process was made then, or is gone. Of several of one name the stream of the calling thread, if it has one, shows when the
    /// first was made that is there still.
    pub fn tell_creation(self, number: u64, created: Option<Instant>) {
        let Some(OfFamily { made, created: creations, .. }) = self.0 else { return };
        let [.., gauge, _, _] = &made.gauges;
        let mut creations = creations.lock().unwrap_or_else(PoisonError::into_inner);
        match created {
            Some(created) => creations.of_channels.insert(number, created.as_nanos()),
            None => creations.of_channels.remove(&number),
        };
        if let Some(stream) = gauge.add(0) {
            let first = creations.first();
            _ = gauge.add(first - creations.shown.replace(stream, first));
        }
    }

    /// There are so many members now: the stream of the calling thread is told, if it has one.
    pub fn tell_members(self, told: &mut Told<Members>, now: Members) {
        let Some(OfFamily { made, .. }) = self.0 else { return };
        let [consumers, suppliers, consumer_admins, supplier_admins, ..] = &made.gauges;
        let Some(stream) = consumers.add(0) else { return };
        let before = told.replace(stream, now);
        let add = |gauge: &Gauge, count: fn(Members) -> usize| {
            _ = gauge.add(count(now) as i64 - count(before) as i64);
        };
        add(consumers, |members| members.consumers);
        add(suppliers, |members| members.suppliers);
        add(consumer_admins, |members| members.consumer_admins);
        add(supplier_admins, |members| members.supplier_admins);
        if let Some([active, inactive]) = channel_gauges() {
            add(active, |members| usize::from(members.are_active()));
            add(inactive, |members| usize::from(members.are_there() && !members.are_active()));
        }
    }

    /// A count of a consumer that counts there as well.
    fn with(self, what: Counted) -> Count {
        Count { own: AtomicU64::new(0), channel: self, what }
    }
}

/// A count of a consumer, and that of its channel.
#[derive(Debug)]
pub(crate) struct Count {
    own: AtomicU64,
    channel: ChannelCounters,
    /// As what it counts there.
    what: Counted,
}

impl Count {
    #[inline]
    pub fn add(&self, events: u64) {
        self.own.fetch_add(events, Ordering::Relaxed);
        self.channel.add(self.what, events);
    }

    pub fn read(&self) -> u64 {
        self.own.load(Ordering::Relaxed)
    }
}

/// What became of the events that came to a consumer; each of them is counted once, but for those that still wait.
#[derive(Debug)]
pub(crate) struct ConsumerCounts {
    /// Those of its channel.
    channel: ChannelCounters,
    pub delivered: Count,
    pub filtered: Count,
    pub expired: Count,
    pub too_soon: Count,
    pub discarded: Count,
    pub no_room: Count,
    pub refused: Count,
    pub failed: Count,
    pub incompatible: Count,
    // Beside these:
    pub grouped: AtomicU64,
    pub filter_errors: AtomicU64,
    pub retried: AtomicU64,
    pub blocked: AtomicU64,
    pub waited_for_serial: AtomicU64,
    latency_sum_ns: AtomicU64,
    latency_max_ns: AtomicU64,
}

impl ConsumerCounts {
    pub fn new(channel: ChannelCounters) -> Self {
        ConsumerCounts {
            channel,
            delivered: channel.with(Counted::Delivered),
            filtered: channel.with(Counted::Filtered),
            expired: channel.with(Counted::Expired),
            too_soon: channel.with(Counted::Filtered),
            discarded: channel.with(Counted::Overflows),
            no_room: channel.with(Counted::Overflows),
            refused: channel.with(Counted::Failed),
            failed: channel.with(Counted::Failed),
            incompatible: channel.with(Counted::Failed),
            grouped: AtomicU64::new(0),
            filter_errors: AtomicU64::new(0),
            retried: AtomicU64::new(0),
            blocked: AtomicU64::new(0),
            waited_for_serial: AtomicU64::new(0),
            latency_sum_ns: AtomicU64::new(0),
            latency_max_ns: AtomicU64::new(0),
        }
    }

    /// An event has come that the consumer is to have.
    #[inline]
    pub fn queue(&self, event: &Event) {
        self.channel.add_queued(Counted::Queued, 1, event.bytes() as i64);
    }

    /// One that had come waits no more, for this reason.
    #[inline]
    pub fn leave(&self, event: &Event, why: &Count) {
        why.own.fetch_add(1, Ordering::Relaxed);
        self.channel.add_queued(why.what, -1, -(event.bytes() as i64));
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
        let count = |own: &AtomicU64| own.load(Ordering::Relaxed);
        let nanoseconds = |time: &AtomicU64| Duration::from_nanos(count(time) as i64);
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
            grouped: count(&self.grouped),
            lost_sets: 0,
            timed_out: 0,
            replaced: 0,
            not_needed: 0,
            filter_errors: count(&self.filter_errors),
            retried: count(&self.retried),
            blocked: count(&self.blocked),
            waited_for_serial: count(&self.waited_for_serial),
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
    /// Events that a condition kept until the time of their conjunction or sequence ([`within`](crate::Condition::within)) was over. Of this and the
    /// next two, an event that two parts of the condition have taken in counts in each. It is counted when an event or a timer comes next, so at
    /// the end of a run not all of them are.
    pub timed_out: u64,
    /// Events that a condition kept until a later one took their place ([`Collect::Latest`](crate::Collect::Latest)).
    pub replaced: u64,
    /// Events that a condition did not wait for: it had one already, their turn had not come, another part came true, or they kept an
    /// [`Unless`](crate::Condition::Unless) from coming true.
    pub not_needed: u64,
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
    /// Types that suppliers offer ([`EventChannel::offered_types`](crate::EventChannel::offered_types)), in the order of their names.
    pub offered_types: Vec<String>,
    /// Types that consumers have subscribed to ([`EventChannel::subscribed_types`](crate::EventChannel::subscribed_types)), in the order of their names.
    pub subscribed_types: Vec<String>,
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
    /// Events that filters of their suppliers did not let into the channel.
    pub left_out: u64,
    /// Events that were not let into the channel since they were worth something for less time than filters of their suppliers may take. Those that
    /// expire later, each consumer counts.
    pub expired: u64,
    /// How long the event has waited that has waited longest.
    pub oldest: Duration,
    /// When the channel was made, on the clock of its workplace; when it got that, if it was made before, and nothing if it has none.
    pub created: Option<Instant>,
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
    /// The names that [`Self::named`] knows: those of the standard, and two of our own for what its `obtain_offered_types` and `obtain_subscription_types` tell.
    pub const NAMES: [&'static str; 16] = [
        "CreationTime",
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
        "TimedoutConsumerNames",
        "QueueOverflows",
        "OfferedTypes",
        "SubscribedTypes",
    ];

    /// The statistic of this standard name, if there is one.
    pub fn named(&self, name: &str) -> Option<Statistic> {
        let number = |number: usize| Statistic::Number(number as u64);
        let numbers = |numbers: &[u32]| Statistic::Names(numbers.iter().map(u32::to_string).collect());
        Some(match name {
            "CreationTime" => {
                Statistic::Number(self.created.map_or(0, |created| created.as_nanos().max(0).unsigned_abs()))
            }
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
            "OfferedTypes" => Statistic::Names(self.offered_types.clone()),
            "SubscribedTypes" => Statistic::Names(self.subscribed_types.clone()),
            "SlowestConsumers" => Statistic::Names(self.slowest()),
            "TimedoutConsumerNames" => {
                let timed_out = self.consumers.iter().filter(|one| one.2.expired > 0);
                Statistic::Names(timed_out.map(|one| one.0.clone()).collect())
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use talea_record::stream::passive::Counter;

    fn family(name: &str) -> Option<*const Counter> {
        ChannelCounters::of(name).0.map(|own| own.made.counters.as_ptr())
    }

    #[test]
    fn channels_of_one_name_have_the_same_counters() {
        let one = family("one").expect("there is room");
        assert_eq!(family("one"), Some(one));
        assert_ne!(family("other"), Some(one));
        assert_eq!(family("a b"), family("a.b"), "neither may stand in the name of a family");
    }

    #[test]
    fn a_channel_whose_family_the_program_has_shows_no_counts_and_others_do() {
        talea_record::stream::passive::made("channel-taken", "Something else.", &[("x", "What it is.")], &[])
            .expect("nobody has it");
        assert_eq!(family("taken"), None);
        assert!(family("free").is_some());
    }

    /// What waits already when there is a stream comes with the first event.
    #[test]
    fn what_threads_without_a_stream_count_is_told_by_the_first_that_has_one() {
        use talea_record::stream::StreamDirectory;
        use talea_record::{Metadata, RingShape};

        let counters = ChannelCounters::of("untold");
        let own = counters.0.expect("there is room");
        let [.., queued, size] = &own.made.gauges;
        [3, -1].into_iter().for_each(|events| counters.add_queued(Counted::Queued, events, 8 * events));
        let untold = || own.untold_queued.each_ref().map(|untold| untold.load(Ordering::Relaxed));
        assert_eq!((untold(), queued.get(), size.get()), ([2, 16], None, None));
        let place = tempfile::tempdir().expect("a folder");
        let streams = StreamDirectory::at(&place.path().join("streams")).expect("a folder");
        let shape = RingShape { writers: &["collector".to_owned()], spare: 2, capacity: 256, later: 0 };
        let stream = streams.publish("untold", &Metadata::bare("untold"), shape).expect("published");
        let _local = stream.attach_thread("untold").expect("there is room");
        counters.add_queued(Counted::Delivered, 1, 8);
        assert_eq!(own.made.counters[Counted::Delivered as usize].get(), Some(1));
        assert_eq!((untold(), queued.get(), size.get()), ([0, 0], Some(3), Some(24)));
    }

    #[test]
    fn counters_stand_where_they_are_looked_for() {
        let all = [
            Counted::Pushed,
            Counted::Rejected,
            Counted::LeftOut,
            Counted::Delivered,
            Counted::Queued,
            Counted::Filtered,
            Counted::Expired,
            Counted::Overflows,
            Counted::Failed,
        ];
        let names: Vec<String> = all.iter().map(|what| format!("{what:?}").to_lowercase()).collect();
        assert_eq!(names, COUNTERS.map(|(name, _)| name.replace('-', "")));
        assert!(all.iter().enumerate().all(|(place, what)| *what as usize == place));
        assert!(
            GAUGES.iter().all(|(name, _)| *name == QUEUE_SIZE || ChannelStatistics::NAMES.contains(name)),
            "they are the standard's"
        );
    }
}
