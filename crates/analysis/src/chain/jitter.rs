//! The fixed point at which every subtask's jitter is what its predecessors' bounds allow.
//!
//! All bounds grow from round to round, from the sums of execution times towards the least fixed point. A bound that
//! grows past a given number of periods is given up, and with it all that depend on it.

use super::{Bounds, Chains, Step};
use crate::effort::{AnalysisError, Effort};
use crate::fixed_priority::preemptive::response_time;
use crate::recurrence::duration;
use crate::task::Task;
use talea_time::Duration;

/// How much of the time before a subtask's release is jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// All of it.
    Everything,
    /// What exceeds the shortest time possible.
    BeyondBestCase,
}

/// For each subtask, a bound from the arrival of the chain's instance to the subtask's completion.
///
/// `None` where it grows past `periods` periods of its chain, or depends on one that does.
pub(super) fn bounds(
    chains: &Chains,
    spread: Spread,
    periods: u32,
    effort: &mut Effort,
) -> Result<Bounds, AnalysisError> {
    let mut search = Search { chains, periods, best: best_cases(chains, spread)?, bounds: Vec::new() };
    for step in &chains.steps {
        let released = search.latest_release(step);
        let wcet = u128::from(step.task.numbers().wcet);
        search.bounds.push(released.and_then(|released| search.unless_diverged(step, released + wcet)));
    }
    while search.round(effort)? {}
    let bounds = search.bounds.iter().map(|bound| bound.map(duration).transpose());
    let subtasks = chains.by_chain(bounds.collect::<Result<Vec<Option<Duration>>, _>>()?);
    let end_to_end = subtasks
        .iter()
        .map(|bounds| {
            bounds.iter().try_fold(Duration::ZERO, |most, bound| bound.map(|bound| most.max(bound)))
        })
        .collect();
    Ok(Bounds { subtasks, end_to_end })
}

struct Search<'a> {
    chains: &'a Chains,
    periods: u32,
    /// By step: the least time from arrival to release that is not jitter.
    best: Vec<u128>,
    /// By step: from arrival to completion. `None` is infinite.
    bounds: Vec<Option<u128>>,
}

impl Search<'_> {
    /// Renews every bound; whether one has changed.
    fn round(&mut self, effort: &mut Effort) -> Result<bool, AnalysisError> {
        let mut changed = false;
        for step in 0..self.bounds.len() {
            let Some(bound) = self.bounds[step] else { continue };
            let renewed = self.renewed(step, effort)?;
            debug_assert!(renewed.is_none_or(|renewed| renewed >= bound), "bounds only grow");
            changed |= renewed != Some(bound);
            self.bounds[step] = renewed;
        }
        Ok(changed)
    }

    fn renewed(&self, step: usize, effort: &mut Effort) -> Result<Option<u128>, AnalysisError> {
        let Some(task) = self.task(step)? else { return Ok(None) };
        let higher = self.chains.interfering(step).map(|other| self.task(other));
        let Some(higher) = higher.collect::<Result<Option<Vec<Task>>, _>>()? else { return Ok(None) };
        let response = response_time(&task, &higher, effort)?;
        Ok(response.and_then(|response| {
            let worst = u128::from(response.worst.as_nanos().unsigned_abs());
            self.unless_diverged(&self.chains.steps[step], self.best[step] + worst)
        }))
    }

    /// The step with its present jitter, unless that is infinite.
    fn task(&self, index: usize) -> Result<Option<Task>, AnalysisError> {
        let step = &self.chains.steps[index];
        let Some(released) = self.latest_release(step) else { return Ok(None) };
        let jitter = duration(released - self.best[index])?;
        Ok(Some(step.task.with_jitter(jitter).expect("a release is not before the best case")))
    }

    /// From the arrival to the latest release, unless it is infinite.
    fn latest_release(&self, step: &Step) -> Option<u128> {
        let numbers = step.task.numbers();
        if step.after.is_empty() {
            return Some(numbers.jitter.into());
        }
        let mut completions = step.after.iter().map(|&predecessor| self.bounds[predecessor]);
        let latest = completions.try_fold(0, |latest, bound| bound.map(|bound| bound.max(latest)))?;
        Some(latest + u128::from(step.delay))
    }

    fn unless_diverged(&self, step: &Step, bound: u128) -> Option<u128> {
        let limit = u128::from(step.task.numbers().period) * u128::from(self.periods);
        (bound <= limit).then_some(bound)
    }
}

/// By step: the least time from arrival to release, as far as it is taken off the jitter.
fn best_cases(chains: &Chains, spread: Spread) -> Result<Vec<u128>, AnalysisError> {
    let mut best: Vec<u128> = Vec::with_capacity(chains.steps.len());
    for step in &chains.steps {
        let completion =
            |predecessor: &usize| best[*predecessor] + u128::from(chains.steps[*predecessor].bcet);
        best.push(match spread {
            Spread::Everything => 0,
            Spread::BeyondBestCase => step.after.iter().map(completion).max().unwrap_or(0),
        });
    }
    Ok(best)
}
