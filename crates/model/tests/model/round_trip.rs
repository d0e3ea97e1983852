//! Any system, written as a file, reads back as the same system.

use crate::generator::any_system;
use crate::parsed;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use talea_model::{Full, HopKind, System, Take, TaskBuilder, Trigger};
use talea_time::{Duration, Work};

proptest! {
    #[test]
    fn a_written_system_reads_back(system in any_system()) {
        let text = system.to_toml();
        prop_assert_eq!(&parsed(&text).system, &system, "{}", text);
    }

    #[test]
    fn so_does_one_whose_tasks_inherit_their_criticalities(system in any_system()) {
        let mut description = (*system).clone();
        for task in 0..description.tasks.len() {
            if let Some(Trigger::Output { output, .. }) = &description.tasks[task].trigger {
                let supplier = output.operation.task;
                description.tasks[supplier].inherits_criticality = true;
            }
        }
        // Who has become critical may not wait for room.
        let heirs = System::new(description);
        prop_assume!(heirs.is_ok());
        let heirs = heirs.expect("it is one");
        let text = heirs.to_toml();
        prop_assert_eq!(&parsed(&text).system, &heirs, "{}", text);
    }
}

#[test]
fn a_task_of_one_operation_is_written_without_a_subtask() {
    let work = Work::from_millis(1);
    let system = System::builder("s").task(TaskBuilder::new("t", Duration::from_millis(9)).wcet(work));
    let text = system.build().expect("the system is valid").to_toml();
    assert!(!text.contains("subtask"), "{text}");
    assert_eq!(parsed(&text).system.operations()[0].name, "t");
}

/// The generator reaches what it is there for.
#[test]
fn random_systems_have_ports_triggers_and_chains_of_every_kind() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..300 {
        let system = any_system().new_tree(&mut runner).expect("a system").current();
        for task in &system.tasks {
            seen.insert(match task.trigger {
                Some(Trigger::Output { .. }) if task.separation.is_some() => "separated values",
                Some(Trigger::Output { .. }) => "values",
                Some(Trigger::External { .. }) => "outside",
                Some(Trigger::Events(_)) => "events",
                None => task.communication.keyword(),
            });
        }
        for input in system.inputs() {
            seen.insert(match input.take {
                Take::Instance => "instance",
                Take::Latest => "latest",
                Take::Each { full: Full::Block { .. }, .. } => "each, block",
                Take::Each { .. } => "each",
            });
        }
        for hop in system.chain_sites().iter().flat_map(|chain| &chain.hops) {
            seen.insert(match hop.kind {
                HopKind::Successor => "successor",
                HopKind::Trigger(_) => "trigger",
                HopKind::Events => "events",
                HopKind::TakenEvents => "taken events",
                HopKind::Data => "data",
            });
        }
    }
    let kinds = [
        "data",
        "each",
        "each, block",
        "events",
        "implicit",
        "instance",
        "latest",
        "let",
        "outside",
        "separated values",
        "successor",
        "taken events",
        "trigger",
        "values",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), kinds);
}
