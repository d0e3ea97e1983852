//! A hierarchy whose parts fit together, by number.

use super::{Fault, Hierarchy};
use crate::exact::Span;
use crate::guarantee::{Guarantee, Kind};
use crate::request::Request;
use crate::scheduler::{Algorithm, Demand, Intake};
use crate::suggest::nearest;
use std::collections::{BTreeMap, VecDeque};

/// A scheduler's or a thread's number: schedulers first, in the order in which they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) usize);

/// A scheduler or a thread.
#[derive(Clone, Copy, Debug)]
pub enum Node<'a> {
    /// A scheduler, with its algorithm.
    Scheduler(&'a Algorithm),
    /// A thread, with what it requires.
    Thread(Option<&'a Guarantee>),
}

/// A hierarchy in which every rule of form is kept: one root, no circles, and every edge asks for something that its
/// parent understands.
#[derive(Clone, Debug)]
pub struct Graph<'a> {
    hierarchy: &'a Hierarchy,
    root: NodeId,
    /// Ends of the hierarchy's edges.
    ends: Vec<(NodeId, NodeId)>,
    /// Edges into each node.
    above: Vec<Vec<usize>>,
    /// Edges out of each node.
    below: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    /// The hierarchy by number.
    ///
    /// # Errors
    /// Everything that makes no sense. Rules about edges are only looked at once all names are known.
    pub fn new(hierarchy: &'a Hierarchy) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let numbers = numbers(hierarchy, &mut faults);
        let ends = ends(hierarchy, &numbers, &mut faults);
        if hierarchy.schedulers.is_empty() {
            faults.push(Fault::Empty);
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let nodes = hierarchy.schedulers.len() + hierarchy.threads.len();
        let (mut above, mut below) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for (edge, (parent, child)) in ends.iter().enumerate() {
            below[parent.0].push(edge);
            above[child.0].push(edge);
        }
        let mut graph = Graph { hierarchy, root: NodeId(0), ends, above, below };
        graph.check_roots(&mut faults);
        graph.check_circles(&mut faults);
        graph.check_nodes(&mut faults);
        if faults.is_empty() { Ok(graph) } else { Err(faults) }
    }

    /// The hierarchy itself.
    pub fn hierarchy(&self) -> &'a Hierarchy {
        self.hierarchy
    }

    /// The scheduler or thread of that name.
    pub fn named(&self, name: &str) -> Option<NodeId> {
        self.nodes().find(|node| self.name(*node) == name)
    }

    /// The scheduler that is given the processors.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// A scheduler's or thread's name.
    pub fn name(&self, node: NodeId) -> &'a str {
        let schedulers = self.hierarchy.schedulers.len();
        match node.0.checked_sub(schedulers) {
            None => &self.hierarchy.schedulers[node.0].name,
            Some(thread) => &self.hierarchy.threads[thread].name,
        }
    }

    /// What a node is.
    pub fn node(&self, node: NodeId) -> Node<'a> {
        match node.0.checked_sub(self.hierarchy.schedulers.len()) {
            None => Node::Scheduler(&self.hierarchy.schedulers[node.0].algorithm),
            Some(thread) => Node::Thread(self.hierarchy.threads[thread].requires.as_ref()),
        }
    }

    /// The parent of an edge of the hierarchy.
    pub fn parent(&self, edge: usize) -> NodeId {
        self.ends[edge].0
    }

    /// The child of an edge of the hierarchy.
    pub fn child(&self, edge: usize) -> NodeId {
        self.ends[edge].1
    }

    /// The edges into a node, in order.
    pub fn above(&self, node: NodeId) -> &[usize] {
        &self.above[node.0]
    }

    /// The edges out of a node, in order.
    pub fn below(&self, node: NodeId) -> &[usize] {
        &self.below[node.0]
    }

    /// What an edge asks for.
    pub fn request(&self, edge: usize) -> &'a Request {
        &self.hierarchy.edges[edge].request
    }

    /// Every scheduler, in order.
    pub fn schedulers(&self) -> impl Iterator<Item = NodeId> + use<'a> {
        (0..self.hierarchy.schedulers.len()).map(NodeId)
    }

    /// Whether `node` is `above` or is scheduled by it, directly or not.
    pub fn is_below(&self, node: NodeId, above: NodeId) -> bool {
        let mut seen = vec![false; self.above.len()];
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if node == above {
                return true;
            }
            if !std::mem::replace(&mut seen[node.0], true) {
                open.extend(self.above[node.0].iter().map(|edge| self.parent(*edge)));
            }
        }
        false
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<'a> {
        (0..self.hierarchy.schedulers.len() + self.hierarchy.threads.len()).map(NodeId)
    }

    fn check_roots(&mut self, faults: &mut Vec<Fault>) {
        let (mut roots, mut names) = (Vec::new(), Vec::new());
        for node in self.nodes().filter(|node| self.above[node.0].is_empty()) {
            match self.node(node) {
                Node::Thread(_) => faults.push(Fault::Orphan(self.name(node).into())),
                Node::Scheduler(_) => {
                    roots.push(node);
                    names.push(self.name(node).to_string());
                }
            }
        }
        if names.len() > 1 {
            faults.push(Fault::SeveralRoots(names));
        }
        self.root = roots.first().copied().unwrap_or(NodeId(0));
    }

    /// Takes away nodes without unseen parents; what is left hangs below a circle, and each of it has a parent left.
    fn check_circles(&self, faults: &mut Vec<Fault>) {
        let mut open: Vec<usize> = self.above.iter().map(Vec::len).collect();
        let mut free: VecDeque<NodeId> = self.nodes().filter(|node| open[node.0] == 0).collect();
        while let Some(node) = free.pop_front() {
            for edge in &self.below[node.0] {
                let child = self.child(*edge);
                open[child.0] -= 1;
                if open[child.0] == 0 {
                    free.push_back(child);
                }
            }
        }
        let Some(start) = self.nodes().find(|node| open[node.0] > 0) else { return };
        let left_parent = |node: NodeId| {
            let parents = self.above[node.0].iter().map(|edge| self.parent(*edge));
            parents
                .into_iter()
                .find(|parent| open[parent.0] > 0)
                .expect("a node left over has a parent left over")
        };
        let mut walk = vec![start];
        let first = loop {
            let parent = left_parent(walk[walk.len() - 1]);
            if let Some(first) = walk.iter().position(|node| *node == parent) {
                break first;
            }
            walk.push(parent);
        };
        let mut circle: Vec<String> =
            walk[first..].iter().rev().map(|node| self.name(*node).into()).collect();
        circle.push(circle[0].clone());
        faults.push(Fault::Circle(circle));
    }

    fn check_nodes(&self, faults: &mut Vec<Fault>) {
        for node in self.nodes() {
            let name = || self.name(node).to_string();
            let parents = self.above[node.0].iter().map(|edge| self.name(self.parent(*edge)).to_string());
            let parents: Vec<String> = parents.collect();
            let (intake, algorithm) = match self.node(node) {
                Node::Thread(_) => (Intake::One, None),
                Node::Scheduler(algorithm) => (algorithm.kind().intake, Some(algorithm)),
            };
            if let Some(takes) = algorithm.and_then(Algorithm::takes)
                && !parents.iter().any(|parent| parent == takes)
            {
                let takes = takes.into();
                faults.push(Fault::TakesFromStranger { join: name(), takes, parents: parents.clone() });
            }
            let processors = self.hierarchy.processors.get();
            if intake == Intake::One && node == self.root && processors > 1 {
                faults.push(Fault::SeveralProcessors { root: name(), processors });
            }
            if intake == Intake::One && parents.len() > 1 {
                faults.push(Fault::SeveralParents { child: name(), parents });
            }
            if let Some(algorithm) = algorithm {
                self.check_scheduler(node, algorithm, faults);
            }
        }
    }

    fn check_scheduler(&self, node: NodeId, algorithm: &Algorithm, faults: &mut Vec<Fault>) {
        let name = self.name(node).to_string();
        let edges = &self.below[node.0];
        if algorithm.quantum().is_some_and(Span::is_zero) {
            faults.push(Fault::NoQuantum(name.clone()));
        }
        if algorithm.kind().has_one_child() && edges.len() > 1 {
            let (children, algorithm) = (edges.len(), algorithm.name());
            faults.push(Fault::SeveralChildren { scheduler: name.clone(), algorithm, children });
        }
        let mut priorities = BTreeMap::new();
        for edge in edges {
            let child = || self.name(self.child(*edge)).to_string();
            let request = self.request(*edge);
            if let Some(wanted) = unsuitable(algorithm.kind().demand(), request) {
                let (request, algorithm) = (request.to_string(), algorithm.name());
                faults.push(Fault::Request {
                    parent: name.clone(),
                    child: child(),
                    request,
                    algorithm,
                    wanted,
                });
            } else if let Request::Priority(priority) = request
                && let Some(other) = priorities.insert(*priority, child())
            {
                let (scheduler, children, priority) = (name.clone(), (other, child()), *priority);
                faults.push(Fault::SamePriority { scheduler, children, priority });
            }
        }
    }
}

/// What to ask for instead, if `request` is not what the scheduler takes.
fn unsuitable(demand: Demand, request: &Request) -> Option<String> {
    let named = |kinds: &[Kind], request: &Guarantee| kinds.contains(&request.kind());
    match (demand, request) {
        (Demand::Nothing | Demand::AtMost(_) | Demand::GuaranteeIfAny(_), Request::Nothing)
        | (Demand::Priority, Request::Priority(_))
        | (Demand::Weight, Request::Weight(_)) => None,
        (Demand::Guarantee(kinds) | Demand::GuaranteeIfAny(kinds), Request::Guarantee(guarantee))
            if named(kinds, guarantee) =>
        {
            None
        }
        (Demand::AtMost(kind), Request::Guarantee(guarantee)) if guarantee.kind() == kind => None,
        (Demand::Nothing, _) => Some("no request".into()),
        (Demand::Priority, _) => Some("a priority".into()),
        (Demand::Weight, _) => Some("a weight of 1 or more".into()),
        (Demand::Guarantee(kinds), _) => {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            Some(format!("a guarantee of kind {}", kinds.join(" or ")))
        }
        (Demand::GuaranteeIfAny(kinds), _) => {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            Some(format!("a guarantee of kind {}, or no request", kinds.join(" or ")))
        }
        (Demand::AtMost(kind), _) => Some(format!("a guarantee of kind {kind}, or no request")),
    }
}

fn numbers<'a>(hierarchy: &'a Hierarchy, faults: &mut Vec<Fault>) -> BTreeMap<&'a str, NodeId> {
    let schedulers = hierarchy.schedulers.iter().map(|scheduler| scheduler.name.as_str());
    let names = schedulers.chain(hierarchy.threads.iter().map(|thread| thread.name.as_str()));
    let mut numbers = BTreeMap::new();
    for (number, name) in names.enumerate() {
        if numbers.insert(name, NodeId(number)).is_some() {
            faults.push(Fault::Duplicate(name.into()));
        }
    }
    numbers
}

fn ends(
    hierarchy: &Hierarchy,
    numbers: &BTreeMap<&str, NodeId>,
    faults: &mut Vec<Fault>,
) -> Vec<(NodeId, NodeId)> {
    let mut ends = Vec::new();
    for edge in &hierarchy.edges {
        let (parent, child) = (edge.parent.clone(), edge.child.clone());
        let mut find = |name: &str| {
            let number = numbers.get(name).copied();
            if number.is_none() {
                let unknown = name.to_string();
                let nearest = nearest(name, numbers.keys().copied()).map(str::to_owned);
                let (parent, child) = (parent.clone(), child.clone());
                faults.push(Fault::Unknown { parent, child, unknown, nearest });
            }
            number
        };
        let (Some(above), Some(below)) = (find(&edge.parent), find(&edge.child)) else { continue };
        if above.0 >= hierarchy.schedulers.len() {
            faults.push(Fault::ThreadAsParent { thread: parent, child });
        }
        ends.push((above, below));
    }
    ends
}
