//! Mapping filters: priorities and lifetimes that consumers and their admins say, from texts, while events are pushed; and what has less time left than
//! filters may take.

use crate::allocation::Nothing;
use crate::{MS, channel, types};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use talea_notification::qos::{DiscardPolicy, OrderPolicy, QosSettings};
use talea_notification::{
    AdminProperties, Collect, Condition, ConnectError, ConstraintError, Content, Event, EventPool, EventType,
    Filter, Filterable, GroupOperator, Header, MappingError, MappingFilter, Outcome, PullConsumer,
};
use talea_operation::Post;
use talea_time::{Duration, Instant};

#[derive(Filterable, Default)]
#[filterable(crate = "talea_notification::etcl")]
struct Alarm {
    level: i64,
    text: String,
    at: Option<f64>,
}

impl Content for Alarm {}

fn header(change: impl FnOnce(&mut Header)) -> Header {
    let mut header = Header::new(EventType::new("Test", "Alarm"));
    change(&mut header);
    header
}

fn alarm(level: i64) -> Event {
    alarm_with(level, |_| ())
}

fn alarm_with(level: i64, change: impl FnOnce(&mut Header)) -> Event {
    Event::new(header(change), Alarm { level, text: "hot".into(), at: None })
}

/// A mapping filter of these texts.
fn mapping<V: Copy>(entries: &[(&str, V)]) -> MappingFilter<V> {
    let mut mapping = MappingFilter::new();
    for (text, value) in entries {
        mapping.add_constraint::<Alarm>(&[], text, *value).expect("a constraint");
    }
    mapping
}

fn taken(consumer: &PullConsumer, now: Instant) -> Vec<(i64, i16)> {
    let levels = std::iter::from_fn(|| consumer.try_pull(now));
    levels
        .map(|delivery| (delivery.event().content::<Alarm>().expect("an alarm").level, delivery.priority()))
        .collect()
}

#[test]
fn a_consumer_says_priorities_by_texts_and_the_first_that_matches_counts() {
    let (mut time, channel) = channel(QosSettings::new().order(OrderPolicy::Priority).priority(-5));
    let by_level = mapping(&[("level > 7", 9), ("level > 3 and $priority < 4", 3), ("'cold' ~ text", 100)]);
    let whole = by_level.clone().or(1);
    let plain = channel.consumer("plain").connect_pull().expect("connected");
    let some = channel.consumer("some").map_priority(by_level).connect_pull().expect("connected");
    let all = channel.consumer("all").map_priority(whole).connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for (level, priority) in [(1, Some(5)), (8, Some(2)), (5, Some(2)), (6, None), (9, None)] {
        let event = alarm_with(level, |header| header.priority = priority);
        supplier.push(&mut time, &event).expect("pushed");
    }
    let now = time.now();
    assert_eq!(taken(&plain, now), [(1, 5), (8, 2), (5, 2), (6, -5), (9, -5)]);
    assert_eq!(taken(&some, now), [(8, 9), (9, 9), (1, 5), (5, 3), (6, -5)]);
    assert_eq!(taken(&all, now), [(8, 9), (9, 9), (5, 3), (1, 1), (6, 1)]);
    // The priority that the event does not state could not be compared, once for each of the two.
    assert_eq!((some.statistics().filter_errors, all.statistics().filter_errors), (1, 1));
}

/// Of what a consumer's filter has no value for, its admin's says it; what a consumer's says goes before.
#[test]
fn filters_of_a_consumer_go_before_those_of_its_admin() {
    let (mut time, channel) = channel(QosSettings::new());
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    admin.priority_filter().set(mapping(&[("level > 5", 50), ("level > 3", 30)])).expect("no limit");
    admin.lifetime_filter().set(mapping(&[("level > 5", MS(5))]).or(MS(50))).expect("no limit");
    let own = admin.consumer("own").map_priority(mapping(&[("level > 6", 60)])).connect_pull();
    let own = own.expect("connected");
    let none = admin.consumer("none").map_lifetime(mapping(&[("level == 4", MS(1))])).connect_pull();
    let none = none.expect("connected");
    let other = channel.consumer("other").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let levels = [3, 4, 6, 7];
    levels.into_iter().for_each(|level| _ = supplier.push(&mut time, &alarm(level)).expect("pushed"));
    let expiries = |consumer: &PullConsumer, now| -> Vec<_> {
        let taken = std::iter::from_fn(|| consumer.try_pull(now));
        taken.map(|delivery| (delivery.priority(), delivery.expires().map(|at| at - time.now()))).collect()
    };
    let within = |time: i64| Some(MS(time));
    assert_eq!(
        expiries(&own, time.now()),
        [(0, within(50)), (30, within(50)), (50, within(5)), (60, within(5))]
    );
    assert_eq!(
        expiries(&none, time.now()),
        [(0, within(50)), (30, within(1)), (50, within(5)), (50, within(5))]
    );
    assert_eq!(expiries(&other, time.now()), [(0, None); 4]);
}

/// What waits has the priority with which it came.
#[test]
fn mapping_filters_change_while_events_are_pushed() {
    let (mut time, channel) = channel(QosSettings::new().order(OrderPolicy::Priority));
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let consumer = admin.consumer("c").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut push = |level: i64| _ = supplier.push(&mut time, &alarm(level)).expect("pushed");
    push(1);
    assert!(consumer.priority_filter().get().is_none() && !consumer.priority_filter().clear());
    admin.priority_filter().set(MappingFilter::new().or(2)).expect("no limit");
    push(2);
    let mut own = MappingFilter::new();
    let above = own.add_constraint::<Alarm>(&[], "level > 2", 3).expect("a constraint");
    consumer.priority_filter().set(own).expect("no limit");
    push(3);
    let mut changed = MappingFilter::clone(&consumer.priority_filter().get().expect("it is attached"));
    assert!(changed.set_value(above, 4));
    let more = changed.add_constraint::<Alarm>(&types("Test/Al*"), "TRUE", 5).expect("a constraint");
    consumer.priority_filter().set(changed).expect("no limit");
    push(4);
    push(0);
    let mut fewer = MappingFilter::clone(&consumer.priority_filter().get().expect("it is attached"));
    assert!(fewer.remove(above) && fewer.constraints().eq([(more, 5)]));
    consumer.priority_filter().set(fewer).expect("no limit");
    push(5);
    assert!(consumer.priority_filter().clear() && admin.priority_filter().clear());
    push(6);
    let now = Instant::ZERO;
    assert_eq!(taken(&consumer, now), [(0, 5), (5, 5), (4, 4), (3, 3), (2, 2), (1, 0), (6, 0)]);
}

#[test]
fn what_cannot_be_is_refused_and_nothing_changes() {
    let (_, channel) = channel(QosSettings::new());
    let mut priorities = MappingFilter::new();
    for text in ["levl > 3", "level > 'three'", "level >", "level + 1", &"(".repeat(10_000)] {
        let refused = priorities.add_constraint::<Alarm>(&[], text, 1).unwrap_err();
        assert!(matches!(refused, ConstraintError::Invalid(_)), "{refused}");
    }
    assert_eq!(priorities.constraints().count(), 0);
    priorities.add_constraint::<Alarm>(&[], "level > 3", 1).expect("a constraint");
    let unfit = channel.consumer("c").map_priority(priorities.clone().or(i16::MIN)).connect_pull();
    assert!(matches!(unfit, Err(ConnectError::Mapping(MappingError::OutOfRange { .. }))));
    let unfit = channel.consumer("c").map_lifetime(mapping(&[("level > 3", Duration::ZERO)])).connect_pull();
    let told = unfit.unwrap_err().to_string();
    assert_eq!(told, "the mapping filter gives events 0s, and lifetimes are above zero");
    assert!(channel.consumer_admin().consumers().is_empty());

    let consumer = channel.consumer("c").map_priority(priorities.clone()).connect_pull().expect("connected");
    let attached = || consumer.priority_filter().get().map(|filter| filter.constraints().collect::<Vec<_>>());
    let before = attached();
    assert!(consumer.priority_filter().set(mapping(&[("TRUE", i16::MIN)])).is_err());
    channel.set_admin_properties(AdminProperties { max_constraints: 1, ..AdminProperties::default() });
    let many = mapping(&[("level > 3", 1), ("level > 2", 2)]);
    let refused = consumer.priority_filter().set(many.clone()).unwrap_err();
    assert!(matches!(refused, MappingError::Limit(_)), "{refused}");
    let refused = channel.consumer("d").map_priority(many.clone()).connect_pull();
    assert!(matches!(refused, Err(ConnectError::Mapping(MappingError::Limit(_)))));
    assert!(channel.consumer_admin().priority_filter().set(many).is_err());
    assert_eq!(attached(), before);
}

#[test]
fn lifetimes_by_texts_count_from_the_push() {
    let (mut time, channel) = channel(QosSettings::new().timeout(MS(40)));
    let lifetimes = mapping(&[("level == 1", MS(1)), ("level == 2", MS(100)), ("at > 1.0", MS(1))]);
    let consumer = channel.consumer("c").map_lifetime(lifetimes).connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for level in 0..4 {
        let event = alarm_with(level, |header| header.timeout = Some(MS(10)).filter(|_| level < 3));
        supplier.push(&mut time, &event).expect("pushed");
    }
    // Who asks how long the oldest has waited finds what has expired.
    let left = |now| {
        _ = channel.statistics(Instant::ZERO + now);
        (consumer.queued(), consumer.statistics().expired)
    };
    let moment = Duration::from_nanos(1);
    assert_eq!((left(MS(1)), left(MS(1) + moment)), ((4, 0), (3, 1)));
    assert_eq!((left(MS(10)), left(MS(10) + moment)), ((3, 1), (2, 2)));
    assert_eq!((left(MS(40)), left(MS(40) + moment)), ((2, 2), (1, 3)));
    assert_eq!((left(MS(100)), left(MS(100) + moment)), ((1, 3), (0, 4)));
    assert_eq!(consumer.statistics().settled(), 4);
}

/// Of several events with which a condition comes true: the greatest priority and the shortest lifetime, by what is mapped or else stated.
#[test]
fn events_of_a_condition_are_mapped_each() {
    let (mut time, channel) = channel(QosSettings::new());
    let all = Condition::all(
        Collect::Latest,
        ["Test/Alarm", "Test/Other"].map(|one| one.parse().expect("a pattern")),
    );
    let consumer = channel
        .consumer("c")
        .when(all)
        .map_priority(mapping(&[("level > 5", 9)]))
        .map_lifetime(mapping(&[("level > 5", MS(5))]))
        .connect_pull()
        .expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut truth = |level: i64, priority: i16, timeout: i64| {
        supplier.push(&mut time, &alarm(level)).expect("pushed");
        let mut header = Header::new(EventType::new("Test", "Other"));
        (header.priority, header.timeout) = (Some(priority), Some(MS(timeout)));
        supplier.push(&mut time, &Event::new(header, Alarm::default())).expect("pushed");
        let delivery = consumer.try_pull(time.now()).expect("it has come true");
        assert_eq!(delivery.events().len(), 2);
        (delivery.priority(), delivery.expires().map(|at| at - time.now()))
    };
    assert_eq!(truth(6, 4, 20), (9, Some(MS(5))));
    assert_eq!(truth(6, 12, 2), (12, Some(MS(2))));
    assert_eq!(truth(1, 4, 20), (4, Some(MS(20))));
    assert_eq!(consumer.statistics().filter_errors, 0);
}

/// Also time, which is no event: constraints are not held against it.
#[test]
fn time_has_what_the_quality_of_service_says() {
    let (time, channel) = channel(QosSettings::new().priority(2));
    let consumer = channel
        .consumer("c")
        .when(Condition::every(MS(1)))
        .map_priority(mapping(&[("level > 5", 9)]).or(7))
        .connect_pull()
        .expect("connected");
    time.pass(MS(1));
    let delivery = consumer.try_pull(time.now()).expect("time has come");
    assert_eq!((delivery.priority(), consumer.statistics().filter_errors), (2, 0));
    time.run();
}

/// An event that has less time left than filters and mapping filters may take has expired before it is judged, whoever says how long it has.
#[test]
fn what_has_less_time_than_filters_may_take_has_expired() {
    let slow = || mapping(&[("'hot' ~ text", 9)]);
    // As many steps as are allowed, at 10 ns each.
    let longest = slow().longest();
    assert_eq!(longest, Duration::from_micros(40) + Duration::from_nanos(960));
    let (just, less) = (longest, longest - Duration::from_nanos(1));
    let (mut time, channel) = channel(QosSettings::new());
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    admin.priority_filter().set(slow()).expect("no limit");
    let of_admin = admin.consumer("of admin").connect_pull().expect("connected");
    let own = channel.consumer("own").map_priority(slow()).connect_pull().expect("connected");
    let plain = channel.consumer("plain").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for timeout in [just, less] {
        supplier.push(&mut time, &alarm_with(1, |header| header.timeout = Some(timeout))).expect("pushed");
    }
    for consumer in [&of_admin, &own, &plain] {
        let had = taken(consumer, time.now()).len() as u64;
        assert_eq!(
            (had, consumer.statistics().expired),
            if std::ptr::eq(consumer, &plain) { (2, 0) } else { (1, 1) }
        );
    }
    // Where a mapping filter says how long it has, that is known afterwards.
    for (lifetime, expected) in [(just, 1), (less, 0)] {
        let by_text = MappingFilter::<Duration>::new().with(&[], |_: &Event| Ok(true), lifetime);
        let builder = channel.consumer("mapped").map_priority(slow()).map_lifetime(by_text);
        let mapped = builder.connect_pull().expect("connected");
        supplier.push(&mut time, &alarm(1)).expect("pushed");
        assert_eq!(
            (taken(&mapped, time.now()).len(), mapped.statistics().expired),
            (expected, 1 - expected as u64)
        );
        assert_eq!(mapped.statistics().settled(), 1);
    }
    // Once something is worth less than the filter takes, by its stop time.
    let stop = time.now() + less;
    supplier.push(&mut time, &alarm_with(1, |header| header.stop = Some(stop))).expect("pushed");
    assert_eq!(own.statistics().expired, 2);
}

#[test]
fn filters_of_suppliers_let_expire_what_has_less_time_than_they_may_take() {
    let slow = || Filter::parse::<Alarm>(&[], "'hot' ~ text").expect("a constraint");
    let longest = slow().longest();
    let (mut time, channel) = channel(QosSettings::new());
    let admin = channel.new_supplier_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let consumer = channel.consumer("c").connect_pull().expect("connected");
    let builder = admin.supplier("s").filter(slow()).qos(QosSettings::new().timeout(longest * 2));
    let mut supplier =
        builder.offer_retained([EventType::new("Test", "Alarm")], 8).connect().expect("connected");
    let less = |times: i64| longest * times - Duration::from_nanos(1);
    let mut pushed = |timeout: Option<Duration>| {
        let event = alarm_with(1, |header| header.timeout = timeout);
        supplier.push(&mut time, &event).expect("pushed").queued
    };
    assert_eq!([None, Some(longest), Some(less(1)), Some(Duration::ZERO)].map(&mut pushed), [1, 1, 0, 1]);
    admin.filters().add(slow()).expect("no limit");
    assert_eq!([None, Some(longest * 2), Some(less(2))].map(&mut pushed), [1, 1, 0]);
    admin.filters().add(slow()).expect("no limit");
    assert_eq!(pushed(None), 0, "what is set for the supplier is shorter now");
    assert_eq!((supplier.expired(), supplier.filtered()), (3, (0, 0)));
    let counted = channel.statistics(time.now());
    assert_eq!((counted.expired, counted.left_out, counted.pushed), (3, 0, 5));
    assert_eq!((consumer.queued(), consumer.statistics().expired), (5, 0));
    let late = channel.consumer("late").connect_pull().expect("connected");
    assert_eq!(late.queued(), 5, "what has expired is not retained");
}

/// A consumer or its admin may say how long an event is worth something, whatever that states: then its supplier does not know.
#[test]
fn what_consumers_may_give_more_time_does_not_expire_in_filters_of_suppliers() {
    let slow = Filter::parse::<Alarm>(&[], "'hot' ~ text").expect("a constraint");
    let less = slow.longest() - Duration::from_nanos(1);
    let (mut time, channel) = channel(QosSettings::new());
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let plain = channel.consumer("plain").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").filter(slow).connect().expect("connected");
    let mut expired = || {
        let event = alarm_with(1, |header| header.timeout = Some(less));
        supplier.push(&mut time, &event).expect("pushed");
        supplier.expired()
    };
    let longer = || MappingFilter::new().or(MS(5));
    assert_eq!(expired(), 1);
    let mapped = channel.consumer("mapped").map_lifetime(longer()).connect_pull().expect("connected");
    assert_eq!((expired(), mapped.queued(), plain.queued()), (1, 1, 1));
    drop(mapped);
    admin.lifetime_filter().set(longer()).expect("no limit");
    assert_eq!(expired(), 2, "nobody is in that admin");
    let other = admin.consumer("other").subscribe(types("Other")).connect_pull().expect("connected");
    assert_eq!((expired(), other.queued()), (3, 0), "it has not subscribed to these");
    let member = admin.consumer("member").connect_pull().expect("connected");
    assert_eq!((expired(), member.queued()), (3, 1));
    admin.lifetime_filter().clear();
    assert_eq!((expired(), member.queued()), (4, 1));
}

/// Filters within a condition are held against each event twice.
#[test]
fn filters_of_conditions_let_expire_what_has_less_time_than_they_may_take() {
    let (mut time, channel) = channel(QosSettings::new());
    let slow = Filter::parse::<Alarm>(&[], "'hot' ~ text").expect("a constraint");
    let twice = slow.longest() * 2;
    let consumer = channel.consumer("c").when(Condition::matching(slow)).connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for timeout in [twice, twice - Duration::from_nanos(1)] {
        supplier.push(&mut time, &alarm_with(1, |header| header.timeout = Some(timeout))).expect("pushed");
    }
    assert_eq!((consumer.queued(), consumer.statistics().expired), (1, 1));
}

#[test]
fn mapping_by_texts_does_not_allocate() {
    let tick = EventType::new("Test", "Alarm");
    let settings =
        QosSettings::new().order(OrderPolicy::Priority).discard(DiscardPolicy::Priority).max_events(8);
    let (_time, channel) = channel(settings);
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    admin.priority_filter().set(mapping(&[("level > 3 and $type_name == 'Alarm'", 3)])).expect("no limit");
    admin.lifetime_filter().set(mapping(&[("level > 9", MS(1))]).or(MS(2))).expect("no limit");
    let own =
        admin.consumer("own").map_priority(mapping(&[("at > 1.0", 1), ("'hot' ~ text and level > 8", 8)]));
    let own = own.connect_pull().expect("connected");
    let both = Condition::all(
        Collect::Latest,
        ["Test/Alarm", "Test/Alarm"].map(|one| one.parse().expect("a pattern")),
    );
    let several = admin.consumer("several").when(both).connect_pull().expect("connected");
    let called = admin.consumer("called").connect(|_| Outcome::Ok).expect("connected");
    let slow = Filter::parse::<Alarm>(&[], "'hot' ~ text").expect("a constraint");
    let mut supplier = channel.supplier("s").filter(slow).offer([tick.clone()]).connect().expect("connected");
    let mut pool = EventPool::new(128, &tick, || Alarm { level: 0, text: "hot".into(), at: None });
    // Where no consumer says how long events are worth something, their supplier knows.
    let (_time, unmapped) = super::channel(QosSettings::new());
    let plain = unmapped.consumer("plain").connect(|_| Outcome::Ok).expect("connected");
    let slow = Filter::parse::<Alarm>(&[], "'hot' ~ text").expect("a constraint");
    let mut other = unmapped.supplier("s").filter(slow).offer([tick.clone()]).connect().expect("connected");
    let mut had = 0;
    let mut round = |round: u64| {
        let now = Instant::from_nanos(round as i64 * 1_000_000);
        for number in 0..12 {
            let mut loan = pool.loan().expect("there are more than wait");
            loan.content().level = number;
            loan.header().timeout = Some(if number == 11 { Duration::from_nanos(1) } else { MS(10) });
            let event = loan.done();
            supplier.push(Nothing(now), &event).expect("pushed");
            if number == 11 {
                other.push(Nothing(now), &event).expect("pushed");
            }
        }
        while own.try_pull(now).is_some() {
            had += 1;
        }
        while several.try_pull(now).is_some() {
            had += 1;
        }
    };
    round(0);
    let allocations = allocation_counter::measure(|| (1..50).for_each(&mut round));
    assert_eq!(allocations.count_total, 0);
    assert_eq!((supplier.expired(), other.expired(), plain.queued()), (0, 50, 0));
    assert!(had > 0);
    assert!(called.statistics().expired > 0 && own.statistics().filter_errors > 0);
}

/// Each event has a priority that some filter said, and none is lost.
#[test]
fn filters_are_replaced_while_a_thread_pushes() {
    const EVENTS: i64 = 3_000;
    let (_time, channel) = channel(QosSettings::new().max_events(1_000));
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let consumer = admin.consumer("c").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let is_over = AtomicBool::new(false);
    let (mut had, mut changes) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for level in 0..EVENTS {
                supplier.push(Nothing(Instant::ZERO), &alarm(level)).expect("pushed");
                while consumer.queued() >= 500 {
                    thread::yield_now();
                }
            }
            is_over.store(true, Ordering::Release);
        });
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            changes += 1;
            match changes % 4 {
                0 => _ = consumer.priority_filter().clear(),
                1 => consumer.priority_filter().set(mapping(&[("level >= 0", 1)])).expect("no limit"),
                2 => admin.priority_filter().set(mapping(&[("level >= 0", 2)])).expect("no limit"),
                _ => _ = admin.priority_filter().clear(),
            }
            let taken = taken(&consumer, Instant::ZERO);
            assert!(taken.iter().all(|(_, priority)| (0..=2).contains(priority)));
            had += taken.len() as i64;
            if was_over && taken.is_empty() {
                break;
            }
        }
    });
    assert_eq!((had, consumer.statistics().filter_errors), (EVENTS, 0));
}
