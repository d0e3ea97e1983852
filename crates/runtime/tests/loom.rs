//! The inbox and the bell under loom: every interleaving that the memory model allows.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p talea-runtime --release --test loom`
//!
//! Small on purpose: the number of interleavings grows exponentially with threads and steps.

#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use talea_runtime::bell::{Bell, Ring, Waited};
use talea_runtime::inbox::{Full, Receiver, Sender, channel};

/// The consumer's loop of a lane until it has `count` values: it sleeps only on the bell, so a lost
/// wake-up is a deadlock, which loom reports.
fn receive(receiver: &mut Receiver<u32>, bell: &Bell, count: usize) -> Vec<u32> {
    let mut received = Vec::new();
    while received.len() < count {
        match receiver.pop() {
            Some(value) => received.push(value),
            None => {
                bell.wait_unless(|| receiver.has_value());
            }
        }
    }
    assert_eq!(receiver.pop(), None, "nothing arrives twice");
    received
}

fn send(sender: &Sender<u32>, bell: &Bell, value: u32) {
    sender.push(value).expect("there is room");
    bell.ring();
}

#[test]
fn a_value_crosses_with_its_contents() {
    loom::model(|| {
        let (sender, mut receiver) = channel(1);
        let producer = thread::spawn(move || sender.push(7).unwrap());
        if let Some(value) = receiver.pop() {
            assert_eq!(value, 7);
        }
        producer.join().unwrap();
    });
}

#[test]
fn one_producer_wakes_the_sleeper_for_each_value() {
    loom::model(|| {
        let (sender, mut receiver) = channel(2);
        let bell = Arc::new(Bell::new());
        let producers_bell = Arc::clone(&bell);
        let producer = thread::spawn(move || {
            send(&sender, &producers_bell, 1);
            send(&sender, &producers_bell, 2);
        });
        assert_eq!(receive(&mut receiver, &bell, 2), [1, 2]);
        producer.join().unwrap();
    });
}

#[test]
fn two_producers_wake_the_sleeper_for_both_values() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (sender, mut receiver) = channel(2);
        let bell = Arc::new(Bell::new());
        let producers = [1, 2].map(|value| {
            let (sender, bell) = (sender.clone(), Arc::clone(&bell));
            thread::spawn(move || send(&sender, &bell, value))
        });
        let mut received = receive(&mut receiver, &bell, 2);
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
        for producer in producers {
            producer.join().unwrap();
        }
    });
}

#[test]
fn two_producers_claim_different_cells() {
    loom::model(|| {
        let (sender, mut receiver) = channel(2);
        let other = sender.clone();
        let producer = thread::spawn(move || other.push(1).unwrap());
        sender.push(2).unwrap();
        producer.join().unwrap();
        let mut received = [receiver.pop().unwrap(), receiver.pop().unwrap()];
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
        assert_eq!(receiver.pop(), None);
    });
}

#[test]
fn a_full_inbox_hands_the_value_back_and_keeps_the_order() {
    loom::model(|| {
        let (sender, mut receiver) = channel(1);
        sender.push(1).unwrap();
        let producer = thread::spawn(move || match sender.push(2) {
            Ok(()) => 2,
            Err(Full(value)) => {
                assert_eq!(value, 2);
                1
            }
        });
        let mut received: Vec<u32> = receiver.pop().into_iter().collect();
        let accepted = producer.join().unwrap();
        received.extend(std::iter::from_fn(|| receiver.pop()));
        assert_eq!(received, if accepted == 2 { vec![1, 2] } else { vec![1] });
    });
}

#[test]
fn a_cell_is_written_again_only_after_it_was_read() {
    // Two laps through one cell, the producer spinning on a full ring: loom's cell reports a write
    // that does not happen after the read of the lap before.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (sender, mut receiver) = channel(1);
        let producer = thread::spawn(move || {
            for value in [1, 2] {
                while sender.push(value).is_err() {
                    thread::yield_now();
                }
            }
        });
        let mut received = Vec::new();
        while received.len() < 2 {
            match receiver.pop() {
                Some(value) => received.push(value),
                None => thread::yield_now(),
            }
        }
        assert_eq!(received, [1, 2]);
        producer.join().unwrap();
    });
}

#[test]
fn a_ring_publishes_what_was_done_before_it() {
    // No inbox in between: what the waking producer wrote relaxed is visible to the woken consumer.
    loom::model(|| {
        use loom::sync::atomic::{AtomicBool, Ordering};
        let bell = Arc::new((Bell::new(), AtomicBool::new(false)));
        let stopper = Arc::clone(&bell);
        let stopper = thread::spawn(move || {
            stopper.1.store(true, Ordering::Relaxed);
            stopper.0.ring()
        });
        let (bell, stop) = &*bell;
        bell.wait_unless(|| stop.load(Ordering::Relaxed));
        assert!(stop.load(Ordering::Relaxed));
        stopper.join().unwrap();
    });
}

#[test]
fn of_two_rings_at_most_one_makes_the_call() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        use loom::sync::atomic::{AtomicBool, Ordering};
        let bell = Arc::new((Bell::new(), AtomicBool::new(false)));
        let ringers = [(); 2].map(|()| {
            let bell = Arc::clone(&bell);
            thread::spawn(move || {
                bell.1.store(true, Ordering::Relaxed);
                bell.0.ring()
            })
        });
        let waited = bell.0.wait_unless(|| bell.1.load(Ordering::Relaxed));
        let calls = ringers.map(|ringer| ringer.join().unwrap()).map(|ring| usize::from(ring == Ring::Woke));
        let calls: usize = calls.iter().sum();
        assert!(calls <= 1, "the consumer waited once");
        assert!(waited == Waited::HadWork || calls == 1, "a rung consumer was rung by somebody");
    });
}
