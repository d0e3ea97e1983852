//! Rules about deadlines that tasks have from what releases them.

use super::{Place, Unresolved, Violation};
use crate::channel::Subscription;
use crate::description::Task;
use crate::inheritance::{deadlines, releasers};
use crate::rate::Published;
use crate::trigger::Trigger;
use talea_time::Duration;

/// Checks the tasks that inherit their deadlines. Those whose trigger names an output that was not found are left alone.
pub(super) fn check(tasks: &[Task], unresolved: &Unresolved, found: &mut Vec<Violation>) {
    if tasks.iter().all(|task| !task.inherits_deadline) {
        return;
    }
    let (published, deadlines) = (Published::of(tasks), deadlines(tasks));
    for (index, task) in tasks.iter().enumerate().filter(|(_, task)| task.inherits_deadline) {
        if unresolved.contains(&Place::Trigger(index, "output")) {
            continue;
        }
        if let Some((key, message, remedy)) = problem(tasks, &deadlines, &published, index) {
            let place = Place::Task(index, "deadline");
            let message = format!("task \"{}\" inherits its deadline and {message}", task.name);
            let related = key.map(|key| Place::Task(index, key));
            found.push(Violation { related, ..Violation::error(place, message, remedy) });
        }
    }
}

/// The key that the deadline does not go with, the rest of the message, and the remedy.
fn problem(
    tasks: &[Task],
    deadlines: &[Option<Duration>],
    published: &Published<'_>,
    index: usize,
) -> Option<(Option<&'static str>, String, &'static str)> {
    let task = &tasks[index];
    let own = "write a time, such as deadline = \"50ms\"";
    let (key, message, remedy) = match &task.trigger {
        None => (Some("period"), "is released by its period, which has none".into(), own),
        Some(Trigger::External { .. }) => {
            (Some("trigger"), "is released from outside, where nobody has one".into(), own)
        }
        Some(_) if task.separation.is_some() => (
            Some("separation"),
            "has a separation, for which its releases may have to wait".into(),
            "remove the separation, or write a time, such as deadline = \"50ms\"",
        ),
        Some(Trigger::Events(Subscription { condition, .. })) if !condition.comes_at_once() => (
            Some("subscription"),
            "awaits several events, each of which has another one".into(),
            "let each event release it, by types = [...], or write a time, such as deadline = \"50ms\"",
        ),
        Some(Trigger::Events(Subscription { condition, .. })) if condition.is_timed() => {
            (Some("subscription"), "is released by time, too, which has none".into(), own)
        }
        Some(Trigger::Output { .. } | Trigger::Events(_)) => {
            // That nobody publishes it is said of the subscription, and why one of those has no deadline is said of that.
            let due = |releaser: usize| Some((tasks[releaser].name.as_str(), deadlines[releaser]?));
            let mut releasers = releasers(tasks, published, index).into_iter().filter_map(due);
            let (first, after) = releasers.next()?;
            let (other, other_after) = releasers.find(|(_, other)| *other != after)?;
            let message = format!(
                "may be released by \"{first}\", which is due after {after}, and by \"{other}\", which is due after {other_after}",
            );
            (None, message, "give them the same deadline, or write a time here, such as deadline = \"50ms\"")
        }
    };
    Some((key, message, remedy))
}
