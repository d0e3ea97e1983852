//! A system as a table.

use super::columns::Column;
use crate::settings::{Losses, blank};
use crate::{Effect, Format, Translated};
use std::collections::HashSet;
use talea_model::{Description, Execution, Place, Subtask, System, Task};
use talea_time::Work;

/// Writes a system as a table; see [`crate::export`] and the columns in [`super`].
pub fn export(system: &System) -> Translated<String> {
    let mut losses = Losses::new(Format::Csv);
    losses.compare_settings(system, &blank(system.name.clone()));
    let subtasks = system.tasks.iter().flat_map(|task| &task.subtasks);
    let used: HashSet<usize> = subtasks.map(|subtask| subtask.node).collect();
    for (index, node) in system.nodes.iter().enumerate().filter(|(index, _)| !used.contains(index)) {
        let what = "has no subtask, so no row names it";
        losses.add(Effect::Lost, Place::Node(index, "name"), &format!("node \"{}\"", node.name), what);
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut row = |cells: Vec<String>| writer.write_record(&cells).expect("writing to memory succeeds");
    row(Column::ALL.iter().map(|column| column.name().to_owned()).collect());
    for task in &system.tasks {
        for position in 0..task.subtasks.len() {
            row(Column::ALL.iter().map(|column| cell(system, task, position, *column)).collect());
        }
    }
    let bytes = writer.into_inner().expect("writing to memory succeeds");
    let value = String::from_utf8(bytes).expect("only text was written");
    Translated { value, losses: losses.list }
}

fn cell(system: &Description, task: &Task, position: usize, column: Column) -> String {
    let subtask: &Subtask = &task.subtasks[position];
    let node = &system.nodes[subtask.node];
    match column {
        Column::Task => task.name.clone(),
        Column::Period => task.period.to_string(),
        Column::Deadline => task.deadline.to_string(),
        Column::Phase => task.phase.to_string(),
        Column::Jitter => task.jitter.to_string(),
        Column::Criticality => task.criticality.to_string(),
        Column::Importance => task.importance.to_string(),
        Column::Overrun => task.overrun.to_string(),
        Column::Subtask => subtask.name.clone(),
        Column::Node => node.name.clone(),
        Column::Cpus => joined(node.cpus.iter()),
        Column::Wcet => subtask.wcet.to_string(),
        Column::Exec => execution(&subtask.exec),
        Column::After if subtask.after.as_slice() == position.checked_sub(1).as_slice() => String::new(),
        Column::After if subtask.after.is_empty() => "[]".into(),
        Column::After => joined(subtask.after.iter().map(|before| &task.subtasks[*before].name)),
    }
}

fn execution(exec: &Execution) -> String {
    let times = |works: &[Work]| joined(works.iter());
    match exec {
        Execution::Constant(work) => work.to_string(),
        Execution::Uniform(low, high) => format!("uniform {}", times(&[*low, *high])),
        Execution::List(works) => format!("list {}", times(works)),
    }
}

fn joined(values: impl Iterator<Item = impl std::fmt::Display>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(" ")
}
