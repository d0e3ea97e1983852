//! How much of the processors a system takes at most: what a kernel that withholds a part of each period goes by.
//!
//! In a window of length W a task is executed whose instance was released before its end and not done before its beginning. With a response
//! bound R these are at most ceil((W + R) / T) instances. On one processor the first of them takes most if all its C lie in the window, at its
//! very end, and the others come as early as they can: with N = floor((W + R - C) / T), N C + min(C, W + R - C - N T) (Bertogna, Cirinei and
//! Lipari 2009, who count the work of a task in a window so).
//!
//! Below a maximum of x in y nobody takes more than x for each y that the window touches. Nor more than x at its beginning, where a period
//! ends, x at its end, where one begins, and x / y of the time between: periods that begin anew on waking, as those of reservations do, are
//! shorter, but no more than x / y of their length has been taken in them then. On one processor these two amounts take 2 x of the window.
//! And nobody takes more than there is: the node's processors for the length of the window.
//!
//! A thread without a response bound of its own may have one all the same: if every scheduler on some way down to it keeps the processor as long
//! as a child wants it, then the processor is never idle while the thread waits. So it waits for no longer than all the work of the node can last:
//! L, the least window that holds what all on the node take in it.

use super::model::InterruptKind;
use super::place::{Below, Edge};
use super::{Obstacle, SystemBounds, holistic, model};
use std::collections::BTreeSet;
use talea_model::System;
use talea_time::Duration;

/// What the threads of a node take of its processors at most, in any window of a length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// None if it has no bound.
    pub most: Option<Duration>,
    /// The tasks and threads that have none, or are never done: why there is no bound.
    pub endless: Vec<String>,
}

impl SystemBounds {
    /// What is taken of the processors of `node` in any window of this length, costs included, as long as responses keep to their bounds.
    pub fn taken(&self, system: &System, node: usize, window: Duration) -> Taken {
        let system = &system.with_threads_as_tasks();
        let mut endless = BTreeSet::new();
        let window = window.as_nanos().unsigned_abs();
        let backlog = self.longest_backlog(system, node);
        let taking = Taking { bounds: self, system, window, backlog };
        let there_is = u128::from(window) * system.nodes[node].cpus.len() as u128;
        let most = taking.all(node, &mut endless).and_then(|all| i64::try_from(all.min(there_is)).ok());
        // Where some never end, it is they.
        let never_end = endless.iter().any(|(ends, _)| !ends);
        let named = endless.into_iter().filter(|(ends, _)| !(never_end && *ends)).map(|(_, name)| name);
        Taken { most: most.map(Duration::from_nanos), endless: named.collect() }
    }

    /// How long the work of a node can last while somebody waits for whom the processor is never idle.
    pub(super) fn longest_backlog(&self, system: &System, node: usize) -> Option<u64> {
        /// Longer ones are of no use, and a load just below a whole processor makes them as long as one likes.
        const LONGEST: u64 = 100_000_000_000;
        /// Each round looks at every edge.
        const LOOKS: usize = 5_000_000;
        let rounds = (LOOKS / self.edges.all.len().max(1)).clamp(10, 10_000);
        let mut window = 1;
        for _ in 0..rounds {
            // What comes later in the window is counted by its release.
            let taking = Taking { bounds: self, system, window, backlog: Some(0) };
            let needed = u64::try_from(taking.all(node, &mut BTreeSet::new())?).ok()?;
            match needed {
                needed if needed <= window => return Some(window),
                needed if needed > LONGEST => return None,
                needed => window = needed,
            }
        }
        None
    }
}

struct Taking<'a> {
    bounds: &'a SystemBounds,
    system: &'a System,
    window: u64,
    /// How long those wait at most who have no other bound and for whom the processor is never idle; none if that is not known.
    backlog: Option<u64>,
}

impl Taking<'_> {
    /// What all on a node take.
    fn all(&self, node: usize, endless: &mut BTreeSet<(bool, String)>) -> Option<u128> {
        let roots = self.bounds.edges.all.iter().filter(|edge| edge.node == node && edge.parent.is_none());
        let below: Vec<Option<u128>> = roots.map(|edge| self.edge(edge, endless)).collect();
        let all = below.into_iter().collect::<Option<Vec<u128>>>()?;
        Some(all.iter().sum::<u128>() + self.timers(node)?)
    }

    /// What is taken by way of an edge.
    fn edge(&self, edge: &Edge, endless: &mut BTreeSet<(bool, String)>) -> Option<u128> {
        let processors = self.system.nodes[edge.node].cpus.len();
        let ceiling = edge.ceiling.map(|(amount, period)| at_most(amount, period, self.window, processors));
        let mut below = BTreeSet::new();
        let wanted = match &edge.below {
            Below::Place(place) => self.place(&self.bounds.model.nodes[*place], &mut below),
            Below::Scheduler(name) => {
                let children = self.bounds.edges.below(name).filter(|child| self.bounds.edges.counts(child));
                let all: Vec<Option<u128>> = children.map(|child| self.edge(child, &mut below)).collect();
                all.into_iter().collect::<Option<Vec<u128>>>().map(|all| all.iter().sum())
            }
        };
        match (wanted, ceiling) {
            (Some(wanted), Some(ceiling)) => Some(wanted.min(ceiling)),
            (None, Some(ceiling)) => Some(ceiling),
            (wanted, None) => {
                endless.extend(below);
                wanted
            }
        }
    }

    /// What the lanes or the thread of a place want.
    fn place(&self, place: &model::Node, endless: &mut BTreeSet<(bool, String)>) -> Option<u128> {
        let model = &self.bounds.model;
        let mut all = Some(0_u128);
        for segment in place.lanes.iter().flat_map(|lane| &lane.segments) {
            let segment = &model.segments[*segment];
            let responses =
                segment.operations.iter().map(|operation| self.bounds.solution.response(*operation));
            let longest = responses.collect::<Option<Vec<i128>>>().and_then(|all| all.into_iter().max());
            let longest = longest.or(self.backlog.filter(|_| place.may_lag).map(i128::from));
            let bunched = u128::from(self.bounds.solution.bunched(segment));
            let reach = longest.map(|longest| longest.unsigned_abs() + bunched);
            let taken = reach.map(|reach| self.of_segment(segment, reach, place.processors));
            if taken.is_none() {
                let never_ends = matches!(place.supply, Err(Obstacle::Endless | Obstacle::Unknown));
                endless.insert((!never_ends, self.system.tasks[segment.task].name.clone()));
            }
            all = all.zip(taken).map(|(all, taken)| all + taken);
        }
        let returns = self.interrupts(place, InterruptKind::Return)?;
        all.map(|all| all + returns)
    }

    /// What a segment takes, each of whose arrivals is done within `longest`.
    fn of_segment(&self, segment: &model::Segment, longest: u128, processors: usize) -> u128 {
        let (period, cost) = (u128::from(segment.period), u128::from(segment.cost - segment.waits));
        let reach = u128::from(self.window) + longest;
        if processors > 1 || longest < cost {
            return reach.div_ceil(period) * cost;
        }
        let reach = reach - cost;
        reach / period * cost + (reach % period).min(cost)
    }

    /// What interrupts a place takes.
    fn interrupts(&self, place: &model::Node, kind: InterruptKind) -> Option<u128> {
        let solution: &holistic::Solution = &self.bounds.solution;
        let of_kind = place.interrupts.iter().filter(|interrupt| interrupt.kind == kind);
        let through =
            |interrupt| Some(solution.interrupting(&self.bounds.model, interrupt)?.through(self.window));
        of_kind.map(through).sum()
    }

    /// What the timers of a node take, whoever pays for them: as each of its places has them, counted once.
    fn timers(&self, node: usize) -> Option<u128> {
        let place = self.bounds.edges.all.iter().find_map(|edge| match edge.below {
            Below::Place(place) if edge.node == node => Some(&self.bounds.model.nodes[place]),
            _ => None,
        });
        place.map_or(Some(0), |place| self.interrupts(place, InterruptKind::Timer))
    }
}

/// What is taken at most in a window below a maximum of `amount` in `period`.
fn at_most(amount: u64, period: u64, window: u64, processors: usize) -> u128 {
    let (amount, period, window) = (u128::from(amount), u128::from(period), u128::from(window));
    let between = if processors == 1 { window.saturating_sub(2 * amount) } else { window };
    let in_whole_periods = (window / period + 2) * amount;
    in_whole_periods.min(2 * amount + (between * amount).div_ceil(period))
}
