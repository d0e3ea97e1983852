//! Real threads whose jobs have begun and do not run: the kernel tells, or nobody can.

use super::verify;
use crate::replay::{metadata, records_with};
use std::path::Path;
use talea_insight::verify::{Certainty, Judged, Rule, RuleReport, Verifier, VerifyReport};
use talea_model::System;
use talea_policy::strategy::plan_system;
use talea_record::Sink;
use talea_record::{Event, JobId, Metadata, Origin, Record, ThreadRole};
use talea_sim::DispatchRecords;
use talea_time::{Duration, Instant};

const HIGH: u64 = 1;
const LOW: u64 = 2;
const TOLERANCE: Duration = Duration::from_nanos(5);

/// `low` runs from 0 on; `high` comes at 10, takes 30, and ends at 40.
fn system(cpus: &str) -> System {
    let task = |name: &str, phase: i64, criticality: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"100ns\"\ndeadline = \"90ns\"\nphase = \"{phase}ns\"\nwcet = \"30ns\"\n\
             criticality = \"{criticality}\"\n"
        )
    };
    let tasks = task("high", 10, "high") + &task("low", 0, "low");
    let text = format!(
        "[system]\nname = \"displaced\"\nstrategy = \"criticality\"\n[[node]]\nname = \"one\"\ncpus = {cpus}\n{tasks}"
    );
    talea_model::parse("displaced.toml", &text, Path::new(".")).expect("a system").system
}

fn real(system: &System, realtime: bool) -> Metadata {
    Metadata { origin: Origin::Threads { realtime }, ..metadata(system) }
}

/// What the threads of a run record of their jobs where the kernel preempts unseen: when they begin and end.
fn unseen(system: &System) -> Vec<Record> {
    let all = records_with(system, &[], 90, DispatchRecords::Dropped);
    all.into_iter().filter(|record| !matches!(record.event, Event::PREEMPT | Event::RESUME)).collect()
}

fn of_kernel(time: i64, event: Event, words: [u64; 2], arg: u16) -> Record {
    let time = Instant::from_nanos(time);
    Record { time, causal: 0, words, event, source: Record::KERNEL, cpu: 0, arg }
}

/// A switch; `arg` is 1 if the thread that leaves could go on.
fn switch(time: i64, from: u64, to: u64, arg: u16) -> Record {
    of_kernel(time, Event::SWITCH, [from | to << 32, 0], arg)
}

/// The records with the kernel's, of which the first say which thread is which lane's.
fn with_kernel(metadata: &Metadata, mut records: Vec<Record>, kernel: &[Record]) -> Vec<Record> {
    for (operation, thread) in [(0, HIGH), (1, LOW)] {
        let met = of_kernel(0, Event::THREAD, [thread, 0], ThreadRole::Lane as u16);
        records.push(Record { source: metadata.operations[operation].lane as u16, ..met });
    }
    records.extend(kernel);
    records.sort_by_key(|record| record.time);
    records
}

fn rule(report: &VerifyReport, rule: Rule) -> RuleReport {
    *report.rules.iter().find(|report| report.rule == rule).expect("every rule")
}

fn kernels(kernel: &[Record]) -> VerifyReport {
    let system = system("[0]");
    let metadata = real(&system, true);
    let records = with_kernel(&metadata, unseen(&system), kernel);
    verify(&metadata, &records, &system, TOLERANCE)
}

/// The kernel takes the processor from a job that has begun and could go on, and gives it to the lower lane.
#[test]
fn a_job_that_has_begun_is_displaced_without_a_record_of_it() {
    let report = kernels(&[
        switch(0, 0, LOW, 0),
        switch(10, LOW, HIGH, 1),
        switch(20, HIGH, LOW, 1),
        switch(32, LOW, HIGH, 1),
        switch(40, HIGH, LOW, 0),
        switch(61, LOW, 0, 0),
    ]);
    assert_eq!((report.count(), report.of(Rule::Lanes)), (1, 1), "{report:#?}");
    let violation = &report.violations[0];
    assert_eq!((violation.job.as_deref(), violation.other.as_deref()), (Some("low #0"), Some("high #0")));
    assert_eq!((violation.at_ns, violation.duration_ns, violation.certainty), (20, 12, Certainty::Certain));
    assert!(violation.text.contains("had begun and could go on"), "{violation:?}");
}

/// After a loss the job that a lane goes on with may be one of which nothing else is known; it is not the next one that is.
#[test]
fn after_a_loss_the_job_that_runs_is_the_one_that_its_record_names() {
    let system = system("[0]");
    let metadata = real(&system, true);
    let mut records = unseen(&system);
    let of = |event: Event, operation: usize| {
        move |record: &&mut Record| record.event == event && record.job().operation.index() == operation
    };
    for (operation, begins) in [(1, 11), (0, 12)] {
        let start = records.iter_mut().find(of(Event::START, operation)).expect("it begins");
        start.time = Instant::from_nanos(begins);
    }
    let release = *records.iter_mut().find(of(Event::RELEASE, 0)).expect("it is released");
    let next = JobId { instance: 1, ..release.job() }.pack();
    records.push(Record { time: Instant::from_nanos(14), causal: next, ..release });
    let lost = of_kernel(10, Event::LOST, [3, 9], 0);
    records.push(Record { source: Record::DAMAGED, cpu: Record::NO_CPU, ..lost });
    let kernel = [
        switch(0, 0, LOW, 0),
        switch(12, LOW, HIGH, 1),
        switch(20, HIGH, LOW, 1),
        switch(32, LOW, HIGH, 1),
        switch(40, HIGH, LOW, 0),
        switch(61, LOW, 0, 0),
    ];
    let report = verify(&metadata, &with_kernel(&metadata, records, &kernel), &system, TOLERANCE);
    let of_lanes = report.violations.iter().filter(|violation| violation.rule == Rule::Lanes);
    for violation in of_lanes.clone().filter(|violation| violation.text.contains("had begun")) {
        assert_eq!(violation.other.as_deref(), Some("high #0"), "{violation:?}");
    }
    assert!(of_lanes.count() > 0, "{report:#?}");
}

/// A job that waits for something else leaves its processor to whoever can use it, until it is woken.
#[test]
fn a_job_that_blocks_is_not_displaced_before_it_is_woken() {
    let blocks = [
        switch(0, 0, LOW, 0),
        switch(10, LOW, HIGH, 1),
        switch(20, HIGH, LOW, 0),
        switch(32, LOW, HIGH, 1),
        switch(40, HIGH, LOW, 0),
        switch(61, LOW, 0, 0),
    ];
    let report = kernels(&blocks);
    assert_eq!((report.count(), rule(&report, Rule::Lanes).judged()), (0, Judged::Obeyed), "{report:#?}");
    let woken = of_kernel(24, Event::WAKEUP, [HIGH, 0], 1);
    let report = kernels(&[&blocks[..], &[woken]].concat());
    assert_eq!(report.of(Rule::Lanes), 1, "{report:#?}");
    assert_eq!((report.violations[0].at_ns, report.violations[0].duration_ns), (24, 8));
}

/// Without the kernel nobody knows which of two jobs ran that have begun on one processor.
#[test]
fn what_nobody_saw_is_not_obeyed() {
    let one = system("[0]");
    let check = |system: &System, realtime: bool, records: &[Record]| {
        verify(&real(system, realtime), records, system, TOLERANCE)
    };
    let report = check(&one, false, &unseen(&one));
    let lanes = rule(&report, Rule::Lanes);
    assert_eq!((report.count(), lanes.judged()), (0, Judged::ObeyedInPart), "{report:#?}");
    assert_eq!((lanes.unseen, lanes.longest_unseen_ns), (1, 30));
    assert!(report.is_partial() && !report.without_case().any(|rule| rule == Rule::Lanes));
    assert_eq!(rule(&report, Rule::Idle).judged(), Judged::Obeyed);
    // Threads with priorities record who was displaced, or it follows from them.
    for records in [unseen(&one), records_with(&one, &[], 90, DispatchRecords::Dropped)] {
        let report = check(&one, true, &records);
        assert_eq!(rule(&report, Rule::Lanes).judged(), Judged::Obeyed, "{report:#?}");
        assert!(!report.is_partial());
    }
    // Both began on one processor of two: the one displaced may have gone to the other, or may not.
    let two = system("[0, 1]");
    let mut records = unseen(&two);
    records.iter_mut().filter(|record| record.cpu != Record::NO_CPU).for_each(|record| record.cpu = 0);
    let report = check(&two, true, &records);
    assert_eq!((report.count(), rule(&report, Rule::Lanes).unseen), (0, 1), "{report:#?}");
}

/// The lane's thread has the processor and dispatches: nothing idles.
#[test]
fn dispatching_is_overhead_and_no_idling() {
    let system = system("[0]");
    let metadata = real(&system, true);
    let mut records = unseen(&system);
    let high = |record: &&mut Record| record.event == Event::START && record.job().operation.index() == 0;
    records.iter_mut().find(high).expect("it begins").time = Instant::from_nanos(25);
    // The lower job ends first, so that only the kernel knows what the processor does.
    let low = |record: &&mut Record| record.event == Event::COMPLETE && record.job().operation.index() == 1;
    records.iter_mut().find(low).expect("it ends").time = Instant::from_nanos(10);
    let held = [switch(0, 0, LOW, 0), switch(10, LOW, HIGH, 0), switch(40, HIGH, 0, 0)];
    let all = with_kernel(&metadata, records.clone(), &held);
    let report = verify(&metadata, &all, &system, TOLERANCE);
    assert_eq!(report.count() + report.possible(), 0, "{report:#?}");
    let dispatching = rule(&report, Rule::Dispatching);
    assert_eq!((dispatching.cases, dispatching.tolerated, dispatching.longest_tolerated_ns), (1, 1, 15));
    // As long as it may be and no longer.
    for (overhead, violations) in [(15, 0), (14, 1)] {
        let plans = plan_system(&system).expect("no anomalies");
        let verifier = Verifier::new(&metadata, &system, &plans, TOLERANCE).expect("the same system");
        let mut verifier = verifier.with_overhead(Duration::from_nanos(overhead));
        all.iter().for_each(|record| verifier.record(*record));
        assert_eq!(verifier.finish().of(Rule::Dispatching), violations, "{overhead}");
    }
    // A processor that nobody has does idle.
    let idle = [switch(0, 0, LOW, 0), switch(10, LOW, 0, 0), switch(24, 0, HIGH, 0), switch(40, HIGH, 0, 0)];
    let all = with_kernel(&metadata, records, &idle);
    let report = verify(&metadata, &all, &system, TOLERANCE);
    let dispatching = rule(&report, Rule::Dispatching).longest_tolerated_ns;
    assert_eq!((report.count(), report.of(Rule::Idle)), (1, 1), "{report:#?}");
    assert!(dispatching < TOLERANCE.as_nanos(), "{report:#?}");
    assert_eq!(report.violations[0].duration_ns, 14);
}

/// The higher job begins late, and in what the threads say of themselves the lower one runs meanwhile. The kernel may have held
/// the higher lane's thread off, or both: it alone tells.
#[test]
fn without_the_kernel_a_lower_job_ran_possibly() {
    let system = system("[0]");
    let metadata = real(&system, true);
    let mut records = unseen(&system);
    let high = |record: &&mut Record| record.event == Event::START && record.job().operation.index() == 0;
    records.iter_mut().find(high).expect("it begins").time = Instant::from_nanos(25);
    records.sort_by_key(|record| record.time);
    let report = verify(&metadata, &records, &system, TOLERANCE);
    assert_eq!((report.count(), report.possible()), (0, 1), "{report:#?}");
    assert_eq!(rule(&report, Rule::Lanes).judged(), Judged::PossiblyViolated);
    let violation = &report.violations[0];
    assert_eq!((violation.rule, violation.certainty), (Rule::Lanes, Certainty::Possible));
    assert_eq!((violation.at_ns, violation.duration_ns), (10, 15));
    let kernel =
        [switch(0, 0, LOW, 0), switch(25, LOW, HIGH, 1), switch(40, HIGH, LOW, 0), switch(61, LOW, 0, 0)];
    let report = verify(&metadata, &with_kernel(&metadata, records, &kernel), &system, TOLERANCE);
    assert_eq!((report.of(Rule::Lanes), report.possible()), (1, 0), "{report:#?}");
    assert_eq!(report.violations[0].certainty, Certainty::Certain);
}

/// Short jobs of lower lanes, each shorter than the tolerance, with their threads' dispatching in between: together they last.
#[test]
fn many_short_turns_of_lower_lanes_are_one_violation() {
    let kernel =
        [switch(0, 0, LOW, 0), switch(10, LOW, HIGH, 1), switch(20, HIGH, LOW, 1), switch(40, LOW, 0, 0)];
    let system = system("[0]");
    let metadata = real(&system, true);
    let mut records = unseen(&system);
    let ends = |record: &&mut Record| record.event == Event::COMPLETE && record.job().operation.index() == 1;
    // The lower job ends in its turn, and its thread goes on without one.
    records.iter_mut().find(ends).expect("it ends").time = Instant::from_nanos(24);
    records.retain(|record| record.event != Event::COMPLETE || record.job().operation.index() == 1);
    let report = verify(&metadata, &with_kernel(&metadata, records, &kernel), &system, TOLERANCE);
    assert_eq!(report.of(Rule::Lanes), 1, "{report:#?}");
    let violation = &report.violations[0];
    assert_eq!((violation.at_ns, violation.duration_ns), (20, 20), "{violation:?}");
    assert!(violation.text.starts_with("it and others of lower lanes"), "{violation:?}");
}
