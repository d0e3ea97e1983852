//! Changing a hierarchy, deriving it anew, and asking whether what is derived is kept and the schedulers themselves take it.

use super::{Change, Class, Effect, Judge, Refusal, Remedy, Ruling, Search};
use crate::derivation::{Derivation, DerivedEdge, Failure, Finding, NotDerived, derive};
use crate::exact::Ratio;
use crate::hierarchy::{Graph, Hierarchy, NodeId};
use crate::label::Label;
use crate::proviso::{Doubt, Proviso, provisos};
use std::collections::HashSet;

/// So many digits of a label's numbers cost as much as an edge.
const BITS_PER_EDGE: u64 = 128;

/// How a changed hierarchy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Whoever is in question still fails, what it gives is too little for somebody below, or it is not known to be kept.
    Fails,
    /// It would be derived, but a scheduler says no.
    Refused,
    /// It receives what it needs, and nobody fails who did not.
    Helps(Effect),
    /// Somebody else fails, or it is not reached any more.
    Harms,
}

/// What happens on the way from a number to another one, which says what it means that a scheduler refuses one in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Schedulers are asked for ever more: those farther are refused too.
    Demanding,
    /// For ever less: those nearer are.
    Easing,
}

/// What is said of a hierarchy as it is, beside that somebody fails.
pub(super) struct Objections {
    doubted: HashSet<String>,
    refused: HashSet<Refusal>,
}

impl Objections {
    pub(super) fn of(hierarchy: &Hierarchy, failure: &Failure, judge: &mut Judge<'_>) -> Self {
        let doubts = provisos(hierarchy, &failure.derived);
        Objections {
            doubted: doubts.into_iter().map(|proviso| proviso.child).collect(),
            refused: judge(hierarchy).refused.into_iter().collect(),
        }
    }
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

/// Everybody who receives what it needs.
fn names(derived: &Derivation) -> impl Iterator<Item = &str> {
    let schedulers = derived.schedulers.iter().map(|scheduler| scheduler.name.as_str());
    schedulers.chain(derived.threads.iter().map(|thread| thread.name.as_str()))
}

/// The names of a node and of everybody below it.
fn below(graph: &Graph<'_>, node: NodeId) -> HashSet<String> {
    let mut names = HashSet::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        if names.insert(graph.name(node).to_string()) {
            open.extend(graph.below(node).iter().map(|edge| graph.child(*edge)));
        }
    }
    names
}

/// Who is to be helped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// One node that fails.
    Node(NodeId),
    /// All that fail, at once.
    Everybody,
}

/// A failure of a hierarchy.
#[derive(Clone, Copy)]
pub(super) struct Case<'g, 'h> {
    /// The hierarchy.
    pub graph: &'g Graph<'h>,
    /// Who fails.
    pub failure: &'g Failure,
    /// What else is said against it.
    pub before: &'g Objections,
}

/// A failure that is to be remedied, wholly or in part.
pub(super) struct Trial<'g, 'h> {
    graph: &'g Graph<'h>,
    goal: Goal,
    /// Everybody who fails without a change, in the order of the derivation.
    failing: Vec<NodeId>,
    /// Everybody who receives what it needs without a change. Whoever is neither here nor there has not been looked at, for
    /// something above it fails.
    served: HashSet<String>,
    /// What is said against the hierarchy as it is.
    before: &'g Objections,
    /// The schedulers themselves.
    judge: &'g mut Judge<'g>,
    /// The node in question and everybody below it.
    subtree: HashSet<String>,
    remedies: Vec<Remedy>,
    edges_left: usize,
}

impl<'g, 'h> Trial<'g, 'h> {
    /// No more than `edges` are derived anew or seated.
    pub(super) fn new(case: &Case<'g, 'h>, judge: &'g mut Judge<'g>, goal: Goal, edges: usize) -> Self {
        let Case { graph, failure, before } = *case;
        let node =
            |finding: &Finding| graph.named(&finding.node).expect("the failure is one of this hierarchy");
        let failing = failure.findings.iter().map(node).collect();
        let served = names(&failure.derived).map(str::to_string).collect();
        let subtree = match goal {
            Goal::Node(node) => below(graph, node),
            Goal::Everybody => HashSet::new(),
        };
        Trial {
            graph,
            goal,
            failing,
            served,
            before,
            judge,
            subtree,
            remedies: Vec::new(),
            edges_left: edges,
        }
    }

    /// The hierarchy as it is.
    pub(super) fn graph(&self) -> &'g Graph<'h> {
        self.graph
    }

    /// Whose change matters to all in question, nearest first: a node that fails and every scheduler above it, or the
    /// schedulers that are above all that fail.
    pub(super) fn lineage(&self) -> Vec<NodeId> {
        match self.goal {
            Goal::Node(node) => self.upwards(node),
            Goal::Everybody => {
                let above: Vec<Vec<NodeId>> = self.failing.iter().map(|node| self.upwards(*node)).collect();
                let is_common = |node: &NodeId| above.iter().all(|above| above.contains(node));
                above[0].iter().copied().filter(is_common).collect()
            }
        }
    }

    fn upwards(&self, node: NodeId) -> Vec<NodeId> {
        let mut lineage = vec![node];
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

    /// Whether a node fails without a change.
    pub(super) fn is_failing(&self, node: NodeId) -> bool {
        self.failing.contains(&node)
    }

    /// How the hierarchy does with `changes`.
    pub(super) fn with(&mut self, changes: &[Change]) -> Verdict {
        let mut changed: Hierarchy = self.graph.hierarchy().clone();
        for change in changes {
            change.apply(&mut changed);
        }
        let (verdict, failure) = match derive(&changed) {
            Ok(derived) => {
                (Verdict::Helps(Effect::Holds), Failure { findings: Vec::new(), derived, alternatives: 1 })
            }
            Err(NotDerived::Malformed(_)) => return Verdict::Harms,
            Err(NotDerived::Failed(failure)) => (self.compare(&failure), *failure),
        };
        let cost = cost(&failure.derived).saturating_mul(failure.alternatives.max(1));
        self.edges_left = self.edges_left.saturating_sub(cost.max(changed.edges.len() + 1));
        match verdict {
            Verdict::Helps(_) => self.confirm(&changed, &failure),
            other => other,
        }
    }

    /// Whether what is derived is known to be kept, and the schedulers take it.
    fn confirm(&mut self, changed: &Hierarchy, failure: &Failure) -> Verdict {
        let doubts = provisos(changed, &failure.derived);
        let was_sure = |name: &String| self.served.contains(name) && !self.before.doubted.contains(name);
        if doubts.iter().any(|doubt| was_sure(&doubt.child) || self.concerns(&doubt.child)) {
            return Verdict::Fails;
        }
        let Ruling { refused, effort } = (self.judge)(changed);
        self.edges_left = self.edges_left.saturating_sub(effort);
        let is_overloaded =
            |refusal: &Refusal| failure.findings.iter().any(|finding| finding.node == refusal.scheduler);
        let refused: Vec<Refusal> = refused.into_iter().filter(|refusal| !is_overloaded(refusal)).collect();
        let is_old = |refusal: &Refusal| {
            let concerned = self.concerns(&refusal.scheduler) || self.concerns(&refusal.child);
            !concerned && self.before.refused.contains(refusal)
        };
        if !refused.iter().all(is_old) {
            return Verdict::Refused;
        }
        let is_root = |doubt: &&Proviso| !matches!(doubt.reason, Doubt::Rests { .. });
        let others = failure.findings.len() + doubts.iter().filter(is_root).count() + refused.len();
        Verdict::Helps(if others == 0 { Effect::Holds } else { Effect::OthersRemain(others) })
    }

    /// Whether somebody is to be helped, or below one who is, or put there by the change.
    fn concerns(&self, name: &str) -> bool {
        self.goal == Goal::Everybody || self.subtree.contains(name) || self.graph.named(name).is_none()
    }

    /// How who fails with the change compares to who does without it.
    fn compare(&self, failure: &Failure) -> Verdict {
        let fails =
            |some: &HashSet<String>| failure.findings.iter().any(|finding| some.contains(&finding.node));
        let concerned = || failure.findings.iter().any(|finding| self.concerns(&finding.node));
        let Goal::Node(node) = self.goal else {
            return if fails(&self.served) { Verdict::Harms } else { Verdict::Fails };
        };
        let is_reached = || names(&failure.derived).any(|reached| reached == self.graph.name(node));
        match () {
            () if fails(&self.served) => Verdict::Harms,
            // Also what it gives can be too little for somebody who could not be looked at before.
            () if concerned() => Verdict::Fails,
            () if is_reached() => Verdict::Helps(Effect::OthersRemain(failure.findings.len())),
            () => Verdict::Harms,
        }
    }

    /// Notes `changes` as a remedy if they help.
    ///
    /// Returns whether they do.
    pub(super) fn suggest(&mut self, distance: Ratio, changes: Vec<Change>) -> bool {
        if self.remedies.iter().any(|known| known.changes == changes) {
            return true;
        }
        if self.edges_left == 0 {
            return false;
        }
        let Verdict::Helps(effect) = self.with(&changes) else { return false };
        let class = Class::of(&changes);
        self.remedies.push(Remedy { changes, effect, class, distance });
        true
    }

    /// The value nearest to `near` that helps, between it and `far`, if fewer steps do not help and more may harm.
    ///
    /// Values are whole; `change` makes the changes for one of them. First the distance is doubled until the value helps
    /// or harms, then halved.
    pub(super) fn nearest(
        &mut self,
        near: u64,
        far: u64,
        way: Way,
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
            match (self.with(&change(value(tried))), way) {
                (Verdict::Fails, _) | (Verdict::Refused, Way::Easing) => too_near = tried,
                (Verdict::Harms, _) | (Verdict::Refused, Way::Demanding) => too_far = tried,
                (Verdict::Helps(_), _) => {
                    found = Some(value(tried));
                    too_far = tried;
                }
            }
            distance = distance.saturating_mul(2);
        }
    }

    /// How far the search came.
    pub(super) fn search(&self) -> Search {
        if self.edges_left == 0 { Search::CutShort } else { Search::Finished }
    }

    /// How many more edges could have been derived.
    pub(super) fn edges_left(&self) -> usize {
        self.edges_left
    }

    /// What helps, in the order in which it was found.
    pub(super) fn into_remedies(self) -> Vec<Remedy> {
        self.remedies
    }
}
