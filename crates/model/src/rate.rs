//! How often tasks are released that have no period of their own.

use crate::description::Task;
use crate::trigger::Trigger;
use talea_time::Duration;

/// What is known of a task's period so far.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    Nothing,
    /// It is further up in the row of tasks that are being looked at.
    Asked,
    Period(Option<Duration>),
}

/// The period of each task: its own, of a triggered one the separation, else that of the task that triggers it times the number of its
/// values per release. `None` for tasks whose triggers lead to themselves or to no task, which the rules refuse.
pub(crate) fn periods(tasks: &[Task]) -> Vec<Option<Duration>> {
    let mut known = vec![Known::Nothing; tasks.len()];
    for start in 0..tasks.len() {
        let mut asked = Vec::new();
        let mut at = start;
        let mut period = loop {
            let Some(task) = tasks.get(at) else { break None };
            match (known[at], &task.trigger, task.separation) {
                (Known::Period(period), ..) => break period,
                (Known::Asked, ..) => break None,
                (_, Some(_), Some(separation)) => break Some(separation.separation),
                (_, Some(Trigger::Output { output, every, .. }), None) => {
                    known[at] = Known::Asked;
                    asked.push((at, *every));
                    at = output.operation.task;
                }
                (_, Some(Trigger::External { .. }), None) => break None,
                (_, None, _) => break Some(task.period),
            }
        };
        if known.get(at) == Some(&Known::Nothing) {
            known[at] = Known::Period(period);
        }
        while let Some((task, every)) = asked.pop() {
            period =
                period.map(|period| Duration::from_nanos(period.as_nanos().saturating_mul(every.into())));
            known[task] = Known::Period(period);
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
