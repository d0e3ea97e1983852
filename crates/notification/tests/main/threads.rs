//! On threads: suppliers that are threads of the program and operations, consumers in lanes of the run.

use crate::allocation::Nothing;
use crate::{Number, event_of, event_with, number, types};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel as channel_of;
use std::sync::{Arc, Mutex};
use std::thread;
use talea_linux::affinity;
use talea_linux::sched::Policy;
use talea_linux::thread::SpawnError;
use talea_measure::skip;
use talea_model::{Criticality, Strategy, System, TaskBuilder};
use talea_notification::qos::{OrderPolicy, QosSettings};
use talea_notification::{
    AdminProperties, Collect, Condition, EventChannelFactory, EventPool, EventType, Filter, Outcome,
    PullPace, Pushed, Supplied, ThreadPool,
};
use talea_operation::{Declaration, Operations};
use talea_runtime::{Executive, PostingRoom, Prepared, RtMode, RunOptions, StopHandle};
use talea_time::{Duration, Instant, Work};

fn system() -> System {
    let task = |name: &str, period: i64, criticality| {
        TaskBuilder::new(name, Duration::from_millis(period))
            .wcet(Work::from_micros(50))
            .criticality(criticality)
    };
    let builder = System::builder("events").strategy(Strategy::Criticality).node("n", [0]);
    let builder = builder.task(task("control", 2, Criticality::High));
    builder.task(task("report", 20, Criticality::Low)).build().expect("sound")
}

fn prepared(operations: Operations) -> Prepared {
    let posting = PostingRoom { operations: 4, jobs: 128, posters: 3 };
    let options = RunOptions { posting, rt: RtMode::Warn, duration: None, ..RunOptions::default() };
    Executive::prepare(&system(), operations, options).expect("the run can be prepared")
}

/// Ends the run also where the thread that was to do it panics.
struct StopAtEnd(StopHandle);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn lane(name: &str, criticality: Criticality) -> Declaration {
    Declaration::new(name, Duration::from_millis(20)).criticality(criticality)
}

#[test]
fn what_two_threads_push_is_delivered_in_two_lanes_and_all_of_it_is_counted() {
    const EVENTS: u64 = 2_000;
    let prepared = prepared(Operations::synthetic());
    let (stop, dispatcher) = (prepared.stop_handle(), prepared.dispatcher());
    let factory = EventChannelFactory::on(dispatcher.workplace().expect("there is a poster"));
    let settings = QosSettings::new().order(OrderPolicy::Priority).max_events(64);
    let channel = factory.create("events", &settings, AdminProperties::default()).expect("sound");
    let sum = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&sum);
    let serial = channel
        .consumer("serial")
        .lane_from(5, lane("serial.high", Criticality::High))
        .lane_from(i16::MIN, lane("serial.low", Criticality::Low))
        .connect(move |delivery| {
            own.fetch_add(number(delivery.event()), Ordering::Relaxed);
            Outcome::Ok
        })
        .expect("connected");
    let concurrent = channel
        .consumer("concurrent")
        .subscribe(types("Test/Tick"))
        .filter(Filter::of(&[], |event: &talea_notification::Event| Ok(number(event).is_multiple_of(2))))
        .lane(lane("concurrent", Criticality::Low))
        .connect_concurrent(|_, _| Outcome::Ok)
        .expect("connected");
    let mut pushed = [0; 2];
    thread::scope(|scope| {
        let acting = scope.spawn(|| {
            let _stop = StopAtEnd(stop);
            let push = |first: u64| {
                let mut poster = dispatcher.poster().expect("there is room");
                let mut supplier = channel.supplier("s").connect().expect("connected");
                let mut pool = EventPool::new(256, &EventType::new("Test", "Tick"), || Number(0));
                let mut queued = 0;
                for number in 0..EVENTS {
                    let mut loan = loop {
                        match pool.loan() {
                            Some(_) => break pool.loan().expect("it was free"),
                            None => thread::yield_now(),
                        }
                    };
                    *loan.content() = Number(first + number);
                    loan.header().priority = Some((number % 10) as i16);
                    let event = loan.done();
                    let Pushed { queued: now, .. } = supplier.push(&mut poster, &event).expect("pushed");
                    queued += now as u64;
                }
                queued
            };
            let both: Vec<_> = thread::scope(|scope| {
                let threads = [0, 1].map(|first| scope.spawn(move || push(first)));
                threads.into_iter().map(|thread| thread.join().expect("it pushes")).collect()
            });
            while serial.queued() + concurrent.queued() > 0 {
                thread::yield_now();
            }
            both
        });
        let outcome = prepared.run().expect("it runs");
        pushed.copy_from_slice(&acting.join().expect("it pushes"));
        assert!(outcome.mishaps.panics.is_empty());
    });
    let (serial, concurrent) = (serial.statistics(), concurrent.statistics());
    assert_eq!((serial.settled(), concurrent.settled()), (2 * EVENTS, 2 * EVENTS));
    assert_eq!(concurrent.filtered, EVENTS);
    assert!(serial.delivered > 0 && sum.load(Ordering::Relaxed) > 0);
    // What was not queued at all was discarded at once.
    let queued: u64 = pushed.iter().sum();
    assert!(serial.delivered + concurrent.delivered <= queued, "{serial:?} {concurrent:?} {queued}");
}

/// A lane that is served by the threads of two nodes: while one of them is kept by a long delivery the other one delivers all that comes, also what was
/// meant for the first.
#[test]
fn what_waits_for_a_busy_server_is_delivered_by_a_free_one() {
    const EVENTS: u64 = 40;
    let Ok(allowed) = affinity::allowed() else { return };
    let [first, .., second] = allowed[..] else { return skip("this needs 2 CPUs") };
    let system = System::builder("servers").node("first", [first]).node("second", [second]);
    let idle =
        |node: &str| TaskBuilder::new(node, Duration::from_secs(1)).wcet(Work::from_micros(10)).on(node);
    let system = system.task(idle("first")).task(idle("second")).build().expect("sound");
    let posting = PostingRoom { operations: 2, jobs: 64, posters: 2 };
    let options = RunOptions { posting, rt: RtMode::Warn, duration: None, ..RunOptions::default() };
    let prepared =
        Executive::prepare(&system, Operations::synthetic(), options).expect("the run can be prepared");
    let (stop, dispatcher) = (prepared.stop_handle(), prepared.dispatcher());
    let factory = EventChannelFactory::on(dispatcher.workplace().expect("there is a poster"));
    let settings = QosSettings::new().max_events(64);
    let channel = factory.create("events", &settings, AdminProperties::default()).expect("sound");
    let (tell, told) = channel_of();
    let told = Mutex::new(told);
    let work =
        |node: &str| Declaration::new(node, Duration::from_millis(20)).wcet(Work::from_micros(50)).node(node);
    let pool = ThreadPool::server_declared(work("first")).server(work("second"));
    channel.set_thread_pool(pool).expect("a pool");
    let kept = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&kept);
    let consumer = channel.consumer("c").connect_concurrent(move |delivery, _| {
        let number = number(delivery.event());
        if number > 0 {
            tell.send(number).expect("somebody hears");
            return Outcome::Ok;
        }
        own.store(true, Ordering::Release);
        let told = told.lock().expect("nobody else has it");
        let next = || told.recv_timeout(std::time::Duration::from_secs(20));
        let all = (1..EVENTS).all(|number| next() == Ok(number));
        if all { Outcome::Ok } else { Outcome::Fail }
    });
    let consumer = consumer.expect("connected");
    thread::scope(|scope| {
        scope.spawn(|| {
            let _stop = StopAtEnd(stop);
            let mut poster = dispatcher.poster().expect("there is room");
            let mut supplier = channel.supplier("s").connect().expect("connected");
            for number in 0..EVENTS {
                supplier.push(&mut poster, &event_of("Tick", number)).expect("pushed");
                while number == 0 && !kept.load(Ordering::Acquire) {
                    thread::yield_now();
                }
            }
            while consumer.statistics().settled() < EVENTS {
                thread::yield_now();
            }
        });
        let outcome = prepared.run().expect("it runs");
        assert!(outcome.mishaps.panics.is_empty());
    });
    assert_eq!(consumer.statistics().delivered, EVENTS);
}

/// An operation pushes from its own jobs, events that start later are delivered when they start, and a consumer pushes to another one. What is of the
/// lane of the operation is delivered in its midst, unless the consumer does not want that.
#[test]
fn operations_push_and_deliveries_push_again() {
    for is_queued in [false, true] {
        let (delivered, here) = deliveries_in_the_midst(is_queued);
        assert!(delivered >= 40);
        assert_eq!(here > 0, !is_queued, "{here} of {delivered}");
    }
}

/// How many events are delivered, and how many of them in the midst of the job that pushes them.
fn deliveries_in_the_midst(is_queued: bool) -> (u64, u64) {
    let pushes = Arc::new(AtomicBool::new(false));
    let in_push = Arc::clone(&pushes);
    let outside: Arc<Mutex<Option<talea_notification::Supplier>>> = Arc::default();
    let slot = Arc::clone(&outside);
    let operations = Operations::synthetic().with("control", move |job| {
        // Jobs share it with nobody once the run has begun.
        if let Some(supplier) = slot.try_lock().ok().as_mut().and_then(|slot| slot.as_mut()) {
            let start = job.now() + Duration::from_millis(5);
            let event = event_with(job.instance(), |header| {
                header.start = job.instance().is_multiple_of(2).then_some(start);
            });
            in_push.store(true, Ordering::Relaxed);
            supplier.push(job, &event).expect("pushed");
            in_push.store(false, Ordering::Relaxed);
        }
    });
    let prepared = prepared(operations);
    let (stop, dispatcher) = (prepared.stop_handle(), prepared.dispatcher());
    let factory = EventChannelFactory::on(dispatcher.workplace().expect("there is a poster"));
    let create = |name| factory.create(name, &QosSettings::new(), AdminProperties::default()).expect("sound");
    let (first, second) = (create("first"), create("second"));
    let mut relay = second.supplier("relay").connect().expect("connected");
    let alarms = first.consumer("relay").lane(lane("relay", Criticality::High));
    let alarms = if is_queued { alarms.queued() } else { alarms };
    let relayed = EventType::new("Test", "Relayed");
    let mut pool = EventPool::new(64, &relayed, || Number(0));
    let (early, here) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let in_midst = Arc::clone(&here);
    let too_early = Arc::clone(&early);
    let _relay = alarms.connect_with_job(move |delivery, job| {
        let start = delivery.event().header().start;
        in_midst.fetch_add(u64::from(pushes.load(Ordering::Relaxed)), Ordering::Relaxed);
        too_early.fetch_add(u64::from(start.is_some_and(|start| job.now() < start)), Ordering::Relaxed);
        let Some(mut loan) = pool.loan() else { return Outcome::Discard };
        *loan.content() = Number(number(delivery.event()));
        relay.push(job, &loan.done()).expect("pushed");
        Outcome::Ok
    });
    let end = second.consumer("end").subscribe(types("Test/Relayed")).lane(lane("end", Criticality::Low));
    let end = end.connect(|_| Outcome::Ok).expect("connected");
    *outside.lock().expect("whole") = Some(first.supplier("control").connect().expect("connected"));
    thread::scope(|scope| {
        let acting = scope.spawn(|| {
            let _stop = StopAtEnd(stop);
            while end.statistics().delivered < 40 {
                thread::yield_now();
            }
        });
        prepared.run().expect("it runs");
        acting.join().expect("it waits");
    });
    assert_eq!(early.load(Ordering::Relaxed), 0);
    outside.lock().expect("whole").take();
    (end.statistics().delivered, here.load(Ordering::Relaxed))
}

/// A supplier is asked by the threads of the run, in a lane of its channel's pool; it is suspended, resumed, set and ended by other threads meanwhile.
#[test]
fn a_supplier_is_pulled_in_a_lane_while_others_change_it() {
    let factory = EventChannelFactory::new();
    let channel = factory.create("events", &QosSettings::new(), AdminProperties::default()).expect("sound");
    let pool = ThreadPool::client_propagated()
        .lane_from(0, lane("low", Criticality::Low))
        .lane_from(5, lane("high", Criticality::High));
    channel.set_thread_pool(pool).expect("a pool");
    let mut asked = 0;
    let every = Duration::from_micros(200);
    let pace = PullPace::every(every).up_to(3);
    let builder = channel.supplier("p").qos(QosSettings::new().priority(9));
    let began = std::time::Instant::now();
    let supplier = builder.connect_pull(pace, move |_| {
        asked += 1;
        if asked % 3 == 0 { Supplied::Nothing } else { Supplied::Event(event_of("Tick", asked)) }
    });
    let supplier = supplier.expect("connected");
    let consumer = channel.consumer("c").connect(|_| Outcome::Ok).expect("connected");
    let (operations, jobs) = factory.needs();
    assert_eq!(operations, 3, "two lanes of the consumer, and the supplier's work");
    let posting = PostingRoom { operations, jobs, posters: 2 };
    let options = RunOptions { posting, rt: RtMode::Warn, duration: None, ..RunOptions::default() };
    let prepared =
        Executive::prepare(&system(), Operations::synthetic(), options).expect("it can be prepared");
    let (stop, dispatcher) = (prepared.stop_handle(), prepared.dispatcher());
    factory.bind(dispatcher.workplace().expect("there is a poster")).expect("it can be declared");
    let counted = thread::scope(|scope| {
        let acting = scope.spawn(|| {
            let _stop = StopAtEnd(stop);
            let more = |events: u64| {
                let enough = consumer.statistics().delivered + events;
                while consumer.statistics().delivered < enough {
                    thread::yield_now();
                }
            };
            more(20);
            for priority in 0..50 {
                supplier.suspend().expect("active");
                supplier.set_qos(&QosSettings::new().priority(priority)).expect("sound");
                supplier.resume().expect("suspended");
                more(1);
            }
            let counted = supplier.statistics();
            // Each resumption begins a series of turns anew, and its first is at once.
            let at_most = began.elapsed().as_nanos() / u128::from(every.as_nanos().unsigned_abs()) + 1 + 50;
            assert!(
                u128::from(counted.turns + counted.skipped) <= at_most,
                "{counted:?}, at most {at_most} turns"
            );
            assert!(counted.pulled <= 3 * counted.turns, "{counted:?}");
            drop(supplier);
            while consumer.queued() > 0 {
                thread::yield_now();
            }
            counted
        });
        let outcome = prepared.run().expect("it runs");
        assert!(outcome.mishaps.panics.is_empty());
        acting.join().expect("it ends")
    });
    assert!(counted.pulled >= 70 && counted.refused == 0, "{counted:?}");
    assert_eq!(channel.statistics(Instant::ZERO).pushed, consumer.statistics().settled());
}

/// A supplier that is preempted in the midst of pushing does not keep an urgent one of the same processor, which would wait for ever.
#[test]
fn an_urgent_supplier_does_not_wait_for_one_that_it_preempts() {
    const TIMES: usize = 2_000;
    let factory = EventChannelFactory::new();
    let channel = factory.create("c", &QosSettings::new(), AdminProperties::default()).expect("sound");
    let of = |name: &str| Condition::of_types(types(name));
    let both = Condition::all(Collect::Latest, [of("Test/a"), of("Test/b")]);
    let pulled = channel.consumer("both").when(both).connect_pull().expect("connected");
    let is_over = Arc::new(AtomicBool::new(false));
    let pushing = |name: &'static str, priority: u8, is_over: Arc<AtomicBool>| {
        let mut supplier = channel.supplier(name).connect().expect("connected");
        let body = move || {
            for time in 0.. {
                if name == "b" && time == TIMES {
                    is_over.store(true, Ordering::Relaxed);
                }
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                supplier.push(Nothing(Instant::ZERO), &event_of(name, 0)).expect("pushed");
                if name == "b" {
                    thread::sleep(std::time::Duration::from_micros(20));
                }
            }
        };
        talea_linux::thread::spawn(name, Policy::Fifo(priority), &[0], 1 << 20, body)
    };
    let threads = match pushing("a", 5, Arc::clone(&is_over)) {
        Err(SpawnError::Policy { source, .. }) => return talea_measure::skip(source),
        started => [started.expect("it starts"), pushing("b", 6, is_over).expect("it starts")],
    };
    threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    assert!(pulled.try_pull(Instant::ZERO).is_some(), "both came");
}
