//! Chains: what the accounting measures on the way is what their definitions give on all records of random systems.

mod definition;
pub mod systems;

use crate::replay::{metadata, records, records_with};
use definition::by_definition;
use proptest::prelude::*;
use std::convert::Infallible;
use systems::systems;
use talea_insight::Accounting;
use talea_insight::explain::{Measure, Outcome, explain_chains};
use talea_record::{HopEntry, Sink};
use talea_sim::DispatchRecords;
use talea_time::{Duration, Instant};

const UNTIL: i64 = 400;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_accounting_measures_what_is_defined(system in systems()) {
        let metadata = metadata(&system);
        let records = records(&system, &[], UNTIL);
        let mut accounting = Accounting::new(&metadata, Duration::from_nanos(50));
        records.iter().for_each(|record| accounting.record(*record));
        let report = accounting.finish(Instant::from_nanos(UNTIL));
        prop_assert_eq!(report.chains.len(), metadata.chains.len());
        for (chain, found) in metadata.chains.iter().zip(&report.chains) {
            let defined = by_definition(&metadata, chain, &records, UNTIL);
            let times = [(&found.latency, &defined.latency), (&found.reaction, &defined.reaction), (&found.age, &defined.age)];
            for (found, defined) in times {
                // Times below 2048 ns are told apart exactly.
                let middle = |times: &[i64], per_mille: usize| times.get((times.len() * per_mille).div_ceil(1000).max(1) - 1).copied();
                let of = found.time_ns;
                prop_assert_eq!(of.map_or(0, |times| times.count), defined.times.len() as u64, "{:#?} {:?}", chain, defined);
                prop_assert_eq!(of.map(|times| times.min), defined.times.first().copied());
                prop_assert_eq!(of.map(|times| times.p50), middle(&defined.times, 500));
                prop_assert_eq!(of.map(|times| times.p99), middle(&defined.times, 990));
                prop_assert_eq!(of.map(|times| times.max), defined.times.last().copied());
                prop_assert_eq!(found.missed, defined.missed);
            }
            let counts = (found.samples, found.used, found.unused, found.without_sample);
            prop_assert_eq!(counts, (defined.samples, defined.used, defined.unused, defined.without_sample));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The way that is explained is the longest there is, and all of its time has a cause.
    #[test]
    fn the_longest_way_of_each_time_is_explained_to_the_nanosecond(system in systems()) {
        let metadata = metadata(&system);
        let records = records_with(&system, &[], UNTIL, DispatchRecords::Kept);
        for (index, chain) in metadata.chains.iter().enumerate() {
            let defined = by_definition(&metadata, chain, &records, UNTIL);
            let times = [
                (Measure::Latency, &defined.latency),
                (Measure::Reaction, &defined.reaction),
                (Measure::Age, &defined.age),
            ];
            for (measure, defined) in times {
                let replay = |sink: &mut dyn Sink| {
                    records.iter().for_each(|record| sink.record(*record));
                    Ok::<(), Infallible>(())
                };
                let answer = explain_chains(&metadata, &[(index, measure)], replay).expect("all is recorded");
                let found = answer.list.first();
                prop_assert_eq!(
                    found.map(|way| way.response().as_nanos()), defined.times.last().copied(), "{:?} of {}", measure, &chain.name
                );
                let Some(way) = found else { continue };
                prop_assert_eq!(way.uncertain(), Duration::ZERO, "{}", answer.to_json());
                prop_assert_eq!(way.hops.len(), chain.operations.len());
                for (pair, _) in way.hops.windows(2).zip(&chain.hops).filter(|(_, hop)| matches!(hop, HopEntry::Events | HopEntry::TakenEvents)) {
                    let is_named = way.events.iter().any(|event| (event.job, event.from) == (pair[1].job, Some(pair[0].job)));
                    prop_assert!(is_named, "{}", answer.to_json());
                }
                let exceeds = measure.limit(chain).is_some_and(|limit| way.response() > limit);
                prop_assert_eq!(way.outcome == Outcome::Missed, exceeds);
                prop_assert!(!answer.sentence(way).is_empty() && answer.name(way.subject).contains(&chain.name));
            }
        }
    }
}

/// What the random systems are for: most chains come to something, and values are overwritten and used twice.
#[test]
fn random_systems_have_chains_that_are_measured() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut used, mut unused, mut repeated) = (0, 0, 0);
    for _ in 0..64 {
        let system = systems().new_tree(&mut runner).expect("a system").current();
        let mut accounting = Accounting::new(&metadata(&system), Duration::from_nanos(50));
        records(&system, &[], UNTIL).iter().for_each(|record| accounting.record(*record));
        for chain in accounting.finish(Instant::from_nanos(UNTIL)).chains {
            used += u32::from(chain.used > 3);
            unused += u32::from(chain.unused > 0);
            repeated += u32::from(chain.age.time_ns.map_or(0, |age| age.count) > chain.used);
        }
    }
    assert!(used > 64 && unused > 32 && repeated > 32, "{used} {unused} {repeated}");
}
