//! The decisions of random hierarchies are found to be as they may; those of altered records are not.

use crate::replay::Everything;
use proptest::prelude::*;
use std::collections::BTreeMap;
use talea_conformance::forest;
use talea_conformance::promises::{admitted, cases};
use talea_insight::decisions::{Decisions, DecisionsReport, Rule};
use talea_model::System;
use talea_record::event::Typed;
use talea_record::{Event, Metadata, Record, Sink};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::Instant;

fn simulated(system: &System, until_ms: i64) -> (Metadata, Vec<Record>) {
    let mut simulation =
        Simulation::new(system).expect("it is admitted").with_dispatch(DispatchRecords::Kept);
    let (metadata, mut everything) = (simulation.metadata().clone(), Everything::default());
    simulation.advance(Instant::from_nanos(until_ms * 1_000_000), &mut everything);
    simulation.finish(&mut everything);
    (metadata, everything.0)
}

fn judged(system: &System, metadata: &Metadata, records: &[Record]) -> DecisionsReport {
    let mut decisions = Decisions::new(metadata, system);
    records.iter().for_each(|record| decisions.record(*record));
    decisions.finish()
}

fn assert_obeyed(system: &System) {
    let (metadata, records) = simulated(system, 150);
    let report = judged(system, &metadata, &records);
    assert_eq!(report.violations, []);
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn those_of_a_simulation_are_as_they_may_be(tree in forest::trees()) {
        assert_obeyed(&admitted(&tree, &[0]).system_on(&[0]));
    }

    #[test]
    fn those_on_several_processors_too(tree in forest::surplus()) {
        assert_obeyed(&admitted(&tree, &[0, 1]).system_on(&[0, 1]));
    }

    #[test]
    fn those_of_limits_too(tree in forest::limited()) {
        assert_obeyed(&admitted(&tree, &[0]).system_on(&[0]));
    }
}

const FIGURE: &str = include_str!("../../../../examples/figure-1.toml");

fn figure() -> System {
    talea_model::parse("figure-1.toml", FIGURE, std::path::Path::new(".")).expect("an example").system
}

/// What is found where one record in this many is altered, by rule.
fn found(alter: impl Fn(Record) -> Option<Record>, is_one: impl Fn(&Record) -> bool) -> BTreeMap<Rule, u64> {
    let system = figure();
    let (metadata, records) = simulated(&system, 500);
    let ones = records.iter().filter(|record| is_one(record)).count();
    assert!(ones > 4, "there are {ones}");
    let mut nth = 0;
    let altered = |record: &Record| {
        nth += usize::from(is_one(record));
        if is_one(record) && nth == ones / 2 { alter(*record) } else { Some(*record) }
    };
    let altered: Vec<Record> = records.iter().filter_map(altered).collect();
    let report = judged(&system, &metadata, &altered);
    report.rules.iter().filter(|rule| rule.violations > 0).map(|rule| (rule.rule, rule.violations)).collect()
}

#[test]
fn every_rule_has_cases_in_the_example_and_is_obeyed() {
    let system = figure();
    let (metadata, records) = simulated(&system, 2_000);
    let report = judged(&system, &metadata, &records);
    assert_eq!(report.violations, []);
    let judged = report.rules.iter().filter(|rule| rule.cases > 50).count();
    assert_eq!(judged, 4, "nobody of a priority of its own waits for a lower one: {:?}", report.rules);
}

#[test]
fn a_request_that_was_not_made_is_missed() {
    assert!(found(|_| None, |record| record.event == Event::VP_REQUEST).contains_key(&Rule::Transitions));
}

#[test]
fn a_grant_to_another_edge_is_found() {
    let to_another = |record: Record| Some(Record { source: (record.source + 1) % 7, ..record });
    let found = found(to_another, |record| record.event == Event::VP_GRANT);
    assert!(found.contains_key(&Rule::Transitions) && found.contains_key(&Rule::Processors), "{found:?}");
}

#[test]
fn a_job_that_begins_elsewhere_is_found() {
    let elsewhere = |record: Record| Some(Record { cpu: 7, ..record });
    let found = found(elsewhere, |record| matches!(record.event, Event::START | Event::RESUME));
    assert_eq!(found.keys().collect::<Vec<_>>(), [&Rule::Jobs]);
}

#[test]
fn a_broken_promise_that_was_not_is_found() {
    let system = figure();
    let (metadata, mut records) = simulated(&system, 500);
    let at = records
        .iter()
        .position(|record| record.time >= Instant::from_nanos(300_000_000))
        .expect("it is longer");
    let violation = talea_record::event::Violation {
        amount: talea_time::Duration::from_millis(1),
        edge: 1,
        from: Instant::from_nanos(270_000_000),
        to: Instant::from_nanos(290_000_000),
        side: talea_record::ViolationSide::Least.into(),
    };
    records.insert(at, violation.at(records[at].time, Record::NO_CPU));
    let report = judged(&system, &metadata, &records);
    assert_eq!(report.violations.len(), 1, "{:?}", report.violations);
    assert!(
        report.violations[0].text.contains("is recorded as broken, and was not"),
        "{:?}",
        report.violations
    );
}

/// Threads below one scheduler, at priorities that the file of another system has the other way round.
#[test]
fn who_is_served_before_a_higher_priority_is_found() {
    let text = r#"
        [system]
        name = "priorities"
        [[scheduler]]
        name = "FP"
        kind = "fixed-priority"
        [[thread]]
        name = "a"
        work = { burst = "3ms", period = "10ms" }
        under = [{ scheduler = "FP", priority = 2 }]
        [[thread]]
        name = "b"
        work = { burst = "4ms", period = "15ms" }
        under = [{ scheduler = "FP", priority = 1 }]
    "#;
    let parse = |text: &str| {
        talea_model::parse("priorities.toml", text, std::path::Path::new(".")).expect("a system").system
    };
    let system = parse(text);
    let (metadata, records) = simulated(&system, 500);
    let report = judged(&system, &metadata, &records);
    assert_eq!(report.violations, []);
    assert!(report.rules[Rule::Priority as usize].cases > 10, "{:?}", report.rules);
    let other = parse(&text.replace("priority = 1", "priority = 3"));
    let report = judged(&other, &metadata, &records);
    assert!(report.count() > 10 && report.violations.iter().all(|one| one.rule == Rule::Priority));
    assert!(report.violations[0].text.contains("FP to a is served while FP to b is ready"), "{report:?}");
}

#[test]
fn what_follows_a_loss_is_not_judged_until_it_is_heard_of() {
    let system = figure();
    let (metadata, records) = simulated(&system, 500);
    let (from, to) = (records.len() / 3, records.len() / 2);
    let lost = talea_record::event::Lost {
        records: (to - from) as u64,
        since: None,
        ring: 0,
        cause: talea_record::LossCause::Overwritten.into(),
    };
    let mut kept = records[..from].to_vec();
    kept.push(lost.at(records[to].time, Record::NO_CPU));
    kept.extend(&records[to..]);
    assert_eq!(judged(&system, &metadata, &kept).violations, []);
    let decisions = records.iter().filter(|record| matches!(record.typed(), Typed::VpGrant(_))).count();
    assert!(decisions > 100);
}

/// Decisions stand in a ring of their own. When some of them are lost, records that others wrote meanwhile are there, and come first.
#[test]
fn what_was_found_without_what_was_lost_does_not_stand() {
    let system = figure();
    let (metadata, records) = simulated(&system, 500);
    let (from, to) = (records.len() / 3, records.len() / 2);
    let since = records[from].time;
    let of_jobs = |record: &&Record| record.event.is_job();
    let (before, between) = (records[..from].to_vec(), records[from..to].iter().filter(of_jobs));
    let told = |since: Option<Instant>| {
        let lost = talea_record::event::Lost {
            records: 1,
            since,
            ring: 0,
            cause: talea_record::LossCause::Overwritten.into(),
        };
        lost.at(records[to].time, Record::NO_CPU)
    };
    let judged_with = |loss: Option<Record>| {
        let mut kept = before.clone();
        kept.extend(between.clone());
        kept.extend(loss);
        judged(&system, &metadata, &kept)
    };
    let unsaid = judged_with(None);
    assert!(unsaid.rules[Rule::Jobs as usize].violations > 0, "{:?}", unsaid.rules);
    for since in [Some(since), None] {
        let said = judged_with(Some(told(since)));
        assert_eq!((said.count(), said.violations), (0, vec![]));
    }
    // What is wrong before that is wrong.
    let later = judged_with(Some(told(Some(records[to].time))));
    assert!(later.rules[Rule::Jobs as usize].violations > 0, "{:?}", later.rules);
}

/// Threads may be at a job still when nobody decides any more, and begin the next one before they hear of it.
#[test]
fn jobs_after_the_end_are_not_judged() {
    let system = figure();
    let (metadata, mut records) = simulated(&system, 500);
    let is_start = |record: &&Record| matches!(record.typed(), Typed::Start(_));
    let start = *records.iter().rfind(is_start).expect("some job begins");
    let late = |end: Instant| Record { time: end + talea_time::Duration::from_micros(300), ..start };
    let end = records.last().expect("the end of the run").time;
    assert_eq!(
        judged(&system, &metadata, &[&records[..], &[late(end), late(late(end).time)]].concat()).violations,
        []
    );
    // Before it, nobody has let it.
    records.retain(|record| !matches!(record.typed(), Typed::RunEnd(_)));
    let unended = judged(&system, &metadata, &[&records[..], &[late(end), late(late(end).time)]].concat());
    assert!(unended.rules[Rule::Jobs as usize].violations > 0, "{:?}", unended.rules);
}
