//! Quality of service at every level: what is refused and why, what is told as available, and changes while events are pushed.

use crate::allocation::Nothing;
use crate::{MS, channel, connected, event, event_with};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use talea_notification::qos::{
    Level, OrderPolicy, PropertyName, PropertyValue, QosError, QosProblems, QosSettings, Reliability,
};
use talea_notification::{
    ConsumerAdmin, EventChannel, EventPool, GroupOperator, Header, Outcome, PushError, SupplierAdmin,
};
use talea_time::{Duration, Instant};

/// What can be set of an object, and whether it could be.
trait Set {
    fn set(&self, settings: &QosSettings) -> Result<(), QosProblems>;
    fn validate(&self, settings: &QosSettings) -> Result<Vec<(PropertyName, String)>, QosProblems>;
    fn origin(&self, property: PropertyName) -> Option<Level>;
}

macro_rules! set {
    ($($kind:ty),*) => {$(
        impl Set for $kind {
            fn set(&self, settings: &QosSettings) -> Result<(), QosProblems> {
                self.set_qos(settings)
            }

            fn validate(&self, settings: &QosSettings) -> Result<Vec<(PropertyName, String)>, QosProblems> {
                self.validate_qos(settings)
            }

            fn origin(&self, property: PropertyName) -> Option<Level> {
                self.qos().origin(property)
            }
        }
    )*};
}

set!(
    EventChannel,
    ConsumerAdmin,
    SupplierAdmin,
    talea_notification::ConsumerHandle,
    talea_notification::SupplierHandle
);

/// The tables of the standard, as this service has them: where each property can be set, for consumers and for suppliers.
const TABLE: [(&str, &str, &str); 16] = [
    ("EventReliability", "C", "C"),
    ("ConnectionReliability", "CAP", "CAP"),
    ("Priority", "CAP", "CAP"),
    ("StartTime", "", ""),
    ("StopTime", "", ""),
    ("Timeout", "CAP", "CAP"),
    ("StartTimeSupported", "CAP", "C"),
    ("StopTimeSupported", "CAP", "C"),
    ("OrderPolicy", "CAP", "C"),
    ("DiscardPolicy", "CAP", "C"),
    ("MaxEventsPerConsumer", "CAP", "C"),
    ("MaximumBatchSize", "CAP", "C"),
    ("PacingInterval", "CAP", "C"),
    ("BlockingPolicy", "CAP", "C"),
    ("MinimumSeparation", "AP", ""),
    ("RetryInterval", "CAP", "C"),
];

/// A value that any property of this name may have beside the others, where it may have one.
fn sound(property: PropertyName) -> PropertyValue {
    match property {
        PropertyName::EventReliability | PropertyName::ConnectionReliability => {
            PropertyValue::Reliability(Reliability::BestEffort)
        }
        PropertyName::Priority => PropertyValue::Number(3),
        PropertyName::MaxEventsPerConsumer => PropertyValue::Number(8),
        PropertyName::MaximumBatchSize => PropertyValue::Number(2),
        PropertyName::OrderPolicy => PropertyValue::Order(OrderPolicy::Priority),
        PropertyName::DiscardPolicy => property.parse("Lifo").expect("a policy"),
        PropertyName::StartTimeSupported | PropertyName::StopTimeSupported => PropertyValue::Flag(false),
        _ => PropertyValue::Time(MS(5)),
    }
}

#[test]
fn each_property_can_be_set_at_its_levels_and_nowhere_else() {
    assert_eq!(
        TABLE.map(|(name, ..)| name),
        *PropertyName::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>()
    );
    for (name, of_consumers, of_suppliers) in TABLE {
        let property = PropertyName::named(name).expect("it is one");
        // Each is set where nothing else is, but for batches, without which nothing is paced.
        let (_time, channel) = channel(QosSettings::new().max_batch(2));
        let consumers = channel.consumer_admin();
        let suppliers = channel.supplier_admin();
        let consumer = channel.consumer("c").connect_sequence(|_, _| Outcome::Ok).expect("connected");
        let supplier = channel.supplier("s").connect().expect("connected");
        let all: [(&dyn Set, char, &str); 5] = [
            (&channel, 'C', of_consumers),
            (&consumers, 'A', of_consumers),
            (&*consumer, 'P', of_consumers),
            (&suppliers, 'A', of_suppliers),
            (&*supplier, 'P', of_suppliers),
        ];
        for (object, level, levels) in all {
            let settings = QosSettings::new().with(property, sound(property));
            let may = levels.contains(level);
            let told = object.validate(&QosSettings::new()).expect("nothing can be");
            assert_eq!(told.iter().any(|(other, _)| *other == property), may, "{name} at {level}");
            let before = object.origin(property);
            let validated = object.validate(&settings);
            assert_eq!(object.origin(property), before, "validating sets nothing");
            assert_eq!(validated.map(|_| ()), object.set(&settings), "{name} at {level}");
            match object.set(&settings) {
                Ok(()) => assert!(may && object.origin(property).is_some(), "{name} at {level}"),
                Err(QosProblems(problems)) => {
                    assert!(!may, "{name} at {level}: {problems:?}");
                    assert_eq!(problems.len(), 1, "{problems:?}");
                    assert_eq!(
                        (problems[0].property.as_str(), problems[0].error),
                        (name, QosError::UnavailableProperty)
                    );
                    assert_eq!(object.origin(property), before);
                }
            }
        }
    }
}

#[test]
fn a_refused_property_of_a_supplier_says_where_it_can_be_set() {
    let (_time, channel) = channel(QosSettings::new());
    let supplier = channel.supplier("s").connect().expect("connected");
    let refused = |settings: &QosSettings| {
        let QosProblems(problems) = supplier.set_qos(settings).unwrap_err();
        problems.into_iter().map(|problem| problem.allowed).collect::<Vec<_>>()
    };
    let with = |property: PropertyName| QosSettings::new().with(property, sound(property));
    let consumers = "it concerns consumers; set it for ";
    assert_eq!(
        refused(&with(PropertyName::OrderPolicy)),
        [format!("{consumers}the channel or an admin of consumers or a consumer")]
    );
    assert_eq!(
        refused(&with(PropertyName::MinimumSeparation)),
        [format!("{consumers}an admin of consumers or a consumer")]
    );
    assert_eq!(refused(&with(PropertyName::StartTime)), ["its levels are message"]);
    assert_eq!(refused(&with(PropertyName::EventReliability)), ["its levels are channel, message"]);
    // All of it at once, and nothing is set.
    let wrong = with(PropertyName::OrderPolicy)
        .with(PropertyName::Priority, PropertyValue::Number(40_000))
        .with(PropertyName::Timeout, PropertyValue::Flag(true));
    assert_eq!(refused(&wrong).len(), 3);
    assert_eq!(supplier.qos(), channel.supplier_admin().qos());
    let unknown = QosSettings::new().with_text("Order", "Fifo").unwrap_err();
    assert!(unknown.error == QosError::BadProperty && unknown.allowed.contains("OrderPolicy"), "{unknown}");
}

#[test]
fn what_a_consumer_is_told_as_available_has_room() {
    let (_time, channel) = channel(QosSettings::new().max_events(10).max_batch(4));
    let told = |available: Vec<(PropertyName, String)>, property| {
        available.into_iter().find(|(other, _)| *other == property).expect("its level").1
    };
    let (events, batch) = (PropertyName::MaxEventsPerConsumer, PropertyName::MaximumBatchSize);
    let consumer = channel.consumer("c").connect_sequence(|_, _| Outcome::Ok).expect("connected");
    let nothing = consumer.validate_qos(&QosSettings::new()).expect("nothing can be");
    assert_eq!(told(nothing.clone(), events), "it is a number from 4 to 10");
    assert_eq!(told(nothing, batch), "it is a number from 1 to 4");
    // Beside what is wanted, as if it counted.
    let paced = QosSettings::new().pacing(MS(1)).max_events(3).max_batch(3);
    let beside = consumer.validate_qos(&paced).expect("it goes together");
    assert_eq!(told(beside, batch), "it is a number from 2 to 3");
    assert_eq!(consumer.qos().pacing, None, "it was asked");
    let (single, _) = connected(channel.consumer("d"));
    let of_single = single.validate_qos(&QosSettings::new()).expect("nothing can be");
    assert_eq!(told(of_single, batch), "it is a number from 1 to 1");
    assert!(single.validate_qos(&paced).is_err());
    let admin = channel.consumer_admin().validate_qos(&paced).expect("no memory was made");
    assert_eq!(told(admin, events), "it is a number from 3 to 65536");
}

/// Of the header of an event there is the same check as of its push.
#[test]
fn what_a_supplier_says_of_a_header_holds_for_the_push() {
    let (mut time, channel) = channel(QosSettings::new());
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for reliability in [None, Some(Reliability::BestEffort), Some(Reliability::Persistent)] {
        let event = event_with(1, |header: &mut Header| header.reliability = reliability);
        let validated = supplier.validate_event_qos(event.header());
        let pushed = supplier.push(&mut time, &event).map(|_| ());
        assert_eq!(pushed, validated.map_err(PushError::Qos), "{reliability:?}");
    }
    assert_eq!(supplier.pushed(), 2);
}

/// What is set for a supplier holds for the next event, is merged, and reaches nobody else.
#[test]
fn the_quality_of_service_of_a_supplier_changes_between_its_pushes() {
    let (mut time, channel) = channel(QosSettings::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&seen);
    let consumer = channel.consumer("c").connect(move |delivery| {
        let lifetime = delivery.expires().map(|expires| expires - delivery.pushed());
        own.lock().expect("whole").push((delivery.priority(), lifetime));
        Outcome::Ok
    });
    let _consumer = consumer.expect("connected");
    let admin =
        channel.new_supplier_admin(GroupOperator::And, &QosSettings::new().priority(9)).expect("sound");
    let mut supplier = admin.supplier("s").connect().expect("connected");
    let mut other = admin.supplier("o").connect().expect("connected");
    let found = admin.supplier_of(supplier.id()).expect("it is connected");
    let mut push = |supplier: &mut talea_notification::Supplier| {
        supplier.push(&mut time, &event(0)).expect("pushed");
    };
    push(&mut supplier);
    found.set_qos(&QosSettings::new().timeout(MS(7))).expect("sound");
    push(&mut supplier);
    supplier.set_qos(&QosSettings::new().priority(-1)).expect("sound");
    push(&mut supplier);
    assert!(supplier.set_qos(&QosSettings::new().priority(2).max_events(3)).is_err());
    push(&mut supplier);
    push(&mut other);
    found.set_qos(&QosSettings::new().timeout(Duration::ZERO)).expect("sound");
    push(&mut supplier);
    time.run();
    let seven = Some(MS(7));
    let expected = [(9, None), (9, seven), (-1, seven), (-1, seven), (9, None), (-1, None)];
    assert_eq!(*seen.lock().expect("whole"), expected);
    assert!(supplier.disconnect());
    found.set_qos(&QosSettings::new().priority(5)).expect("it is a handle");
}

/// Several threads set other properties of the same objects while events are pushed: none undoes what another one has set, and each event is
/// settled once. Pushing neither allocates nor stops.
#[test]
fn settings_change_from_several_threads_while_events_are_pushed() {
    const TIMES: u64 = 300;
    let (_time, channel) = channel(QosSettings::new().max_events(16));
    let pulled = channel.consumer("c").connect_pull().expect("connected");
    let tick = talea_notification::EventType::new("Test", "Tick");
    let mut supplier = channel.supplier("s").offer([tick.clone()]).connect().expect("connected");
    let of_supplier = channel.supplier_of(supplier.id()).expect("it is connected");
    let of_consumer = channel.consumer_of(pulled.id()).expect("it is connected");
    let (is_over, pushed, allocated) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut pool = EventPool::new(64, &tick, || crate::Number(0));
            talea_notification::prepare_thread();
            let allocations = allocation_counter::measure(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let event = pool.loan().expect("there are more than wait").done();
                    supplier.push(Nothing(Instant::ZERO), &event).expect("pushed");
                    pushed.fetch_add(1, Ordering::Relaxed);
                }
            });
            allocated.store(allocations.count_total, Ordering::Relaxed);
        });
        let changes: [Box<dyn Fn(u64) + Send>; 4] = [
            Box::new(|time| of_supplier.set_qos(&QosSettings::new().priority(time as i16)).expect("sound")),
            Box::new(|time| {
                of_supplier.set_qos(&QosSettings::new().timeout(MS(time as i64))).expect("sound")
            }),
            Box::new(|time| {
                of_consumer.set_qos(&QosSettings::new().max_events(1 + time as u32 % 16)).expect("sound")
            }),
            Box::new(|time| of_consumer.set_qos(&QosSettings::new().priority(time as i16)).expect("sound")),
        ];
        let threads: Vec<_> =
            changes.into_iter().map(|change| scope.spawn(move || (1..=TIMES).for_each(change))).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        while pushed.load(Ordering::Relaxed) < TIMES {
            thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let (of_supplier, of_consumer) = (of_supplier.qos(), of_consumer.qos());
    assert_eq!((of_supplier.priority, of_supplier.timeout), (TIMES as i16, Some(MS(TIMES as i64))));
    assert_eq!((of_consumer.priority, of_consumer.max_events), (TIMES as i16, 1 + TIMES as u32 % 16));
    let waiting = pulled.try_iter(|| Instant::ZERO).count() as u64;
    let counted = pulled.statistics();
    assert_eq!(counted.settled(), pushed.load(Ordering::Relaxed));
    assert!(waiting <= 16 && pulled.queued() == 0);
    assert_eq!(allocated.load(Ordering::Relaxed), 0);
}
