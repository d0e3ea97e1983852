//! What an event costs whoever pushes it.

use super::{Stage, high};
use talea_linux::clock::MonotonicClock;
use talea_model::Overhead;
use talea_notification::etcl::Filterable;
use talea_notification::qos::QosSettings;
use talea_notification::{
    AdminProperties, Content, Event, EventChannelFactory, EventType, Filter, Header, PullConsumer, Supplier,
    TypePattern,
};
use talea_operation::{NotPosted, Post, Posted};
use talea_time::{Clock, Duration, Instant, Work};

/// Events that are pushed between two looks at the clock: one is too short for it.
const TOGETHER: u32 = 16;
/// Subscriptions, so that what one more costs is not lost in what varies.
const SUBSCRIPTIONS: u32 = 16;

#[derive(Filterable)]
#[filterable(crate = "talea_notification::etcl")]
struct Battery {
    charge: f64,
    cell: u32,
}

impl Content for Battery {}

/// Consumers take their events themselves, so nothing is posted.
struct Nothing;

impl Post for Nothing {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn post_work(&mut self, _posted: Posted) -> Result<u64, NotPosted> {
        Ok(0)
    }

    fn may_wait(&self) -> bool {
        false
    }
}

/// Sets `push`, `filter` and `delivery` of these costs.
pub(super) fn measure(stage: Stage, samples: usize, costs: Overhead) -> Overhead {
    let taken = stage.run(move || {
        [(0, false), (SUBSCRIPTIONS, false), (SUBSCRIPTIONS, true)]
            .map(|(subscriptions, is_filtered)| Pushed::new(subscriptions, is_filtered).measure(samples))
    });
    // As of what cannot be measured elsewhere.
    let Some([nobody, queued, filtered]) = taken else { return costs };
    // Less than what can be measured is something still.
    let of_one = |all: Duration, without: Duration| {
        Work::from_nanos(((all - without).as_nanos() / i64::from(SUBSCRIPTIONS)).max(1))
    };
    Overhead {
        push: nobody.as_work(),
        delivery: of_one(queued, nobody),
        filter: of_one(filtered, queued),
        ..costs
    }
}

/// A channel into which somebody pushes.
struct Pushed {
    supplier: Supplier,
    consumers: Vec<PullConsumer>,
    event: Event,
}

impl Pushed {
    fn new(subscriptions: u32, is_filtered: bool) -> Self {
        let factory = EventChannelFactory::new();
        let channel = factory.create("measured", &QosSettings::new(), AdminProperties::default());
        let channel = channel.expect("nothing is asked for that there is not");
        let qos = QosSettings::new().max_events(TOGETHER);
        let consumer = |number: u32| {
            let pattern = TypePattern::new("Robot", "Battery").expect("a pattern");
            let mut consumer = channel.consumer("measuring").subscribe([pattern]).qos(qos.clone());
            if is_filtered {
                // Different texts, as different people would write them; all match.
                let text = format!("cell == 3 and charge < 20 and $priority <= {number}");
                consumer = consumer.filter(Filter::parse::<Battery>(&[], &text).expect("a constraint"));
            }
            consumer.connect_pull().expect("there is room")
        };
        let consumers = (0..subscriptions).map(consumer).collect();
        let battery = EventType::new("Robot", "Battery");
        let supplier =
            channel.supplier("measured").offer([battery.clone()]).connect().expect("there is room");
        let event = Event::new(Header::new(battery), Battery { charge: 11.5, cell: 3 });
        Pushed { supplier, consumers, event }
    }

    /// What an event takes.
    fn measure(&mut self, samples: usize) -> Duration {
        let mut round = |_| {
            let begin = MonotonicClock.now();
            for _ in 0..TOGETHER {
                self.supplier.push(Nothing, &self.event).expect("there is room");
            }
            let together = MonotonicClock.now() - begin;
            for consumer in &self.consumers {
                while consumer.try_pull(Instant::ZERO).is_some() {}
            }
            Duration::from_nanos((together.as_nanos() + 1) / i64::from(TOGETHER))
        };
        high((0..samples).map(&mut round).collect())
    }
}
