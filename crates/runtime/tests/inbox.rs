//! The inbox and the bell between real threads.

use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use talea_ring::bell::{Bell, Ring, Waited};
use talea_ring::inbox::{Links, Receiver, Sender};

/// What a number stands for: who sent it, and as which of his.
#[derive(Default)]
struct Letter {
    /// From before it is written until after it is read, as the entry of a job is taken.
    in_use: AtomicBool,
    producer: AtomicU64,
    number: AtomicU64,
    /// Derived from the two others: a torn read shows.
    seal: AtomicU64,
}

fn seal(producer: u64, number: u64) -> u64 {
    !(producer << 32 ^ number)
}

impl Letter {
    /// Written and read relaxed: the inbox orders it.
    fn write(&self, producer: u64, number: u64) {
        self.producer.store(producer, Ordering::Relaxed);
        self.number.store(number, Ordering::Relaxed);
        self.seal.store(seal(producer, number), Ordering::Relaxed);
    }

    fn read(&self) -> (u64, u64) {
        let fields = [&self.producer, &self.number, &self.seal];
        let [producer, number, sealed] = fields.map(|field| field.load(Ordering::Relaxed));
        assert_eq!(sealed, seal(producer, number));
        (producer, number)
    }
}

/// Takes `count` letters, sleeping whenever there is none, and checks that each producer's arrive
/// complete and in order.
fn receive(receiver: &mut Receiver, bell: &Bell, letters: &[Letter], producers: u64, count: u64) {
    let mut next = vec![0; producers as usize];
    let mut left = count;
    while left > 0 {
        let Some(position) = receiver.pop() else {
            bell.wait_unless(|| receiver.has_number());
            continue;
        };
        let letter = &letters[position as usize];
        let (producer, number) = letter.read();
        letter.in_use.store(false, Ordering::Release);
        assert_eq!(number, next[producer as usize], "producer {producer}");
        next[producer as usize] += 1;
        left -= 1;
    }
    assert_eq!(receiver.pop(), None);
}

/// Sends letter after letter of one producer, each in the next of his places as soon as that is free.
fn send_all(sender: &Sender, bell: &Bell, letters: &[Letter], producer: u64, own: u64, each: u64) {
    for number in 0..each {
        let position = producer * own + number % own;
        let letter = &letters[position as usize];
        while letter.in_use.swap(true, Ordering::Acquire) {
            thread::yield_now();
        }
        letter.write(producer, number);
        sender.push(position as u32).expect("a letter that has been read is in no inbox");
        bell.ring();
    }
}

/// Every producer sends `each` letters with `own` places for them.
fn stress(own: u64, producers: u64, each: u64) {
    let letters: Arc<[Letter]> = (0..own * producers).map(|_| Letter::default()).collect();
    let (sender, mut receiver) = Links::new(letters.len()).inbox();
    let bell = Arc::new(Bell::new());
    let threads: Vec<_> = (0..producers)
        .map(|producer| {
            let (sender, bell, letters) = (sender.clone(), Arc::clone(&bell), Arc::clone(&letters));
            thread::spawn(move || send_all(&sender, &bell, &letters, producer, own, each))
        })
        .collect();
    receive(&mut receiver, &bell, &letters, producers, producers * each);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn letters_of_four_producers_arrive_in_order_and_once() {
    stress(16, 4, 50_000);
}

#[test]
fn one_place_for_each_of_three_producers_is_enough() {
    stress(1, 3, 5_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_inbox_keeps_the_order_of_each_producer(
        own in 1u64..20, producers in 1u64..6, each in 0u64..1_500,
    ) {
        stress(own, producers, each);
    }
}

/// Consumer and producer alternate strictly, so that nearly every ring meets the consumer on its
/// way to sleep: a lost wake-up would hang the test.
#[test]
fn ping_pong_between_two_sleepers_loses_no_wake_up() {
    const ROUNDS: u32 = 20_000;
    let links = Links::new(2);
    let ((ping, mut pinged), (pong, mut ponged)) = (links.inbox(), links.inbox());
    let bells = Arc::new((Bell::new(), Bell::new()));
    let echo_bells = Arc::clone(&bells);
    let echo = thread::spawn(move || {
        for _ in 0..ROUNDS {
            while !pinged.has_number() {
                echo_bells.0.wait_unless(|| pinged.has_number());
            }
            pong.push(pinged.pop().unwrap()).unwrap();
            echo_bells.1.ring();
        }
    });
    for round in 0..ROUNDS {
        ping.push(round % 2).unwrap();
        bells.0.ring();
        while !ponged.has_number() {
            bells.1.wait_unless(|| ponged.has_number());
        }
        assert_eq!(ponged.pop(), Some(round % 2));
    }
    echo.join().unwrap();
}

#[test]
fn a_bell_nobody_waits_on_costs_no_call_and_remembers_nothing() {
    let bell = Bell::new();
    assert_eq!(bell.ring(), Ring::Awake);
    assert_eq!(bell.wait_unless(|| true), Waited::HadWork);
    assert_eq!(bell.ring(), Ring::Awake);
}
