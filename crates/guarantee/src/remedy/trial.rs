//! Changing a hierarchy and deriving it anew.

use super::{Change, Class, Effect, Remedy, Search};
use crate::derivation::{Derivation, DerivedEdge, Failure, NotDerived, derive};
use crate::exact::Ratio;
use crate::hierarchy::{Graph, Hierarchy, NodeId};
use crate::label::Label;
use std::collections::HashSet;

/// So many edges are derived anew in all: some seconds.
const EDGES_MAX: usize = 200_000;

/// So many digits of a label's numbers cost as much as an edge.
const BITS_PER_EDGE: u64 = 128;

/// How a changed hierarchy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The node in question still fails, or what it gives is too little for somebody below.
    Fails,
    /// It receives what it needs, and nobody new fails.
    Helps(Effect),
    /// Somebody else fails, or it is not reached any more.
    Harms,
}

/// What a derivation cost: its edges, and their numbers, which grow with the depth of the hierarchy.
fn cost(derived: &Derivation) -> usize {
    let bits = |label: &Label| {
        let share = label.guarantee().share();
        label.pace().ratio().denom().bits() + share.ratio().denom().bits()
    };
    let of_edge = |edge: &DerivedEdge| 1 + bits(&edge.label) / BITS_PER_EDGE;
    usize::try_from(derived.edges.iter().map(of_edge).sum::<u64>()).unwrap_or(usize::MAX).saturating_add(1)
}

/// A failure whose first finding is to be remedied.
pub(super) struct Trial<'g, 'h> {
    graph: &'g Graph<'h>,
    /// The node of the finding.
    node: NodeId,
    name: String,
    /// Everybody who fails without a change.
    failing: HashSet<String>,
    remedies: Vec<Remedy>,
    edges_left: usize,
}

impl<'g, 'h> Trial<'g, 'h> {
    pub(super) fn new(graph: &'g Graph<'h>, failure: &Failure) -> Self {
        let name = failure.findings[0].node.clone();
        let node = graph.named(&name).expect("the failure is one of this hierarchy");
        let failing = failure.findings.iter().map(|finding| finding.node.clone()).collect();
        Trial { graph, node, name, failing, remedies: Vec::new(), edges_left: EDGES_MAX }
    }

    /// The hierarchy as it is.
    pub(super) fn graph(&self) -> &'g Graph<'h> {
        self.graph
    }

    /// The node that fails.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// The node that fails and every scheduler above it, nearest first.
    pub(super) fn lineage(&self) -> Vec<NodeId> {
        let mut lineage = vec![self.node];
        let mut next = 0;
        while next < lineage.len() {
            for edge in self.graph.above(lineage[next]) {
                let parent = self.graph.parent(*edge);
                if !lineage.contains(&parent) {
                    lineage.push(parent);
                }
            }
            next += 1;
        }
        lineage
    }

    /// How the hierarchy does with `changes`.
    pub(super) fn with(&mut self, changes: &[Change]) -> Verdict {
        let mut changed: Hierarchy = self.graph.hierarchy().clone();
        for change in changes {
            change.apply(&mut changed);
        }
        let (failure, cost) = match derive(&changed) {
            Ok(derived) => (None, cost(&derived)),
            Err(NotDerived::Malformed(_)) => return Verdict::Harms,
            Err(NotDerived::Failed(failure)) => {
                let ways = failure.alternatives.max(1);
                let cost = cost(&failure.derived).saturating_mul(ways);
                (Some(failure), cost)
            }
        };
        self.edges_left = self.edges_left.saturating_sub(cost.max(changed.edges.len() + 1));
        failure.map_or(Verdict::Helps(Effect::Holds), |failure| self.judge(&failure))
    }

    fn judge(&self, failure: &Failure) -> Verdict {
        let derived = &failure.derived;
        let reached = derived.threads.iter().any(|thread| thread.name == self.name)
            || derived.schedulers.iter().any(|scheduler| scheduler.name == self.name);
        let fails = failure.findings.iter().any(|finding| finding.node == self.name);
        let mut others = failure.findings.iter().filter(|finding| !self.failing.contains(&finding.node));
        // What the node gives is not enough for somebody who could not be looked at before.
        let below = |name: &str| {
            let named = self.graph.named(name);
            named.is_some_and(|other| self.graph.is_below(other, self.node))
        };
        match others.next() {
            _ if fails => Verdict::Fails,
            None if reached => Verdict::Helps(Effect::OthersRemain(failure.findings.len())),
            Some(first) if reached && below(&first.node) && others.all(|other| below(&other.node)) => {
                Verdict::Fails
            }
            _ => Verdict::Harms,
        }
    }

    /// Notes `changes` as a remedy if they help.
    pub(super) fn suggest(&mut self, distance: Ratio, changes: Vec<Change>) {
        if self.edges_left == 0 || self.remedies.iter().any(|known| known.changes == changes) {
            return;
        }
        if let Verdict::Helps(effect) = self.with(&changes) {
            let class = Class::of(&changes);
            self.remedies.push(Remedy { changes, effect, class, distance });
        }
    }

    /// The value nearest to `near` that helps, between it and `far`, if fewer steps do not help and more may harm.
    ///
    /// Values are whole; `change` makes the changes for one of them. First the distance is doubled until the value helps
    /// or harms, then halved.
    pub(super) fn nearest(
        &mut self,
        near: u64,
        far: u64,
        change: impl Fn(u64) -> Vec<Change>,
    ) -> Option<u64> {
        let value = |distance: u64| if far > near { near + distance } else { near - distance };
        let whole = near.abs_diff(far);
        let (mut too_near, mut found) = (0, None);
        let mut too_far = whole.checked_add(1)?;
        let mut distance = 1;
        loop {
            if self.edges_left == 0 || too_far - too_near <= 1 {
                return found;
            }
            let tried = match found {
                None if too_far > whole => distance.min(whole).max(too_near + 1),
                _ => too_near + (too_far - too_near) / 2,
            };
            match self.with(&change(value(tried))) {
                Verdict::Fails => too_near = tried,
                Verdict::Harms => too_far = tried,
                Verdict::Helps(_) => {
                    found = Some(value(tried));
                    too_far = tried;
                }
            }
            distance = distance.saturating_mul(2);
        }
    }

    pub(super) fn search(&self) -> Search {
        if self.edges_left == 0 { Search::CutShort } else { Search::Finished }
    }

    pub(super) fn into_remedies(self) -> Vec<Remedy> {
        self.remedies
    }
}
