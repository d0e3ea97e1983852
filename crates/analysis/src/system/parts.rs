//! What fills a window: the bound explained.

use super::lane::Worst;
use super::model::{Entry, Model};
use super::stream::Stream;
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
pub(super) fn response(
    model: &Model,
    jitters: &[Option<u64>],
    operation: OperationId,
    worst: &Worst,
) -> Result<Response, Obstacle> {
    let numbers = &model.operations[operation.index()];
    let mut parts = Parts { parts: Vec::new(), total: 0 };
    let node = &model.nodes[numbers.node];
    let lane = &node.lanes[numbers.lane];
    parts.add(Cause::Own, 1, numbers.cost);
    parts.add(Cause::Instance, 1, numbers.beside);
    if let Some((segment, rest)) = worst.blocking {
        parts.add(Cause::Blocking(model.segments[segment].task), 1, rest);
    }
    for (segment, count) in lane.segments.iter().zip(&worst.counts) {
        let task = model.segments[*segment].task;
        let cause = if *segment == numbers.segment { Cause::Earlier } else { Cause::Peer(task) };
        parts.add(cause, *count, count.saturating_mul(model.segments[*segment].cost));
    }
    let end = worst.completion.saturating_sub(1);
    let through = |segment: usize, cost: u64| -> u64 {
        let jitter = jitters[segment].unwrap_or(0);
        Stream::new(segment, model.segments[segment].period, jitter, cost).count_through(end)
    };
    for interrupt in &node.interrupts {
        let jobs = through(interrupt.segment, interrupt.cost);
        parts.add(Cause::Interrupts, jobs, jobs.saturating_mul(interrupt.cost));
    }
    if node.processors == 1 {
        for (level, above) in node.lanes[..numbers.lane].iter().enumerate() {
            for segment in &above.segments {
                let cost = model.segments[*segment].cost;
                let jobs = through(*segment, cost);
                let cause = Cause::Higher { level, task: model.segments[*segment].task };
                parts.add(cause, jobs, jobs.saturating_mul(cost));
            }
        }
    }
    let rest = worst.completion.checked_sub(parts.total).expect("a window holds its parts");
    parts.add(if node.processors == 1 { Cause::Rest } else { Cause::HigherLanes }, 0, rest);
    let duration = |ns: i128| i64::try_from(ns).map(Duration::from_nanos).map_err(|_| Obstacle::Overflow);
    Ok(Response {
        bound: duration(worst.response())?,
        method: worst.method,
        exactness: exactness(model, operation, worst),
        parts: parts.parts,
        window: duration(i128::from(worst.completion))?,
        arrival: duration(worst.arrival)?,
    })
}

/// Response-time analysis is exact for one processor, independent releases and free phases; a second switch charged to
/// every job, an interrupt and a release by another node are bounds.
fn exactness(model: &Model, operation: OperationId, worst: &Worst) -> Exactness {
    let numbers = &model.operations[operation.index()];
    let node = &model.nodes[numbers.node];
    let independent = |segment: &usize| matches!(model.segments[*segment].entry, Entry::Release(_));
    let exact = worst.method == Method::ResponseTime
        && node.processors == 1
        && node.interrupts.is_empty()
        && !model.switches_cost
        && node.lanes[..=numbers.lane].iter().flat_map(|lane| &lane.segments).all(independent);
    if exact { Exactness::Exact } else { Exactness::Bound }
}

struct Parts {
    parts: Vec<Part>,
    total: u64,
}

impl Parts {
    fn add(&mut self, cause: Cause, jobs: u64, time_ns: u64) {
        if time_ns == 0 {
            return;
        }
        self.total = self.total.saturating_add(time_ns);
        let time = Duration::from_nanos(i64::try_from(time_ns).unwrap_or(i64::MAX));
        match self.parts.iter_mut().find(|part| part.cause == cause) {
            Some(part) => {
                part.jobs += jobs;
                part.time = part.time.checked_add(time).unwrap_or(Duration::MAX);
            }
            None => self.parts.push(Part { cause, jobs, time }),
        }
    }
}
