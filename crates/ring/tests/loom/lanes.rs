//! The inbox and the bell under loom.
//!
//! Small on purpose: the number of interleavings grows exponentially with threads and steps. Models of two threads have no
//! bound on preemptions (unless `LOOM_MAX_PREEMPTIONS` sets one); where three threads take part, interleavings with more
//! than three preemptions are left out. Of the C11 memory model loom leaves out loads that see what is stored later in
//! the order of their own thread, and sequentially consistent accesses, fences aside, count as acquire and release. So a
//! model that passes has no fault among what was explored, and is no proof.
//!
//! The consumer is mostly a spawned thread: then loom begins with the producer and goes back for the interleavings in
//! which the consumer looks earlier. The other way round it misses some in which the consumer looks later.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;
use talea_ring::bell::{Bell, Ring, Waited};
use talea_ring::inbox::{Links, Receiver, Sender};

/// One lane as its producers and its thread see it.
struct Lane {
    sender: Sender,
    bell: Bell,
    /// What each number stands for, written and read relaxed: only the inbox orders it.
    meanings: Vec<AtomicU32>,
}

impl Lane {
    fn new(numbers: usize) -> (Arc<Self>, Receiver) {
        let (sender, receiver) = Links::new(numbers).inbox();
        let meanings = (0..numbers).map(|_| AtomicU32::new(0)).collect();
        (Arc::new(Lane { sender, bell: Bell::new(), meanings }), receiver)
    }

    fn push(&self, number: u32) {
        self.meanings[number as usize].store(100 + number, Ordering::Relaxed);
        self.sender.push(number).expect("no number is sent twice");
    }

    fn send(&self, number: u32) {
        self.push(number);
        self.bell.ring();
    }

    fn pop(&self, receiver: &mut Receiver) -> Option<u32> {
        let number = receiver.pop()?;
        let meaning = self.meanings[number as usize].load(Ordering::Relaxed);
        assert_eq!(meaning, 100 + number, "a number comes with its meaning");
        Some(number)
    }

    /// The loop of a lane until it has `number`: it sleeps only on the bell, so a lost wake-up is a
    /// deadlock, which loom reports. Returns all it received.
    fn receive_until(&self, receiver: &mut Receiver, number: u32) -> Vec<u32> {
        let mut received = Vec::new();
        while !received.contains(&number) {
            match self.pop(receiver) {
                Some(number) => received.push(number),
                None => {
                    self.bell.wait_unless(|| receiver.has_number());
                }
            }
        }
        received
    }
}

fn with_three_threads(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn a_number_crosses_with_its_meaning() {
    loom::model(|| {
        let (lane, mut receiver) = Lane::new(1);
        let consumers = Arc::clone(&lane);
        let consumer = thread::spawn(move || (consumers.pop(&mut receiver), receiver));
        lane.push(0);
        let (early, mut receiver) = consumer.join().unwrap();
        assert_eq!(early.or_else(|| lane.pop(&mut receiver)), Some(0));
    });
}

#[test]
fn one_producer_wakes_the_sleeper_for_each_number() {
    loom::model(|| {
        let (lane, mut receiver) = Lane::new(2);
        let consumers = Arc::clone(&lane);
        let consumer = thread::spawn(move || {
            assert_eq!(consumers.receive_until(&mut receiver, 0), [1, 0]);
            assert_eq!(receiver.pop(), None, "nothing arrives twice");
        });
        [1, 0].into_iter().for_each(|number| lane.send(number));
        consumer.join().unwrap();
    });
}

#[test]
fn an_instant_that_comes_first_leaves_no_ring_unheard() {
    loom::model(|| {
        let (lane, mut receiver) = Lane::new(1);
        let consumers = Arc::clone(&lane);
        let consumer = thread::spawn(move || {
            // In the model the instant comes as soon as the thread would sleep.
            let waited = consumers.bell.wait_until(std::time::Duration::MAX, || receiver.has_number());
            assert!(matches!(waited, Waited::Due | Waited::HadWork | Waited::Rung));
            assert_eq!(consumers.receive_until(&mut receiver, 0), [0]);
        });
        lane.send(0);
        consumer.join().unwrap();
    });
}

#[test]
fn two_producers_wake_the_sleeper_for_both_numbers() {
    with_three_threads(|| {
        let (lane, mut receiver) = Lane::new(2);
        let (consumers, others) = (Arc::clone(&lane), Arc::clone(&lane));
        let consumer = thread::spawn(move || {
            let mut received = consumers.receive_until(&mut receiver, 0);
            if !received.contains(&1) {
                received.extend(consumers.receive_until(&mut receiver, 1));
            }
            received.sort_unstable();
            assert_eq!(received, [0, 1]);
            assert_eq!(receiver.pop(), None, "nothing arrives twice");
        });
        let other = thread::spawn(move || others.send(1));
        lane.send(0);
        other.join().unwrap();
        consumer.join().unwrap();
    });
}

#[test]
fn nothing_hides_behind_a_producer_that_is_preempted_anywhere() {
    // Wherever the other thread is in its push, what this one has pushed comes out next.
    loom::model(|| {
        let (lane, mut receiver) = Lane::new(2);
        let others = Arc::clone(&lane);
        let other = thread::spawn(move || others.push(0));
        lane.push(1);
        let mut received: Vec<u32> = std::iter::from_fn(|| lane.pop(&mut receiver)).collect();
        assert!(received.contains(&1));
        other.join().unwrap();
        received.extend(std::iter::from_fn(|| lane.pop(&mut receiver)));
        received.sort_unstable();
        assert_eq!(received, [0, 1]);
    });
}

#[test]
fn a_producer_that_never_rings_leaves_the_waking_to_the_others() {
    // The low producer is preempted for good between its push and its ring or, where the lane sleeps, in
    // the ring before the system call.
    with_three_threads(|| {
        let (lane, mut receiver) = Lane::new(2);
        let (consumers, low) = (Arc::clone(&lane), Arc::clone(&lane));
        let consumer = thread::spawn(move || consumers.receive_until(&mut receiver, 1));
        let low = thread::spawn(move || {
            low.push(0);
            low.bell.ring_and_stall();
        });
        lane.send(1);
        low.join().unwrap();
        assert!(consumer.join().unwrap().contains(&1));
    });
}

#[test]
fn a_number_is_taken_again_once_it_has_been_popped() {
    // An accepted push happens after the pop before it, and after what the consumer had done by then.
    with_three_threads(|| {
        let (sender, mut receiver) = Links::new(1).inbox();
        let done = Arc::new(AtomicU32::new(0));
        let consumers = Arc::clone(&done);
        let consumer = thread::spawn(move || {
            for round in 1..=2 {
                while !receiver.has_number() {
                    thread::yield_now();
                }
                consumers.store(round, Ordering::Relaxed);
                assert_eq!(receiver.pop(), Some(0));
            }
            assert_eq!(receiver.pop(), None);
        });
        for round in 0..2 {
            while sender.push(0).is_err() {
                thread::yield_now();
            }
            assert!(done.load(Ordering::Relaxed) >= round);
        }
        consumer.join().unwrap();
    });
}

#[test]
fn a_number_goes_from_one_inbox_to_another_while_others_are_pushed() {
    loom::model(|| {
        let links = Links::new(2);
        let ((first, mut from_first), (second, mut from_second)) = (links.inbox(), links.inbox());
        let others = first.clone();
        let other = thread::spawn(move || others.push(1).unwrap());
        first.push(0).unwrap();
        let mut received: Vec<u32> = std::iter::from_fn(|| from_first.pop()).collect();
        assert!(received.contains(&0));
        second.push(0).unwrap();
        other.join().unwrap();
        received.extend(from_first.pop());
        received.sort_unstable();
        assert_eq!(received, [0, 1]);
        assert_eq!((from_second.pop(), from_second.pop()), (Some(0), None));
    });
}

/// A bell and something to be told without an inbox.
type Doorstep = (Bell, AtomicBool);

#[test]
fn a_ring_publishes_what_was_done_before_it() {
    // What the waking producer wrote relaxed is visible to the woken consumer at once.
    loom::model(|| {
        let doorstep: Arc<Doorstep> = Arc::default();
        let consumers = Arc::clone(&doorstep);
        let consumer = thread::spawn(move || {
            let (bell, stop) = &*consumers;
            bell.wait_unless(|| stop.load(Ordering::Relaxed));
            assert!(stop.load(Ordering::Relaxed));
        });
        doorstep.1.store(true, Ordering::Relaxed);
        doorstep.0.ring();
        // The bell may not have been waited on yet; then the second look finds the request.
        consumer.join().unwrap();
    });
}

#[test]
fn a_ring_that_stalls_leaves_the_call_to_the_next() {
    // The stop request must reach a sleeper that another thread was about to wake.
    with_three_threads(|| {
        let doorstep: Arc<Doorstep> = Arc::default();
        let (consumers, stalled) = (Arc::clone(&doorstep), Arc::clone(&doorstep));
        let consumer = thread::spawn(move || {
            let (bell, stop) = &*consumers;
            while !stop.load(Ordering::Relaxed) {
                bell.wait_unless(|| stop.load(Ordering::Relaxed));
            }
        });
        let stalled = thread::spawn(move || stalled.0.ring_and_stall());
        doorstep.1.store(true, Ordering::Relaxed);
        doorstep.0.ring();
        stalled.join().unwrap();
        consumer.join().unwrap();
    });
}

#[test]
fn a_sleeper_is_woken_by_a_call_and_one_that_found_work_needs_none() {
    with_three_threads(|| {
        let doorstep: Arc<Doorstep> = Arc::default();
        let (consumers, others) = (Arc::clone(&doorstep), Arc::clone(&doorstep));
        let consumer = thread::spawn(move || consumers.0.wait_unless(|| consumers.1.load(Ordering::Relaxed)));
        let ring = |doorstep: &Doorstep| {
            doorstep.1.store(true, Ordering::Relaxed);
            doorstep.0.ring()
        };
        let other = thread::spawn(move || ring(&others));
        let rings = [ring(&doorstep), other.join().unwrap()];
        let waited = consumer.join().unwrap();
        assert!(waited == Waited::HadWork || rings.contains(&Ring::Woke));
        assert_eq!(doorstep.0.ring(), Ring::Awake, "the consumer is awake after all that");
    });
}
