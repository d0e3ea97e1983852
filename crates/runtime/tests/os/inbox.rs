//! The inbox and the bell between real threads.

use proptest::prelude::*;
use std::sync::Arc;
use std::thread;
use talea_runtime::bell::{Bell, Ring, Waited};
use talea_runtime::inbox::{Full, Receiver, channel};

/// A value that says who sent it and as which of his.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Letter {
    producer: u64,
    number: u64,
    /// Derived from the two others: a torn read shows.
    seal: u64,
}

impl Letter {
    fn new(producer: u64, number: u64) -> Self {
        Letter { producer, number, seal: !(producer << 32 ^ number) }
    }
}

/// Takes `count` letters, sleeping whenever there is none, and checks that each producer's arrive
/// complete and in order.
fn receive(receiver: &mut Receiver<Letter>, bell: &Bell, producers: u64, count: u64) {
    let mut next = vec![0; producers as usize];
    let mut left = count;
    while left > 0 {
        let Some(letter) = receiver.pop() else {
            bell.wait_unless(|| receiver.has_value());
            continue;
        };
        assert_eq!(letter, Letter::new(letter.producer, letter.number));
        assert_eq!(letter.number, next[letter.producer as usize], "producer {}", letter.producer);
        next[letter.producer as usize] += 1;
        left -= 1;
    }
    assert_eq!(receiver.pop(), None);
}

fn stress(capacity: usize, producers: u64, each: u64) {
    let (sender, mut receiver) = channel(capacity);
    let bell = Arc::new(Bell::new());
    let threads: Vec<_> = (0..producers)
        .map(|producer| {
            let (sender, bell) = (sender.clone(), Arc::clone(&bell));
            thread::spawn(move || {
                for number in 0..each {
                    let mut letter = Letter::new(producer, number);
                    while let Err(Full(back)) = sender.push(letter) {
                        letter = back;
                        thread::yield_now();
                    }
                    bell.ring();
                }
            })
        })
        .collect();
    receive(&mut receiver, &bell, producers, producers * each);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn letters_of_four_producers_arrive_in_order_and_once() {
    stress(64, 4, 50_000);
}

#[test]
fn a_single_cell_is_enough_for_three_producers() {
    stress(1, 3, 5_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_inbox_keeps_the_order_of_each_producer(
        capacity in 1usize..40, producers in 1u64..6, each in 0u64..1_500,
    ) {
        stress(capacity, producers, each);
    }
}

/// Consumer and producer alternate strictly, so that nearly every ring meets the consumer on its
/// way to sleep: a lost wake-up would hang the test.
#[test]
fn ping_pong_between_two_sleepers_loses_no_wake_up() {
    const ROUNDS: u64 = 20_000;
    let (ping, mut pinged) = channel(2);
    let (pong, mut ponged) = channel(2);
    let bells = Arc::new((Bell::new(), Bell::new()));
    let echo_bells = Arc::clone(&bells);
    let echo = thread::spawn(move || {
        for _ in 0..ROUNDS {
            while !pinged.has_value() {
                echo_bells.0.wait_unless(|| pinged.has_value());
            }
            pong.push(pinged.pop().unwrap()).unwrap();
            echo_bells.1.ring();
        }
    });
    for round in 0..ROUNDS {
        ping.push(round).unwrap();
        bells.0.ring();
        while !ponged.has_value() {
            bells.1.wait_unless(|| ponged.has_value());
        }
        assert_eq!(ponged.pop(), Some(round));
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
