//! Ctrl-C, and readers that go away.

use crate::support::{Running, TRACE, eventually, example, folder, run, talea, within};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use talea_record::Record;

#[test]
fn an_interrupted_run_reports_what_it_did() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = folder();
        let out = within(&place, "out");
        let arguments = ["run", &example("hello.toml"), "--rt", "off", "--forever", "--json", "--out", &out];
        let mut running = Running::start(&arguments);
        let trace = place.path().join("out").join(TRACE);
        running.await_file(&trace);
        // The head is there; behind the record of the start, the first of a job is a release.
        running.await_growth(&trace, 2 * Record::BYTES as u64);
        running.signal(signal);
        let done = running.finish();
        assert!(done.status == 0 || done.status == 1, "{}: {}", done.status, done.stderr);
        let json = done.json();
        assert_eq!(json["run"]["stopped"], "interrupted");
        assert!(json["report"]["tasks"][0]["released"].as_u64() >= Some(1), "{json}");
        assert!(place.path().join("out/result.json").exists());
    }
}

#[test]
fn an_interrupted_simulation_reports_what_it_did() {
    let place = folder();
    let out = within(&place, "out");
    let arguments =
        ["sim", &example("hello.toml"), "--for", "87600h", "--json", "--fail-on", "never", "--out", &out];
    let mut running = Running::start(&arguments);
    // Records are there only when the loop is at work, which the handler of the signal precedes. What has more than the
    // head of a trace is the draft of one.
    const HEAD: u64 = 300_000;
    eventually("records are written", || {
        running.lives();
        let entries = std::fs::read_dir(place.path().join("out")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).any(|file| file.len() > HEAD)
    });
    running.signal(Signal::INT);
    let json = running.finish().exits(0).json();
    assert_eq!(json["run"]["stopped"], "interrupted");
    assert!(json["report"]["end_ns"].as_i64() < Some(87_600 * 3_600_000_000_000));
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let place = folder();
    let out = within(&place, "out");
    run(&["sim", &example("ofp.toml"), "--for", "60s", "--out", &out]).exits(0);
    let mut command = talea(&["trace", "show", &within(&place, "out/trace.talea")]);
    let mut child = command.spawn().expect("the command starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("readable");
    assert!(line.contains("run-start"), "{line}");
    let output = child.wait_with_output().expect("ours");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
