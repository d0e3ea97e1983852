//! Consumers that take their events themselves: one after the other, several at once, and as a stream.

use crate::{channel, event, event_of, event_with, number, types};
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use talea_linux::clock::MonotonicClock;
use talea_notification::qos::QosSettings;
use talea_notification::{
    AdminProperties, Delivery, EventChannel, EventChannelFactory, EventStream, PullConsumer, Supplier,
    WaitSet,
};
use talea_operation::{NotPosted, Post, Posted};
use talea_time::{Clock, Duration, Instant};

const LONG: Duration = Duration::from_secs(600);

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

fn unbound() -> (EventChannelFactory, EventChannel) {
    let factory = EventChannelFactory::new();
    let channel = factory.create("c", &QosSettings::new(), AdminProperties::default()).expect("sound");
    (factory, channel)
}

fn pulls(channel: &EventChannel, name: &str) -> PullConsumer {
    let builder = channel.consumer(name).subscribe(types(&format!("Test/{name}")));
    builder.connect_pull().expect("connected")
}

fn push(supplier: &mut Supplier, name: &str, number: u64) {
    supplier.push(Thread0, &event_of(name, number)).expect("pushed");
}

#[test]
fn events_that_are_there_are_taken_one_after_the_other() {
    let (mut time, channel) = channel(QosSettings::new());
    let consumer = channel.consumer("c").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in 0..3 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    let taken: Vec<u64> = consumer.try_iter(|| time.now()).map(|one| number(one.event())).collect();
    assert_eq!((taken, consumer.queued()), (vec![0, 1, 2], 0));
}

#[test]
fn who_takes_all_events_waits_for_each_until_the_channel_is_destroyed() {
    let (factory, channel) = unbound();
    let consumer = channel.consumer("c").connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    thread::scope(|scope| {
        let taker = scope.spawn(|| consumer.iter(now).map(|one| number(one.event())).sum::<u64>());
        for number in 1..=10 {
            push(&mut supplier, "Tick", number);
        }
        // What waits when a channel is destroyed is discarded.
        while consumer.queued() > 0 {
            thread::yield_now();
        }
        assert!(factory.destroy(channel.id()));
        assert_eq!(taker.join().expect("it ends"), 55);
    });
}

#[test]
fn one_waits_for_events_of_several_and_is_told_of_which() {
    let (factory, channel) = unbound();
    let (a, b) = (pulls(&channel, "a"), pulls(&channel, "b"));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let mut set = WaitSet::new();
    assert!(set.wait(LONG, now).is_empty(), "for nobody one cannot wait");
    assert_eq!((set.add(&a), set.add(&b)), (0, 1));
    assert!(set.wait(Duration::from_nanos(1), now).is_empty());
    push(&mut supplier, "b", 1);
    assert_eq!(set.wait(LONG, now), [1]);
    push(&mut supplier, "a", 2);
    assert_eq!(set.wait(LONG, now), [0, 1], "what is not taken is there again");
    assert!(a.try_pull(now()).is_some() && b.try_pull(now()).is_some());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| set.wait(LONG, now).to_vec());
        push(&mut supplier, "a", 3);
        assert_eq!(waiter.join().expect("it ends"), [0]);
    });
    assert!(a.try_pull(now()).is_some());
    // An event that starts later comes by itself.
    let start = now() + Duration::from_millis(2);
    let later = event_with(4, |header| {
        header.start = Some(start);
        header.event_type = talea_notification::EventType::new("Test", "b");
    });
    supplier.push(Thread0, &later).expect("pushed");
    assert_eq!(set.wait(LONG, now), [1]);
    assert!(now() >= start);
    // A consumer that is suspended has nothing; who is gone is not waited for.
    b.suspend().expect("active");
    assert!(set.wait(Duration::from_nanos(1), now).is_empty());
    assert!(factory.destroy(channel.id()));
    assert!(set.wait(LONG, now).is_empty());
}

/// Two threads push, and nothing is overlooked: whoever waits goes on without anybody else's doing until all have come.
#[test]
fn no_event_is_overlooked_by_who_waits_for_several() {
    const EACH: usize = 3_000;
    let (_factory, channel) = unbound();
    let settings = QosSettings::new().max_events(EACH as u32);
    let pulls = |name: &str| {
        let builder = channel.consumer(name).subscribe(types(&format!("Test/{name}"))).qos(settings.clone());
        builder.connect_pull().expect("connected")
    };
    let consumers = ["a", "b"].map(pulls);
    let mut set = WaitSet::new();
    consumers.iter().for_each(|consumer| _ = set.add(consumer));
    thread::scope(|scope| {
        for name in ["a", "b"] {
            let mut supplier = channel.supplier(name).connect().expect("connected");
            scope.spawn(move || (0..EACH).for_each(|number| push(&mut supplier, name, number as u64)));
        }
        let mut taken = [0; 2];
        while taken != [EACH; 2] {
            let ready = set.wait(LONG, now);
            assert!(!ready.is_empty(), "{taken:?} have come");
            ready.iter().for_each(|place| taken[*place] += consumers[*place].try_iter(now).count());
        }
    });
}

/// Streams come and go while others wait.
#[test]
fn streams_that_come_while_others_wait_are_seen() {
    let (_factory, channel) = unbound();
    let mut supplier = channel.supplier("s").connect().expect("connected");
    thread::scope(|scope| {
        for round in 0..200 {
            let mut stream = pulls(&channel, "a").into_stream().expect("a thread");
            let waiting = scope.spawn(move || next(&mut stream).map(|one| number(one.event())));
            push(&mut supplier, "a", round);
            assert_eq!(waiting.join().expect("it ends"), Some(round));
        }
    });
}

/// Has the thread go on.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn next(stream: &mut EventStream) -> Option<Delivery> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match Pin::new(&mut *stream).poll_next(&mut context) {
            Poll::Ready(next) => return next,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn streams_wake_their_tasks_and_end_with_the_channel() {
    let (factory, channel) = unbound();
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let [mut a, mut b] = ["a", "b"].map(|name| pulls(&channel, name).into_stream().expect("a thread"));
    thread::scope(|scope| {
        let sum = |stream: &mut EventStream| -> u64 {
            std::iter::from_fn(|| next(stream)).map(|one| number(one.event())).sum()
        };
        let of_b = scope.spawn(move || sum(&mut b));
        let of_a: Vec<u64> = (0..50)
            .map(|round| {
                push(&mut supplier, "a", round);
                push(&mut supplier, "b", 1);
                number(next(&mut a).expect("it comes").event())
            })
            .collect();
        assert_eq!(of_a, (0..50).collect::<Vec<_>>());
        // One that starts later wakes by itself.
        let later = event_with(7, |header| {
            header.start = Some(now() + Duration::from_millis(2));
            header.event_type = talea_notification::EventType::new("Test", "a");
        });
        supplier.push(Thread0, &later).expect("pushed");
        assert_eq!(next(&mut a).map(|one| number(one.event())), Some(7));
        while channel.statistics(now()).queued > 0 {
            thread::yield_now();
        }
        assert!(factory.destroy(channel.id()));
        assert!(next(&mut a).is_none());
        assert_eq!(of_b.join().expect("it ends"), 50);
    });
    drop(a);
    // After the last one there may be another first one.
    let (_factory, channel) = unbound();
    let mut stream = pulls(&channel, "a").into_stream().expect("a thread");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    push(&mut supplier, "a", 3);
    assert_eq!(next(&mut stream).map(|one| number(one.event())), Some(3));
}
