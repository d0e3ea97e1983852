//! Who has subscribed to what, who is told of it, and which filters let what through.

use crate::{channel, connected, event_of, types};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use talea_notification::qos::{Level, PropertyName, QosError, QosSettings};
use talea_notification::{
    AdminProperties, Changed, Condition, ConnectError, Event, EventChannel, EventChannelFactory, EventType,
    Filter, GroupOperator, MappingFilter, NotEvaluated, Outcome, Statistic, Supplier,
};
use talea_operation::Post;
use talea_time::Duration;

fn event_type(name: &str) -> EventType {
    EventType::new("Test", name)
}

fn above(least: u64) -> impl Fn(&Event) -> Result<bool, NotEvaluated> {
    move |event| Ok(crate::number(event) > least)
}

#[test]
fn consumers_have_what_they_have_subscribed_to() {
    let (mut time, channel) = channel(QosSettings::new());
    let (_exact, exact) = connected(channel.consumer("exact").subscribe(types("Test/Arm")));
    let (_some, some) = connected(channel.consumer("some").subscribe(types("Test/A* Test/Leg")));
    let (_all, all) = connected(channel.consumer("all"));
    let mut supplier = channel.supplier("s").offer([event_type("Arm")]).connect().expect("connected");
    for (number, name) in ["Arm", "Artist", "Leg", "Foot"].into_iter().enumerate() {
        supplier.push(&mut time, &event_of(name, number as u64)).expect("pushed");
    }
    time.run();
    assert_eq!((exact.take(), some.take(), all.take()), (vec![0], vec![0, 1, 2], vec![0, 1, 2, 3]));
}

/// The standard's rules: specific types take the place of all types, all types that of the rest, and what is added and removed at once stays.
#[test]
fn subscriptions_change_by_the_rules() {
    let (mut time, channel) = channel(QosSettings::new());
    let (consumer, had) = connected(channel.consumer("c"));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut has = |names: &[&str]| {
        for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
            supplier.push(&mut time, &event_of(name, number as u64)).expect("pushed");
        }
        time.run();
        let expected: Vec<u64> =
            (0..3).filter(|number| names.contains(&["a", "b", "c"][*number as usize])).collect();
        assert_eq!(had.take(), expected);
    };
    has(&["a", "b", "c"]);
    consumer.subscription_change([], types("*"));
    has(&["a", "b", "c"]);
    consumer.subscription_change(types("Test/a Test/b"), []);
    has(&["a", "b"]);
    consumer.subscription_change(types("Test/c"), types("Test/a Test/c"));
    has(&["b"]);
    consumer.subscription_change([], types("Test/b"));
    has(&[]);
    consumer.subscription_change(types("Test/b *"), []);
    has(&["a", "b", "c"]);
}

#[test]
fn those_who_want_to_know_are_told_of_first_and_last() {
    let (time, channel) = channel(QosSettings::new());
    let told = Arc::new(Mutex::new(Vec::<(&str, Changed)>::new()));
    let tell = |who: &'static str| {
        let told = Arc::clone(&told);
        move |changed: &Changed| told.lock().expect("whole").push((who, changed.clone()))
    };
    let take = || std::mem::take(&mut *told.lock().expect("whole"));
    let (a, b) = (event_type("a"), event_type("b"));
    let supplier = channel.supplier("s").offer([a.clone(), b.clone()]).connect().expect("connected");
    supplier.on_subscription_change(tell("supplier"));
    assert!(!supplier.is_wanted(&a));
    let (one, _) = connected(channel.consumer("one").subscribe(types("Test/a")));
    one.on_offer_change(tell("consumer"));
    let gained =
        |types: &[&EventType]| Changed { gained: types.iter().copied().cloned().collect(), lost: vec![] };
    let lost =
        |types: &[&EventType]| Changed { lost: types.iter().copied().cloned().collect(), gained: vec![] };
    assert_eq!(take(), [("supplier", gained(&[&a]))]);
    assert!(supplier.is_wanted(&a) && !supplier.is_wanted(&b));
    let (two, _) = connected(channel.consumer("two").subscribe(types("Test/a Test/b")));
    assert_eq!(take(), [("supplier", gained(&[&b]))]);
    drop(two);
    assert_eq!(take(), [("supplier", lost(&[&b]))]);
    let mut other = channel.supplier("o").offer([a.clone()]).connect().expect("connected");
    assert_eq!(take(), []);
    other.offer_change([event_type("new")], [a.clone()]).expect("there is no limit");
    assert_eq!(take(), [("consumer", gained(&[&event_type("new")]))]);
    drop(supplier);
    assert_eq!(take().len(), 1, "a and b have no supplier any more");
    drop(other);
    assert_eq!(take(), [("consumer", lost(&[&event_type("new")]))]);
    assert_eq!(channel.subscribed_types(), [a]);
    time.run();
}

#[test]
fn filters_of_admins_and_proxies_go_together_by_their_operator() {
    let (mut time, channel) = channel(QosSettings::new());
    let mut left_out = 0;
    for (operator, expected) in [(GroupOperator::And, vec![6, 7]), (GroupOperator::Or, (3..8).collect())] {
        let admin = channel.new_consumer_admin(operator, &QosSettings::new()).expect("sound");
        admin.filters().add(Filter::of(&types("Test"), above(2))).expect("there is no limit");
        let (consumer, had) = connected(admin.consumer("c").filter(Filter::of(&[], above(5))));
        let (_other, of_admin) = connected(admin.consumer("o"));
        let mut supplier =
            channel.supplier("s").filter(Filter::of(&[], above(0))).connect().expect("connected");
        for number in 0..8 {
            supplier.push(&mut time, &event_of("x", number)).expect("pushed");
        }
        time.run();
        assert_eq!((had.take(), of_admin.take()), (expected, (3..8).collect::<Vec<_>>()), "{operator:?}");
        assert_eq!(supplier.filtered(), (1, 0));
        left_out += 1;
        assert_eq!(channel.statistics(time.now()).left_out, left_out);
        let counted = consumer.statistics();
        assert_eq!(counted.filtered + counted.delivered, 7);
        assert_eq!(channel.consumer_admin_of(admin.id()).map(|admin| admin.operator()), Some(operator));
        assert_eq!(admin.consumers().len(), 2);
    }
}

#[test]
fn filters_come_and_go_by_their_numbers() {
    let (mut time, channel) = channel(QosSettings::new());
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let (consumer, had) = connected(admin.consumer("c").filter(Filter::of(&[], above(5))));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut passed = |supplier: &mut Supplier| {
        for number in 0..8 {
            supplier.push(&mut time, &event_of("x", number)).expect("pushed");
        }
        time.run();
        had.take()
    };
    let no_limit = "there is no limit";
    let [first] = consumer.filters().ids()[..] else { panic!("{:?}", consumer.filters()) };
    assert_eq!(passed(&mut supplier), [6, 7]);
    // Any of them lets an event through.
    let others = Filter::of(&[], |event: &Event| above(5)(event).map(|is_above| !is_above));
    let second = consumer.filters().add(others).expect(no_limit);
    assert_eq!((consumer.filters().ids(), passed(&mut supplier).len()), (vec![first, second], 8));
    assert!(consumer.filters().replace(second, Filter::of(&types("Other"), above(0))).expect(no_limit));
    assert_eq!(passed(&mut supplier), [6, 7]);
    assert!(consumer.filters().remove(first) && !consumer.filters().remove(first));
    assert!(passed(&mut supplier).is_empty(), "one of other types is left");
    // A constraint more for the filter that is attached.
    let mut more = Filter::clone(&consumer.filters().get(second).expect("it is attached"));
    more.add(&[], above(6));
    assert!(consumer.filters().replace(second, more).expect(no_limit));
    assert_eq!(passed(&mut supplier), [7]);
    consumer.filters().remove(second);
    assert_eq!(passed(&mut supplier).len(), 8);
    let third = consumer.filters().add(Filter::new()).expect(no_limit);
    assert!(![first, second].contains(&third), "no number comes again");
    assert!(
        consumer.filters().get(second).is_none()
            && !consumer.filters().replace(second, Filter::new()).expect(no_limit)
    );
    consumer.filters().clear();

    let [low, high] = [2, 4].map(|least| Filter::of(&[], above(least)));
    let of_admin = admin.filters().add(low).expect(no_limit);
    let of_supplier = supplier.filters().set([high]).expect(no_limit);
    assert_eq!(passed(&mut supplier), [5, 6, 7]);
    assert_eq!(supplier.filters().ids(), of_supplier);
    supplier.filters().clear();
    assert_eq!(passed(&mut supplier), [3, 4, 5, 6, 7]);
    assert!(channel.consumer_admin_of(admin.id()).expect("it is there").filters().remove(of_admin));
    assert_eq!(passed(&mut supplier).len(), 8);
}

/// What a filter holds calls the channel when it goes.
#[test]
fn whoever_drops_a_filter_may_use_the_channel() {
    struct Last(EventChannel, Arc<AtomicU32>);
    impl Drop for Last {
        fn drop(&mut self) {
            assert!(self.0.supplier("late").connect().is_ok());
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (_, channel) = channel(QosSettings::new());
    let dropped = Arc::new(AtomicU32::new(0));
    let held = || {
        let last = Last(channel.clone(), Arc::clone(&dropped));
        Filter::of(&[], move |_: &Event| {
            let _holds = &last;
            Ok(true)
        })
    };
    let (consumer, _) = connected(channel.consumer("c").filter(held()));
    let admin = channel.new_supplier_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let supplier = admin.supplier("s").connect().expect("connected");
    for filters in [consumer.filters(), admin.filters(), supplier.filters()] {
        let id = filters.add(held()).expect("there is no limit");
        assert!(filters.remove(id));
        // In the place of nothing.
        assert_eq!(filters.replace(id, held()), Ok(false));
        filters.set([held()]).expect("there is no limit");
        channel.set_admin_properties(AdminProperties { max_filters: 1, ..AdminProperties::default() });
        assert!(filters.add(held()).is_err() && filters.set([held(), held()]).is_err());
        channel.set_admin_properties(AdminProperties::default());
        filters.clear();
    }
    assert_eq!(dropped.load(Ordering::Relaxed), 1 + 3 * 6);
}

/// Those that are there stay when limits are lowered, and can be removed.
#[test]
fn filters_can_be_removed_where_there_are_too_many() {
    let (_, channel) = channel(QosSettings::new());
    let (consumer, _) = connected(channel.consumer("c"));
    let two = || {
        let mut filter = Filter::of_types(&types("Test"));
        filter.add_types(&types("Other"));
        filter
    };
    let ids = consumer.filters().set([two(), two(), two()]).expect("there is no limit");
    channel.set_admin_properties(AdminProperties {
        max_filters: 2,
        max_constraints: 1,
        ..Default::default()
    });
    assert!(consumer.filters().replace(ids[0], Filter::of_types(&types("Test"))).expect("one constraint"));
    assert!(
        consumer.filters().replace(ids[0], two()).is_err() && consumer.filters().add(Filter::new()).is_err()
    );
    assert!(consumer.filters().remove(ids[2]) && !consumer.filters().remove(ids[2]));
    assert_eq!(consumer.filters().ids(), ids[..2]);
    consumer.filters().clear();
    assert!(consumer.filters().add(Filter::new()).is_ok());
}

#[test]
fn mapping_filters_say_priority_and_lifetime() {
    let (mut time, channel) =
        channel(QosSettings::new().order(talea_notification::qos::OrderPolicy::Priority));
    let priorities = MappingFilter::new().with(&[], above(5), 100);
    let lifetimes = MappingFilter::new().with(&[], above(7), Duration::from_millis(1));
    let builder = channel.consumer("c").map_priority(priorities).map_lifetime(lifetimes);
    let (consumer, had) = connected(builder);
    let mut supplier = channel.supplier("s").connect().expect("connected");
    consumer.suspend().expect("active");
    for number in [1, 8, 6, 2] {
        supplier.push(&mut time, &event_of("x", number)).expect("pushed");
    }
    time.pass(Duration::from_millis(2));
    consumer.resume(&mut time).expect("suspended");
    time.run();
    assert_eq!((had.take(), consumer.statistics().expired), (vec![6, 1, 2], 1));
}

#[test]
fn limits_and_problems_are_told_and_nothing_is_half_done() {
    let (time, channel) = channel(QosSettings::new());
    channel.set_admin_properties(AdminProperties {
        max_consumers: 1,
        max_suppliers: 1,
        ..Default::default()
    });
    let (consumer, _) = connected(channel.consumer("c"));
    let second = channel.consumer("d").connect(|_| Outcome::Ok).unwrap_err();
    assert!(matches!(second, ConnectError::TooMany { who: "consumers", most: 1 }));
    let supplier = channel.supplier("s").connect().expect("connected");
    assert!(channel.supplier("t").connect().unwrap_err().to_string().contains("1 suppliers are connected"));
    drop(supplier);
    channel.supplier("t").connect().expect("there is room again");

    let wrong = QosSettings::new().max_events(1_000).max_batch(2_000);
    let problems = consumer.set_qos(&wrong).unwrap_err();
    assert_eq!(problems.0[0].error, QosError::UnavailableValue);
    let larger = consumer.set_qos(&QosSettings::new().max_events(1_000)).unwrap_err();
    assert!(larger.to_string().contains("memory was made for 100"), "{larger}");
    assert_eq!(consumer.qos().max_events, 100);
    consumer.set_qos(&QosSettings::new().max_events(10)).expect("sound");
    assert_eq!(consumer.qos().origin(PropertyName::MaxEventsPerConsumer), Some(Level::Proxy));
    let available = consumer.validate_qos(&QosSettings::new()).expect("sound");
    assert!(available.iter().any(|(property, allowed)| {
        *property == PropertyName::OrderPolicy && allowed.contains("Deadline")
    }));

    let statistics = channel.statistics(time.now());
    assert_eq!(statistics.named("ConsumerNames"), Some(Statistic::Names(vec!["c".into()])));
    for name in talea_notification::ChannelStatistics::NAMES {
        assert!(statistics.named(name).is_some(), "{name}");
    }
    assert_eq!(statistics.named("ConsumerNumber"), None);
}

#[test]
fn a_channel_that_is_destroyed_has_nobody() {
    let time = crate::VirtualTime::default();
    let factory = EventChannelFactory::on(time.clone());
    let create = |name| factory.create(name, &QosSettings::new(), AdminProperties::default()).expect("sound");
    let (one, two) = (create("one"), create("two"));
    assert_eq!(
        (factory.all(), factory.channel(1).map(|channel| channel.name().to_owned())),
        (vec![0, 1], Some("two".into()))
    );
    let (consumer, _) = connected(one.consumer("c"));
    assert!(factory.destroy(one.id()) && !factory.destroy(one.id()));
    assert_eq!(consumer.connection(), talea_notification::Connection::Closed);
    assert!(factory.destroy(two.id()));
    assert_eq!((create("three").id(), factory.all()), (2, vec![2]), "no number is given twice");
}

#[test]
fn who_comes_late_has_the_newest_of_what_is_retained() {
    let (mut time, channel) = channel(QosSettings::new());
    let offered = [event_type("state"), event_type("other")];
    let supplier = channel.supplier("s").offer_retained([event_type("state")], 2).offer(offered);
    let mut supplier = supplier.connect().expect("connected");
    for (number, name) in ["state", "other", "state", "state"].into_iter().enumerate() {
        supplier.push(&mut time, &event_of(name, number as u64)).expect("pushed");
    }
    let (_late, had) = connected(channel.consumer("late").subscribe(types("Test/s*")));
    let (_other, nothing) = connected(channel.consumer("other").subscribe(types("Test/other")));
    time.pass(Duration::from_millis(1));
    supplier.push(&mut time, &event_of("state", 9)).expect("pushed");
    time.run();
    assert_eq!((had.take(), nothing.take()), (vec![2, 3, 9], vec![]));
    let pulled = channel.consumer("pulled").subscribe(types("Test/state")).connect_pull().expect("connected");
    let taken: Vec<u64> = std::iter::from_fn(|| pulled.try_pull(time.now()))
        .map(|delivery| crate::number(delivery.event()))
        .collect();
    assert_eq!(taken, [3, 9]);
}

/// Also where there is no run yet: once, whenever the consumer has subscribed to it.
#[test]
fn what_is_retained_comes_once() {
    let factory = EventChannelFactory::new();
    let channel = factory.create("late", &QosSettings::new(), AdminProperties::default()).expect("sound");
    let mut time = crate::VirtualTime::default();
    let (early, had_early) = connected(channel.consumer("early"));
    let (other, had_other) = connected(channel.consumer("other").subscribe(types("Test/Other")));
    let supplier = channel.supplier("s").offer_retained([event_type("state")], 2);
    let mut supplier = supplier.connect().expect("connected");
    for number in 1..=3 {
        supplier.push(&mut time, &event_of("state", number)).expect("pushed");
    }
    let (_late, had_late) = connected(channel.consumer("late").subscribe(types("Test/state")));
    let pull = channel.consumer("pull").connect_pull().expect("connected");
    factory.bind(time.clone()).expect("once");
    time.run();
    time.pass(Duration::from_millis(5));
    assert_eq!((had_early.take(), had_late.take(), had_other.take()), (vec![1, 2, 3], vec![2, 3], vec![]));
    let pulled: Vec<u64> = pull.try_iter(|| time.now()).map(|one| crate::number(one.event())).collect();
    assert_eq!(pulled, [2, 3]);
    _ = other.subscription_change(types("Test/state"), []);
    _ = early.subscription_change(types("Test/state Test/Other"), []);
    time.pass(Duration::from_millis(1));
    assert_eq!((had_other.take(), had_early.take()), (vec![2, 3], vec![]), "it had subscribed to all");
}

#[test]
fn what_is_retained_is_worth_something_from_its_push_on() {
    let (mut time, channel) = channel(QosSettings::new());
    let mut supplier =
        channel.supplier("s").offer_retained([event_type("state")], 3).connect().expect("connected");
    for timeout in [10, 30] {
        let event = crate::event_of("state", timeout);
        let mut header = event.header().clone();
        header.timeout = Some(Duration::from_millis(timeout as i64));
        supplier.push(&mut time, &Event::new(header, crate::Number(timeout))).expect("pushed");
    }
    time.pass(Duration::from_millis(20));
    let (late, had) = connected(channel.consumer("late"));
    let condition = channel.consumer("condition").when(Condition::of_types(types("Test/state")));
    let (_condition, had_condition) = connected(condition);
    assert_eq!((late.queued(), late.statistics().expired), (1, 1));
    time.pass(Duration::from_millis(1));
    assert_eq!((had.take(), had_condition.take()), (vec![30], vec![30]));
}

/// What a supplier says of its events is kept with them.
#[test]
fn what_is_retained_has_its_suppliers_quality_of_service() {
    let (mut time, channel) = channel(QosSettings::new());
    let settings = QosSettings::new().priority(9).timeout(Duration::from_millis(7));
    let supplier = channel.supplier("s").qos(settings).offer_retained([event_type("state")], 1);
    supplier.connect().expect("connected").push(&mut time, &event_of("state", 1)).expect("pushed");
    let late = channel.consumer("late").connect_pull().expect("connected");
    let delivery = late.try_pull(time.now()).expect("it is there");
    assert_eq!(delivery.priority(), 9);
    assert_eq!(delivery.expires(), Some(time.now().saturating_add(Duration::from_millis(7))));
}

#[test]
fn a_destroyed_channel_refuses_who_comes() {
    let mut time = crate::VirtualTime::default();
    let factory = EventChannelFactory::on(time.clone());
    let channel = factory.create("gone", &QosSettings::new(), AdminProperties::default()).expect("sound");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    assert!(factory.destroy(channel.id()));
    assert_eq!(supplier.push(&mut time, &event_of("Tick", 1)), Err(talea_notification::PushError::Closed));
    assert!(matches!(channel.consumer("c").connect_pull(), Err(ConnectError::Closed)));
    assert!(matches!(channel.supplier("t").connect(), Err(ConnectError::Closed)));
}
