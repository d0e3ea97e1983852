//! Names for the numbers of a verdict.

use super::part::{PartCheck, PartKind, longest_wait, worst_case_load};
use std::collections::HashMap;
use talea_analysis::system::{Cause, Obstacle, OperationBound, Part, SystemBounds};
use talea_model::{OperationId, Overhead, System};
use talea_policy::strategy::{Lane, Plan};
use talea_time::Duration;

/// Names for numbers.
pub(super) struct Names<'a> {
    pub system: &'a System,
    pub plans: &'a [Plan],
    /// By task, see [`SystemBounds::with_heirs`].
    pub with_heirs: Vec<bool>,
}

impl Names<'_> {
    /// Whether the system is small enough to say of every bound what it is made of.
    pub fn itemised(&self) -> bool {
        self.system.operations().len() <= super::ITEMISED
    }

    pub fn operation(&self, id: OperationId) -> &str {
        &self.system.operations()[id.index()].name
    }

    pub fn task(&self, task: usize) -> &str {
        &self.system.tasks[task].name
    }

    /// A task, with those that count as one job with it.
    fn with_heirs(&self, task: usize) -> String {
        let name = self.task(task);
        if self.with_heirs[task] { format!("{name} and what inherits from it") } else { name.into() }
    }

    pub fn lane(&self, node: usize, level: usize) -> &str {
        &self.plans[node].lanes[level].label
    }

    /// The parts of `bound`'s window for the report: the largest by themselves, the others together.
    pub fn parts(&self, bound: &OperationBound, mut parts: Vec<Part>) -> Vec<PartCheck> {
        const SHOWN: usize = 12;
        largest_first(&mut parts, SHOWN);
        let mut shown: Vec<PartCheck> = parts.iter().take(SHOWN).map(|part| self.part(bound, part)).collect();
        for part in parts.iter().skip(SHOWN) {
            let kind = kind(part.cause);
            let cause = format!("others: {}", kind.in_words());
            match shown[SHOWN..].iter_mut().find(|shown| shown.kind == kind) {
                Some(shown) => {
                    shown.jobs += part.jobs;
                    shown.time_ns = shown.time_ns.saturating_add(part.time.as_nanos());
                }
                None => shown.push(PartCheck { kind, cause, jobs: part.jobs, time_ns: part.time.as_nanos() }),
            }
        }
        shown
    }

    fn part(&self, bound: &OperationBound, part: &Part) -> PartCheck {
        PartCheck {
            kind: kind(part.cause),
            cause: self.cause(bound, part.cause),
            jobs: part.jobs,
            time_ns: part.time.as_nanos(),
        }
    }

    /// What a part of `bound`'s window is, in words.
    pub fn cause(&self, bound: &OperationBound, cause: Cause) -> String {
        let own = self.system.operations()[bound.operation.index()].task;
        match cause {
            Cause::Peer(task) | Cause::Blocking(task) if task == own => "its other subtasks here".into(),
            Cause::Own => "itself".into(),
            Cause::Instance if self.with_heirs[own] => "others that go back to the same arrival".into(),
            Cause::Instance => "the rest of its instance".into(),
            Cause::Earlier if self.with_heirs[own] => "earlier arrivals".into(),
            Cause::Earlier => "its earlier instances".into(),
            Cause::Blocking(task) => format!("{}, already started", self.task(task)),
            Cause::Peer(task) => format!("{} in the same lane", self.with_heirs(task)),
            Cause::Higher { level, task } => {
                format!("{} in lane {}", self.with_heirs(task), self.lane(bound.node, level))
            }
            Cause::HigherLanes => "the lanes above".into(),
            Cause::Interrupts => "timers".into(),
            Cause::Returns => "switches back from others in the hierarchy".into(),
            Cause::Withheld => "time that is not sure to be received".into(),
            Cause::Rest => "room that the method leaves".into(),
        }
    }
}

/// Why there is no bound, as a clause.
pub(super) fn obstacle(
    names: &Names<'_>,
    bounds: &SystemBounds,
    bound: &OperationBound,
    obstacle: Obstacle,
) -> String {
    match obstacle {
        Obstacle::Overload => overload(names, bounds, bound),
        Obstacle::Starved => {
            "a lane above it can take all that they receive, so that nothing is sure to be left".into()
        }
        other => other.to_string(),
    }
}

/// How much a lane and whatever holds it up need, and of what.
fn overload(names: &Names<'_>, bounds: &SystemBounds, bound: &OperationBound) -> String {
    let lanes = &names.plans[bound.node].lanes;
    let label = names.lane(bound.node, bound.level);
    let load = |lane: &Lane| lane.members.iter().map(|id| worst_case_load(names.system, *id)).sum::<f64>();
    let own = load(&lanes[bound.level]);
    let is_beside = |lane: &&Lane| lane.under == lanes[bound.level].under;
    let above = lanes[..bound.level].iter().filter(is_beside).map(load);
    // On several processors a lane has one to itself, but for what holds it up while all of them run higher ones.
    let (whose, needed) = match names.system.nodes[bound.node].cpus.len() {
        processors if lanes[bound.level].under.is_none() && processors > 1 => {
            if bound.level < processors {
                (format!("lane {label} alone"), own)
            } else {
                let held_up = above.map(|load| load.min(1.0)).sum::<f64>() / processors as f64;
                (format!("lane {label} and those above it, in {processors} equal parts,"), own + held_up)
            }
        }
        _ => (format!("lane {label} and those above it"), own + above.sum::<f64>()),
    };
    let share = bounds.supply(bound.operation).map_or(1.0, |supply| supply.share());
    let received = if share < 1.0 { format!(", and receive {:.1} %", share * 100.0) } else { String::new() };
    let wait = |lane: &Lane| lane.members.iter().map(|id| longest_wait(names.system, *id)).sum::<f64>();
    // Waiting counts as work in lanes above whose tasks wait for no longer than they work.
    let counts = |lane: &&Lane| {
        lane.members.iter().all(|id| longest_wait(names.system, *id) <= worst_case_load(names.system, *id))
    };
    let above = lanes[..bound.level].iter().filter(is_beside).filter(counts);
    let waits = wait(&lanes[bound.level]) + above.map(wait).sum::<f64>();
    let more = match needed <= share {
        true if needed + waits > share => {
            "; with the time in which jobs wait for room in inputs (full = \"block\") that is too much"
        }
        true => more_than_needed(names.system),
        false => "",
    };
    format!("{whose} need {:.1} % of a processor in the worst case{received}{more}", needed * 100.0)
}

/// Why a part of the processor that is no smaller than what is needed of it is too small all the same.
pub(super) fn more_than_needed(system: &System) -> &'static str {
    if system.overhead == Overhead::default() {
        "; that is no more than is needed, and a bound takes a little more, since all times are whole nanoseconds"
    } else {
        "; with the costs in [overhead] more is needed than that"
    }
}

/// What fills the window of an operation, with one part for each cause: a task can be in a lane with several segments.
pub(super) fn causes(bounds: &SystemBounds, operation: OperationId) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::new();
    let mut places: HashMap<Cause, usize> = HashMap::new();
    for part in bounds.parts(operation) {
        let place = *places.entry(part.cause).or_insert(merged.len());
        match merged.get_mut(place) {
            Some(known) => {
                known.jobs += part.jobs;
                known.time = known.time.checked_add(part.time).unwrap_or(Duration::MAX);
            }
            None => merged.push(part),
        }
    }
    merged
}

/// Sorts the `count` largest parts to the front. Systems can have as many parts as tasks.
pub(super) fn largest_first(parts: &mut [Part], count: usize) {
    let size = |part: &Part| std::cmp::Reverse(part.time);
    if count < parts.len() {
        parts.select_nth_unstable_by_key(count, size);
    }
    let front = parts.len().min(count);
    parts[..front].sort_by_key(size);
}

fn kind(cause: Cause) -> PartKind {
    match cause {
        Cause::Own => PartKind::Own,
        Cause::Instance | Cause::Earlier => PartKind::OwnOther,
        Cause::Blocking(_) => PartKind::Started,
        Cause::Peer(_) => PartKind::SameLane,
        Cause::Higher { .. } | Cause::HigherLanes => PartKind::LaneAbove,
        Cause::Interrupts | Cause::Returns => PartKind::Interrupts,
        Cause::Withheld => PartKind::Withheld,
        Cause::Rest => PartKind::Method,
    }
}
