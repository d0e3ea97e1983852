//! Which subtasks of a task are a segment: for everybody else one job, see `model.rs`.

use talea_model::{Operation as Subtask, Synchronisation, System};

/// The segment of every operation.
///
/// An operation continues a segment if it is released at the completion of all its predecessors, all of them belong to that
/// one and it is on their node; otherwise it begins one. Where idle points reset guards nothing continues: the completion
/// of a subtask at which its successor is released is an idle point, and at those windows begin. First subtasks of a task on
/// one node are released together and begin one together.
pub(super) fn segments(system: &System) -> Vec<usize> {
    let has_resets = nodes_with_resets(system);
    let mut segment_of = vec![usize::MAX; system.operations().len()];
    let mut count = 0;
    let mut begin = || {
        count += 1;
        count - 1
    };
    for task in 0..system.tasks.len() {
        let mut in_order: Vec<&Subtask> = system.operations_of(task).iter().collect();
        in_order.sort_by_key(|operation| operation.topological_rank);
        let mut firsts: Vec<(usize, usize)> = Vec::new();
        for operation in in_order {
            let node = system.subtask(operation.id).node;
            let before = operation.predecessors.as_slice();
            let at_once = system.tasks[task].sync == Synchronisation::Greedy
                && !has_resets[node]
                && system.subtask(operation.id).join.waits_for_all(before.len());
            let continued =
                before.first().filter(|_| at_once).map(|first| segment_of[first.index()]).filter(|segment| {
                    before.iter().all(|before| {
                        segment_of[before.index()] == *segment && system.subtask(*before).node == node
                    })
                });
            segment_of[operation.id.index()] = match continued {
                Some(segment) => segment,
                None if operation.predecessors.is_empty() => {
                    match firsts.iter().find(|(known, _)| *known == node) {
                        Some((_, segment)) => *segment,
                        None => {
                            let segment = begin();
                            firsts.push((node, segment));
                            segment
                        }
                    }
                }
                None => begin(),
            };
        }
    }
    segment_of
}

/// The nodes where idle points reset guards.
fn nodes_with_resets(system: &System) -> Vec<bool> {
    let mut has_resets = vec![false; system.nodes.len()];
    for operation in system.operations().iter().filter(|operation| !operation.predecessors.is_empty()) {
        has_resets[system.subtask(operation.id).node] |=
            system.tasks[operation.task].sync.heeds_idle_points();
    }
    has_resets
}
