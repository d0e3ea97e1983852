//! Recordings that began when the run was under way.

use crate::support::{TRACE, example, folder, run, within};
use std::path::Path;
use talea_record::{Event, LogWriter, Record, Sink, TraceFile};
use talea_time::Instant;

/// A trace of a simulated run that holds what came after a job of it had been released, and not yet completed.
fn late(place: &tempfile::TempDir) -> (String, Record) {
    let out = within(place, "out");
    let example = example("ofp.toml");
    run(&["sim", &example, "--for", "5s", "--fail-on", "never", "--out", &out]).exits(0);
    let whole = TraceFile::open(&Path::new(&out).join(TRACE)).expect("a trace");
    let records: Vec<Record> =
        whole.records().expect("readable").map(|record| record.expect("whole")).collect();
    let is_split = |record: &&Record| {
        record.event == Event::START
            && record.time > Instant::from_nanos(3_000_000_000)
            && record.job().instance > 0
    };
    let started = *records.iter().find(is_split).expect("a job starts");
    let path = within(place, "late.talea");
    let mut log = LogWriter::create(Path::new(&path), whole.metadata()).expect("writable");
    let after = records.iter().filter(|record| record.time > started.time);
    after.for_each(|record| log.record(*record));
    log.finish().expect("written");
    (path, started)
}

/// The labels under the axis of a picture, in milliseconds.
fn ticks(svg: &str) -> Vec<f64> {
    let lines = svg.lines().filter_map(|line| line.trim().trim_end_matches(" ms").parse().ok());
    lines.collect()
}

#[test]
fn a_picture_begins_where_the_recording_does() {
    let place = folder();
    let (trace, started) = late(&place);
    let svg = within(&place, "line.svg");
    run(&["trace", "export", &trace, "--svg", &svg]).exits(0);
    let picture = std::fs::read_to_string(&svg).expect("written");
    // Labels are whole milliseconds.
    let from_ms = (started.time.as_nanos() / 1_000_000) as f64;
    let ticks = ticks(&picture);
    assert!(!ticks.is_empty() && ticks.iter().all(|tick| *tick >= from_ms), "{from_ms}: {ticks:?}");
    assert!(picture.matches("<rect").count() > 10, "jobs are drawn");
    let early = run(&["trace", "export", &trace, "--svg", &svg, "--from", "1s"]).exits(0);
    assert!(early.stderr.contains("note: the trace begins "), "{}", early.stderr);
    let never = run(&["trace", "export", &trace, "--svg", &svg, "--from", "100s"]).exits(2);
    assert!(never.stderr.contains("of which the trace tells from "), "{}", never.stderr);
}

#[test]
fn an_explained_job_is_drawn_from_where_the_recording_begins() {
    let place = folder();
    let (trace, started) = late(&place);
    let metadata = TraceFile::open(Path::new(&trace)).expect("a trace").metadata().clone();
    let entry = &metadata.operations[started.job().operation.index()];
    let task = &metadata.tasks[entry.task];
    let svg = within(&place, "job.svg");
    let instance = started.job().instance.to_string();
    run(&["trace", "explain", &trace, "--task", &task.name, "--job", &instance, "--svg", &svg]).exits(0);
    let picture = std::fs::read_to_string(&svg).expect("written");
    let nominal = metadata.start + task.phase + task.period * instance.parse().expect("a number");
    let unrecorded_ms = (started.time - nominal).as_nanos() as f64 / 1e6;
    assert!(picture.contains("; recorded from "), "{picture}");
    let ticks = ticks(&picture);
    assert!(
        !ticks.is_empty() && ticks.iter().all(|tick| *tick >= unrecorded_ms),
        "{unrecorded_ms}: {ticks:?}"
    );
}
