//! What readers cost the writer, and how fast they are.

use super::{BATCH, SLOTS, Subject, batch, group, probe};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use talea_measure::{Report, Role, Samples};
use talea_record::stream::{Consumer, Selection, Start, Stream, clock};
use talea_record::{Event, Metadata, Record, RingFile, Sink};
use talea_time::Instant;

/// How often a reader at work looks, as a collector does.
const LOOK: Duration = Duration::from_millis(1);

/// Takes records and forgets them.
struct Nowhere;

impl Sink for Nowhere {
    fn record(&mut self, record: Record) {
        black_box(record);
    }
}

fn consumer(stream: &Stream, name: &str) -> Consumer {
    stream.rings.attach(name, &Selection::all(), Start::Now).expect("a consumer")
}

/// An event while nobody reads what is written, one does, and two do.
pub fn followed(report: &mut Report, batches: u32, stream: &Stream) {
    let _wants = consumer(stream, "wants");
    let _local = stream.attach_thread("bench").expect("a ring");
    let (readers, over) = (AtomicU32::new(0), AtomicBool::new(false));
    let mut consumers = [consumer(stream, "first"), consumer(stream, "second")];
    std::thread::scope(|scope| {
        for (number, consumer) in (1u32..).zip(&mut consumers) {
            let (readers, over) = (&readers, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    if readers.load(Ordering::Relaxed) >= number {
                        consumer.poll(Instant::MAX, &mut Nowhere);
                    }
                    std::thread::sleep(LOOK);
                }
            });
        }
        let step = |count| {
            let readers = &readers;
            move |samples: &mut Samples| {
                readers.store(count, Ordering::Relaxed);
                batch(samples, |n| probe::two(n, n));
            }
        };
        let (mut none, mut one, mut two) = (step(0), step(1), step(2));
        let mut subjects = [
            Subject { name: "one reader", role: Role::Floor, step: &mut one },
            Subject { name: "two readers", role: Role::Subject, step: &mut two },
            Subject { name: "a reader that does not read", role: Role::Subject, step: &mut none },
        ];
        group(report, "event that is read", batches, &mut subjects);
        over.store(true, Ordering::Relaxed);
    });
}

/// Reading what is there, record by record.
pub fn rate(report: &mut Report, repetitions: u32) {
    const GROUP: &str = "reading a record";
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let names = ["one".to_owned(), "two".to_owned()];
    let path = place.path().join("rings");
    let metadata = Metadata::bare("bench");
    let mut rings = RingFile::create(&path, &metadata, &names, SLOTS).expect("rings");
    rings.prefault();
    let mut writers = [rings.writer(0), rings.writer(1)];
    let (mut floor, mut ring, mut merged) = (Samples::new(), Samples::new(), Samples::new());
    let mut readers = rings.readers();
    let mut both = rings.attach("both", &Selection::all(), Start::Now).expect("a consumer");
    let mut words = vec![[0u64; Record::WORDS]; SLOTS];
    // A ring shows one record less than it has slots, and the reader is not to lose any.
    let count = SLOTS as u32 - BATCH;
    for _ in 0..repetitions.max(3) {
        for writer in &mut writers {
            for n in 0..u64::from(count) {
                let time = clock::now();
                let event = Event::WAKE;
                writer.record(Record { time, causal: n, event, ..Record::from_words([0; Record::WORDS]) });
            }
        }
        let start = clock::kernel_now();
        for (n, slot) in words.iter_mut().take(count as usize).enumerate() {
            *slot = black_box([n as u64; Record::WORDS]);
        }
        floor.add_batch(clock::kernel_now() - start, count);
        let start = clock::kernel_now();
        let mut read = 0;
        while let Some(record) = readers[0].take() {
            black_box(record);
            read += 1;
        }
        ring.add_batch(clock::kernel_now() - start, read);
        while readers[1].take().is_some() {}
        let start = clock::kernel_now();
        let read = both.poll(Instant::MAX, &mut Nowhere);
        merged.add_batch(clock::kernel_now() - start, read as u32);
    }
    report.add(GROUP, "storing 40 bytes", Role::Floor, floor);
    report.add(GROUP, "of one ring", Role::Subject, ring);
    report.add(GROUP, "of two rings, merged in the order of time", Role::Subject, merged);
}
