//! Which subtasks of a task are a segment: for everybody else one job, see `model.rs`.

use talea_model::{Operation as Subtask, OperationId, Synchronisation, System};

/// The segment of every operation.
///
/// An operation continues a segment if it is released at the completion of all its predecessors, all of them belong to that
/// one and it is in the lanes that they are in; otherwise it begins one. Where idle points reset guards nothing continues: the completion
/// of a subtask at which its successor is released is an idle point, and at those windows begin. First subtasks of a task on
/// the same lanes are released together and begin one together.
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
        let mut firsts: Vec<(LanePlace, usize)> = Vec::new();
        for operation in in_order {
            let (node, lanes) = place(system, operation.id);
            let before = operation.predecessors.as_slice();
            let at_once = system.tasks[task].sync == Synchronisation::Greedy
                && !has_resets[node]
                && system.subtask(operation.id).join.waits_for_all(before.len());
            let continued =
                before.first().filter(|_| at_once).map(|first| segment_of[first.index()]).filter(|segment| {
                    before.iter().all(|before| {
                        segment_of[before.index()] == *segment && place(system, *before) == (node, lanes)
                    })
                });
            segment_of[operation.id.index()] = match continued {
                Some(segment) => segment,
                None if operation.predecessors.is_empty() => {
                    match firsts.iter().find(|(known, _)| *known == (node, lanes)) {
                        Some((_, segment)) => *segment,
                        None => {
                            let segment = begin();
                            firsts.push(((node, lanes), segment));
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

/// The node of an operation, and whose lanes it is in there.
type LanePlace = (usize, Option<usize>);

fn place(system: &System, operation: OperationId) -> LanePlace {
    let subtask = system.subtask(operation);
    (subtask.node, system.lanes_with(subtask))
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
