//! The protocols in plain memory, between threads: small, so that Miri, which looks at every access, runs them soon.
//!
//! `cargo +nightly miri test -p talea-ring --test protocols`
#![cfg(not(loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use talea_ring::bell::{Bell, Waited};
use talea_ring::control::{CONTROL_WORDS, Control, SwitchSet};
use talea_ring::hazard::{Hazard, Replaceable};
use talea_ring::header::{HEADER_WORDS, Place, RingState, Writer};
use talea_ring::inbox::Links;
use talea_ring::line::{Line, Published};
use talea_ring::object::{Copied, Update};
use talea_ring::region::Region;
use talea_ring::slots::{Batch, Slots, WORDS};

const ROUNDS: u64 = if cfg!(miri) { 30 } else { 10_000 };

fn memory(words: usize) -> Arc<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

fn rings(count: usize, capacity: usize) -> (Arc<[AtomicU64]>, Vec<Place>) {
    let stride = HEADER_WORDS + capacity * WORDS;
    let place = |ring| {
        let header = ring * stride;
        Place { header, slots: header + HEADER_WORDS..header + stride }
    };
    (memory(count * stride), (0..count).map(place).collect())
}

fn slots<'a>(memory: &'a [AtomicU64], place: &Place) -> Slots<'a, AtomicU64> {
    Slots::new(place.header_in(memory).head(), &memory[place.slots.clone()])
}

#[test]
fn a_reader_beside_the_writer_sees_whole_records_or_a_loss() {
    let (memory, places) = rings(1, 4);
    let (theirs, place) = (Arc::clone(&memory), places[0].clone());
    let writer = thread::spawn(move || {
        let ring = slots(&theirs, &place);
        (0..ROUNDS).for_each(|n| ring.write(n, [n; WORDS]));
    });
    let (ring, mut cursor, mut expected) = (slots(&memory, &places[0]), 0, 0);
    let mut look = || {
        let mut records = Vec::new();
        let batch = ring.read(&mut cursor, 2, &mut records);
        expected += batch.lost;
        for record in records {
            assert_eq!(record, [expected; WORDS]);
            expected += 1;
        }
        (batch, expected)
    };
    while !writer.is_finished() {
        look();
    }
    writer.join().expect("it writes");
    while look().0 != Batch::default() {}
    assert_eq!(look().1, ROUNDS, "every record was delivered or counted");
}

#[test]
fn spare_rings_are_claimed_once_and_say_who_writes_them() {
    let (memory, places) = rings(3, 2);
    let places: Arc<[Place]> = places.into();
    let come = |thread: u64| {
        let (memory, places) = (Arc::clone(&memory), Arc::clone(&places));
        thread::spawn(move || {
            let claimed = places.iter().position(|place| place.header_in(&*memory).claim())?;
            let header = places[claimed].header_in(&*memory);
            header.set_name(&format!("thread {thread}"));
            header.open();
            header.identify(Writer { thread, place: 100 + thread, first: 0 });
            Some((claimed, thread))
        })
    };
    let threads = [1, 2, 3].map(come);
    let mut seen = Vec::new();
    while threads.iter().any(|thread| !thread.is_finished()) {
        seen.extend(places.iter().filter_map(|place| place.header_in(&*memory).writer()));
    }
    assert!(seen.iter().all(|writer| writer.place == 100 + writer.thread), "{seen:?}");
    let control = memory_of_control();
    let mut claimed = threads.map(|thread| thread.join().expect("it comes").expect("there are three"));
    for (ring, thread) in claimed {
        let header = places[ring].header_in(&*memory);
        assert_eq!(header.writer(), Some(Writer { thread, place: 100 + thread, first: 0 }));
        assert_eq!((header.name(), header.state()), (format!("thread {thread}"), RingState::Open));
        header.close(&Control::new(&control));
        assert!(header.is_drained(&Control::new(&control).passes_finished()), "nobody reads");
        assert_eq!((header.writer(), header.state()), (None, RingState::Closed));
    }
    claimed.sort_unstable();
    assert_eq!(claimed.map(|(ring, _)| ring), [0, 1, 2]);
}

fn memory_of_control() -> Arc<[AtomicU64]> {
    memory(CONTROL_WORDS)
}

#[test]
fn a_closed_ring_is_drained_by_a_pass_that_was_begun_after_it_was_closed() {
    let (rings, places) = rings(1, 4);
    let pages = memory_of_control();
    let (control, header) = (Control::new(&pages), places[0].header_in(&*rings));
    let bit = control.claim(1, "c", |_| false).expect("there is room");
    assert!(header.is_drained(&control.passes_finished()), "it was never used");
    assert!(header.claim());
    header.open();
    let early = control.begin_pass(bit);
    header.close(&control);
    control.finish_pass(bit, early);
    assert!(!header.is_drained(&control.passes_finished()), "that pass may have been there before");
    let late = control.begin_pass(bit);
    assert!(!header.is_drained(&control.passes_finished()), "it may not have been there yet");
    control.finish_pass(bit, late);
    assert!(header.is_drained(&control.passes_finished()));
    header.close(&control);
    control.release(bit);
    assert!(header.is_drained(&control.passes_finished()), "who is gone reads nothing");
}

#[test]
fn an_inbox_and_a_bell_lose_nothing() {
    const NUMBERS: u32 = 8;
    const PRODUCERS: u32 = 2;
    let (sender, mut receiver) = Links::new(NUMBERS as usize).inbox();
    let shared = Arc::new((Bell::new(), AtomicBool::new(false)));
    let meanings: Arc<[AtomicU32]> = (0..NUMBERS).map(|_| AtomicU32::new(0)).collect();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let (sender, shared, meanings) = (sender.clone(), Arc::clone(&shared), Arc::clone(&meanings));
            thread::spawn(move || {
                for round in 0..ROUNDS as u32 {
                    let number = round % (NUMBERS / PRODUCERS) * PRODUCERS + producer;
                    loop {
                        // The number is this thread's as soon as it is in no inbox.
                        match sender.push(number) {
                            Ok(()) => break,
                            Err(_) => thread::yield_now(),
                        }
                    }
                    meanings[number as usize].fetch_add(1, Ordering::Relaxed);
                    shared.0.ring();
                }
            })
        })
        .collect();
    let consumer = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            let mut received = 0;
            let (bell, is_over) = &*shared;
            loop {
                while receiver.pop().is_some() {
                    received += 1;
                }
                if is_over.load(Ordering::Relaxed) && !receiver.has_number() {
                    return received;
                }
                bell.wait_unless(|| receiver.has_number() || is_over.load(Ordering::Relaxed));
            }
        })
    };
    producers.into_iter().for_each(|producer| producer.join().expect("it pushes"));
    shared.1.store(true, Ordering::Relaxed);
    shared.0.ring();
    assert_eq!(consumer.join().expect("it pops"), u64::from(PRODUCERS) * ROUNDS);
    let pushed: u32 = meanings.iter().map(|meaning| meaning.load(Ordering::Relaxed)).sum();
    assert_eq!(u64::from(pushed), u64::from(PRODUCERS) * ROUNDS);
}

#[test]
fn a_wait_ends_at_its_instant_or_by_a_ring() {
    let bell = Arc::new(Bell::new());
    // The clock has counted since the machine started, so this instant is over, and the other is centuries away.
    assert_eq!(bell.wait_until(Duration::ZERO, || false), Waited::Due);
    assert_eq!(bell.wait_until(Duration::ZERO, || true), Waited::HadWork);
    let consumers = Arc::clone(&bell);
    let far = Duration::from_secs(10_000_000_000);
    let consumer = thread::spawn(move || consumers.wait_until(far, || false));
    while !consumer.is_finished() {
        bell.ring();
        thread::yield_now();
    }
    assert_eq!(consumer.join().expect("it waits"), Waited::Rung);
}

#[test]
fn objects_and_lines_are_read_whole() {
    let words = memory(4);
    let lines = Arc::new(Published::new(AtomicU64::new(0), [const { [const { AtomicU64::new(0) }; 4] }; 2]));
    let line = |n| Line { start: n, span: n, start_ns: n, rate: n };
    let writers = [1, 2].map(|writer| {
        let words = Arc::clone(&words);
        thread::spawn(move || {
            let object = Copied::new(&words);
            let updates = (1..=ROUNDS).map(|n| object.replace(&[writer * n; 2]));
            updates.filter(|update| *update == Update::Done).count() as u64
        })
    });
    let keeper = {
        let lines = Arc::clone(&lines);
        thread::spawn(move || (1..=ROUNDS).for_each(|n| lines.publish(line(n))))
    };
    while !(keeper.is_finished() && writers.iter().all(|writer| writer.is_finished())) {
        if let Some((copy, _)) = Copied::new(&words).copy() {
            assert_eq!(copy[0], copy[1]);
        }
        let (read, ()) = lines.with(|| ());
        assert_eq!(read, line(read.start));
    }
    keeper.join().expect("it publishes");
    let done: u64 = writers.map(|writer| writer.join().expect("it replaces")).iter().sum();
    let object = Copied::new(&words);
    assert_eq!(object.copy().map(|(_, updates)| updates), Some(done));
    assert_eq!(done + object.given_up(), 2 * ROUNDS);
}

#[test]
fn documents_appear_whole_and_in_order() {
    let documents = ROUNDS.min(200);
    let words = memory(1 + 2 * documents as usize);
    let theirs = Arc::clone(&words);
    let writer = thread::spawn(move || {
        let region = Region::new(&theirs);
        (0..documents).for_each(|n| region.append(&[n as u8; 16]));
    });
    let mut read = Vec::new();
    while !writer.is_finished() || (read.len() as u64) < 16 * documents {
        read.extend(Region::new(&words).read(read.len()).expect("the length is true"));
        assert!(read.len().is_multiple_of(16));
    }
    writer.join().expect("it appends");
    let expected: Vec<u8> = (0..documents).flat_map(|n| [n as u8; 16]).collect();
    assert_eq!(read, expected);
}

#[test]
fn consumers_that_come_and_go_leave_nothing_on() {
    let words = memory(CONTROL_WORDS);
    let consumers = [1, 2].map(|owner: u64| {
        let words = Arc::clone(&words);
        thread::spawn(move || {
            let control = Control::new(&words);
            for round in 0..if cfg!(miri) { 2 } else { 50 } {
                let bit = control.claim(owner, "c", |_| false).expect("there is room");
                let chosen: SwitchSet = [round % 7, 7 + round % 3].into_iter().collect();
                control.switch_on(bit, &chosen);
                assert!(control.switches()[round % 7].load(Ordering::Relaxed) & bit.mask() != 0);
                control.switch_off(bit, &chosen);
                control.release(bit);
            }
        })
    });
    consumers.into_iter().for_each(|consumer| consumer.join().expect("it comes and goes"));
    assert!(Control::new(&words).consumers().is_empty());
    assert!(Control::new(&words).switches().iter().all(|word| word.load(Ordering::Relaxed) == 0));
}

#[test]
fn a_value_that_is_replaced_is_freed_when_nobody_reads_it() {
    let boxed = |number: u64| Box::into_raw(Box::new([number; 3]));
    let (pointer, hazard) = (Arc::new(Replaceable::new(boxed(0))), Arc::new(Hazard::default()));
    let (theirs, read) = (Arc::clone(&pointer), Arc::clone(&hazard));
    let reader = thread::spawn(move || {
        let mut newest = 0;
        while newest < ROUNDS {
            // SAFETY: it is protected.
            let value = unsafe { *read.protect(&theirs) };
            read.clear();
            assert!(value == [value[0]; 3] && value[0] >= newest);
            newest = value[0];
        }
    });
    let mut former: Vec<*mut [u64; 3]> = Vec::new();
    for number in 1..=ROUNDS {
        former.push(pointer.replace(boxed(number)));
        // SAFETY: each came from a box, is there once, and nobody reads it.
        former
            .extract_if(.., |value| !hazard.protects(*value))
            .for_each(|value| unsafe { drop(Box::from_raw(value)) });
    }
    reader.join().expect("it reads");
    former.push(Arc::into_inner(pointer).expect("the reader is gone").get_mut());
    // SAFETY: nobody reads any more.
    former.into_iter().for_each(|value| unsafe { drop(Box::from_raw(value)) });
}
