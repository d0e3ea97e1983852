//! Traces that hold no system: what there is is shown, and what cannot be told is said.

use crate::support::{bare, example, folder, recorded, run, traced, within};
use std::fs;

#[test]
fn stats_show_what_there_is() {
    let (_place, trace) = bare();
    let text = run(&["trace", "stats", &trace]).exits(0).stdout;
    assert!(text.starts_with("filter: the trace holds no system"), "{text}");
    for told in ["kernel.switch", "worker (7)", "interrupt   times", "5 of the kernel were lost"] {
        assert!(text.contains(told), "{told} in {text}");
    }
    let json = run(&["trace", "stats", &trace, "--json"]).exits(0).json();
    assert_eq!((json["has_system"].as_bool(), json["contents"]["records"].as_u64()), (Some(false), Some(8)));
    let events = json["contents"]["events"].as_array().expect("a list");
    let switches = events.iter().find(|event| event["name"] == "kernel.switch").expect("there are some");
    assert_eq!((switches["records"].as_u64(), switches["per_second"].as_f64()), (Some(4), Some(40_000.0)));
}

/// 100 us: thread 7 with an interrupt of 10 us, from 60 us on thread 8, and from the loss at 80 us on nobody knows.
#[test]
fn every_nanosecond_of_a_processor_has_its_account() {
    let (_place, trace) = bare();
    let machine = run(&["trace", "stats", &trace, "--json"]).exits(0).json()["machine"].clone();
    let accounts = |cpu: usize| {
        let names = ["threads_ns", "interrupts_ns", "idle_ns", "unobserved_ns", "unknown_ns"];
        names.map(|name| machine["processors"][cpu][name].as_i64().expect("a number"))
    };
    assert_eq!(accounts(0), [70_000, 10_000, 0, 0, 20_000]);
    assert_eq!(accounts(1), [0, 0, 100_000, 0, 0]);
    let threads = machine["threads"].as_array().expect("a list");
    let told: Vec<_> =
        threads.iter().map(|thread| (thread["thread"].as_u64(), thread["ns"].as_i64())).collect();
    assert_eq!(told, [(Some(7), Some(50_000)), (Some(8), Some(20_000))]);
}

#[test]
fn there_are_no_jobs_to_tell_of() {
    let (_place, trace) = bare();
    let done = run(&["trace", "stats", &trace, "--jobs"]).exits(0);
    assert!(done.stderr.contains("--jobs shows nothing"), "{}", done.stderr);
    let done = run(&["trace", "explain", &trace]).exits(2);
    assert!(done.stderr.contains("holds no system"), "{}", done.stderr);
    let (_place, trace) = recorded(&example("hello.toml"), &["--events", "run"]);
    let done = run(&["trace", "stats", &trace, "--jobs"]).exits(0);
    assert!(done.stdout.contains("the trace tells of no job"), "{}", done.stdout);
    assert!(
        done.stderr.contains("job.release") && done.stderr.contains("were not recorded"),
        "{}",
        done.stderr
    );
    let done = run(&["trace", "explain", &trace]).exits(2);
    assert!(done.stderr.contains("so nobody knows when jobs ended"), "{}", done.stderr);
}

#[test]
fn a_file_that_is_no_trace_is_refused_with_where_traces_come_from() {
    let place = folder();
    let file = within(&place, "text");
    fs::write(&file, "a text that is long enough for a head of a trace file".repeat(10)).expect("writable");
    let done = run(&["trace", "stats", &file]).exits(2);
    assert!(done.stderr.contains("talea trace record"), "{}", done.stderr);
}

#[test]
fn no_more_is_explained_at_once_than_memory_should_hold() {
    let (_place, trace) = traced(&["sim", &example("overload.toml"), "--for", "1s"]);
    let done = run(&["trace", "explain", &trace, "--limit", "100000000"]).exits(2);
    assert!(done.stderr.contains("up to 1000") && done.stderr.contains("--task"), "{}", done.stderr);
    run(&["trace", "explain", &trace, "--limit", "0"]).exits(2);
    let json = run(&["trace", "explain", &trace, "--limit", "1000", "--json"]).exits(0).json();
    let list = json["explanations"].as_array().expect("a list");
    let skipped = list.iter().find(|one| one["outcome"] == "skipped-overrun").expect("one is");
    assert!(skipped["response_ns"].is_null() && skipped["lateness_ns"].is_null(), "{skipped}");
    assert_eq!(skipped["intervals"].as_array().map(Vec::len), Some(0));
    assert!(skipped["because"]["response_ns"].as_i64() > Some(0), "{skipped}");
}
