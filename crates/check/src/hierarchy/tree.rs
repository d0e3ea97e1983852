//! A checked hierarchy as a tree, one row for each edge: what a join has under it hangs below the parent whose guarantee it takes.

use super::HierarchyCheck;
use std::collections::HashMap;
use talea_guarantee::hierarchy::Edge;
use talea_guarantee::label::Label;
use talea_guarantee::rewrite::{Rewritten, Rule};

/// One edge, or the root with the processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// How far below the root.
    pub depth: usize,
    /// For the row and each row that it hangs from below the root, outermost first: whether a sibling follows.
    pub siblings: Vec<Sibling>,
    /// The scheduler or thread below the edge.
    pub name: String,
    /// What it is.
    pub child: Child,
    /// What it asks for; empty for nothing.
    pub asks: String,
    /// What it receives, unless that could not be derived.
    pub receives: Option<Label>,
    /// By what rule.
    pub because: String,
    /// Why it is not known to be kept; empty if it is.
    pub proviso: String,
    /// What it converts that to: `PSBE 0.5 10ms (Theorem 4)`; empty if it uses it as it is.
    pub taken: String,
    /// Whether it receives what it needs.
    pub state: State,
}

/// Whether another child of the same scheduler follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sibling {
    /// One follows.
    Follows,
    /// It is the last.
    Last,
}

/// What hangs below an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Child {
    /// A scheduler of this kind.
    Scheduler(&'static str),
    /// A scheduler of this kind, whose children hang from another row.
    Elsewhere(&'static str),
    /// A thread.
    Thread,
    /// Lanes of tasks.
    Lanes,
}

/// Whether a scheduler or thread receives what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It does.
    Served,
    /// It does not.
    Failed,
    /// Unknown, because a scheduler above it does not.
    Unknown,
    /// It would, but the scheduler does not admit it.
    Refused,
}

/// The rows of a hierarchy from the root down, children in the order of the file.
pub fn rows(check: &HierarchyCheck) -> Vec<Row> {
    Tree::new(check).rows()
}

struct Tree<'c> {
    check: &'c HierarchyCheck,
    /// Edges out of each scheduler.
    below: HashMap<&'c str, Vec<usize>>,
    /// The edge from which the children of each scheduler hang.
    main: HashMap<&'c str, usize>,
    kinds: HashMap<&'c str, &'static str>,
    labels: HashMap<usize, (&'c Label, String)>,
    taken: HashMap<&'c str, Vec<(Option<usize>, String)>>,
    states: HashMap<&'c str, State>,
}

impl<'c> Tree<'c> {
    fn new(check: &'c HierarchyCheck) -> Self {
        let hierarchy = &check.hierarchy;
        let mut below: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut main = HashMap::new();
        for (index, Edge { parent, child, .. }) in hierarchy.edges.iter().enumerate() {
            below.entry(parent).or_default().push(index);
            main.entry(child.as_str()).or_insert(index);
        }
        let mut taken: HashMap<&str, Vec<(Option<usize>, String)>> = HashMap::new();
        let mut states = HashMap::new();
        for scheduler in &check.derivation.schedulers {
            states.insert(scheduler.name.as_str(), State::Served);
            for accepted in &scheduler.accepted {
                let edge = scheduler.edges.get(accepted.input).copied();
                taken.entry(&scheduler.name).or_default().push((edge, in_words(&accepted.steps)));
            }
            let used = scheduler.accepted.first().and_then(|accepted| scheduler.edges.get(accepted.input));
            if let Some(edge) = used {
                main.insert(scheduler.name.as_str(), *edge);
            }
        }
        for thread in &check.derivation.threads {
            states.insert(thread.name.as_str(), State::Served);
            taken.insert(&thread.name, vec![(Some(thread.edge), in_words(&thread.steps))]);
        }
        for finding in &check.findings {
            states.insert(finding.node.as_str(), State::Failed);
        }
        let label = |edge: &'c talea_guarantee::derivation::DerivedEdge| {
            (edge.edge, (&edge.label, edge.because.to_string()))
        };
        Tree {
            check,
            below,
            main,
            kinds: hierarchy
                .schedulers
                .iter()
                .map(|scheduler| (scheduler.name.as_str(), scheduler.algorithm.name()))
                .collect(),
            labels: check.derivation.edges.iter().map(label).collect(),
            taken,
            states,
        }
    }

    fn rows(&self) -> Vec<Row> {
        let edges = &self.check.hierarchy.edges;
        let root = self
            .check
            .hierarchy
            .schedulers
            .iter()
            .find(|scheduler| !self.main.contains_key(scheduler.name.as_str()));
        let root = root.expect("a sound hierarchy has a root").name.as_str();
        let mut rows = vec![self.root(root)];
        let mut open: Vec<(usize, Vec<Sibling>)> = Vec::new();
        let push = |open: &mut Vec<(usize, Vec<Sibling>)>, name: &str, siblings: &[Sibling]| {
            for (place, edge) in self.below.get(name).into_iter().flatten().rev().enumerate() {
                let own = if place == 0 { Sibling::Last } else { Sibling::Follows };
                open.push((*edge, [siblings, &[own]].concat()));
            }
        };
        push(&mut open, root, &[]);
        while let Some((edge, siblings)) = open.pop() {
            let name = edges[edge].child.as_str();
            let row = self.row(edge, siblings);
            if matches!(row.child, Child::Scheduler(_)) {
                push(&mut open, name, &row.siblings);
            }
            rows.push(row);
        }
        rows
    }

    fn root(&self, name: &str) -> Row {
        let given = &self.check.derivation.given;
        let because = match given.len() {
            1 => "what the root is given".into(),
            processors => format!("what the root is given on each of {processors} processors"),
        };
        Row {
            depth: 0,
            siblings: Vec::new(),
            name: name.into(),
            child: Child::Scheduler(self.kinds[name]),
            asks: String::new(),
            receives: given.first().cloned(),
            because,
            proviso: String::new(),
            taken: self.taken_as(name, None),
            state: self.state(name),
        }
    }

    fn row(&self, edge: usize, siblings: Vec<Sibling>) -> Row {
        let Edge { child, request, .. } = &self.check.hierarchy.edges[edge];
        let child = child.as_str();
        let request = request.to_string();
        let what = match self.kinds.get(child) {
            Some(kind) if self.main[child] == edge => Child::Scheduler(kind),
            Some(kind) => Child::Elsewhere(kind),
            None if self.check.lanes.iter().any(|lanes| lanes == child) => Child::Lanes,
            None => Child::Thread,
        };
        let parent = &self.check.hierarchy.edges[edge].parent;
        let mut refusals = self.check.refusals.iter();
        let is_refused = refusals.any(|refusal| {
            refusal.child.as_deref() == Some(child) && refusal.scheduler.as_ref() == Some(parent)
        });
        let (receives, because) = match self.labels.get(&edge) {
            Some((label, because)) if !is_refused => (Some((*label).clone()), because.clone()),
            _ => (None, String::new()),
        };
        Row {
            depth: siblings.len(),
            siblings,
            name: child.into(),
            child: what,
            asks: if request == "nothing" { String::new() } else { request },
            receives,
            because,
            proviso: self.proviso(edge),
            taken: self.taken_as(child, Some(edge)),
            state: if is_refused { State::Refused } else { self.state(child) },
        }
    }

    fn proviso(&self, edge: usize) -> String {
        let proviso = self.check.provisos.iter().find(|proviso| proviso.edge == edge);
        proviso.map(|proviso| proviso.reason.to_string()).unwrap_or_default()
    }

    fn taken_as(&self, name: &str, edge: Option<usize>) -> String {
        let uses = self.taken.get(name).into_iter().flatten();
        uses.filter(|(used, _)| *used == edge).map(|(_, words)| words.clone()).next().unwrap_or_default()
    }

    fn state(&self, name: &str) -> State {
        self.states.get(name).copied().unwrap_or(State::Unknown)
    }
}

/// `PSBE 0.5 10ms (Theorem 4)`.
fn in_words(steps: &[Rewritten]) -> String {
    let word = |step: &Rewritten| match step.rule {
        Rule::Theorem(theorem) => format!("{} ({theorem})", step.label),
        rule => format!("{} ({})", step.label, rule.reason()),
    };
    steps.iter().map(word).collect::<Vec<_>>().join(", ")
}
