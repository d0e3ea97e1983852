//! Where a guarantee comes from, step by step up to the processors.

use super::{Derivation, DerivedEdge, DerivedScheduler, DerivedThread};
use crate::conversion::{Accepted, Grounds};
use crate::label::Label;
use crate::rewrite::Rewritten;
use serde::Serialize;
use std::collections::HashSet;
use std::fmt;

/// A guarantee with its grounds: a tree, in the order in which one reads it. What a step rests on follows it and is
/// deeper by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One guarantee of an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// How far below the guarantee that is explained.
    pub depth: usize,
    /// Where it holds.
    #[serde(flatten)]
    pub place: GuaranteePlace,
    /// The guarantee.
    pub guarantee: Label,
    /// The rule or the theorem that gives it.
    pub because: String,
}

/// Where a guarantee holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "place")]
pub enum GuaranteePlace {
    /// On an edge.
    Edge {
        /// From this scheduler
        parent: String,
        /// to this child.
        child: String,
    },
    /// Inside a scheduler or a thread, which sees the guarantee that it is given so.
    Within {
        /// Whose view it is.
        node: String,
    },
    /// A processor of the machine.
    Processor,
}

impl fmt::Display for GuaranteePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuaranteePlace::Edge { parent, child } => write!(f, "{parent} -> {child}"),
            GuaranteePlace::Within { node } => write!(f, "{node} takes it as"),
            GuaranteePlace::Processor => f.write_str("processor"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            let (indent, Step { place, guarantee, because, .. }) = (2 * step.depth, step);
            writeln!(f, "{:indent$}{place}: {guarantee}  ({because})", "")?;
        }
        Ok(())
    }
}

impl Derivation {
    /// Where the guarantee of an edge comes from; `edge` is a position among the edges of the hierarchy. None if
    /// the edge has no guarantee.
    pub fn explain(&self, edge: usize) -> Option<Explanation> {
        let mut telling = Telling::new(self);
        telling.edge(0, edge)?;
        Some(telling.finish())
    }

    /// Why a thread receives what it requires. None if it does not, or there is no such thread.
    pub fn explain_thread(&self, thread: &str) -> Option<Explanation> {
        let thread: &DerivedThread = self.threads.iter().find(|other| other.name == thread)?;
        let mut telling = Telling::new(self);
        let depth = telling.rewrites(0, &thread.name, &thread.steps);
        telling.edge(depth, thread.edge)?;
        Some(telling.finish())
    }
}

struct Telling<'d> {
    derivation: &'d Derivation,
    steps: Vec<Step>,
    /// Edges still to be told, last first.
    open: Vec<Open<'d>>,
    told: HashSet<usize>,
}

enum Open<'d> {
    /// An edge.
    Edge { depth: usize, edge: usize },
    /// What a scheduler uses.
    Accepted { depth: usize, scheduler: &'d DerivedScheduler, accepted: &'d Accepted },
}

impl<'d> Telling<'d> {
    fn new(derivation: &'d Derivation) -> Self {
        Telling { derivation, steps: Vec::new(), open: Vec::new(), told: HashSet::new() }
    }

    fn finish(mut self) -> Explanation {
        while let Some(open) = self.open.pop() {
            match open {
                Open::Edge { depth, edge } => {
                    self.edge(depth, edge).expect("what a scheduler uses is labelled");
                }
                Open::Accepted { depth, scheduler, accepted } => {
                    let depth = self.rewrites(depth, &scheduler.name, &accepted.steps);
                    match scheduler.edges.get(accepted.input) {
                        Some(edge) => self.open.push(Open::Edge { depth, edge: *edge }),
                        None => self.processor(depth, accepted.input),
                    }
                }
            }
        }
        Explanation { steps: self.steps }
    }

    fn edge(&mut self, depth: usize, edge: usize) -> Option<()> {
        let DerivedEdge { parent, child, label, because, .. } =
            self.derivation.edges.iter().find(|derived| derived.edge == edge)?;
        let place = GuaranteePlace::Edge { parent: parent.clone(), child: child.clone() };
        let guarantee = label.clone();
        if !self.told.insert(edge) {
            self.steps.push(Step { depth, place, guarantee, because: "as above".into() });
            return Some(());
        }
        let scheduler = self.derivation.schedulers.iter().find(|scheduler| scheduler.name == *parent)?;
        let because_of = format!("{}: {because}", scheduler.algorithm);
        self.steps.push(Step { depth, place, guarantee, because: because_of });
        let used: &[Accepted] = match because {
            Grounds::LowerPriority { .. } | Grounds::Nothing => &[],
            Grounds::HighestPriority { rank, .. } => &scheduler.accepted[*rank..=*rank],
            _ => &scheduler.accepted,
        };
        let open = |accepted| Open::Accepted { depth: depth + 1, scheduler, accepted };
        self.open.extend(used.iter().rev().map(open));
        Some(())
    }

    /// Tells the rewrites that a node makes, last first, and returns the depth of what they begin with.
    fn rewrites(&mut self, depth: usize, node: &str, steps: &[Rewritten]) -> usize {
        for (below, step) in steps.iter().rev().enumerate() {
            let (place, guarantee) = (GuaranteePlace::Within { node: node.into() }, step.label.clone());
            let because = step.rule.to_string();
            self.steps.push(Step { depth: depth + below, place, guarantee, because });
        }
        depth + steps.len()
    }

    fn processor(&mut self, depth: usize, number: usize) {
        let guarantee = self.derivation.given[number].clone();
        let because = "what the root is given".into();
        self.steps.push(Step { depth, place: GuaranteePlace::Processor, guarantee, because });
    }
}
