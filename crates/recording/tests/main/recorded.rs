//! Recording from outside: what is in the file, and when.

use std::path::Path;
use talea_record::stream::register;
use talea_record::stream::*;
use talea_record::*;
use talea_recording::recording::{DRAFT_AFTER, Recording, RecordingError, RecordingOptions, SETTLING};
use talea_samples::*;

const SHAPE: RingShape<'static> = RingShape { writers: &[], spare: 3, capacity: 64, later: 0 };
const MOMENT: talea_time::Duration = talea_time::Duration::from_millis(1);

fn selection(text: &str) -> Selection {
    text.parse().unwrap()
}

fn record_into(file: &Path, name: &str) -> Recording {
    Recording::new(file, name, RecordingOptions::default()).unwrap()
}

/// The system and the times of the records in a file.
fn content(file: &Path) -> (String, Vec<i64>) {
    let trace = TraceFile::open(file).unwrap();
    let times = trace.records().unwrap().map(|record| record.unwrap().time.as_nanos()).collect();
    (trace.metadata().system.clone(), times)
}

#[test]
fn a_recorder_that_waits_for_tables_leaves_a_draft_should_it_be_killed() {
    let place = tempfile::tempdir().unwrap();
    let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
    let plain = streams.publish("plain", &Metadata::bare("plain"), SHAPE).unwrap();
    let file = place.path().join("recorded.talea");
    let mut recording = record_into(&file, "all of it");
    recording.follow(plain.path(), &selection("job"), Start::Now).unwrap();
    let mut writer = plain.rings.claim("w").unwrap();
    writer.record(event(Event::START.0, ms(0)));
    recording.poll(at(ms(0)) + SETTLING + MOMENT).unwrap();
    assert!(!file.exists(), "the tables may come at once");
    recording.poll(at(ms(0)) + DRAFT_AFTER + MOMENT).unwrap();
    assert_eq!(content(&file), ("all of it".into(), vec![ms(0)]));
    writer.record(event(Event::COMPLETE.0, ms(600)));
    recording.poll(at(ms(600)) + SETTLING + MOMENT).unwrap();
    assert_eq!(content(&file), ("all of it".into(), vec![ms(0), ms(600)]), "each poll adds what has settled");

    // The draft has everything, so it becomes the log of the system whose tables come now.
    let system = streams.publish("system", &metadata(), SHAPE).unwrap();
    register(&family(0xb8, "in_both"), &[]).unwrap();
    recording.follow(system.path(), &selection("job"), Start::Now).unwrap();
    let mut other = system.rings.claim("w").unwrap();
    other.record(event(Event::START.0, ms(500)));
    recording.poll(at(ms(700))).unwrap();
    assert_eq!(content(&file), ("test".into(), vec![ms(0), ms(500), ms(600)]));
    writer.record(event(Event::START.0, ms(900)));
    assert_eq!(recording.finish().unwrap().records, 4);
    assert_eq!(content(&file).1, [ms(0), ms(500), ms(600), ms(900)]);
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left.len(), 2, "nothing else stays behind: {left:?}");
}

#[test]
fn families_that_are_registered_later_are_recorded_from_then_on() {
    let place = tempfile::tempdir().unwrap();
    let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
    let stream = streams.publish("growing", &Metadata::bare("growing"), SHAPE).unwrap();
    let mut recording = record_into(&place.path().join("recorded.talea"), "");
    let wanted = selection("job.start,recorded_later.fix,recorded_never");
    let refused = recording.follow(stream.path(), &wanted, Start::Now).unwrap_err();
    assert!(matches!(refused, RecordingError::Attach { source: AttachError::Selection(_), .. }), "{refused}");
    assert!(!recording.follows_any());

    recording.follow_as_it_grows(stream.path(), &wanted, Start::Now).unwrap();
    let unknown = |recording: &Recording| -> Vec<String> {
        recording.unknown().into_iter().map(|unknown| unknown.name).collect()
    };
    assert_eq!(unknown(&recording), ["recorded_later.fix", "recorded_never"]);
    let consumers = || streams.find("growing").unwrap().content.unwrap().consumers;
    let [consumer] = &consumers()[..] else { panic!() };
    assert_eq!((consumer.name.as_str(), consumer.pid), ("record into recorded.talea", std::process::id()));
    assert_eq!(consumer.wants, ["run.run-start", "run.run-end", "job.start"]);

    register(&family(0xb7, "recorded_later"), &[]).unwrap();
    recording.poll(at(ms(0))).unwrap();
    assert_eq!(unknown(&recording), ["recorded_never"]);
    assert_eq!(consumers()[0].wants, ["run.run-start", "run.run-end", "job.start", "recorded_later.fix"]);
    let mut writer = stream.rings.claim("w").unwrap();
    writer.record(event(0xb700, ms(1)));
    writer.record(event(0xb701, ms(2)));
    assert_eq!(recording.finish().unwrap().records, 1, "the fix, and not the reset");
}

/// The metadata of the file and its events.
fn told(file: &Path) -> (Metadata, Vec<Event>) {
    let trace = TraceFile::open(file).unwrap();
    let events = trace.records().unwrap().map(|record| record.unwrap().event).collect();
    (trace.metadata().clone(), events)
}

/// A prepared run: the instant of its start is not known yet.
fn unstarted() -> Metadata {
    Metadata { start: at(0), origin: Origin::Threads { realtime: true }, ..metadata() }
}

#[test]
fn a_recording_has_the_start_of_the_run_whatever_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
    let file = place.path().join("recorded.talea");
    let stream = streams.publish("prepared", &unstarted(), SHAPE).unwrap();
    let mut recording = record_into(&file, "");
    recording.follow(stream.path(), &selection("job.start"), Start::Now).unwrap();
    stream.rings.set_run_start(at(ms(7)));
    let mut writer = stream.rings.claim("w").unwrap();
    for (number, time) in [(Event::RUN_START, 7), (Event::RELEASE, 7), (Event::START, 8), (Event::RUN_END, 9)]
    {
        writer.record(Record { source: 0, ..event(number.0, ms(time)) });
    }
    let recorded = recording.finish().unwrap();
    assert_eq!((recorded.records, recorded.unasked), (3, 2), "the marks were not asked for");
    let (metadata, events) = told(&file);
    assert_eq!((metadata.start, events), (at(ms(7)), vec![Event::RUN_START, Event::START, Event::RUN_END]));
    let noted: Vec<String> = metadata.recorded.unwrap().into_iter().collect();
    assert_eq!(noted, ["job.start", "run.run-end", "run.run-start"]);

    // To a run under way its mark does not come any more.
    let mut recording = record_into(&file, "");
    recording.follow(stream.path(), &selection("job,-job.preempt"), Start::Now).unwrap();
    writer.record(Record { source: 0, ..event(Event::START.0, ms(11)) });
    assert_eq!(recording.finish().unwrap().unasked, 0);
    let (metadata, events) = told(&file);
    assert_eq!((metadata.start, events), (at(ms(7)), vec![Event::START]));
}

#[test]
fn a_run_that_starts_when_its_log_has_begun_is_counted_from_its_mark() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("begun.talea");
    let write = |events: &[(Event, i64)]| {
        let mut log = LogWriter::create(&file, &unstarted()).unwrap();
        events
            .iter()
            .for_each(|(number, time)| log.record(Record { source: 0, ..event(number.0, ms(*time)) }));
        log.finish().unwrap();
        told(&file).0.start
    };
    assert_eq!(write(&[(Event::LOST, 3), (Event::RUN_START, 7), (Event::RELEASE, 8)]), at(ms(7)));
    assert_eq!(write(&[(Event::LOST, 3), (Event::LOST, 4)]), at(ms(3)), "no run: from the first record");
    assert_eq!(write(&[]), at(0));
}
