//! Which parent's guarantee a join takes if the hierarchy leaves it open.
//!
//! A guarantee that is, or becomes, another parent's is no worse a choice than that one. What is left after that is
//! tried in the order of the edges, the join that was reached last first, as one counts. So the first choice with
//! which everybody receives what it needs is found if there is one.

use super::walk::{Outcome, walk};
use super::{Derivation, Failure};
use crate::guarantee::Guarantee;
use crate::hierarchy::{Graph, NodeId};
use crate::label::Label;

/// More ways than this are not tried. Each join with two incomparable parents doubles them.
const WAYS_MAX: usize = 4096;

/// The first derivation in which nobody fails, or what fails with the first choices.
pub(super) fn search(graph: &Graph<'_>, given: &[Label]) -> Result<Derivation, Box<Failure>> {
    let mut choices: Vec<Choice> = Vec::new();
    let mut first: Option<Outcome> = None;
    let mut alternatives = 0;
    loop {
        let outcome = with(graph, given, &mut choices);
        if outcome.findings.is_empty() {
            return Ok(outcome.derivation);
        }
        alternatives += 1;
        first.get_or_insert(outcome);
        if alternatives == WAYS_MAX || !advance(&mut choices) {
            break;
        }
    }
    let Outcome { derivation, findings } = first.expect("there is at least one way");
    Err(Box::new(Failure { findings, derived: derivation, alternatives }))
}

/// A decision about one join.
struct Choice {
    /// Positions of the guarantees that come into question.
    candidates: Vec<usize>,
    /// Which of them is taken.
    taken: usize,
}

/// Walks with the given choices for the first joins, and the first candidate for all others, which are added.
fn with(graph: &Graph<'_>, given: &[Label], choices: &mut Vec<Choice>) -> Outcome {
    let mut reached = 0;
    let mut decide = |_: NodeId, given: &[Label]| {
        if reached == choices.len() {
            choices.push(Choice { candidates: candidates(given), taken: 0 });
        }
        let choice = &choices[reached];
        reached += 1;
        choice.candidates[choice.taken]
    };
    walk(graph, given, &mut decide)
}

/// Takes the next candidate of the last join that has one, and forgets all joins after it.
fn advance(choices: &mut Vec<Choice>) -> bool {
    while let Some(last) = choices.last_mut() {
        if last.taken + 1 < last.candidates.len() {
            last.taken += 1;
            return true;
        }
        choices.pop();
    }
    false
}

/// The positions of guarantees that no other one makes superfluous.
fn candidates(given: &[Label]) -> Vec<usize> {
    let soft: Vec<Label> = given.iter().map(Label::softened).collect();
    // Everything becomes NULL, but the chain of rewrites need not be looked for.
    let becomes = |one: &Label, other: &Label| {
        *other.guarantee() == Guarantee::Null || one == other || one.reach(other).is_some()
    };
    let superfluous = |position: usize| {
        (0..soft.len()).any(|other| {
            other != position
                && becomes(&soft[other], &soft[position])
                && (other < position || !becomes(&soft[position], &soft[other]))
        })
    };
    (0..soft.len()).filter(|position| !superfluous(*position)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(given: &[&str]) -> Vec<usize> {
        let label = |text: &&str| Label::real(text.parse::<Guarantee>().expect("a guarantee"));
        candidates(&given.iter().map(label).collect::<Vec<_>>())
    }

    #[test]
    fn only_incomparable_guarantees_are_tried() {
        assert_eq!(left(&["NULL", "RESBH 10 20"]), [1]);
        assert_eq!(left(&["RESBH 10 20", "NULL"]), [0]);
        assert_eq!(left(&["NULL", "NULL"]), [0]);
        assert_eq!(left(&["RESBH 10 20", "ALL", "PS 0.9"]), [1]);
        assert_eq!(left(&["RESBH 10 20", "PS 0.9"]), [0, 1]);
        assert_eq!(left(&["RESBH 10 20", "RESBS 10 20"]), [0]);
        assert_eq!(left(&["PSBE 0.5 20", "PSBE 0.2 1"]), [0, 1]);
    }
}
