//! Events with a long field: all of it is there, or the event is lost.

use crate::declared::{on_a_thread, publish, publish_with};
use allocation_counter::measure;
use talea_record::damage::Fault;
use talea_record::declaration::{FieldKind, LongBytes, LongText, Value};
use talea_record::stream::*;
use talea_record::*;

talea_record::family! {
    /// What a program says.
    log = 0xd7 {
        /// A message.
        said(message: LongText<'_, 200>, line: u32, level: u8);
        /// A frame, of a job.
        frame(number: u64, time: i64, data: LongBytes<256>) for about: u64;
        /// A short one.
        short(number: u64);
    }
}

/// Records with what `names` make of the fields of events, and how many parts they have.
#[derive(Default)]
struct Told {
    values: Vec<Vec<Value>>,
    lost: u64,
    parts: usize,
}

impl Told {
    fn of(names: &NameSpace, records: &[Record]) -> Self {
        let (mut told, mut parts) = (Told::default(), EventParts::default());
        for record in records {
            assert!(parts.learn(record), "{record:?}");
            if let Some(lost) = event::Lost::read(record) {
                told.lost += lost.records;
            } else if record.is_part() {
                told.parts += 1;
            } else if record.event.family() == log::FAMILY.family().number {
                let fields = names.event(record.event).unwrap().1.fields.iter();
                let values: Vec<Value> = fields.map(|field| field.value(record, parts.of(record))).collect();
                assert!(!values.contains(&Value::Missing), "{record:?}");
                told.values.push(values);
            }
        }
        told
    }
}

fn names(stream: &Stream) -> NameSpace {
    TraceFile::open(stream.path()).unwrap().name_space().unwrap()
}

fn follow(stream: &Stream, selection: &str) -> Consumer {
    log::FAMILY.register().unwrap();
    TraceFile::attach(stream.path(), "test", &selection.parse().unwrap(), Start::Now).unwrap()
}

fn drained(consumer: &mut Consumer) -> Vec<Record> {
    let mut out = Vec::new();
    consumer.drain(&mut out);
    out
}

fn said(message: &str, line: u64) -> Vec<Value> {
    vec![Value::Text(message.into()), Value::Unsigned(line), Value::Unsigned(7)]
}

#[test]
fn long_texts_and_bytes_come_back_beside_two_words() {
    let published = publish(1);
    let mut consumer = follow(&published.stream, "log");
    let bytes: Vec<u8> = (0..=255).collect();
    let texts = ["", "a", "/robot/arm/joint_states", "24 bytes, which are full", &"é".repeat(100)];
    on_a_thread("long", || {
        let local = published.stream.attach_thread("long").unwrap();
        let before = local.written();
        for (text, line) in texts.iter().zip(0..) {
            log::said(LongText::new(text), line, 7);
        }
        log::said(LongText::new(&"é".repeat(101)), 5, 7);
        log::said(("x".repeat(199) + "é").as_str().into(), 6, 7);
        assert_eq!(local.written() - before, 1 + 2 + 2 + 2 + 3 * 10, "a record for each 24 bytes");
        log::frame(0x1122, u64::MAX, -5, LongBytes::new(&bytes));
        log::frame(0x1122, 1, 2, LongBytes::new(&bytes.repeat(2)));
    });
    let records = drained(&mut consumer);
    let told = Told::of(&names(&published.stream), &records);
    let mut expected: Vec<Vec<Value>> = texts.iter().zip(0..).map(|(text, line)| said(text, line)).collect();
    expected.push(said(&("é".repeat(100) + "…"), 5));
    expected.push(said(&("x".repeat(199) + "…"), 6));
    let frame = |number, time, data| {
        vec![Value::Unsigned(0x1122), Value::Unsigned(number), Value::Signed(time), data]
    };
    expected.push(frame(u64::MAX, -5, Value::Bytes(bytes.clone())));
    expected.push(frame(1, 2, Value::CutBytes(bytes.clone())));
    assert_eq!(told.values, expected);
    let events = records.iter().filter(|record| !record.is_part());
    assert!(events.clone().all(|record| record.source == 1), "whose they are: {records:?}");
    assert!(records.iter().all(|record| record.cpu != Record::NO_CPU));
    assert_eq!(Value::CutBytes(vec![1, 0xff]).to_string(), "01ff…");
}

#[test]
fn a_declaration_says_the_bound_and_leaves_two_words() {
    let fields = &log::FAMILY.family().events[1].fields;
    let kinds: Vec<String> = fields.iter().map(|field| format!("{}: {}", field.name, field.kind)).collect();
    assert_eq!(kinds, ["about: u64", "number: u64", "time: i64", "data: bytes[256]"]);
    use talea_record::stream::declare::pack;
    let long = FieldKind::LongText(20);
    assert!(pack::<3>(&[long, FieldKind::U64, FieldKind::Text]).is_none());
    assert!(pack::<2>(&[FieldKind::Text, long]).is_some());
    assert!(pack::<4>(&[FieldKind::U64, FieldKind::U64, FieldKind::U8, long]).is_none());
    assert!(pack::<2>(&[long, FieldKind::LongBytes(1)]).is_none());
}

#[test]
fn writing_a_long_text_allocates_nothing() {
    let published = publish(1);
    let _consumer = follow(&published.stream, "log");
    let text = "m".repeat(250);
    on_a_thread("no allocation", || {
        let local = published.stream.attach_thread("no allocation").unwrap();
        let before = local.written();
        let allocated = measure(|| {
            for line in 0..1000 {
                log::said(LongText::new(&text), line, 1);
                log::frame(1, 2, 3, LongBytes::new(text.as_bytes()));
            }
        });
        assert_eq!(allocated.count_total, 0);
        assert_eq!(local.written() - before, 1000 * (10 + 12));
    });
}

/// A ring of 256 records, in which these texts come round at every place.
#[test]
fn what_is_overwritten_in_part_is_lost_as_a_whole() {
    let published = publish(1);
    for length in [1usize, 24, 25, 100, 200] {
        on_a_thread("overwritten", || {
            let local = published.stream.attach_thread("overwritten").unwrap();
            for more in 0..24 {
                let mut consumer = follow(&published.stream, "log");
                let before = local.written();
                let (mut written, number) = (Vec::new(), 100 + more);
                for line in 0..number {
                    let text = format!("{line:0>length$}").chars().rev().collect::<String>();
                    log::said(LongText::new(&text), line, 7);
                    written.push(said(&text, line.into()));
                    if line % 3 == more % 3 {
                        log::short(line.into());
                        written.push(vec![Value::Unsigned(line.into())]);
                    }
                }
                let told = Told::of(&names(&published.stream), &drained(&mut consumer));
                assert!(!told.values.is_empty());
                assert_eq!(told.values, written[written.len() - told.values.len()..]);
                let read = (told.values.len() + told.parts) as u64;
                assert_eq!(read + told.lost, local.written() - before, "records of {length} bytes");
                assert_eq!(consumer.lost(), told.lost);
            }
        });
    }
}

/// In rings that have no room for one, long texts are lost, and short events come.
#[test]
fn a_ring_that_is_smaller_than_a_text_has_none() {
    let published = publish_with(1, 4);
    let mut consumer = follow(&published.stream, "log");
    on_a_thread("small", || {
        let _local = published.stream.attach_thread("small").unwrap();
        for line in 0..5 {
            log::said(LongText::new(&"z".repeat(200)), line, 7);
        }
        log::short(9);
    });
    let told = Told::of(&names(&published.stream), &drained(&mut consumer));
    assert_eq!((told.values, told.parts), (vec![vec![Value::Unsigned(9)]], 0));
}

#[test]
fn parts_come_with_the_events_that_were_asked_for_and_with_no_others() {
    let published = publish(1);
    on_a_thread("selected", || {
        let _local = published.stream.attach_thread("selected").unwrap();
        let mut of_texts = follow(&published.stream, "log.said");
        let mut of_shorts = follow(&published.stream, "log.short,run.part");
        let mut without = follow(&published.stream, "log.said,-run.part");
        log::said("a text of more than a record".into(), 1, 7);
        log::frame(1, 2, 3, LongBytes::new(&[9; 30]));
        log::short(4);
        let names = names(&published.stream);
        for (consumer, values, parts) in [
            (&mut of_texts, vec![said("a text of more than a record", 1)], 2),
            (&mut of_shorts, vec![vec![Value::Unsigned(4)]], 0),
            (&mut without, vec![said("a text of more than a record", 1)], 2),
        ] {
            let told = Told::of(&names, &drained(consumer));
            assert_eq!((told.values, told.parts), (values, parts));
        }
    });
}

/// Threads write while their rings are read: records of one event stay together in the order of time of all.
#[test]
fn texts_of_several_threads_are_read_while_they_are_written() {
    const EACH: u32 = 3000;
    let published = publish(4);
    let mut consumer = follow(&published.stream, "log,run.thread");
    let names = names(&published.stream);
    let mut all = Vec::new();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u8)
            .map(|thread| {
                let stream = &published.stream;
                scope.spawn(move || {
                    let _local = stream.attach_thread("writer").unwrap();
                    for line in 0..EACH {
                        let text = format!("{thread} {line} {}", "-".repeat(line as usize % 190));
                        log::said(LongText::new(&text), line, thread);
                    }
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            consumer.poll(clock::now() - talea_time::Duration::from_micros(50), &mut all);
        }
    });
    all.extend(drained(&mut consumer));
    let told = Told::of(&names, &all);
    for values in &told.values {
        let [Value::Text(text), Value::Unsigned(line), Value::Unsigned(thread)] = &values[..] else {
            panic!("{values:?}");
        };
        let expected = format!("{thread} {line} {}", "-".repeat(*line as usize % 190));
        assert_eq!(*text, expected);
    }
    let records_of = |line: u32| 1 + (format!("0 {line} ").len() + line as usize % 190).div_ceil(24);
    let sent = 4 * (1 + (0..EACH).map(records_of).sum::<usize>());
    let threads = all.iter().filter(|record| record.event == Event::THREAD).count();
    assert_eq!(threads + told.values.len() + told.parts + told.lost as usize, sent);
}

/// As a process leaves it that is killed in the midst of an event: the event is not there, and whoever writes on begins anew.
#[test]
fn parts_without_their_event_are_lost_and_one_that_began_before_the_reader_counts_for_nobody() {
    let published = publish(1);
    let names = || names(&published.stream);
    on_a_thread("killed", || {
        let mut local = published.stream.attach_thread("killed").unwrap();
        let part = |number| Record {
            event: Event::PART,
            ..event::EventPart { first: [1; 8], second: [2; 8], third: [3; 8], bytes: 60, number }
                .at(clock::now(), 0)
        };
        let mut before = follow(&published.stream, "log");
        (1..=2).for_each(|number| local.record(part(number)));
        let mut meanwhile = follow(&published.stream, "log");
        assert_eq!(drained(&mut before), []);
        log::short(1);
        let mut after = follow(&published.stream, "log");
        log::said("whole".into(), 2, 7);
        (1..=3).for_each(|number| local.record(part(number)));
        (2..=3).for_each(|number| local.record(part(number)));
        log::said("again".into(), 3, 7);
        let (short, texts) = (vec![Value::Unsigned(1)], [said("whole", 2), said("again", 3)]);
        for (consumer, values, lost) in [
            (&mut before, [vec![short.clone()], texts.to_vec()].concat(), 2 + 5),
            (&mut meanwhile, [vec![short], texts.to_vec()].concat(), 5),
            (&mut after, texts.to_vec(), 5),
        ] {
            let told = Told::of(&names(), &drained(consumer));
            assert_eq!((told.values, told.lost), (values, lost));
        }
        // The first parts of one more, read by somebody who comes in its midst.
        local.record(part(1));
        let mut late = follow(&published.stream, "log");
        (2..=3).for_each(|number| local.record(part(number)));
        log::short(8);
        let told = Told::of(&names(), &drained(&mut late));
        assert_eq!((told.values, told.lost), (vec![vec![Value::Unsigned(8)]], 0));
    });
}

/// A text of four parts between two short events, as a log has them.
fn text_between_shorts() -> Vec<Record> {
    let published = publish(1);
    let mut consumer = follow(&published.stream, "log");
    on_a_thread("logged", || {
        let _local = published.stream.attach_thread("logged").unwrap();
        log::short(1);
        log::said(LongText::new(&"t".repeat(90)), 2, 7);
        log::short(3);
    });
    drained(&mut consumer)
}

fn through_a_log(records: &[Record]) -> (Vec<Record>, Damage) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("log");
    let mut log = LogWriter::create(&path, &Metadata::bare("test")).unwrap();
    log.enter_family(log::FAMILY.family()).unwrap();
    records.iter().for_each(|record| log.record(*record));
    log.finish().unwrap();
    let mut read = Vec::new();
    let replayed = TraceFile::open(&path).unwrap().replay(&mut read).unwrap();
    (read, replayed.damage)
}

#[test]
fn logs_without_a_part_or_without_the_event_are_damaged_and_the_rest_is_read() {
    let good = text_between_shorts();
    assert_eq!(
        good.iter().map(|record| record.is_part()).collect::<Vec<_>>(),
        [false, true, true, true, true, false, false]
    );
    assert_eq!(through_a_log(&good), (good.clone(), Damage::default()));
    let numbers = |records: &[Record]| -> Vec<Event> {
        let events = records.iter().map(|record| record.event);
        events.filter(|event| ![Event::PART, Event::LOST].contains(event)).collect()
    };
    for missing in 1..=4 {
        let mut records = good.clone();
        records.remove(missing);
        let (read, damage) = through_a_log(&records);
        assert_eq!(numbers(&read), [log::short::EVENT; 2], "without part {missing}");
        let first = if missing == 4 { Fault::Parts } else { Fault::Part };
        assert_eq!(damage.first.map(|(_, fault)| fault), Some(first));
        // Those behind the missing one, and the event.
        assert_eq!(damage.impossible, 4 - missing as u64 + 1);
    }
    let mut beheaded = good.clone();
    beheaded.remove(5);
    let (read, damage) = through_a_log(&[&beheaded[..], &good[..]].concat());
    assert_eq!(numbers(&read).len(), 2 + 3);
    assert_eq!((damage.impossible, damage.first.unwrap().1), (1, Fault::Part));
    let mut longer = good.clone();
    longer[5].arg = 201;
    let (read, damage) = through_a_log(&longer);
    assert_eq!((numbers(&read).len(), damage.first.unwrap().1), (2, Fault::Value));
    let mut shorter = good.clone();
    shorter[5].arg = 89;
    let (read, damage) = through_a_log(&shorter);
    assert_eq!((numbers(&read).len(), damage.first.unwrap().1), (2, Fault::Parts));
    assert!(Fault::Parts.to_string().contains("parts of its long field are missing"));
}

/// Whatever stands in records and in which order: no panic, and each record is delivered, left out or lost.
#[test]
fn any_order_of_parts_and_events_is_read() {
    let good = text_between_shorts();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for _ in 0..300 {
        let mut records: Vec<Record> = (0..draw(20)).map(|_| good[draw(good.len())]).collect();
        for record in &mut records {
            if draw(4) == 0 {
                record.arg = draw(usize::from(u16::MAX)) as u16;
            }
            if draw(6) == 0 {
                record.source = draw(usize::from(u16::MAX)) as u16;
            }
        }
        let (read, damage) = through_a_log(&records);
        let (mut parts, names) = (EventParts::default(), {
            let mut names = NameSpace::default();
            names.add(log::FAMILY.family().clone()).unwrap();
            names
        });
        for record in &read {
            parts.learn(record);
            let fields = names.event(record.event).unwrap().1.fields.iter();
            let values: Vec<Value> = fields.map(|field| field.value(record, parts.of(record))).collect();
            assert!(!values.contains(&Value::Missing), "{record:?} {damage:?}");
        }
    }
}

/// Rings as they are found in files: where the memory is damaged, the reader says what is lost.
#[test]
fn damaged_rings_are_read() {
    for (event, changed) in [(false, 3), (true, 0), (true, 0xfe40), (true, 0xfe01), (false, 0)] {
        let published = publish(1);
        let mut consumer = follow(&published.stream, "log");
        on_a_thread("damaged", || {
            let mut local = published.stream.attach_thread("damaged").unwrap();
            let part = |number, bytes| {
                event::EventPart { first: [1; 8], second: [2; 8], third: [3; 8], bytes, number }
                    .at(clock::now(), 0)
            };
            (1..=3).for_each(|number| local.record(part(if event { number } else { changed }, 70)));
            let source = if event { changed } else { 0xfe03 };
            local.record(Record { event: log::said::EVENT, source, arg: 70, ..part(0, 0) });
            log::short(6);
        });
        let records = drained(&mut consumer);
        let last = records.last().unwrap();
        assert_eq!(last.event, log::short::EVENT);
        assert!(consumer.lost() >= 3, "{records:?}");
        assert!(records.iter().any(|record| record.event == Event::LOST));
    }
}

#[test]
fn a_text_without_a_ring_is_counted_once() {
    let published = publish(0);
    let _consumer = follow(&published.stream, "log");
    on_a_thread("ringless", || log::said(LongText::new(&"r".repeat(200)), 1, 7));
    let unringed = publish::Listed::at(published.stream.path()).content.unwrap().unringed;
    assert_eq!(unringed, 1);
}

/// Records that bear instants of others may be ahead of the clock; time does not go back in a ring for that.
#[test]
fn a_text_has_no_instant_before_the_record_before_it() {
    let published = publish(1);
    let mut consumer = follow(&published.stream, "log");
    on_a_thread("ahead", || {
        let mut local = published.stream.attach_thread("ahead").unwrap();
        let (time, source) = (clock::now() + talea_time::Duration::from_secs(3600), Record::NO_LANE);
        let (event, cpu) = (log::short::EVENT, Record::NO_CPU);
        local.record(Record { time, causal: 0, words: [0; 2], event, source, cpu, arg: 0 });
        log::said("of no instant before".into(), 1, 7);
    });
    let records = drained(&mut consumer);
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|record| record.time == records[0].time), "{records:?}");
}
