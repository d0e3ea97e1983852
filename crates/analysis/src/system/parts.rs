//! What fills a window: the bound explained.

use super::holistic::Solution;
use super::lane::{self, Worst};
use super::model::{InterruptKind, Model};
use super::release::Entry;
use super::supply::Supply;
use super::{Exactness, Method, Obstacle, Response};
use talea_model::OperationId;
use talea_time::Duration;

/// What a part of a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The operation itself.
    Own,
    /// Other operations of the same instance that may go before it.
    Instance,
    /// Earlier instances of its task.
    Earlier,
    /// A job of this task that had just started and keeps the lane to its end.
    Blocking(usize),
    /// Instances of this task in the same lane that go before it.
    Peer(usize),
    /// Instances of this task in a higher lane of this level.
    Higher {
        /// The level.
        level: usize,
        /// The task.
        task: usize,
    },
    /// All higher lanes together, on several processors: the part of their work that can hold up this lane.
    HigherLanes,
    /// Room that the method leaves because it does not know better.
    Rest,
    /// Timer expiries, and the choices of lanes that are made anew at every event.
    Interrupts,
    /// Switches back to it from others in its hierarchy.
    Returns,
    /// What is not sure to be received in the meantime: others in the hierarchy, or the kernel, have the processor.
    Withheld,
}

/// A part of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub cause: Cause,
    /// How many jobs it is of; 0 where they cannot be told apart.
    pub jobs: u64,
    /// Their processor time, costs included.
    pub time: Duration,
}

/// The public form of a worst window.
pub(super) fn response(model: &Model, operation: OperationId, worst: &Worst) -> Result<Response, Obstacle> {
    let duration = |ns: i128| i64::try_from(ns).map(Duration::from_nanos).map_err(|_| Obstacle::Overflow);
    Ok(Response {
        bound: duration(worst.response())?,
        method: worst.method,
        exactness: exactness(model, operation, worst),
        window: duration(i128::from(worst.completion))?,
        arrival: duration(worst.arrival)?,
    })
}

/// What fills the worst window of an operation.
pub(super) fn parts(model: &Model, solution: &Solution, operation: OperationId) -> Vec<Part> {
    let Some(worst) = solution.worst(operation.index()) else { return Vec::new() };
    let numbers = &model.operations[operation.index()];
    let node = &model.nodes[numbers.node];
    let lane = &node.lanes[numbers.lane];
    let mut parts = Parts::default();
    parts.add(Cause::Own, 1, numbers.cost);
    if worst.method == Method::Demand {
        parts.add(Cause::Rest, 0, worst.completion.saturating_sub(numbers.cost));
        return parts.parts;
    }
    parts.add(Cause::Instance, 1, numbers.beside);
    if let Some((segment, rest)) = worst.blocking {
        parts.add(Cause::Blocking(model.segments[segment].task), 1, rest);
    }
    let known = "a bound knows all releases";
    let streams = solution.streams(model, lane).expect(known);
    for (stream, count) in streams.iter().zip(lane::counts(model, lane, &streams, operation.index(), worst)) {
        let task = model.segments[stream.segment].task;
        let cause = if stream.segment == numbers.segment { Cause::Earlier } else { Cause::Peer(task) };
        parts.add(cause, count, count.saturating_mul(stream.cost));
    }
    let end = worst.completion - 1;
    for (kind, cause) in [(InterruptKind::Timer, Cause::Interrupts), (InterruptKind::Return, Cause::Returns)]
    {
        let of_kind = node.interrupts.iter().filter(|interrupt| interrupt.kind == kind);
        let counted = of_kind.map(|interrupt| {
            let jobs = solution.interrupting(model, interrupt).expect(known).count_through(end);
            (jobs, jobs.saturating_mul(interrupt.cost))
        });
        let (jobs, time) =
            counted.fold((0_u64, 0_u64), |all, next| (all.0 + next.0, all.1.saturating_add(next.1)));
        parts.add(cause, jobs, time);
    }
    if node.processors == 1 {
        for above in &node.lanes[..numbers.lane] {
            let streams = solution.streams(model, above).expect(known);
            for stream in solution.seen_from_below(model, streams, 1).expect(known) {
                let jobs = stream.count_through(end);
                let (level, task) = (above.level, model.segments[stream.segment].task);
                let cause = Cause::Higher { level, task };
                parts.add(cause, jobs, jobs.saturating_mul(stream.cost));
            }
        }
    }
    let rest = worst.completion.checked_sub(parts.total).expect("a window holds its parts");
    let cause = match (&node.supply, node.processors) {
        (Ok(Supply::Whole), 1) => Cause::Rest,
        (Ok(Supply::Whole), _) => Cause::HigherLanes,
        _ => Cause::Withheld,
    };
    parts.add(cause, 0, rest);
    parts.parts
}

/// Response-time analysis is exact for one processor, independent releases and free phases, as long as no instance is
/// lost; a second switch charged to every job, an interrupt, a release by another node and the order of an instance's
/// own subtasks are bounds.
fn exactness(model: &Model, operation: OperationId, worst: &Worst) -> Exactness {
    let numbers = &model.operations[operation.index()];
    let node = &model.nodes[numbers.node];
    let independent = |segment: &usize| {
        let segment = &model.segments[*segment];
        matches!(segment.entry, Entry::Release(_))
            && !segment.sheds
            && !segment.merges
            && !segment.has_followers
            && segment.waits == 0
    };
    let exact = worst.method == Method::ResponseTime
        && node.processors == 1
        && node.interrupts.is_empty()
        && node.supply == Ok(Supply::Whole)
        && !model.switches_cost
        && model.segments[numbers.segment].operations.len() == 1
        && node.lanes[..=numbers.lane].iter().flat_map(|lane| &lane.segments).all(independent);
    if exact { Exactness::Exact } else { Exactness::Bound }
}

#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    total: u64,
}

impl Parts {
    fn add(&mut self, cause: Cause, jobs: u64, time_ns: u64) {
        if time_ns > 0 {
            self.total = self.total.saturating_add(time_ns);
            let time = Duration::from_nanos(i64::try_from(time_ns).unwrap_or(i64::MAX));
            self.parts.push(Part { cause, jobs, time });
        }
    }
}
