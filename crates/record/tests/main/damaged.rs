//! Records that cannot be are left out and told; changed bytes never go unnoticed.

use std::fs;
use talea_record::damage::{Damage, Ending, Fault, Place};
use talea_record::event::{Deliver, Drop, EdgeChange, Member, Publish, Push, Steal, VpGrant};
use talea_record::*;
use talea_samples::*;
use talea_time::Duration;

/// What a log of these records reads as.
fn through_a_log(records: &[Record]) -> (Vec<Record>, Damage) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let mut log = LogWriter::create(&path, &metadata()).unwrap();
    records.iter().for_each(|record| log.record(*record));
    log.finish().unwrap();
    read(&path)
}

fn read(path: &std::path::Path) -> (Vec<Record>, Damage) {
    let mut records = Vec::new();
    let replayed = TraceFile::open(path).unwrap().replay(&mut records).unwrap();
    assert_eq!(replayed.records, records.len() as u64);
    (records, replayed.damage)
}

#[test]
fn an_undamaged_run_is_delivered_as_it_is() {
    let (records, damage) = through_a_log(&small_run());
    assert_eq!((records, damage), (small_run(), Damage::default()));
}

#[test]
fn every_record_that_cannot_be_is_left_out_and_named() {
    let good = small_run();
    let start = good[4];
    let record = |event, source, words, arg| Record {
        event,
        source,
        words,
        arg,
        causal: 0,
        cpu: Record::NO_CPU,
        ..start
    };
    let unknown_job = job(Event::START, ms(10), 7, 0, [0, 0], 1);
    let abort = job(Event::ABORT, ms(10), 0, 0, [0, ms(20)], 0);
    let (known, unknown) = (start.job(), unknown_job.job());
    let deliver = Deliver { job: known, from: None, publication: None, number: 0, lane: 0 };
    let grant = VpGrant { edge: 0, by: None, trigger: Trigger::Thread.into() };
    let member = Member { tid: 7, started_by: 0, edge: Some(2), node: 0, role: MemberRole::Scheduled.into() };
    let steal = Steal { amount: Duration::from_nanos(1), from: at(0), to: at(ms(1)) };
    let cases = [
        (Record { event: Event(0), ..start }, Fault::Event(Event(0))),
        (Record { event: Event(0x0199), ..start }, Fault::Event(Event(0x0199))),
        (Record { event: Event(0x4001), ..start }, Fault::Event(Event(0x4001))),
        (Record { cpu: 40_000, ..start }, Fault::Processor(40_000)),
        (Record { source: 9, ..start }, Fault::Source(9)),
        (Record { source: 9, ..unknown_job }, Fault::Source(9)),
        (unknown_job, Fault::Operation(7)),
        (job(Event::RELEASE, ms(10), 0, 1 << 40, [ms(10), ms(20)], 0), Fault::Instance(1 << 40)),
        (Record { words: [i64::MIN as u64, 0], ..start }, Fault::Value),
        (Record { time: at(-5), ..start }, Fault::Time(at(-5))),
        (Record { time: at(i64::MAX), ..start }, Fault::Time(at(i64::MAX))),
        (Record { time: at(ms(3_600_000)), ..start }, Fault::Time(at(ms(3_600_000)))),
        (record(Event::RUN_START, 3, [0, 0], 0), Fault::Source(3)),
        (record(Event::TIMER, 3, [0, 0], 0), Fault::Source(3)),
        (record(Event::THREAD, 0, [7, 0], 9), Fault::Value),
        (record(Event::THREAD, 0, [7, 5], 1), Fault::Value),
        (record(Event::COST, 0, [5, 1], 17), Fault::Value),
        (record(Event::COST, 0, [u64::MAX, 1], 1), Fault::Value),
        (record(Event::LOST, 0, [u64::MAX, 0], 0), Fault::Value),
        (Steal { from: at(ms(9)), ..steal }.at(start.time, 0), Fault::Value),
        (Steal { amount: Duration::from_nanos(-1), ..steal }.at(start.time, 0), Fault::Value),
        (record(Event::SWITCH, 4, [0, 0], 0), Fault::Source(4)),
        (record(Event::VIOLATION, 4, [0, 1], 1), Fault::Source(4)),
        // The system has no schedulers, values or channels.
        (Record { arg: 2, ..abort }, Fault::Value),
        (grant.at(start.time, 0), Fault::Source(0)),
        (member.at(start.time, 0), Fault::Value),
        (Publish { job: known, output: 0, visible: start.time, lane: 0 }.at(start.time, 0), Fault::Value),
        (
            Drop { job: known, input: 0, lane: 0, why: DropReason::NoRoom.into() }.at(start.time, 0),
            Fault::Value,
        ),
        (Push { job: known, publication: 0, lane: 0 }.at(start.time, 0), Fault::Value),
        (Deliver { publication: Some(0), ..deliver }.at(start.time, 0), Fault::Value),
        (Deliver { from: Some(unknown), ..deliver }.at(start.time, 0), Fault::Operation(7)),
        (Deliver { lane: 9, ..deliver }.at(start.time, 0), Fault::Source(9)),
    ];
    for (bad, fault) in cases {
        let mut records = good.clone();
        records.insert(5, bad);
        let (mut read, damage) = through_a_log(&records);
        let lost = read.remove(5);
        assert_eq!(
            (lost.event, lost.source, lost.words),
            (Event::LOST, Record::DAMAGED, [1, good[4].time.as_nanos() as u64])
        );
        assert_eq!(read, good, "{fault:?}");
        let (place, found) = damage.first.expect("it is told");
        assert_eq!((damage.impossible, found), (1, fault));
        let Place::Byte(byte) = place else { panic!("{place:?}") };
        assert_eq!(byte % 8, 0);
        let told = damage.sentences();
        assert!(told[0].starts_with("1 record cannot be and is left out, the first at byte "), "{told:?}");
    }
}

/// Records of traces from before it was recorded who changes a hierarchy have zeros there.
#[test]
fn a_change_by_whom_nobody_knows_is_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let mut metadata = metadata();
    let guarantee = "NULL".to_owned();
    metadata.edges = vec![EdgeEntry { node: 0, parent: "FP".into(), child: "nav".into(), guarantee }];
    let mut records = small_run();
    let old = Record { event: Event::EDGE_CHANGE, source: 0, words: [0, 0], arg: 2, causal: 0, ..records[4] };
    records.insert(5, old);
    let mut log = LogWriter::create(&path, &metadata).unwrap();
    records.iter().for_each(|record| log.record(*record));
    log.finish().unwrap();
    assert_eq!(read(&path), (records.clone(), Damage::default()));
    let change = EdgeChange::read(&old).unwrap();
    assert_eq!((change.by, change.why), (ChangeAuthor::Unknown.into(), ChangeReason::Unknown.into()));
}

/// The last record has none after it that could confirm its time.
#[test]
fn a_pause_is_no_damage() {
    let mut records = small_run();
    let end = records.len() - 1;
    records[end].time = at(ms(40 * 24 * 3_600_000));
    let (read, damage) = through_a_log(&records);
    assert_eq!((read, damage), (records.clone(), Damage::default()));
    for (index, record) in records.iter_mut().enumerate().skip(10) {
        record.time = at(record.time.as_nanos() + ms(3_600_000) * (index as i64 / 15));
    }
    assert_eq!(through_a_log(&records), (records, Damage::default()));
}

#[test]
fn damaged_rings_are_told_by_their_number() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let mut file = RingFile::create(&path, &metadata(), &writers(2), 64).unwrap();
    let mut writer = file.writer(1);
    let mut records = small_run();
    records.insert(3, Record { source: 77, ..records[3] });
    records.iter().for_each(|record| writer.record(*record));
    drop(writer);
    let (read, damage) = read(&path);
    assert_eq!(read, small_run());
    assert_eq!((damage.impossible, damage.first), (1, Some((Place::Ring(1), Fault::Source(77)))));
    assert_eq!(damage.ending, Ending::Whole, "rings have no end");
}

/// A changed bit makes another run of a log; if it does not, nothing else tells of it.
#[test]
fn no_changed_byte_of_a_log_goes_unnoticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let mut log = LogWriter::create(&path, &metadata()).unwrap();
    let copies = 15;
    let run = small_run();
    let all: Vec<Record> = (0..copies).flat_map(|_| run.iter().copied()).collect();
    all.iter().for_each(|record| log.record(*record));
    log.finish().unwrap();
    let mut in_order = all;
    in_order.sort_by_key(|record| record.time);
    let bytes = fs::read(&path).unwrap();
    let directory_begins = u64::from_le_bytes(bytes[96..104].try_into().unwrap()) as usize;
    let data_begins = u64::from_le_bytes(bytes[48..56].try_into().unwrap()) as usize;
    let of_head = (0..directory_begins + 8).step_by(3);
    for at in of_head.chain((data_begins..bytes.len()).step_by(13)) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&path, &changed).unwrap();
        let mut records = Vec::new();
        let replayed = TraceFile::open(&path).and_then(|file| file.replay(&mut records));
        let is_told = match replayed {
            Ok(replayed) => !replayed.damage.is_none() || replayed.damage.ending == Ending::Open,
            Err(_) => true,
        };
        assert!(is_told || records == in_order, "byte {at}");
    }
}
