//! Which subtasks of a task are a segment: for everybody else one job, see `model.rs`.

use super::place::LanePlacement;
use talea_model::{
    LaneDispatch, OnValue, Operation as Subtask, OperationId, Overrun, Synchronisation, System, Trigger,
};

/// What waits for what within instances, and across tasks where it comes to the same: a first subtask of a task that each job of one operation
/// releases, that inherits its deadline and is in the same lane, is released as a successor of that would be.
pub(super) struct Order {
    /// By operation: what it waits for.
    pub before: Vec<Vec<usize>>,
    /// What waits for it.
    pub after: Vec<Vec<usize>>,
    /// How many such releases are ahead of it.
    pub depth: Vec<usize>,
}

impl Order {
    pub fn of(system: &System, places: &[LanePlacement]) -> Self {
        let mut lanes = vec![None; system.operations().len()];
        for (index, place) in places.iter().enumerate() {
            for (level, lane) in place.lanes.iter().enumerate() {
                lane.members.iter().for_each(|member| lanes[member.index()] = Some((index, level)));
            }
        }
        let operations = system.operations();
        let indices = |ids: &[OperationId]| ids.iter().map(|id| id.index()).collect::<Vec<usize>>();
        let mut before: Vec<Vec<usize>> =
            operations.iter().map(|operation| indices(&operation.predecessors)).collect();
        let mut after: Vec<Vec<usize>> =
            operations.iter().map(|operation| indices(&operation.successors)).collect();
        let releasers: Vec<Option<usize>> =
            (0..system.tasks.len()).map(|task| Some(releaser(system, task)?.index())).collect();
        for operation in operations.iter().filter(|operation| operation.predecessors.is_empty()) {
            let releaser = releasers[operation.task];
            if let Some(releaser) = releaser.filter(|before| lanes[*before] == lanes[operation.id.index()]) {
                before[operation.id.index()].push(releaser);
                after[releaser].push(operation.id.index());
            }
        }
        let depth = |operation: &Subtask| {
            let mut task = operation.task;
            let mut depth = 0;
            // Triggers lead to no task twice.
            while let Some(releaser) = releasers[task] {
                (task, depth) = (operations[releaser].task, depth + 1);
            }
            depth
        };
        let depth = operations.iter().map(depth).collect();
        Order { before, after, depth }
    }
}

/// The operation of which each job releases the task, with its own arrival and deadline, when it completes.
fn releaser(system: &System, task: usize) -> Option<OperationId> {
    let described = &system.tasks[task];
    if !described.inherits_deadline || described.overrun != Overrun::Queue {
        return None;
    }
    let releaser = match &described.trigger {
        Some(Trigger::Output { every: 1, on: OnValue::Value, .. }) => {
            system.outputs()[system.trigger_output(task)?.index()].operation
        }
        Some(Trigger::Events(_)) => {
            let mut pushers = system.subscribed_by(task).map(|(site, _)| site.operation);
            let alone = pushers.next().filter(|_| pushers.next().is_none())?;
            // Code may push before its job completes, which makes no difference as long as nothing else begins in its lane until then.
            let in_turn = system.lane_dispatch == LaneDispatch::NonPreemptive
                && system.nodes[system.subtask(alone).node].cpus.len() == 1;
            in_turn.then_some(alone)?
        }
        _ => return None,
    };
    Some(releaser)
}

/// The segment of every operation.
///
/// An operation continues a segment if it is released at the completion of all its predecessors, all of them belong to that
/// one and it is in the lanes that they are in; otherwise it begins one. Where idle points reset guards nothing continues: the completion
/// of a subtask at which its successor is released is an idle point, and at those windows begin. First subtasks of a task on
/// the same lanes are released together and begin one together.
pub(super) fn segments(system: &System, order: &Order) -> Vec<usize> {
    let has_resets = nodes_with_resets(system);
    let mut segment_of = vec![usize::MAX; system.operations().len()];
    let mut count = 0;
    let mut begin = || {
        count += 1;
        count - 1
    };
    let mut tasks: Vec<usize> = (0..system.tasks.len()).collect();
    let depth = |task: &usize| system.operations_of(*task).first().map(|first| order.depth[first.id.index()]);
    tasks.sort_by_key(depth);
    for task in tasks {
        let mut in_order: Vec<&Subtask> = system.operations_of(task).iter().collect();
        in_order.sort_by_key(|operation| operation.topological_rank);
        let mut firsts: Vec<(LanePlace, usize)> = Vec::new();
        for operation in in_order {
            let (node, lanes) = place(system, operation.id);
            let before = order.before[operation.id.index()].as_slice();
            let greedy = |task: usize| system.tasks[task].sync == Synchronisation::Greedy;
            let at_once = before.iter().all(|before| greedy(system.operations()[*before].task))
                && greedy(task)
                && !has_resets[node]
                && system.subtask(operation.id).join.waits_for_all(before.len());
            let continued =
                before.first().filter(|_| at_once).map(|first| segment_of[*first]).filter(|segment| {
                    before.iter().all(|before| {
                        let id = system.operations()[*before].id;
                        segment_of[*before] == *segment && place(system, id) == (node, lanes)
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
