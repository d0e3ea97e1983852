//! Recordings of a part of the events: what was not recorded is unknown, and said to be.

use crate::support::{example, recorded, run, traced};
use serde_json::Value;

#[test]
fn without_the_ends_of_jobs_nothing_is_explained() {
    let (_place, trace) = recorded(&example("hello.toml"), &["--events", "job.release,job.start"]);
    let done = run(&["trace", "explain", &trace]).exits(2);
    assert!(done.stdout.is_empty(), "{}", done.stdout);
    assert!(done.stderr.contains("no records of job.preempt, job.resume, job.complete"), "{}", done.stderr);
    assert!(done.stderr.contains("--events run,job"), "{}", done.stderr);
}

#[test]
fn with_their_ends_alone_the_rest_is_said_to_be_unknown() {
    let (_place, trace) = recorded(&example("hello.toml"), &["--events", "job.complete"]);
    let done = run(&["trace", "explain", &trace, "--worst"]).exits(0);
    // Lines are broken where they are too long.
    let text = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "not known, for want of job.release: when jobs were released",
        "who had the processors",
        "to have it, record with --events run,job,dispatch",
        "nobody knows what it was",
    ] {
        assert!(text.contains(part), "{part}: {}", done.stdout);
    }
    for invented in ["processor idle", "late wake-up", "own execution"] {
        assert!(!text.contains(invented), "{invented}: {}", done.stdout);
    }
    let done = run(&["trace", "explain", &trace]).exits(0);
    assert!(!done.stdout.contains("no deadline was missed"), "{}", done.stdout);
}

#[test]
fn figures_that_nobody_recorded_are_no_zeros() {
    let (_place, trace) = recorded(&example("hello.toml"), &["--events", "run,job.complete"]);
    let json = run(&["trace", "stats", &trace, "--json"]).exits(0).json();
    let task = &json["tasks"][0];
    assert!(task["completed"].as_u64() > Some(0) && task["met"].is_u64(), "{task}");
    for key in ["offered", "released", "missed", "skipped", "aborted", "unfinished"] {
        assert_eq!(task[key], Value::Null, "{key}: {task}");
    }
    assert_eq!(
        (&json["lanes"][0]["utilisation"], &json["nodes"][0]["preemptions"]),
        (&Value::Null, &Value::Null)
    );
    let node = &json["usage"]["nodes"][0];
    for key in ["execution_ns", "overhead_ns", "interrupts_ns", "programs_ns", "withheld_ns", "idle_ns"] {
        assert_eq!(node[key], Value::Null, "{key}: {node}");
    }
    assert_eq!(node["unrecorded_ns"], node["available_ns"]);
    let text = run(&["trace", "stats", &trace, "--jobs"]).exits(0).stdout;
    let row = |name: &str| {
        text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_string()
    };
    for name in ["execution", "overhead", "interrupts", "idle"] {
        assert!(row(name).contains("not recorded"), "{name}: {text}");
    }
    for part in [
        "? is what nobody knows, for want of job.release, job.start",
        "how many deadlines were met of all there were is not known",
        "what single jobs took is not known",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A run's own trace has everything but the kernel's part, which is no zero either.
#[test]
fn what_the_kernel_would_tell_is_not_recorded_without_it() {
    let (_place, trace) = traced(&["run", &example("hello.toml"), "--rt", "off", "--for", "300ms"]);
    let text = run(&["trace", "stats", &trace]).exits(0).stdout;
    let row = |name: &str| {
        text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_string()
    };
    assert!(
        row("interrupts").contains("not recorded") && row("context switches").contains("not recorded"),
        "{text}"
    );
    assert!(row("idle").contains('%') && row("queue").contains('%'), "{text}");
    assert!(text.contains("--kernel switches,interrupts"), "{text}");
    let done = run(&["trace", "verify", &example("hello.toml"), &trace]);
    assert!(done.stdout.contains("cannot be told from an idle one"), "{}", done.stdout);
}

/// A guarantee that a run broke is in its trace, and whoever reads that is told.
#[test]
fn traces_of_hierarchies_tell_of_their_guarantees() {
    let system = example("figure-1.toml");
    let (_place, trace) = traced(&["sim", &system, "--for", "1s"]);
    let stats = run(&["trace", "stats", &trace]).exits(0).stdout;
    assert!(stats.contains("guarantees\n") && stats.contains("RESBH 5ms 33ms"), "{stats}");
    let json = run(&["trace", "stats", &trace, "--json"]).exits(0).json();
    let edges = json["promises"]["edges"].as_array().expect("a list");
    let broken: u64 = edges.iter().filter_map(|edge| edge["broken"].as_u64()).sum();
    let verified = run(&["trace", "verify", &system, &trace]).exits(i32::from(broken > 0));
    assert!(verified.stdout.contains("that were watched"), "{}", verified.stdout);
    let other = run(&["trace", "verify", &example("hello.toml"), &trace]).exits(2);
    assert!(other.stderr.contains("is of system"), "{}", other.stderr);
}
