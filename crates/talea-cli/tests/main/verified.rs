//! `trace verify` on simulated and real traces.

use crate::support::{Program, bare, example, folder, recorded, run, traced, within, write};
use serde_json::Value;
use std::fs;
use std::path::Path;
use talea_record::{Event, LogWriter, Record, Sink, TraceFile};

/// What the report says of a rule.
fn rule<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rules = report["rules"].as_array().expect("a list");
    rules.iter().find(|entry| entry["rule"] == name).expect("every rule")
}

#[test]
fn every_example_obeys_every_strategy_in_virtual_time() {
    for name in ["hello.toml", "ofp.toml", "overload.toml", "release-guards.toml", "two-nodes.toml"] {
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
    let count = |name: &str| rule(&json, name)["violations"].as_u64();
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

/// What dispatching may take comes from the profile of a machine.
#[test]
fn a_profile_says_how_long_dispatching_may_take() {
    let place = folder();
    let events = "push = \"1us\"\nfilter = \"1us\"\ndelivery = \"1us\"\n";
    let profile = format!(
        "[machine]\nkernel = \"k\"\nreal_time = true\nlongest_stall = \"2ms\"\n\n[[costs]]\nload = \"idle\"\nswitch = \"5us\"\n\
                   queue = \"40us\"\ntimer = \"1us\"\nmessage = \"2us\"\n{events}\n[[costs]]\nload = \"busy\"\nswitch = \"7us\"\nqueue = \"3us\"\n\
                   timer = \"1us\"\nmessage = \"2us\"\n{events}"
    );
    let (file, system) = (write(&place, "machine.toml", &profile), example("hello.toml"));
    let (_out, trace) = traced(&["run", &system, "--rt", "off", "--for", "200ms"]);
    let bound = |options: &[&str]| {
        let options = [&["trace", "verify", &system, &trace, "--json"], options].concat();
        let json: Value = serde_json::from_str(&run(&options).stdout).expect("JSON");
        json["overhead_ns"].as_i64()
    };
    assert_eq!(bound(&["--machine", &file]), Some(2_050_000));
    assert_eq!(bound(&["--machine", &file, "--tolerance", "3ms"]), Some(3_000_000));
    assert_eq!(bound(&[]), Some(1_000_000));
    let none = run(&["trace", "verify", &system, &trace, "--machine", &within(&place, "none.toml")]).exits(2);
    assert!(none.stderr.contains("none.toml") && none.stderr.contains("doctor --measure"), "{}", none.stderr);
    let (_out, simulated) = traced(&["sim", &system, "--for", "200ms"]);
    let refused = run(&["trace", "verify", &system, &simulated, "--machine", &file]).exits(2);
    assert!(refused.stderr.contains("of a simulation"), "{}", refused.stderr);
}

/// What real threads do depends on the machine and on what it grants; that there is a report, and of what, does not.
#[test]
fn real_traces_are_judged_with_a_tolerance() {
    for name in ["hello.toml", "release-guards.toml", "two-nodes.toml"] {
        for rt in ["off", "warn"] {
            let system = example(name);
            let (_place, trace) = traced(&["run", &system, "--rt", rt, "--for", "300ms"]);
            let done = run(&["trace", "verify", &system, &trace, "--json"]);
            assert!(done.status == 0 || done.status == 1, "{}", done.stderr);
            let json = done.json();
            assert_eq!(json["tolerance_ns"], 200_000);
            assert!(json["jobs"].as_u64() > Some(0), "{json}");
            for name in ["plan", "life", "release", "precedence"] {
                assert_eq!(rule(&json, name)["violations"], 0, "what no machine excuses: {json}");
            }
        }
    }
}

/// The kernel's switches come a little after what jobs say of themselves. Whoever waits meanwhile waits for a processor
/// that is taken.
#[test]
fn the_kernels_events_make_no_violations() {
    let (place, ofp) = (folder(), example("ofp.toml"));
    let file = within(&place, "both.talea");
    let record = ["trace", "record", "--kernel", "switches", "--out", &file, "--"];
    let command = [env!("CARGO_BIN_EXE_talea"), "run", &ofp, "--for", "2s", "--fail-on", "never"];
    let done = run(&[&record[..], &command].concat());
    if done.status == 2 && done.stderr.contains("the kernel withholds events") {
        talea_measure::skip(&done.stderr);
        return;
    }
    done.exits(0);
    // Longer than any machine of use takes to wake a thread up, shorter than the jobs that others wait for.
    let json = run(&["trace", "verify", &ofp, &file, "--tolerance", "5ms", "--json"]).json();
    let idle = rule(&json, "idle");
    assert!(idle["cases"].as_u64() > Some(0), "{json}");
    assert_eq!(idle["violations"], 0, "{json}");
    assert!(json["unidentified_nodes"].as_array().is_some_and(Vec::is_empty), "{json}");
}

/// Where nobody says which of the kernel's threads are the lanes', neither lanes nor idle can be judged.
#[test]
fn lanes_and_idle_are_not_judged_among_unknown_threads() {
    let ofp = example("ofp.toml");
    let (place, trace) = traced(&["sim", &ofp, "--for", "1s"]);
    let whole = TraceFile::open(Path::new(&trace)).expect("a trace");
    let path = within(&place, "unknown.talea");
    let mut log = LogWriter::create(Path::new(&path), whole.metadata()).expect("writable");
    for record in whole.records().expect("records").map(Result::unwrap) {
        log.record(record);
        if record.event == Event::START {
            let (event, source) = (Event::SWITCH, Record::KERNEL);
            log.record(Record { event, source, causal: 0, words: [70 << 32, 0], arg: 0, ..record });
        }
    }
    log.finish().expect("written");
    let done = run(&["trace", "verify", &ofp, &path]).exits(0);
    assert!(!done.stdout.contains("no case of it: lanes"), "they were not judged: {}", done.stdout);
    assert!(done.stdout.contains("no record says which of the kernel's threads"), "{}", done.stdout);
}

#[test]
fn a_recording_without_all_events_of_jobs_is_refused() {
    let hello = example("hello.toml");
    let refused = |events: &str| {
        let (_place, trace) = recorded(&hello, &["--events", events]);
        let done = run(&["trace", "verify", &hello, &trace]).exits(2);
        assert!(done.stdout.is_empty() && done.stderr.contains("talea trace record"), "{}", done.stderr);
        done.stderr
    };
    let text = refused("job.start,job.complete");
    let missing = "no records of job.release, job.preempt, job.resume, job.skip, job.abort, so";
    assert!(text.contains(missing), "{text}");
    assert!(text.contains("--events job,run"), "{text}");
    let text = refused("run,dispatch");
    assert!(text.contains("job.release, job.start"), "{text}");
}

/// Where nobody noted what was wanted, what there is shows what is missing.
#[test]
fn a_log_that_lacks_events_is_refused() {
    let ofp = example("ofp.toml");
    let (place, trace) = traced(&["sim", &ofp, "--for", "1s"]);
    let whole = TraceFile::open(Path::new(&trace)).expect("a trace");
    let without = |events: &[Event]| {
        let path = within(&place, "less.talea");
        let mut log = LogWriter::create(Path::new(&path), whole.metadata()).expect("writable");
        let kept = whole.records().expect("records").map(Result::unwrap);
        kept.filter(|record| !events.contains(&record.event)).for_each(|record| log.record(record));
        log.finish().expect("written");
        run(&["trace", "verify", &ofp, &path])
    };
    without(&[]).exits(0);
    for (event, name) in [
        (Event::RELEASE, "job.release"),
        (Event::START, "job.start"),
        (Event::PREEMPT, "job.preempt"),
        (Event::COMPLETE, "job.complete"),
    ] {
        let done = without(&[event]).exits(2);
        assert!(done.stderr.contains(&format!("no records of {name},")), "{}", done.stderr);
    }
    let jobs = [
        Event::RELEASE,
        Event::START,
        Event::PREEMPT,
        Event::RESUME,
        Event::COMPLETE,
        Event::SKIP,
        Event::ABORT,
    ];
    let done = without(&jobs).exits(2);
    assert!(done.stderr.contains("tells of no job"), "{}", done.stderr);
}

#[test]
fn a_rule_without_a_case_is_not_judged() {
    let hello = example("hello.toml");
    let (_place, trace) = traced(&["sim", &hello, "--for", "1s"]);
    let done = run(&["trace", "verify", &hello, &trace]).exits(0);
    assert!(
        done.stdout.contains("not judged, for the trace has no case of it: precedence"),
        "{}",
        done.stdout
    );
    let json = run(&["trace", "verify", &hello, &trace, "--json"]).exits(0).json();
    assert_eq!(rule(&json, "precedence")["cases"], 0);
    assert!(rule(&json, "life")["cases"].as_u64() > Some(0), "{json}");
}

/// A recording that joins a run under way knows nothing of the jobs before, and holds nothing against them.
#[test]
fn a_recording_that_came_later_is_judged_from_where_it_knows() {
    let place = folder();
    let program = Program::start(&place, "joined");
    let (recording, trace) = program.record(&place, "all");
    drop(program);
    recording.finish().exits(0);
    let system = within(&place, "system.toml");
    let json = run(&["trace", "verify", &system, &trace, "--json"]).json();
    for name in ["plan", "life", "release", "overrun"] {
        assert_eq!(rule(&json, name)["violations"], 0, "{json}");
    }
    assert!(json["jobs"].as_u64() > Some(0) && json["unjudged"].as_u64() > Some(0), "{json}");
}

/// Of two nodes one is recorded: what waits for the other one cannot be judged.
#[test]
fn a_node_that_is_not_in_the_trace_is_named() {
    let system = example("two-nodes.toml");
    let (place, trace) = traced(&["sim", &system, "--for", "1s"]);
    let whole = TraceFile::open(Path::new(&trace)).expect("a trace");
    let nodes = &whole.metadata().nodes;
    let of_second = |record: &Record| match record.event {
        Event::RUN_START | Event::RUN_END => record.source == 1,
        _ => whole.metadata().lanes.get(usize::from(record.source)).is_some_and(|lane| lane.node == 1),
    };
    let path = within(&place, "second.talea");
    let mut log = LogWriter::create(Path::new(&path), whole.metadata()).expect("writable");
    whole
        .records()
        .expect("records")
        .map(Result::unwrap)
        .filter(of_second)
        .for_each(|record| log.record(record));
    log.finish().expect("written");
    let done = run(&["trace", "verify", &system, &path]).exits(0);
    let told = format!("nothing was recorded of {}", nodes[0].name);
    assert!(done.stdout.contains(&told), "{}", done.stdout);
}

#[test]
fn a_trace_without_a_system_is_refused() {
    let (_place, trace) = bare();
    let done = run(&["trace", "verify", &example("hello.toml"), &trace]).exits(2);
    assert!(done.stderr.contains("holds no system"), "{}", done.stderr);
}
