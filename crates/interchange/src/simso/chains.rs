//! Tasks that follow each other, as chains.

use super::document::Simulation;
use super::task::{Kind, SimTask};
use crate::Effect;
use crate::reading::Reading;
use std::collections::{HashMap, HashSet};
use talea_model::OperationId;

/// The tasks of each chain, by index, in the order of their execution; the first is released by time.
pub(super) fn chains(simulation: &Simulation, reading: &mut Reading<'_>) -> Vec<Vec<usize>> {
    let tasks = &simulation.tasks;
    let mut of_id: HashMap<i64, usize> = HashMap::new();
    for (index, task) in tasks.iter().enumerate() {
        if *of_id.entry(task.id).or_insert(index) != index {
            let message = format!("{}: the id {} exists already", task.label, task.id);
            reading.error(task.span.clone(), message, "give each task its own id");
        }
    }
    let successor = successors(tasks, &of_id, reading);
    let mut chains = Vec::new();
    let mut used: HashMap<usize, usize> = HashMap::new();
    let mut steps = 0;
    for (head, task) in tasks.iter().enumerate() {
        let is_released = match task.kind {
            Kind::Periodic => true,
            Kind::Aperiodic => false,
            Kind::Sporadic if task.dates.is_empty() => {
                let what = "has no activation date, so it never runs; left out";
                reading.lose(Effect::Lost, task.span.clone(), &task.label, "list_activation_dates", what);
                false
            }
            Kind::Sporadic => true,
        };
        if !is_released {
            continue;
        }
        let mut chain = vec![head];
        let mut inside = HashSet::from([head]);
        while let Some(next) = successor[chain[chain.len() - 1]] {
            if !inside.insert(next) {
                let last = &tasks[chain[chain.len() - 1]];
                let what = "leads back to a task before it; the chain ends here";
                reading.lose(Effect::Lost, last.span.clone(), &last.label, "followed_by", what);
                break;
            }
            let chains_of_next = used.entry(next).or_insert(0);
            *chains_of_next += 1;
            if *chains_of_next == 2 {
                let what = "follows several tasks; each of their chains has its own";
                reading.lose(Effect::Approximated, tasks[next].span.clone(), &tasks[next].label, "", what);
            }
            chain.push(next);
            steps += 1;
            if steps > OperationId::LIMIT {
                let message = "the chains of tasks that follow each other grow too large";
                reading.error(task.span.clone(), message, "import parts of the file");
                return chains;
            }
        }
        chains.push(chain);
    }
    for (index, task) in tasks.iter().enumerate() {
        if task.kind == Kind::Aperiodic && !used.contains_key(&index) {
            let what = "follows no task that time releases, so it never runs; left out";
            reading.lose(Effect::Lost, task.span.clone(), &task.label, "", what);
        }
    }
    chains
}

/// The aperiodic task that follows each task, if one does.
fn successors(
    tasks: &[SimTask],
    of_id: &HashMap<i64, usize>,
    reading: &mut Reading<'_>,
) -> Vec<Option<usize>> {
    let mut successors = Vec::new();
    for task in tasks {
        let mut lose = |what: String| {
            reading.lose(Effect::Lost, task.span.clone(), &task.label, "followed_by", what);
            None
        };
        successors.push(match task.followed_by {
            None => None,
            Some(id) => match of_id.get(&id) {
                None => lose(format!("names task {id}, which does not exist")),
                Some(next) if tasks[*next].kind != Kind::Aperiodic => lose(format!(
                    "names {}, which time releases as well; here only time does",
                    tasks[*next].label
                )),
                Some(next) => Some(*next),
            },
        });
    }
    successors
}
