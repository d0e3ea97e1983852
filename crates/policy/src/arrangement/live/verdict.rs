//! Whether a change leaves everybody what they have to receive.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use talea_guarantee::conversion::Refused as Conversion;
use talea_guarantee::derivation::{Derivation, Failure, Finding, NotDerived, Problem, derive};
use talea_guarantee::hierarchy::Hierarchy;
use talea_guarantee::proviso::{Doubt, Proviso, provisos};
use talea_guarantee::remedy::advise;

/// What is known of a hierarchy.
#[derive(Clone, Debug)]
pub(super) struct Derived {
    pub derivation: Derivation,
    /// Who does not receive what it needs; nobody if the hierarchy composes.
    pub failure: Option<Box<Failure>>,
    /// What is derived, and not known to be kept.
    pub provisos: Vec<Proviso>,
}

/// Somebody would not receive what it has to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Who, and why, in the order of the derivation.
    pub findings: Vec<String>,
    /// The nearest change of what was asked for that would do, if one was found.
    pub remedy: Option<String>,
    /// What is at stake.
    pub stake: Stake,
}

/// What a change would break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stake {
    /// Promises: it works, and somebody receives less than it has to.
    Promises,
    /// A scheduler cannot admit what its children ask for.
    Admission,
}

/// How much a change is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Insistence {
    /// Only if everybody keeps what they have to receive.
    #[default]
    Careful,
    /// Also if promises break. Admission is not for anybody to override.
    Forced,
}

impl Derived {
    pub fn of(hierarchy: &Hierarchy) -> Self {
        let (derivation, failure) = match derive(hierarchy) {
            Ok(derivation) => (derivation, None),
            Err(NotDerived::Failed(failure)) => (failure.derived.clone(), Some(failure)),
            Err(NotDerived::Malformed(faults)) => {
                panic!("a validated system has sound hierarchies: {faults:?}")
            }
        };
        let provisos = provisos(hierarchy, &derivation);
        Derived { derivation, failure, provisos }
    }

    /// What is not known to be kept and was before, or is on an edge that was not there.
    pub fn newly_doubted(&self, before: &Derived) -> Vec<Proviso> {
        let is_new = |proviso: &&Proviso| {
            !before.provisos.iter().any(|old| old.parent == proviso.parent && old.child == proviso.child)
        };
        self.provisos.iter().filter(is_new).cloned().collect()
    }

    /// The thread of this name is sure to receive what it requires.
    fn is_sure(&self, thread: &str) -> bool {
        let receives = self.derivation.threads.iter().find(|derived| derived.name == thread);
        receives.is_some_and(|thread| !self.provisos.iter().any(|proviso| proviso.edge == thread.edge))
    }

    /// What is itself not known to be kept where `proviso` rests on something else that is not.
    fn cause_of<'d>(&'d self, proviso: &'d Proviso) -> &'d Proviso {
        let below = match &proviso.reason {
            Doubt::Rests { parent, child } => {
                self.provisos.iter().find(|other| (&other.parent, &other.child) == (parent, child))
            }
            Doubt::Order { .. } | Doubt::SeveralParents | Doubt::Periods => None,
        };
        below.map_or(proviso, |below| self.cause_of(below))
    }

    /// Whoever was known not to receive what it needs.
    fn failing(&self) -> HashSet<&str> {
        self.findings().iter().map(|finding| finding.node.as_str()).collect()
    }

    fn findings(&self) -> &[Finding] {
        self.failure.as_ref().map_or(&[], |failure| &failure.findings)
    }
}

/// What `after` breaks that `before` did not: findings about those who had what they need, or are new, and threads whose guarantee is no
/// longer proven.
pub(super) fn broken(
    before: &Derived,
    known: &HashSet<&str>,
    after: &Derived,
    hierarchy: &Hierarchy,
) -> Option<Broken> {
    let served: HashSet<&str> = {
        let schedulers = before.derivation.schedulers.iter().map(|scheduler| scheduler.name.as_str());
        schedulers.chain(before.derivation.threads.iter().map(|thread| thread.name.as_str())).collect()
    };
    let failing = before.failing();
    let is_broken = |finding: &&Finding| {
        let node = finding.node.as_str();
        served.contains(node) || !known.contains(node) && !failing.contains(node)
    };
    let broken: Vec<&Finding> = after.findings().iter().filter(is_broken).collect();
    let doubted = doubted(before, known, after);
    let remedy = match (&after.failure, broken.first()) {
        (Some(failure), Some(first)) => nearest(hierarchy, failure, first),
        _ if doubted.is_empty() => return None,
        _ => after.cause_of(doubted[0]).reason.remedy().map(Into::into),
    };
    let is_overload =
        |finding: &&Finding| matches!(finding.problem, Problem::Scheduler(Conversion::Overload(_)));
    let stake = if broken.iter().any(is_overload) { Stake::Admission } else { Stake::Promises };
    let findings = broken.iter().map(ToString::to_string).chain(doubted.iter().map(ToString::to_string));
    Some(Broken { findings: findings.collect(), remedy, stake })
}

/// The nearest change against one finding.
fn nearest(hierarchy: &Hierarchy, failure: &Failure, finding: &Finding) -> Option<String> {
    // Advice is about the first one.
    let first = failure.findings.iter().position(|other| other == finding).unwrap_or(0);
    let mut about = failure.clone();
    about.findings.swap(0, first);
    advise(hierarchy, &about).remedies.first().map(ToString::to_string)
}

/// Promises to threads that require something and were sure to receive it, or are new, and are not any more.
fn doubted<'d>(before: &Derived, known: &HashSet<&str>, after: &'d Derived) -> Vec<&'d Proviso> {
    let requiring = after.derivation.threads.iter().filter(|thread| thread.requires.is_some());
    let doubts = requiring.filter_map(|thread| {
        let proviso = after.provisos.iter().find(|proviso| proviso.edge == thread.edge)?;
        let concerns = before.is_sure(&thread.name) || !known.contains(thread.name.as_str());
        concerns.then_some(proviso)
    });
    doubts.collect()
}
