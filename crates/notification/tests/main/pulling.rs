//! Suppliers that the channel pulls, and consumers that take several events at once.

use crate::{MS, VirtualTime, channel, connected, event, event_of, event_with, number, types};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use talea_linux::clock::MonotonicClock;
use talea_notification::qos::{PropertyName, QosError, QosSettings};
use talea_notification::{
    AdminProperties, BindError, ConnectError, Connection, EventChannelFactory, EventPool, EventType, Filter,
    Header, NotNow, Outcome, PullPace, PullStatistics, PullSupplier, PushError, Supplied, Supplier,
    ThreadPool, WaitSet,
};
use talea_operation::{Declaration, NotPosted, Post, Posted};
use talea_time::{Clock, Duration, Instant};

/// What a supplier is to say when it is asked, one after the other; then nothing.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<std::collections::VecDeque<Supplied>>>);

impl Script {
    fn of(answers: impl IntoIterator<Item = Supplied>) -> Self {
        Script(Arc::new(Mutex::new(answers.into_iter().collect())))
    }

    fn events(numbers: std::ops::Range<u64>) -> Self {
        Script::of(numbers.map(|number| Supplied::Event(event(number))))
    }

    fn next(&self) -> Supplied {
        self.0.lock().expect("whole").pop_front().unwrap_or(Supplied::Nothing)
    }

    fn left(&self) -> usize {
        self.0.lock().expect("whole").len()
    }
}

fn pulled(channel: &talea_notification::EventChannel, pace: PullPace, script: &Script) -> PullSupplier {
    let own = script.clone();
    channel.supplier("p").connect_pull(pace, move |_| own.next()).expect("connected")
}

#[test]
fn a_supplier_is_asked_at_its_pace() {
    let (time, channel) = channel(QosSettings::new());
    let (_consumer, had) = connected(channel.consumer("c"));
    let script = Script::events(0..5);
    let supplier = pulled(&channel, PullPace::every(MS(10)), &script);
    time.run();
    assert!(had.take().is_empty(), "it is asked by a job that time posts");
    time.pass(MS(0));
    assert_eq!(had.take(), [0]);
    time.pass(MS(9));
    assert!(had.take().is_empty());
    time.pass(MS(1));
    assert_eq!(had.take(), [1]);
    time.pass(MS(100));
    assert_eq!(had.take(), [2, 3, 4]);
    let expected = PullStatistics { turns: 12, pulled: 5, empty: 7, ..PullStatistics::default() };
    assert_eq!((supplier.statistics(), supplier.pushed()), (expected, 5));
    assert!(time.names().contains(&"test.p".to_owned()));
}

#[test]
fn a_turn_asks_until_there_is_none_or_it_has_as_many_as_it_may() {
    let (time, channel) = channel(QosSettings::new());
    let (_consumer, had) = connected(channel.consumer("c"));
    let script = Script::events(0..7);
    let supplier = pulled(&channel, PullPace::every(MS(10)).up_to(3), &script);
    let mut turns = Vec::new();
    for _ in 0..4 {
        time.pass(MS(0));
        turns.push(had.take());
        time.advance(MS(10));
    }
    assert_eq!(turns, [vec![0, 1, 2], vec![3, 4, 5], vec![6], vec![]]);
    assert_eq!((supplier.statistics().turns, supplier.statistics().empty), (4, 1));
}

/// The instants are those of the pace, however long turns take; what is over by then is left out and counted.
#[test]
fn turns_that_take_too_long_leave_out_the_next_and_do_not_drift() {
    let (time, channel) = channel(QosSettings::new());
    let (asked, own) = (Arc::new(Mutex::new(Vec::new())), time.clone());
    let at = Arc::clone(&asked);
    let takes = [0, 3, 25, 0, 10, 0];
    let supplier = channel.supplier("p").connect_pull(PullPace::every(MS(10)), move |_| {
        let mut at = at.lock().expect("whole");
        at.push(own.now().as_nanos() / 1_000_000);
        own.advance(MS(takes[at.len() - 1]));
        Supplied::Nothing
    });
    let supplier = supplier.expect("connected");
    while asked.lock().expect("whole").len() < takes.len() {
        time.pass(MS(1));
    }
    assert_eq!(*asked.lock().expect("whole"), [0, 10, 20, 50, 60, 80]);
    assert_eq!(supplier.statistics().skipped, 2 + 1);
}

#[test]
fn what_the_channel_rejects_is_kept_and_pushed_first() {
    let (time, channel) = channel(QosSettings::new());
    let limits =
        AdminProperties { max_queue_length: 2, reject_new_events: true, ..AdminProperties::default() };
    channel.set_admin_properties(limits);
    let consumer = channel.consumer("c").connect_pull().expect("connected");
    let script = Script::events(0..6);
    let supplier = pulled(&channel, PullPace::every(MS(10)).up_to(4), &script);
    let mut had = Vec::new();
    for turn in 0..5 {
        time.pass(MS(0));
        if turn > 0 {
            had.extend(consumer.try_iter(|| time.now()).map(|one| number(one.event())));
        }
        time.advance(MS(10));
    }
    assert_eq!(had, [0, 1, 2, 3, 4, 5], "none is lost, and none comes before another one");
    let counted = supplier.statistics();
    assert_eq!((counted.pulled, counted.rejected, script.left()), (6, 3, 0));
    // What is refused for what it is has nobody, and the next one comes.
    let wrong = event_with(7, |header: &mut Header| {
        header.reliability = Some(talea_notification::qos::Reliability::Persistent);
    });
    *script.0.lock().expect("whole") = [Supplied::Event(wrong), Supplied::Event(event(8))].into();
    time.pass(MS(10));
    let rest: Vec<u64> = consumer.try_iter(|| time.now()).map(|one| number(one.event())).collect();
    assert_eq!((rest, supplier.statistics().refused), (vec![8], 1));
    assert_eq!(supplier.connection(), Connection::Active);
}

#[test]
fn whose_code_panics_or_says_so_is_gone_and_nobody_else() {
    let (mut time, channel) = channel(QosSettings::new());
    let (_consumer, had) = connected(channel.consumer("c"));
    let last = Script::of([Supplied::Event(event(1)), Supplied::Gone, Supplied::Event(event(9))]);
    let gone = pulled(&channel, PullPace::every(MS(1)), &last);
    let kept = Arc::new(());
    let own = Arc::clone(&kept);
    let failing = channel.supplier("f").connect_pull(PullPace::every(MS(1)), move |_| {
        assert_eq!(Arc::strong_count(&own), 0, "it fails");
        Supplied::Nothing
    });
    let failing = failing.expect("connected");
    let mut other = channel.supplier("o").connect().expect("connected");
    time.pass(MS(10));
    other.push(&mut time, &event(2)).expect("pushed");
    time.run();
    assert_eq!((had.take(), last.left()), (vec![1, 2], 1), "who is gone is not asked");
    for (supplier, has_failed) in [(&gone, false), (&failing, true)] {
        assert_eq!((supplier.connection(), supplier.has_failed()), (Connection::Closed, has_failed));
        assert_eq!(
            (supplier.suspend(), supplier.resume()),
            (Err(NotNow::NotConnected), Err(NotNow::NotConnected))
        );
        assert!(channel.supplier_of(supplier.id()).is_none());
    }
    assert_eq!(Arc::strong_count(&kept), 1, "its code is dropped when it has failed");
    assert!(time.alarms().is_empty(), "and no time is waited for");
}

/// A filter of somebody else that panics ends the turn: the supplier does not pass for one that is asked.
#[test]
fn a_filter_that_panics_ends_the_supplier_whose_event_it_meets() {
    let (time, channel) = channel(QosSettings::new());
    let filter = Filter::of(&[], |event: &talea_notification::Event| {
        assert_ne!(number(event), 2, "it fails");
        Ok(true)
    });
    let (consumer, had) = connected(channel.consumer("c").filter(filter));
    let supplier = pulled(&channel, PullPace::every(MS(1)), &Script::events(0..9));
    let other = pulled(&channel, PullPace::every(MS(1)), &Script::events(10..12));
    time.pass(MS(9));
    let mut had = had.take();
    had.sort_unstable();
    assert_eq!(had, [0, 1, 10, 11]);
    assert_eq!((supplier.connection(), supplier.has_failed()), (Connection::Closed, true));
    assert_eq!((other.connection(), consumer.connection()), (Connection::Active, Connection::Active));
}

/// What the code of a supplier keeps may fail when it is dropped, too.
#[test]
fn code_that_panics_when_it_is_dropped_ends_the_turn_and_nothing_else() {
    struct Fails(Arc<AtomicBool>);
    impl Drop for Fails {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
            panic!("it fails when it is dropped");
        }
    }
    let (time, channel) = channel(QosSettings::new());
    let is_dropped = Arc::new(AtomicBool::new(false));
    let fails = Fails(Arc::clone(&is_dropped));
    let supplier = channel.supplier("p").connect_pull(PullPace::every(MS(1)), move |_| {
        _ = &fails;
        Supplied::Gone
    });
    let supplier = supplier.expect("connected");
    time.pass(MS(5));
    assert!(is_dropped.load(Ordering::Relaxed) && supplier.connection() == Connection::Closed);
}

#[test]
fn suspended_it_is_not_asked_and_resumed_at_once() {
    let (time, channel) = channel(QosSettings::new());
    let (_consumer, had) = connected(channel.consumer("c"));
    let script = Script::events(0..9);
    let supplier = pulled(&channel, PullPace::every(MS(10)), &script);
    time.pass(MS(0));
    assert_eq!(supplier.resume(), Err(NotNow::AlreadyActive));
    supplier.suspend().expect("active");
    assert_eq!(
        (supplier.suspend(), supplier.connection()),
        (Err(NotNow::AlreadySuspended), Connection::Suspended)
    );
    time.pass(MS(45));
    assert_eq!((had.take(), time.alarms().len()), (vec![0], 0));
    supplier.resume().expect("suspended");
    time.pass(MS(0));
    assert_eq!(had.take(), [1], "at 45");
    time.pass(MS(10));
    assert_eq!((had.take(), supplier.statistics().skipped), (vec![2], 0), "at 55");
    // Between two turns, so that the one that was planned comes as well.
    time.pass(MS(4));
    supplier.suspend().expect("active");
    supplier.resume().expect("suspended");
    time.pass(MS(0));
    assert_eq!(had.take(), [3], "at 59");
    time.pass(MS(6));
    assert_eq!(had.take(), [4], "at 65");
    time.pass(MS(10));
    assert_eq!((had.take(), supplier.statistics().turns), (vec![5], 6), "at 75");
}

/// It ends when its handle is dropped, wherever that is, when it is removed, and with its admin and its channel.
#[test]
fn a_pulled_supplier_that_is_disconnected_is_asked_no_more() {
    let time = VirtualTime::default();
    let factory = EventChannelFactory::on(time.clone());
    let create = || factory.create("c", &QosSettings::new(), AdminProperties::default()).expect("sound");
    type End = fn(&EventChannelFactory, &talea_notification::EventChannel, &Mutex<Option<PullSupplier>>);
    let ends: [End; 4] = [
        |_, _, own| drop(own.lock().expect("whole").take()),
        |_, channel, own| {
            let id = own.lock().expect("whole").as_ref().map(|own| own.id());
            assert!(channel.remove_supplier(id.expect("it is there")));
        },
        |_, channel, _| {
            let suppliers = channel.suppliers();
            assert!(suppliers.iter().all(|(id, _)| channel.supplier_of(*id).expect("listed").disconnect()));
        },
        |factory, channel, _| assert!(factory.destroy(channel.id())),
    ];
    for end in ends {
        for in_midst in [false, true] {
            let channel = create();
            let (consumer, had) = connected(channel.consumer("c"));
            let own: Arc<Mutex<Option<PullSupplier>>> = Arc::default();
            let (slot, of_factory, of_channel) = (Arc::downgrade(&own), factory.clone(), channel.clone());
            let mut asked = 0;
            let supplier = channel.supplier("p").connect_pull(PullPace::every(MS(1)), move |_| {
                asked += 1;
                if in_midst && asked == 2 {
                    end(&of_factory, &of_channel, &slot.upgrade().expect("it is there"));
                }
                Supplied::Event(event(asked))
            });
            *own.lock().expect("whole") = Some(supplier.expect("connected"));
            time.pass(MS(1));
            if !in_midst {
                end(&factory, &channel, &own);
            }
            time.pass(MS(50));
            // What is asked for in the midst of the end is pushed no more.
            assert_eq!(had.take().len(), if in_midst { 1 } else { 2 });
            let is_destroyed = consumer.connection() == Connection::Closed;
            assert!(channel.suppliers().is_empty() || is_destroyed);
            assert!(time.alarms().is_empty(), "no time is waited for");
            drop(own.lock().expect("whole").take());
        }
    }
}

#[test]
fn it_begins_when_there_is_a_run_and_says_what_it_needs() {
    let factory = EventChannelFactory::new();
    let channel = factory.create("c", &QosSettings::new(), AdminProperties::default()).expect("sound");
    let script = Script::events(0..1);
    let supplier = pulled(&channel, PullPace::every(MS(1)), &script);
    drop(pulled(&channel, PullPace::every(MS(1)), &Script::default()));
    assert_eq!(factory.needs(), (1, 1), "the other one is gone");
    let consumer = channel.consumer("c").connect_pull().expect("connected");
    let time = VirtualTime::default();
    factory.bind(time.clone()).expect("it is the first");
    assert!(matches!(factory.bind(time.clone()), Err(BindError::Bound)));
    assert_eq!(time.names(), ["c.p"]);
    time.pass(MS(5));
    assert_eq!((consumer.queued(), supplier.statistics().turns), (1, 6));
}

/// The nearest word says in which lane it is asked: its own, or its channel's pool's, by its priority.
#[test]
fn it_is_asked_in_the_lane_that_is_said() {
    let (time, channel) = channel(QosSettings::new());
    let lane = |name: &str, level: usize| Declaration::new(name, MS(5)).lane(level);
    let pool = ThreadPool::client_propagated().lane_from(0, lane("low", 7)).lane_from(10, lane("high", 3));
    channel.set_thread_pool(pool).expect("a pool");
    let connect = |priority: i16, pace: PullPace| {
        let builder = channel.supplier("p").qos(QosSettings::new().priority(priority));
        builder.connect_pull(pace, |_| Supplied::Nothing).expect("connected")
    };
    let every = || PullPace::every(MS(10));
    let _kept = [
        connect(12, every()),
        connect(0, every()),
        connect(-5, every()),
        connect(0, every().lane(lane("own", 1))),
    ];
    let levels: Vec<usize> = time.alarms().into_iter().map(|(_, level)| level).collect();
    assert_eq!(levels, [1, 3, 7, 7]);
    assert_eq!(time.names().last().map(String::as_str), Some("own"));
}

#[test]
fn a_pace_that_makes_no_sense_is_refused() {
    let (_time, channel) = channel(QosSettings::new());
    for pace in [PullPace::every(Duration::ZERO), PullPace::every(-MS(1)), PullPace::every(MS(1)).up_to(0)] {
        let refused = channel.supplier("p").connect_pull(pace, |_| Supplied::Nothing);
        assert!(matches!(refused, Err(ConnectError::Pace(_))));
    }
    let settings = QosSettings::new().max_events(4);
    let refused =
        channel.supplier("p").qos(settings).connect_pull(PullPace::every(MS(1)), |_| Supplied::Nothing);
    assert!(matches!(refused, Err(ConnectError::Qos(_))));
    assert!(channel.suppliers().is_empty());
}

/// Settings, filters and subscriptions change between turns and in their midst.
#[test]
fn what_is_set_of_a_pulled_supplier_holds_from_the_next_event_on() {
    let (time, channel) = channel(QosSettings::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&seen);
    let consumer = channel.consumer("c").connect(move |delivery| {
        own.lock().expect("whole").push((number(delivery.event()), delivery.priority()));
        Outcome::Ok
    });
    let consumer = consumer.expect("connected");
    let (changing, mut asked) = (channel.clone(), 0u64);
    let supplier = channel.supplier("p").connect_pull(PullPace::every(MS(1)).up_to(2), move |_| {
        asked += 1;
        let own = changing.suppliers()[0].0;
        let own = changing.supplier_of(own).expect("it is being asked");
        own.set_qos(&QosSettings::new().priority(asked as i16)).expect("sound");
        if asked == 3 {
            let odd = Filter::of(&[], |event: &talea_notification::Event| Ok(number(event) % 2 == 1));
            own.filters().add(odd).expect("no limit");
        }
        Supplied::Event(event(asked))
    });
    let supplier = supplier.expect("connected");
    time.pass(MS(2));
    assert_eq!(*seen.lock().expect("whole"), [(1, 1), (2, 2), (3, 3), (5, 5)]);
    assert_eq!(supplier.filtered().0, 2);
    consumer.subscription_change(types("Test/Other"), []);
    time.pass(MS(1));
    assert_eq!(seen.lock().expect("whole").len(), 4);
}

#[test]
fn turns_do_not_allocate() {
    let (time, channel) = channel(QosSettings::new().max_events(4));
    let tick = EventType::new("Test", "Tick");
    let consumer = channel.consumer("c").connect_pull().expect("connected");
    let mut pool = EventPool::new(16, &tick, || crate::Number(0));
    let builder = channel.supplier("p").offer([tick.clone()]);
    let supplier = builder.connect_pull(PullPace::every(MS(1)).up_to(3), move |_| match pool.loan() {
        Some(loan) => Supplied::Event(loan.done()),
        None => Supplied::Nothing,
    });
    let supplier = supplier.expect("connected");
    let mut taken = 0;
    let mut round = || {
        time.pass(MS(1));
        while consumer.try_pull(time.now()).is_some() {
            taken += 1;
        }
    };
    round();
    let allocations = allocation_counter::measure(|| (0..50).for_each(|_| round()));
    assert_eq!(allocations.count_total, 0);
    assert!(taken >= 150 && supplier.statistics().pulled >= 150);
}

/// A thread of the program pulls from whatever there is to wait for.
#[test]
fn a_thread_pulls_from_an_iterator() {
    let (mut time, channel) = channel(QosSettings::new());
    let limits =
        AdminProperties { max_queue_length: 3, reject_new_events: true, ..AdminProperties::default() };
    channel.set_admin_properties(limits);
    let consumer = channel.consumer("c").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let (send, receive) = std::sync::mpsc::channel();
    thread::spawn(move || (0..3).for_each(|number| send.send(event(number)).expect("somebody hears")));
    let pushed = supplier.push_all(&mut time, receive).expect("there is room");
    assert_eq!((pushed.queued, consumer.queued()), (3, 3));
    let mut more = (3..6).map(event);
    let (pushed, error) = supplier.push_all(&mut time, &mut more).unwrap_err();
    assert_eq!((pushed.queued, error, more.count()), (0, PushError::Rejected, 2));
}

// Sequences.

#[test]
fn events_are_taken_several_at_once() {
    let (mut time, channel) = channel(QosSettings::new());
    let batch = QosSettings::new().max_batch(4);
    let consumer = channel.consumer("c").qos(batch).connect_pull_sequence().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in 0..7 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    let (now, mut events) = (time.now(), Vec::new());
    assert_eq!(consumer.try_pull(0, now, &mut events), 0);
    assert_eq!(consumer.try_pull(2, now, &mut events), 2);
    assert_eq!(consumer.try_pull(100, now, &mut events), 4, "as its quality of service says");
    assert_eq!(consumer.pull(100, MS(1), || now, &mut events), 1, "what is there");
    let numbers: Vec<u64> = events.iter().map(|one| number(one.event())).collect();
    assert_eq!((numbers, consumer.queued()), ((0..7).collect(), 0));
    assert_eq!(consumer.statistics().delivered, 7);
    let later = std::cell::Cell::new(now);
    let clock = || {
        later.set(later.get() + MS(1));
        later.get()
    };
    assert_eq!(consumer.pull(1, MS(5), clock, &mut events), 0, "the time has passed");
    // One event at a time is another thing.
    let own = channel.consumer("d").qos(QosSettings::new().max_batch(2)).connect_pull().unwrap_err();
    let ConnectError::Qos(problems) = own else { panic!("{own}") };
    assert_eq!(problems.0[0].error, QosError::UnavailableValue);
    assert_eq!(problems.0[0].property, PropertyName::MaximumBatchSize.as_str());
}

#[test]
fn less_than_a_batch_is_awaited_by_its_pacing() {
    let (mut time, channel) = channel(QosSettings::new().max_batch(3).pacing(MS(10)));
    let consumer = channel.consumer("c").connect_pull_sequence().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut events = Vec::new();
    let mut push = |time: &mut VirtualTime| supplier.push(&mut *time, &event(0)).expect("pushed").queued;
    push(&mut time);
    assert_eq!(consumer.try_pull(9, time.now(), &mut events), 0);
    time.advance(MS(9));
    assert_eq!(push(&mut time), 1);
    assert_eq!(consumer.try_pull(9, time.now(), &mut events), 0);
    assert_eq!(consumer.try_pull(2, time.now(), &mut events), 2, "who wants no more has a batch");
    push(&mut time);
    time.advance(MS(10));
    assert_eq!(
        consumer.try_pull(9, time.now(), &mut events),
        1,
        "it has waited since it came, asked for or not"
    );
    for _ in 0..4 {
        push(&mut time);
    }
    assert_eq!(consumer.try_pull(9, time.now(), &mut events), 3);
    // While it is suspended time does not pass for a batch, and nothing is taken.
    consumer.suspend().expect("active");
    time.advance(MS(20));
    assert_eq!(consumer.try_pull(9, time.now(), &mut events), 0);
    let clock = time.clone();
    let passing = move || {
        clock.advance(MS(1));
        clock.now()
    };
    assert_eq!(consumer.pull(9, MS(5), passing, &mut events), 0);
    consumer.resume(&mut time).expect("suspended");
    assert_eq!((consumer.try_pull(9, time.now(), &mut events), consumer.queued()), (1, 0));
    // What is set meanwhile holds from then on.
    push(&mut time);
    consumer.set_qos(&QosSettings::new().pacing(Duration::ZERO)).expect("sound");
    assert_eq!(consumer.try_pull(9, time.now(), &mut events), 1);
}

#[test]
fn sequences_expire_start_and_come_in_their_order() {
    let (mut time, channel) =
        channel(QosSettings::new().max_batch(8).order(talea_notification::qos::OrderPolicy::Priority));
    let consumer = channel.consumer("c").connect_pull_sequence().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let start = time.now() + MS(5);
    for (number, priority) in [(0, 1), (1, 9), (2, 5)] {
        let event = event_with(number, |header| {
            header.priority = Some(priority);
            header.timeout = (number == 0).then_some(MS(3));
            header.start = (number == 2).then_some(start);
        });
        supplier.push(&mut time, &event).expect("pushed");
    }
    let mut events = Vec::new();
    assert_eq!(consumer.try_pull(8, time.now(), &mut events), 2);
    time.pass(MS(5));
    assert_eq!(consumer.try_pull(8, time.now(), &mut events), 1);
    let numbers: Vec<u64> = events.iter().map(|one| number(one.event())).collect();
    assert_eq!(numbers, [1, 0, 2]);
}

fn now() -> Instant {
    MonotonicClock.now()
}

/// A thread of the program, which posts nothing.
struct Thread0;

impl Post for Thread0 {
    fn now(&self) -> Instant {
        now()
    }

    fn post_work(&mut self, _posted: Posted) -> Result<u64, NotPosted> {
        unreachable!("those who take their events themselves have no jobs")
    }

    fn may_wait(&self) -> bool {
        true
    }
}

fn push(supplier: &mut Supplier, name: &str) {
    supplier.push(Thread0, &event_of(name, 0)).expect("pushed");
}

/// Two threads push and the settings change; whoever waits for sequences has each event once, goes on without anybody else's doing, and ends with the channel.
#[test]
fn no_event_is_overlooked_by_who_waits_for_sequences() {
    const EACH: u64 = 2_000;
    let factory = EventChannelFactory::new();
    let settings =
        QosSettings::new().max_events(2 * EACH as u32).max_batch(7).pacing(Duration::from_micros(50));
    let channel = factory.create("c", &settings, AdminProperties::default()).expect("sound");
    let consumer = channel.consumer("c").connect_pull_sequence().expect("connected");
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        let taker = scope.spawn(|| {
            for events in consumer.iter(5, now) {
                assert!((1..=5).contains(&events.len()));
                taken.fetch_add(events.len() as u64, Ordering::Relaxed);
            }
        });
        for name in ["a", "b"] {
            let mut supplier = channel.supplier(name).connect().expect("connected");
            scope.spawn(move || (0..EACH).for_each(|_| push(&mut supplier, name)));
        }
        for time in 0..50 {
            let pacing = if time % 2 == 0 { Duration::ZERO } else { Duration::from_micros(50) };
            consumer.set_qos(&QosSettings::new().pacing(pacing)).expect("sound");
            thread::yield_now();
        }
        while taken.load(Ordering::Relaxed) < 2 * EACH {
            thread::yield_now();
        }
        assert!(factory.destroy(channel.id()));
        taker.join().expect("it ends");
    });
    assert_eq!((taken.into_inner(), consumer.statistics().delivered), (2 * EACH, 2 * EACH));
}

#[test]
fn one_waits_for_sequences_and_single_events_together() {
    let factory = EventChannelFactory::new();
    let channel = factory.create("c", &QosSettings::new(), AdminProperties::default()).expect("sound");
    let paced = QosSettings::new().max_batch(2).pacing(Duration::from_secs(3_600));
    let sequence = channel.consumer("s").subscribe(types("Test/s")).qos(paced).connect_pull_sequence();
    let sequence = sequence.expect("connected");
    let single = channel.consumer("e").subscribe(types("Test/e")).connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut set = WaitSet::new();
    assert_eq!((set.add_sequence(&sequence), set.add(&single)), (0, 1));
    push(&mut supplier, "s");
    assert!(set.wait(Duration::from_nanos(1), now).is_empty(), "less than a batch");
    push(&mut supplier, "e");
    assert_eq!(set.wait(Duration::from_secs(600), now), [1]);
    push(&mut supplier, "s");
    assert_eq!(set.wait(Duration::from_secs(600), now), [0, 1]);
    // A short pacing goes by on its own.
    let mut events = Vec::new();
    assert_eq!(sequence.try_pull(2, now(), &mut events), 2);
    assert!(single.try_pull(now()).is_some());
    sequence.set_qos(&QosSettings::new().pacing(MS(2))).expect("sound");
    push(&mut supplier, "s");
    assert_eq!(set.wait(Duration::from_secs(600), now), [0]);
    assert_eq!(sequence.pull(2, Duration::ZERO, now, &mut events), 1);
    assert!(factory.destroy(channel.id()));
    assert!(set.wait(Duration::from_secs(600), now).is_empty());
    assert_eq!(sequence.pull(2, Duration::from_secs(600), now, &mut events), 0);
}

#[test]
fn taking_sequences_does_not_allocate() {
    let (mut time, channel) = channel(QosSettings::new().max_events(8).max_batch(8));
    let tick = EventType::new("Test", "Tick");
    let consumer = channel.consumer("c").connect_pull_sequence().expect("connected");
    let mut supplier = channel.supplier("s").offer([tick.clone()]).connect().expect("connected");
    let mut pool = EventPool::new(32, &tick, || crate::Number(0));
    let mut events = Vec::with_capacity(8);
    let mut round = || {
        for _ in 0..6 {
            supplier.push(&mut time, &pool.loan().expect("free").done()).expect("pushed");
        }
        events.clear();
        assert_eq!(consumer.try_pull(8, time.now(), &mut events), 6);
    };
    round();
    let allocations = allocation_counter::measure(|| (0..50).for_each(|_| round()));
    assert_eq!(allocations.count_total, 0);
}
