//! What events cost the thread that emits them, each beside the floor that the machine sets.
//!
//! `cargo bench -p talea-record --bench streams [-- --json] [--quick]`
//!
//! The floor of an event that is on is reading the processor's counter and storing it with three words in a ring of
//! the thread's own; that of an event that is off is a loop without it. Subjects and floors alternate. The process
//! that follows the stream is this one, which does not read while it measures. The peer is an LTTng-UST tracepoint, if
//! LTTng is installed.

mod lttng;
mod reading;

use std::cell::Cell;
use std::hint::black_box;
use std::process::ExitCode;
use talea_measure::{Effort, Report, Role, Samples};
use talea_record::declaration::LongText;
use talea_record::stream::clock::{self, TimeSource};
use talea_record::stream::{Start, Stream, StreamDirectory};
use talea_record::{Metadata, Record, RingShape, Sink};

talea_record::family! {
    /// What is measured.
    probe {
        /// Two whole words.
        two(first: u64, second: u64);
        /// Several fields in a word.
        several(a: u32, b: u16, c: u8, d: f64);
        /// A text and a word.
        text(message: LongText<256>, number: u64);
    }
}

const BATCH: u32 = 1024;
const SLOTS: usize = 8192;
/// The peer writes its trace to a disk, which need not hold more than this.
const PEER_BATCHES: u32 = 1000;

/// The least that keeps an event: no other thread may look.
struct BareRing {
    slots: Box<[Cell<[u64; 4]>; SLOTS]>,
    position: Cell<u64>,
}

impl BareRing {
    fn new() -> Self {
        BareRing { slots: Box::new([const { Cell::new([0; 4]) }; SLOTS]), position: Cell::new(0) }
    }

    #[inline(always)]
    fn write(&self, words: [u64; 4]) {
        let position = self.position.get();
        self.slots[position as usize % SLOTS].set(words);
        self.position.set(position.wrapping_add(1));
    }
}

/// The time of each of a batch of `step`s, added to `samples`.
fn batch(samples: &mut Samples, mut step: impl FnMut(u64)) {
    let start = clock::kernel_now();
    for n in 0..u64::from(BATCH) {
        step(black_box(n));
    }
    samples.add_batch(clock::kernel_now() - start, BATCH);
}

struct Subject<'a> {
    name: &'static str,
    role: Role,
    step: &'a mut dyn FnMut(&mut Samples),
}

/// Measures the subjects in turn.
fn group(report: &mut Report, name: &'static str, batches: u32, subjects: &mut [Subject<'_>]) {
    let mut samples: Vec<Samples> = subjects.iter().map(|_| Samples::new()).collect();
    for _ in 0..batches {
        for (subject, samples) in subjects.iter_mut().zip(&mut samples) {
            (subject.step)(samples);
        }
    }
    for (subject, samples) in subjects.iter().zip(samples) {
        report.add(name, subject.name, subject.role, samples);
    }
}

/// Events that are on.
fn enabled(report: &mut Report, batches: u32, stream: &Stream) {
    let mut peer = lttng::Peer::start();
    if let Err(reason) = &peer {
        eprintln!("without LTTng beside it: {reason}");
    }
    let with_peer = peer.is_ok();
    let mut left = PEER_BATCHES;
    let mut peer_step = |samples: &mut Samples| {
        if let (Ok(peer), 1..) = (&mut peer, left) {
            samples.add_batch(peer.batch(BATCH), BATCH);
            left -= 1;
        }
    };
    let all = "all".parse().expect("a selection");
    let _consumer = stream.rings.attach("bench", &all, Start::Now).expect("a consumer");
    let mut local = stream.attach_thread("bench").expect("a ring");
    let ring = BareRing::new();
    let text = black_box("t".repeat(256));
    let record = Record::from_words([0; Record::WORDS]);
    let subjects = [
        Subject {
            name: "counter and bare ring of 32 bytes",
            role: Role::Floor,
            step: &mut |samples| batch(samples, |n| ring.write([clock::raw_count(), n, n, n])),
        },
        Subject {
            name: "event of two words",
            role: Role::Subject,
            step: &mut |samples| batch(samples, |n| probe::two(n, n)),
        },
        Subject {
            name: "event of four fields",
            role: Role::Subject,
            step: &mut |samples| batch(samples, |n| probe::several(n as u32, n as u16, n as u8, 0.5)),
        },
        Subject {
            name: "event of a text of 24 bytes",
            role: Role::Subject,
            step: &mut |samples| batch(samples, |n| probe::text(LongText::new(&text[..24]), n)),
        },
        Subject {
            name: "event of a text of 64 bytes",
            role: Role::Subject,
            step: &mut |samples| batch(samples, |n| probe::text(LongText::new(&text[..64]), n)),
        },
        Subject {
            name: "event of a text of 256 bytes",
            role: Role::Subject,
            step: &mut |samples| batch(samples, |n| probe::text(LongText::new(&text), n)),
        },
        Subject {
            name: "record without a time stamp of its own",
            role: Role::Subject,
            step: &mut |samples| batch(samples, |n| local.record(Record { causal: n, ..record })),
        },
        Subject {
            name: "clock alone",
            role: Role::Subject,
            step: &mut |samples| {
                batch(samples, |_| {
                    black_box(clock::now());
                })
            },
        },
        Subject {
            name: "the kernel's clock alone",
            role: Role::Peer,
            step: &mut |samples| {
                batch(samples, |_| {
                    black_box(clock::kernel_now());
                })
            },
        },
    ];
    let mut subjects = Vec::from(subjects);
    if with_peer {
        let name = "LTTng-UST tracepoint of two fields";
        subjects.push(Subject { name, role: Role::Peer, step: &mut peer_step });
    }
    group(report, "event that is on", batches, &mut subjects);
}

/// Events that are off.
fn disabled(report: &mut Report, batches: u32, stream: &Stream) {
    let _local = stream.attach_thread("bench").expect("a ring");
    let mut subjects = [
        Subject {
            name: "empty loop",
            role: Role::Floor,
            step: &mut |samples| {
                batch(samples, |n| {
                    black_box(n);
                })
            },
        },
        Subject {
            name: "event of two words",
            role: Role::Subject,
            step: &mut |samples| batch(samples, |n| probe::two(black_box(n), n)),
        },
        Subject {
            name: "event of four fields",
            role: Role::Subject,
            step: &mut |samples| batch(samples, |n| probe::several(black_box(n) as u32, 1, 2, 0.5)),
        },
    ];
    group(report, "event that is off", batches, &mut subjects);
}

fn main() -> ExitCode {
    talea_measure::main(measured)
}

fn measured(effort: Effort) -> Report {
    let batches = match effort {
        Effort::Smoke => 3,
        Effort::Quick => 500,
        Effort::Full => 10_000,
    };
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let streams = StreamDirectory::at(&place.path().join("streams")).expect("a place for streams");
    let shape = RingShape { writers: &[], spare: 2, capacity: SLOTS, later: 0 };
    let stream = streams.publish("bench", &Metadata::bare("bench"), shape).expect("a stream");
    probe::FAMILY.register().expect("the only family");
    // The keeper's first line comes after some milliseconds, where there is one at all.
    let patience = std::time::Instant::now();
    while clock::source() == TimeSource::Kernel && patience.elapsed().as_secs() < 1 {
        std::thread::yield_now();
    }
    if clock::source() == TimeSource::Kernel {
        eprintln!("time stamps are the kernel's: the machine's clock source is not the processor's counter");
    }
    let mut report = Report::new(false);
    disabled(&mut report, batches, &stream);
    enabled(&mut report, batches, &stream);
    reading::followed(&mut report, batches, &stream);
    reading::rate(&mut report, batches.div_ceil(100));
    report
}
