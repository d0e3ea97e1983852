//! The precomputed plan: a cycle of slots, each with an owner or free.

use crate::hierarchy::{Constraint, Shortage};
use talea_time::{Duration, Instant, Work};

/// `start..next start` of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    start: i64,
    owner: Option<usize>,
    /// Free time of the cycle before this slot.
    free_before: i64,
}

/// A cycle of slots that begins at multiples of its length on the clock.
#[derive(Clone, Debug)]
pub struct Slots {
    length: i64,
    /// From 0 on, without gaps.
    slots: Vec<Slot>,
    free: i64,
}

/// What a reservation occupies: an amount at the same offsets in each of its periods.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reserve {
    pub place: usize,
    pub budget: Work,
    /// A power of two times the base, at most the cycle.
    pub period: Duration,
}

impl Slots {
    /// The cycle of `length` in which nothing is reserved.
    pub fn empty(length: Duration) -> Self {
        let whole = Slot { start: 0, owner: None, free_before: 0 };
        Slots { length: length.as_nanos(), slots: vec![whole], free: length.as_nanos() }
    }

    /// Places every reservation in the earliest free time of its period, those with the shortest period first.
    ///
    /// What has been placed before repeats within the period of what comes next, so the free time of one period is that of
    /// all, and everything fits whose shares add up to at most 1.
    pub(super) fn plan(length: Duration, mut reserves: Vec<Reserve>) -> Self {
        reserves.sort_by_key(|reserve| (reserve.period, reserve.place));
        let mut taken: Vec<(i64, i64, usize)> = Vec::new();
        for reserve in reserves {
            let period = reserve.period.as_nanos();
            let pieces = first_free(&taken, period, reserve.budget.as_nanos());
            for pass in 0..length.as_nanos() / period {
                let at =
                    |(start, end): (i64, i64)| (start + pass * period, end + pass * period, reserve.place);
                taken.extend(pieces.iter().copied().map(at));
            }
            taken.sort_unstable();
        }
        Self::of(length.as_nanos(), &taken)
    }

    fn of(length: i64, taken: &[(i64, i64, usize)]) -> Self {
        let mut slots = Slots { length, slots: Vec::new(), free: 0 };
        let mut at = 0;
        for &(start, end, owner) in taken {
            if start > at {
                slots.push(at, start, None);
            }
            slots.push(start, end, Some(owner));
            at = end;
        }
        if at < length {
            slots.push(at, length, None);
        }
        slots
    }

    fn push(&mut self, start: i64, end: i64, owner: Option<usize>) {
        self.slots.push(Slot { start, owner, free_before: self.free });
        if owner.is_none() {
            self.free += end - start;
        }
    }

    fn index(&self, offset: i64) -> usize {
        self.slots.partition_point(|slot| slot.start <= offset) - 1
    }

    /// Who owns the processor at `now`, and until when that holds.
    pub fn at(&self, now: Instant) -> (Option<usize>, Instant) {
        let offset = now.as_nanos().rem_euclid(self.length);
        let index = self.index(offset);
        let end = self.slots.get(index + 1).map_or(self.length, |next| next.start);
        (self.slots[index].owner, now + Duration::from_nanos(end - offset))
    }

    /// Free time between the origin of the clock and `instant`.
    fn free_until(&self, instant: Instant) -> i128 {
        let (cycle, offset) =
            (instant.as_nanos().div_euclid(self.length), instant.as_nanos().rem_euclid(self.length));
        let slot = self.slots[self.index(offset)];
        let inside = if slot.owner.is_none() { offset - slot.start } else { 0 };
        i128::from(cycle) * i128::from(self.free) + i128::from(slot.free_before + inside)
    }

    /// Whether the free time is enough for all `constraints`: for every start and every deadline, what has to be done between them
    /// is at most the free time between them. That is exact for earliest deadline first.
    pub fn suffice(&self, now: Instant, constraints: &[Constraint]) -> Result<(), Shortage> {
        for from in constraints.iter().map(|constraint| constraint.start.max(now)) {
            for until in
                constraints.iter().map(|constraint| constraint.deadline).filter(|until| *until > from)
            {
                let inside =
                    constraints.iter().filter(|one| one.start.max(now) >= from && one.deadline <= until);
                let demand: Work = inside.map(|one| one.work).sum();
                let missing =
                    i128::from(demand.as_nanos()) - (self.free_until(until) - self.free_until(from));
                if missing > 0 {
                    let missing = Work::from_nanos(i64::try_from(missing).unwrap_or(i64::MAX));
                    return Err(Shortage::Demand { deadline: until, missing });
                }
            }
        }
        Ok(())
    }
}

/// The earliest free pieces of `0..period` that add up to `amount`.
fn first_free(taken: &[(i64, i64, usize)], period: i64, amount: i64) -> Vec<(i64, i64)> {
    let (mut pieces, mut at, mut left) = (Vec::new(), 0, amount);
    let inside = taken.iter().take_while(|(start, ..)| *start < period);
    for (start, end) in inside.map(|(start, end, _)| (*start, *end)).chain([(period, period)]) {
        if start > at && left > 0 {
            let piece = left.min(start - at);
            pieces.push((at, at + piece));
            left -= piece;
        }
        at = end;
    }
    assert_eq!(left, 0, "the admission test has left enough free time");
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reserves() -> impl Strategy<Value = Vec<Reserve>> {
        // Periods 8 to 64; budgets are cut to what is left of the cycle.
        proptest::collection::vec((0..4u32, 1..64i64), 0..6).prop_map(|wanted| {
            let mut left = 64;
            let mut reserves = Vec::new();
            for (place, (level, budget)) in wanted.into_iter().enumerate() {
                let period = 8 << level;
                let budget = budget.min(left * period / 64);
                if budget > 0 {
                    left -= budget * 64 / period;
                    let (budget, period) = (Work::from_nanos(budget), Duration::from_nanos(period));
                    reserves.push(Reserve { place, budget, period });
                }
            }
            reserves
        })
    }

    proptest! {
        /// Every window of the length of its period holds a reservation's budget exactly: RESC.
        #[test]
        fn every_window_holds_the_budget(reserves in reserves()) {
            let slots = Slots::plan(Duration::from_nanos(64), reserves.clone());
            let owner = |at: i64| slots.at(Instant::from_nanos(at)).0;
            for reserve in reserves {
                let period = reserve.period.as_nanos();
                for start in 0..64 {
                    let received = (start..start + period).filter(|at| owner(*at) == Some(reserve.place)).count();
                    prop_assert_eq!(received as i64, reserve.budget.as_nanos());
                }
            }
        }

        #[test]
        fn free_time_is_counted(reserves in reserves(), from in 0..200i64, length in 1..200i64) {
            let slots = Slots::plan(Duration::from_nanos(64), reserves);
            let free = (from..from + length).filter(|at| slots.at(Instant::from_nanos(*at)).0.is_none()).count();
            let instants = (Instant::from_nanos(from), Instant::from_nanos(from + length));
            prop_assert_eq!(slots.free_until(instants.1) - slots.free_until(instants.0), free as i128);
        }
    }
}
