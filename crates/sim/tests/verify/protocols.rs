//! Synchronisation protocols: a run under one is clean by its own rules, and by those of another one only if that would have released the same
//! jobs at the same instants.

use super::{UNTIL, verify};
use crate::replay::{metadata, records_with};
use crate::systems::{Scope, dispatch, systems};
use proptest::prelude::*;
use std::collections::BTreeSet;
use talea_insight::verify::{Rule, VerifyReport};
use talea_model::Synchronisation;
use talea_record::{Event, Metadata, Origin, Record};
use talea_sim::DispatchRecords;
use talea_time::{Duration, Instant};

/// What became of jobs, in the order of time.
type History = BTreeSet<(Instant, u64, Event)>;

fn history(records: &[Record], is_told: impl Fn(Event) -> bool) -> History {
    let told = records.iter().filter(|record| record.event.is_job() && is_told(record.event));
    told.map(|record| (record.time, record.causal, record.event)).collect()
}

/// Whether two runs of one system come apart by what is released, and not by who of several equals executes first, or by who pays for a timer:
/// strategies leave the one open and the description's costs the other.
fn part_by_releases(one: &[Record], other: &[Record]) -> bool {
    let [all, others] = [one, other].map(|records| history(records, |_| true));
    let Some((parting, ..)) = all.symmetric_difference(&others).next() else { return false };
    let at = |records: &[Record], released: bool| {
        let mut told = history(records, |event| match released {
            true => event == Event::RELEASE,
            false => matches!(event, Event::COMPLETE | Event::ABORT | Event::SKIP),
        });
        told.retain(|(time, ..)| time == parting);
        told
    };
    at(one, false) == at(other, false) && at(one, true) != at(other, true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_protocol_is_clean_by_its_own_rules(
        system in systems(Scope::GUARDED), sync in prop::sample::select(Synchronisation::ALL), dispatch in dispatch(),
    ) {
        let system = system.with_synchronisation(sync);
        let records = records_with(&system, &[], UNTIL, dispatch);
        let report = verify(&metadata(&system), &records, &system, Duration::ZERO);
        prop_assert_eq!((report.count(), report.unjudged), (0, 0), "{:#?}", report.violations);
        prop_assert_eq!(unknown(&report), 0);
    }

    /// As if threads had made it: then signals are what was recorded, and idle points are not known.
    #[test]
    fn guards_of_threads_are_clean_by_what_is_recorded(
        system in systems(Scope::GUARDED), sync in prop::sample::select(Synchronisation::ALL),
    ) {
        let system = system.with_synchronisation(sync);
        let records = records_with(&system, &[], UNTIL, DispatchRecords::Kept);
        let metadata = Metadata { origin: Origin::Threads { realtime: true }, ..metadata(&system) };
        let report = verify(&metadata, &records, &system, Duration::from_secs(60));
        prop_assert_eq!((report.of(Rule::Release), report.of(Rule::Precedence)), (0, 0), "{:#?}", report.violations);
        let release = report.rules.iter().find(|report| report.rule == Rule::Release).expect("each rule is there");
        let knows_all = [Synchronisation::Greedy, Synchronisation::ReleaseGuard, Synchronisation::PhaseModification];
        prop_assert!(release.unknown == 0 || !knows_all.contains(&sync));
    }

    /// Jobs that take no time end in the instant in which they were released.
    #[test]
    fn protocols_of_jobs_that_take_no_time_are_clean_too(
        system in systems(Scope { protocols: true, ..Scope::FREE }), dispatch in dispatch(),
    ) {
        let records = records_with(&system, &[], UNTIL, dispatch);
        let report = verify(&metadata(&system), &records, &system, Duration::ZERO);
        prop_assert_eq!(report.count(), 0, "{:#?}", report.violations);
    }

    #[test]
    fn the_wrong_protocol_is_found(
        system in systems(Scope::GUARDED), [ran, asked] in [prop::sample::select(Synchronisation::ALL), prop::sample::select(Synchronisation::ALL)],
        dispatch in dispatch(),
    ) {
        let [ran, asked] = [ran, asked].map(|sync| system.with_synchronisation(sync));
        let [records, others] = [&ran, &asked].map(|system| records_with(system, &[], UNTIL, dispatch));
        let report = verify(&metadata(&ran), &records, &asked, Duration::ZERO);
        let released = |records: &[Record]| history(records, |event| event == Event::RELEASE);
        if report.count() > 0 {
            prop_assert_ne!(released(&records), released(&others), "{:#?}", report.violations);
        } else {
            prop_assert!(!part_by_releases(&records, &others));
        }
    }
}

fn unknown(report: &VerifyReport) -> u64 {
    report.rules.iter().map(|rule| rule.unknown).sum()
}
