//! A table as a description.

use super::cells::Cells;
use super::columns::Column;
use super::rows::{Table, read};
use crate::names::{did_you_mean, shown};
use crate::reading::{Origins, Reading};
use crate::settings::{blank, task};
use crate::{Effect, Problems, Translated};
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::ops::Range;
use talea_model::{Criticality, Description, Execution, Join, NODE_LIMIT, Node, Overrun, Place, Subtask};
use talea_time::{Duration, Work};

/// Reads a table; see [`crate::import`] and the columns in [`super`].
///
/// # Errors
/// All problems of the header, or all of the rows.
pub fn import(source_name: &str, text: &str) -> Result<Translated<Description>, Problems> {
    let mut reading = Reading::new(source_name, text);
    let Some(table) = read(&mut reading) else { return reading.reject() };
    if table.rows().is_empty() {
        reading.error(0..1, "the table has no row below the first", "add a row for each subtask");
    }
    let drafts = Drafts::read(&table, &mut reading);
    if reading.has_errors() {
        return reading.reject();
    }
    let (description, origins) = drafts.into_description(&mut reading);
    reading.finish(description, &origins)
}

/// What the rows say, by task.
#[derive(Default)]
struct Drafts<'a> {
    tasks: Vec<TaskDraft<'a>>,
    of_name: HashMap<&'a str, usize>,
    nodes: Vec<NodeDraft<'a>>,
    node_of_name: HashMap<&'a str, usize>,
}

struct TaskDraft<'a> {
    name: &'a str,
    span: Range<usize>,
    period: Option<Duration>,
    deadline: Option<Duration>,
    phase: Option<Duration>,
    jitter: Option<Duration>,
    criticality: Option<Criticality>,
    importance: Option<i32>,
    overrun: Option<Overrun>,
    subtasks: Vec<SubtaskDraft<'a>>,
    named: HashSet<&'a str>,
}

struct SubtaskDraft<'a> {
    name: &'a str,
    span: Range<usize>,
    after_span: Range<usize>,
    node: Option<usize>,
    wcet: Work,
    exec: Option<Execution>,
    after: Option<Vec<&'a str>>,
}

struct NodeDraft<'a> {
    name: &'a str,
    span: Range<usize>,
    cpus: Option<Vec<u16>>,
}

impl<'a> Drafts<'a> {
    fn read(table: &'a Table, reading: &mut Reading<'_>) -> Self {
        let mut drafts = Drafts::default();
        for row in table.rows() {
            table.check_width(row, reading);
            let mut cells = Cells { table, row, reading };
            let Some(name) = cells.required(Column::Task) else { continue };
            let index = drafts.task(name, &cells);
            drafts.read_task(index, &mut cells);
            drafts.read_subtask(index, &mut cells);
        }
        for task in &drafts.tasks {
            if task.period.is_none() && !reading.has_errors() {
                let message = format!("task {} has no period", shown(task.name));
                reading.error(
                    task.span.clone(),
                    message,
                    "write it into the column \"period\" of one of its rows",
                );
            }
        }
        drafts
    }

    fn task(&mut self, name: &'a str, cells: &Cells<'a, '_, '_>) -> usize {
        let new = self.tasks.len();
        let index = *self.of_name.entry(name).or_insert(new);
        if index == new {
            self.tasks.push(TaskDraft {
                name,
                span: cells.table.row_span(cells.row, cells.reading),
                period: None,
                deadline: None,
                phase: None,
                jitter: None,
                criticality: None,
                importance: None,
                overrun: None,
                subtasks: Vec::new(),
                named: HashSet::new(),
            });
        }
        index
    }

    /// Takes over what a row says of its task.
    fn read_task(&mut self, index: usize, cells: &mut Cells<'a, '_, '_>) {
        let task = &mut self.tasks[index];
        let (period, deadline) = (cells.time(Column::Period), cells.time(Column::Deadline));
        let (phase, jitter) = (cells.time(Column::Phase), cells.time(Column::Jitter));
        let (criticality, importance) = (cells.criticality(), cells.importance());
        let overrun = cells.overrun();
        adopt(&mut task.period, period, Column::Period, cells);
        adopt(&mut task.deadline, deadline, Column::Deadline, cells);
        adopt(&mut task.phase, phase, Column::Phase, cells);
        adopt(&mut task.jitter, jitter, Column::Jitter, cells);
        adopt(&mut task.criticality, criticality, Column::Criticality, cells);
        adopt(&mut task.importance, importance, Column::Importance, cells);
        adopt(&mut task.overrun, overrun, Column::Overrun, cells);
    }

    fn read_subtask(&mut self, index: usize, cells: &mut Cells<'a, '_, '_>) {
        let node = self.read_node(cells);
        let has_wcet = cells.required(Column::Wcet).is_some();
        let wcet = cells.work(Column::Wcet).filter(|_| has_wcet);
        let exec = cells.execution();
        let task = &mut self.tasks[index];
        let name = cells.text(Column::Subtask).unwrap_or(task.name);
        if !task.named.insert(name) {
            let (message, remedy) = if cells.text(Column::Subtask).is_some() {
                ("stands in the table twice".to_owned(), "give each subtask of a task its own name")
            } else {
                ("has several rows".to_owned(), "name a subtask in each, or give each task its own name")
            };
            cells.error(Column::Subtask, message, remedy);
        }
        task.subtasks.push(SubtaskDraft {
            name,
            span: cells.table.row_span(cells.row, cells.reading),
            after_span: cells.table.span(cells.row, Column::After, cells.reading),
            node,
            wcet: wcet.unwrap_or_default(),
            exec,
            after: cells.after(),
        });
    }

    fn read_node(&mut self, cells: &mut Cells<'a, '_, '_>) -> Option<usize> {
        let cpus = cells.cpus();
        let name = match cells.text(Column::Node) {
            Some(name) => name,
            // Processors without a node are those of the only one.
            None if cpus.is_some() => ONLY,
            None => return None,
        };
        let new = self.nodes.len();
        let index = *self.node_of_name.entry(name).or_insert(new);
        if index == new {
            if new == NODE_LIMIT {
                cells.error(Column::Node, format!("it is on node number {}", new + 1), "use fewer nodes");
            }
            let span = cells.table.span(cells.row, Column::Node, cells.reading);
            self.nodes.push(NodeDraft { name, span, cpus: None });
        }
        let node = &mut self.nodes[index];
        match (&node.cpus, cpus) {
            (None, cpus) => node.cpus = cpus,
            (Some(known), Some(cpus)) if *known != cpus => {
                let known: Vec<String> = known.iter().map(u16::to_string).collect();
                let message =
                    format!("node {} has other cpus on an earlier row: {}", shown(name), known.join(" "));
                cells.error(Column::Cpus, message, "a node has the same cpus on every row");
            }
            _ => {}
        }
        Some(index)
    }

    fn into_description(mut self, reading: &mut Reading<'_>) -> (Description, Origins) {
        let mut description = blank(reading.system_name());
        let mut origins = Origins::default();
        let nowhere =
            self.tasks.iter().flat_map(|task| &task.subtasks).find(|subtask| subtask.node.is_none());
        if let Some(subtask) = nowhere.filter(|_| self.nodes.len() > 1) {
            let message = format!("subtask {} does not say on which node it runs", shown(subtask.name));
            reading.error(subtask.span.clone(), message, "write one into the column \"node\"");
        }
        if self.nodes.is_empty() {
            self.nodes.push(NodeDraft { name: ONLY, span: 0..0, cpus: None });
        }
        description.nodes = nodes(&self.nodes, reading);
        for (index, node) in self.nodes.iter().enumerate() {
            origins.set(Place::Node(index, ""), node.span.clone());
        }
        for (index, draft) in self.tasks.iter().enumerate() {
            origins.set(Place::Task(index, ""), draft.span.clone());
            let mut made = task(draft.name.into(), draft.period.unwrap_or_default());
            made.deadline = draft.deadline.unwrap_or(made.period);
            made.phase = draft.phase.unwrap_or(made.phase);
            made.jitter = draft.jitter.unwrap_or(made.jitter);
            made.criticality = draft.criticality.unwrap_or(made.criticality);
            made.importance = draft.importance.unwrap_or(made.importance);
            made.overrun = draft.overrun.unwrap_or(made.overrun);
            for (position, subtask) in draft.subtasks.iter().enumerate() {
                origins.set(Place::Subtask(index, position, ""), subtask.span.clone());
                origins.set(Place::Subtask(index, position, "after"), subtask.after_span.clone());
            }
            made.subtasks = subtasks(draft, reading);
            description.tasks.push(made);
        }
        (description, origins)
    }
}

/// What a system's only node is called if no row names it.
const ONLY: &str = "local";

/// Keeps what a row says of its task, which must be what other rows say.
fn adopt<T: PartialEq + Copy + Display>(
    kept: &mut Option<T>,
    read: Option<T>,
    column: Column,
    cells: &mut Cells<'_, '_, '_>,
) {
    let Some(read) = read else { return };
    let known = *kept.get_or_insert(read);
    if known != read {
        let name = column.name();
        let message = format!("the {name} is {read} here and {known} on an earlier row of the task");
        cells.error(column, message, format!("write one {name} for all subtasks of a task"));
    }
}

/// The nodes with their processors. Each of several nodes without any gets one that nobody has.
fn nodes(drafts: &[NodeDraft<'_>], reading: &mut Reading<'_>) -> Vec<Node> {
    let mut used: HashSet<u16> =
        drafts.iter().filter_map(|node| node.cpus.as_ref()).flatten().copied().collect();
    let mut made = Vec::new();
    for node in drafts {
        let cpus = node.cpus.clone().unwrap_or_else(|| {
            let free = (0..).find(|cpu| !used.contains(cpu)).unwrap_or_default();
            used.insert(free);
            if drafts.len() > 1 {
                let subject = format!("node {}", shown(node.name));
                let what = format!("are missing; it gets processor {free}, which no other node has");
                reading.lose(Effect::Assumed, node.span.clone(), &subject, "cpus", what);
            }
            vec![free]
        });
        made.push(Node { name: node.name.into(), cpus });
    }
    made
}

fn subtasks(draft: &TaskDraft<'_>, reading: &mut Reading<'_>) -> Vec<Subtask> {
    let names = || draft.subtasks.iter().map(|subtask| subtask.name);
    let positions: HashMap<&str, usize> = names().enumerate().map(|(index, name)| (name, index)).collect();
    let mut made = Vec::new();
    for (position, subtask) in draft.subtasks.iter().enumerate() {
        let mut after: Vec<usize> = position.checked_sub(1).into_iter().collect();
        if let Some(before) = &subtask.after {
            after.clear();
            for name in before {
                match positions.get(name) {
                    Some(before) => after.push(*before),
                    None if reading.is_full() => {}
                    None => {
                        let message = format!(
                            "subtask {} of task {} is after {}, which its task does not have",
                            shown(subtask.name),
                            shown(draft.name),
                            shown(name)
                        );
                        let remedy = did_you_mean(
                            name,
                            names().take(1000),
                            "name subtasks of the same task, separated by spaces; [] for none",
                        );
                        reading.error(subtask.after_span.clone(), message, remedy);
                    }
                }
            }
        }
        made.push(Subtask {
            name: subtask.name.into(),
            node: subtask.node.unwrap_or(0),
            lanes: None,
            wcet: subtask.wcet,
            exec: subtask.exec.clone().unwrap_or(Execution::Constant(subtask.wcet)),
            after,
            join: Join::All,
            bound: None,
            outputs: Vec::new(),
            inputs: Vec::new(),
            events: Vec::new(),
            subscription: None,
        });
    }
    made
}
