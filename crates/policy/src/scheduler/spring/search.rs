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

/// What a search works on, and the plan that it finds. Kept from one search to the next, so that these do not allocate.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// By chain, the first piece that is not placed.
    next: Vec<usize>,
    /// By number of pieces placed, how many choices of the next have been tried.
    tried: Vec<usize>,
    /// What the plan can be extended by, best first.
    choices: Vec<(i128, Placed)>,
    plan: Vec<Placed>,
}

impl Workspace {
    /// Room for searches among so many pieces, each a chain.
    pub fn reserve(&mut self, pieces: usize) {
        reserve(&mut self.next, pieces);
        reserve(&mut self.tried, pieces + 1);
        reserve(&mut self.choices, pieces);
        reserve(&mut self.plan, pieces);
    }

    /// The plan that the last search found.
    pub fn plan(&self) -> &[Placed] {
        &self.plan
    }

    fn clear(&mut self, chains: usize) {
        self.next.clear();
        self.next.resize(chains, 0);
        self.tried.clear();
        self.tried.push(0);
        self.plan.clear();
    }
}

/// Lets `list` have so many elements without allocating.
pub fn reserve<T>(list: &mut Vec<T>, elements: usize) {
    list.reserve(elements.saturating_sub(list.len()));
}

/// Orders all pieces of so many `chains` from `at` on, those of one chain in their order, which is that of starts and deadlines; the
/// plan is in the workspace afterwards. `piece` is the piece of a chain by its number, if it has that many, and `fit` says when
/// at the earliest a piece can start from an instant on that its end meets its deadline.
///
/// # Errors
/// No order was found in this many choices, of which there are `effort` at most.
pub fn search(
    workspace: &mut Workspace,
    (chains, piece): (usize, impl Fn(usize, usize) -> Option<Constraint>),
    at: Instant,
    effort: u32,
    fit: impl Fn(&Constraint, Instant) -> Option<Instant>,
) -> Result<(), u32> {
    let mut left = effort;
    for (round, weight) in WEIGHTS.into_iter().enumerate() {
        let share = left / (WEIGHTS.len() - round) as u32;
        workspace.clear(chains);
        let mut search = Search { piece: &piece, at, weight, effort: share, fit: &fit, workspace };
        match search.run() {
            Ok(()) => return Ok(()),
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

struct Search<'a, P, F> {
    piece: &'a P,
    at: Instant,
    weight: i128,
    /// Choices left.
    effort: u32,
    fit: &'a F,
    workspace: &'a mut Workspace,
}

impl<P, F> Search<'_, P, F>
where
    P: Fn(usize, usize) -> Option<Constraint>,
    F: Fn(&Constraint, Instant) -> Option<Instant>,
{
    fn run(&mut self) -> Result<(), Stop> {
        loop {
            let is_alive = self.find_choices();
            let Workspace { next, tried, choices, plan } = &mut *self.workspace;
            if is_alive && choices.is_empty() {
                return Ok(());
            }
            let choice = tried.last_mut().expect("one for each length");
            match choices.get(*choice).filter(|_| is_alive) {
                Some(_) if self.effort == 0 => return Err(Stop::Effort),
                Some((_, placed)) => {
                    self.effort -= 1;
                    *choice += 1;
                    next[placed.chain] += 1;
                    plan.push(*placed);
                    tried.push(0);
                }
                None => {
                    tried.pop();
                    let last = plan.pop().ok_or(Stop::Exhausted)?;
                    next[last.chain] -= 1;
                }
            }
        }
    }

    /// Finds what the plan can be extended by, best first. Returns whether everything can still make it.
    fn find_choices(&mut self) -> bool {
        let Workspace { next, choices, plan, .. } = &mut *self.workspace;
        let at = plan.last().map_or(self.at, |last| last.end);
        choices.clear();
        for (chain, next) in next.iter().enumerate() {
            // Later pieces of a chain have later deadlines, and no more to do: if this one can make it, so can they.
            let Some(piece) = (self.piece)(chain, *next) else { continue };
            let Some(start) = (self.fit)(&piece, piece.start.max(at)) else { return false };
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
            let mut workspace = Workspace::default();
            let pieces = |chain: usize, number: usize| chains[chain].get(number).copied();
            let found = search(&mut workspace, (chains.len(), pieces), Instant::ZERO, 10_000, anywhere);
            prop_assert_eq!(found.is_ok(), feasible);
            if found.is_ok() {
                let plan = workspace.plan();
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
