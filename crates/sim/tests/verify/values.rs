//! Values and triggers: simulated traces are clean, and whatever is made wrong about them is found.

use super::verify;
use crate::chains::systems::systems;
use crate::replay::{metadata, records_with};
use proptest::prelude::*;
use proptest::sample::Index;
use talea_insight::verify::{Rule, VerifyReport};
use talea_model::System;
use talea_record::event::{Publish, Release, RunEnd, Take};
use talea_record::{Event, JobId, Metadata, Record, RunOutcome, SkipReason};
use talea_sim::DispatchRecords;
use talea_time::Duration;

const UNTIL: i64 = 300;

fn judged(system: &System, records: &[Record]) -> VerifyReport {
    verify(&metadata(system), records, system, Duration::ZERO)
}

/// One of those records that `choose` makes another one, made so.
fn change(records: &mut [Record], which: Index, choose: impl Fn(&Record) -> Option<Record>) -> bool {
    let changed: Vec<(usize, Record)> =
        records.iter().enumerate().filter_map(|(place, record)| Some((place, choose(record)?))).collect();
    let Some((place, record)) = (!changed.is_empty()).then(|| which.get(&changed)) else { return false };
    records[*place] = *record;
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_simulated_trace_with_values_is_clean(system in systems(), kept in any::<bool>()) {
        let dispatch = if kept { DispatchRecords::Kept } else { DispatchRecords::Dropped };
        let report = judged(&system, &records_with(&system, &[], UNTIL, dispatch));
        prop_assert_eq!(report.count(), 0, "{:#?}", report.violations);
    }

    /// `take-older`: no input gives what was taken or overwritten before.
    #[test]
    fn a_take_of_an_older_value_is_found(system in systems(), which in any::<Index>()) {
        let mut records = records_with(&system, &[], UNTIL, DispatchRecords::Dropped);
        let older = |record: &Record| {
            let take = Take::read(record)?;
            let from = take.from.filter(|from| from.instance > 0)?;
            let from = Some(JobId { instance: from.instance - 1, ..from });
            Some(Take { from, ..take }.at(record.time, record.cpu))
        };
        prop_assume!(change(&mut records, which, older));
        prop_assert!(judged(&system, &records).of(Rule::Values) > 0 || has_link(&system));
    }

    /// `take-newer`: what is published later cannot be taken.
    #[test]
    fn a_take_of_a_later_value_is_found(system in systems(), which in any::<Index>()) {
        let mut records = records_with(&system, &[], UNTIL, DispatchRecords::Dropped);
        let later = |record: &Record| {
            let take = Take::read(record)?;
            let from = take.from?;
            let from = Some(JobId { instance: from.instance + 1000, ..from });
            Some(Take { from, ..take }.at(record.time, record.cpu))
        };
        prop_assume!(change(&mut records, which, later));
        prop_assert!(judged(&system, &records).of(Rule::Values) > 0);
    }

    /// `publish-dropped`: what is taken or released by it comes from nowhere, unless nobody has it.
    #[test]
    fn a_value_that_was_not_published_is_missed(system in systems(), which in any::<Index>()) {
        let records = records_with(&system, &[], UNTIL, DispatchRecords::Dropped);
        let taken = records.iter().filter_map(Take::read).filter_map(|take| take.from);
        let taken: Vec<JobId> = taken.collect();
        prop_assume!(!taken.is_empty());
        let victim = *which.get(&taken);
        let is_it = |record: &Record| Publish::read(record).is_some_and(|publish| publish.job == victim);
        let kept: Vec<Record> = records.iter().filter(|record| !is_it(record)).copied().collect();
        prop_assert!(judged(&system, &kept).of(Rule::Values) > 0);
    }

    /// `trigger-early`: a task that the outside or values release keeps what is declared of it.
    #[test]
    fn a_release_at_another_time_is_found(system in systems(), which in any::<Index>()) {
        let mut records = records_with(&system, &[], UNTIL, DispatchRecords::Dropped);
        let log = system.operations().iter().find(|operation| operation.name == "log").expect("it is there").id;
        let shifted = |record: &Record| {
            let release = Release::read(record).filter(|release| release.job.operation == log)?;
            let by = Duration::from_nanos(1);
            let (nominal, deadline) = (release.nominal.saturating_add(-by), release.deadline.saturating_add(-by));
            Some(Release { nominal, deadline, ..release }.at(record.time, record.cpu))
        };
        prop_assume!(change(&mut records, which, shifted));
        prop_assert!(judged(&system, &records).of(Rule::Triggers) > 0 || has_link(&system));
    }
}

/// Over a link nobody knows when a value arrives.
fn has_link(system: &System) -> bool {
    let nodes: std::collections::BTreeSet<usize> =
        system.operations().iter().map(|operation| system.subtask(operation.id).node).collect();
    nodes.len() > 1
}

/// Nobody keeps arrivals from outside apart that are only counted; what is deferred or dropped is kept apart.
#[test]
fn separation_is_held_where_it_is_declared() {
    let text = |excess: &str, burst: usize| {
        format!(
            "[system]\nname = \"outside\"\n[[node]]\nname = \"one\"\ncpus = [0]\n[[task]]\nname = \"stop\"\ntrigger = \"external\"\n\
             separation = \"10ns\"\nburst = {burst}\nexcess = \"{excess}\"\narrivals = {{ poisson = \"6ns\" }}\nwcet = \"1ns\"\ndeadline = \"20ns\"\n"
        )
    };
    let bursty = |excess: &str, burst: usize| {
        let text = text(excess, burst);
        talea_model::parse("outside.toml", &text, std::path::Path::new(".")).expect("a system").system
    };
    let system = |excess: &str| bursty(excess, 2);
    let (counts, defers) = (system("count"), system("defer"));
    let records = records_with(&counts, &[], UNTIL, DispatchRecords::Kept);
    assert_eq!(judged(&counts, &records).count(), 0);
    assert!(records.iter().filter(|record| record.event == Event::RELEASE).count() > 20);
    assert!(judged(&defers, &records).of(Rule::Triggers) > 0, "they came closer together than that");
    for excess in ["defer", "drop"] {
        let system = system(excess);
        let records = records_with(&system, &[], UNTIL, DispatchRecords::Kept);
        let report = judged(&system, &records);
        assert_eq!(report.count(), 0, "{excess}: {:#?}", report.violations);
    }
    // The thread that releases them comes late once, and to the next ones in time.
    let defers = bursty("defer", 1);
    let mut records = records_with(&defers, &[], UNTIL, DispatchRecords::Dropped);
    for record in records.iter_mut().filter(|record| record.event.is_job() && record.job().instance == 2) {
        record.time = record.time.saturating_add(Duration::from_nanos(4));
    }
    records.sort_by_key(|record| record.time);
    assert!(records.iter().filter(|record| record.event == Event::RELEASE).count() > 8);
    assert_eq!(judged(&defers, &records).of(Rule::Triggers), 0);
}

/// A task that publishes every 10 ms, and one that takes its latest value every 20 ms: the system, and tables and records as if of threads.
fn on_threads() -> (System, Metadata, Vec<Record>) {
    let text = "[system]\nname = \"late\"\nstrategy = \"rms\"\nlane_dispatch = \"nonpreemptive\"\n[[node]]\nname = \"one\"\ncpus = [0]\n\
                [[task]]\nname = \"p\"\nperiod = \"10ms\"\nwcet = \"1ms\"\noutputs = [{ name = \"v\", bytes = 8 }]\n\
                [[task]]\nname = \"c\"\nperiod = \"20ms\"\nphase = \"5ms\"\nwcet = \"1ms\"\n\
                inputs = [{ name = \"v\", from = \"p.v\", take = \"latest\" }]\n";
    let system = talea_model::parse("late.toml", text, std::path::Path::new(".")).expect("a system").system;
    let mut metadata = metadata(&system);
    metadata.origin = talea_record::Origin::Threads { realtime: true };
    let mut records = records_with(&system, &[], 100_000_000, DispatchRecords::Kept);
    // Nothing takes the place of what has been taken.
    records.retain(|record| record.event != Event::DROP);
    (system, metadata, records)
}

fn is_third_take(record: &Record) -> bool {
    Take::read(record).is_some_and(|take| take.job.instance == 3)
}

/// Cases, violations, and what is possibly one.
fn of_values(report: &VerifyReport) -> (u64, u64, u64) {
    let values = report.rules.iter().find(|rule| rule.rule == Rule::Values).expect("each rule is there");
    (values.cases, values.violations, values.possible)
}

/// On threads a value is dated by the end of its job, and handed on when the thread has its processor again: a reader may miss it meanwhile. Where the
/// lane has begun another job since, it was handed on.
#[test]
fn what_a_stopped_thread_may_not_have_handed_on_yet_is_missed_possibly() {
    let (system, metadata, records) = on_threads();
    let judged = |older: u64| {
        let mut records = records.clone();
        let record =
            records.iter_mut().find(|record| is_third_take(record)).expect("the third job takes a value");
        let take = Take::read(record).expect("it is one");
        let from = take.from.map(|from| JobId { instance: from.instance - older, ..from });
        *record = Take { from, ..take }.at(record.time, record.cpu);
        let report = verify(&metadata, &records, &system, Duration::from_micros(200));
        let (_, violations, possible) = of_values(&report);
        (violations, possible)
    };
    assert_eq!([judged(0), judged(1)], [(0, 0), (0, 1)], "its lane has begun nothing since");
    // The one before the newest was there, for the newest had begun.
    assert_eq!(judged(2), (1, 0));
}

/// What becomes visible between the beginning of a job and its telling what it took was not there when it looked, and may have been.
#[test]
fn what_becomes_visible_before_a_thread_tells_what_it_took_is_not_missed() {
    let text = "[system]\nname = \"late\"\nstrategy = \"rms\"\nlane_dispatch = \"nonpreemptive\"\n[[node]]\nname = \"one\"\ncpus = [0]\n\
                [[task]]\nname = \"p\"\nperiod = \"10ms\"\nwcet = \"1ms\"\ncommunication = \"let\"\n\
                outputs = [{ name = \"v\", bytes = 8 }]\n\
                [[task]]\nname = \"c\"\nperiod = \"20ms\"\nphase = \"9900us\"\nwcet = \"1ms\"\n\
                inputs = [{ name = \"v\", from = \"p.v\", take = \"latest\" }]\n";
    let system = talea_model::parse("late.toml", text, std::path::Path::new(".")).expect("a system").system;
    let mut metadata = metadata(&system);
    metadata.origin = talea_record::Origin::Threads { realtime: true };
    let mut records = records_with(&system, &[], 100_000_000, DispatchRecords::Kept);
    let taken = records.iter().filter_map(Take::read).filter_map(|take| Some(take.from?.instance));
    assert_eq!(taken.collect::<Vec<_>>(), [1, 3, 5, 7], "the one before the period that is about to end");
    let beyond_the_end = Duration::from_micros(150);
    for record in records.iter_mut().filter(|record| record.event == Event::TAKE) {
        record.time = record.time.saturating_add(beyond_the_end);
    }
    records.sort_by_key(|record| record.time);
    let judged = |newer: u64| {
        let mut records = records.clone();
        let record =
            records.iter_mut().find(|record| is_third_take(record)).expect("the third takes a value");
        let take = Take::read(record).expect("it is one");
        let from = take.from.map(|from| JobId { instance: from.instance + newer, ..from });
        *record = Take { from, ..take }.at(record.time, record.cpu);
        of_values(&verify(&metadata, &records, &system, Duration::from_micros(200)))
    };
    assert_eq!([judged(0), judged(1)], [(5, 0, 0), (5, 0, 0)]);
    assert_eq!(judged(2).1, 1, "nobody has published that");
}

/// A job that a run's end found in its midst takes values behind it: since when it looks is not known any more.
#[test]
fn what_is_taken_after_the_end_of_the_run_is_not_judged() {
    let (system, metadata, mut records) = on_threads();
    let place = records.iter().position(is_third_take).expect("the third job takes a value");
    let take = records.remove(place);
    // Behind the next value, and behind the beginning of the job that publishes the one after it.
    let at = |milliseconds: i64| talea_time::Instant::from_nanos(milliseconds * 1_000_000);
    records.retain(|record| record.time <= at(80));
    let taken_at = |time| Record { time, ..take };
    let values_with = |last: &[Record]| {
        let mut records = [&records, last].concat();
        records.sort_by_key(|record| record.time);
        of_values(&verify(&metadata, &records, &system, Duration::from_micros(200)))
    };
    let end = RunEnd { node: 0, how: RunOutcome::Over.into() }.at(at(81), Record::NO_CPU);
    let (cases, violations, possible) = values_with(&[end]);
    assert_eq!((violations, possible), (0, 0), "nothing of it is told");
    assert_eq!(values_with(&[end, taken_at(at(82))]), (cases, 0, 0), "a case, though the run has ended");
    assert_eq!(values_with(&[taken_at(at(79)), end]).0, cases + 1, "before the end it is one");
}

fn broken(report: &VerifyReport) -> Vec<Rule> {
    Rule::ALL.into_iter().filter(|rule| report.of(*rule) > 0).collect()
}

/// What is skipped, or held at the end, for a reason that its task does not have.
#[test]
fn reasons_to_skip_and_to_hold_are_those_of_the_task() {
    let system = |excess: &str| {
        let text = format!(
            "[system]\nname = \"s\"\nstrategy = \"rms\"\n[[task]]\nname = \"t\"\ntrigger = \"external\"\nseparation = \"10ns\"\n\
             excess = \"{excess}\"\narrivals = {{ list = [\"1ns\", \"2ns\", \"50ns\", \"51ns\"] }}\nwcet = \"1ns\"\ndeadline = \"20ns\"\n"
        );
        talea_model::parse("s.toml", &text, ".".as_ref()).expect("it is sound").system
    };
    let told = |excess: &str| records_with(&system(excess), &[], 55, DispatchRecords::Dropped);
    let (deferred, dropped) = (told("defer"), told("drop"));
    assert_eq!(deferred.iter().filter(|record| record.event == Event::HELD).count(), 1);
    assert_eq!(dropped.iter().filter(|record| record.event == Event::SKIP).count(), 2);
    for (excess, records) in [("defer", &deferred), ("drop", &dropped)] {
        assert_eq!(broken(&judged(&system(excess), records)), []);
    }
    assert_eq!(broken(&judged(&system("count"), &deferred)), [Rule::Release], "nothing is to hold it");
    let mut expired = dropped.clone();
    let skips = expired.iter_mut().filter(|record| record.event == Event::SKIP);
    skips.for_each(|skip| skip.arg = SkipReason::Expired as u16);
    assert_eq!(broken(&judged(&system("drop"), &expired)), [Rule::Release], "no events release it");
    assert_eq!(broken(&judged(&system("defer"), &dropped)), [Rule::Release], "it drops nothing");
}
