//! How often the processor is taken away from a place in a hierarchy, as each time costs a switch back.
//!
//! A scheduler takes the processor from a child only when something happens: another child comes to want it, or a timer of its own
//! expires. So the events below the schedulers above a place, and these schedulers' timers, bound how often the place is
//! interrupted. Children of lower fixed priority than the one that leads to the place never interrupt it.
//!
//! Which timers a scheduler has, its declaration says ([`Timers`]). Of one that states nothing nothing is known here. It matters only
//! where a switch costs something.

use super::Obstacle;
use crate::recurrence::TIME_MAX;
use num_traits::ToPrimitive;
use std::collections::HashSet;
use talea_guarantee::exact::Span;
use talea_guarantee::hierarchy::Hierarchy;
use talea_guarantee::request::Request;
use talea_guarantee::scheduler::{Parameter, Timers};
use talea_model::{OperationId, Scheduler, SchedulerKind, Setting, System};
use talea_time::Work;

/// What may interrupt a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    /// Timers: at most `count` and one for each `period`, `events` at a time.
    Timer { period: u64, count: u64, events: u64 },
    /// Releases of this operation, which is a thread.
    Thread(OperationId),
    /// Releases of the tasks in the lanes of this scheduler, elsewhere in the hierarchy.
    Lanes(usize),
}

/// What may interrupt the lanes or the thread of this name on a node.
///
/// # Errors
/// [`Obstacle::Switches`] if it is not known how often a scheduler does, and a switch costs something.
pub(super) fn interruptions(
    system: &System,
    node: usize,
    hierarchy: &Hierarchy,
    name: &str,
) -> Result<Vec<Interruption>, Obstacle> {
    if system.overhead.switch == Work::ZERO {
        return Ok(Vec::new());
    }
    let mut neighbours = Neighbours { hierarchy, rivals: HashSet::new(), above: HashSet::new() };
    neighbours.climb(name);
    let mut found = Vec::new();
    let schedulers = system.schedulers.iter().enumerate();
    for (index, scheduler) in schedulers.filter(|(_, scheduler)| scheduler.node == node) {
        let concerns = neighbours.rivals.contains(scheduler.name.as_str())
            || neighbours.above.contains(scheduler.name.as_str());
        if concerns && scheduler.kind == SchedulerKind::LANES {
            found.push(Interruption::Lanes(index));
        } else if concerns {
            found.extend(timers(scheduler, hierarchy)?);
        }
    }
    for index in system.threads_on(node) {
        if neighbours.rivals.contains(system.threads[index].name.as_str()) {
            let operation = system.operation_of_thread(index).expect("threads are tasks here");
            found.push(Interruption::Thread(operation));
            if hierarchy.processors.get() > 1 {
                found.push(completions(system, operation)?);
            }
        }
    }
    Ok(found)
}

/// On several processors others complete beside the place, and what they leave may be given to it or taken from it.
fn completions(system: &System, operation: OperationId) -> Result<Interruption, Obstacle> {
    let shortest = super::model::least(&system.subtask(operation).exec).as_nanos().unsigned_abs();
    match shortest {
        0 => Err(Obstacle::Switches("a thread of bursts that may take no time")),
        period => Ok(Interruption::Timer { period, count: 1, events: 2 }),
    }
}

/// Who can take the processor from a place.
struct Neighbours<'a> {
    hierarchy: &'a Hierarchy,
    /// Schedulers and threads beside it.
    rivals: HashSet<&'a str>,
    /// Schedulers above it.
    above: HashSet<&'a str>,
}

impl<'a> Neighbours<'a> {
    /// Everything above `name`, and what hangs from that beside it.
    fn climb(&mut self, name: &str) {
        let hierarchy = self.hierarchy;
        for edge in hierarchy.edges.iter().filter(|edge| edge.child == name) {
            for sibling in hierarchy.edges.iter().filter(|other| other.parent == edge.parent) {
                let yields = match (&edge.request, &sibling.request) {
                    (Request::Priority(own), Request::Priority(other)) => other < own,
                    _ => false,
                };
                if sibling.child != name && !yields {
                    self.descend(&sibling.child);
                }
            }
            if self.above.insert(&edge.parent) {
                self.climb(&edge.parent);
            }
        }
    }

    fn descend(&mut self, name: &'a str) {
        if self.rivals.insert(name) {
            let hierarchy = self.hierarchy;
            hierarchy
                .edges
                .iter()
                .filter(|edge| edge.parent == name)
                .for_each(|edge| self.descend(&edge.child));
        }
    }
}

/// The timers of a scheduler.
fn timers(scheduler: &Scheduler, hierarchy: &Hierarchy) -> Result<Vec<Interruption>, Obstacle> {
    let kind = scheduler.kind;
    let children: Vec<&Request> = hierarchy
        .edges
        .iter()
        .filter(|edge| edge.parent == scheduler.name)
        .map(|edge| &edge.request)
        .collect();
    let reserved = || children.iter().filter_map(|request| reservation(request));
    let each = |period: u64| Interruption::Timer { period, count: 1, events: 2 };
    match kind.timers {
        Timers::None => Ok(Vec::new()),
        Timers::Budgets => {
            let mut timers: Vec<Interruption> = reserved().map(|(_, period)| each(period)).collect();
            timers.extend(quantum(scheduler, children.len()));
            Ok(timers)
        }
        Timers::BudgetsReceived => Ok(reserved().map(|(amount, _)| each(amount)).collect()),
        Timers::Plan => Ok(entries(scheduler).into_iter().collect()),
        Timers::Quanta => match quantum(scheduler, children.len()) {
            Some(timer) => Ok(vec![timer]),
            None => Err(Obstacle::Switches(kind.name())),
        },
        Timers::Unstated => Err(Obstacle::Switches(kind.name())),
    }
}

/// Quanta: of each child one may have begun.
fn quantum(scheduler: &Scheduler, children: usize) -> Option<Interruption> {
    let period = scheduler.quantum?.as_nanos().unsigned_abs();
    Some(Interruption::Timer { period, count: children as u64, events: 1 })
}

/// The entries of a plan: all of them in each cycle, or once.
fn entries(scheduler: &Scheduler) -> Option<Interruption> {
    let Some(Setting::Plan(plan)) = scheduler.settings.get(Parameter::PLAN.name) else { return None };
    let period = match scheduler.settings.get(Parameter::CYCLE.name) {
        Some(Setting::Time(cycle)) => cycle.as_nanos().unsigned_abs(),
        _ => TIME_MAX,
    };
    // An entry that is late is served whole, and those behind it at any time.
    Some(Interruption::Timer { period, count: 2, events: 2 * plan.entries().len() as u64 })
}

/// The amount and the period of a reservation in whole nanoseconds, rounded down.
fn reservation(request: &Request) -> Option<(u64, u64)> {
    let Request::Guarantee(guarantee) = request else { return None };
    let reservation = guarantee.as_reservation()?;
    let nanos =
        |span: &Span| span.nanos().floor().to_integer().to_u64().unwrap_or(TIME_MAX).clamp(1, TIME_MAX);
    Some((nanos(reservation.amount()), nanos(reservation.period())))
}
