//! A system as a SimSo simulation.
//!
//! First the description is reduced to what SimSo can say, which is where everything is lost; then it is
//! written as it stands.

use super::execution::moments;
use super::schedulers::returned;
use super::writer::{Row, write};
use crate::names::Taken;
use crate::settings::{Losses, subtask_label, task_label};
use crate::{Effect, Format, Translated};
use std::collections::HashSet;
use talea_model::{Description, Execution, NAME_BYTES_LIMIT, Overrun, Place, Strategy, System, Task};
use talea_time::{Duration, Work};

/// Writes a system for SimSo; see [`crate::export`].
pub fn export(system: &System) -> Translated<String> {
    let mut losses = Losses::new(Format::SimSo);
    let processors = reduce_nodes(system, &mut losses);
    let average = system
        .tasks
        .iter()
        .flat_map(|task| &task.subtasks)
        .any(|subtask| subtask.exec != Execution::Constant(subtask.wcet));
    let mut taken = Taken::default();
    let mut rows = Vec::new();
    for (index, task) in system.tasks.iter().enumerate() {
        let name = simso_name(&task.name, &mut taken);
        let subject = task_label(&task.name);
        if name != task.name {
            let what = format!("is called \"{name}\"; names in SimSo begin with an ASCII letter");
            losses.add(Effect::Lost, Place::Task(index, "name"), &subject, what);
        }
        losses.compare_jitter(index, task);
        losses.compare_importance(index, task);
        reduce_overrun(index, task, &mut losses);
        reduce_task(system, index, name, &mut rows, &mut losses);
    }
    reduce_settings(system, &mut losses);
    Translated { value: write(system, processors, average, &rows), losses: losses.list }
}

/// A name of ASCII letters, digits, `-` and `_` that begins with a letter, and that nobody has.
fn simso_name(name: &str, taken: &mut Taken) -> String {
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let ascii: String = name.chars().map(|c| if c.is_ascii() { c } else { '_' }).collect();
    let mut ascii = if begins_well { ascii } else { format!("T{ascii}") };
    ascii.truncate(NAME_BYTES_LIMIT);
    taken.unique(&ascii)
}

/// How many processors there are: those of all nodes that have something to do.
fn reduce_nodes(system: &System, losses: &mut Losses) -> usize {
    let subtasks = system.tasks.iter().flat_map(|task| &task.subtasks);
    let used: HashSet<usize> = subtasks.map(|subtask| subtask.node).collect();
    let mut ordered: Vec<usize> = used.iter().copied().collect();
    ordered.sort_unstable();
    let processors: usize = ordered.iter().map(|node| system.nodes[*node].cpus.len()).sum();
    for (index, node) in system.nodes.iter().enumerate() {
        let subject = format!("node \"{}\"", node.name);
        if !used.contains(&index) {
            let what = "has no subtask; its processors are left out";
            losses.add(Effect::Lost, Place::Node(index, "name"), &subject, what);
            continue;
        }
        if ordered.len() > 1 {
            let what = "becomes part of one set of processors, on which any task may run";
            losses.add(Effect::Lost, Place::Node(index, "name"), &subject, what);
        } else if node.name != "local" {
            let what = "SimSo has no nodes; read back it is \"local\"";
            losses.add(Effect::Lost, Place::Node(index, "name"), &subject, what);
        }
        if !node.cpus.iter().copied().map(usize::from).eq(0..processors) {
            let what = format!("processors are only counted; read back they are 0 to {}", processors - 1);
            losses.add(Effect::Approximated, Place::Node(index, "cpus"), &subject, what);
        }
    }
    processors
}

fn reduce_overrun(index: usize, task: &Task, losses: &mut Losses) {
    let mut lose = |effect, what: &'static str| {
        losses.add(effect, Place::Task(index, "overrun"), &task_label(&task.name), what);
    };
    match task.overrun {
        Overrun::Queue => {}
        Overrun::SkipNext => lose(Effect::Lost, "SimSo skips no job; the new one waits (skip-next)"),
        Overrun::Merge => lose(Effect::Lost, "SimSo merges no jobs; the new one waits (merge)"),
        Overrun::Abort if task.subtasks.len() == 1 && task.deadline == task.period => {}
        Overrun::Abort => {
            lose(Effect::Approximated, "SimSo stops each subtask at its deadline, not at the next release");
        }
    }
}

/// Adds the rows of a task, one per subtask in file order, linked in topological order.
fn reduce_task(system: &System, index: usize, name: String, rows: &mut Vec<Row>, losses: &mut Losses) {
    let task = &system.tasks[index];
    let operations = system.operations_of(index);
    let mut order: Vec<usize> = (0..task.subtasks.len()).collect();
    order.sort_by_key(|position| operations[*position].topological_rank);
    let deadlines = split_deadline(task, &order);
    if order.len() > 1 {
        let what = "is split among the subtasks by their wcet; SimSo counts each from its own activation";
        let place = Place::Task(index, "deadline");
        losses.add(Effect::Approximated, place, &task_label(&task.name), what);
    }
    let first_row = rows.len();
    let mut ranks = vec![0; order.len()];
    for (rank, position) in order.iter().enumerate() {
        ranks[*position] = rank;
    }
    let mut inside = Taken::default();
    for (position, subtask) in task.subtasks.iter().enumerate() {
        let subject = subtask_label(task, subtask);
        let place = |key| Place::Subtask(index, position, key);
        let rank = ranks[position];
        let before = rank.checked_sub(1).map(|before| order[before]);
        if subtask.after.as_slice() != before.as_slice() {
            let what = "SimSo has chains only; the subtasks follow each other in topological order";
            losses.add(Effect::Lost, place("after"), &subject, what);
        }
        let alone = task.subtasks.len() == 1;
        let own = if alone { name.clone() } else { ascii_name(&subtask.name, &mut inside) };
        if own != subtask.name {
            let what = format!("is called \"{own}\"");
            losses.add(Effect::Lost, place("name"), &subject, what);
        }
        let (mean, deviation) =
            reduce_execution(&subtask.exec, subtask.wcet, place("exec"), &subject, losses);
        rows.push(Row {
            name: if alone { own } else { format!("{name} {own}") },
            task: index,
            is_head: rank == 0,
            deadline: deadlines[position],
            wcet: subtask.wcet,
            mean,
            deviation,
            followed_by: order.get(rank + 1).map(|next| first_row + next),
        });
    }
}

fn ascii_name(name: &str, taken: &mut Taken) -> String {
    taken.unique(&name.chars().map(|c| if c.is_ascii() { c } else { '_' }).collect::<String>())
}

/// The end-to-end deadline in shares for each subtask, in proportion to its wcet, at least a nanosecond.
fn split_deadline(task: &Task, order: &[usize]) -> Vec<Duration> {
    let count = order.len() as i64;
    let least = i64::from(task.deadline.as_nanos() >= count);
    let rest = i128::from(task.deadline.as_nanos() - least * count);
    let total: i128 = task.subtasks.iter().map(|subtask| i128::from(subtask.wcet.as_nanos())).sum();
    let mut shares = vec![Duration::ZERO; order.len()];
    let (mut work, mut given) = (0, 0);
    for position in order {
        work += i128::from(task.subtasks[*position].wcet.as_nanos());
        let share = rest * work / total - given;
        given += share;
        shares[*position] = Duration::from_nanos(share as i64 + least);
    }
    shares
}

/// Mean and deviation of the execution times.
fn reduce_execution(
    exec: &Execution,
    wcet: Work,
    place: Place,
    subject: &str,
    losses: &mut Losses,
) -> (Work, Work) {
    let (mean, deviation) = moments(exec);
    match exec {
        Execution::Constant(work) if *work > wcet => {
            let what = format!("is {work}; jobs in SimSo take no longer than their WCET");
            losses.add(Effect::Lost, place, subject, what);
        }
        Execution::Constant(_) => {}
        Execution::Uniform(..) | Execution::List(_) => {
            let what = "becomes a normal distribution of the same mean and deviation, cut off at the WCET";
            losses.add(Effect::Approximated, place, subject, what);
        }
    }
    (mean, deviation)
}

fn reduce_settings(system: &Description, losses: &mut Losses) {
    let mut expected = returned(system.strategy);
    expected.overhead.switch = system.overhead.switch;
    let by_priority = matches!(system.strategy, Strategy::Muf | Strategy::RmsMlf | Strategy::Criticality);
    if by_priority {
        let what = "fixed priorities by criticality stand in, and by rate among equals";
        losses.add(Effect::Approximated, Place::System("strategy"), "the system", what);
    }
    losses.compare_settings(system, &expected);
    for (index, task) in system.tasks.iter().enumerate() {
        if by_priority {
            let what = format!("{} is said by the order of the priorities only", task.criticality);
            let place = Place::Task(index, "criticality");
            losses.add(Effect::Approximated, place, &task_label(&task.name), what);
        } else {
            losses.compare_criticality(index, task);
        }
    }
}
