//! Who shares what: the places of lanes and threads, each with what it receives and what interrupts it.
//!
//! The lanes of a node without a hierarchy have all its processors. In a hierarchy each scheduler of kind `lanes` is a place, and so is every
//! thread; each has what the derivation promises on its edge. From a place, everything else on the node is what comes to be
//! served and takes the processor away: that is in the promise. What it costs to come back is not.

use super::Obstacle;
use super::interruption::{Interruption, interruptions};
use super::supply::Supply;
use crate::effort::Effort;
use num_traits::ToPrimitive;
use std::collections::{HashMap, HashSet};
use talea_guarantee::derivation::{Derivation, NotDerived, derive};
use talea_guarantee::guarantee::{Guarantee, Hardness};
use talea_guarantee::hierarchy::Hierarchy;
use talea_guarantee::proviso::provisos;
use talea_guarantee::scheduler::{Conserving, Periods};
use talea_model::{LaneDispatch, Late, SchedulerKind, Scheduling, System, ThreadWork};
use talea_policy::discipline::Discipline;
use talea_policy::strategy::{Lane, LaneRules, Plan};

/// Where lanes or a thread stand.
#[derive(Debug)]
pub(super) struct LanePlacement {
    pub node: usize,
    /// Highest first.
    pub lanes: Vec<Lane>,
    pub processors: usize,
    /// What it receives at least, or why that cannot be said.
    pub supply: Result<Supply, Obstacle>,
    /// What takes the processor away from it.
    pub interruptions: Vec<Interruption>,
    /// The budget and the period of a constant-bandwidth server that serves it alone, and has a whole processor for all its servers.
    pub server: Option<(u64, u64)>,
    /// Whether it is a thread that ends its bursts and for which a whole processor is never idle, whatever else it is promised.
    pub may_lag: bool,
}

/// The places of all nodes of `system`, whose threads are tasks, and what keeps them from taking more. `given` is what each processor of a
/// node gives; a whole one where nothing is said.
pub(super) fn places(
    system: &System,
    plans: &[Plan],
    given: &[Guarantee],
    effort: &mut Effort,
) -> (Vec<LanePlacement>, Edges) {
    let (mut places, mut edges) = (Vec::new(), Vec::new());
    for (node, plan) in plans.iter().enumerate() {
        let given = given.get(node).unwrap_or(&Guarantee::All);
        let processors = system.nodes[node].cpus.len();
        match system.scheduling(node) {
            Scheduling::Lanes => {
                let (below, first) = (Below::Place(places.len()), edges.len());
                edges.push(Edge { node, parent: None, below, ceiling: None, first });
                places.push(LanePlacement {
                    node,
                    lanes: plan.lanes.clone(),
                    processors,
                    supply: Supply::of(given).and_then(|supply| supply.of_each(processors)),
                    interruptions: Vec::new(),
                    server: None,
                    may_lag: false,
                });
            }
            Scheduling::Hierarchy => {
                let promised = Promised::new(system, node, given);
                for (name, place) in promised.places(plan, effort) {
                    edges.extend(promised.edges_to(&name, Below::Place(places.len()), edges.len()));
                    places.push(place);
                }
                for (_, scheduler) in promised.inner() {
                    let below = Below::Scheduler(scheduler.name.clone());
                    edges.extend(promised.edges_to(&scheduler.name, below, edges.len()));
                }
            }
        }
    }
    (places, Edges::new(edges))
}

/// Who serves whom on all nodes.
#[derive(Debug)]
pub(super) struct Edges {
    pub all: Vec<Edge>,
    /// The edges below each scheduler, as positions.
    below: HashMap<String, Vec<usize>>,
    /// Schedulers that some way from the root leads to without a maximum.
    unlimited: HashSet<String>,
}

impl Edges {
    fn new(all: Vec<Edge>) -> Self {
        let mut below: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, edge) in all.iter().enumerate() {
            if let Some(parent) = &edge.parent {
                below.entry(parent.clone()).or_default().push(index);
            }
        }
        let scheduler = |edge: &Edge| match &edge.below {
            Below::Scheduler(name) if edge.ceiling.is_none() => Some(name.clone()),
            _ => None,
        };
        let mut waiting: Vec<String> =
            all.iter().filter(|edge| edge.parent.is_none()).filter_map(scheduler).collect();
        let mut unlimited: HashSet<String> = waiting.iter().cloned().collect();
        while let Some(name) = waiting.pop() {
            for next in below.get(&name).into_iter().flatten().filter_map(|edge| scheduler(&all[*edge])) {
                if unlimited.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
        Edges { all, below, unlimited }
    }

    /// The edges below a scheduler.
    pub fn below(&self, scheduler: &str) -> impl Iterator<Item = &Edge> {
        self.below.get(scheduler).into_iter().flatten().map(|edge| &self.all[*edge])
    }

    /// Whether what is taken by way of an edge is to be added up: of somebody whom several serve, all is taken by way of one
    /// that limits nothing, if there is one.
    pub fn counts(&self, edge: &Edge) -> bool {
        let is_unlimited = |other: &Edge| {
            other.ceiling.is_none()
                && other.parent.as_ref().is_none_or(|parent| self.unlimited.contains(parent))
        };
        let Below::Scheduler(_) = &edge.below else { return true };
        let mut into = self.all[edge.first..].iter().take_while(|other| other.below == edge.below);
        into.find(|other| is_unlimited(other)).is_none_or(|counted| std::ptr::eq(counted, edge))
    }
}

/// Whom somebody serves, and what he gives him at most.
#[derive(Debug)]
pub(super) struct Edge {
    pub node: usize,
    /// None at the root.
    pub parent: Option<String>,
    pub below: Below,
    /// A maximum: an amount in each period.
    pub ceiling: Option<(u64, u64)>,
    /// The position of the first edge into whoever is below it; the others follow.
    pub first: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Below {
    Place(usize),
    Scheduler(String),
}

/// What the hierarchy of a node promises.
struct Promised<'a> {
    system: &'a System,
    node: usize,
    hierarchy: Hierarchy,
    derivation: Derivation,
    /// The edges of which nobody knows whether what is derived is kept.
    doubted: HashSet<usize>,
    /// Threads for which the processor is never idle: some way down to each leads through schedulers alone that keep a whole processor as
    /// long as a child wants it.
    never_idle: HashSet<String>,
}

/// Whether somebody's work comes to an end.
type Work = Result<(), Obstacle>;

impl<'a> Promised<'a> {
    fn new(system: &'a System, node: usize, machine: &Guarantee) -> Self {
        let mut hierarchy = system.hierarchy(node).expect("the node has a hierarchy");
        hierarchy.given = machine.clone();
        let derivation = match derive(&hierarchy) {
            Ok(derivation) => derivation,
            // Below a scheduler that does not admit its children no edge is labelled.
            Err(NotDerived::Failed(failure)) => failure.derived,
            Err(malformed) => panic!("a validated system has sound hierarchies: {malformed}"),
        };
        let doubted = provisos(&hierarchy, &derivation).into_iter().map(|proviso| proviso.edge).collect();
        let never_idle =
            if *machine == Guarantee::All { never_idle(system, node, &hierarchy) } else { HashSet::new() };
        Promised { system, node, hierarchy, derivation, doubted, never_idle }
    }

    /// The schedulers that are no places.
    fn inner(&self) -> impl Iterator<Item = (usize, &'a talea_model::Scheduler)> {
        let node = self.node;
        let is_inner = move |scheduler: &talea_model::Scheduler| {
            scheduler.node == node && scheduler.kind != SchedulerKind::LANES
        };
        self.system.schedulers.iter().enumerate().filter(move |(_, scheduler)| is_inner(scheduler))
    }

    /// The edges into somebody, or that of the root.
    fn edges_to(&self, name: &str, below: Below, first: usize) -> Vec<Edge> {
        let same = |below: &Below| match below {
            Below::Place(place) => Below::Place(*place),
            Below::Scheduler(name) => Below::Scheduler(name.clone()),
        };
        let into: Vec<Edge> = self
            .hierarchy
            .edges
            .iter()
            .filter(|edge| edge.child == name)
            .map(|edge| {
                let derived = self.derivation.between(&edge.parent, name).map(|edge| edge.label.absolute());
                let ceiling = derived.as_ref().and_then(ceiling);
                Edge {
                    node: self.node,
                    parent: Some(edge.parent.clone()),
                    below: same(&below),
                    ceiling,
                    first,
                }
            })
            .collect();
        match into.is_empty() {
            true => vec![Edge { node: self.node, parent: None, below, ceiling: None, first }],
            false => into,
        }
    }

    fn places(&self, plan: &Plan, effort: &mut Effort) -> Vec<(String, LanePlacement)> {
        let (system, node) = (self.system, self.node);
        let mut places = Vec::new();
        for scheduler in system.lanes_on(node) {
            let name = &system.schedulers[scheduler].name;
            let lanes = plan.lanes.iter().filter(|lane| lane.under == Some(scheduler)).cloned().collect();
            places.push((name.clone(), self.place(name, lanes, Ok(()), effort)));
        }
        for index in system.threads_on(node) {
            let thread = &system.threads[index];
            let operation = system.operation_of_thread(index).expect("threads are tasks here");
            let lane = Lane {
                level: 0,
                label: thread.name.clone(),
                discipline: Discipline::Fifo,
                rules: LaneRules {
                    dispatch: LaneDispatch::NonPreemptive,
                    laxity: system.laxity,
                    late: Late::None,
                },
                tick: None,
                members: vec![operation],
                under: None,
            };
            let ends = match thread.work {
                ThreadWork::Bursts { .. } => Ok(()),
                ThreadWork::CpuBound => Err(Obstacle::Endless),
                ThreadWork::Command(_) | ThreadWork::Process { .. } | ThreadWork::Thread(_) => {
                    Err(Obstacle::Unknown)
                }
            };
            places.push((thread.name.clone(), self.place(&thread.name, vec![lane], ends, effort)));
        }
        places
    }

    fn place(&self, name: &str, lanes: Vec<Lane>, work: Work, effort: &mut Effort) -> LanePlacement {
        let processors = 1;
        let node = self.node;
        let steps = self.hierarchy.edges.len() as u64;
        let known =
            work.and(effort.spend(steps).map_err(Obstacle::from)).and_then(|()| self.interruptions(name));
        let interruptions = match known {
            Ok(interruptions) => interruptions,
            Err(obstacle) => {
                let (supply, interruptions) = (Err(obstacle), Vec::new());
                return LanePlacement {
                    node,
                    lanes,
                    processors,
                    supply,
                    interruptions,
                    server: None,
                    may_lag: false,
                };
            }
        };
        let supply = self.supply(name);
        let reconsiders = lanes
            .iter()
            .any(|lane| lane.rules.dispatch == LaneDispatch::Preemptive && lane.members.len() > 1);
        let is_undisturbed =
            supply == Ok(Supply::Whole) && self.hierarchy.processors.get() == 1 && !reconsiders;
        let interruptions = if is_undisturbed { Vec::new() } else { interruptions };
        // What lower lanes use of a budget is missing to higher ones.
        let is_one = lanes.len() == 1 && lanes[0].members.len() == 1;
        let server = (is_one && supply.is_ok()).then(|| self.server(name)).flatten();
        let may_lag = self.hierarchy.processors.get() == 1 && self.never_idle.contains(name);
        LanePlacement { node, lanes, processors, supply, interruptions, server, may_lag }
    }

    fn interruptions(&self, name: &str) -> Result<Vec<Interruption>, Obstacle> {
        interruptions(self.system, self.node, &self.hierarchy, name)
    }

    /// The server of somebody, if it is one of constant bandwidth on a whole processor.
    fn server(&self, name: &str) -> Option<(u64, u64)> {
        let edge = self.hierarchy.edges.iter().find(|edge| edge.child == name)?;
        let above = self.system.schedulers.iter().find(|scheduler| scheduler.name == edge.parent)?;
        let into_above = self.derivation.edges.iter().filter(|edge| edge.child == above.name);
        let has_all = into_above.into_iter().all(|edge| *edge.label.guarantee() == Guarantee::All)
            && self.derivation.given.iter().all(|label| *label.guarantee() == Guarantee::All);
        let serves = above.kind.periods == Periods::WhenUnsafe && has_all;
        serves.then(|| ceiling(&self.derivation.between(&edge.parent, name)?.label.absolute())).flatten()
    }

    fn supply(&self, name: &str) -> Result<Supply, Obstacle> {
        let into = || self.hierarchy.edges.iter().filter(|edge| edge.child == name);
        if into().count() > 1 {
            return Err(Obstacle::SeveralProcessors);
        }
        let edge =
            self.derivation.edges.iter().find(|edge| edge.child == name).ok_or(Obstacle::NotDerived)?;
        if self.doubted.contains(&edge.edge) {
            return Err(Obstacle::Doubted);
        }
        Supply::of(&edge.label.absolute())
    }
}

/// The most that a guarantee allows, if it is a maximum.
fn ceiling(guarantee: &Guarantee) -> Option<(u64, u64)> {
    let hard = guarantee.as_reservation().filter(|amount| amount.hardness() == Hardness::Hard)?;
    let amount = hard.amount().nanos().ceil().to_integer().to_u64()?;
    let period = hard.period().nanos().floor().to_integer().to_u64().filter(|period| *period > 0)?;
    Some((amount, period))
}

/// The threads for which the root's processor is never idle, from the root down.
fn never_idle(system: &System, node: usize, hierarchy: &Hierarchy) -> HashSet<String> {
    let mut below: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut has_parent: HashSet<&str> = HashSet::new();
    for edge in &hierarchy.edges {
        below.entry(&edge.parent).or_default().push(&edge.child);
        has_parent.insert(&edge.child);
    }
    let conserving: HashSet<&str> = system
        .schedulers
        .iter()
        .filter(|scheduler| scheduler.node == node && scheduler.kind.conserving == Conserving::Always)
        .map(|scheduler| scheduler.name.as_str())
        .collect();
    let mut waiting: Vec<&str> =
        conserving.iter().copied().filter(|name| !has_parent.contains(name)).collect();
    let mut reached: HashSet<&str> = HashSet::new();
    while let Some(name) = waiting.pop() {
        for child in below.get(name).into_iter().flatten() {
            if reached.insert(child) && conserving.contains(child) {
                waiting.push(child);
            }
        }
    }
    let threads = hierarchy.threads.iter().map(|thread| thread.name.as_str());
    let lanes: HashSet<&str> =
        system.lanes_on(node).map(|lanes| system.schedulers[lanes].name.as_str()).collect();
    threads.filter(|name| reached.contains(name) && !lanes.contains(name)).map(String::from).collect()
}
