//! How much of the processors a system takes at most: what a kernel that withholds a part of each period goes by.
//!
//! In a window of length W a task is executed whose instance was released before its end and not done before its beginning. With a response
//! bound R these are at most ceil((W + R) / T) instances. Below a maximum of x in y nobody takes more than x for each y that the
//! window touches.

use super::model::InterruptKind;
use super::place::{Below, Edge};
use super::{SystemBounds, holistic, model};
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
        let taking = Taking { bounds: self, system, window: window.as_nanos().unsigned_abs() };
        let mut endless = BTreeSet::new();
        let roots = self.edges.iter().filter(|edge| edge.node == node && edge.parent.is_none());
        let below: Vec<Option<u128>> = roots.map(|edge| taking.edge(edge, &mut endless)).collect();
        let all = below.into_iter().collect::<Option<Vec<u128>>>();
        let most = all.and_then(|all| i64::try_from(all.iter().sum::<u128>() + taking.timers(node)?).ok());
        Taken { most: most.map(Duration::from_nanos), endless: endless.into_iter().collect() }
    }
}

struct Taking<'a> {
    bounds: &'a SystemBounds,
    system: &'a System,
    window: u64,
}

impl Taking<'_> {
    /// What is taken by way of an edge.
    fn edge(&self, edge: &Edge, endless: &mut BTreeSet<String>) -> Option<u128> {
        let ceiling =
            edge.ceiling.map(|(amount, period)| (u128::from(self.window / period) + 2) * u128::from(amount));
        let mut below = BTreeSet::new();
        let wanted = match &edge.below {
            Below::Place(place) => self.place(&self.bounds.model.nodes[*place], &mut below),
            Below::Scheduler(name) => {
                let children = self.bounds.edges.iter().filter(|other| other.parent.as_deref() == Some(name));
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
    fn place(&self, place: &model::Node, endless: &mut BTreeSet<String>) -> Option<u128> {
        let model = &self.bounds.model;
        let mut all = Some(0_u128);
        for segment in place.lanes.iter().flat_map(|lane| &lane.segments) {
            let segment = &model.segments[*segment];
            let responses =
                segment.operations.iter().map(|operation| self.bounds.solution.response(*operation));
            let longest = responses.collect::<Option<Vec<i128>>>().and_then(|all| all.into_iter().max());
            let taken = longest.map(|longest| {
                let reach = u128::from(self.window) + longest.unsigned_abs();
                reach.div_ceil(u128::from(segment.period)) * u128::from(segment.cost)
            });
            if taken.is_none() {
                endless.insert(self.system.tasks[segment.task].name.clone());
            }
            all = all.zip(taken).map(|(all, taken)| all + taken);
        }
        let returns = self.interrupts(place, InterruptKind::Return)?;
        all.map(|all| all + returns)
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
        let place = self.bounds.edges.iter().find_map(|edge| match edge.below {
            Below::Place(place) if edge.node == node => Some(&self.bounds.model.nodes[place]),
            _ => None,
        });
        place.map_or(Some(0), |place| self.interrupts(place, InterruptKind::Timer))
    }
}
