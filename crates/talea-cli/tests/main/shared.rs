//! What schedules, pictures and statistics say of a processor that jobs shared when nobody saw which of them ran.

use crate::support::{Done, TRACE, example, folder, run, within};
use std::fs;
use std::path::Path;
use talea_record::{Event, Metadata, Origin, Sink, TraceFile};

/// A simulated run as threads of this kind would have recorded it, which do not see each other take a processor.
fn recorded_as(place: &tempfile::TempDir, realtime: bool) -> String {
    let out = within(place, "simulated");
    run(&["sim", &example("overload.toml"), "--for", "1s", "--fail-on", "never", "--out", &out]).exits(0);
    let simulated = TraceFile::open(&Path::new(&out).join(TRACE)).expect("just written");
    let metadata = Metadata { origin: Origin::Threads { realtime }, ..simulated.metadata().clone() };
    let file = within(place, "recorded.talea");
    let mut log = talea_record::LogWriter::create(Path::new(&file), &metadata).expect("a new file");
    for record in simulated.records().expect("readable") {
        let record = record.expect("undamaged");
        if ![Event::PREEMPT, Event::RESUME].contains(&record.event) {
            log.record(record);
        }
    }
    log.finish().expect("there is room");
    file
}

/// The schedule and the picture, and what was said about them.
fn exported(place: &tempfile::TempDir, file: &str) -> (String, String, Done) {
    let (schedule, picture) = (within(place, "schedule.csv"), within(place, "picture.svg"));
    let done = run(&["trace", "export", file, "--schedule", &schedule, "--svg", &picture]).exits(0);
    let read = |path: &str| fs::read_to_string(path).expect("just written");
    (read(&schedule), read(&picture), done)
}

#[test]
fn jobs_that_share_unseen_are_given_nothing_as_a_fact() {
    let place = folder();
    let file = recorded_as(&place, false);
    let (schedule, picture, done) = exported(&place, &file);
    assert!(schedule.lines().any(|row| row.ends_with(",local,0,?,?,")), "{schedule}");
    assert!(picture.contains("shared unseen"), "{picture}");
    assert_eq!(done.stderr.matches("nobody saw which of them ran").count(), 2, "{}", done.stderr);
    let text = run(&["trace", "stats", &file, "--jobs"]).exits(0).stdout;
    let row = |name: &str| text.lines().rfind(|line| line.trim_start().starts_with(name)).map(str::to_owned);
    assert!(row("shared unseen  ").is_some_and(|row| row.contains('%')), "{text}");
    assert!(row("control").is_some_and(|row| row.contains('?')), "{text}");
    assert!(text.contains("? job switches, ? preemptions") && text.contains("error 0s"), "{text}");
    let json = run(&["trace", "stats", &file, "--json"]).exits(0).json();
    let (node, usage) = (&json["nodes"][0], &json["usage"]["nodes"][0]);
    assert!(node["preemptions"].is_null() && usage["execution"][0][1].is_null(), "{json}");
    assert!(usage["shared_unseen_ns"].as_i64() > Some(0), "{json}");
    assert!(json["usage"]["operations"][0]["execution"].is_null(), "{json}");
}

#[test]
fn with_priorities_it_is_known_who_ran() {
    let place = folder();
    let file = recorded_as(&place, true);
    let (schedule, picture, done) = exported(&place, &file);
    assert!(!schedule.contains('?') && !picture.contains("shared unseen"), "{schedule}");
    assert!(!done.stderr.contains("nobody saw"), "{}", done.stderr);
    let simulated = Path::new(&within(&place, "simulated")).join("schedule.csv");
    assert_eq!(schedule, fs::read_to_string(simulated).expect("written with the run"));
    let json = run(&["trace", "stats", &file, "--json"]).exits(0).json();
    assert_eq!(json["usage"]["nodes"][0]["shared_unseen_ns"], 0);
    assert!(json["usage"]["operations"][0]["execution"]["min_ns"].is_i64(), "{json}");
}
