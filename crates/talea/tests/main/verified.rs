//! `trace verify` on simulated and real traces.

use crate::support::{TRACE, example, folder, run, within, write};
use std::fs;

/// A folder with the trace of a command of which `--out` is asked.
fn traced(arguments: &[&str]) -> (tempfile::TempDir, String) {
    let place = folder();
    let out = within(&place, "out");
    let arguments: Vec<&str> =
        arguments.iter().copied().chain(["--fail-on", "never", "--out", &out]).collect();
    run(&arguments).exits(0);
    let trace = place.path().join("out").join(TRACE).display().to_string();
    (place, trace)
}

#[test]
fn every_example_obeys_every_strategy_in_virtual_time() {
    for name in ["hello.toml", "ofp.toml", "overload.toml", "two-nodes.toml"] {
        for strategy in ["rms", "edf", "mlf", "muf", "rms+mlf", "criticality"] {
            let system = example(name);
            let (_place, trace) = traced(&["sim", &system, "--for", "1s", "--strategy", strategy]);
            let done = run(&["trace", "verify", &system, &trace, "--strategy", strategy]).exits(0);
            assert!(done.stdout.contains(&format!("under {strategy}: obeyed")), "{}", done.stdout);
        }
    }
}

#[test]
fn the_wrong_strategy_is_a_violation() {
    let ofp = example("ofp.toml");
    let (_place, trace) = traced(&["sim", &ofp, "--for", "1s", "--strategy", "rms"]);
    let done = run(&["trace", "verify", &ofp, &trace, "--strategy", "muf", "--limit", "3"]).exits(1);
    assert!(done.stdout.contains("the trace was made under rms"), "{}", done.stdout);
    assert!(done.stdout.contains("the plan puts it into"), "{}", done.stdout);
    let json = run(&["trace", "verify", &ofp, &trace, "--strategy", "muf", "--json"]).exits(1).json();
    let count = |rule: &str| {
        let rules = json["rules"].as_array().expect("a list");
        rules.iter().find(|entry| entry["rule"] == rule).and_then(|entry| entry["violations"].as_u64())
    };
    assert!(count("plan") > Some(0) && count("lanes") > Some(0), "{}", json["rules"]);
    assert_eq!(count("life"), Some(0));
}

#[test]
fn another_system_is_refused() {
    let (place, trace) = traced(&["sim", &example("hello.toml"), "--for", "1s"]);
    let done = run(&["trace", "verify", &example("ofp.toml"), &trace]).exits(2);
    assert!(
        done.stderr.contains("belongs to another system") && done.stderr.contains("help:"),
        "{}",
        done.stderr
    );
    let text = fs::read_to_string(example("hello.toml")).expect("there");
    let same = write(&place, "same.toml", &text);
    run(&["trace", "verify", &same, &trace]).exits(0);
    let done = run(&["trace", "verify", &same, &trace, "--tolerance", "soon"]).exits(2);
    assert!(done.stderr.contains("--tolerance"), "{}", done.stderr);
    run(&["trace", "verify", &same, &within(&place, "none.talea")]).exits(2);
}

/// What real threads do depends on the machine and on what it grants; that there is a report, and of what, does not.
#[test]
fn real_traces_are_judged_with_a_tolerance() {
    for name in ["hello.toml", "two-nodes.toml"] {
        for rt in ["off", "warn"] {
            let system = example(name);
            let (_place, trace) = traced(&["run", &system, "--rt", rt, "--for", "300ms"]);
            let done = run(&["trace", "verify", &system, &trace, "--json"]);
            assert!(done.status == 0 || done.status == 1, "{}", done.stderr);
            let json = done.json();
            assert_eq!(json["tolerance_ns"], 200_000);
            assert!(json["jobs"].as_u64() > Some(0), "{json}");
            for rule in ["plan", "life", "release", "precedence"] {
                let rules = json["rules"].as_array().expect("a list");
                let entry = rules.iter().find(|entry| entry["rule"] == rule).expect("every rule");
                assert_eq!(entry["violations"], 0, "what no machine excuses: {json}");
            }
        }
    }
}
