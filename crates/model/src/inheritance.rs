//! What tasks have from others: deadlines from whatever releases them, so that there is one from the first operation to the last, across triggers and
//! events, and criticality from whom they release.

use crate::channel::Arrivals;
use crate::description::{Criticality, Task};
use crate::rate::{Published, arrivals};
use std::collections::VecDeque;
use talea_time::Duration;

/// How a file says that a task has the deadline of the job that releases it, or the criticality of those that it releases.
pub(crate) const INHERITED: &str = "inherited";

/// What a file says of a deadline.
#[derive(Clone, Copy)]
pub(crate) enum Deadline {
    /// So long after the arrival.
    After(Duration),
    /// That of the job that releases the task.
    Inherited,
}

/// What a file says of a criticality.
#[derive(Clone, Copy)]
pub(crate) enum StatedCriticality {
    /// This one.
    Own(Criticality),
    /// The highest of those that it releases, or that take its events.
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

/// For each task the highest criticality among those that its jobs release, or that take events of it, directly or through others; none of a task that
/// has nobody behind it. Criticality flows from consumer to supplier (Kokyu's scheduling service), through as many tasks as there are between them.
pub(crate) fn needed(tasks: &[Task]) -> Vec<Option<Criticality>> {
    let published = Published::of(tasks);
    let suppliers = |task: usize| {
        let taken = tasks[task].subtasks.iter().filter_map(|subtask| subtask.subscription.as_ref());
        let of_events = taken.flat_map(|subscription| published.suppliers(subscription));
        releasers(tasks, &published, task).into_iter().chain(of_events).collect()
    };
    let suppliers: Vec<Vec<usize>> = (0..tasks.len()).map(suppliers).collect();
    let mut needed = vec![None; tasks.len()];
    let own = |task: usize| (!tasks[task].inherits_criticality).then_some(tasks[task].criticality);
    let mut changed: VecDeque<usize> = (0..tasks.len()).collect();
    // Each task changes at most as often as there are criticalities.
    while let Some(consumer) = changed.pop_front() {
        let of_consumer = own(consumer).max(needed[consumer]);
        for supplier in &suppliers[consumer] {
            if needed[*supplier] < of_consumer {
                needed[*supplier] = of_consumer;
                changed.push_back(*supplier);
            }
        }
    }
    needed
}

/// Puts in place what criticalities are inherited. Tasks that have nobody behind them, which the rules refuse, have the default.
pub(crate) fn derive_criticalities(tasks: &mut [Task]) {
    if tasks.iter().all(|task| !task.inherits_criticality) {
        return;
    }
    for (task, needed) in needed(tasks).into_iter().enumerate() {
        if tasks[task].inherits_criticality {
            tasks[task].criticality = needed.unwrap_or(Criticality::DEFAULT);
        }
    }
}
