//! Supply patterns and what they keep, straight from the definitions and without the algebra under test.
//!
//! A pattern is periodic: in slot i of each cycle the virtual processor is served or not. It begins somewhere in the
//! infinite past, so that every alignment occurs. Windows that begin and end at slots' borders are enough: between
//! borders supply and promise are both linear.

use num_bigint::BigInt;
use talea_guarantee::exact::{Ratio, Span};
use talea_guarantee::guarantee::{Continuity, Guarantee, Hardness};

/// One cycle of a periodic supply.
#[derive(Clone, Debug)]
pub struct Supply(pub Vec<bool>);

pub fn whole(number: u64) -> Ratio {
    Ratio::from_integer(BigInt::from(number))
}

impl Supply {
    fn cycle(&self) -> u64 {
        self.0.len() as u64
    }

    /// Slots served in `[start, start + length)`.
    fn served(&self, start: u64, length: u64) -> u64 {
        let prefix = |end: u64| {
            let in_cycle: u64 = self.0.iter().map(|served| u64::from(*served)).sum();
            let rest = (end % self.cycle()) as usize;
            let in_rest: u64 = self.0[..rest].iter().map(|served| u64::from(*served)).sum();
            (end / self.cycle()) * in_cycle + in_rest
        };
        prefix(start + length) - prefix(start)
    }

    /// Service in each window of `length`, one for each start within a cycle.
    fn windows(&self, length: u64) -> impl Iterator<Item = u64> + '_ {
        (0..self.cycle()).map(move |start| self.served(start, length))
    }

    /// Service in every period of `length` laid down from `start` on, over whole cycles of both.
    fn periods(&self, start: u64, length: u64) -> impl Iterator<Item = u64> + '_ {
        (0..self.cycle()).map(move |period| self.served(start + period * length, length))
    }

    /// Whether the supply keeps a promise in slots, by its definition. Periods are whole numbers of slots.
    pub fn keeps(&self, guarantee: &Guarantee) -> bool {
        let share = |wanted: &Ratio| whole(self.served(0, self.cycle())) >= wanted * whole(self.cycle());
        match guarantee {
            Guarantee::Null => true,
            Guarantee::All => self.0.iter().all(|served| *served),
            Guarantee::Ps(wanted) => share(wanted.ratio()),
            Guarantee::Psbe { share: wanted, error } => {
                let enough = |length: u64| {
                    let promised = wanted.ratio() * whole(length) - error.nanos();
                    self.windows(length).all(|served| whole(served) >= promised)
                };
                // After a cycle more, service and promise have grown by as much at least.
                share(wanted.ratio()) && (0..=2 * self.cycle()).all(enough)
            }
            Guarantee::Reservation(reservation) => {
                let amount = reservation.amount().nanos();
                let length = slots(reservation.period());
                let fits = |served: u64| match reservation.hardness() {
                    Hardness::Soft => whole(served) >= *amount,
                    Hardness::Hard => whole(served) == *amount,
                };
                match reservation.continuity() {
                    Continuity::Continuous => self.windows(length).all(fits),
                    Continuity::Basic => (0..length).any(|start| self.periods(start, length).all(fits)),
                }
            }
            Guarantee::Resu(rate) => {
                // With every sequence of deadlines: that is, at every instant.
                rate.is_none() || (rate.is_whole() && self.keeps(&Guarantee::All))
            }
        }
    }

    /// The least error with which the supply keeps a share of `wanted`.
    pub fn error(&self, wanted: &Ratio) -> Span {
        let behind = (0..=2 * self.cycle()).flat_map(|length| {
            self.windows(length).map(move |served| wanted * whole(length) - whole(served)).collect::<Vec<_>>()
        });
        Span::new(behind.max().expect("there are windows")).expect("no window, no error")
    }

    /// The share in the long run.
    pub fn share(&self) -> Ratio {
        whole(self.served(0, self.cycle())) / whole(self.cycle())
    }
}

/// A whole number of slots.
pub fn slots(span: &Span) -> u64 {
    assert!(span.nanos().is_integer(), "{span} is no whole number of slots");
    span.nanos().to_integer().try_into().expect("few slots")
}

mod strategies {
    use super::Supply;
    use proptest::prelude::*;

    /// Any pattern at all.
    pub fn any_supply() -> impl Strategy<Value = Supply> {
        prop::collection::vec(any::<bool>(), 1..14).prop_map(Supply)
    }

    /// Amount, period and a pattern in which each of some periods holds the amount, and more where `more` says so.
    pub fn basic(more: bool) -> impl Strategy<Value = (u64, u64, Supply)> {
        (1_u64..8).prop_flat_map(|period| (1..=period, Just(period))).prop_flat_map(
            move |(amount, period)| {
                let one =
                    prop::sample::subsequence((0..period as usize).collect::<Vec<_>>(), amount as usize);
                let extra = prop::collection::vec(any::<bool>(), period as usize);
                let one = (one, extra).prop_map(move |(served, extra)| {
                    (0..period as usize).map(|slot| served.contains(&slot) || (more && extra[slot])).collect()
                });
                let several = prop::collection::vec(one, 1..5);
                several.prop_map(move |periods: Vec<Vec<bool>>| (amount, period, Supply(periods.concat())))
            },
        )
    }
}

pub use strategies::{any_supply, basic};

mod tests {
    use super::*;

    fn supply(pattern: &str) -> Supply {
        Supply(pattern.chars().map(|slot| slot == '#').collect())
    }

    /// A guarantee in slots, written with ns.
    fn keeps(pattern: &str, text: &str) -> bool {
        supply(pattern).keeps(&crate::sketch::guarantee(text))
    }

    #[test]
    fn the_definitions_on_patterns_made_by_hand() {
        // The second figure of the paper: 3 of every 8, wherever or always at the same place.
        assert!(keeps("###.....", "RESCH 3ns 8ns"));
        assert!(keeps("###..........###", "RESBH 3ns 8ns"));
        assert!(!keeps("###..........###", "RESCS 3ns 8ns"));
        assert!(keeps("###..........###", "RESCS 3ns 13ns"));
        assert!(!keeps("###..........###", "RESCS 3ns 12ns"));
        // A maximum.
        assert!(!keeps("####....", "RESBH 3ns 8ns") && keeps("####....", "RESBS 3ns 8ns"));
        // A start chosen by the scheduler.
        assert!(keeps("#....##", "RESBH 3ns 7ns"));
        assert!(keeps("#.", "PSBE 1/2 1/2ns") && !keeps("#.", "PSBE 1/2 1/3ns"));
        assert!(keeps("#..", "PS 1/3") && !keeps("#..", "PS 0.34"));
        assert!(keeps("##", "ALL") && !keeps("#.", "ALL"));
    }
}
