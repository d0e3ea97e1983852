//! `trace` on a simulated trace.

use crate::support::{TRACE, example, folder, run, within};
use std::fs;

/// A folder with the trace of two simulated seconds of the overload example in `out`.
fn traced() -> (tempfile::TempDir, String) {
    let place = folder();
    let out = within(&place, "out");
    run(&["sim", &example("overload.toml"), "--for", "2s", "--out", &out]).exits(0);
    let trace = place.path().join("out").join(TRACE).display().to_string();
    (place, trace)
}

#[test]
fn show_prints_records() {
    let (_place, trace) = traced();
    let all = run(&["trace", "show", &trace]).exits(0);
    assert!(all.stdout.lines().next().is_some_and(|line| line.contains("run-start")), "{}", all.stdout);
    assert!(all.last_line().contains("run-end"), "{}", all.last_line());
    assert_eq!(all.stderr, "");
    assert_eq!(run(&["trace", "show", &trace, "--limit", "3"]).exits(0).stdout.lines().count(), 3);
    let of_one = run(&["trace", "show", &trace, "--task", "skipping"]).exits(0);
    assert!(of_one.stdout.contains("skip"), "{}", of_one.stdout);
    assert!(of_one.stdout.lines().all(|line| line.contains("skipping #")), "{}", of_one.stdout);
}

#[test]
fn stats_are_those_of_the_run() {
    let (place, trace) = traced();
    let stats = run(&["trace", "stats", &trace, "--json"]).exits(0);
    assert_eq!(stats.stderr, "", "a whole trace gives no warning");
    let result = fs::read(place.path().join("out/result.json")).expect("written");
    let result: serde_json::Value = serde_json::from_slice(&result).expect("JSON");
    let mut told = stats.json();
    let usage = told.as_object_mut().expect("an object").remove("usage").expect("beside the report");
    assert_eq!(told, result["report"]);
    let node = &usage["nodes"][0];
    assert_eq!((node["available_ns"].as_i64(), node["error_ns"].as_i64()), (Some(2_000_000_000), Some(0)));
    let text = run(&["trace", "stats", &trace, "--jobs"]).exits(0).stdout;
    for part in ["overload under criticality", "sum: 2s of 2s (1 processor for 2s), error 0", "execution min"]
    {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_cut_trace_is_read_as_far_as_it_goes() {
    let (place, trace) = traced();
    let bytes = fs::read(&trace).expect("there");
    let cut = within(&place, "cut.talea");
    fs::write(&cut, &bytes[..bytes.len() - 7]).expect("writable");
    for command in ["show", "stats"] {
        let done = run(&["trace", command, &cut]).exits(0);
        assert!(done.stderr.contains("the last 33 bytes are part of a record"), "{}", done.stderr);
    }
}

#[test]
fn exports_are_written_together() {
    let (place, trace) = traced();
    let [perfetto, csv, schedule, svg] =
        ["o.pftrace", "o.csv", "schedule.csv", "o.svg"].map(|name| within(&place, name));
    let arguments = [
        "trace",
        "export",
        &trace,
        "--perfetto",
        &perfetto,
        "--csv",
        &csv,
        "--schedule",
        &schedule,
        "--svg",
        &svg,
    ];
    let done = run(&arguments).exits(0);
    assert_eq!(done.stdout, format!("written: {perfetto}, {csv}, {schedule}, {svg}\n"));
    assert!(fs::metadata(&perfetto).expect("there").len() > 1_000);
    assert!(fs::read_to_string(&csv).expect("there").lines().count() > 100);
    assert!(fs::read_to_string(&svg).expect("there").starts_with("<svg"));
    let exported = fs::read(&schedule).expect("there");
    let live = fs::read(place.path().join("out/schedule.csv")).expect("there");
    assert!(exported == live, "the exported schedule is that of the run");
}

#[test]
fn an_export_needs_a_format_and_never_replaces_the_trace() {
    let (place, trace) = traced();
    let done = run(&["trace", "export", &trace]).exits(2);
    assert!(done.stderr.contains("--perfetto"), "{}", done.stderr);
    let done = run(&["trace", "export", &trace, "--csv", &trace]).exits(2);
    assert!(done.stderr.contains("written over"), "{}", done.stderr);
    let svg = within(&place, "o.svg");
    let done = run(&["trace", "export", &trace, "--svg", &svg, "--from", "10h"]).exits(2);
    assert!(done.stderr.contains("not within the run"), "{}", done.stderr);
    run(&["trace", "export", &trace, "--svg", &svg, "--from", "1s", "--length", "2562047h"]).exits(0);
    run(&["trace", "stats", &trace]).exits(0);
}
