//! Where two descriptions of the same tasks differ.

use std::collections::{BTreeSet, HashMap};
use talea_model::{Description, Execution, Place, Subtask, Task};

/// A place in a form that can be sorted.
pub fn key(place: Place) -> String {
    format!("{place:?}")
}

/// Every place at which `returned` does not say what `original` says. The name of the system is that of the
/// file, and the order of nodes means nothing.
///
/// # Panics
/// If they do not have the same tasks and subtasks.
pub fn differences(original: &Description, returned: &Description) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut compare = |same: bool, place: Place| {
        if !same {
            found.insert(key(place));
        }
    };
    compare(original.strategy == returned.strategy, Place::System("strategy"));
    compare(original.lane_dispatch == returned.lane_dispatch, Place::System("lane_dispatch"));
    compare(original.laxity == returned.laxity, Place::System("laxity"));
    compare(original.late == returned.late, Place::System("late"));
    compare(original.seed == returned.seed, Place::System("seed"));
    for (index, link) in original.links.iter().enumerate() {
        compare(returned.links.contains(link), Place::Link(index, "link"));
    }
    for (cost, other) in original.overhead.costs().zip(returned.overhead.costs()) {
        compare(cost == other, Place::Overhead(cost.0));
    }
    assert_eq!(original.tasks.len(), returned.tasks.len(), "the number of tasks");
    for (index, (one, other)) in original.tasks.iter().zip(&returned.tasks).enumerate() {
        compare_tasks(index, one, other, &mut compare);
    }
    compare_nodes(original, returned, &mut compare);
    found
}

fn compare_tasks(index: usize, one: &Task, other: &Task, compare: &mut impl FnMut(bool, Place)) {
    let place = |key| Place::Task(index, key);
    compare(one.name == other.name, place("name"));
    compare(one.period == other.period, place("period"));
    compare(one.deadline == other.deadline, place("deadline"));
    compare(one.phase == other.phase, place("phase"));
    compare(one.jitter == other.jitter, place("jitter"));
    compare(one.criticality == other.criticality, place("criticality"));
    compare(one.importance == other.importance, place("importance"));
    compare(one.overrun == other.overrun, place("overrun"));
    assert_eq!(one.subtasks.len(), other.subtasks.len(), "the number of subtasks of {}", one.name);
    for (position, (one, other)) in one.subtasks.iter().zip(&other.subtasks).enumerate() {
        let place = |key| Place::Subtask(index, position, key);
        compare(one.name == other.name, place("name"));
        compare(one.wcet == other.wcet, place("wcet"));
        compare(canonical(&one.exec) == canonical(&other.exec), place("exec"));
        compare(predecessors(one) == predecessors(other), place("after"));
    }
}

fn predecessors(subtask: &Subtask) -> BTreeSet<usize> {
    subtask.after.iter().copied().collect()
}

/// A list of equal entries means what a constant means.
pub fn canonical(exec: &Execution) -> Execution {
    match exec {
        Execution::List(works) if works.iter().all(|work| *work == works[0]) => Execution::Constant(works[0]),
        other => other.clone(),
    }
}

/// A node is what its subtasks run on. One that becomes another's, or has no subtask, has lost its name.
fn compare_nodes(original: &Description, returned: &Description, compare: &mut impl FnMut(bool, Place)) {
    let mut image: HashMap<usize, usize> = HashMap::new();
    for (index, (one, other)) in original.tasks.iter().zip(&returned.tasks).enumerate() {
        for (position, (one, other)) in one.subtasks.iter().zip(&other.subtasks).enumerate() {
            let node = *image.entry(one.node).or_insert(other.node);
            compare(node == other.node, Place::Subtask(index, position, "node"));
        }
    }
    for (index, node) in original.nodes.iter().enumerate() {
        let own = image.get(&index);
        let taken = (0..index).any(|before| own.is_some() && image.get(&before) == own);
        match own.filter(|_| !taken) {
            None => compare(false, Place::Node(index, "name")),
            Some(own) => {
                compare(node.name == returned.nodes[*own].name, Place::Node(index, "name"));
                compare(node.cpus == returned.nodes[*own].cpus, Place::Node(index, "cpus"));
            }
        }
    }
}
