//! The search for an order of pieces of work, each run to its end, in which everything meets its deadline.
//!
//! A plan is extended piece by piece: by the one with the least value, never by one after which another cannot make it any
//! more; where none is left to try, the last one is taken back. The value of a piece is its deadline plus its earliest start, and
//! because no weighting of the two is best for all sets of pieces, the start counts once,
//! and if nothing was found, more: eight times, which leaves less time idle, and sixty-four times. An order may exist
//! that is not found in the choices there are.

use crate::hierarchy::Constraint;
use talea_time::Instant;

/// How often the earliest start counts beside the deadline.
const WEIGHTS: [i128; 3] = [1, 8, 64];

/// A piece of work in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Which of the chains it is the next piece of.
    pub chain: usize,
    /// When it starts.
    pub start: Instant,
    /// When it is over.
    pub end: Instant,
}

/// Orders all pieces of all `chains` from `at` on, those of one chain in their order, which is that of starts and deadlines. `fit` says
/// when at the earliest a piece can start from an instant on that its end meets its deadline.
///
/// # Errors
/// No order was found in this many choices, of which there are `effort` at most.
pub fn search(
    chains: &[Vec<Constraint>],
    at: Instant,
    effort: u32,
    fit: impl Fn(&Constraint, Instant) -> Option<Instant>,
) -> Result<Vec<Placed>, u32> {
    let mut left = effort;
    for (round, weight) in WEIGHTS.into_iter().enumerate() {
        let share = left / (WEIGHTS.len() - round) as u32;
        let mut search = Search { chains, at, weight, effort: share, fit: &fit, next: vec![0; chains.len()] };
        match search.run() {
            Ok(placed) => return Ok(placed),
            Err(Stop::Exhausted) => return Err(effort - left + share - search.effort),
            Err(Stop::Effort) => left -= share,
        }
    }
    Err(effort)
}

/// Why a search ended without an order.
enum Stop {
    /// There is none.
    Exhausted,
    /// Nothing may be tried any more.
    Effort,
}

struct Search<'a, F> {
    chains: &'a [Vec<Constraint>],
    at: Instant,
    weight: i128,
    /// Choices left.
    effort: u32,
    fit: &'a F,
    /// By chain, the first piece that is not placed.
    next: Vec<usize>,
}

impl<F: Fn(&Constraint, Instant) -> Option<Instant>> Search<'_, F> {
    fn run(&mut self) -> Result<Vec<Placed>, Stop> {
        let mut plan: Vec<Placed> = Vec::with_capacity(self.chains.iter().map(Vec::len).sum());
        // By number of pieces placed, how many choices of the next have been tried.
        let mut tried = vec![0];
        let mut choices = Vec::with_capacity(self.chains.len());
        loop {
            let is_alive = self.find_choices(plan.last().map_or(self.at, |last| last.end), &mut choices);
            if is_alive && choices.is_empty() {
                return Ok(plan);
            }
            let choice = tried.last_mut().expect("one for each length");
            match choices.get(*choice).filter(|_| is_alive) {
                Some(_) if self.effort == 0 => return Err(Stop::Effort),
                Some((_, placed)) => {
                    self.effort -= 1;
                    *choice += 1;
                    self.next[placed.chain] += 1;
                    plan.push(*placed);
                    tried.push(0);
                }
                None => {
                    tried.pop();
                    let last = plan.pop().ok_or(Stop::Exhausted)?;
                    self.next[last.chain] -= 1;
                }
            }
        }
    }

    /// Finds what the plan that ends at `at` can be extended by, best first. Returns whether everything can still make it.
    fn find_choices(&self, at: Instant, choices: &mut Vec<(i128, Placed)>) -> bool {
        choices.clear();
        for (chain, pieces) in self.chains.iter().enumerate() {
            // Later pieces of a chain have later deadlines, and no more to do: if this one can make it, so can they.
            let Some(piece) = pieces.get(self.next[chain]) else { continue };
            let Some(start) = (self.fit)(piece, piece.start.max(at)) else { return false };
            let end = start + piece.work.at_full_speed();
            let value = i128::from(piece.deadline.as_nanos()) + self.weight * i128::from(start.as_nanos());
            choices.push((value, Placed { chain, start, end }));
        }
        choices.sort_unstable_by_key(|(value, placed)| (*value, placed.chain));
        true
    }
}

/// The earliest start from `from` on of what is not interrupted by anything.
pub fn anywhere(piece: &Constraint, from: Instant) -> Option<Instant> {
    (from.saturating_add(piece.work.at_full_speed()) <= piece.deadline).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use talea_time::Work;

    fn chains(list: &[(i64, i64, i64)]) -> Vec<Vec<Constraint>> {
        let at = Instant::from_nanos;
        let piece = |&(start, deadline, work): &(i64, i64, i64)| {
            vec![Constraint { start: at(start), deadline: at(deadline), work: Work::from_nanos(work) }]
        };
        list.iter().map(piece).collect()
    }

    /// Whether any order works.
    fn is_feasible(pieces: &[Vec<Constraint>], at: Instant) -> bool {
        pieces.is_empty()
            || (0..pieces.len()).any(|first| {
                let mut rest = pieces.to_vec();
                let piece = rest.remove(first)[0];
                let end = piece.start.max(at) + piece.work.at_full_speed();
                end <= piece.deadline && is_feasible(&rest, end)
            })
    }

    proptest! {
        #[test]
        fn a_plan_is_found_exactly_if_there_is_one(
            list in proptest::collection::vec((0..12i64, 1..25i64, 1..6i64), 1..6),
        ) {
            let chains = chains(&list);
            let feasible = is_feasible(&chains, Instant::ZERO);
            let found = search(&chains, Instant::ZERO, 10_000, anywhere);
            prop_assert_eq!(found.is_ok(), feasible);
            if let Ok(plan) = found {
                prop_assert!(plan.iter().all(|placed| placed.end <= chains[placed.chain][0].deadline));
                prop_assert!(plan.iter().all(|placed| placed.start >= chains[placed.chain][0].start));
                prop_assert!(plan.is_sorted_by(|one, next| one.end <= next.start));
                let mut all: Vec<usize> = plan.iter().map(|placed| placed.chain).collect();
                all.sort_unstable();
                prop_assert!(all.into_iter().eq(0..chains.len()));
            }
        }
    }
}
