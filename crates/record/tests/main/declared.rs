//! Families declared in a program: what the macro makes of them, and where their events go.
//!
//! A process has one set of streams for threads that say nothing else, so tests that publish take turns.

use allocation_counter::measure;
use std::sync::{Mutex, MutexGuard, PoisonError};
use talea_model::OperationId;
use talea_record::declaration::{FIRST_FREE, Value};
use talea_record::stream::declare::{number_of, pack};
use talea_record::stream::*;
use talea_record::*;
use talea_samples::*;
use talea_time::Duration;
use tempfile::TempDir;

talea_record::family! {
    /// What the navigation filter does.
    ///
    /// All of it.
    pub nav {
        /// A position was computed.
        fix(latitude: f64, longitude: f64);
        /// The filter restarted.
        reset(cause: u32, attempts: u16, cold: bool);
        /// A position was used by a job.
        used(age: Duration, error: f32, small: i8, smaller: i16) for job: JobId;
        /// Nothing more to say.
        idle();
    }
    /// Another one.
    other = 0x99 {
        /// Something.
        something(value: i64);
    }
}

talea_record::family! {
    /// What comes over a bus.
    bus {
        /// A frame was received.
        frame(data: [u8; 8], length: u8, id: u32);
        /// A key was agreed on.
        key(digest: [u8; 16], version: u16);
        /// A station said its name.
        station(name: declaration::Text, address: u16);
    }
}

static TURNS: Mutex<()> = Mutex::new(());

/// A stream that no other test can take for its own.
pub struct Published {
    pub stream: Stream,
    _place: TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// A stream in a directory of its own, with one ring for a writer and some for threads.
pub fn publish(spare: usize) -> Published {
    publish_with(spare, 256)
}

/// The same with rings of this many records.
pub fn publish_with(spare: usize, capacity: usize) -> Published {
    let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = tempfile::tempdir().unwrap();
    let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
    let shape = RingShape { writers: &writers(1), spare, capacity, later: 0 };
    let stream = streams.publish("test", &Metadata::bare("test"), shape).unwrap();
    Published { stream, _place: place, _turn: turn }
}

impl Published {
    fn follow(&self, selection: &str) -> Consumer {
        nav::FAMILY.register().unwrap();
        let selection = selection.parse().unwrap();
        TraceFile::attach(self.stream.path(), "test", &selection, Start::Now).unwrap()
    }
}

fn drained(consumer: &mut Consumer) -> Vec<Record> {
    let mut out = Vec::new();
    consumer.drain(&mut out);
    out
}

fn events(consumer: &mut Consumer) -> Vec<Event> {
    drained(consumer).iter().map(|record| record.event).collect()
}

/// What `work` gives on a thread of this name.
pub fn on_a_thread<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        std::thread::Builder::new().name(name.into()).spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

#[test]
fn a_declaration_becomes_a_family() {
    let family = nav::FAMILY.family();
    assert_eq!(
        (family.name.as_ref(), family.about.as_ref()),
        ("nav", "What the navigation filter does.\n\n All of it.")
    );
    assert_eq!(family.number, number_of("nav"));
    assert!(family.number >= FIRST_FREE);
    assert_eq!(other::FAMILY.family().number, 0x99);
    assert_eq!(nav::used::EVENT, Event(u16::from(family.number) << 8 | 2));
    let fields = |event: usize| -> Vec<_> {
        family.events[event].fields.iter().map(|field| field.name.as_ref()).collect()
    };
    assert_eq!(fields(0), ["latitude", "longitude"]);
    assert_eq!(fields(2), ["job", "age", "error", "small", "smaller"]);
    let abouts: Vec<_> = family.events.iter().map(|event| event.about.as_ref()).collect();
    assert_eq!(abouts[3], "Nothing more to say.");
}

#[test]
fn events_come_back_with_the_values_of_their_fields() {
    let published = publish(1);
    let mut consumer = published.follow("nav");
    let job = JobId { operation: OperationId::from_index(3), instance: 77 };
    on_a_thread("events", || {
        let _local = published.stream.attach_thread("events").unwrap();
        nav::fix(47.125, -8.5);
        nav::reset(7, 65535, true);
        nav::used(job, Duration::from_nanos(-5), 0.25, -128, -2);
        nav::idle();
    });
    let space = TraceFile::open(published.stream.path()).unwrap().name_space().unwrap();
    let decoded = |record: &Record| -> Vec<Value> {
        space.event(record.event).unwrap().1.fields.iter().map(|field| field.value(record, None)).collect()
    };
    let records = drained(&mut consumer);
    let expected = [
        vec![Value::Float(47.125), Value::Float(-8.5)],
        vec![Value::Unsigned(7), Value::Unsigned(65535), Value::Bool(true)],
        vec![
            Value::Job(job),
            Value::Duration(-5),
            Value::Float(0.25),
            Value::Signed(-128),
            Value::Signed(-2),
        ],
        vec![],
    ];
    assert_eq!(records.iter().map(decoded).collect::<Vec<_>>(), expected);
    let is_told = |record: &Record| record.source == 1 && record.cpu != Record::NO_CPU;
    assert!(records.iter().all(is_told), "the thread's ring is the first spare one: {records:?}");
    assert!(records.is_sorted_by_key(|record| record.time));
}

/// As they are emitted, and as a listing names and shows them.
#[test]
fn texts_and_bytes_come_back() {
    let published = publish(1);
    bus::FAMILY.register().unwrap();
    let mut consumer = published.follow("bus");
    let (data, digest) = ([0, 1, 2, 0x7f, 0x80, 0xff, 7, 0], std::array::from_fn(|index| 0xf0 + index as u8));
    on_a_thread("texts and bytes", || {
        let _local = published.stream.attach_thread("texts and bytes").unwrap();
        bus::frame(data, 6, 0x1234_5678);
        bus::key(digest, 3);
        bus::station(declaration::Text::new("größe 16 bytes.."), 0xbeef);
    });
    let space = TraceFile::open(published.stream.path()).unwrap().name_space().unwrap();
    let listed = |record: &Record| -> Vec<String> {
        let fields = space.event(record.event).unwrap().1.fields.iter();
        fields
            .map(|field| format!("{}: {} = {}", field.name, field.kind, field.value(record, None)))
            .collect()
    };
    let records = drained(&mut consumer);
    assert_eq!(
        records.iter().map(listed).collect::<Vec<_>>(),
        [
            vec!["data: bytes8 = 0001027f80ff0700", "length: u8 = 6", "id: u32 = 305419896"],
            vec!["digest: bytes16 = f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "version: u16 = 3"],
            vec!["name: text = größe 16 bytes", "address: u16 = 48879"],
        ]
    );
    let field =
        |record: usize| space.event(records[record].event).unwrap().1.fields[0].value(&records[record], None);
    assert_eq!((field(0), field(1)), (Value::Bytes(data.into()), Value::Bytes(digest.into())));
}

#[test]
fn events_are_switched_one_by_one_and_cost_nothing_while_off() {
    let published = publish(1);
    on_a_thread("switched", || {
        let local = published.stream.attach_thread("switched").unwrap();
        let written = || local.written();
        let emit = || {
            nav::fix(1.0, 2.0);
            nav::idle();
        };
        let before = written();
        emit();
        assert_eq!(written(), before, "nobody listens");
        let mut consumer = published.follow("nav.fix");
        emit();
        assert_eq!(events(&mut consumer), [nav::fix::EVENT]);
        consumer.select(&"nav,-nav.fix".parse().unwrap()).unwrap();
        emit();
        assert_eq!(events(&mut consumer), [nav::idle::EVENT]);
        drop(consumer);
        let before = written();
        emit();
        assert_eq!(written(), before, "nobody listens any more");
    });
}

#[test]
fn a_bound_thread_emits_without_allocating() {
    let published = publish(1);
    let _consumer = published.follow("all");
    on_a_thread("bound", || {
        let mut local = published.stream.attach_thread("bound").unwrap();
        let record = numbered(1);
        let count = measure(|| {
            for _ in 0..5_000 {
                nav::fix(1.0, 2.0);
                nav::reset(1, 2, false);
                local.record(record);
            }
        });
        assert_eq!((count.count_total, local.written() >= 15_000), (0, true));
    });
}

#[test]
fn a_thread_that_says_nothing_gets_a_ring_at_its_first_wanted_event() {
    let published = publish(2);
    let mut consumer = published.follow("nav.fix,run.thread");
    let listed = || {
        let rings = TraceFile::open(published.stream.path()).unwrap().rings();
        rings.iter().map(|ring| (ring.name(), ring.state())).collect::<Vec<_>>()
    };
    on_a_thread("lazy", || {
        nav::idle();
        assert_eq!(listed()[1].1, RingState::Unused, "not for an event that nobody wants");
        nav::fix(1.0, 1.0);
        assert_eq!(listed()[1], ("lazy".to_owned(), RingState::Open));
        nav::fix(2.0, 2.0);
    });
    assert_eq!(listed()[1].1, RingState::Closed, "given back when the thread ended");
    let records = drained(&mut consumer);
    let seen: Vec<_> = records.iter().map(|record| record.event).collect();
    assert_eq!(seen, [Event::THREAD, nav::fix::EVENT, nav::fix::EVENT]);
    assert_eq!((records[0].words[0] >> 32, records[0].arg), (u64::from(std::process::id()), 4));
}

#[test]
fn events_without_a_ring_are_counted() {
    let published = publish(1);
    let mut consumer = published.follow("nav.fix");
    let _taken = published.stream.rings.claim("taken").unwrap();
    assert_eq!(published.stream.attach_thread("no ring left").err(), Some(AttachThreadError::Exhausted));
    let unringed = || {
        let streams = StreamDirectory::at(published.stream.path().parent().unwrap()).unwrap();
        streams.list().unwrap().remove(0).content.unwrap().unringed
    };
    on_a_thread("ringless", || {
        nav::fix(1.0, 1.0);
        nav::fix(1.0, 1.0);
        nav::idle();
        assert_eq!(unringed(), 2);
        drop(_taken);
        nav::fix(3.0, 3.0);
    });
    assert_eq!((unringed(), events(&mut consumer)), (2, vec![nav::fix::EVENT]));
}

/// A thread of a runtime installs the writer it has: its records and its events share a ring, in order.
#[test]
fn an_installed_writer_keeps_records_and_events_in_order() {
    let mut published = publish(1);
    let mut consumer = published.follow("nav,job");
    let writer = published.stream.rings.writer(0);
    on_a_thread("lane", || {
        let mut local = writer.install();
        let record = |time| Record { time, ..numbered(1) };
        local.record(record(at(5)));
        nav::idle();
        // Taken before the event, written after it.
        local.record(record(at(7)));
        nav::idle();
    });
    let records = drained(&mut consumer);
    let seen: Vec<_> = records.iter().map(|record| record.event).collect();
    assert_eq!(seen, [Event::START, nav::idle::EVENT, Event::START, nav::idle::EVENT]);
    assert_eq!(records[2].time, records[1].time, "not before the event");
}

#[test]
fn a_thread_has_one_writer() {
    let published = publish(2);
    on_a_thread("twice", || {
        let first = published.stream.attach_thread("first").unwrap();
        let second = std::panic::catch_unwind(|| drop(published.stream.attach_thread("second")));
        assert!(second.is_err());
        drop(first);
        drop(published.stream.attach_thread("third").unwrap());
    });
}

/// Threads that live longer than a stream go on to the next.
#[test]
fn a_lazy_thread_leaves_a_stream_that_has_ended() {
    let (to_thread, orders) = std::sync::mpsc::channel::<()>();
    let (done, reports) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        for () in orders {
            nav::idle();
            done.send(()).unwrap();
        }
    });
    let emit = || {
        to_thread.send(()).unwrap();
        reports.recv().unwrap();
    };
    for _ in 0..2 {
        let published = publish(1);
        let mut consumer = published.follow("nav.idle");
        emit();
        assert_eq!(events(&mut consumer), [nav::idle::EVENT]);
        drop(published);
        let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        emit();
        assert_eq!(events(&mut consumer), [], "the stream has ended");
    }
    drop(to_thread);
    thread.join().unwrap();
}

#[test]
fn a_family_registers_itself_for_those_who_want_everything() {
    talea_record::family! {
        /// Declared here only.
        unknown = 0x9a {
            /// It happened.
            happened();
        }
    }
    let published = publish(1);
    let mut consumer = published.follow("all,-run");
    on_a_thread("unknown", || {
        let _local = published.stream.attach_thread("unknown").unwrap();
        unknown::happened();
        unknown::happened();
    });
    assert_eq!(events(&mut consumer), [unknown::happened::EVENT; 2]);
    assert!(consumer.directory().unwrap().name_space().family("unknown").is_some());
}

#[test]
fn fields_are_packed_whenever_they_fit() {
    use declaration::FieldKind::{self, F64, I8, U16, U32, U64};
    use proptest::prelude::*;
    assert!(pack::<3>(&[U16, U64, F64]).is_some(), "the short one goes last");
    assert!(pack::<3>(&[U64, U64, U32]).is_none());
    proptest!(|(kinds in prop::collection::vec(prop::sample::select(vec![U64, U32, U16, I8]), 6))| {
        let bits: u32 = kinds.iter().map(|kind: &FieldKind| kind.bits()).sum();
        let wide: u32 = kinds.iter().filter(|kind| kind.bits() > 16).map(|kind| kind.bits()).sum();
        let packed = pack::<6>(&kinds);
        prop_assert_eq!(packed.is_some(), bits <= 144 && wide <= 128);
        let mut used = std::collections::BTreeSet::new();
        for (place, kind) in packed.iter().flatten().zip(&kinds) {
            for bit in 0..kind.bits() {
                prop_assert!(u32::from(place.shift) + kind.bits() <= place.part.bits());
                prop_assert!(used.insert((place.part as u8, u32::from(place.shift) + bit)));
            }
        }
    });
}
