//! What is looked for against one problem and against all of them, and how long.
//!
//! Against each problem everything is looked for that can matter to it. What mends all of them at once is among that if it is as
//! near for one of them alone; what is farther, such as a quantum small enough for the most demanding, is looked for where all of
//! them meet: in the schedulers above everybody who fails.

use super::trial::{Case, Goal, Objections, Trial};
use super::{Effect, Judge, Remedy, Ruling, parameters, requirement, structure};
use crate::conversion::Refused;
use crate::derivation::{Failure, Problem};
use crate::hierarchy::{Graph, Hierarchy, NodeId};
use serde::Serialize;

/// So many edges are derived anew, or set up for the schedulers' own judgement, for one problem at most: some seconds.
const EDGES_MAX: usize = 200_000;

/// So many in all where there are several problems.
const EDGES_IN_ALL: usize = 600_000;

/// Of what is left, one of many problems may use this part: the first are looked into in earnest, rather than all in vain.
const PART: usize = 8;

/// With fewer, looking for anything is not worth beginning.
const EDGES_MIN: usize = 4_000;

/// What would help one who does not receive what it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Who it is.
    pub node: String,
    /// Remedies, the nearest first. Empty if none of those looked for helps.
    pub remedies: Vec<Remedy>,
    /// Whether the search came to its end.
    pub search: Search,
}

/// Single remedies after which everybody receives what it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForAll {
    /// Remedies, the nearest first. Empty if none of those looked for helps everybody.
    pub remedies: Vec<Remedy>,
    /// Whether the search came to its end.
    pub search: Search,
}

/// What would help all who do not receive what they need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counsel {
    /// What mends all problems at once. None where there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub everybody: Option<ForAll>,
    /// What would help each of them, in the order of the findings.
    pub each: Vec<Advice>,
}

/// How far a search came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// All that was meant to be tried was tried.
    Finished,
    /// The hierarchy is so large that not everything was tried.
    CutShort,
    /// Nothing was tried: all effort went into other problems.
    NotBegun,
}

/// Looks for remedies against the first finding of a failure of `hierarchy`. No scheduler itself is asked.
///
/// # Panics
/// If the failure is not one of this hierarchy.
pub fn advise(hierarchy: &Hierarchy, failure: &Failure) -> Advice {
    let graph = Graph::new(hierarchy).expect("a hierarchy that was derived makes sense");
    let judge = &mut |_: &Hierarchy| Ruling::default();
    let before = Objections::of(hierarchy, failure, judge);
    about(&Case { graph: &graph, failure, before: &before }, judge, 0, EDGES_MAX).0
}

/// Looks for remedies against every finding of a failure of `hierarchy`, and against all at once where there are several.
/// `judge` is asked about every change that is otherwise sure to help; `progress` is told how many searches are done, and of how many.
///
/// # Panics
/// If the failure is not one of this hierarchy.
pub fn counsel(
    hierarchy: &Hierarchy,
    failure: &Failure,
    judge: &mut Judge<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> Counsel {
    let graph = Graph::new(hierarchy).expect("a hierarchy that was derived makes sense");
    let before = Objections::of(hierarchy, failure, judge);
    counsel_within(&Case { graph: &graph, failure, before: &before }, judge, EDGES_IN_ALL, progress)
}

fn counsel_within(
    case: &Case<'_, '_>,
    judge: &mut Judge<'_>,
    edges: usize,
    progress: &mut dyn FnMut(usize, usize),
) -> Counsel {
    let failure = case.failure;
    let problems = failure.findings.len();
    if problems == 1 {
        progress(0, 1);
        return Counsel { everybody: None, each: vec![about(case, judge, 0, edges.min(EDGES_MAX)).0] };
    }
    progress(0, problems + 1);
    let (mut for_all, unused) = at_once(case, judge, edges / 3);
    let mut left = edges - edges / 3 + unused;
    let mut each = Vec::with_capacity(problems);
    for finding in 0..problems {
        progress(finding + 1, problems + 1);
        if left < EDGES_MIN {
            let node = failure.findings[finding].node.clone();
            each.push(Advice { node, remedies: Vec::new(), search: Search::NotBegun });
            continue;
        }
        let part = (left / (problems - finding).min(PART)).clamp(EDGES_MIN, EDGES_MAX);
        let (advice, unused) = about(case, judge, finding, part);
        left -= part - unused;
        each.push(advice);
    }
    let holds = |remedy: &&Remedy| remedy.effect == Effect::Holds;
    for remedy in each.iter().flat_map(|advice| advice.remedies.iter().filter(holds)) {
        if !for_all.remedies.iter().any(|known| known.changes == remedy.changes) {
            for_all.remedies.push(remedy.clone());
        }
    }
    nearest_first(&mut for_all.remedies);
    Counsel { everybody: Some(for_all), each }
}

fn nearest_first(remedies: &mut [Remedy]) {
    remedies.sort_by(|one, other| {
        (one.effect, one.class, &one.distance).cmp(&(other.effect, other.class, &other.distance))
    });
}

/// What helps the node of one finding, and how many of `edges` were not needed for that.
fn about(case: &Case<'_, '_>, judge: &mut Judge<'_>, finding: usize, edges: usize) -> (Advice, usize) {
    let finding = &case.failure.findings[finding];
    let node = case.graph.named(&finding.node).expect("the failure is one of this hierarchy");
    let mut trial = Trial::new(case, judge, Goal::Node(node), edges);
    look_for(&mut trial, node, &finding.problem);
    let (search, unused) = (trial.search(), trial.edges_left());
    let mut remedies = trial.into_remedies();
    nearest_first(&mut remedies);
    (Advice { node: finding.node.clone(), remedies, search }, unused)
}

fn look_for(trial: &mut Trial<'_, '_>, node: NodeId, problem: &Problem) {
    match problem {
        Problem::Scheduler(Refused::Overload(_)) => {
            parameters::shrink_children(trial, node);
            structure::other_algorithms(trial);
        }
        Problem::Scheduler(Refused::Unacceptable { .. }) => {
            parameters::change_ancestors(trial);
            structure::rearrange(trial);
            structure::other_algorithms(trial);
            structure::move_elsewhere(trial, node);
        }
        Problem::Requirement { required, received } => {
            parameters::ask_for_it(trial, node, required);
            parameters::change_ancestors(trial);
            structure::rearrange(trial);
            structure::put_a_limit(trial, node, required);
            structure::other_algorithms(trial);
            structure::move_elsewhere(trial, node);
            requirement::weaken(trial, node, required, received);
        }
    }
}

/// What helps everybody and is in a place that all of them have above them, and how many of `edges` were not needed for that.
fn at_once(case: &Case<'_, '_>, judge: &mut Judge<'_>, edges: usize) -> (ForAll, usize) {
    let mut trial = Trial::new(case, judge, Goal::Everybody, edges);
    parameters::change_ancestors(&mut trial);
    parameters::lighten_siblings(&mut trial);
    structure::rearrange(&mut trial);
    structure::other_algorithms(&mut trial);
    if let Some(lowest) = trial.lineage().first() {
        structure::move_elsewhere(&mut trial, *lowest);
    }
    let (search, unused) = (trial.search(), trial.edges_left());
    (ForAll { remedies: trial.into_remedies(), search }, unused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derivation::{NotDerived, derive};

    /// Three threads that ask for less than they require.
    fn hierarchy() -> Hierarchy {
        let thread = |name: &str| serde_json::json!({"name": name, "requires": "RESBS 2 10"});
        let edge = |name: &str| {
            let request = serde_json::json!({"guarantee": "RESBH 1 10"});
            serde_json::json!({"parent": "R", "child": name, "request": request})
        };
        let hierarchy = serde_json::json!({
            "schedulers": [{"name": "R", "kind": "reservation"}],
            "threads": [thread("a"), thread("b"), thread("c")],
            "edges": [edge("a"), edge("b"), edge("c")],
        });
        serde_json::from_value(hierarchy).expect("a hierarchy")
    }

    fn searches(edges: usize) -> Vec<Search> {
        let hierarchy = hierarchy();
        let Err(NotDerived::Failed(failure)) = derive(&hierarchy) else { panic!("it was to fail") };
        let graph = Graph::new(&hierarchy).expect("it makes sense");
        let judge = &mut |_: &Hierarchy| Ruling::default();
        let before = Objections::of(&hierarchy, &failure, judge);
        let case = Case { graph: &graph, failure: &failure, before: &before };
        let mut told = Vec::new();
        let counsel = counsel_within(&case, judge, edges, &mut |done, searches| told.push((done, searches)));
        assert_eq!(told, [(0, 4), (1, 4), (2, 4), (3, 4)]);
        counsel.each.iter().map(|advice| advice.search).collect()
    }

    #[test]
    fn effort_is_bounded_over_all_problems() {
        assert_eq!(searches(EDGES_IN_ALL), [Search::Finished; 3]);
        assert_eq!(searches(EDGES_MIN / 2), [Search::NotBegun; 3]);
    }
}
