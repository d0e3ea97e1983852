//! Whether a change leaves everybody what they have to receive.

use std::collections::HashSet;
use talea_guarantee::conversion::Refused as Conversion;
use talea_guarantee::derivation::{Derivation, Failure, Finding, NotDerived, Problem, derive};
use talea_guarantee::hierarchy::Hierarchy;
use talea_guarantee::remedy::advise;

/// What is known of a hierarchy.
#[derive(Clone, Debug)]
pub(super) struct Derived {
    pub derivation: Derivation,
    /// Who does not receive what it needs; nobody if the hierarchy composes.
    pub failure: Option<Box<Failure>>,
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

/// How much is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insistence {
    /// Only if everybody keeps what they have to receive.
    Careful,
    /// Also if promises break. Admission is not for anybody to override.
    Forced,
}

impl Derived {
    pub fn of(hierarchy: &Hierarchy) -> Self {
        match derive(hierarchy) {
            Ok(derivation) => Derived { derivation, failure: None },
            Err(NotDerived::Failed(failure)) => {
                Derived { derivation: failure.derived.clone(), failure: Some(failure) }
            }
            Err(NotDerived::Malformed(faults)) => {
                panic!("a validated system has sound hierarchies: {faults:?}")
            }
        }
    }

    /// Whoever was known not to receive what it needs.
    fn failing(&self) -> HashSet<&str> {
        self.findings().iter().map(|finding| finding.node.as_str()).collect()
    }

    fn findings(&self) -> &[Finding] {
        self.failure.as_ref().map_or(&[], |failure| &failure.findings)
    }
}

/// What `after` breaks that `before` did not: findings about those who had what they need, or are new.
pub(super) fn broken(
    before: &Derived,
    known: &HashSet<&str>,
    after: &Derived,
    hierarchy: &Hierarchy,
) -> Option<Broken> {
    let failure = after.failure.as_ref()?;
    let served: HashSet<&str> = {
        let schedulers = before.derivation.schedulers.iter().map(|scheduler| scheduler.name.as_str());
        schedulers.chain(before.derivation.threads.iter().map(|thread| thread.name.as_str())).collect()
    };
    let failing = before.failing();
    let is_broken = |finding: &&Finding| {
        let node = finding.node.as_str();
        served.contains(node) || !known.contains(node) && !failing.contains(node)
    };
    let broken: Vec<&Finding> = failure.findings.iter().filter(is_broken).collect();
    if broken.is_empty() {
        return None;
    }
    let is_overload =
        |finding: &&Finding| matches!(finding.problem, Problem::Scheduler(Conversion::Overload(_)));
    let stake = if broken.iter().any(is_overload) { Stake::Admission } else { Stake::Promises };
    // Advice is about one finding; the first that is new is the one that matters here.
    let first = failure.findings.iter().position(|finding| is_broken(&finding)).unwrap_or(0);
    let mut about = (**failure).clone();
    about.findings.swap(0, first);
    let advice = advise(hierarchy, &about);
    let findings = broken.iter().map(ToString::to_string).collect();
    Some(Broken { findings, remedy: advice.remedies.first().map(ToString::to_string), stake })
}
