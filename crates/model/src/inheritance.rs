//! Deadlines that tasks have from whatever releases them: one deadline from the first operation to the last, across triggers and events.

use crate::description::Task;
use crate::rate::{Published, parts};
use talea_time::Duration;

/// How a file says that a task has the deadline of the job that releases it.
pub(crate) const INHERITED: &str = "inherited";

/// What a file says of a deadline.
#[derive(Clone, Copy)]
pub(crate) enum Deadline {
    /// So long after the arrival.
    After(Duration),
    /// That of the job that releases the task.
    Inherited,
}

/// Whose jobs may release a task, by their indices.
pub(crate) fn releasers(tasks: &[Task], published: &Published<'_>, task: usize) -> Vec<usize> {
    let all = parts(tasks, published, task).into_iter().flatten().map(|(producer, _)| producer);
    all.filter(|producer| *producer < tasks.len()).collect()
}

/// Puts in place what deadlines are inherited: those of the first that may release each task, since the rules demand that all have the same.
/// Tasks that nothing releases, or that lead to themselves, which the rules refuse, keep what they have.
pub(crate) fn derive_deadlines(tasks: &mut [Task]) {
    if tasks.iter().all(|task| !task.inherits_deadline) {
        return;
    }
    let sources: Vec<Option<usize>> = {
        let published = Published::of(tasks);
        let of = |task: usize| match tasks[task].inherits_deadline {
            true => releasers(tasks, &published, task).first().copied(),
            false => None,
        };
        (0..tasks.len()).map(of).collect()
    };
    let origin = |start: usize| {
        let mut at = start;
        // No way is longer than that unless it leads to itself.
        for _ in 0..sources.len() {
            match sources[at] {
                Some(before) => at = before,
                None => return Some(at),
            }
        }
        None
    };
    let origins: Vec<Option<usize>> = (0..sources.len()).map(origin).collect();
    for (task, origin) in origins.into_iter().enumerate() {
        if let Some(origin) = origin.filter(|origin| !tasks[*origin].inherits_deadline) {
            tasks[task].deadline = tasks[origin].deadline;
        }
    }
}
