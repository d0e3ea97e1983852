//! All lanes of all nodes, until no jitter grows any more.
//!
//! Releases from other nodes begin without jitter and get more of it in every round; every bound grows with every
//! jitter, so the first round without change is the least fixed point, and it is a bound (Tindell and Clark 1994,
//! section 5). Where the protocol keeps releases apart only the delay grows, see `release.rs`.

use super::lane::{Goal, View, Worst};
use super::model::{Events, Interrupt, Lane, Model, Node, Segment};
use super::parts;
use super::release::{Completion, Entry, Pacing, Releases};
use super::stream::{Outside, Stream};
use super::supply::Supply;
use super::triggered::{Curve, Triggered};
use super::{Obstacle, OperationBound, TaskBound};
use crate::effort::Effort;
use std::collections::HashSet;
use talea_model::System;
use talea_policy::discipline::Discipline;
use talea_time::Duration;

/// A release that is later than this many periods after its arrival, in a system that has not come to rest, is taken
/// to grow for ever.
const PERIODS: u64 = 300;

/// What is known of an operation: its worst window, or why there is none.
type Known = Result<Worst, Obstacle>;

#[derive(Debug)]
pub(super) struct Solution {
    known: Vec<Known>,
    /// By segment; `None` where a release has no bound.
    releases: Vec<Option<Releases>>,
    /// By segment: what comes to the guard of a task with a trigger; `None` where there is none, or nothing bounds it.
    signals: Vec<Option<Curve>>,
    /// The segment of every operation.
    segment_of: Vec<usize>,
    diverges: bool,
}

/// Bounds every operation of the model.
pub(super) fn solve(model: &Model, goal: Goal<'_>, effort: &mut Effort) -> Solution {
    let mut solution = Solution {
        known: vec![Err(Obstacle::Waits); model.operations.len()],
        releases: model.segments.iter().map(|segment| Some(segment.entry.first())).collect(),
        signals: model.segments.iter().map(|segment| segment.entry.first_signals()).collect(),
        segment_of: model.operations.iter().map(|operation| operation.segment).collect(),
        diverges: false,
    };
    let mut changed = vec![true; model.nodes.len()];
    while changed.contains(&true) {
        for (node, changed) in changed.iter_mut().enumerate() {
            if std::mem::take(changed) {
                solution.solve_node(model, node, goal, effort);
            }
        }
        solution.delay_releases(model, &mut changed);
    }
    solution
}

impl Solution {
    fn solve_node(&mut self, model: &Model, node: usize, goal: Goal<'_>, effort: &mut Effort) {
        let node = &model.nodes[node];
        let mut outside = node.supply.and_then(|supply| self.interrupts(model, node, supply));
        for lane in &node.lanes {
            let found = outside.as_mut().map_err(|obstacle| *obstacle).and_then(|outside| {
                let streams = self.streams(model, lane)?;
                let view = View { model, lane, streams: &streams, outside, server: node.server, goal };
                Ok((effort.within_half(|effort| view.responses(effort))?, streams))
            });
            let below = match found {
                Ok((found, streams)) => {
                    found.into_iter().for_each(|(operation, worst)| self.known[operation] = Ok(worst));
                    self.seen_from_below(model, streams, node.processors)
                }
                Err(obstacle) => {
                    let operations =
                        lane.segments.iter().flat_map(|segment| &model.segments[*segment].operations);
                    operations.for_each(|operation| self.give_up(*operation, obstacle));
                    None
                }
            };
            if let Ok(outside) = &mut outside
                && outside.descend(below.as_deref()).is_err()
            {
                outside.descend(None).expect("nothing is added up for a lane without a bound");
            }
        }
    }

    /// Nothing bounds the operation. That it waits for something else is no reason where it has one of its own, from which that may follow.
    fn give_up(&mut self, operation: usize, obstacle: Obstacle) {
        let known = &mut self.known[operation];
        if obstacle != Obstacle::Waits || known.is_ok() {
            *known = Err(obstacle);
        }
    }

    /// What delays the highest lane of a node.
    fn interrupts(&self, model: &Model, node: &Node, supply: Supply) -> Result<Outside, Obstacle> {
        let obstacle = |interrupt: &Interrupt| match interrupt.events {
            Events::Signals(_) => Obstacle::Undeclared,
            Events::Releases(_) | Events::Timer { .. } => Obstacle::Waits,
        };
        let stream =
            |interrupt: &Interrupt| self.interrupting(model, interrupt).ok_or_else(|| obstacle(interrupt));
        let streams = node.interrupts.iter().map(stream).collect::<Result<Vec<Stream>, Obstacle>>()?;
        Ok(Outside::new(streams, node.processors, supply)?)
    }

    /// What interrupts as a stream of work; none if it may come at any time.
    pub fn interrupting(&self, model: &Model, interrupt: &Interrupt) -> Option<Stream> {
        match interrupt.events {
            Events::Releases(segment) => {
                let period = model.segments[segment].period;
                Some(Stream::new(segment, period, self.releases[segment]?, interrupt.cost))
            }
            Events::Signals(segment) => {
                let Curve { period, bunched } = self.signals[segment]?;
                let releases = Releases { jitter: bunched, bunched, ..Releases::PERIODIC };
                Some(Stream::new(segment, period, releases, interrupt.cost))
            }
            Events::Timer { period, beyond } => {
                let releases = Releases { latest: beyond, jitter: beyond, ..Releases::PERIODIC };
                Some(Stream::new(usize::MAX, period, releases, interrupt.cost))
            }
        }
    }

    /// The segments of a lane, released as late as is known.
    pub fn streams(&self, model: &Model, lane: &Lane) -> Result<Vec<Stream>, Obstacle> {
        let stream = |segment: &usize| {
            let releases = self.releases[*segment].ok_or(Obstacle::Waits)?;
            Ok(Stream::new(
                *segment,
                model.segments[*segment].period,
                releases,
                model.segments[*segment].cost,
            ))
        };
        lane.segments.iter().map(stream).collect()
    }

    /// A lane's streams as lower lanes of the node see them. On several processors, and where jobs of the lane give up its processor while they wait for
    /// room in an input, a lower lane's window may begin while they are under way; whatever is unfinished then was released at most a response time before.
    pub fn seen_from_below(
        &self,
        model: &Model,
        streams: Vec<Stream>,
        processors: usize,
    ) -> Option<Vec<Stream>> {
        let waits = |stream: &Stream| model.segments[stream.segment].waits;
        // Where they wait for less than they work, waiting counts as work.
        let waits_longer = streams.iter().any(|stream| waits(stream) > stream.cost - waits(stream));
        if processors == 1 && !waits_longer {
            return Some(streams);
        }
        let with_backlog = |stream: &Stream| {
            let operations = model.segments[stream.segment].operations.iter();
            let responses =
                operations.map(|operation| self.known[*operation].as_ref().ok().map(Worst::response));
            let longest = responses.collect::<Option<Vec<i128>>>()?.into_iter().max()?;
            let releases = self.releases[stream.segment]?;
            let longest = u64::try_from(longest).ok()?;
            let unfinished = from_release(model, stream.segment, releases, longest);
            Some(stream.with_jitter(unfinished.saturating_add(releases.bunched)).without(waits(stream)))
        };
        let seen: Option<Vec<Stream>> = streams.iter().map(with_backlog).collect();
        if processors == 1 { seen.or(Some(streams)) } else { seen }
    }

    /// Releases what waits for other operations as late as these can complete. Marks the nodes for which that is news.
    fn delay_releases(&mut self, model: &Model, changed: &mut [bool]) {
        let mut sites = HashSet::new();
        for (index, segment) in model.segments.iter().enumerate() {
            if let (Entry::Triggered(triggered), Some(known)) = (&segment.entry, self.signals[index]) {
                let renewed = triggered.signals(|operation| self.completion(model, operation));
                let grown = renewed.map(|renewed| known.or_more(renewed));
                if grown != Some(known) {
                    self.signals[index] = grown;
                    sites.insert(model.nodes[model.operations[segment.operations[0]].node].site);
                }
            }
            let Some(known) = self.releases[index] else { continue };
            // Segments stand behind those they wait for, so that what is known of these is as new as can be.
            let completion = |operation: usize| self.completion(model, operation);
            let renewed = match &segment.entry {
                Entry::Release(_) => continue,
                Entry::After(after) => after.releases(segment.period, completion),
                Entry::Triggered(triggered) => triggered.releases(completion),
            };
            let grown = renewed.map(|renewed| Releases {
                earliest: renewed.earliest,
                latest: renewed.latest.max(known.latest),
                jitter: renewed.jitter.max(known.jitter),
                in_order: renewed.in_order && known.in_order,
                bunched: renewed.bunched.max(known.bunched),
                held: renewed.held.max(known.held),
                backlogged: renewed.backlogged || known.backlogged,
            });
            let limit = segment.period.saturating_mul(PERIODS).max(segment.deadline.saturating_mul(2));
            // What the file itself declares of arrivals may be bunched more.
            let limit = limit.saturating_add(segment.entry.first().bunched);
            let lateness = |grown: &Releases| grown.latest.max(grown.bunched);
            self.diverges |= grown.is_some_and(|grown| lateness(&grown) > limit);
            self.releases[index] = grown.filter(|grown| lateness(grown) <= limit);
            let counts = |releases: Releases| Releases { earliest: 0, ..releases };
            if self.releases[index].map(counts) != Some(counts(known)) {
                sites.insert(model.nodes[model.operations[segment.operations[0]].node].site);
            }
        }
        // All that share a node hear of it, by its timers if nothing else.
        for (place, changed) in model.nodes.iter().zip(changed) {
            *changed |= sites.contains(&place.site);
        }
    }

    /// What is known of an operation that others wait for.
    fn completion(&self, model: &Model, operation: usize) -> Option<Completion> {
        let segment = model.operations[operation].segment;
        let released = self.releases[segment]?;
        let latest = u64::try_from(self.known[operation].as_ref().ok()?.response()).ok()?;
        let response = from_release(model, segment, released, latest);
        Some(Completion {
            released,
            latest,
            response,
            in_order: completes_in_order(model, operation, released, latest),
        })
    }

    /// A bound on the time from the release of an operation to its completion, if it has one. If its task's arrivals are
    /// late by jitter, that of a first operation counts from the arrival.
    pub fn response_from_release(&self, model: &Model, operation: usize) -> Option<u64> {
        self.completion(model, operation).map(|known| known.response)
    }

    /// Why arrivals of a task wait without end before the operation, or nothing bounds how often it is released.
    fn backlog(&self, model: &Model, task: usize, operation: usize) -> Option<Obstacle> {
        let is_unbounded = |releases: Option<Releases>| releases.is_none_or(|releases| releases.backlogged);
        if !is_unbounded(self.releases_of(operation)) {
            return None;
        }
        // It may go on with a segment that another task begins.
        let begins = model.segments[self.segment_of[operation]].task;
        let firsts = model.segments.iter().filter(|segment| segment.task == task || segment.task == begins);
        let of_entry = |segment: &Segment| match &segment.entry {
            Entry::Triggered(triggered) if is_unbounded(self.releases_of(segment.operations[0])) => {
                Some(triggered.obstacle())
            }
            // What the first guard only counts, one behind it may hold.
            Entry::Triggered(triggered) => {
                Some(triggered.obstacle()).filter(|obstacle| *obstacle == Obstacle::Backlog)
            }
            _ => None,
        };
        firsts.filter_map(of_entry).next()
    }

    /// Whether an arrival of the operation's task may release nothing: dropped by the guard of its trigger, or left out by its overrun policy
    /// as the one before is unfinished.
    pub fn loses(&self, model: &Model, operation: usize) -> bool {
        let segment = &model.segments[self.segment_of[operation]];
        let Entry::Triggered(triggered) = &segment.entry else { return false };
        if model.operations[operation].task != segment.task {
            // What is left out at the beginning of the segment never arrives at the tasks that go on with it.
            return false;
        }
        let completion = |operation: usize| self.completion(model, operation);
        let within_period = |response: i128| {
            let bunched = self.releases_of(operation).map_or(u64::MAX, |releases| releases.bunched);
            response + i128::from(bunched) <= i128::from(segment.period)
        };
        // No more than one waits at a guard where they are merged.
        triggered.may_drop(completion)
            || segment.sheds && !self.response(operation).is_some_and(within_period)
    }

    /// What comes to a task that is triggered, before its guard if it has one; none if nothing bounds it.
    pub fn signals_of(&self, model: &Model, triggered: &Triggered) -> Option<Curve> {
        triggered.signals(|operation| self.completion(model, operation))
    }

    /// Whether the jobs of an operation are sure to complete in the order of their arrivals.
    pub fn completes_in_order(&self, model: &Model, operation: usize) -> bool {
        self.completion(model, operation).is_some_and(|known| known.in_order)
    }

    /// By how much arrivals of a segment can be closer together than its periods; nothing where that has no bound.
    pub fn bunched(&self, segment: &Segment) -> u64 {
        let index = self.segment_of[segment.operations[0]];
        self.releases[index].map_or(0, |releases| releases.bunched)
    }

    /// What is known of the releases of an operation's segment.
    pub fn releases_of(&self, operation: usize) -> Option<Releases> {
        self.releases[self.segment_of[operation]]
    }

    /// The response time of an operation, if it has a bound: counted from the release of its task where the task's guard holds arrivals back
    /// without end.
    pub fn response(&self, operation: usize) -> Option<i128> {
        self.known[operation].as_ref().ok().map(Worst::response)
    }

    /// The same, counted from the arrival.
    pub fn response_from_arrival(&self, operation: usize) -> Option<i128> {
        let is_backlogged = self.releases_of(operation).is_some_and(|releases| releases.backlogged);
        self.response(operation).filter(|_| !is_backlogged)
    }

    /// The worst window of an operation, if it has a bound.
    pub fn worst(&self, operation: usize) -> Option<&Worst> {
        self.known[operation].as_ref().ok()
    }

    /// The results in public terms.
    pub fn bounds(&self, system: &System, model: &Model) -> (Vec<OperationBound>, Vec<TaskBound>) {
        let operations: Vec<OperationBound> = system
            .operations()
            .iter()
            .map(|operation| {
                let numbers = &model.operations[operation.id.index()];
                let known = self.known[operation.id.index()].as_ref().map_err(|obstacle| *obstacle);
                let known = match self.backlog(model, operation.task, operation.id.index()) {
                    Some(backlog) if matches!(known, Ok(_) | Err(Obstacle::Waits)) => Err(backlog),
                    _ => known,
                };
                let known = known.map_err(|obstacle| match obstacle {
                    Obstacle::Waits if self.diverges => Obstacle::Diverges,
                    other => other,
                });
                OperationBound {
                    operation: operation.id,
                    node: system.subtask(operation.id).node,
                    level: model.nodes[numbers.node].lanes[numbers.lane].level,
                    response: known.and_then(|worst| parts::response(model, operation.id, worst)),
                }
            })
            .collect();
        let tasks = (0..system.tasks.len())
            .map(|task| {
                let own =
                    system.operations_of(task).iter().map(|operation| &operations[operation.id.index()]);
                let bound = |operation: &&OperationBound| match &operation.response {
                    Ok(response) => (response.bound, false),
                    Err(obstacle) => (Duration::MAX, *obstacle != Obstacle::Waits),
                };
                // The first of the latest; of those without a bound, the first with a reason of its own.
                let last = own.rev().max_by_key(bound).expect("a task has operations");
                let response =
                    last.response.as_ref().map(|response| response.bound).map_err(|obstacle| *obstacle);
                TaskBound { task, last: last.operation, response }
            })
            .collect();
        (operations, tasks)
    }
}

/// Whether instances of an operation, which take up to `response` from their arrivals on, complete in the order of these.
///
/// They do if there are never two at once; and if they are released in order, in lanes that keep the order: FIFO lanes, and lanes by
/// constant keys, where the earlier instance has the smaller one unless it is late and goes last.
fn completes_in_order(model: &Model, operation: usize, released: Releases, response: u64) -> bool {
    let numbers = &model.operations[operation];
    let segment = &model.segments[numbers.segment];
    let lane = &model.nodes[numbers.node].lanes[numbers.lane];
    let is_never_late = || response <= segment.deadline.saturating_sub(segment.declared.1);
    let keeps_order = lane.discipline == Discipline::Fifo
        || !lane.key_moves() && (!lane.separates_late() || is_never_late());
    response.saturating_add(released.bunched) <= segment.period.saturating_add(released.earliest)
        || released.in_order && keeps_order
}

/// What is left of a response time, counted from the arrival, from the release on.
///
/// Jobs in a FIFO lane take no longer if they are released earlier, and where time plans releases none is earlier than planned.
/// Behind a guard in a lane that orders by urgency, a job may be released at once and still wait for as long.
fn from_release(model: &Model, segment: usize, releases: Releases, response: u64) -> u64 {
    let numbers = &model.operations[model.segments[segment].operations[0]];
    let is_guarded = match &model.segments[segment].entry {
        Entry::After(after) => matches!(after.pacing, Pacing::Guarded(_)),
        Entry::Triggered(_) => releases.held > 0,
        Entry::Release(_) => false,
    };
    let by_arrival = model.nodes[numbers.node].lanes[numbers.lane].discipline == Discipline::Fifo;
    if is_guarded && !by_arrival {
        return response;
    }
    response.saturating_sub(releases.latest.saturating_sub(releases.jitter.saturating_sub(releases.bunched)))
}
