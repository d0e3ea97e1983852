//! Deadlines that tasks have from whatever releases them: one deadline from the first operation to the last, across triggers and events.

use crate::channel::Arrivals;
use crate::description::Task;
use crate::rate::{Published, arrivals};
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
    let arrivals = arrivals(tasks, published, task);
    let all = arrivals.iter().flat_map(Arrivals::producers).map(|(producer, _)| *producer);
    all.filter(|producer| *producer < tasks.len()).collect()
}

/// The deadline of each task after its arrival: its own, or what it inherits, that of the first that may release it, since the rules demand
/// that all have the same. None for tasks that nothing releases, or that lead to themselves, which the rules refuse.
pub(crate) fn deadlines(tasks: &[Task]) -> Vec<Option<Duration>> {
    if tasks.iter().all(|task| !task.inherits_deadline) {
        return tasks.iter().map(|task| Some(task.deadline)).collect();
    }
    let published = Published::of(tasks);
    let source = |task: usize| match tasks[task].inherits_deadline {
        true => releasers(tasks, &published, task).first().copied(),
        false => None,
    };
    let sources: Vec<Option<usize>> = (0..tasks.len()).map(source).collect();
    let deadline = |start: usize| {
        let mut at = start;
        // No way is longer than that unless it leads to itself.
        for _ in 0..sources.len() {
            match sources[at] {
                Some(before) => at = before,
                None => return (!tasks[at].inherits_deadline).then_some(tasks[at].deadline),
            }
        }
        None
    };
    (0..tasks.len()).map(deadline).collect()
}

/// Puts in place what deadlines are inherited.
pub(crate) fn derive_deadlines(tasks: &mut [Task]) {
    for (task, deadline) in deadlines(tasks).into_iter().enumerate() {
        tasks[task].deadline = deadline.unwrap_or(tasks[task].deadline);
    }
}
