//! The queue between one producer and one consumer, and the counts of holders, under loom. What loom leaves out is said in `lanes.rs`.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use talea_ring::holders::Holders;
use talea_ring::queue::{Pushed, Queue, WhenFull};

/// An entry that shows whether its words belong together.
fn entry(number: u64) -> [u64; 3] {
    [number, 10 + number, 20 + number]
}

fn is_whole(entry: [u64; 3]) -> bool {
    entry[1] == 10 + entry[0] && entry[2] == 20 + entry[0]
}

#[test]
fn each_entry_is_whole_and_has_one_owner_while_the_oldest_is_taken_back() {
    loom::model(|| {
        let queue = Arc::new(Queue::new(1));
        let producers = Arc::clone(&queue);
        let producer = thread::spawn(move || {
            let mut taken_back = Vec::new();
            for number in 1..=2 {
                if let Pushed::InPlaceOf(oldest) = producers.push(entry(number), WhenFull::TakeBackOldest) {
                    taken_back.push(oldest);
                }
            }
            taken_back
        });
        let mut owned: Vec<_> = (0..2).filter_map(|_| queue.pop_if(|_| true)).collect();
        owned.extend(producer.join().unwrap());
        owned.extend(queue.pop_if(|_| true));
        assert!(owned.iter().all(|entry| is_whole(*entry)));
        let mut numbers: Vec<u64> = owned.iter().map(|entry| entry[0]).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2], "nothing is lost, and nothing is there twice");
    });
}

#[test]
fn an_entry_that_is_left_where_it_is_was_whole() {
    loom::model(|| {
        let queue = Arc::new(Queue::new(1));
        queue.push(entry(1), WhenFull::Refuse);
        let producers = Arc::clone(&queue);
        let producer = thread::spawn(move || {
            assert_ne!(producers.push(entry(2), WhenFull::TakeBackOldest), Pushed::Full);
        });
        let mut seen = None;
        // Of entries that were read in vain nothing is concluded: the last one is what the answer rests on.
        assert_eq!(
            queue.pop_if(|entry| {
                seen = Some(*entry);
                false
            }),
            None
        );
        assert!(seen.is_some_and(is_whole), "{seen:?}");
        producer.join().unwrap();
        assert_eq!(queue.pop_if(|_| true), Some(entry(2)));
    });
}

#[test]
fn a_thing_is_claimed_again_only_after_its_last_holder_has_done_with_it() {
    loom::model(|| {
        let holders = Arc::new(Holders::new(1));
        let value = Arc::new(UnsafeCell::new(0));
        let queue = Arc::new(Queue::new(1));
        let thing = holders.claim(0).unwrap();
        // SAFETY: it was claimed, and nobody else knows of it.
        value.with_mut(|value| unsafe { *value = 7 });
        holders.share(thing, 1);
        queue.push([thing as u64, 0, 0], WhenFull::Refuse);
        let (theirs, values, entries) = (Arc::clone(&holders), Arc::clone(&value), Arc::clone(&queue));
        let reader = thread::spawn(move || {
            let Some([thing, ..]) = entries.pop_if(|_| true) else { unreachable!("it was pushed before") };
            // SAFETY: the entry holds the thing.
            values.with(|value| assert_eq!(unsafe { *value }, 7));
            theirs.give_up(thing as usize);
        });
        if holders.claim(0).is_some() {
            // SAFETY: nobody holds it any more.
            value.with_mut(|value| unsafe { *value = 8 });
        }
        reader.join().unwrap();
    });
}
