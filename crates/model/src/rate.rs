//! How often tasks are released that have no period of their own.

use crate::channel::{Arrivals, Publication, Subscription};
use crate::description::{TIME_LIMIT, Task};
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
pub(crate) struct Published<'t>(HashMap<usize, Vec<(usize, &'t Publication)>>);

impl<'t> Published<'t> {
    pub fn of(tasks: &'t [Task]) -> Self {
        let mut published: HashMap<usize, Vec<_>> = HashMap::new();
        for (index, task) in tasks.iter().enumerate() {
            for publication in task.subtasks.iter().flat_map(|subtask| &subtask.events) {
                published.entry(publication.channel).or_default().push((index, publication));
            }
        }
        Published(published)
    }

    fn in_channel(&self, channel: usize) -> &[(usize, &'t Publication)] {
        self.0.get(&channel).map_or(&[], Vec::as_slice)
    }

    /// The tasks of which some operation pushes what jobs have by this subscription, once for each event that it pushes.
    pub fn suppliers(&self, subscription: &Subscription) -> impl Iterator<Item = usize> {
        let published = self.in_channel(subscription.channel).iter();
        published.filter(|(_, publication)| subscription.hands_on(publication)).map(|(task, _)| *task)
    }

    /// How often the subscription comes true: with events of which tasks, and how many of these.
    pub fn arrivals(&self, subscription: &Subscription) -> Arrivals<(usize, u32)> {
        let published = self.in_channel(subscription.channel);
        let leaves: Vec<Option<Vec<usize>>> =
            published.iter().map(|(_, publication)| subscription.leaves_of(publication)).collect();
        subscription.arrivals(|some| {
            let is_some =
                |leaves: &&Option<Vec<usize>>| leaves.iter().flatten().any(|leaf| some.contains(leaf));
            let of = published.iter().zip(&leaves).filter(|(_, leaves)| is_some(leaves));
            of.map(|((producer, _), _)| (*producer, 1)).collect()
        })
    }
}

/// How often a task is triggered: by tasks, with how many of their jobs that takes. None of those without a trigger, or with one from outside.
pub(crate) fn arrivals(
    tasks: &[Task],
    published: &Published<'_>,
    task: usize,
) -> Option<Arrivals<(usize, u32)>> {
    match tasks.get(task)?.trigger.as_ref()? {
        Trigger::Output { output, every, .. } => Some(Arrivals::Of((output.operation.task, *every))),
        Trigger::Events(subscription) => Some(published.arrivals(subscription)),
        Trigger::External { .. } => None,
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

/// How far apart in the long run what comes is, of producers of which this is known.
fn period_of<P>(arrivals: &Arrivals<P>, of: &impl Fn(&P) -> Option<Duration>) -> Option<Duration> {
    match arrivals {
        Arrivals::Of(producer) => of(producer),
        Arrivals::Any(parts) => {
            let those = parts.iter().filter(|part| part.can_come());
            let periods: Option<Vec<Duration>> = those.map(|part| period_of(part, of)).collect();
            merged(periods?.into_iter())
        }
        Arrivals::All(parts) => {
            let periods: Option<Vec<Duration>> = parts.iter().map(|part| period_of(part, of)).collect();
            periods?.into_iter().max()
        }
        Arrivals::Nth(count, part) => {
            let period = period_of(part, of)?.as_nanos().saturating_mul((*count).into());
            Some(Duration::from_nanos(period).min(TIME_LIMIT))
        }
        Arrivals::Every(period) => Some(*period),
        Arrivals::Once => Some(TIME_LIMIT),
    }
}

/// How far apart in the long run it comes, of tasks whose periods are known.
pub(crate) fn comes_every(
    arrivals: &Arrivals<(usize, u32)>,
    period: impl Fn(usize) -> Option<Duration>,
) -> Option<Duration> {
    let times =
        |period: Duration, every: u32| Duration::from_nanos(period.as_nanos().saturating_mul(every.into()));
    period_of(arrivals, &|(producer, every): &(usize, u32)| Some(times(period(*producer)?, *every)))
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
                    let arrivals = arrivals(tasks, &published, at);
                    let producers = arrivals.iter().flat_map(Arrivals::producers);
                    let unknown = |producer: &usize| known.get(*producer) == Some(&Known::Nothing);
                    let first = producers.map(|(producer, _)| *producer).find(unknown);
                    if let Some(producer) = first {
                        known[at] = Known::Asked;
                        asked.push(producer);
                        continue;
                    }
                    let of = |producer: usize| match known.get(producer) {
                        Some(Known::Period(period)) => *period,
                        _ => None,
                    };
                    arrivals.and_then(|arrivals| comes_every(&arrivals, of))
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
