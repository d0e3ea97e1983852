//! Ring files and logs through their public face.

use proptest::prelude::*;
use std::fs;
use talea_record::damage::Ending;
use talea_record::*;
use talea_samples::*;

#[test]
fn a_ring_file_reads_back_what_its_writers_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let mut file = RingFile::create(&path, &metadata(), &writers(3), 100).unwrap();
    file.prefault();
    let mut ring_writers: Vec<_> = (0..2).map(|index| file.writer(index)).collect();
    for n in 0..150 {
        ring_writers[(n % 2) as usize].record(numbered(n));
    }
    let opened = TraceFile::open(&path).unwrap();
    assert_eq!((opened.kind(), opened.metadata()), (TraceKind::Rings, &metadata()));
    let records: Vec<_> = opened.records().unwrap().map(Result::unwrap).collect();
    assert_eq!(records, (0..150).map(numbered).collect::<Vec<_>>());

    let states = || opened.rings().iter().map(RingReader::state).collect::<Vec<_>>();
    assert_eq!(states(), [RingState::Open, RingState::Open, RingState::Unused]);
    ring_writers.pop();
    assert_eq!(states(), [RingState::Open, RingState::Closed, RingState::Unused]);
    assert_eq!(opened.rings()[2].name(), "writer 2");
    assert_eq!(opened.rings()[0].written(), 75);
}

#[test]
fn overwritten_records_are_counted_where_all_rings_begin_to_have_theirs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let mut file = RingFile::create(&path, &metadata(), &writers(2), 16).unwrap();
    let (mut first, mut second) = (file.writer(0), file.writer(1));
    // Whatever this one belongs to, the other ring's part of that is gone.
    first.record(numbered(3));
    for n in 10..110 {
        second.record(numbered(n));
    }
    first.record(numbered(110));
    let mut records = Vec::new();
    TraceFile::open(&path).unwrap().replay(&mut records).unwrap();
    let (cpu, time) = (Record::NO_CPU, at(95));
    let lost = Record { time, causal: 0, words: [85, 0], event: Event::LOST, source: 1, cpu, arg: 0 };
    let expected: Vec<_> = std::iter::once(lost).chain((95..111).map(numbered)).collect();
    assert_eq!(records, expected);
}

#[test]
fn a_name_too_long_is_cut_at_a_character() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["ä".repeat(100), String::new()];
    let file = RingFile::create(&directory.path().join("rings"), &metadata(), &names, 2).unwrap();
    let read: Vec<_> = file.readers().iter().map(RingReader::name).collect();
    assert_eq!(read, ["ä".repeat(64), String::new()]);
}

#[test]
#[should_panic(expected = "ring 0 has its writer already")]
fn a_ring_has_one_writer() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = RingFile::create(&directory.path().join("rings"), &metadata(), &writers(1), 2).unwrap();
    let _writers = (file.writer(0), file.writer(0));
}

#[test]
fn impossible_ring_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let create = |path: &str, names: &[String], capacity| {
        RingFile::create(&directory.path().join(path), &metadata(), names, capacity).map(drop).unwrap_err()
    };
    assert!(matches!(create("a", &[], 2), CreateError::Writers(0)));
    assert!(matches!(create("b", &writers(1), usize::MAX), CreateError::Capacity(_)));
    assert!(matches!(create("c", &writers(1), 1 << 58), CreateError::Capacity(_)));
    assert!(matches!(create("no/such/directory", &writers(1), 2), CreateError::Io { .. }));
    // More than any file system here holds, less than a file may have.
    let error = create("d", &writers(1), 1 << 57);
    assert!(matches!(error, CreateError::NoSpace { .. } | CreateError::Io { .. }), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing half-made is left");
}

/// A reader in another thread, at its own pace, gets every record whole, in order, or counted.
#[test]
fn reading_while_writing_loses_only_what_it_counts() {
    const RECORDS: u64 = 300_000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let mut file = RingFile::create(&path, &metadata(), &writers(1), 64).unwrap();
    let mut reader = TraceFile::open(&path).unwrap().rings().remove(0);
    let mut writer = file.writer(0);
    let thread = std::thread::spawn(move || (0..RECORDS).for_each(|n| writer.record(numbered(n))));
    let mut next = 0;
    while next < RECORDS {
        // Asked before the ring: what is closed and then found empty stays empty.
        let state = reader.state();
        match reader.take() {
            Some(record) if record.event == Event::LOST => next += record.words[0],
            Some(record) => {
                assert_eq!(record, numbered(next));
                next += 1;
            }
            None => assert_ne!(state, RingState::Closed, "{next} of {RECORDS} records accounted for"),
        }
    }
    thread.join().unwrap();
}

#[test]
fn a_live_merge_waits_for_the_horizon() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = RingFile::create(&directory.path().join("rings"), &metadata(), &writers(2), 64).unwrap();
    let mut merge = Merge::new(file.readers());
    let (mut first, mut second) = (file.writer(0), file.writer(1));
    let mut out = Vec::new();
    first.record(numbered(1));
    first.record(numbered(5));
    assert_eq!(merge.poll(at(5), &mut out), 1, "the horizon itself waits");
    second.record(numbered(3));
    second.record(numbered(5));
    assert_eq!(merge.poll(at(6), &mut out), 3);
    second.record(numbered(2));
    first.record(numbered(9));
    assert_eq!(merge.drain(&mut out), 2);
    assert_eq!(merge.late(), 1);
    let times: Vec<_> = out.iter().map(|record| record.time.as_nanos()).collect();
    assert_eq!(times, [1, 3, 5, 5, 2, 9]);
}

#[test]
fn files_of_several_processes_merge_if_they_tell_of_one_run() {
    let directory = tempfile::tempdir().unwrap();
    let open = |name: &str, metadata: &Metadata, times: &[u64]| {
        let path = directory.path().join(name);
        let mut file = RingFile::create(&path, metadata, &writers(1), 8).unwrap();
        let mut writer = file.writer(0);
        times.iter().for_each(|time| writer.record(numbered(*time)));
        TraceFile::open(&path).unwrap()
    };
    let mut other = metadata();
    other.origin = Origin::Threads { realtime: false };
    let mut files = vec![open("a", &metadata(), &[1, 4]), open("b", &other, &[2, 3])];
    let mut out = Vec::new();
    Merge::of_files(&files).unwrap().drain(&mut out);
    assert_eq!(out, [1, 2, 3, 4].map(numbered));
    other.system = "another".into();
    files.push(open("c", &other, &[]));
    assert_eq!(Merge::of_files(&files).unwrap_err().index, 2);
}

#[test]
fn a_log_is_read_in_order_whatever_came_late() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let config = ProptestConfig::with_cases(48);
    proptest!(config, |(lateness in prop::collection::vec(prop_oneof![9 => Just(0u64), 1 => 0..5000u64], 0..1500),
               killed: bool)| {
        let late = |(n, late): (usize, &u64)| Record { cpu: n as u16, ..numbered((10 * n as u64).saturating_sub(*late)) };
        let written: Vec<Record> = lateness.iter().enumerate().map(late).collect();
        let mut log = LogWriter::create(&path, &metadata()).unwrap();
        written.iter().for_each(|record| log.record(*record));
        let mut expected = written.clone();
        if killed {
            log.flush();
            // What came after the last seal is in the order in which it came, as far as nothing is known of it.
            expected.truncate(written.len() / 256 * 256);
            let whole = fs::read(&path).unwrap();
            let unsealed = written.len() % 256 * Record::BYTES;
            fs::write(&path, &whole[..whole.len() - unsealed]).unwrap();
        } else {
            log.finish().unwrap();
        }
        expected.sort_by_key(|record| record.time);
        let records: Result<Vec<Record>, TraceError> = TraceFile::open(&path).unwrap().records().unwrap().collect();
        prop_assert_eq!(records.unwrap(), expected);
    });
}

#[test]
fn what_is_behind_by_ten_seconds_is_put_in_order_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let mut log = LogWriter::create(&path, &metadata()).unwrap();
    let long = 10_000_000_000;
    let times = [0, long, 1, long - 1];
    times.iter().for_each(|time| log.record(Record { time: at(*time), ..numbered(1) }));
    log.finish().unwrap();
    let mut records = Vec::new();
    TraceFile::open(&path).unwrap().replay(&mut records).unwrap();
    let in_order: Vec<i64> = records.iter().map(|record| record.time.as_nanos()).collect();
    assert_eq!(in_order, [0, 1, long - 1, long]);
}

#[test]
fn a_log_reads_back_and_a_cut_tail_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let mut log = LogWriter::create(&path, &metadata()).unwrap();
    (0..3000).for_each(|n| log.record(numbered(n)));
    assert_eq!(log.finish().unwrap(), 3000);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 15]).unwrap();
    let file = TraceFile::open(&path).unwrap();
    let damage = file.records().unwrap().damage();
    assert_eq!((file.kind(), damage.cut_bytes, damage.ending), (TraceKind::Log, 25, Ending::Open));
    let records: Vec<_> = file.records().unwrap().map(Result::unwrap).collect();
    assert_eq!(records, (0..3000).map(numbered).collect::<Vec<_>>(), "the last seal alone is cut");
    // Cut between records, too.
    fs::write(&path, &bytes[..bytes.len() - 5 * Record::BYTES]).unwrap();
    let mut records = Vec::new();
    let replayed = TraceFile::open(&path).unwrap().replay(&mut records).unwrap();
    assert_eq!((records.len(), replayed.damage.cut_bytes, replayed.damage.ending), (2996, 0, Ending::Open));
    assert!(replayed.damage.is_none() && replayed.damage.sentences().len() == 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Merging is sorting by time, ring and position.
    #[test]
    fn merging_rings_is_a_stable_sort(rings in prop::collection::vec(prop::collection::vec(0u64..50, 0..300), 1..5)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rings");
        let mut file = RingFile::create(&path, &metadata(), &writers(rings.len()), 512).unwrap();
        let mut expected = Vec::new();
        for (ring, mut times) in rings.into_iter().enumerate() {
            times.sort_unstable();
            let mut writer = file.writer(ring);
            for (position, time) in times.into_iter().enumerate() {
                let record = Record { cpu: ring as u16, arg: position as u16, ..numbered(time) };
                writer.record(record);
                expected.push(record);
            }
        }
        expected.sort_by_key(|record| (record.time, record.cpu, record.arg));
        let mut records = Vec::new();
        TraceFile::open(&path).unwrap().replay(&mut records).unwrap();
        prop_assert_eq!(records, expected);
    }
}
