//! Rules about the order of a task's subtasks.

use super::{Place, Violation};
use crate::description::{Join, Subtask, Task};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

/// How many subtasks of a cycle a message names.
const CYCLE_NAMES: usize = 8;

/// Checks that `after` names existing subtasks, each once, and leads back to no start.
pub(super) fn check(index: usize, task: &Task, found: &mut Vec<Violation>) {
    let mut sound = true;
    for (position, subtask) in task.subtasks.iter().enumerate() {
        let mut seen = HashSet::new();
        for &before in &subtask.after {
            let fault = if before >= task.subtasks.len() {
                format!("after subtask number {before}, which does not exist")
            } else if !seen.insert(before) {
                format!("after \"{}\" twice", task.subtasks[before].name)
            } else {
                continue;
            };
            sound = false;
            found.push(Violation::error(
                Place::Subtask(index, position, "after"),
                format!("subtask \"{}\" of task \"{}\" is {fault}", subtask.name, task.name),
                "list each predecessor once",
            ));
        }
    }
    if !sound {
        return;
    }
    check_joins(index, task, found);
    if let Some(cycle) = cycle(&task.subtasks) {
        let names: Vec<_> =
            cycle.iter().take(CYCLE_NAMES).map(|subtask| task.subtasks[*subtask].name.as_str()).collect();
        let end = if cycle.len() > CYCLE_NAMES { "..." } else { names[0] };
        found.push(Violation::error(
            Place::Subtask(index, cycle[0], "after"),
            format!(
                "the subtasks of task \"{}\" wait for each other: {}, {end}",
                task.name,
                names.join(", ")
            ),
            "remove one of these from an \"after\"; [] starts a task",
        ));
    }
}

/// Checks that whoever waits for some of its predecessors has enough of them.
fn check_joins(index: usize, task: &Task, found: &mut Vec<Violation>) {
    for (position, subtask) in task.subtasks.iter().enumerate() {
        let predecessors = subtask.after.len();
        let remedy = match subtask.join {
            Join::All => continue,
            _ if predecessors < 2 => "leave join out, or name several predecessors in \"after\"".into(),
            Join::Count(count) if !(1..=predecessors).contains(&(count as usize)) => {
                format!("write a number from 1 to {predecessors}, \"first\" or \"all\"")
            }
            Join::First | Join::Count(_) => continue,
        };
        let waits = match subtask.join {
            Join::Count(count) => format!("waits for {count} of its predecessors"),
            _ => "waits for the first of its predecessors".into(),
        };
        let has = match predecessors {
            0 => "has none".into(),
            1 => "has only one".into(),
            count => format!("has {count}"),
        };
        found.push(Violation {
            related: Some(Place::Subtask(index, position, "after")),
            ..Violation::error(
                Place::Subtask(index, position, "join"),
                format!("subtask \"{}\" of task \"{}\" {waits} and {has}", subtask.name, task.name),
                remedy,
            )
        });
    }
}

/// For each subtask a number greater than those of all its predecessors; `None` if `after` has a cycle.
///
/// Kahn's algorithm; among the subtasks that are ready, file order.
pub(crate) fn topological_ranks(subtasks: &[Subtask]) -> Option<Vec<u32>> {
    partial_ranks(subtasks).into_iter().collect()
}

/// As [`topological_ranks`], with `None` for each subtask that waits for a cycle.
fn partial_ranks(subtasks: &[Subtask]) -> Vec<Option<u32>> {
    let mut waiting_for: Vec<usize> = subtasks.iter().map(|subtask| subtask.after.len()).collect();
    let mut successors = vec![Vec::new(); subtasks.len()];
    for (index, subtask) in subtasks.iter().enumerate() {
        for &before in &subtask.after {
            successors[before].push(index);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..subtasks.len()).filter(|index| waiting_for[*index] == 0).map(Reverse).collect();
    let mut ranks = vec![None; subtasks.len()];
    let mut rank = 0;
    while let Some(Reverse(index)) = ready.pop() {
        ranks[index] = Some(rank);
        rank += 1;
        for &later in &successors[index] {
            waiting_for[later] -= 1;
            if waiting_for[later] == 0 {
                ready.push(Reverse(later));
            }
        }
    }
    ranks
}

/// The subtasks of one cycle, each after the one before it; the first is the first in file order.
fn cycle(subtasks: &[Subtask]) -> Option<Vec<usize>> {
    let ranks = partial_ranks(subtasks);
    let start = ranks.iter().position(Option::is_none)?;
    // An unranked subtask has an unranked predecessor, so walking backwards comes round.
    let mut step_of = vec![None; subtasks.len()];
    let mut path: Vec<usize> = Vec::new();
    let mut at = start;
    while step_of[at].is_none() {
        step_of[at] = Some(path.len());
        path.push(at);
        let unranked = |before: &&usize| ranks[**before].is_none();
        at = *subtasks[at].after.iter().find(unranked).expect("Kahn's algorithm ranked all others");
    }
    let mut cycle = path.split_off(step_of[at].expect("the walk ended where it had been"));
    cycle.reverse();
    let first = (0..cycle.len()).min_by_key(|position| cycle[*position]).expect("a cycle is not empty");
    cycle.rotate_left(first);
    Some(cycle)
}
