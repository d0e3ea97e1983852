//! Every interleaving of a ring's writer and reader that the C11 memory model allows.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p talea-trace --release --test loom`
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use talea_trace::Record;
use talea_trace::ring::protocol::{Batch, Slots};

const CAPACITY: usize = 2;

struct Ring {
    head: AtomicU64,
    words: Vec<AtomicU64>,
}

impl Ring {
    fn new() -> Self {
        let words = (0..CAPACITY * Record::WORDS).map(|_| AtomicU64::new(0)).collect();
        Ring { head: AtomicU64::new(0), words }
    }

    fn slots(&self) -> Slots<'_, AtomicU64> {
        Slots::new(&self.head, &self.words)
    }
}

/// Record `n`, recognisable in each of its words.
fn record(n: u64) -> [u64; Record::WORDS] {
    [n + 1; Record::WORDS]
}

/// Reads once and checks that everything up to the cursor was delivered whole or counted.
fn read_and_check(ring: &Ring, cursor: &mut u64) -> Batch {
    let (mut out, before) = (Vec::new(), *cursor);
    let batch = ring.slots().read(cursor, CAPACITY, &mut out);
    assert_eq!(*cursor, before + batch.lost + batch.read as u64);
    let first = *cursor - batch.read as u64;
    for (found, n) in out.iter().zip(first..) {
        assert_eq!(*found, record(n), "record {n} is torn or in the wrong place");
    }
    batch
}

fn writer_against_reader(records: u64, reads: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let ring = Arc::new(Ring::new());
        let writer = {
            let ring = Arc::clone(&ring);
            loom::thread::spawn(move || (0..records).for_each(|n| ring.slots().write(n, record(n))))
        };
        let mut cursor = 0;
        for _ in 0..reads {
            read_and_check(&ring, &mut cursor);
        }
        writer.join().unwrap();
        while read_and_check(&ring, &mut cursor) != Batch::default() {}
        assert_eq!(cursor, records, "every record was delivered or counted");
    });
}

#[test]
fn a_reader_sees_whole_records_or_a_loss() {
    writer_against_reader(3, 1);
}

#[test]
fn a_reader_that_comes_back_continues_where_it_was() {
    writer_against_reader(4, 2);
}
