//! What events carry is the program's own: when it is dropped, wherever that is, it may connect, disconnect, change
//! settings, count and push.

use crate::allocation::Nothing;
use crate::{MS, Number, channel, event_of, types};
use futures_core::Stream;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread;
use talea_event::Outcome;
use talea_notification::qos::{DiscardPolicy, PropertyName, PropertyValue, QosSettings};
use talea_notification::{
    AdminProperties, Collect, Condition, ConnectedConsumer, Content, Event, EventChannel,
    EventChannelFactory, EventType, Filter, GroupOperator, Header, PullConsumer, Supplier, WaitSet,
};
use talea_time::{Duration, Instant};

/// Where contents act when they are dropped.
struct Stage {
    channel: EventChannel,
    acted: AtomicUsize,
    /// Who drops while this is set waits for nobody: it does not act, so that a test ends.
    is_over: AtomicBool,
    now: Mutex<Instant>,
}

impl Stage {
    fn on(channel: &EventChannel) -> Arc<Self> {
        Arc::new(Stage {
            channel: channel.clone(),
            acted: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            now: Mutex::new(Instant::ZERO),
        })
    }

    fn set(&self, now: Instant) {
        *self.now.lock().expect("whole") = now;
    }

    fn now(&self) -> Instant {
        *self.now.lock().expect("whole")
    }

    fn acted(&self) -> usize {
        self.acted.swap(0, Ordering::Relaxed)
    }

    /// Connects and disconnects, pushes, changes and counts, each of which takes the locks that it needs.
    fn act(&self) {
        let (channel, now) = (&self.channel, self.now());
        let passing = channel.consumer("passing").subscribe(types("Test/Dropped")).connect_pull();
        let Ok(passing) = passing else { return };
        let offered = [EventType::new("Test", "Dropped")];
        let supplier = channel.supplier("dropped").offer_retained(offered, 1).connect();
        let mut supplier = supplier.expect("the channel is there");
        for name in ["Dropped", "Tick"] {
            supplier.push(Nothing(now), &event_of(name, 0)).expect("it may be pushed");
        }
        _ = passing.try_pull(now);
        for (number, _) in channel.consumers() {
            let Some(consumer) = channel.consumer_of(number) else { continue };
            let id = consumer.filters().add(Filter::of_types(&types("*"))).expect("no limit");
            assert!(consumer.filters().remove(id));
            consumer.set_qos(&QosSettings::new().priority(3)).expect("it can be set");
        }
        _ = (channel.statistics(now), channel.queued_bytes(now), channel.offered_types());
        passing.disconnect();
        drop(supplier);
    }
}

/// Acts when it is dropped.
struct Acting(Arc<Stage>);

impl Content for Acting {}

impl Drop for Acting {
    fn drop(&mut self) {
        if !self.0.is_over.load(Ordering::Relaxed) {
            self.0.act();
            self.0.acted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn acting(stage: &Arc<Stage>, change: impl FnOnce(&mut Header)) -> Event {
    let mut header = Header::new(EventType::new("Test", "Tick"));
    change(&mut header);
    Event::new(header, Acting(Arc::clone(stage)))
}

fn push(supplier: &mut Supplier, stage: &Arc<Stage>, change: impl FnOnce(&mut Header)) {
    let event = acting(stage, change);
    supplier.push(Nothing(stage.now()), &event).expect("it may be pushed");
}

fn pulled(channel: &EventChannel, settings: QosSettings) -> PullConsumer {
    let builder = channel.consumer("c").subscribe(types("Test/Tick")).qos(settings);
    builder.connect_pull().expect("connected")
}

/// More than can be dropped at once.
const MANY: usize = 30;

const POLICIES: [DiscardPolicy; 4] =
    [DiscardPolicy::Fifo, DiscardPolicy::Lifo, DiscardPolicy::Priority, DiscardPolicy::Deadline];

#[test]
fn what_is_discarded_for_want_of_room_acts_where_it_goes() {
    for discard in POLICIES {
        for limit in [0, 3] {
            let (_time, channel) = channel(QosSettings::new().discard(discard));
            channel.set_admin_properties(AdminProperties {
                max_queue_length: limit,
                ..AdminProperties::default()
            });
            let stage = Stage::on(&channel);
            let own = if limit == 0 { 3 } else { 100 };
            let consumers =
                [0, 1].map(|_| pulled(&channel, QosSettings::new().discard(discard).max_events(own)));
            let mut supplier = channel.supplier("s").connect().expect("connected");
            for number in 0..MANY {
                push(&mut supplier, &stage, |header| {
                    header.priority = Some((number % 3) as i16);
                    header.timeout = Some(MS(100 + number as i64 % 7));
                });
            }
            let acted = stage.acted();
            assert!(acted > 0, "{discard:?} {limit}");
            drop(consumers);
            assert_eq!(acted + stage.acted(), MANY, "{discard:?} {limit}");
            assert_eq!(channel.statistics(stage.now()).queued, 0);
        }
    }
}

/// Wherever somebody looks at a queue in which events have expired.
#[test]
fn what_has_expired_acts_where_it_is_found() {
    type Look = fn(&EventChannel, &PullConsumer, Instant);
    let looks: [(&str, Look); 7] = [
        ("pull", |_, consumer, now| while consumer.try_pull(now).is_some() {}),
        ("statistics", |channel, _, now| _ = channel.statistics(now)),
        ("bytes", |channel, _, now| _ = channel.queued_bytes(now)),
        ("wait set", |_, consumer, now| {
            let mut set = WaitSet::new();
            set.add(consumer);
            _ = set.wait(Duration::ZERO, || now);
        }),
        ("resume", |_, consumer, now| {
            consumer.suspend().expect("it is active");
            consumer.resume(Nothing(now)).expect("it is suspended");
        }),
        ("a full channel", |channel, _, now| {
            channel
                .set_admin_properties(AdminProperties { max_queue_length: 1, ..AdminProperties::default() });
            let other =
                channel.consumer("other").subscribe(types("Test/Other")).connect_pull().expect("connected");
            let mut supplier = channel.supplier("other").connect().expect("connected");
            for number in 0..3 {
                supplier.push(Nothing(now), &event_of("Other", number)).expect("it may be pushed");
            }
            drop(other);
        }),
        ("a full queue", |channel, _, now| {
            let mut supplier = channel.supplier("other").connect().expect("connected");
            supplier.push(Nothing(now), &event_of("Tick", 1)).expect("it may be pushed");
        }),
    ];
    for (name, look) in looks {
        for is_held in [false, true] {
            let (_time, channel) = channel(QosSettings::new());
            // So that all of them count in the channel's load.
            channel.set_admin_properties(AdminProperties {
                max_queue_length: 1000,
                ..AdminProperties::default()
            });
            let stage = Stage::on(&channel);
            let consumer = pulled(&channel, QosSettings::new().max_events(MANY as u32));
            let mut supplier = channel.supplier("s").connect().expect("connected");
            for _ in 0..MANY {
                push(&mut supplier, &stage, |header| {
                    header.timeout = Some(MS(2));
                    header.start = is_held.then_some(Instant::ZERO + MS(1));
                });
            }
            // Not where they wait in the mailbox alone: some are in the queue.
            assert_eq!((consumer.queued(), channel.queued_bytes(stage.now()) > 0), (MANY, true));
            stage.set(Instant::ZERO + MS(3));
            look(&channel, &consumer, stage.now());
            assert_eq!(stage.acted(), MANY, "{name} {is_held}");
        }
    }
}

#[test]
fn what_waits_acts_when_its_consumer_goes_or_has_room_for_less() {
    type End = fn(&EventChannelFactory, &EventChannel, PullConsumer) -> usize;
    let ends: [(&str, End); 5] = [
        ("dropped", |_, _, consumer| {
            drop(consumer);
            MANY
        }),
        ("removed", |_, channel, consumer| {
            assert!(channel.remove_consumer(consumer.id()));
            MANY
        }),
        ("keep_last", |_, _, consumer| {
            consumer.set_qos(&QosSettings::new().keep_last(1)).expect("less than there is room for");
            // What they push themselves discards the last one.
            _ = consumer.try_pull(Instant::ZERO);
            MANY
        }),
        ("destroyed", |factory, channel, _consumer| {
            assert!(factory.destroy(channel.id()));
            MANY
        }),
        ("with its admin", |_, channel, consumer| {
            let admin = channel.consumer_admin_of(consumer.admin().expect("connected")).expect("it is there");
            assert!(admin.destroy());
            MANY
        }),
    ];
    for (name, end) in ends {
        let factory = EventChannelFactory::new();
        let channel = factory.create_with_defaults("test");
        let stage = Stage::on(&channel);
        let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
        let builder =
            admin.consumer("c").subscribe(types("Test/Tick")).qos(QosSettings::new().max_events(50));
        let consumer = builder.connect_pull().expect("connected");
        let mut supplier = channel.supplier("s").connect().expect("connected");
        (0..MANY).for_each(|_| push(&mut supplier, &stage, |_| ()));
        let expected = end(&factory, &channel, consumer);
        assert_eq!(stage.acted(), expected, "{name}");
    }
}

#[test]
fn a_retained_event_acts_when_a_newer_one_takes_its_place() {
    let (_time, channel) = channel(QosSettings::new());
    let stage = Stage::on(&channel);
    let retained = [EventType::new("Test", "Tick")];
    let mut supplier = channel.supplier("s").offer_retained(retained, 2).connect().expect("connected");
    let late = pulled(&channel, QosSettings::new().max_events(1));
    // Each that goes pushes another one, which takes the place of one more.
    (0..5).for_each(|_| push(&mut supplier, &stage, |_| ()));
    drop(late);
    let acted = stage.acted();
    let late = pulled(&channel, QosSettings::new());
    let left = late.try_iter(|| stage.now()).filter(|one| one.event().content::<Acting>().is_some()).count();
    assert!(acted >= 3 && acted + left == 5, "{acted} {left}");
    drop((late, supplier));
}

/// Call-backs: what has been delivered, is refused, fails, or is to be tried again and finds no room; and what has
/// expired since its job was posted.
#[test]
fn what_is_delivered_acts_when_its_delivery_is_over() {
    for outcome in [Outcome::Ok, Outcome::Discard, Outcome::Retry, Outcome::Fail] {
        for is_concurrent in [false, true] {
            for is_late in [false, true] {
                let (mut time, channel) = channel(QosSettings::new());
                let stage = Stage::on(&channel);
                let settings = QosSettings::new().max_events(MANY as u32).discard(DiscardPolicy::Lifo);
                let settings =
                    settings.with(PropertyName::RetryInterval, PropertyValue::Time(MS(1))).timeout(MS(5));
                let builder = channel.consumer("c").subscribe(types("Test/Tick")).qos(settings);
                let consumer: ConnectedConsumer = match is_concurrent {
                    true => builder.connect_concurrent(move |_, _| outcome),
                    false => builder.connect(move |_| outcome),
                }
                .expect("connected");
                let mut supplier = channel.supplier("s").connect().expect("connected");
                for _ in 0..MANY {
                    supplier.push(&mut time, &acting(&stage, |_| ())).expect("it may be pushed");
                }
                if is_late {
                    time.advance(MS(6));
                    stage.set(Instant::ZERO + MS(6));
                }
                for _ in 0..20 {
                    time.pass(MS(1));
                }
                drop((consumer, supplier));
                assert_eq!(stage.acted(), MANY, "{outcome:?} {is_concurrent} {is_late}");
            }
        }
    }
}

/// An event that is to be tried again when its place is taken.
#[test]
fn what_has_no_room_when_it_is_tried_again_acts_as_well() {
    let (mut time, channel) = channel(QosSettings::new());
    let stage = Stage::on(&channel);
    let (own, inner) =
        (Arc::clone(&stage), Mutex::new(channel.supplier("inner").connect().expect("connected")));
    let settings = QosSettings::new().max_events(1).discard(DiscardPolicy::Fifo);
    let builder = channel.consumer("c").subscribe(types("Test/Tick")).qos(settings);
    let _consumer = builder.connect(move |delivery| match delivery.event().content::<Number>() {
        Some(_) => Outcome::Ok,
        None => {
            push(&mut inner.lock().expect("whole"), &own, |_| ());
            own.is_over.store(own.acted.load(Ordering::Relaxed) > 3, Ordering::Relaxed);
            Outcome::Retry
        }
    });
    let mut supplier = channel.supplier("s").connect().expect("connected");
    supplier.push(&mut time, &acting(&stage, |_| ())).expect("it may be pushed");
    time.step();
    assert!(stage.acted() > 0);
    stage.is_over.store(true, Ordering::Relaxed);
}

#[test]
fn what_a_condition_has_no_more_acts() {
    let tick = || Condition::of_types(types("Test/Tick"));
    let other = || Condition::of_types(types("Test/Other"));
    let conditions = [
        ("replaced", Condition::all(Collect::Latest, [tick(), other()])),
        ("not needed", Condition::all(Collect::First, [tick(), other()])),
        ("timed out", Condition::in_order([tick(), tick(), other()]).within(MS(1))),
        ("one of two", Condition::any([tick(), tick()])),
        ("sets", Condition::times(2, tick())),
        ("many of one", Condition::all(Collect::Latest, (0..40).map(|_| tick()))),
        ("kept from", Condition::unless_within(MS(5), tick())),
    ];
    for (name, condition) in conditions {
        for limit in [0, 2] {
            let (_time, channel) = channel(QosSettings::new());
            channel.set_admin_properties(AdminProperties {
                max_queue_length: limit,
                ..AdminProperties::default()
            });
            let stage = Stage::on(&channel);
            // What comes true has less room than it needs.
            let settings = QosSettings::new().max_events(2).timeout(MS(2));
            let builder = channel.consumer("c").when(condition.clone()).qos(settings);
            let consumer = builder.connect_pull().expect("connected");
            let mut supplier = channel.supplier("s").connect().expect("connected");
            for number in 0..MANY {
                stage.set(Instant::ZERO + MS(number as i64));
                push(&mut supplier, &stage, |_| ());
                if number % 5 == 4 {
                    _ = consumer.try_pull(stage.now());
                }
            }
            drop(consumer);
            // What the condition keeps, and sets that are free, have gone with the consumer.
            assert_eq!(stage.acted(), MANY, "{name} {limit}");
        }
    }
}

/// A condition forgets what came before there was a run.
#[test]
fn what_a_condition_forgets_acts() {
    let factory = EventChannelFactory::new();
    let channel = factory.create_with_defaults("test");
    let stage = Stage::on(&channel);
    let parts = [types("Test/Tick"), types("Test/Other")].map(Condition::of_types);
    let builder = channel.consumer("c").when(Condition::all(Collect::First, parts));
    let _consumer = builder.connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    push(&mut supplier, &stage, |_| ());
    assert_eq!(stage.acted(), 0, "it is kept");
    factory.bind(crate::virtual_time::VirtualTime::default()).expect("once");
    assert_eq!(stage.acted(), 1);
}

#[test]
fn what_a_stream_finds_expired_acts() {
    let (_time, channel) = channel(QosSettings::new());
    let stage = Stage::on(&channel);
    let mut stream = pulled(&channel, QosSettings::new()).into_stream().expect("a thread");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    // By the clock of the machine all of that is over.
    (0..MANY).for_each(|_| push(&mut supplier, &stage, |header| header.timeout = Some(MS(1))));
    let mut context = Context::from_waker(Waker::noop());
    // What they push themselves is there.
    while Pin::new(&mut stream).poll_next(&mut context).is_ready() {}
    assert_eq!(stage.acted(), MANY);
}

/// Many threads at once, in a channel that is full all the time, with consumers of all kinds.
#[test]
fn contents_of_many_threads_act_at_once_and_nobody_waits_for_ever() {
    const THREADS: usize = 3;
    const TIMES: usize = 60;
    let (_time, channel) = channel(QosSettings::new().discard(DiscardPolicy::Priority));
    channel.set_admin_properties(AdminProperties { max_queue_length: 5, ..AdminProperties::default() });
    let stage = Stage::on(&channel);
    let of_two = Condition::times(2, Condition::of_types(types("Test/Tick")));
    let builder = channel.consumer("two").when(of_two).qos(QosSettings::new().max_events(2));
    let two = builder.connect_pull().expect("connected");
    let consumers =
        [pulled(&channel, QosSettings::new().max_events(2)), pulled(&channel, QosSettings::new()), two];
    thread::scope(|scope| {
        let pushing: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (stage, channel) = (Arc::clone(&stage), channel.clone());
                scope.spawn(move || {
                    let mut supplier = channel.supplier("s").connect().expect("connected");
                    for time in 0..TIMES {
                        push(&mut supplier, &stage, |header| {
                            header.priority = Some(((thread + time) % 4) as i16)
                        });
                    }
                })
            })
            .collect();
        while pushing.iter().any(|thread| !thread.is_finished()) {
            consumers.iter().for_each(|consumer| _ = consumer.try_pull(stage.now()));
        }
    });
    drop(consumers);
    assert_eq!(stage.acted(), THREADS * TIMES);
}
