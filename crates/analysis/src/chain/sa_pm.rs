//! SA/PM (Sun and Liu 1996): bounds for releases that stay at least a period apart.
//!
//! It holds under phase modification, modified phase modification and release guards. Each subtask is then a sporadic
//! task of its own, and a chain's bound is the sum of its subtasks' response times and message delays; a guard never
//! holds an instance back beyond the sum of the bounds before it.

use super::{Bounds, Chains};
use crate::effort::{AnalysisError, Effort};
use crate::fixed_priority::preemptive::response_time;
use crate::recurrence::duration;
use crate::task::Task;
use talea_time::Duration;

/// A bound for each subtask from its release to its completion, and for each chain from end to end.
///
/// The first subtasks count from the arrival, so their bounds include the chain's jitter. `None` where the processor
/// is overloaded at the subtask's priority, and for chains with such a subtask.
///
/// # Errors
/// [`AnalysisError::TooCostly`] when the budget is used up, [`AnalysisError::Overflow`] where a bound leaves the range
/// of times.
pub fn bounds(chains: &Chains, effort: &mut Effort) -> Result<Bounds, AnalysisError> {
    let tasks = chains.steps.iter().map(sporadic).collect::<Result<Vec<Task>, AnalysisError>>()?;
    let mut responses: Vec<Option<Duration>> = Vec::with_capacity(tasks.len());
    for (step, task) in tasks.iter().enumerate() {
        let higher: Vec<Task> = chains.interfering(step).map(|other| tasks[other]).collect();
        responses.push(response_time(task, &higher, effort)?.map(|response| response.worst));
    }
    let end_to_end = longest_paths(chains, &responses)?;
    Ok(Bounds { subtasks: chains.by_chain(responses), end_to_end })
}

/// The step as a task by itself: guarded releases have no jitter.
fn sporadic(step: &super::Step) -> Result<Task, AnalysisError> {
    let jitter = if step.after.is_empty() { step.task.jitter() } else { Duration::ZERO };
    Ok(step.task.with_jitter(jitter).expect("zero and a chain's jitter are not negative"))
}

/// By chain, the longest sum of responses and delays on any path.
fn longest_paths(
    chains: &Chains,
    responses: &[Option<Duration>],
) -> Result<Vec<Option<Duration>>, AnalysisError> {
    let mut longest: Vec<Option<Duration>> = vec![Some(Duration::ZERO); chains.chains.len()];
    let mut completions: Vec<Option<Duration>> = Vec::with_capacity(responses.len());
    for (step, response) in chains.steps.iter().zip(responses) {
        let mut predecessors = step.after.iter().map(|&predecessor| completions[predecessor]);
        // No bound counts as infinite, so the maximum is unknown as soon as one is.
        let released =
            predecessors.try_fold(Duration::ZERO, |latest, time| time.map(|time| latest.max(time)));
        let delay = if step.after.is_empty() { Duration::ZERO } else { duration(step.delay)? };
        let completion = match (released, response) {
            (Some(released), Some(response)) => {
                let sum = released.checked_add(delay).and_then(|time| time.checked_add(*response));
                Some(sum.ok_or(AnalysisError::Overflow)?)
            }
            _ => None,
        };
        completions.push(completion);
        let bound = &mut longest[step.chain];
        *bound = bound.zip(completion).map(|(bound, completion)| bound.max(completion));
    }
    Ok(longest)
}
