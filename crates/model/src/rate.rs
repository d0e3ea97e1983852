//! How often tasks are released that have no period of their own.

use crate::channel::{EventTypeName, Publication};
use crate::description::Task;
use crate::trigger::Trigger;
use std::collections::HashMap;
use talea_time::Duration;

/// What is known of a task's period so far.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    Nothing,
    /// Tasks that trigger it are being looked at.
    Asked,
    Period(Option<Duration>),
}

/// What publishes events, by channel: the task, and the type.
pub(crate) struct Published<'t>(HashMap<usize, Vec<(usize, &'t EventTypeName)>>);

impl<'t> Published<'t> {
    pub fn of(tasks: &'t [Task]) -> Self {
        let mut published: HashMap<usize, Vec<_>> = HashMap::new();
        for (index, task) in tasks.iter().enumerate() {
            for Publication { channel, event_type, .. } in
                task.subtasks.iter().flat_map(|subtask| &subtask.events)
            {
                published.entry(*channel).or_default().push((index, event_type));
            }
        }
        Published(published)
    }
}

/// What triggers a task: for each part that is awaited, the tasks of which each may be it, with how many of their jobs that takes.
pub(crate) fn parts(tasks: &[Task], published: &Published<'_>, task: usize) -> Vec<Vec<(usize, u32)>> {
    match tasks.get(task).and_then(|task| task.trigger.as_ref()) {
        Some(Trigger::Output { output, every, .. }) => vec![vec![(output.operation.task, *every)]],
        Some(Trigger::Events(subscription)) => {
            let published = published.0.get(&subscription.channel).map_or(&[][..], Vec::as_slice);
            let count = if subscription.collect.is_some() { subscription.types.len() } else { 1 };
            let mut parts = vec![Vec::new(); count];
            for (producer, event_type) in published {
                let of = subscription.parts_of(subscription.channel, event_type);
                match subscription.collect {
                    Some(_) => of.for_each(|part| parts[part].push((*producer, 1))),
                    None if of.count() > 0 => parts[0].push((*producer, 1)),
                    None => {}
                }
            }
            parts
        }
        Some(Trigger::External { .. }) | None => Vec::new(),
    }
}

/// How far apart in the long run what comes from several is, each of which comes so often.
fn merged(periods: impl Iterator<Item = Duration>) -> Option<Duration> {
    let merge = |one: Duration, other: Duration| {
        let (one, other) = (i128::from(one.as_nanos()), i128::from(other.as_nanos()));
        let both = if one + other > 0 { one * other / (one + other) } else { 0 };
        Duration::from_nanos(i64::try_from(both.max(1)).unwrap_or(i64::MAX))
    };
    periods.reduce(merge)
}

/// The period of each task: its own, of a triggered one the separation, else that of the task that triggers it times the number of its
/// values per release; with events that of all that publish them together, and of a conjunction that of its rarest part. `None` for tasks
/// whose triggers lead to themselves or to no task, which the rules refuse.
pub(crate) fn periods(tasks: &[Task]) -> Vec<Option<Duration>> {
    let published = Published::of(tasks);
    let mut known = vec![Known::Nothing; tasks.len()];
    let mut asked: Vec<usize> = Vec::new();
    for start in 0..tasks.len() {
        asked.push(start);
        while let Some(&at) = asked.last() {
            let task = &tasks[at];
            let period = match (&task.trigger, task.separation) {
                _ if matches!(known[at], Known::Period(_)) => {
                    asked.pop();
                    continue;
                }
                (None, _) => Some(task.period),
                (Some(_), Some(separation)) => Some(separation.separation),
                (Some(_), None) => {
                    let parts = parts(tasks, &published, at);
                    let unknown = |producer: &usize| known.get(*producer) == Some(&Known::Nothing);
                    let first = parts.iter().flatten().map(|(producer, _)| *producer).find(unknown);
                    if let Some(producer) = first {
                        known[at] = Known::Asked;
                        asked.push(producer);
                        continue;
                    }
                    let of = |(producer, every): &(usize, u32)| match known.get(*producer) {
                        Some(Known::Period(Some(period))) => {
                            Some(Duration::from_nanos(period.as_nanos().saturating_mul((*every).into())))
                        }
                        _ => None,
                    };
                    let of_part = |part: &Vec<(usize, u32)>| {
                        let periods: Option<Vec<Duration>> = part.iter().map(of).collect();
                        merged(periods?.into_iter())
                    };
                    let periods: Option<Vec<Duration>> = parts.iter().map(of_part).collect();
                    periods.and_then(|periods| periods.into_iter().max())
                }
            };
            known[at] = Known::Period(period);
            asked.pop();
        }
    }
    let period = |known| if let Known::Period(period) = known { period } else { None };
    known.into_iter().map(period).collect()
}

/// Puts in place what periods are derived.
pub(crate) fn derive_periods(tasks: &mut [Task]) {
    if tasks.iter().all(|task| task.trigger.is_none()) {
        return;
    }
    for (index, period) in periods(tasks).into_iter().enumerate() {
        tasks[index].period = period.unwrap_or(tasks[index].period);
    }
}
