//! Planning on arrival (Ramamritham and Stankovic 1989; Stankovic et al. 1999, the Spring kernel).
//!
//! A child asks with a message for a guarantee for one piece of work: start, deadline, worst-case execution time. The
//! scheduler looks for an order of all that is accepted and the new piece, each run to its end, in which everything meets its
//! deadline; if it finds one, that is the plan from now on, else the piece is refused and the plan stays. The search extends a partial plan by
//! the piece with the least `deadline + earliest start`, never by one after which another cannot make it any more, and goes back a
//! limited number of times: an order may exist that is not found.
//!
//! A piece whose turn it is starts as soon as it may, at the latest when planned, and keeps the processor. It loses its guarantee, and only
//! that, when its planned time is over. Everybody without a guarantee runs in turn when no piece does.
//!
//! ALL or RESU becomes, for each accepted piece, that it is done by its deadline. Costs a look at every child per notification; a
//! message costs at most `effort` choices among the accepted pieces.
//!
//! Do not use it for endless work, nor where refusals come too late to do something else instead.

use super::round_robin::Turns;
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use crate::hierarchy::{Constraint, Context, Parameters, Refusal, Shortage};
use talea_time::{Instant, Work};

/// The rule. Children register with [`Parameters::None`] and send [`Message::Constrain`](crate::hierarchy::Message).
#[derive(Clone, Debug)]
pub struct Spring {
    quantum: Work,
    effort: u32,
    turns: Turns,
    /// What is to be ordered, and in a plan the first `placed` of it in order. As long as there are children.
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    place: usize,
    constraint: Constraint,
    planned: (Instant, Instant),
}

/// A child's accepted piece of work and turn.
#[derive(Clone, Copy, Debug)]
pub struct Guaranteed {
    piece: Option<Accepted>,
    turn: u64,
    slice: Work,
}

#[derive(Clone, Copy, Debug)]
struct Accepted {
    constraint: Constraint,
    left: Work,
    /// Start and end in the plan.
    planned: (Instant, Instant),
}

impl Guaranteed {
    /// When the accepted piece is to run at the latest.
    pub fn planned(&self) -> Option<(Instant, Instant)> {
        self.piece.map(|piece| piece.planned)
    }
}

/// Orders `pieces` from `at` on. Returns how many choices are left of `effort`, or nothing if no order was found.
fn order(pieces: &mut [Piece], at: Instant, effort: u32) -> Option<u32> {
    let mut effort = effort;
    extend(pieces, 0, at, &mut effort).then_some(effort)
}

/// Extends the plan that is the first `placed` of `pieces` and ends at `at`.
fn extend(pieces: &mut [Piece], placed: usize, at: Instant, effort: &mut u32) -> bool {
    let earliest = |piece: &Piece| piece.constraint.start.max(at);
    let end = |piece: &Piece| earliest(piece) + piece.constraint.work.at_full_speed();
    if pieces[placed..].iter().any(|piece| end(piece) > piece.constraint.deadline) {
        return false;
    }
    if placed == pieces.len() {
        return true;
    }
    // Selection sort of what is left, one choice at a time: the next best only if the best leads nowhere.
    for choice in placed..pieces.len() {
        if *effort == 0 {
            return false;
        }
        *effort -= 1;
        let value = |piece: &Piece| {
            let (deadline, start) = (piece.constraint.deadline.as_nanos(), earliest(piece).as_nanos());
            (i128::from(deadline) + i128::from(start), piece.place)
        };
        pieces[placed..].sort_unstable_by_key(value);
        pieces.swap(placed, choice);
        let (start, end) = (earliest(&pieces[placed]), end(&pieces[placed]));
        pieces[placed].planned = (start, end);
        if extend(pieces, placed + 1, end, effort) {
            return true;
        }
    }
    false
}

impl Spring {
    /// A scheduler that tries at most `effort` choices per message; those without a guarantee share with this quantum.
    pub fn scheduler(effort: u32, quantum: Work) -> Uniprocessor<Self> {
        Uniprocessor::new(Spring { quantum, effort, turns: Turns::default(), pieces: Vec::new() })
    }

    /// The accepted piece whose turn it is.
    fn first(clients: &Clients<Guaranteed>) -> Option<(usize, Accepted)> {
        let accepted = clients.accounts().enumerate();
        let accepted = accepted.filter_map(|(place, account)| account.piece.map(|piece| (place, piece)));
        accepted.min_by_key(|(_, piece)| piece.planned.0)
    }
}

fn has_started(piece: &Accepted) -> bool {
    piece.left < piece.constraint.work
}

impl Rule for Spring {
    type Account = Guaranteed;

    fn kind(&self) -> &'static str {
        "spring"
    }

    fn admit(
        &mut self,
        _cx: &Context<'_>,
        _clients: &Clients<Guaranteed>,
        given: Parameters,
    ) -> Result<Guaranteed, Refusal> {
        match given {
            Parameters::None => Ok(Guaranteed { piece: None, turn: 0, slice: self.quantum }),
            _ => Err(Refusal::unacceptable(self.kind(), "no parameters", given)),
        }
    }

    fn regroup(&mut self, _cx: &Context<'_>, clients: &mut Clients<Guaranteed>) {
        self.pieces.reserve(clients.len());
    }

    fn constrain(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Guaranteed>,
        place: usize,
        constraint: Constraint,
    ) -> Result<(), Refusal> {
        if clients.account(place).piece.is_some() {
            return Err(Shortage::Table { most: 1, what: "accepted piece of work of a child" }.into());
        }
        self.pieces.clear();
        let mut free_from = cx.now();
        for (place, account) in clients.accounts().enumerate() {
            match account.piece {
                Some(piece) if has_started(&piece) => {
                    free_from = cx.now() + piece.left.at_full_speed();
                }
                Some(Accepted { constraint, planned, .. }) => {
                    self.pieces.push(Piece { place, constraint, planned });
                }
                None => {}
            }
        }
        let planned = (constraint.start, constraint.deadline);
        self.pieces.push(Piece { place, constraint, planned });
        if order(&mut self.pieces, free_from, self.effort).is_none() {
            return Err(Shortage::Order { pieces: self.pieces.len(), tried: self.effort }.into());
        }
        for piece in &self.pieces {
            let accepted = Accepted {
                constraint: piece.constraint,
                left: piece.constraint.work,
                planned: piece.planned,
            };
            clients.account_mut(piece.place).piece = Some(accepted);
        }
        Ok(())
    }

    fn woke(&mut self, _cx: &Context<'_>, clients: &mut Clients<Guaranteed>, place: usize) {
        let account = clients.account_mut(place);
        (account.turn, account.slice) = (self.turns.next(), self.quantum);
    }

    fn slept(&mut self, _cx: &Context<'_>, clients: &mut Clients<Guaranteed>, place: usize) {
        let account = clients.account_mut(place);
        account.piece = account.piece.filter(|piece| !has_started(piece));
    }

    fn ran(&mut self, cx: &Context<'_>, clients: &mut Clients<Guaranteed>, place: usize, used: Work) {
        let first = Self::first(clients).map(|(first, _)| first);
        let account = clients.account_mut(place);
        match &mut account.piece {
            Some(piece) if first == Some(place) && piece.constraint.start < cx.now() => piece.left -= used,
            _ => {
                account.slice -= used;
                if account.slice <= Work::ZERO {
                    (account.turn, account.slice) = (self.turns.next(), self.quantum);
                }
            }
        }
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Guaranteed>) {
        for account in clients.accounts_mut() {
            let over = |piece: &Accepted| piece.left <= Work::ZERO || piece.planned.1 <= cx.now();
            account.piece = account.piece.filter(|piece| !over(piece));
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Guaranteed>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let first = Self::first(clients).filter(|(_, piece)| piece.constraint.start <= cx.now());
        let first = first.map(|(place, _)| place).filter(|place| clients.wants(cx, *place));
        let in_turn = || clients.wanting(cx).min_by_key(|(_, account)| account.turn).map(|(place, _)| place);
        first.or_else(in_turn)
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Guaranteed>, stint: Option<Stint>) -> Option<Instant> {
        let stint = stint?;
        let first = Self::first(clients);
        let of_piece = first.map(|(place, piece)| match piece.constraint.start > cx.now() {
            true => piece.constraint.start,
            false if place == stint.place => piece.planned.1.min(cx.now() + piece.left.at_full_speed()),
            false => piece.planned.1,
        });
        let runs_piece =
            first.is_some_and(|(place, piece)| place == stint.place && piece.constraint.start <= cx.now());
        let slice = (!runs_piece).then(|| cx.now() + clients.account(stint.place).slice.at_full_speed());
        of_piece.into_iter().chain(slice).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(list: &[(i64, i64, i64)]) -> Vec<Piece> {
        let at = Instant::from_nanos;
        let piece = |(place, &(start, deadline, work)): (usize, &(i64, i64, i64))| {
            let constraint =
                Constraint { start: at(start), deadline: at(deadline), work: Work::from_nanos(work) };
            Piece { place, constraint, planned: (at(0), at(0)) }
        };
        list.iter().enumerate().map(piece).collect()
    }

    /// Whether any order works.
    fn is_feasible(pieces: &[Piece], at: Instant) -> bool {
        pieces.is_empty()
            || (0..pieces.len()).any(|first| {
                let mut rest = pieces.to_vec();
                let piece = rest.remove(first).constraint;
                let end = piece.start.max(at) + piece.work.at_full_speed();
                end <= piece.deadline && is_feasible(&rest, end)
            })
    }

    proptest! {
        #[test]
        fn a_plan_is_found_exactly_if_there_is_one(
            list in proptest::collection::vec((0..12i64, 1..25i64, 1..6i64), 1..6),
        ) {
            let mut pieces = pieces(&list);
            let feasible = is_feasible(&pieces, Instant::ZERO);
            let found = order(&mut pieces, Instant::ZERO, 10_000).is_some();
            prop_assert_eq!(found, feasible);
            if found {
                prop_assert!(pieces.iter().all(|piece| piece.planned.1 <= piece.constraint.deadline));
                prop_assert!(pieces.is_sorted_by(|one, next| one.planned.1 <= next.planned.0));
            }
        }
    }
}
