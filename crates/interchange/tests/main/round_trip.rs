//! What a format carries comes back as it was; of the rest, exactly what is listed is lost.

use crate::differences::{differences, key};
use crate::generated::{any_system, carried_by_csv, carried_by_rt_app, carried_by_simso};
use proptest::prelude::*;
use std::collections::BTreeSet;
use talea_interchange::{Effect, Format, Origin, Translated, export, import};
use talea_model::{Description, System};

/// Out and back; the name of the system travels as that of the file.
fn there_and_back(format: Format, system: &System) -> (Translated<String>, Description) {
    let out = export(format, system);
    let source_name = format!("{}.{}", system.name, format.extension());
    let back = import(format, &source_name, &out.value)
        .unwrap_or_else(|rejected| panic!("{rejected}\n{}", out.value));
    (out, back.value)
}

fn lost(out: &Translated<String>, effects: &[Effect]) -> BTreeSet<String> {
    let of_effect = out.losses.iter().filter(|loss| effects.contains(&loss.effect));
    let places = of_effect.map(|loss| match loss.origin {
        Origin::Model(place) => key(place),
        Origin::Text(_) => panic!("an export has no text of origin"),
    });
    places.collect()
}

fn listed_losses_are_the_differences(format: Format, system: &System) {
    let (out, back) = there_and_back(format, system);
    let different = differences(system, &back);
    let listed = lost(&out, &[Effect::Lost, Effect::Approximated, Effect::Assumed, Effect::Setting]);
    let silent: Vec<_> = different.difference(&listed).collect();
    assert!(silent.is_empty(), "not listed: {silent:?}\n{}\n{}", system.to_toml(), out.value);
    let lost = lost(&out, &[Effect::Lost]);
    let kept: Vec<_> = lost.difference(&different).collect();
    assert!(kept.is_empty(), "listed and not lost: {kept:?}\n{}\n{}", system.to_toml(), out.value);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_table_carries_nodes_and_tasks(system in any_system()) {
        let system = carried_by_csv(&system);
        let (out, back) = there_and_back(Format::Csv, &system);
        prop_assert_eq!(&out.losses, &[]);
        prop_assert_eq!(&back, &*system, "{}", out.value);
    }

    #[test]
    fn rt_app_carries_trees_of_whole_microseconds(system in any_system()) {
        let system = carried_by_rt_app(&system);
        let (out, back) = there_and_back(Format::RtApp, &system);
        prop_assert_eq!(&out.losses, &[]);
        prop_assert_eq!(&back, &*system, "{}", out.value);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&out.value).is_ok(), "it is strict JSON");
    }

    #[test]
    fn simso_carries_chains(system in any_system()) {
        let system = carried_by_simso(&system);
        let (out, back) = there_and_back(Format::SimSo, &system);
        prop_assert_eq!(lost(&out, &[Effect::Lost]), BTreeSet::new());
        prop_assert_eq!(&back, &*system, "{}", out.value);
    }

    #[test]
    fn tables_list_what_they_lose(system in any_system()) {
        listed_losses_are_the_differences(Format::Csv, &system);
    }

    #[test]
    fn rt_app_lists_what_it_loses(system in any_system()) {
        listed_losses_are_the_differences(Format::RtApp, &system);
    }

    #[test]
    fn simso_lists_what_it_loses(system in any_system()) {
        listed_losses_are_the_differences(Format::SimSo, &system);
    }
}
