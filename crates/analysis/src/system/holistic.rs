//! All lanes of all nodes, until no jitter grows any more.
//!
//! Releases from other nodes begin without jitter and get more of it in every round; every bound grows with every
//! jitter, so the first round without change is the least fixed point, and it is a bound (Tindell and Clark 1994,
//! section 5).

use super::lane::{View, Worst};
use super::model::{Entry, Model};
use super::parts;
use super::stream::{Outside, Stream};
use super::{Obstacle, OperationBound, SystemBounds, TaskBound};
use crate::effort::Effort;
use talea_model::System;
use talea_time::Duration;

/// A release that is later than this many periods after its arrival, in a system that has not come to rest, is taken
/// to grow for ever.
const PERIODS: u64 = 300;

/// What is known of an operation: its worst window, and what delayed it from outside at that time.
type Known = Result<Worst, Obstacle>;

pub(super) struct Solution {
    known: Vec<Known>,
    /// By segment; `None` where a release has no bound.
    jitters: Vec<Option<u64>>,
    diverges: bool,
}

/// Bounds every operation of the model.
pub(super) fn solve(model: &Model, effort: &mut Effort) -> Solution {
    let jitter = |entry: &Entry| match entry {
        Entry::Release(jitter) => Some(*jitter),
        Entry::After(_) => Some(0),
    };
    let mut solution = Solution {
        known: vec![Err(Obstacle::Waits); model.operations.len()],
        jitters: model.segments.iter().map(|segment| jitter(&segment.entry)).collect(),
        diverges: false,
    };
    let mut changed = vec![true; model.nodes.len()];
    while changed.contains(&true) {
        for (node, changed) in changed.iter_mut().enumerate() {
            if std::mem::take(changed) {
                solution.solve_node(model, node, effort);
            }
        }
        solution.delay_releases(model, &mut changed);
    }
    solution
}

impl Solution {
    fn solve_node(&mut self, model: &Model, node: usize, effort: &mut Effort) {
        let node = &model.nodes[node];
        let interrupts = node.interrupts.iter().map(|interrupt| {
            let jitter = self.jitters[interrupt.segment].ok_or(Obstacle::Waits)?;
            Ok(Stream::new(
                interrupt.segment,
                model.segments[interrupt.segment].period,
                jitter,
                interrupt.cost,
            ))
        });
        let outside = interrupts
            .collect::<Result<Vec<Stream>, Obstacle>>()
            .and_then(|interrupts| Ok(Outside::new(interrupts, node.processors)?));
        let mut outside = match outside {
            Ok(outside) => outside,
            Err(obstacle) => {
                let operations = model.operations.iter().enumerate();
                let here =
                    operations.filter(|(_, operation)| std::ptr::eq(&model.nodes[operation.node], node));
                here.for_each(|(operation, _)| self.known[operation] = Err(obstacle));
                return;
            }
        };
        for lane in &node.lanes {
            let streams = lane.segments.iter().map(|segment| {
                let jitter = self.jitters[*segment].ok_or(Obstacle::Waits)?;
                Ok(Stream::new(
                    *segment,
                    model.segments[*segment].period,
                    jitter,
                    model.segments[*segment].cost,
                ))
            });
            let found = streams.collect::<Result<Vec<Stream>, Obstacle>>().and_then(|streams| {
                let view = View { model, lane, streams: &streams, outside: &outside };
                let found = with_half(effort, |effort| view.responses(effort))?;
                Ok((streams, found))
            });
            let descended = match found {
                Ok((streams, found)) => {
                    found.into_iter().for_each(|(operation, worst)| self.known[operation] = Ok(worst));
                    let streams = self.seen_from_below(model, streams, outside.processors());
                    outside.descend(streams.as_deref())
                }
                Err(obstacle) => {
                    let operations =
                        lane.segments.iter().flat_map(|segment| &model.segments[*segment].operations);
                    operations.for_each(|operation| self.known[*operation] = Err(obstacle));
                    outside.descend(None)
                }
            };
            if descended.is_err() {
                outside.descend(None).expect("nothing is added up for a lane without a bound");
            }
        }
    }

    /// A lane's streams as lower lanes of the node see them. On several processors a lower lane's window may begin while
    /// they are under way; whatever is unfinished then arrived at most a response time before.
    fn seen_from_below(&self, model: &Model, streams: Vec<Stream>, processors: usize) -> Option<Vec<Stream>> {
        if processors == 1 {
            return Some(streams);
        }
        let with_backlog = |stream: Stream| {
            let operations = model.segments[stream.segment].operations.iter();
            let responses =
                operations.map(|operation| self.known[*operation].as_ref().ok().map(Worst::response));
            let longest = responses.collect::<Option<Vec<i128>>>()?.into_iter().max()?;
            Some(stream.with_jitter(u64::try_from(longest).ok()?))
        };
        streams.into_iter().map(with_backlog).collect()
    }

    /// Releases what waits for other operations as late as these can complete. Marks the nodes for which that is news.
    fn delay_releases(&mut self, model: &Model, changed: &mut [bool]) {
        for (index, segment) in model.segments.iter().enumerate() {
            let Entry::After(before) = &segment.entry else { continue };
            let Some(jitter) = self.jitters[index] else { continue };
            let latest = before.iter().map(|(operation, delay)| {
                let response = self.known[*operation].as_ref().ok()?.response();
                u64::try_from(response).ok()?.checked_add(*delay)
            });
            let latest = latest.collect::<Option<Vec<u64>>>().and_then(|latest| latest.into_iter().max());
            let grown = latest.map(|latest| latest.max(jitter));
            let limit = segment.period.saturating_mul(PERIODS).max(segment.deadline.saturating_mul(2));
            if grown == Some(jitter) {
                continue;
            }
            self.diverges |= grown.is_some_and(|grown| grown > limit);
            self.jitters[index] = grown.filter(|grown| *grown <= limit);
            changed[model.operations[segment.operations[0]].node] = true;
        }
    }

    /// The result in the model's terms.
    pub fn bounds(self, system: &System, model: &Model) -> SystemBounds {
        let operations: Vec<OperationBound> = system
            .operations()
            .iter()
            .map(|operation| {
                let numbers = &model.operations[operation.id.index()];
                let known = self.known[operation.id.index()].as_ref().map_err(|obstacle| match obstacle {
                    Obstacle::Waits if self.diverges => Obstacle::Diverges,
                    other => *other,
                });
                OperationBound {
                    operation: operation.id,
                    node: numbers.node,
                    level: numbers.lane,
                    response: known
                        .and_then(|worst| parts::response(model, &self.jitters, operation.id, worst)),
                }
            })
            .collect();
        let tasks = (0..system.tasks.len())
            .map(|task| {
                let own =
                    system.operations_of(task).iter().map(|operation| &operations[operation.id.index()]);
                let bound = |operation: &&OperationBound| match &operation.response {
                    Ok(response) => response.bound,
                    Err(_) => Duration::MAX,
                };
                // The first of the latest.
                let last = own.rev().max_by_key(bound).expect("a task has operations");
                let response =
                    last.response.as_ref().map(|response| response.bound).map_err(|obstacle| *obstacle);
                TaskBound { task, last: last.operation, response }
            })
            .collect();
        SystemBounds { operations, tasks }
    }
}

/// Does something with half of the effort that is left, so that one costly lane leaves enough for the others.
fn with_half<T>(effort: &mut Effort, action: impl FnOnce(&mut Effort) -> T) -> T {
    let mut half = effort.half();
    let result = action(&mut half);
    effort.spend(half.spent()).expect("half of it was there");
    result
}
