//! A limit of what waits in all of a channel: which event goes.

use crate::allocation::Nothing;
use crate::{MS, Number, channel, connected, event, event_of, event_with, number, types};
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use talea_linux::clock::MonotonicClock;
use talea_notification::qos::{DiscardPolicy, OrderPolicy, QosSettings};
use talea_notification::{
    AdminProperties, Event, EventChannel, EventType, Header, Outcome, PullConsumer, Pushed,
};
use talea_operation::{NotPosted, Post, Posted};
use talea_time::{Clock, Duration, Instant};

fn limit(channel: &EventChannel, most: usize) {
    channel.set_admin_properties(AdminProperties { max_queue_length: most, ..AdminProperties::default() });
}

/// A consumer that takes its events of these types itself.
fn pulled(channel: &EventChannel, of: &str, settings: QosSettings) -> PullConsumer {
    channel.consumer(of).subscribe(types(of)).qos(settings).connect_pull().expect("connected")
}

fn take_all(consumer: &PullConsumer, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| consumer.try_pull(now)).map(|delivery| number(delivery.event())).collect()
}

/// An urgent event to a consumer for which nothing waits goes before what waits for another one and is not urgent, whatever the policy of that one says.
#[test]
fn what_is_least_urgent_in_all_of_the_channel_goes() {
    let (mut time, channel) = channel(QosSettings::new().discard(DiscardPolicy::Priority));
    let keeps = QosSettings::new().discard(DiscardPolicy::Lifo);
    let slow = pulled(&channel, "Test/Other", keeps);
    let quick = pulled(&channel, "Test/Tick", QosSettings::new());
    let mut supplier = channel.supplier("s").connect().expect("connected");
    limit(&channel, 3);
    for number in 0..3 {
        supplier.push(&mut time, &event_of("Other", number)).expect("pushed");
    }
    let urgent = event_with(3, |header| header.priority = Some(9));
    assert_eq!(supplier.push(&mut time, &urgent).expect("pushed").queued, 1);
    assert_eq!((take_all(&slow, time.now()), take_all(&quick, time.now())), (vec![1, 2], vec![3]));
    assert_eq!((slow.statistics().discarded, quick.statistics().discarded), (1, 0));
}

/// Who waits for room in the channel is woken when an event of another consumer is taken.
#[test]
fn who_waits_for_room_is_woken_by_whoever_makes_some() {
    struct Waits;
    impl Post for Waits {
        fn now(&self) -> Instant {
            MonotonicClock.now()
        }
        fn post_work(&mut self, _posted: Posted) -> Result<u64, NotPosted> {
            Ok(0)
        }
        fn may_wait(&self) -> bool {
            true
        }
    }

    let (time, channel) = channel(QosSettings::new());
    time.use_real_clock();
    limit(&channel, 1);
    let full = pulled(&channel, "Test/Other", QosSettings::new());
    let waited = QosSettings::new().blocking(Duration::from_secs(600));
    let empty = pulled(&channel, "Test/Tick", waited);
    let mut supplier = channel.supplier("s").connect().expect("connected");
    supplier.push(Waits, &event_of("Other", 0)).expect("pushed");
    thread::scope(|scope| {
        let pushing = scope.spawn(move || supplier.push(Waits, &event(1)));
        while empty.statistics().blocked == 0 {
            thread::yield_now();
        }
        assert_eq!(take_all(&full, MonotonicClock.now()), [0]);
        assert_eq!(pushing.join().expect("it pushes").map(|pushed| pushed.queued), Ok(1));
    });
    assert_eq!((take_all(&empty, MonotonicClock.now()), full.statistics().discarded), (vec![1], 0));
}

/// A job of the one whose event went finds none, and what came has its own.
#[test]
fn deliveries_go_on_without_what_went() {
    let (mut time, channel) = channel(QosSettings::new().discard(DiscardPolicy::Priority));
    limit(&channel, 2);
    let (low, of_low) = connected(channel.consumer("low").subscribe(types("Test/Other")));
    let (high, of_high) = connected(channel.consumer("high").subscribe(types("Test/Tick")));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in 0..2 {
        supplier.push(&mut time, &event_of("Other", number)).expect("pushed");
    }
    for number in 0..3 {
        let urgent = event_with(number, |header| header.priority = Some(1));
        let pushed = supplier.push(&mut time, &urgent).expect("pushed");
        assert_eq!(pushed.discarded, usize::from(number == 2), "the third is no more than the two before");
    }
    time.run();
    assert_eq!((of_low.take(), of_high.take()), (vec![], vec![0, 1]));
    assert_eq!((low.statistics().discarded, high.statistics().discarded), (2, 1));
    assert_eq!((low.queued(), high.queued()), (0, 0));
    supplier.push(&mut time, &event_of("Other", 7)).expect("pushed");
    time.run();
    assert_eq!(of_low.take(), [7]);
}

/// What has expired makes room before anything goes, whoever it was for; what came before there was a limit does not count.
#[test]
fn what_has_expired_makes_room_first() {
    let (mut time, channel) = channel(QosSettings::new());
    let one = pulled(&channel, "Test/Other", QosSettings::new());
    let two = pulled(&channel, "Test/Tick", QosSettings::new());
    let mut supplier = channel.supplier("s").connect().expect("connected");
    supplier.push(&mut time, &event(0)).expect("pushed");
    limit(&channel, 2);
    supplier.push(&mut time, &event(1)).expect("pushed");
    let mut short = Header::new(EventType::new("Test", "Other"));
    short.timeout = Some(MS(1));
    let short = Event::new(short, Number(2));
    supplier.push(&mut time, &short).expect("pushed");
    time.advance(MS(2));
    supplier.push(&mut time, &event(3)).expect("pushed");
    assert_eq!((one.statistics().expired, two.statistics().discarded), (1, 0));
    supplier.push(&mut time, &event(4)).expect("pushed");
    assert_eq!(take_all(&two, time.now()), [0, 3, 4]);
}

#[derive(Clone, Debug)]
enum Step {
    Push { to: usize, priority: i16, timeout: i64 },
    Take(usize),
    Limit(usize),
    Policy(DiscardPolicy),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..4usize, -1i16..3, 1i64..5)
            .prop_map(|(to, priority, timeout)| Step::Push { to, priority, timeout }),
        2 => (0..3usize).prop_map(Step::Take),
        1 => (0..6usize).prop_map(Step::Limit),
        1 => select(DiscardPolicy::ALL).prop_map(Step::Policy),
    ]
}

/// An event that waits, as the judge sees it.
#[derive(Clone, Debug)]
struct Waiting {
    consumer: usize,
    number: u64,
    priority: i16,
    timeout: i64,
    is_counted: bool,
}

/// The one of these, by their places, that goes by a policy if `coming` is the one that comes; the definition, word by word.
fn goes(list: &[Waiting], candidates: &[usize], coming: usize, policy: DiscardPolicy) -> usize {
    let least_of = |key: &dyn Fn(&Waiting) -> i64| {
        let least = candidates.iter().map(|place| key(&list[*place])).min().expect("some");
        match candidates.contains(&coming) && key(&list[coming]) == least {
            true => coming,
            false => *candidates.iter().find(|place| key(&list[**place]) == least).expect("some"),
        }
    };
    match policy {
        DiscardPolicy::Any | DiscardPolicy::Fifo => candidates[0],
        DiscardPolicy::Lifo => candidates[candidates.len() - 1],
        DiscardPolicy::Priority => least_of(&|one| one.priority.into()),
        DiscardPolicy::Deadline => least_of(&|one| one.timeout),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_event_that_goes_is_chosen_over_all_of_the_channel(
        of_channel in select(DiscardPolicy::ALL),
        of_consumers in prop::collection::vec((select(DiscardPolicy::ALL), select(OrderPolicy::ALL), 1u32..4), 3),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        const KINDS: [&str; 3] = ["A", "B", "C"];
        let (mut time, channel) = channel(QosSettings::new().discard(of_channel));
        let consumers: Vec<PullConsumer> = of_consumers.iter().zip(KINDS).map(|((discard, order, most), kind)| {
            let settings = QosSettings::new().discard(*discard).order(*order).max_events(*most);
            let builder = channel.consumer(kind).subscribe(types(&format!("Test/{kind} Test/All")));
            builder.qos(settings).connect_pull().expect("connected")
        }).collect();
        let mut supplier = channel.supplier("s").connect().expect("connected");
        let (mut list, mut most, mut policy, mut next) = (Vec::<Waiting>::new(), 0, of_channel, 0u64);
        for step in steps {
            match step {
                Step::Limit(limited) => {
                    limit(&channel, limited);
                    most = limited;
                }
                Step::Policy(other) => {
                    channel.set_qos(&QosSettings::new().discard(other)).expect("sound");
                    policy = other;
                }
                Step::Take(consumer) => {
                    let key = |one: &Waiting| match of_consumers[consumer].1 {
                        OrderPolicy::Any | OrderPolicy::Fifo => (0, one.number),
                        OrderPolicy::Priority => (-i64::from(one.priority), one.number),
                        OrderPolicy::Deadline => (one.timeout, one.number),
                    };
                    let expected = list.iter().filter(|one| one.consumer == consumer).min_by_key(|one| key(one));
                    let expected = expected.map(|one| one.number);
                    let taken = consumers[consumer].try_pull(time.now()).map(|one| number(one.event()));
                    prop_assert_eq!(taken, expected);
                    list.retain(|one| one.consumer != consumer || Some(one.number) != expected);
                }
                Step::Push { to, priority, timeout } => {
                    let mut header = Header::new(EventType::new(
                        "Test",
                        KINDS.get(to).unwrap_or(&"All"),
                    ));
                    (header.priority, header.timeout) = (Some(priority), Some(MS(timeout)));
                    let event = Event::new(header, Number(next));
                    let Pushed { discarded, .. } = supplier.push(&mut time, &event).expect("pushed");
                    let mut expected = 0;
                    for consumer in (0..3).filter(|consumer| to == 3 || to == *consumer) {
                        let is_counted = most > 0;
                        let (own, own_most) = (of_consumers[consumer].0, of_consumers[consumer].2 as usize);
                        list.push(Waiting { consumer, number: next, priority, timeout, is_counted });
                        let of = |is_one: &dyn Fn(&Waiting) -> bool| -> Vec<usize> {
                            (0..list.len()).filter(|place| is_one(&list[*place])).collect()
                        };
                        let (own_places, counted) = (of(&|one| one.consumer == consumer), of(&|one| one.is_counted));
                        let coming = list.len() - 1;
                        let gone: Vec<usize> = if own_places.len() > own_most {
                            vec![goes(&list, &own_places, coming, own)]
                        } else if is_counted {
                            let (mut left, mut gone) = (counted, Vec::new());
                            while left.len() > most && gone.len() < 2 {
                                gone.push(goes(&list, &left, coming, policy));
                                left.retain(|place| !gone.contains(place));
                            }
                            gone
                        } else {
                            Vec::new()
                        };
                        expected += usize::from(gone.contains(&coming));
                        let mut place = 0;
                        list.retain(|_| {
                            place += 1;
                            !gone.contains(&(place - 1))
                        });
                    }
                    prop_assert_eq!(discarded, expected);
                    next += 1;
                }
            }
            for (place, consumer) in consumers.iter().enumerate() {
                let queued = list.iter().filter(|one| one.consumer == place).count();
                prop_assert_eq!(consumer.queued(), queued, "{:?}", list);
            }
        }
        for (place, consumer) in consumers.iter().enumerate() {
            let mut left = take_all(consumer, time.now());
            left.sort_unstable();
            let expected: Vec<u64> = list.iter().filter(|one| one.consumer == place).map(|one| one.number).collect();
            prop_assert_eq!(left, expected);
        }
    }
}

/// Whatever several threads push and take at once, each event is settled once, and who pushes afterwards finds the limit kept.
#[test]
fn threads_that_push_at_once_keep_to_the_limit() {
    const EVENTS: u64 = 3_000;
    const THREADS: u64 = 3;
    const MOST: usize = 8;
    let (_time, channel) = channel(QosSettings::new().discard(DiscardPolicy::Priority).max_events(64));
    limit(&channel, MOST);
    let called = channel.consumer("called").connect(|_| Outcome::Ok).expect("connected");
    let taken = pulled(&channel, "*", QosSettings::new());
    let is_over = AtomicBool::new(false);
    let push = |numbers: std::ops::Range<u64>| {
        let mut supplier = channel.supplier("s").connect().expect("connected");
        for number in numbers {
            let event = event_with(number, |header| header.priority = Some((number % 5) as i16));
            supplier.push(Nothing(Instant::ZERO), &event).expect("pushed");
        }
    };
    thread::scope(|scope| {
        let pushing: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| push(0..EVENTS))).collect();
        let taking = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                _ = taken.try_pull(Instant::ZERO);
                thread::yield_now();
            }
        });
        pushing.into_iter().for_each(|thread| thread.join().expect("it pushes"));
        is_over.store(true, Ordering::Relaxed);
        taking.join().expect("it takes");
    });
    // Of those that are too many, each push takes out one.
    push(0..4 * 64);
    assert_eq!(called.queued() + taken.queued(), MOST);
    let pushed = EVENTS * THREADS + 4 * 64;
    for settled in [(called.statistics(), called.queued()), (taken.statistics(), taken.queued())] {
        assert_eq!(settled.0.settled() + settled.1 as u64, pushed);
    }
}
