//! Recordings that left a kind of events out: nothing is found wrong for want of them, and no rule is called obeyed of which they are needed.

use crate::replay::Everything;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use talea_insight::verify::{Basis, Coverage, Judged, Rule, Verifier, VerifyReport};
use talea_model::System;
use talea_policy::strategy::{Plan, plan_lanes_of};
use talea_record::{Contents, Event, Metadata, Record, Sink};
use talea_samples::recordings::{events_to_leave_out, name_of, recorded_without};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant};

/// A simulated run.
struct Run {
    executed: System,
    plans: Vec<Plan>,
    metadata: Metadata,
    records: Vec<Record>,
}

impl Run {
    fn of(system: &System) -> Self {
        let simulation = Simulation::new(system).expect("it can be simulated");
        let mut simulation = simulation.with_dispatch(DispatchRecords::Kept);
        let mut everything = Everything::default();
        simulation.advance(Instant::ZERO + Duration::from_millis(700), &mut everything);
        let metadata = simulation.metadata().clone();
        simulation.finish(&mut everything);
        let executed = system.with_threads_as_tasks();
        let plans = plan_lanes_of(&executed).expect("it has lanes");
        Run { executed, plans, metadata, records: everything.0 }
    }

    /// As a recording has it that was asked for all but these events.
    fn without(&self, left_out: &[Event]) -> Option<VerifyReport> {
        let (metadata, records) = recorded_without(&self.metadata, &self.records, left_out);
        let mut contents = Contents::new(&metadata);
        records.iter().for_each(|record| contents.record(*record));
        let coverage = Coverage::of(&metadata, &contents).ok()?;
        let verifier = Verifier::new(&metadata, &self.executed, &self.plans, Duration::ZERO);
        let mut verifier = verifier.expect("the same system").with_coverage(coverage);
        records.iter().for_each(|record| verifier.record(*record));
        Some(verifier.finish())
    }

    fn has(&self, event: Event) -> bool {
        self.records.iter().any(|record| record.event == event)
    }
}

/// The examples, and systems with what these have not.
fn systems() -> Vec<(String, System)> {
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples"));
    let files = std::fs::read_dir(examples).expect("the examples").map(|entry| entry.expect("a file").path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let read = |path: PathBuf| {
        let system = talea_model::read(&path).expect("a system").system;
        (path.display().to_string(), system)
    };
    let mut systems: Vec<(String, System)> = files.map(read).collect();
    let own = [("waiting", WAITING), ("merging", MERGING), ("inheriting", INHERITING)];
    systems.extend(own.map(|(name, text)| {
        (name.to_owned(), talea_model::parse(name, text, examples).expect("a system").system)
    }));
    systems
}

/// Jobs wait for room.
const WAITING: &str = r#"
[system]
name = "waiting"
strategy = "rms"
[[task]]
name = "push"
period = "5ms"
wcet = "500us"
outputs = [{ name = "x" }]
[[task]]
name = "take"
period = "9ms"
wcet = "1ms"
inputs = [{ name = "x", from = "push.x", take = "each", capacity = 2, full = "block", limit = "3ms" }]
[[task]]
name = "rest"
period = "20ms"
wcet = "3ms"
"#;

/// Guards hold what comes too soon, and what waits there is merged.
const MERGING: &str = r#"
[system]
name = "merging"
strategy = "rms"
[[channel]]
name = "c"
[[task]]
name = "push"
period = "3ms"
wcet = "100us"
events = [{ channel = "c", type = "T/A" }]
[[task]]
name = "take"
subscription = { channel = "c" }
separation = "10ms"
deadline = "10ms"
wcet = "1ms"
[[task]]
name = "held"
trigger = "external"
separation = "10ms"
arrivals = { poisson = "4ms" }
overrun = "merge"
deadline = "10ms"
wcet = "1ms"
"#;

/// Deadlines are inherited of who pushes and who publishes.
const INHERITING: &str = r#"
[system]
name = "inheriting"
strategy = "edf"
[[channel]]
name = "c"
[[task]]
name = "push"
period = "7ms"
wcet = "100us"
events = [{ channel = "c", type = "T/A" }]
outputs = [{ name = "x" }]
[[task]]
name = "by-events"
subscription = { channel = "c" }
deadline = "inherited"
wcet = "1ms"
[[task]]
name = "by-values"
trigger = { output = "push.x" }
deadline = "inherited"
wcet = "1ms"
"#;

#[test]
fn a_recording_without_a_kind_of_events_shows_nothing_wrong_and_nothing_obeyed_for_want_of_them() {
    let mut unknown = BTreeSet::new();
    for (name, system) in systems() {
        let run = Run::of(&system);
        let whole = run.without(&[]).expect("it is all there");
        assert_eq!((whole.count(), whole.possible()), (0, 0), "{name}: {:#?}", whole.violations);
        assert_eq!(whole.unrecorded, [], "{name}");
        for left_out in events_to_leave_out() {
            let Some(report) = run.without(&[left_out]) else { continue };
            let called = || format!("{name} without {}", name_of(left_out));
            let found = (report.count(), report.possible());
            assert_eq!(found, (0, 0), "{}: {:#?}", called(), report.violations);
            for (rule, whole) in report.rules.iter().zip(&whole.rules) {
                let is_seen_less = rule.cases < whole.cases;
                let is_obeyed = rule.judged() == Judged::Obeyed;
                assert!(!(is_seen_less && is_obeyed), "{}: {rule:?}, and whole {whole:?}", called());
                if rule.judged() == Judged::Unknown && run.has(left_out) {
                    unknown.insert((rule.rule.name(), name_of(left_out)));
                }
            }
            for unrecorded in &report.unrecorded {
                assert_eq!(unrecorded.events, [name_of(left_out)], "{}", called());
            }
        }
    }
    // That these are among the systems.
    for (rule, event) in [
        ("values", "port.take"),
        ("values", "port.publish"),
        ("events", "event.push"),
        ("events", "event.deliver"),
        ("lanes", "port.take"),
    ] {
        assert!(unknown.contains(&(rule, event.to_owned())), "{rule} without {event}: {unknown:?}");
    }
}

/// What the guards hold at the end is told: where it is not, what they may hold is unknown, and where it is, nothing else is missing.
#[test]
fn what_guards_may_hold_is_unknown_where_that_was_left_out() {
    let (_, system) = systems().into_iter().find(|(name, _)| name == "merging").expect("it is there");
    let run = Run::of(&system);
    assert!(run.has(Event::HELD), "something is held at the end");
    let of = |report: &VerifyReport, rule: Rule| {
        *report.rules.iter().find(|found| found.rule == rule).expect("all rules are there")
    };
    let (whole, left) = (run.without(&[]).expect("whole"), run.without(&[Event::HELD]).expect("judged"));
    assert_eq!(
        (of(&whole, Rule::Arrivals).judged(), of(&whole, Rule::Overrun).judged()),
        (Judged::Obeyed, Judged::Obeyed)
    );
    let [arrivals, overrun] = [Rule::Arrivals, Rule::Overrun].map(|rule| of(&left, rule));
    assert_eq!((arrivals.judged(), overrun.judged()), (Judged::ObeyedInPart, Judged::ObeyedInPart));
    assert_eq!((arrivals.basis, overrun.basis), (Basis::InPart, Basis::InPart));
}
