//! Where Rialto's reservations lie in its cycle, and whether what is free suffices for time constraints.

use crate::hierarchy::Constraint;
use crate::scheduler::slots::{Slots, Taken};
use talea_time::{Duration, Instant, Work};

/// What a reservation occupies: an amount at the same offsets in each of its periods.
#[derive(Clone, Copy, Debug)]
pub struct Reserve {
    pub place: usize,
    pub budget: Work,
    /// A power of two times the base, at most the cycle.
    pub period: Duration,
}

/// Places every reservation in the earliest free time of its period, those with the shortest period first.
///
/// What has been placed before repeats within the period of what comes next, so the free time of one period is that of
/// all, and everything fits whose shares add up to at most 1.
pub fn plan(length: Duration, mut reserves: Vec<Reserve>) -> Slots {
    reserves.sort_by_key(|reserve| (reserve.period, reserve.place));
    let mut taken: Vec<Taken> = Vec::new();
    for reserve in reserves {
        let period = reserve.period.as_nanos();
        let pieces = first_free(&taken, period, reserve.budget.as_nanos());
        for pass in 0..length.as_nanos() / period {
            let at = |(start, end): (i64, i64)| (start + pass * period, end + pass * period, reserve.place);
            taken.extend(pieces.iter().copied().map(at));
        }
        taken.sort_unstable();
    }
    Slots::of(Instant::ZERO, length, &taken)
}

/// More has to be done by a deadline than can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// The deadline.
    pub deadline: Instant,
    /// How much too much.
    pub missing: Work,
}

/// Whether the free time of `slots` is enough for all `constraints`: for every start and every deadline, what has to be done
/// between them is at most the free time between them. That is exact for earliest deadline first.
pub fn suffice(
    slots: &Slots,
    now: Instant,
    constraints: impl Iterator<Item = Constraint> + Clone,
) -> Result<(), Overload> {
    for from in constraints.clone().map(|constraint| constraint.start.max(now)) {
        for until in constraints.clone().map(|constraint| constraint.deadline).filter(|until| *until > from) {
            let inside =
                constraints.clone().filter(|one| one.start.max(now) >= from && one.deadline <= until);
            let demand: Work = inside.map(|one| one.work).sum();
            let missing = i128::from(demand.as_nanos()) - (slots.free_until(until) - slots.free_until(from));
            if missing > 0 {
                let missing = Work::from_nanos(i64::try_from(missing).unwrap_or(i64::MAX));
                return Err(Overload { deadline: until, missing });
            }
        }
    }
    Ok(())
}

/// The earliest free pieces of `0..period` that add up to `amount`.
fn first_free(taken: &[Taken], period: i64, amount: i64) -> Vec<(i64, i64)> {
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
            let slots = plan(Duration::from_nanos(64), reserves.clone());
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
            let slots = plan(Duration::from_nanos(64), reserves);
            let free = (from..from + length).filter(|at| slots.at(Instant::from_nanos(*at)).0.is_none()).count();
            let instants = (Instant::from_nanos(from), Instant::from_nanos(from + length));
            prop_assert_eq!(slots.free_until(instants.1) - slots.free_until(instants.0), free as i128);
        }
    }
}
