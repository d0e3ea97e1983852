//! Whether a trace is one of the system it is to be compared with.

use talea_record::{Metadata, OperationEntry, TaskEntry};
use thiserror::Error;

/// The trace belongs to another system.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the trace belongs to another system: {what} is {in_trace} in the trace and {expected} in the system file"
)]
pub struct OtherSystem {
    /// What differs.
    pub what: String,
    /// What it is in the trace.
    pub in_trace: String,
    /// What it is in the system.
    pub expected: String,
}

/// Compares everything but strategy, lanes and seed, which are what a verification is about or does not need, and posted work, of which
/// no description says anything.
pub(super) fn check(trace: &Metadata, expected: &Metadata) -> Result<(), OtherSystem> {
    let names = |metadata: &Metadata| {
        let nodes: Vec<String> =
            metadata.nodes.iter().map(|node| format!("{} ({})", node.name, node.cpus.len())).collect();
        nodes.join(", ")
    };
    same("the list of nodes and their processors", &names(trace), &names(expected))?;
    let tasks = |metadata: &Metadata| {
        let described = metadata.tasks.iter().filter(|task| !task.activity.is_posted());
        let names: Vec<&str> = described.map(|task| task.name.as_str()).collect();
        names.join(", ")
    };
    same("the list of tasks", &tasks(trace), &tasks(expected))?;
    for (task, other) in trace.tasks.iter().zip(&expected.tasks) {
        let what = |what: &str| format!("the {what} of task \"{}\"", task.name);
        same(&what("period"), &task.period, &other.period)?;
        same(&what("deadline"), &task.deadline, &other.deadline)?;
        let inherits = |entry: &TaskEntry| if entry.inherits_deadline { "yes" } else { "no" };
        same(&what("inheritance of the deadline"), &inherits(task), &inherits(other))?;
        same(&what("phase"), &task.phase, &other.phase)?;
        same(&what("jitter"), &task.jitter, &other.jitter)?;
    }
    let operations = |metadata: &Metadata| {
        let is_described = |operation: &&OperationEntry| !metadata.tasks[operation.task].activity.is_posted();
        let described = metadata.operations.iter().filter(is_described);
        let names: Vec<&str> = described.map(|operation| operation.name.as_str()).collect();
        names.join(", ")
    };
    same("the list of operations", &operations(trace), &operations(expected))?;
    for (operation, other) in trace.operations.iter().zip(&expected.operations) {
        let what = |what: &str| format!("the {what} of \"{}\"", operation.name);
        same(&what("worst-case execution time"), &operation.wcet, &other.wcet)?;
        let node = |metadata: &Metadata, lane: usize| metadata.nodes[metadata.lanes[lane].node].name.clone();
        same(&what("node"), &node(trace, operation.lane), &node(expected, other.lane))?;
        let before = |metadata: &Metadata, list: &[usize]| {
            let names: Vec<&str> =
                list.iter().map(|index| metadata.operations[*index].name.as_str()).collect();
            if names.is_empty() { "none".to_string() } else { names.join(", ") }
        };
        let (own, theirs) = (before(trace, &operation.predecessors), before(expected, &other.predecessors));
        same(&what("list of predecessors"), &own, &theirs)?;
    }
    Ok(())
}

fn same<T: PartialEq + ToString>(what: &str, in_trace: &T, expected: &T) -> Result<(), OtherSystem> {
    if in_trace == expected {
        return Ok(());
    }
    let (in_trace, expected) = (in_trace.to_string(), expected.to_string());
    Err(OtherSystem { what: what.to_owned(), in_trace, expected })
}
