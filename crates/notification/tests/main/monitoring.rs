//! What is counted, by name and over time, and what is removed by number.

use crate::virtual_time::VirtualTime;
use crate::{MS, channel, connected, event, event_with};
use talea_notification::qos::QosSettings;
use talea_notification::{
    AdminProperties, ConnectError, Connection, EventChannelFactory, GroupOperator, Monitor, Monitored,
    NotReconnected, Numeric, Outcome, PushError, UnknownStatistic,
};
use talea_operation::Post;

fn factory(time: &VirtualTime, channels: &[&str]) -> EventChannelFactory {
    let factory = EventChannelFactory::on(time.clone());
    for name in channels {
        factory.create(name, &QosSettings::new(), AdminProperties::default()).expect("sound");
    }
    factory
}

fn number(monitored: Result<Monitored, UnknownStatistic>) -> Numeric {
    match monitored.expect("it is known") {
        Monitored::Numeric(numeric) => numeric,
        Monitored::Names(names) => panic!("a number, not {names:?}"),
    }
}

fn names(monitored: Result<Monitored, UnknownStatistic>) -> Vec<String> {
    match monitored.expect("it is known") {
        Monitored::Names(names) => names,
        Monitored::Numeric(numeric) => panic!("names, not {numeric:?}"),
    }
}

/// The names that the standard's monitoring has.
#[test]
fn every_statistic_of_the_standard_has_its_name() {
    let time = VirtualTime::default();
    let plant = factory(&time, &["motion", "a/b"]);
    let monitor = Monitor::new().with("plant", &plant).with("office", &factory(&time, &[]));
    let all = monitor.names();
    for name in [
        "ActiveEventChannelCount",
        "InactiveEventChannelCount",
        "ActiveEventChannelNames",
        "InactiveEventChannelNames",
    ] {
        assert!(all.contains(&format!("plant/{name}")) && all.contains(&format!("office/{name}")), "{name}");
    }
    let of_channels = "CreationTime ConsumerCount SupplierCount ConsumerNames SupplierNames TimedoutConsumerNames ConsumerAdminCount \
                       SupplierAdminCount ConsumerAdminNames SupplierAdminNames QueueSize QueueElementCount OldestEvent SlowestConsumers \
                       QueueOverflows OfferedTypes SubscribedTypes";
    for name in of_channels.split_whitespace() {
        assert!(
            all.contains(&format!("plant/motion/{name}")) && all.contains(&format!("plant/a/b/{name}")),
            "{name}"
        );
    }
    assert_eq!(all.len(), 1 + 2 * 4 + 2 * 17);
    for name in &all {
        monitor.get(name, time.now()).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(names(monitor.get("FactoryNames", time.now())), ["office", "plant"]);
    for unknown in [
        "",
        "/",
        "plant",
        "plant/",
        "plant/motion",
        "plant/motion/Size",
        "motion/QueueSize",
        "plant/b/QueueSize",
        "queue",
    ] {
        assert_eq!(monitor.get(unknown, time.now()), Err(UnknownStatistic(unknown.into())));
        assert_eq!(monitor.clear(unknown), Err(UnknownStatistic(unknown.into())));
    }
}

#[test]
fn numbers_are_sampled_when_they_are_read_until_they_are_cleared() {
    let mut time = VirtualTime::default();
    let plant = factory(&time, &["motion"]);
    let monitor = Monitor::new().with("plant", &plant);
    let channel = monitor.channel("plant/motion").expect("it was made");
    let consumer = channel.consumer("slow").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let created = number(monitor.get("plant/motion/CreationTime", time.now())).last;
    assert_eq!(created, time.now().as_nanos() as f64);
    let name = "plant/motion/QueueElementCount";
    let mut read = Vec::new();
    for _ in 0..3 {
        read.push(number(monitor.get(name, time.now())));
        supplier.push(&mut time, &event(1)).expect("pushed");
    }
    let expected =
        Numeric { count: 3, average: 1.0, sum_of_squares: 5.0, minimum: 0.0, maximum: 2.0, last: 2.0 };
    assert_eq!(read[2], expected);
    let bytes = number(monitor.get("plant/motion/QueueSize", time.now())).last;
    assert_eq!(bytes, 3.0 * event(1).bytes() as f64);
    assert_eq!(number(monitor.get_and_clear(name, time.now())).count, 4);
    assert_eq!(number(monitor.get(name, time.now())).count, 1);
    monitor.clear(name).expect("it is known");
    monitor.clear(name).expect("it is known still");
    consumer.try_pull(time.now()).expect("it waits");
    let after = number(monitor.get(name, time.now()));
    assert_eq!((after.count, after.last, after.minimum), (1, 2.0, 2.0));
    assert_eq!(number(monitor.get("plant/motion/QueueSize", time.now())).count, 2, "others stay");
    // Another channel of this name has samples of its own.
    plant.destroy(channel.id());
    assert_eq!(monitor.clear(name), Err(UnknownStatistic(name.into())));
    plant.create("motion", &QosSettings::new(), AdminProperties::default()).expect("sound");
    let of_new = number(monitor.get(name, time.now()));
    assert_eq!((of_new.count, of_new.maximum), (1, 0.0));
}

#[test]
fn who_is_active_and_whose_events_expired_is_told() {
    let mut time = VirtualTime::default();
    let plant = factory(&time, &["motion", "alarms", "alarms"]);
    let monitor = Monitor::new().with("plant", &plant);
    let (first, second) = (plant.all()[1], plant.all()[2]);
    let motion = monitor.channel("plant/motion").expect("it was made");
    assert!(monitor.channel("plant/alarms").is_none(), "there are two");
    assert_eq!(monitor.channel(&format!("plant/#{second}")).map(|one| one.id()), Some(second));
    let consumer = motion.consumer("late").connect_pull().expect("connected");
    assert_eq!(names(monitor.get("plant/ActiveEventChannelNames", time.now())), ["motion"]);
    let inactive = names(monitor.get("plant/InactiveEventChannelNames", time.now()));
    assert_eq!(inactive, [format!("#{first}"), format!("#{second}")]);
    assert_eq!(number(monitor.get("plant/InactiveEventChannelCount", time.now())).last, 2.0);
    let mut supplier = motion.supplier("s").connect().expect("connected");
    supplier.push(&mut time, &event_with(1, |header| header.timeout = Some(MS(1)))).expect("pushed");
    assert_eq!(names(monitor.get("plant/motion/TimedoutConsumerNames", time.now())), Vec::<String>::new());
    time.advance(MS(2));
    assert!(consumer.try_pull(time.now()).is_none());
    assert_eq!(names(monitor.get("plant/motion/TimedoutConsumerNames", time.now())), ["late"]);
    assert!(plant.destroy(motion.id()));
    assert_eq!(number(monitor.get("plant/ActiveEventChannelCount", time.now())).last, 0.0);
    assert!(monitor.get("plant/motion/QueueSize", time.now()).is_err());
}

#[test]
fn who_is_removed_has_and_pushes_nothing_any_more() {
    let (mut time, channel) = channel(QosSettings::new());
    let (consumer, had) = connected(channel.consumer("c"));
    let other = channel.consumer("other").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    supplier.push(&mut time, &event(1)).expect("pushed");
    assert_eq!(channel.consumers(), [(consumer.id(), "c".to_owned()), (other.id(), "other".to_owned())]);
    assert_eq!(channel.suppliers(), [(supplier.id(), "s".to_owned())]);
    assert!(channel.remove_consumer(consumer.id()) && !channel.remove_consumer(consumer.id()));
    assert_eq!(consumer.connection(), Connection::Closed);
    time.run();
    assert!(had.take().is_empty(), "what waited is discarded");
    assert_eq!(supplier.push(&mut time, &event(2)).expect("pushed").subscribed, 1);
    assert!(channel.remove_supplier(supplier.id()) && !channel.remove_supplier(supplier.id()));
    assert_eq!(supplier.push(&mut time, &event(3)), Err(PushError::NotConnected));
    // A number of somebody else takes nothing from him.
    let told = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let telling = std::sync::Arc::clone(&told);
    other.on_offer_change(move |_| _ = telling.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    assert!(!channel.remove_supplier(other.id()) && !channel.remove_consumer(1_000));
    let later = channel.supplier("later").offer([talea_notification::EventType::new("Test", "Late")]);
    drop(later.connect().expect("connected"));
    assert_eq!(told.load(std::sync::atomic::Ordering::Relaxed), 2, "it comes and goes");
    let counted = |channel: &talea_notification::EventChannel| {
        let all = channel.statistics(time.now());
        (all.pushed, all.suppliers.len(), all.consumers.len(), all.queued)
    };
    assert_eq!(counted(&channel), (2, 0, 1, 2));
    drop((supplier, consumer));
    assert_eq!(counted(&channel), (2, 0, 1, 2), "their programs have let them go");
}

#[test]
fn a_destroyed_admin_takes_its_members_with_it_and_gets_no_others() {
    let (mut time, channel) = channel(QosSettings::new());
    let consumers = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let suppliers = channel.new_supplier_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let (_inside, had) = connected(consumers.consumer("inside"));
    let (_outside, others) = connected(channel.consumer("outside"));
    let mut supplier = suppliers.supplier("inside").connect().expect("connected");
    let mut outside = channel.supplier("outside").connect().expect("connected");
    let admins = |channel: &talea_notification::EventChannel| {
        let all = channel.statistics(talea_time::Instant::ZERO);
        (all.consumer_admins, all.supplier_admins)
    };
    assert_eq!(admins(&channel), (vec![0, consumers.id()], vec![0, suppliers.id()]));
    assert!(consumers.destroy() && !consumers.destroy());
    assert!(suppliers.destroy() && !suppliers.destroy());
    assert_eq!(admins(&channel), (vec![0], vec![0]));
    assert!(channel.consumer_admin_of(consumers.id()).is_none());
    assert!(channel.supplier_admin_of(suppliers.id()).is_none());
    assert_eq!(supplier.push(&mut time, &event(1)), Err(PushError::NotConnected));
    outside.push(&mut time, &event(2)).expect("pushed");
    time.run();
    assert_eq!((had.take(), others.take()), (vec![], vec![2]));
    assert!(matches!(consumers.consumer("late").connect_pull(), Err(ConnectError::NoAdmin)));
    assert!(matches!(suppliers.supplier("late").connect(), Err(ConnectError::NoAdmin)));
    // A handle that somebody has still can be asked.
    assert!(consumers.consumers().is_empty() && suppliers.suppliers().is_empty());
    assert_eq!(consumers.operator(), GroupOperator::And);
    consumers.set_qos(&QosSettings::new().priority(1)).expect("it is a handle");
    assert!(
        !channel.consumer_admin().destroy() && !channel.supplier_admin().destroy(),
        "they stay with the channel"
    );
    outside.push(&mut time, &event(3)).expect("pushed");
    time.run();
    assert_eq!(others.take(), [3]);
}

#[test]
fn a_consumer_that_is_reconnected_keeps_what_waits_and_what_it_was() {
    let (mut time, channel) = channel(QosSettings::new());
    let (consumer, first) = connected(channel.consumer("c").subscribe(crate::types("Test/Tick")));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    supplier.push(&mut time, &event(1)).expect("pushed");
    time.run();
    supplier.push(&mut time, &event(2)).expect("pushed");
    let second = crate::Had::default();
    let own = second.clone();
    let code = move |delivery: &talea_notification::Delivery| {
        own.add(delivery);
        Outcome::Ok
    };
    consumer.reconnect(code.clone()).expect("it is connected");
    supplier.push(&mut time, &event(3)).expect("pushed");
    supplier.push(&mut time, &crate::event_of("Other", 4)).expect("pushed");
    time.run();
    assert_eq!((first.take(), second.take()), (vec![1], vec![2, 3]));
    assert_eq!(consumer.statistics().delivered, 3);
    let pull = channel.consumer("pull").connect_pull().expect("connected");
    let concurrent = channel.consumer("both").connect_concurrent(|_, _| Outcome::Ok).expect("connected");
    for other in [&*pull, &concurrent] {
        assert_eq!(other.reconnect(code.clone()), Err(NotReconnected::Otherwise));
    }
    let is_concurrent = |_: &talea_notification::Delivery, _: &talea_operation::JobContext<'_>| Outcome::Ok;
    for other in [&*pull, &consumer] {
        assert_eq!(other.reconnect_concurrent(is_concurrent), Err(NotReconnected::Otherwise));
    }
    let batch = QosSettings::new().max_batch(4);
    let sequence = channel.consumer("sequence").qos(batch).connect_sequence(|_, _| Outcome::Fail);
    let sequence = sequence.expect("connected");
    assert_eq!(sequence.reconnect(code.clone()), Err(NotReconnected::Otherwise), "it would have one of four");
    let sizes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let own = std::sync::Arc::clone(&sizes);
    let of_sequence = move |events: &[talea_notification::Delivery], _: &talea_operation::JobContext<'_>| {
        own.lock().unwrap().push(events.len());
        Outcome::Ok
    };
    sequence.reconnect_sequence(of_sequence).expect("it is connected");
    for number in 5..9 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    time.run();
    assert_eq!(sizes.lock().unwrap().iter().sum::<usize>(), 4, "{sizes:?}");
    assert!(channel.remove_consumer(consumer.id()));
    assert_eq!(consumer.reconnect(code), Err(NotReconnected::NotConnected));
}

/// Also by its own code, in whose midst the call that has begun is whole; and the former code is dropped once.
#[test]
fn a_concurrent_consumer_is_reconnected_while_it_is_called() {
    let (mut time, channel) = channel(QosSettings::new());
    let (first, second) = (crate::Had::default(), crate::Had::default());
    let (token, itself) = (std::sync::Arc::new(()), std::sync::Arc::new(std::sync::OnceLock::new()));
    let is_kept = std::sync::Arc::downgrade(&token);
    let (own, other, handle) = (first.clone(), second.clone(), std::sync::Arc::clone(&itself));
    let consumer = channel.consumer("c").connect_concurrent(move |delivery, _| {
        let (other, _kept) = (other.clone(), &token);
        let consumer: &talea_notification::ConsumerHandle = handle.get().expect("it is set");
        let code = move |delivery: &talea_notification::Delivery, _: &talea_operation::JobContext<'_>| {
            other.add(delivery);
            Outcome::Ok
        };
        consumer.reconnect_concurrent(code).expect("it is connected");
        own.add(delivery);
        Outcome::Ok
    });
    let consumer = consumer.expect("connected");
    itself.set(channel.consumer_of(consumer.id()).expect("it is connected")).expect("set once");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in 1..4 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    time.run();
    assert_eq!((first.take(), second.take()), (vec![1], vec![2, 3]));
    assert!(is_kept.upgrade().is_some(), "it was in use when it was replaced");
    consumer.reconnect_concurrent(|_, _| Outcome::Ok).expect("it is connected");
    assert!(is_kept.upgrade().is_none(), "nobody has it any more");
    assert_eq!(consumer.statistics().delivered, 3);
}

#[test]
fn a_call_back_may_remove_its_own_consumer_and_its_supplier() {
    let (mut time, channel) = channel(QosSettings::new());
    let removing = channel.clone();
    let had = crate::Had::default();
    let own = had.clone();
    let consumer = channel.consumer("once").connect(move |delivery| {
        own.add(delivery);
        assert!(removing.consumers().into_iter().all(|(number, _)| removing.remove_consumer(number)));
        assert!(removing.suppliers().into_iter().all(|(number, _)| removing.remove_supplier(number)));
        talea_notification::Outcome::Ok
    });
    let consumer = consumer.expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in [1, 2] {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    time.run();
    assert_eq!((had.take(), consumer.connection()), (vec![1], Connection::Closed));
    assert_eq!(supplier.push(&mut time, &event(3)), Err(PushError::NotConnected));
    let counted = consumer.statistics();
    assert_eq!((counted.delivered, counted.discarded), (1, 1));
}

/// Who looks from another process finds by the standard's names how many there are: also of who came before there was a stream, of channels of one name together, and when all is gone nothing.
#[test]
fn a_stream_shows_how_many_there_are() {
    use talea_notification::EventChannel;
    use talea_record::stream::StreamDirectory;
    use talea_record::stream::passive::Reading;
    use talea_record::{Metadata, RingShape, TraceFile};

    const NAME: &str = "gauged";
    let create = |factory: &EventChannelFactory| {
        factory.create(NAME, &QosSettings::new(), AdminProperties::default()).expect("sound")
    };
    let time = VirtualTime::default();
    let factory = EventChannelFactory::on(time.clone());
    time.advance(MS(7));
    let before = create(&factory);
    time.advance(MS(2));
    let kept = before.consumer("kept").connect_pull().expect("connected");
    let mut supplier = before.supplier("s").connect().expect("connected");

    let place = tempfile::tempdir().expect("a folder");
    let streams = StreamDirectory::at(&place.path().join("streams")).expect("a folder");
    let shape = RingShape { writers: &["collector".to_owned()], spare: 2, capacity: 256, later: 0 };
    let stream = streams.publish("gauged", &Metadata::bare("gauged"), shape).expect("published");
    let read = |name: &str| {
        let reading =
            TraceFile::open(stream.path()).expect("a stream").reading(&format!("channel-{NAME}.{name}"));
        let Ok(Reading::Gauge(number)) = reading else { panic!("{name}: {reading:?}") };
        number
    };
    let shown = || {
        ["ConsumerCount", "SupplierCount", "ConsumerAdminCount", "SupplierAdminCount", "QueueElementCount"]
            .map(read)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _local = stream.attach_thread("members").expect("there is room");
            let counted = |channels: &[&EventChannel]| {
                let sums = channels.iter().map(|channel| channel.statistics(time.now())).map(|all| {
                    [
                        all.consumers.len(),
                        all.suppliers.len(),
                        all.consumer_admins.len(),
                        all.supplier_admins.len(),
                        all.queued,
                    ]
                });
                sums.fold([0; 5], |sum, one| std::array::from_fn(|place| sum[place] + one[place] as i64))
            };
            let mut via = time.clone();
            // The first change shows what there is.
            let admin = before.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
            for number in 1..=2 {
                supplier.push(&mut via, &event(number)).expect("pushed");
            }
            assert_eq!((shown(), counted(&[&before])), ([1, 1, 2, 1, 2], [1, 1, 2, 1, 2]));
            assert_eq!((read("QueueSize"), before.queued_bytes(time.now())), (16, 16));
            assert_eq!(read("CreationTime"), 7_000_000);
            time.advance(MS(3));
            let other = create(&factory);
            let inside = admin.consumer("inside").connect_pull().expect("connected");
            let mut second = other.supplier("t").connect().expect("connected");
            let (failing, _) = connected(other.consumer("o"));
            supplier.push(&mut via, &event(3)).expect("pushed");
            second.push(&mut via, &event(4)).expect("pushed");
            assert_eq!(shown(), counted(&[&before, &other]));
            assert_eq!(shown(), [3, 2, 3, 2, 3 + 1 + 1]);
            assert_eq!(read("QueueSize"), 5 * 8);
            kept.try_pull(time.now()).expect("it waits");
            failing.set_qos(&QosSettings::new().max_events(1)).expect("sound");
            second.push(&mut via, &event(5)).expect("in the place of the one before");
            assert_eq!((shown()[4], counted(&[&before, &other])[4]), (4, 4));
            assert_eq!((read("QueueSize"), read("CreationTime")), (4 * 8, 7_000_000), "that of the first");
            time.run();
            assert!(admin.destroy() && before.remove_consumer(kept.id()));
            assert_eq!(shown(), counted(&[&before, &other]));
            drop((inside, supplier));
            assert_eq!((shown(), read("CreationTime")), ([1, 1, 2, 2, 0], 7_000_000));
            assert!(factory.destroy(before.id()));
            assert_eq!((shown(), read("CreationTime")), ([1, 1, 1, 1, 0], 12_000_000), "that of the other");
            drop((kept, second, failing, admin, other, before, factory));
            assert_eq!(shown(), [0; 5], "a channel that nobody has is none");
            assert_eq!((read("QueueSize"), read("CreationTime")), (0, 0));
        });
    });
}
