//! The guarantees in the hierarchy of a node: their derivation, and advice where a scheduler or thread does not receive enough.
//!
//! What lanes and threads receive here is what their bounds rest on ([`talea_analysis::system`]).

mod judge;
mod tree;

use self::judge::TrialSetup;
use serde::Serialize;
use talea_guarantee::derivation::{Derivation, Failure, Finding, NotDerived, derive};
use talea_guarantee::hierarchy::Hierarchy;
use talea_guarantee::proviso::{Proviso, provisos};
use talea_guarantee::remedy::{Counsel, counsel};
use talea_model::System;
use talea_policy::arrangement::ArrangeError;
use talea_policy::hierarchy::{self as policy, Shortage};
use talea_policy::strategy::Plan;

pub use tree::{Child, Row, Sibling, State, rows};

/// The hierarchy of one node, checked.
#[derive(Clone, Debug, Serialize)]
pub struct HierarchyCheck {
    /// The node's name.
    pub node: String,
    /// Whether every scheduler and every thread is sure to receive what it needs.
    pub verdict: Composition,
    /// The hierarchy.
    pub hierarchy: Hierarchy,
    /// The guarantee on every edge that could be labelled, with its grounds.
    pub derivation: Derivation,
    /// Which of these guarantees are not known to be kept.
    pub provisos: Vec<Proviso>,
    /// Children that the schedulers do not admit, unless the findings are about the same scheduler.
    pub refusals: Vec<Refusal>,
    /// The schedulers and threads that do not receive what they need.
    pub findings: Vec<Finding>,
    /// How many ways there were to decide which parents joins take from, where nothing is enough; 0 otherwise.
    pub alternatives: usize,
    /// Changes with which they would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Counsel>,
    /// The names of the schedulers that are lanes of the node's tasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<String>,
}

/// Whether a hierarchy composes correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Composition {
    /// Every scheduler and thread receives what it needs, whatever the threads do.
    Composes,
    /// They do according to the published conversions, but not all of these are known to be kept.
    OnPaper,
    /// They do according to the derivation, but a scheduler does not admit one of its children.
    Refused,
    /// A scheduler or thread does not.
    Fails,
}

/// Why a hierarchy that can be derived cannot be set up.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// The child whose request is refused, if it is a single one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// The scheduler that refuses it, if it refuses that one only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// The sentence, with the scheduler's own reason.
    pub reason: String,
    /// What to do about it.
    pub remedy: &'static str,
}

/// Derives the hierarchy of every node that has one, looks for remedies where that fails, and asks the schedulers themselves.
/// `plans` are the lanes of each node; `progress` is told how many searches for remedies of one node are done, and of how many.
pub fn hierarchies(
    system: &System,
    plans: &[Plan],
    progress: &mut dyn FnMut(usize, usize),
) -> Vec<HierarchyCheck> {
    let mut node =
        |node: usize| system.hierarchy(node).map(|hierarchy| check(system, node, plans, hierarchy, progress));
    (0..system.nodes.len()).filter_map(&mut node).collect()
}

fn check(
    system: &System,
    node: usize,
    plans: &[Plan],
    hierarchy: Hierarchy,
    progress: &mut dyn FnMut(usize, usize),
) -> HierarchyCheck {
    let (derived, failure) = match derive(&hierarchy) {
        Ok(derived) => {
            let none = Failure { findings: Vec::new(), derived, alternatives: 0 };
            (true, Box::new(none))
        }
        Err(NotDerived::Failed(failure)) => (false, failure),
        Err(malformed) => panic!("a validated system has sound hierarchies: {malformed}"),
    };
    let advice = (!derived).then(|| {
        let setup = TrialSetup::new(system, node, &plans[node], &hierarchy);
        counsel(&hierarchy, &failure, &mut |changed| setup.judge(changed), progress)
    });
    let refusals = refusals(system, node, &plans[node], &failure.findings);
    let Failure { findings, derived: derivation, alternatives } = *failure;
    let provisos = provisos(&hierarchy, &derivation);
    let verdict = match (derived, &refusals[..]) {
        (false, _) => Composition::Fails,
        (true, [_, ..]) => Composition::Refused,
        (true, []) if !provisos.is_empty() => Composition::OnPaper,
        (true, []) => Composition::Composes,
    };
    let lanes = system.lanes_on(node).map(|lanes| system.schedulers[lanes].name.clone()).collect();
    let node = system.nodes[node].name.clone();
    HierarchyCheck {
        node,
        verdict,
        hierarchy,
        derivation,
        provisos,
        refusals,
        findings,
        alternatives,
        advice,
        lanes,
    }
}

/// What the schedulers themselves do not admit, but not what the findings say of the same scheduler.
fn refusals(system: &System, node: usize, plan: &Plan, findings: &[Finding]) -> Vec<Refusal> {
    let errors = judge::set_up(system, node, plan);
    let known = |scheduler: &String| findings.iter().any(|finding| finding.node == *scheduler);
    let refusal = |error: ArrangeError| {
        let (child, remedy) = match &error {
            ArrangeError::Refused { scheduler, .. } if known(scheduler) => return None,
            ArrangeError::Refused { child, refusal, .. } => (Some(child.as_str()), remedy_of(refusal)),
            ArrangeError::Configure(error) => (Some(error.concerned().1), error.remedy()),
            ArrangeError::OneProcessor { .. } => (None, "give it one processor"),
            ArrangeError::NoSuchScheduler { .. } => (None, "give the scheduler other parameters"),
            ArrangeError::NoCode { .. } => (None, "register the scheduler with its code"),
        };
        let scheduler = match &error {
            ArrangeError::Refused { scheduler, .. } => Some(scheduler.clone()),
            _ => None,
        };
        Some(Refusal { child: child.map(String::from), scheduler, reason: error.to_string(), remedy })
    };
    errors.into_iter().filter_map(refusal).collect()
}

/// What helps a child that is refused.
fn remedy_of(refusal: &policy::Refusal) -> &'static str {
    match refusal {
        policy::Refusal::Admission(Shortage::Piece { .. }) => {
            "ask for a smaller amount in a period as much shorter, or put a reservation scheduler in its place, which interrupts"
        }
        policy::Refusal::Admission(Shortage::Cycle { .. }) => {
            "ask for a period that is a multiple or a part of the others', or put a reservation scheduler in its place"
        }
        policy::Refusal::Admission(Shortage::Order { .. }) => {
            "ask for less, or put a reservation scheduler in its place, which interrupts"
        }
        _ => "ask for less, or for a longer period",
    }
}
