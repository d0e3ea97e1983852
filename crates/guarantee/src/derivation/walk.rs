//! One walk down the hierarchy, with every join decided.

use super::{Derivation, DerivedEdge, DerivedScheduler, DerivedThread, Finding, Problem};
use crate::conversion::Accepted;
use crate::guarantee::Guarantee;
use crate::hierarchy::{Graph, Node, NodeId};
use crate::label::Label;
use crate::request::Request;
use crate::scheduler::Algorithm;
use std::collections::VecDeque;

/// Decides which of the guarantees that a join is given it takes, by position.
pub(super) type Decide<'d> = &'d mut dyn FnMut(NodeId, &[Label]) -> usize;

/// What came of a walk.
pub(super) struct Outcome {
    pub(super) derivation: Derivation,
    /// Those that do not receive what they need, in order.
    pub(super) findings: Vec<Finding>,
}

/// Walks down `graph` and goes on beside whatever fails.
pub(super) fn walk(graph: &Graph<'_>, given: &[Label], decide: Decide<'_>) -> Outcome {
    let mut walk = Walk::new(graph, given);
    let mut ready = VecDeque::from([graph.root()]);
    while let Some(node) = ready.pop_front() {
        let given = walk.given(node);
        match graph.node(node) {
            Node::Thread(requires) => walk.thread(node, &given[0], requires),
            Node::Scheduler(algorithm) => {
                let taken = walk.taken(node, algorithm, &given, decide);
                walk.scheduler(node, algorithm, taken, &given, &mut ready);
            }
        }
    }
    Outcome { derivation: walk.derivation, findings: walk.findings }
}

struct Walk<'g, 'h> {
    graph: &'g Graph<'h>,
    /// By edge of the hierarchy.
    labels: Vec<Option<Label>>,
    derivation: Derivation,
    findings: Vec<Finding>,
}

impl<'g, 'h> Walk<'g, 'h> {
    fn new(graph: &'g Graph<'h>, given: &[Label]) -> Self {
        let labels = vec![None; graph.hierarchy().edges.len()];
        let derivation = Derivation { given: given.to_vec(), ..Derivation::default() };
        Walk { graph, labels, derivation, findings: Vec::new() }
    }

    /// The guarantees on the edges into a node, all of which are labelled.
    fn given(&self, node: NodeId) -> Vec<Label> {
        if node == self.graph.root() {
            return self.derivation.given.clone();
        }
        let label = |edge: &usize| self.labels[*edge].clone().expect("a node waits for all its edges");
        self.graph.above(node).iter().map(label).collect()
    }

    fn taken(&self, node: NodeId, algorithm: &Algorithm, given: &[Label], decide: Decide<'_>) -> usize {
        match algorithm.takes() {
            Some(takes) => {
                let above = self.graph.above(node).iter();
                let parents = above.map(|edge| self.graph.name(self.graph.parent(*edge)));
                let taken = parents.into_iter().position(|parent| parent == takes);
                taken.expect("a graph has joins that take from their parents")
            }
            None if algorithm.kind().chooses_parent() => decide(node, given),
            None => 0,
        }
    }

    fn thread(&mut self, node: NodeId, given: &Label, requires: Option<&Guarantee>) {
        let name = self.graph.name(node).to_string();
        let wanted = requires.map(|requires| given.wanted(requires));
        let steps = match &wanted {
            None => Some(Vec::new()),
            Some(wanted) => given.reach(wanted),
        };
        match (steps, wanted) {
            (Some(steps), _) => self.derivation.threads.push(DerivedThread {
                name,
                edge: self.graph.above(node)[0],
                receives: given.clone(),
                requires: requires.cloned(),
                steps,
            }),
            (None, wanted) => {
                let required = Box::new(wanted.expect("without a requirement there are steps"));
                self.fail(node, Problem::Requirement { required, received: Box::new(given.clone()) });
            }
        }
    }

    fn scheduler(
        &mut self,
        node: NodeId,
        algorithm: &Algorithm,
        taken: usize,
        given: &[Label],
        ready: &mut VecDeque<NodeId>,
    ) {
        let below = self.graph.below(node);
        let requests: Vec<&Request> = below.iter().map(|edge| self.graph.request(*edge)).collect();
        let converted = match algorithm.convert(taken, given, &requests) {
            Ok(converted) => converted,
            Err(refused) => return self.fail(node, Problem::Scheduler(refused)),
        };
        self.accept(node, algorithm, taken, converted.accepted);
        for (edge, output) in below.iter().zip(converted.outputs) {
            let child = self.graph.child(*edge);
            self.labels[*edge] = Some(output.label.clone());
            self.derivation.edges.push(DerivedEdge {
                edge: *edge,
                parent: self.graph.name(node).into(),
                child: self.graph.name(child).into(),
                label: output.label,
                because: output.grounds,
            });
            let labelled = |edge: &usize| self.labels[*edge].is_some();
            let is_last = self.graph.above(child).iter().all(labelled);
            if is_last {
                ready.push_back(child);
            }
        }
    }

    fn accept(&mut self, node: NodeId, algorithm: &Algorithm, takes: usize, accepted: Vec<Accepted>) {
        let name = self.graph.name(node).into();
        let edges = self.graph.above(node).to_vec();
        let algorithm = algorithm.name();
        self.derivation.schedulers.push(DerivedScheduler { name, algorithm, edges, takes, accepted });
    }

    fn fail(&mut self, node: NodeId, problem: Problem) {
        let after = self.derivation.edges.len();
        self.findings.push(Finding { node: self.graph.name(node).into(), problem, after });
    }
}
