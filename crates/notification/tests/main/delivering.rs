//! What is delivered when, in which order, in which lane, and what becomes of the rest.

use crate::allocation::Nothing;
use crate::virtual_time::Number;
use crate::{Had, MS, channel, connected, event, event_with, number, types};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use talea_notification::qos::{DiscardPolicy, OrderPolicy, PropertyName, PropertyValue, QosSettings};
use talea_notification::{
    AdminProperties, Collect, Condition, Connection, ConsumerBuilder, Event, EventPool, EventType,
    Expression, Filter, GroupOperator, Header, NotEvaluated, NotNow, Outcome, PushError, StructuredEvent,
    ThreadPool,
};
use talea_operation::{Declaration, Post};
use talea_time::{Duration, Instant};

#[test]
fn each_event_is_one_job_and_the_first_of_the_queue_goes_first() {
    let (mut time, channel) = channel(QosSettings::new().order(OrderPolicy::Priority));
    let (consumer, had) = connected(channel.consumer("c"));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for (number, priority) in [(0, 1), (1, 5), (2, 5), (3, -2)] {
        let event = event_with(number, |header| header.priority = Some(priority));
        assert_eq!(supplier.push(&mut time, &event).expect("pushed").queued, 1);
    }
    assert_eq!((time.jobs(), consumer.queued()), (4, 4));
    assert!(time.step());
    assert_eq!((had.take(), time.jobs(), consumer.queued()), (vec![1], 3, 3));
    time.run();
    assert_eq!((had.take(), consumer.queued()), (vec![2, 0, 3], 0));
    assert_eq!(consumer.statistics().delivered, 4);
}

/// S4, figure 6: an event whose priority no lane is for is handled in the next lower one, or below all in the lowest, and is counted.
#[test]
fn an_event_goes_to_the_lane_of_its_priority_or_the_next_lower_one() {
    let (mut time, channel) = channel(QosSettings::new());
    let lane = |level: usize| Declaration::new(&format!("lane {level}"), MS(10)).lane(level);
    let consumer = channel.consumer("c").lane_from(10, lane(1)).lane_from(20, lane(0)).lane_from(0, lane(2));
    let consumer = consumer.connect(|_| Outcome::Ok).expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for (priority, level) in [(25, 0), (20, 0), (19, 1), (10, 1), (9, 2), (0, 2), (-1, 2)] {
        let event = event_with(0, |header| header.priority = Some(priority));
        supplier.push(&mut time, &event).expect("pushed");
        assert_eq!(time.levels(), [level], "priority {priority}");
        time.run();
    }
    assert_eq!((consumer.lane_misses(), consumer.statistics().delivered), (4, 7));
}

/// The nearest pool counts, as of when a consumer is connected: its own lanes, its admin's, its channel's.
#[test]
fn pools_are_of_channels_and_admins_and_the_nearest_counts() {
    let (mut time, channel) = channel(QosSettings::new());
    let lane = |name: &str, level: usize| Declaration::new(name, MS(10)).lane(level);
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("an admin");
    let connect = |builder: ConsumerBuilder| builder.connect(|_| Outcome::Ok).expect("connected");
    let before = connect(channel.consumer("before"));
    let pool = ThreadPool::client_propagated().lane_from(10, lane("high", 1)).lane_from(0, lane("low", 2));
    channel.set_thread_pool(pool).expect("a pool");
    admin.set_thread_pool(ThreadPool::server_declared(lane("any", 3))).expect("a pool");
    let of_channel = connect(channel.consumer("of channel"));
    let of_admin = connect(admin.consumer("of admin"));
    let own = connect(admin.consumer("own").lane(lane("own", 4)));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for (priority, levels) in [(12, [0, 1, 3, 4]), (3, [0, 2, 3, 4]), (-5, [0, 2, 3, 4])] {
        let event = event_with(0, |header| header.priority = Some(priority));
        supplier.push(&mut time, &event).expect("pushed");
        assert_eq!(time.levels(), levels, "priority {priority}");
        time.run();
    }
    let misses = [&before, &of_channel, &of_admin, &own].map(|consumer| consumer.lane_misses());
    assert_eq!(misses, [0, 3, 0, 0]);
    assert_eq!(
        time.names(),
        ["test.before", "test.of channel.high", "test.of channel.low", "test.of admin", "own"]
    );
}

/// Two threads serve one queue: each event goes to the one with less to do, and the one that is free takes what was meant for the other. When a delivery is
/// due counts from the push all the same.
#[test]
fn who_is_free_of_those_who_serve_a_lane_delivers_the_next_event() {
    let (mut time, channel) = channel(QosSettings::new());
    let lane = |name: &str, level: usize| Declaration::new(name, MS(10)).lane(level);
    let pool = ThreadPool::server_declared(lane("first", 1)).server(lane("second", 2));
    let wrong = channel.set_thread_pool(pool.clone().static_threads(3)).unwrap_err().to_string();
    assert!(wrong.contains("static_threads"), "{wrong}");
    let alike = channel.set_thread_pool(pool.clone().server(lane("first", 3))).unwrap_err().to_string();
    assert!(alike.contains("another name"), "{alike}");
    channel.set_thread_pool(pool.static_threads(2)).expect("a pool");
    let had: Arc<Mutex<Vec<(u64, String, Instant)>>> = Arc::default();
    let (own, others) = (Arc::clone(&had), time.clone());
    let consumer = channel.consumer("c").connect_concurrent(move |delivery, job| {
        let number = number(delivery.event());
        if number == 0 {
            // Meanwhile the other thread does what it has to do.
            others.advance(MS(3));
            while others.step_at(2) {}
        }
        own.lock().unwrap().push((number, job.operation().to_owned(), job.deadline()));
        Outcome::Ok
    });
    let consumer = consumer.expect("connected");
    assert_eq!(time.names(), ["test.c.first", "test.c.second"]);
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in 0..5 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    assert_eq!(time.levels(), [1, 1, 1, 2, 2], "each to the one with less to do");
    assert!(time.step_at(1));
    let numbers = || had.lock().unwrap().iter().map(|(number, ..)| *number).collect::<Vec<_>>();
    assert_eq!((numbers(), consumer.queued()), (vec![1, 2, 3, 4, 0], 0));
    time.run();
    assert_eq!((numbers().len(), consumer.statistics().delivered, time.jobs()), (5, 5, 0));
    supplier.push(&mut time, &event(5)).expect("pushed");
    assert_eq!(time.levels(), [1], "both are free");
    let had = had.lock().unwrap();
    assert!(had[..4].iter().all(|(_, operation, _)| operation.is_empty() || operation.ends_with("second")));
    assert!(had.iter().all(|(_, _, deadline)| *deadline == Instant::ZERO + MS(10)), "{had:?}");
}

/// What the standard's pools have and this one has not is refused with a reason, all of it at once, and nothing changes.
#[test]
fn pools_that_cannot_be_are_refused() {
    let (time, channel) = channel(QosSettings::new());
    let lane = |name: &str| Declaration::new(name, MS(10)).lane(3);
    let empty = ThreadPool::client_propagated().static_threads(4).dynamic_threads(2);
    let problems = channel.set_thread_pool(empty.allow_borrowing(true).allow_request_buffering(true));
    let properties: Vec<String> = problems.unwrap_err().0.into_iter().map(|one| one.property).collect();
    let expected = [
        "ThreadPoolLanes.lanes",
        "ThreadPool.static_threads",
        "ThreadPool.dynamic_threads",
        "ThreadPoolLanes.allow_borrowing",
        "ThreadPool.allow_request_buffering",
    ];
    assert_eq!(properties, expected);
    let twice = ThreadPool::client_propagated().lane_from(1, lane("a")).lane_from(1, lane("b"));
    let problem = channel.consumer_admin().set_thread_pool(twice).unwrap_err().to_string();
    assert!(problem.contains("lane_priority"), "{problem}");
    let _consumer = channel.consumer("c").connect(|_| Outcome::Ok).expect("connected");
    assert_eq!(time.names(), ["test.c"]);
}

#[test]
fn events_start_stop_and_expire_when_they_say_so() {
    let (mut time, channel) = channel(QosSettings::new().timeout(MS(50)));
    let (consumer, had) = connected(channel.consumer("c"));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let at = |ms: i64| Some(Instant::ZERO + MS(ms));
    let mut push = |number, start: Option<Instant>, stop: Option<Instant>, timeout: Option<Duration>| {
        let event = event_with(number, |header| {
            (header.start, header.stop, header.timeout) = (start, stop, timeout);
        });
        supplier.push(&mut time, &event).expect("pushed")
    };
    assert_eq!(push(0, at(20), None, None).queued, 1);
    assert_eq!(push(1, at(30), at(25), None).discarded, 1, "it stops before it starts");
    assert_eq!(push(2, at(70), None, None).discarded, 1, "it expires before it starts");
    assert_eq!(push(3, at(70), None, Some(MS(100))).queued, 1);
    assert_eq!(push(4, None, at(10), None).queued, 1);
    assert!(had.take().is_empty());
    time.run();
    assert_eq!(had.take(), [4]);
    time.pass(MS(19));
    assert!(had.take().is_empty());
    time.pass(MS(1));
    assert_eq!(had.take(), [0]);
    time.pass(MS(60));
    assert_eq!(had.take(), [3]);

    // What waits too long is not delivered any more.
    consumer.suspend().expect("active");
    let mut push = |number, timeout| {
        let event = event_with(number, |header| header.timeout = timeout);
        supplier.push(&mut time, &event).expect("pushed");
    };
    push(5, None);
    push(6, Some(MS(200)));
    time.pass(MS(51));
    consumer.resume(&mut time).expect("suspended");
    time.run();
    assert_eq!(had.take(), [6]);
    let counted = consumer.statistics();
    assert_eq!((counted.expired, counted.delivered, counted.settled(), consumer.queued()), (3, 4, 7, 0));

    // Times that are not supported do not count.
    let flag = |settings: QosSettings, property| settings.with(property, PropertyValue::Flag(false));
    let settings = flag(QosSettings::new(), PropertyName::StartTimeSupported);
    consumer.set_qos(&flag(settings, PropertyName::StopTimeSupported)).expect("sound");
    let now = time.now();
    let event = event_with(7, |header| (header.start, header.stop) = (Some(now + MS(9)), Some(now - MS(9))));
    supplier.push(&mut time, &event).expect("pushed");
    time.run();
    assert_eq!(had.take(), [7]);
}

#[test]
fn a_consumer_that_is_suspended_keeps_what_it_may() {
    let (mut time, channel) = channel(QosSettings::new().keep_last(2));
    let (consumer, had) = connected(channel.consumer("c"));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    assert_eq!(consumer.resume(&mut time), Err(NotNow::AlreadyActive));
    consumer.suspend().expect("active");
    assert_eq!(consumer.suspend(), Err(NotNow::AlreadySuspended));
    for number in 0..5 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    time.run();
    assert_eq!((had.take(), consumer.queued()), (vec![], 2));
    consumer.resume(&mut time).expect("suspended");
    time.run();
    assert_eq!((had.take(), consumer.statistics().discarded), (vec![3, 4], 3));
}

#[test]
fn what_the_code_says_decides_and_a_panic_is_a_failure() {
    let (mut time, channel) = channel(QosSettings::new().timeout(Duration::from_secs(25)));
    let calls = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&calls);
    let consumer = channel.consumer("c").connect(move |delivery| {
        own.fetch_add(1, Ordering::Relaxed);
        match crate::number(delivery.event()) {
            0 => Outcome::Retry,
            1 => Outcome::Discard,
            2 => Outcome::Ok,
            _ => panic!("it cannot be"),
        }
    });
    let consumer = consumer.expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in 0..3 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    time.run();
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    // After 10 s and 20 s it is tried again; after 30 s it would have expired.
    time.pass(Duration::from_secs(60));
    let counted = consumer.statistics();
    assert_eq!((calls.load(Ordering::Relaxed), counted.retried, counted.expired), (5, 3, 1));
    assert_eq!((counted.refused, counted.delivered, consumer.queued()), (1, 1, 0));

    for number in 2..5 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    time.run();
    assert_eq!(consumer.connection(), Connection::Closed);
    let counted = consumer.statistics();
    assert_eq!((counted.failed, counted.discarded, counted.delivered, consumer.queued()), (1, 1, 2, 0));
    assert_eq!(consumer.suspend(), Err(NotNow::NotConnected));
    assert_eq!(supplier.push(&mut time, &event(2)).expect("pushed").queued, 0);
}

#[test]
fn sequences_come_in_batches_when_they_are_full_or_have_been_awaited_long_enough() {
    let (time, channel) = channel(QosSettings::new());
    let had = Had::default();
    let own = had.clone();
    let settings = QosSettings::new().max_batch(3).pacing(MS(10));
    let refused = channel.consumer("c").qos(settings.clone()).connect(|_| Outcome::Ok).unwrap_err();
    assert!(refused.to_string().contains("connect_sequence"), "{refused}");
    let refused =
        channel.consumer("c").qos(settings.clone()).connect_concurrent(|_, _| Outcome::Ok).map(drop);
    assert!(refused.is_err() && channel.consumer("c").qos(settings.clone()).connect_pull().is_err());
    let consumer = channel.consumer("c").qos(settings).connect_sequence(move |deliveries, _| {
        own.0.lock().expect("whole").push(1_000 + deliveries.len() as u64);
        deliveries.iter().for_each(|delivery| own.add(delivery));
        Outcome::Ok
    });
    let consumer = consumer.expect("connected");
    assert!(consumer.set_qos(&QosSettings::new().max_batch(4)).is_err(), "memory was made for three");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut push = |numbers: std::ops::Range<u64>| {
        numbers.for_each(|number| _ = supplier.push(time.clone(), &event(number)).expect("pushed"));
    };
    push(0..2);
    time.pass(MS(9));
    assert!(had.take().is_empty());
    time.pass(MS(1));
    assert_eq!(had.take(), [1_002, 0, 1]);
    push(2..9);
    time.run();
    assert_eq!(had.take(), [1_003, 2, 3, 4, 1_003, 5, 6, 7]);
    time.pass(MS(10));
    assert_eq!(had.take(), [1_001, 8]);
}

/// Jobs for which there is no room are made up for by those that come.
#[test]
fn events_without_a_job_are_delivered_by_the_jobs_of_others() {
    let (mut time, channel) = channel(QosSettings::new());
    let (consumer, had) = connected(channel.consumer("c"));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    time.limit_jobs(2);
    for number in 0..6 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    assert_eq!(time.jobs(), 2);
    time.run();
    assert_eq!((had.take(), consumer.queued()), ((0..6).collect::<Vec<_>>(), 0));
}

#[test]
fn a_full_channel_refuses_or_discards() {
    let (mut time, channel) = channel(QosSettings::new().discard(DiscardPolicy::Fifo));
    let one = channel.consumer("one").connect(|_| Outcome::Ok).expect("connected");
    let two = channel.consumer("two").connect(|_| Outcome::Ok).expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let properties = AdminProperties { max_queue_length: 4, ..AdminProperties::default() };
    channel.set_admin_properties(properties);
    for number in 0..5 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    assert_eq!((one.queued(), two.queued()), (2, 2));
    assert_eq!((one.statistics().discarded, two.statistics().discarded), (3, 3));
    channel.set_admin_properties(AdminProperties { reject_new_events: true, ..properties });
    assert_eq!(supplier.push(&mut time, &event(5)), Err(PushError::Rejected));
    assert_eq!(channel.statistics(time.now()).rejected, 1);
    time.run();
    supplier.push(&mut time, &event(6)).expect("pushed");
    assert_eq!(channel.statistics(time.now()).queued, 2);
}

#[test]
fn consumers_that_take_events_themselves_wait_for_them() {
    let (mut time, channel) = channel(QosSettings::new());
    let consumer = channel.consumer("c").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    assert!(consumer.try_pull(time.now()).is_none());
    for number in 0..2 {
        assert_eq!(supplier.push(&mut time, &event(number)).expect("pushed").queued, 1);
    }
    assert_eq!(time.jobs(), 0, "nobody delivers what is taken");
    assert_eq!(consumer.try_pull(time.now()).map(|delivery| crate::number(delivery.event())), Some(0));
    let consumer = &consumer;
    std::thread::scope(|scope| {
        let clock = std::time::Instant::now();
        let now = move || Instant::from_nanos(clock.elapsed().as_nanos() as i64);
        let pull = move || {
            consumer.pull(Duration::from_secs(600), now).map(|delivery| crate::number(delivery.event()))
        };
        assert_eq!(pull(), Some(1));
        let waiter = scope.spawn(pull);
        supplier.push(&mut time, &event(7)).expect("pushed");
        assert_eq!(waiter.join().expect("it waits"), Some(7));
    });
    assert!(consumer.pull(Duration::ZERO, || Instant::ZERO).is_none());
}

#[test]
fn deliveries_that_come_too_soon_after_another_are_left_out() {
    let (mut time, channel) = channel(QosSettings::new());
    let (consumer, had) = connected(channel.consumer("c").qos(QosSettings::new().separation(MS(10))));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in 0..7 {
        supplier.push(&mut time, &event(number)).expect("pushed");
        time.pass(MS(4));
    }
    assert_eq!((had.take(), consumer.statistics().too_soon), (vec![0, 3, 6], 4));
}

/// S4, section 3.1: what is not worth the time that its filters may take is not filtered any more.
#[test]
fn events_that_expire_before_filters_can_have_judged_them_are_expired() {
    struct Slow(Duration);
    impl Expression for Slow {
        fn holds(&self, _event: &Event, _now: Instant) -> Result<bool, NotEvaluated> {
            Ok(false)
        }

        fn longest(&self) -> Duration {
            self.0
        }
    }
    let (mut time, channel) = channel(QosSettings::new());
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("an admin");
    admin.filters().add(Filter::of(&[], Slow(MS(2)))).expect("no limit");
    let (consumer, had) = connected(admin.consumer("c").filter(Filter::of(&[], Slow(MS(3)))));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut push = |timeout: i64, stop: Option<i64>| {
        let event = event_with(0, |header| {
            header.timeout = Some(MS(timeout)).filter(|timeout| *timeout > MS(0));
            header.stop = stop.map(|stop| Instant::ZERO + MS(stop));
        });
        supplier.push(&mut time, &event).expect("pushed").discarded
    };
    assert_eq!((push(5, None), push(0, Some(5)), push(0, None)), (0, 0, 0), "there is time enough");
    assert_eq!((push(4, None), push(9, Some(4))), (1, 1));
    let counts = consumer.statistics();
    assert_eq!((counts.filtered, counts.expired, had.take()), (3, 2, vec![]));
    // Without a limit to what they take nothing is known, and all filters together may take for ever.
    consumer.filters().set([Filter::of(&[], Slow(Duration::MAX))]).expect("no limit");
    assert_eq!((push(60_000, None), push(0, None)), (1, 0));
    consumer.filters().set([Filter::of(&[], |_: &Event| Ok(true))]).expect("no limit");
    assert_eq!(push(1, None), 1, "that of the admin");
}

/// A conjunction hands on its events in one call; time completes conditions as well.
#[test]
fn conditions_over_several_events_and_time_are_delivered_as_sets() {
    let (time, channel) = channel(QosSettings::new().timeout(MS(50)));
    let had = Arc::new(std::sync::Mutex::new(Vec::<String>::new()));
    let connect = |name: &'static str, condition: Condition| {
        let had = Arc::clone(&had);
        let consumer = channel.consumer(name).when(condition).connect(move |delivery| {
            let names: Vec<&str> = delivery.events().iter().map(|event| event.event_type().name()).collect();
            had.lock().expect("whole").push(format!("{name} {}", names.join(" ")).trim().to_owned());
            Outcome::Ok
        });
        consumer.expect("connected")
    };
    let of = |name: &str| Condition::of_types(crate::types(name));
    let both = connect("both", Condition::all(Collect::Latest, [of("Test/a"), of("Test/b")]));
    let _late = connect("late", Condition::unless_within(MS(30), of("Test/a")));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut push =
        |name: &str| supplier.push(time.clone(), &crate::event_of(name, 0)).expect("pushed").queued;
    let take = || std::mem::take(&mut *had.lock().expect("whole"));
    assert_eq!((push("b"), push("c"), push("a")), (0, 0, 1));
    time.run();
    assert_eq!(take(), ["both a b"]);
    let counted = both.statistics();
    // It is not asked about what has nothing to do with it.
    assert_eq!((counted.grouped, counted.filtered, counted.delivered), (2, 0, 1));
    let left_out = || {
        let counted = both.statistics();
        (counted.timed_out, counted.replaced, counted.not_needed)
    };
    assert_eq!(left_out(), (0, 0, 0));
    time.pass(MS(29));
    assert!(take().is_empty());
    time.pass(MS(1));
    assert_eq!(take(), ["late"]);
    push("a");
    time.pass(MS(29));
    push("a");
    time.pass(MS(29));
    assert!(take().is_empty());
    time.pass(MS(1));
    assert_eq!(take(), ["late"]);
    assert_eq!(left_out(), (0, 1, 0), "the last a came in place of the one before");
    let refused = channel.consumer("c").when(Condition::any([])).connect(|_| Outcome::Ok).unwrap_err();
    assert!(refused.to_string().contains("has none"), "{refused}");
}

/// A supplier that may wait does so for room, and no longer than the limit; one that may not discards at once.
#[test]
fn suppliers_wait_for_room_where_the_policy_says_so() {
    struct OfAThread(bool);
    impl Post for OfAThread {
        fn now(&self) -> Instant {
            talea_linux::clock::MonotonicClock.now()
        }

        fn post_work(&mut self, _: talea_operation::Posted) -> Result<u64, talea_operation::NotPosted> {
            Ok(0)
        }

        fn may_wait(&self) -> bool {
            self.0
        }
    }
    use talea_time::Clock;
    let (time, channel) = channel(QosSettings::new());
    time.use_real_clock();
    let settings = QosSettings::new().max_events(1).discard(DiscardPolicy::Lifo);
    let consumer = channel.consumer("c").qos(settings.blocking(Duration::from_secs(600))).connect_pull();
    let consumer = consumer.expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    assert_eq!(supplier.push(OfAThread(true), &event(0)).expect("pushed").queued, 1);
    assert_eq!(supplier.push(OfAThread(false), &event(1)).expect("pushed").discarded, 1);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| supplier.push(OfAThread(true), &event(2)).expect("pushed").queued);
        while consumer.statistics().blocked == 0 {
            std::thread::yield_now();
        }
        assert!(consumer.try_pull(OfAThread(true).now()).is_some());
        assert_eq!(waiting.join().expect("it waits"), 1);
    });
    consumer.set_qos(&QosSettings::new().blocking(Duration::from_nanos(1))).expect("sound");
    assert_eq!(supplier.push(OfAThread(true), &event(3)).expect("pushed").discarded, 1);
    assert_eq!((consumer.statistics().blocked, consumer.statistics().discarded), (2, 2));
}

#[test]
fn a_delivery_that_ends_late_is_told_once() {
    let (mut time, channel) = channel(QosSettings::new());
    let misses = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (told, clock) = (Arc::clone(&misses), time.clone());
    let consumer = channel.consumer("c").lane(Declaration::new("work", MS(5)));
    let consumer = consumer.on_deadline_miss(move |miss| {
        told.lock().expect("whole").push((miss.operation.to_owned(), miss.instance, miss.lateness));
    });
    let _consumer = consumer.connect(move |delivery| {
        // Time passes while it works.
        clock.advance(MS(crate::number(delivery.event()) as i64));
        Outcome::Ok
    });
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in [5, 6, 1] {
        supplier.push(&mut time, &event(number)).expect("pushed");
        time.run();
    }
    assert_eq!(*misses.lock().expect("whole"), [(String::new(), 2, MS(1))]);
}

/// Of a batch each event that is late is told of by its own deadline, to each consumer that asked; one that is to be tried again not before it has been. Events with
/// a start time are due after that.
#[test]
fn each_event_that_is_late_is_told_with_its_job() {
    type Told = Arc<std::sync::Mutex<Vec<(u64, u64, Instant, Duration, u64)>>>;
    let (time, channel) =
        channel(QosSettings::new().with(PropertyName::RetryInterval, PropertyValue::Time(MS(4))));
    let at = |ms: i64| Instant::ZERO + MS(ms);
    let (of_batches, of_single): (Told, Told) = Default::default();
    let telling = |told: &Told| {
        let told = Arc::clone(told);
        move |miss: &talea_notification::Miss<'_>| {
            assert_eq!(miss.job().to_string(), format!("--task '' --job {}", miss.instance));
            let number = crate::number(miss.delivery.event());
            let pushed = miss.delivery.pushed() - Instant::ZERO;
            let line = (number, pushed.as_nanos() as u64 / 1_000_000, miss.due, miss.lateness, miss.instance);
            told.lock().expect("whole").push(line);
        }
    };
    let batches = channel.consumer("batches").qos(QosSettings::new().max_batch(4).pacing(MS(100)));
    let batches = batches.lane(Declaration::new("batches", MS(8))).on_deadline_miss(telling(&of_batches));
    let _batches = batches.connect_sequence(|_, _| Outcome::Ok).expect("connected");
    let single =
        channel.consumer("single").lane(Declaration::new("single", MS(2))).subscribe(types("Test/Own"));
    let (mut tries, clock) = (0, time.clone());
    let single = single.on_deadline_miss(telling(&of_single)).connect(move |_| {
        clock.advance(MS(3));
        tries += 1;
        if tries == 1 { Outcome::Retry } else { Outcome::Discard }
    });
    let _single = single.expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut push = |number: u64, change: &dyn Fn(&mut Header)| {
        supplier.push(time.clone(), &event_with(number, change)).expect("pushed");
    };
    push(0, &|header| header.timeout = Some(MS(30)));
    push(1, &|_| ());
    push(2, &|header| header.start = Some(at(18)));
    time.pass(MS(20));
    push(3, &|_| ());
    time.run();
    let told = std::mem::take(&mut *of_batches.lock().expect("whole"));
    let [(1, 0, due, lateness, job)] = told[..] else { panic!("{told:?}") };
    assert_eq!(
        (due, lateness),
        (at(8), MS(12)),
        "the others are worth something, began later or have come just now"
    );

    push(4, &|header| header.event_type = EventType::new("Test", "Own"));
    time.run();
    assert_eq!(*of_single.lock().expect("whole"), [], "it is tried again");
    time.pass(MS(10));
    let told = of_single.lock().expect("whole").clone();
    let [(4, 20, due, lateness, later)] = told[..] else { panic!("{told:?}") };
    assert_eq!((due, lateness), (at(26), MS(1)), "2 ms after it was to be tried again");
    assert!(later > job);
}

/// Where the code that is told panics, the consumer is gone and nobody else.
#[test]
fn who_panics_on_a_miss_is_disconnected() {
    let (mut time, channel) = channel(QosSettings::new());
    let clock = time.clone();
    let consumer = channel.consumer("c").lane(Declaration::new("work", MS(5)));
    let consumer = consumer.on_deadline_miss(|_| panic!("it cannot bear that")).connect(move |_| {
        clock.advance(MS(6));
        Outcome::Ok
    });
    let consumer = consumer.expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    supplier.push(&mut time, &event(0)).expect("pushed");
    time.run();
    assert_eq!((consumer.connection(), consumer.statistics().failed), (Connection::Closed, 1));
    assert_eq!(supplier.push(&mut time, &event(1)).expect("pushed").queued, 0);
}

/// What waits for its time or for the consumer is delivered in the lane of its priority, too.
#[test]
fn what_is_delivered_later_goes_to_the_lane_of_its_priority() {
    let (mut time, channel) = channel(QosSettings::new());
    let lane = |level: usize| Declaration::new(&format!("lane {level}"), MS(10)).lane(level);
    let (consumer, had) = connected(channel.consumer("c").lane_from(10, lane(0)).lane_from(0, lane(1)));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let clock = time.clone();
    let mut push = |number: u64, priority: i16, start: Option<i64>| {
        let event = event_with(number, |header| {
            header.priority = Some(priority);
            header.start = start.map(|start| Instant::ZERO + MS(start));
        });
        supplier.push(clock.clone(), &event).expect("pushed");
    };
    push(0, 20, Some(5));
    push(1, 3, Some(7));
    assert_eq!(time.alarms(), [(Instant::ZERO + MS(5), 0), (Instant::ZERO + MS(7), 1)]);
    time.pass(MS(10));
    assert_eq!(had.take(), [0, 1]);
    consumer.suspend().expect("active");
    push(2, 20, None);
    push(3, 3, None);
    time.run();
    consumer.resume(&mut time).expect("suspended");
    assert_eq!(time.levels(), [0, 1]);
    time.run();
    assert_eq!(had.take(), [2, 3]);
}

/// A consumer that takes its events itself has those that start later when they start, and those that waited while it was suspended.
#[test]
fn who_waits_for_an_event_has_it_when_it_starts_and_when_it_is_resumed() {
    use talea_time::Clock;
    let (time, channel) = channel(QosSettings::new());
    let now = || talea_linux::clock::MonotonicClock.now();
    let consumer = channel.consumer("c").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let limit = Duration::from_secs(600);
    time.set(now());
    let later = event_with(1, |header| header.start = Some(now() + MS(2)));
    supplier.push(time.clone(), &later).expect("pushed");
    let taken = consumer.pull(limit, now).expect("it starts");
    assert!(now() >= taken.event().header().start.expect("it has one"));
    consumer.suspend().expect("active");
    supplier.push(time.clone(), &event(2)).expect("pushed");
    let waits = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            waits.store(true, Ordering::Release);
            consumer.pull(limit, now).map(|delivery| crate::number(delivery.event()))
        });
        while !waits.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        consumer.resume(time.clone()).expect("suspended");
        assert_eq!(waiting.join().expect("it waits"), Some(2));
    });
}

/// A clock that was read before events were pushed does not bring them out of order, nor do events that may not be delivered before an instant.
#[test]
fn events_come_in_the_order_of_their_pushes_whenever_the_clock_was_read() {
    let at = |ms: i64| Instant::ZERO + MS(ms);
    let (_time, channel) = channel(QosSettings::new());
    let pulled = channel.consumer("pulled").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut push = |number: u64, start: Option<i64>| {
        let event = event_with(number, |header| header.start = start.map(at));
        supplier.push(Nothing(at(10)), &event).expect("pushed");
    };
    let pull = |ms: i64| pulled.try_pull(at(ms)).map(|delivery| number(delivery.event()));
    (0..4).for_each(|number| push(number, None));
    assert_eq!([pull(5), pull(5)], [Some(0), Some(1)], "it has been pushed");
    _ = [(4, Some(20)), (5, Some(20)), (6, Some(30)), (7, Some(20))]
        .map(|(number, start)| push(number, start));
    assert_eq!([pull(11), pull(11), pull(11)], [Some(2), Some(3), None]);
    push(8, None);
    let rest: Vec<u64> = std::iter::from_fn(|| pull(20)).collect();
    assert_eq!((rest.as_slice(), pull(30)), (&[4, 5, 7, 8][..], Some(6)));
}

/// What waits for its start waits in the same queue, within the same bound, and is never delivered before.
#[test]
fn the_bound_of_a_queue_is_for_what_waits_for_its_start_as_well() {
    let (mut time, channel) = channel(QosSettings::new().max_events(2));
    let (consumer, had) = connected(channel.consumer("c"));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let start = time.now().saturating_add(MS(100));
    for number in 0..12 {
        let event = event_with(number, |header| header.start = Some(start));
        supplier.push(&mut time, &event).expect("pushed");
        if number % 5 == 0 {
            time.run();
        }
        assert!(consumer.queued() <= 2 || number % 5 != 0, "{number}");
    }
    time.run();
    assert_eq!((had.take(), consumer.queued()), (vec![], 2));
    supplier.push(&mut time, &event(99)).expect("pushed");
    time.run();
    assert_eq!((had.take(), consumer.queued()), (vec![99], 1));
    time.pass(MS(99));
    assert!(had.take().is_empty());
    time.pass(MS(1));
    assert_eq!((had.take(), consumer.statistics().discarded), (vec![11], 11));
}

/// What is tried again takes part in the queue like all others: with the oldest going first, it is the one to go.
#[test]
fn what_is_tried_again_has_no_room_of_its_own() {
    let settings =
        QosSettings::new().max_events(2).with(PropertyName::RetryInterval, PropertyValue::Time(MS(1)));
    let (mut time, channel) = channel(settings);
    let had = Had::default();
    let (own, name) = (had.clone(), channel.clone());
    let mut supplier = name.supplier("again").connect().expect("connected");
    let mut via = time.clone();
    let consumer = channel.consumer("c").connect(move |delivery| {
        own.add(delivery);
        if crate::number(delivery.event()) > 0 {
            return Outcome::Ok;
        }
        for number in [1, 2] {
            supplier.push(&mut via, &event(number)).expect("pushed");
        }
        Outcome::Retry
    });
    let consumer = consumer.expect("connected");
    channel.supplier("s").connect().expect("connected").push(&mut time, &event(0)).expect("pushed");
    time.pass(MS(10));
    assert_eq!(had.take(), [0, 1, 2]);
    let counted = consumer.statistics();
    assert_eq!((counted.delivered, counted.retried, counted.discarded, consumer.queued()), (2, 1, 1, 0));
}

/// What is set for a supplier or its admin is for events that state nothing, before what is set for consumers.
#[test]
fn suppliers_have_a_quality_of_service_of_their_own() {
    let (mut time, channel) = channel(QosSettings::new());
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let own = Arc::clone(&seen);
    let consumer = channel.consumer("c").qos(QosSettings::new().priority(3).timeout(MS(50)));
    let consumer = consumer.connect(move |delivery| {
        let lifetime = delivery.expires().map(|expires| expires - delivery.pushed());
        own.lock().expect("whole").push((delivery.priority(), lifetime));
        Outcome::Ok
    });
    let _consumer = consumer.expect("connected");
    let admin =
        channel.new_supplier_admin(GroupOperator::And, &QosSettings::new().priority(9)).expect("sound");
    let mut of_admin = admin.supplier("admin's").connect().expect("connected");
    let own = admin.supplier("own").qos(QosSettings::new().priority(-1).timeout(MS(7)));
    let mut own = own.connect().expect("connected");
    let mut plain = channel.supplier("plain").connect().expect("connected");
    for supplier in [&mut of_admin, &mut own, &mut plain] {
        supplier.push(&mut time, &event(0)).expect("pushed");
    }
    let event = event_with(0, |header| (header.priority, header.timeout) = (Some(20), Some(MS(1))));
    own.push(&mut time, &event).expect("pushed");
    time.run();
    let expected = [(9, Some(MS(50))), (-1, Some(MS(7))), (3, Some(MS(50))), (20, Some(MS(1)))];
    assert_eq!(*seen.lock().expect("whole"), expected);
    let problem = channel.supplier("s").qos(QosSettings::new().max_events(3)).connect().unwrap_err();
    assert!(problem.to_string().contains("it concerns consumers"), "{problem}");
    assert!(admin.set_qos(&QosSettings::new().order(OrderPolicy::Fifo)).is_err());
}

/// The admin that is always there is made when it is first used, and has what the channel has then; an admin's batches are for who has them.
#[test]
fn what_is_set_for_a_channel_reaches_who_is_connected_later() {
    let (mut time, channel) = channel(QosSettings::new());
    channel
        .set_qos(&QosSettings::new().priority(7).max_events(8).max_batch(4).pacing(MS(50)))
        .expect("sound");
    let (consumer, had) = connected(channel.consumer("c"));
    assert_eq!((consumer.qos().priority, consumer.qos().max_events), (7, 8));
    channel.set_qos(&QosSettings::new().priority(1)).expect("sound");
    assert_eq!(channel.consumer_admin().qos().priority, 7, "it is there since the first consumer");
    let own = channel.consumer("own").qos(QosSettings::new().max_batch(2)).connect(|_| Outcome::Ok);
    assert!(own.is_err(), "it asks for several events at once and takes one");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in 0..4 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    time.run();
    assert_eq!((had.take(), consumer.qos().max_batch), (vec![0, 1, 2, 3], 1));
    consumer.set_qos(&QosSettings::new().priority(2)).expect("it has one event at a time still");
}

/// An urgent event is delivered in its lane, and not what came before it in the lane of another one. What is tried again at one instant as well.
#[test]
fn a_lane_delivers_what_is_of_its_priorities() {
    for concurrent in [false, true] {
        let settings = QosSettings::new().with(PropertyName::RetryInterval, PropertyValue::Time(MS(1)));
        let (mut time, channel) = channel(settings);
        let lane = |name: &str, level: usize| Declaration::new(name, MS(5)).lane(level);
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let own = Arc::clone(&seen);
        let code = move |delivery: &talea_notification::Delivery| {
            let mut seen = own.lock().expect("whole");
            seen.push(delivery.priority());
            if seen.len() <= 2 { Outcome::Retry } else { Outcome::Ok }
        };
        let builder =
            channel.consumer("c").lane_from(10, lane("high", 0)).lane_from(i16::MIN, lane("low", 1));
        let consumer = match concurrent {
            true => builder.connect_concurrent(move |delivery, _| code(delivery)),
            false => builder.connect_with_job(move |delivery, _| code(delivery)),
        };
        let consumer = consumer.expect("connected");
        let mut supplier = channel.supplier("s").connect().expect("connected");
        for priority in [1, 2, 20, 3] {
            let event = event_with(0, |header| header.priority = Some(priority));
            supplier.push(&mut time, &event).expect("pushed");
        }
        let next = |time: &crate::VirtualTime| {
            assert!(time.step());
            seen.lock().expect("whole").last().copied()
        };
        assert_eq!(
            (next(&time), next(&time), next(&time), next(&time)),
            (Some(20), Some(1), Some(2), Some(3))
        );
        assert_eq!(consumer.queued(), 2, "20 and 1 are tried again");
        time.pass(MS(1));
        assert_eq!(*seen.lock().expect("whole"), [20, 1, 2, 3, 20, 1]);
        assert_eq!((consumer.queued(), consumer.statistics().delivered), (0, 4));
    }
}

/// Several lanes that take batches wait for one together, and do not wake each other meanwhile.
#[test]
fn lanes_that_take_batches_wait_for_one_together() {
    let (mut time, channel) = channel(QosSettings::new().max_batch(4).pacing(MS(100)));
    let lane = |name: &str, level: usize| Declaration::new(name, MS(5)).lane(level);
    let had = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&had);
    let builder = channel.consumer("c").lane_from(10, lane("high", 0)).lane_from(i16::MIN, lane("low", 1));
    let consumer = builder.connect_sequence(move |events, _| {
        own.fetch_add(events.len() as u64, Ordering::Relaxed);
        Outcome::Ok
    });
    let consumer = consumer.expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for priority in [1, 20] {
        let event = event_with(0, |header| header.priority = Some(priority));
        supplier.push(&mut time, &event).expect("pushed");
    }
    let mut steps = 0;
    while time.step() {
        steps += 1;
        assert!(steps <= 2, "one job for each event");
    }
    time.pass(MS(99));
    assert_eq!(had.load(Ordering::Relaxed), 0);
    time.pass(MS(1));
    assert_eq!((had.load(Ordering::Relaxed), consumer.queued()), (2, 0));
}

/// Limits of a header's fields hold of all events, also of those into which anything can be put, and that came from elsewhere: such an event is not pushed, and
/// whoever pushes it knows.
#[test]
fn a_header_with_more_fields_than_there_may_be_is_refused() {
    let (mut time, channel) = channel(QosSettings::new());
    let consumer = channel.consumer("c").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut refused = |event: &Event| supplier.push(&mut time, event).err().map(|error| error.to_string());
    let structured = |fields: usize| {
        let event = StructuredEvent::new("Test", "Way", "");
        (0..fields).fold(event, |event, field| event.with_in_header(&format!("f{field}"), 1))
    };
    let header = || Header::new(EventType::new("Test", "Way"));
    let many = "the header of the event is refused: a header has at most 256 fields";
    assert_eq!(refused(&Event::new(header(), structured(256))), None);
    assert_eq!(refused(&Event::new(header(), structured(257))).as_deref(), Some(many));
    // What the header itself has comes on top.
    let mut with_one = header();
    with_one.fields.set("one", 1).expect("sound");
    assert_eq!(refused(&Event::new(with_one.clone(), structured(255))), None);
    assert_eq!(refused(&Event::new(with_one, structured(256))).as_deref(), Some(many));
    assert_eq!(Event::structured(structured(257)).unwrap_err().to_string(), many);

    let mut pool = EventPool::new(1, &EventType::new("Test", "Way"), || structured(256));
    let mut loan = pool.loan().expect("it is free");
    loan.header().fields.set("one", 1).expect("sound");
    assert_eq!(refused(&loan.done()).as_deref(), Some(many));
    let mut loan = pool.loan().expect("nobody has it");
    loan.header().fields.clear();
    loan.content().set_in_header("f0", "x".repeat(1 << 15));
    let told = refused(&loan.done()).expect("it is too long");
    assert!(told.contains("belongs into the content"), "{told}");
    let mut loan = pool.loan().expect("nobody has it");
    loan.content().set_in_header("f0", 1);
    let (last, own) = (loan.done(), talea_notification::wire::Body::raw(&[]));
    assert_eq!(refused(&last), None);
    drop(last);

    // A reader with wider limits.
    let fields: talea_notification::etcl::Properties =
        (0..300).map(|field| (format!("f{field}"), 1)).collect();
    let plain = Event::new(header(), Number(1));
    let mut message = plain.message(own);
    message.variable_header = std::borrow::Cow::Owned(fields);
    let mut received = Event::received(&message, Number(1));
    assert_eq!(refused(&received).as_deref(), Some(many));
    let mut again = received.header().clone();
    (0..44).for_each(|field| _ = again.fields.remove(&format!("f{field}")));
    received = Event::new(again, Number(1));
    assert_eq!((refused(&received), received.variable_header().len()), (None, 256));
    assert_eq!(consumer.queued(), 4);
}
