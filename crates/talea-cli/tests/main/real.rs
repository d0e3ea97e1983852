//! `run` on real threads, without waiting for anything but their end.

use crate::support::{TRACE, example, folder, run, within};
use std::fs;

#[test]
fn a_run_without_real_time_says_so() {
    let hello = example("hello.toml");
    let text = run(&["run", &hello, "--rt", "off", "--for", "300ms", "--fail-on", "never"]).exits(0);
    assert!(text.stdout.contains("ordinary threads (no-rt)"), "{}", text.stdout);
    let json = run(&["run", &hello, "--rt", "off", "--for", "300ms", "--fail-on", "never", "--json"]);
    let json = json.exits(0).json();
    assert_eq!(json["run"]["mode"], "run");
    assert_eq!(json["run"]["rt"], "no-rt");
    assert_eq!(json["run"]["stopped"], "completed");
    assert!(json["report"]["tasks"][0]["released"].is_u64(), "{json}");
}

/// Whatever this machine grants, the fields agree with each other.
#[test]
fn a_run_says_what_it_was_granted() {
    let done =
        run(&["run", &example("hello.toml"), "--for", "300ms", "--fail-on", "never", "--json"]).exits(0);
    let json = done.json();
    let missing = json["run"]["missing"].as_array().expect("a list");
    match json["run"]["rt"].as_str() {
        Some("rt") => {
            let threads = json["run"]["threads"].as_array().expect("a list");
            let fifo = |thread: &serde_json::Value| {
                thread["actual_policy"].as_str().is_some_and(|policy| policy.contains("FIFO"))
            };
            assert!(threads.iter().any(fifo), "{json}");
        }
        Some("no-rt") => {
            talea_measure::skip("the attributes of real-time threads; none are granted here");
            assert!(!missing.is_empty() && done.stderr.contains("talea doctor"), "{json}{}", done.stderr);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_of_two_nodes_is_one_run() {
    let place = folder();
    let out = within(&place, "out");
    let arguments = [
        "run",
        &example("two-nodes.toml"),
        "--rt",
        "off",
        "--for",
        "300ms",
        "--fail-on",
        "never",
        "--json",
        "--out",
        &out,
    ];
    let json = run(&arguments).exits(0).json();
    assert_eq!(json["report"]["nodes"].as_array().expect("a list").len(), 2);
    assert_eq!(json["run"]["mishaps"]["lost_nodes"], serde_json::json!([]));
    for file in [TRACE, "schedule.csv", "result.json"] {
        assert!(fs::metadata(place.path().join("out").join(file)).expect(file).len() > 0, "{file}");
    }
    let kept: serde_json::Value =
        serde_json::from_slice(&fs::read(place.path().join("out/result.json")).expect("there"))
            .expect("JSON");
    assert_eq!(kept, json, "result.json is what --json prints");
    run(&["trace", "stats", &within(&place, "out/trace.talea")]).exits(0);
}

#[test]
fn strict_refuses_or_has_everything() {
    let done =
        run(&["run", &example("hello.toml"), "--rt", "strict", "--for", "100ms", "--fail-on", "never"]);
    match done.status {
        0 => assert!(done.stdout.contains("real-time threads"), "{}", done.stdout),
        _ => assert!(done.status == 2 && done.stderr.contains("--rt warn"), "{}", done.stderr),
    }
}

#[test]
fn doctor_counts_its_findings() {
    let done = run(&["doctor"]);
    assert!(done.status == 0 || done.status == 1, "{}", done.stderr);
    assert!(done.last_line().contains(" ok, "), "{}", done.stdout);
    // What is granted may change from one run to the next: bandwidth, for one, is the whole machine's.
    let done = run(&["doctor", "--json"]);
    let findings = done.json();
    let findings = findings.as_array().expect("a list");
    let failures = findings.iter().filter(|finding| finding["status"] == "fail").count();
    assert_eq!(done.status, i32::from(failures > 0));
    assert!(findings.iter().all(|finding| finding["status"] == "ok" || !finding["remedy"].is_null()));
}
