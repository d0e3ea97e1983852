//! Random systems of every shape, judged.

use crate::replay::{judge, records};
use crate::systems::{Scope, systems};
use proptest::prelude::*;

const UNTIL: i64 = 150;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_run_obeys_the_rules(system in systems(Scope::FREE)) {
        judge(&system, &records(&system, &[], UNTIL));
    }

    #[test]
    fn every_run_with_costs_obeys_the_rules(system in systems(Scope::COSTLY)) {
        judge(&system, &records(&system, &[], UNTIL));
    }

    #[test]
    fn every_run_under_protocols_obeys_the_rules(system in systems(Scope::GUARDED)) {
        judge(&system, &records(&system, &[], UNTIL));
    }

    #[test]
    fn the_same_system_gives_the_same_records(system in systems(Scope::GUARDED)) {
        prop_assert_eq!(records(&system, &[], UNTIL), records(&system, &[], UNTIL));
    }

    #[test]
    fn slices_give_the_same_records_as_one_advance(
        system in systems(Scope::GUARDED), mut slices in proptest::collection::vec(0..UNTIL, 0..12),
    ) {
        slices.sort_unstable();
        prop_assert_eq!(records(&system, &slices, UNTIL), records(&system, &[], UNTIL));
    }

    /// A longer run begins with the shorter one: the future does not matter.
    #[test]
    fn a_run_is_a_prefix_of_a_longer_one(system in systems(Scope::GUARDED), until in 1..UNTIL) {
        let (short, long) = (records(&system, &[], until), records(&system, &[], UNTIL));
        let before = |list: &[talea_record::Record]| {
            list.iter().take_while(|record| record.time.as_nanos() < until).copied().collect::<Vec<_>>()
        };
        prop_assert_eq!(before(&short), before(&long));
    }
}
