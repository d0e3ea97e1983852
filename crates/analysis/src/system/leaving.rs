//! What hierarchies leave of their processors to ordinary threads, and what their promises are derived from then.
//!
//! Linux keeps a part of each second from real-time threads that would take all of it, usually in one piece that is longer than many periods.
//! A hierarchy may leave that part unused in small slices instead. It then has less to promise, and all the time: so it does where it may take
//! more than the kernel leaves, and where with the slices everybody still receives what they need.

use super::NodeLoad;
use std::collections::BTreeSet;
use talea_guarantee::derivation::{Finding, NotDerived, derive};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::hierarchy::Hierarchy;
use talea_guarantee::proviso::provisos_of;
use talea_model::{Slices, System};

/// Whether a node leaves its processors unused for moments.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaving {
    /// It does not, and need not: nothing is kept from it, or nobody asked for slices.
    Nothing,
    /// It does, as often as it would take more.
    Slices(Slices),
    /// It would take more than the kernel leaves, and with slices somebody would not receive what they need: the kernel takes its part at
    /// a time of its own.
    Declined {
        /// Who would not, and why.
        finding: String,
    },
}

impl Leaving {
    /// What the root of the hierarchy is given of each processor.
    pub fn given(&self) -> Guarantee {
        match self {
            Leaving::Slices(slices) => slices.given(),
            Leaving::Nothing | Leaving::Declined { .. } => Guarantee::All,
        }
    }

    /// What is left unused, if anything.
    pub fn slices(&self) -> Option<Slices> {
        match self {
            Leaving::Slices(slices) => Some(*slices),
            Leaving::Nothing | Leaving::Declined { .. } => None,
        }
    }
}

/// What each node leaves that has a hierarchy, on a machine whose kernel takes nothing where `slices` are left. `load` is what the nodes take
/// of what the kernel leaves them; of whom that says nothing it is not known that they leave enough.
pub fn leaving(system: &System, load: &[NodeLoad], slices: Slices) -> Vec<Leaving> {
    let leaves_enough = |node: usize| load.get(node).is_some_and(|load| !load.is_beyond() && !load.is_near());
    let of_node = |node: usize| match system.hierarchy(node) {
        Some(hierarchy) if !leaves_enough(node) => match lost_by(&hierarchy, slices) {
            Some(finding) => Leaving::Declined { finding },
            None => Leaving::Slices(slices),
        },
        _ => Leaving::Nothing,
    };
    (0..system.nodes.len()).map(of_node).collect()
}

/// Who receives what they need of whole processors, and would not with the slices.
fn lost_by(hierarchy: &Hierarchy, slices: Slices) -> Option<String> {
    let of_slices = Hierarchy { given: slices.given(), ..hierarchy.clone() };
    let before = names(&findings(hierarchy));
    let lost = findings(&of_slices).into_iter().find(|finding| !before.contains(&finding.node));
    lost.map(|finding| finding.to_string()).or_else(|| doubted(hierarchy, &of_slices))
}

fn names(findings: &[Finding]) -> BTreeSet<String> {
    findings.iter().map(|finding| finding.node.clone()).collect()
}

fn findings(hierarchy: &Hierarchy) -> Vec<Finding> {
    match derive(hierarchy) {
        Err(NotDerived::Failed(failure)) => failure.findings,
        Ok(_) => Vec::new(),
        Err(NotDerived::Malformed(faults)) => panic!("a validated system has sound hierarchies: {faults:?}"),
    }
}

/// A promise that would not be known to be kept any more.
fn doubted(hierarchy: &Hierarchy, of_slices: &Hierarchy) -> Option<String> {
    let before: BTreeSet<usize> = provisos_of(hierarchy).iter().map(|proviso| proviso.edge).collect();
    provisos_of(of_slices).iter().find(|proviso| !before.contains(&proviso.edge)).map(ToString::to_string)
}
