//! A node's hierarchy as the guarantee system sees it.

use crate::description::{Description, Subtask};
use crate::hierarchy::{Asks, Request, Scheduler, SchedulerKind, Under};
use std::num::NonZeroU32;
use talea_guarantee::exact::Span;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::hierarchy::{self, Edge, Hierarchy};
use talea_guarantee::request;
use talea_guarantee::scheduler::{Algorithm, Scope};
use talea_time::Duration;

impl Description {
    /// How a node is scheduled.
    pub fn scheduling(&self, node: usize) -> Scheduling {
        match self.of_node(node).next() {
            None => Scheduling::Lanes,
            Some(_) => Scheduling::Hierarchy,
        }
    }

    /// Whether any node has lanes, into which a strategy sorts tasks.
    pub fn has_lanes(&self) -> bool {
        let mut nodes = 0..self.nodes.len();
        nodes.any(|node| match self.scheduling(node) {
            Scheduling::Lanes => true,
            Scheduling::Hierarchy => self.lanes_on(node).next().is_some(),
        })
    }

    /// The schedulers of kind `lanes` of a node with a hierarchy, by index, in file order.
    pub fn lanes_on(&self, node: usize) -> impl Iterator<Item = usize> {
        let is_lanes =
            move |scheduler: &Scheduler| scheduler.node == node && scheduler.kind == SchedulerKind::LANES;
        let schedulers = self.schedulers.iter().enumerate();
        schedulers.filter(move |(_, scheduler)| is_lanes(scheduler)).map(|(index, _)| index)
    }

    /// The scheduler of kind `lanes` in whose lanes a subtask is: the one that it names, or else the first of its node. None if its node
    /// has none.
    pub fn lanes_with(&self, subtask: &Subtask) -> Option<usize> {
        subtask.lanes.or_else(|| self.lanes_on(subtask.node).next())
    }

    /// The hierarchy of a node, whose edges are those of its schedulers in file order and then those of its threads. Lanes
    /// are a thread that requires nothing. None if the node has no hierarchy.
    ///
    /// # Panics
    /// If the description breaks a rule.
    pub fn hierarchy(&self, node: usize) -> Option<Hierarchy> {
        if self.scheduling(node) == Scheduling::Lanes {
            return None;
        }
        let processors = u32::try_from(self.nodes[node].cpus.len()).ok().and_then(NonZeroU32::new);
        let mut hierarchy = Hierarchy {
            processors: processors.expect("a node has a processor"),
            given: Guarantee::All,
            schedulers: Vec::new(),
            threads: Vec::new(),
            edges: Vec::new(),
        };
        let warped = self.warped();
        for (index, scheduler) in self.of_node(node) {
            let name = scheduler.name.clone();
            match self.algorithm(scheduler, warped[index]) {
                Some(algorithm) => hierarchy.schedulers.push(hierarchy::Scheduler { name, algorithm }),
                None => hierarchy.threads.push(hierarchy::Thread { name, requires: None }),
            }
            hierarchy.edges.extend(scheduler.under.iter().map(|under| self.edge(&scheduler.name, under)));
        }
        for thread in self.threads.iter().filter(|thread| thread.node == node) {
            let (name, requires) = (thread.name.clone(), thread.requires.clone());
            hierarchy.threads.push(hierarchy::Thread { name, requires });
            hierarchy.edges.extend(thread.under.iter().map(|under| self.edge(&thread.name, under)));
        }
        Some(hierarchy)
    }

    fn of_node(&self, node: usize) -> impl Iterator<Item = (usize, &Scheduler)> {
        self.schedulers.iter().enumerate().filter(move |(_, scheduler)| scheduler.node == node)
    }

    /// Which schedulers have a child with a warp.
    fn warped(&self) -> Vec<bool> {
        let mut warped = vec![false; self.schedulers.len()];
        let of_schedulers = self.schedulers.iter().flat_map(|scheduler| &scheduler.under);
        let of_threads = self.threads.iter().flat_map(|thread| &thread.under);
        for under in of_schedulers.chain(of_threads) {
            let is_warped = matches!(under.request, Request::Share { warp, .. } if warp > Duration::ZERO);
            warped[under.scheduler] |= is_warped;
        }
        warped
    }

    fn edge(&self, child: &str, under: &Under) -> Edge {
        let parent = &self.schedulers[under.scheduler];
        let request = match (&under.request, parent.kind.asks) {
            (Request::Priority(priority), Asks::Priority) => request::Request::Priority(*priority),
            // A level of time sharing changes nothing about what it promises.
            (Request::Nothing | Request::Priority(_), _) => request::Request::Nothing,
            (Request::Share { weight, .. }, _) => request::Request::Weight(*weight),
            (Request::Guarantee(guarantee), _) => request::Request::Guarantee(guarantee.clone()),
        };
        Edge { parent: parent.name.clone(), child: child.into(), request }
    }

    /// The algorithm of a scheduler, of whose children some are warped or none; none for lanes.
    fn algorithm(&self, scheduler: &Scheduler, warped: bool) -> Option<Algorithm> {
        let kind = match scheduler.kind {
            kind if kind.scope == Scope::Files => return None,
            _ if warped => SchedulerKind::WARPED_SHARE,
            kind => kind,
        };
        let takes = scheduler.takes.map(|parent| self.schedulers[parent].name.clone());
        let quantum =
            scheduler.quantum.map(|quantum| Span::try_from(quantum).expect("a quantum is above zero"));
        Some(Algorithm::new(kind, &quantum.unwrap_or_else(Span::zero)).taking(takes))
    }
}

/// How a node is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// By lanes, into which the strategy sorts its operations.
    Lanes,
    /// By a hierarchy of schedulers.
    Hierarchy,
}
