//! Recordings of runs that left a kind of events out, verified.

use crate::support::{alone, example, folder, recorded, run, within, write};
use std::path::Path;
use talea_insight::decisions::Decisions;
use talea_insight::verify::{Coverage, Judged, Verifier, VerifyReport, default_overhead, default_tolerance};
use talea_model::System;
use talea_policy::strategy::{Plan, plan_lanes_of};
use talea_record::{Contents, Event, LogWriter, Metadata, Record, Sink, TraceFile};
use talea_samples::recordings::{events_to_leave_out, name_of, recorded_without};

/// Preemptive lanes, what comes too soon for guards, values, events and deadlines that are inherited, all on one processor.
const CROSSED: &str = r#"
[system]
name = "crossed"
strategy = "edf"
lane_dispatch = "preemptive"
[[channel]]
name = "c"
[[task]]
name = "push"
period = "4ms"
wcet = "100us"
events = [{ channel = "c", type = "T/A" }]
outputs = [{ name = "x" }]
[[task]]
name = "take"
subscription = { channel = "c" }
separation = "6ms"
deadline = "30ms"
wcet = "500us"
[[task]]
name = "held"
trigger = "external"
separation = "10ms"
arrivals = { poisson = "4ms" }
overrun = "merge"
deadline = "20ms"
wcet = "1ms"
[[task]]
name = "heir"
trigger = { output = "push.x" }
deadline = "inherited"
wcet = "300us"
[[task]]
name = "reader"
period = "9ms"
  [[task.subtask]]
  name = "read"
  wcet = "1ms"
  inputs = [{ name = "x", from = "push.x", take = "each", capacity = 8 }]
  [[task.subtask]]
  name = "rest"
  wcet = "500us"
"#;

/// The trace of a real run.
struct Run {
    executed: System,
    plans: Vec<Plan>,
    metadata: Metadata,
    records: Vec<Record>,
}

impl Run {
    fn of(file: &str) -> Self {
        let (place, _alone) = (folder(), alone());
        let out = within(&place, "out");
        run(&["run", file, "--rt", "off", "--for", "700ms", "--fail-on", "never", "--out", &out]).exits(0);
        let trace = TraceFile::open(&Path::new(&out).join("trace.talea")).expect("a trace");
        let records = trace.records().expect("records").map(Result::unwrap).collect();
        let executed = talea_model::read(Path::new(file)).expect("a system").system.with_threads_as_tasks();
        let plans = plan_lanes_of(&executed).expect("lanes");
        Run { executed, plans, metadata: trace.metadata().clone(), records }
    }

    fn without(&self, left_out: &[Event]) -> Option<VerifyReport> {
        let (metadata, records) = recorded_without(&self.metadata, &self.records, left_out);
        let mut contents = Contents::new(&metadata);
        records.iter().for_each(|record| contents.record(*record));
        let coverage = Coverage::of(&metadata, &contents).ok()?;
        let tolerance = default_tolerance(metadata.origin);
        let verifier = Verifier::new(&metadata, &self.executed, &self.plans, tolerance).expect("the same");
        let verifier = verifier.with_coverage(coverage);
        let mut verifier = verifier.with_overhead(default_overhead(metadata.origin));
        records.iter().for_each(|record| verifier.record(*record));
        Some(verifier.finish())
    }
}

/// Whatever this machine does to a run: what is not found wrong in the whole trace is not found wrong without a kind of events, and what is seen less is not
/// called obeyed.
#[test]
fn want_of_events_shows_nothing_wrong_and_nothing_obeyed_on_threads() {
    let place = folder();
    let files = [
        write(&place, "crossed.toml", CROSSED),
        write(&place, "nonpreemptive.toml", &CROSSED.replace("\"preemptive\"", "\"nonpreemptive\"")),
        example("notification.toml"),
        example("robot.toml"),
    ];
    let mut unknown = std::collections::BTreeSet::new();
    for file in files {
        let run = Run::of(&file);
        let whole = run.without(&[]).expect("it is all there");
        assert_eq!(whole.unrecorded, [], "{file}");
        for left_out in events_to_leave_out() {
            let Some(report) = run.without(&[left_out]) else { continue };
            for (rule, whole) in report.rules.iter().zip(&whole.rules) {
                let called =
                    || format!("{file} without {}: {rule:?}, and whole {whole:?}", name_of(left_out));
                assert!(rule.violations <= whole.violations, "{}: {:#?}", called(), report.violations);
                let is_obeyed = rule.judged() == Judged::Obeyed;
                assert!(!is_obeyed || rule.cases >= whole.cases, "{}", called());
                if rule.judged() == Judged::Unknown {
                    unknown.insert((rule.rule.name(), name_of(left_out)));
                }
            }
        }
    }
    for (rule, event) in [
        ("values", "port.take"),
        ("events", "event.push"),
        ("order", "dispatch.no-slot"),
        ("triggers", "dispatch.open"),
        ("lanes", "dispatch.sleep"),
    ] {
        assert!(unknown.contains(&(rule, event.to_owned())), "{rule} without {event}: {unknown:?}");
    }
}

/// Of hierarchies nothing is found broken for want of what schedulers said, and their decisions are judged with all of it or not at all.
#[test]
fn want_of_what_schedulers_said_shows_nothing_broken() {
    let (file, place) = (example("figure-1.toml"), folder());
    let out = within(&place, "out");
    run(&["sim", &file, "--for", "1s", "--fail-on", "never", "--out", &out]).exits(0);
    let whole = TraceFile::open(&Path::new(&out).join("trace.talea")).expect("a trace");
    let records: Vec<Record> = whole.records().expect("records").map(Result::unwrap).collect();
    let left = within(&place, "left.talea");
    let of_hierarchies =
        |event: &Event| [Event::VP_GRANT, Event::VIOLATION].iter().any(|one| one.family() == event.family());
    for left_out in events_to_leave_out().filter(of_hierarchies) {
        let name = name_of(left_out);
        let (metadata, records) = recorded_without(whole.metadata(), &records, &[left_out]);
        let mut log = LogWriter::create(Path::new(&left), &metadata).expect("writable");
        records.iter().for_each(|record| log.record(*record));
        log.finish().expect("written");
        let done = run(&["trace", "verify", &file, &left]);
        if left_out == Event::VIOLATION {
            assert!(done.status == 2 && done.stderr.contains(&name), "{name}: {}", done.stderr);
            continue;
        }
        assert_eq!(done.status, 0, "{name}: {}{}", done.stdout, done.stderr);
        let is_needed = Decisions::EVENTS.contains(&left_out);
        let is_said = done.words().contains(&format!("for want of {name}"));
        assert_eq!(is_said, is_needed, "{name}: {}", done.stdout);
        let json = run(&["trace", "verify", &file, &left, "--json"]).exits(0).json();
        assert_eq!(json["decisions"].is_null(), is_needed, "{name}: {json}");
    }
}

/// As the recorder writes it and the command says it.
#[test]
fn a_rule_that_rests_on_what_a_recording_left_out_is_called_unknown_with_its_name() {
    let file = example("robot.toml");
    let (_place, trace) = recorded(&file, &["--events", "all,-port.take,-job.wcet"]);
    let done = run(&["trace", "verify", &file, &trace]);
    assert!(done.status == 0 || done.stdout.contains("violated"), "{}{}", done.stdout, done.stderr);
    let words = done.words();
    assert!(words.contains("nothing is known of the rule values, for port.take was not recorded"), "{words}");
    let row = done.stdout.lines().find(|line| line.trim_start().starts_with("values"));
    assert!(row.is_some_and(|row| row.contains("unknown")), "{}", done.stdout);
    assert!(!words.contains("job.wcet"), "nothing is posted there: {words}");
    let json = run(&["trace", "verify", &file, &trace, "--json"]).json();
    let unrecorded = json["unrecorded"].as_array().expect("a list");
    let values = unrecorded.iter().find(|one| one["rule"] == "values").expect("it is there");
    assert_eq!(
        (&values["basis"], &values["events"]),
        (&"unrecorded".into(), &serde_json::json!(["port.take"]))
    );
}
