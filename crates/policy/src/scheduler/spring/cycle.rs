//! The cyclic plan of what is reserved: one piece of the budget, without interruption, in every period of every child.
//!
//! All periods count from one origin, and the plan repeats when they all begin together again. Its pieces are ordered by the search that
//! pieces of work are ordered by. Before that come the conditions of which people can see that they are necessary.
//!
//! A plan gives way to another of the same origin only at an instant at which every child has had its slot of the period by both or by
//! neither ([`transition`]): whoever was planned for before gets exactly one slot in each period across it.

use super::search::{Workspace, anywhere, search};
use crate::hierarchy::{Constraint, Fraction, Load, Shortage};
use crate::scheduler::slots::{Slots, Taken};
use std::collections::HashMap;
use talea_time::{Duration, Instant, Work};

/// Pieces that a plan holds.
pub const PIECES_MAX: usize = 4_096;

/// What a child reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Its number, which nobody had before: the owner of its slots.
    pub ticket: usize,
    pub budget: Work,
    pub period: Duration,
    /// Since when it reserves that. It counts on the periods that begin later.
    pub since: Instant,
}

impl Reserve {
    /// The beginning of the first of its periods from `instant` on.
    fn period_from(&self, origin: Instant, instant: Instant) -> Instant {
        let into = (instant - origin).as_nanos().rem_euclid(self.period.as_nanos());
        let rest = if into == 0 { 0 } else { self.period.as_nanos() - into };
        instant.saturating_add(Duration::from_nanos(rest))
    }
}

/// Whether what is reserved can be planned at all, as far as that is easily seen, and the length of the cycle if so.
///
/// # Errors
/// It is more than there is, pieces are too long for what others leave, or the cycle has too many pieces.
pub fn check(others: &[Reserve], new: &Reserve) -> Result<Duration, Shortage> {
    let share = |reserve: &Reserve| {
        Fraction::of(reserve.budget, reserve.period).expect("budgets and periods are above zero")
    };
    Load::of(others.iter().map(share)).admit(share(new), Fraction::ONE)?;
    for other in others {
        leaves_room(other, new)?;
        leaves_room(new, other)?;
    }
    let all = || others.iter().chain([new]);
    let too_long = Shortage::Cycle { most: PIECES_MAX };
    let length =
        all().try_fold(1, |length, reserve| least_common_multiple(length, reserve.period.as_nanos()));
    // Offsets are added to each other and to instants.
    let length = length.filter(|length| *length <= i64::MAX / 4).ok_or(too_long.clone())?;
    let pieces: i64 = all().map(|reserve| (length / reserve.period.as_nanos()).min(1 << 40)).sum();
    match pieces <= PIECES_MAX as i64 {
        true => Ok(Duration::from_nanos(length)),
        false => Err(too_long),
    }
}

/// Between two slots of `fixed` there are two periods without their budgets at most.
fn leaves_room(fixed: &Reserve, piece: &Reserve) -> Result<(), Shortage> {
    let gap = 2 * i128::from((fixed.period - fixed.budget.at_full_speed()).as_nanos());
    match i128::from(piece.budget.as_nanos()) <= gap {
        true => Ok(()),
        false => Err(Shortage::Piece {
            piece: piece.budget,
            budget: fixed.budget,
            period: fixed.period,
            gap: Duration::from_nanos(gap as i64),
        }),
    }
}

fn least_common_multiple(one: i64, other: i64) -> Option<i64> {
    let (mut divisor, mut rest) = (one, other);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one / divisor).checked_mul(other)
}

/// A new plan for all `reserves` with a cycle of `length`.
///
/// # Errors
/// None was found in this many choices.
pub fn plan(origin: Instant, length: Duration, reserves: &[Reserve], effort: u32) -> Result<Slots, u32> {
    let period = |reserve: &Reserve, number: i64| {
        let start = reserve.period.as_nanos() * number;
        let deadline = Instant::from_nanos(start + reserve.period.as_nanos());
        Constraint { start: Instant::from_nanos(start), deadline, work: reserve.budget }
    };
    let chain = |reserve: &Reserve| {
        let periods = length.as_nanos() / reserve.period.as_nanos();
        (0..periods).map(|number| period(reserve, number)).collect()
    };
    let chains: Vec<Vec<Constraint>> = reserves.iter().map(chain).collect();
    let mut workspace = Workspace::default();
    let piece = |chain: usize, number: usize| chains[chain].get(number).copied();
    search(&mut workspace, (chains.len(), piece), Instant::ZERO, effort, anywhere)?;
    let taken = workspace
        .plan()
        .iter()
        .map(|piece| (piece.start.as_nanos(), piece.end.as_nanos(), reserves[piece.chain].ticket));
    Ok(Slots::of(origin, length, &taken.collect::<Vec<_>>()))
}

/// The plan in which all that are in `old` keep their slots, and `new` gets one in each of its periods between them, if there is one.
/// The cycle may be longer than the periods need: it is a multiple of the old one.
pub fn beside(old: &Slots, new: &Reserve) -> Option<Slots> {
    let old_length = old.length().as_nanos();
    let length_ns = least_common_multiple(old_length, new.period.as_nanos())?;
    let repeats = (length_ns / old_length).saturating_mul(old.count() as i64);
    if length_ns > i64::MAX / 4
        || repeats.saturating_add(length_ns / new.period.as_nanos()) > PIECES_MAX as i64
    {
        return None;
    }
    let repeated = |cycle: i64| {
        let shift = cycle * old_length;
        old.taken().map(move |(start, end, owner)| (start + shift, end + shift, owner))
    };
    let mut taken: Vec<Taken> = (0..length_ns / old_length).flat_map(repeated).collect();
    let (budget, period) = (new.budget.as_nanos(), new.period.as_nanos());
    let mut added = Vec::new();
    let (mut at, mut others) = (0, taken.iter().peekable());
    for start in (0..length_ns).step_by(usize::try_from(period).ok()?) {
        at = at.max(start);
        while let Some((taken_from, taken_to, _)) = others.peek() {
            if *taken_from >= at + budget {
                break;
            }
            at = at.max(*taken_to);
            others.next();
        }
        if at + budget > start + period {
            return None;
        }
        added.push((at, at + budget, new.ticket));
        at += budget;
    }
    taken.extend(added);
    taken.sort_unstable();
    Some(Slots::of(old.origin(), Duration::from_nanos(length_ns), &taken))
}

/// The plan without the slots of those that `stay` says no of.
pub fn without(old: &Slots, stays: impl Fn(usize) -> bool) -> Slots {
    let taken: Vec<Taken> = old.taken().filter(|(_, _, owner)| stays(*owner)).collect();
    Slots::of(old.origin(), old.length(), &taken)
}

/// When `next` can take over from `current` from `earliest` on, both of one origin, so that all `reserves` of `next` keep what they count on.
pub fn transition(
    (current, next): (&Slots, &Slots),
    reserves: &[Reserve],
    now: Instant,
    earliest: Instant,
) -> Option<Instant> {
    let (before, after) = (Pieces::of(current), Pieces::of(next));
    // Who has no slots yet waits for the first of its whole periods, and not longer.
    let first =
        |reserve: &Reserve| after.of_period(reserve, reserve.period_from(next.origin(), reserve.since)).0;
    let newcomers = reserves.iter().filter(|reserve| !before.contains(reserve));
    let limit = newcomers.map(first).min().unwrap_or(Instant::MAX);
    let mut candidates = vec![now];
    for slots in [current, next] {
        candidates.extend(ends(slots, now, limit));
    }
    for reserve in reserves {
        let mut at = reserve.period_from(next.origin(), now);
        while at <= limit && candidates.len() < 8 * PIECES_MAX {
            candidates.push(at);
            at = at.saturating_add(reserve.period);
        }
    }
    candidates.sort_unstable();
    candidates.dedup();
    let incumbents = || reserves.iter().filter(|reserve| before.contains(reserve));
    let suits = |at: &Instant| incumbents().all(|reserve| is_served_once(&before, &after, reserve, *at));
    candidates.into_iter().filter(|at| (earliest..=limit).contains(at)).find(suits)
}

/// Ends of slots after `from`, up to `to`.
fn ends(slots: &Slots, from: Instant, to: Instant) -> impl Iterator<Item = Instant> {
    let end = |at: &Instant| Some(slots.at(*at).1);
    std::iter::successors(end(&from), end).take_while(move |at| *at <= to).take(4 * PIECES_MAX)
}

/// Whether the period of `reserve` in which `at` lies holds one whole slot if the plan changes at `at`.
fn is_served_once(before: &Pieces, after: &Pieces, reserve: &Reserve, at: Instant) -> bool {
    let next = reserve.period_from(after.origin, at);
    if next == at {
        return true;
    }
    let (old, new) =
        (before.of_period(reserve, next - reserve.period), after.of_period(reserve, next - reserve.period));
    old == new || (old.1 <= at && new.1 <= at) || (old.0 >= at && new.0 >= at)
}

/// The slots of a plan by owner, one for each period of the cycle in order.
struct Pieces {
    origin: Instant,
    by_ticket: HashMap<usize, Vec<(i64, i64)>>,
}

impl Pieces {
    fn of(slots: &Slots) -> Self {
        let mut by_ticket: HashMap<usize, Vec<(i64, i64)>> = HashMap::new();
        for (start, end, owner) in slots.taken() {
            by_ticket.entry(owner).or_default().push((start, end));
        }
        Pieces { origin: slots.origin(), by_ticket }
    }

    fn contains(&self, reserve: &Reserve) -> bool {
        self.by_ticket.contains_key(&reserve.ticket)
    }

    /// The slot of `reserve` in its period that begins at `start`.
    fn of_period(&self, reserve: &Reserve, start: Instant) -> (Instant, Instant) {
        let pieces = &self.by_ticket[&reserve.ticket];
        let periods = pieces.len() as i64;
        let number = (start - self.origin).as_nanos().div_euclid(reserve.period.as_nanos());
        let (from, to) = pieces[number.rem_euclid(periods) as usize];
        let cycle = number.div_euclid(periods) * periods * reserve.period.as_nanos();
        let at = |offset: i64| self.origin.saturating_add(Duration::from_nanos(cycle + offset));
        (at(from), at(to))
    }
}
