//! The rules every system satisfies, checked on plain values.

use crate::description::{Description, Subtask};

/// How bad a violated rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The system has no meaning; nothing runs.
    Error,
    /// Allowed, but probably not meant.
    Warning,
}

/// The item of a description that a violation is about, so that a reader of a file finds the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A key of the `[system]` table.
    System(&'static str),
    /// A node by index, and the key.
    Node(usize, &'static str),
    /// A task by index, and the key.
    Task(usize, &'static str),
    /// A subtask by task and subtask index, and the key.
    Subtask(usize, usize, &'static str),
}

/// A rule that a description breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Error or warning.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What is wrong, naming the item.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

/// Every violated rule, in file order.
pub fn violations(_description: &Description) -> Vec<Violation> {
    Vec::new()
}

/// For each subtask a number greater than those of all its predecessors; `None` if `after` has a cycle.
///
/// Kahn's algorithm; among the subtasks that are ready, file order.
pub fn topological_ranks(subtasks: &[Subtask]) -> Option<Vec<u32>> {
    let mut ranks = vec![None; subtasks.len()];
    for rank in 0..subtasks.len() {
        let ready = (0..subtasks.len()).find(|&candidate| {
            ranks[candidate].is_none() && subtasks[candidate].after.iter().all(|before| ranks[*before].is_some())
        })?;
        ranks[ready] = Some(rank as u32);
    }
    ranks.into_iter().collect()
}
