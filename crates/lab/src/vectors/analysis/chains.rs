//! End-to-end bounds for chains.

use super::{Complaint, same};
use serde::Deserialize;
use std::collections::BTreeMap;
use talea_analysis::Effort;
use talea_analysis::chain::{Bounds, Chain, Chains, Subtask, holistic, sa_ds, sa_pm};
use talea_time::{Duration, Work};

/// A bound that grows past so many periods is null.
const PERIODS: u32 = 300;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(rename = "source")]
    _source: String,
    tasks: Vec<ChainRow>,
    expect: Expectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainRow {
    #[serde(rename = "id")]
    _id: String,
    period_ns: i64,
    /// The bounds hold for all phases, and judge no deadline.
    #[serde(rename = "phase_ns")]
    _phase_ns: i64,
    #[serde(rename = "deadline_ns")]
    _deadline_ns: i64,
    subtasks: Vec<SubtaskRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubtaskRow {
    proc: String,
    wcet_ns: i64,
    prio: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    sa_pm_subtask_wcrt_ns: Vec<Vec<Option<i64>>>,
    sa_pm_eer_ns: Vec<Option<i64>>,
    sa_ds_ieer_ns: Vec<Vec<Option<i64>>>,
}

pub(super) fn bounds(case: &Case, effort: &mut Effort) -> Result<(), Complaint> {
    let chains = chains(&case.tasks).map_err(Complaint::Unreadable)?;
    let expect = &case.expect;
    let guarded = sa_pm::bounds(&chains, effort)?;
    same("sa_pm_subtask_wcrt_ns", &expect.sa_pm_subtask_wcrt_ns, &by_subtask(&guarded))?;
    same("sa_pm_eer_ns", &expect.sa_pm_eer_ns, &nanos(&guarded.end_to_end))?;
    let greedy = sa_ds::bounds(&chains, PERIODS, effort)?;
    same("sa_ds_ieer_ns", &expect.sa_ds_ieer_ns, &by_subtask(&greedy))?;
    // Without best cases, delays and blocking the holistic bounds are the same.
    let holistic = holistic::bounds(&chains, PERIODS, effort)?;
    same("sa_ds_ieer_ns, as the holistic analysis has it", &expect.sa_ds_ieer_ns, &by_subtask(&holistic))
}

fn chains(rows: &[ChainRow]) -> Result<Chains, String> {
    let mut processors = BTreeMap::new();
    let chains = rows.iter().map(|row| {
        let subtasks = row.subtasks.iter().enumerate().map(|(position, subtask)| {
            let number = processors.len();
            Subtask {
                processor: *processors.entry(subtask.proc.clone()).or_insert(number),
                priority: subtask.prio,
                wcet: Work::from_nanos(subtask.wcet_ns),
                bcet: Work::ZERO,
                blocking: Duration::ZERO,
                delay: Duration::ZERO,
                after: position.checked_sub(1).into_iter().collect(),
            }
        });
        let subtasks = subtasks.collect();
        Chain { period: Duration::from_nanos(row.period_ns), jitter: Duration::ZERO, subtasks }
    });
    Chains::new(chains.collect()).map_err(|error| error.to_string())
}

fn by_subtask(bounds: &Bounds) -> Vec<Vec<Option<i64>>> {
    bounds.subtasks.iter().map(|chain| nanos(chain)).collect()
}

fn nanos(bounds: &[Option<Duration>]) -> Vec<Option<i64>> {
    bounds.iter().map(|bound| bound.map(Duration::as_nanos)).collect()
}
