//! What lanes and threads receive at least: the supply functions of what schedulers promise.
//!
//! A supply function says how much processor time there is at least in every window of a length in which somebody wants to run all
//! along. An analysis needs its inverse: within which time an amount is sure to have been received.
//!
//! * A reservation of x in y is the periodic resource of Shin and Lee 2003: after at most 2 (y - x) without any it holds x in each y.
//!   Where every interval of length y holds x, after at most y - x.
//! * A share with an error is the linear supply bound of Mok, Feng and Chen 2001 (bounded delay): s t - e.
//! * The long run, and deadlines that somebody else announces, bound nothing by themselves.
//!
//! Schedulers count in whole nanoseconds at every level, so a promise may be short by [`ROUNDING_NS`].

use super::Obstacle;
use crate::recurrence::TIME_MAX;
use crate::task::Task;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive};
use talea_guarantee::exact::{Share, Span};
use talea_guarantee::guarantee::{Continuity, Guarantee, Reservation};
use talea_time::{Duration, Work};

/// By how much less may have been received than is promised, as amounts are whole nanoseconds at every level of a hierarchy.
pub const ROUNDING_NS: u64 = 100;

/// A share of a whole processor, in the units of [`Supply`].
const WHOLE: u64 = 1 << 62;

/// What somebody receives at least who wants to run all along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// A whole processor.
    Whole,
    /// After nothing for `delay`, the amount in every interval of the period's length.
    Periodic {
        /// Above zero and at most the period, in nanoseconds.
        amount: u64,
        /// In nanoseconds.
        period: u64,
        /// In nanoseconds.
        delay: u64,
    },
    /// In every interval of length t at least share t - error.
    Linear {
        /// Above zero, in units of 2^-62, rounded down.
        share: u64,
        /// In nanoseconds.
        error: u64,
    },
}

impl Supply {
    /// What a guarantee, which counts time of the real processor, says about every window.
    ///
    /// # Errors
    /// [`Obstacle::LongRun`], [`Obstacle::ByDeadlines`] or [`Obstacle::NothingPromised`] where it says nothing about any, and
    /// [`Obstacle::Overflow`] where its times are out of range.
    pub fn of(guarantee: &Guarantee) -> Result<Self, Obstacle> {
        match guarantee {
            Guarantee::All => Ok(Supply::Whole),
            Guarantee::Reservation(reservation) => Self::reserved(reservation),
            Guarantee::Psbe { share, error } => Self::linear(share, error),
            Guarantee::Ps(_) => Err(Obstacle::LongRun),
            Guarantee::Resu(_) => Err(Obstacle::ByDeadlines),
            Guarantee::Null => Err(Obstacle::NothingPromised),
        }
    }

    fn reserved(reservation: &Reservation) -> Result<Self, Obstacle> {
        let amount = whole_nanos(reservation.amount(), Rounded::Down)?;
        let period = whole_nanos(reservation.period(), Rounded::Up)?;
        if amount == 0 {
            return Err(Obstacle::NothingPromised);
        }
        let delay = match reservation.continuity() {
            Continuity::Basic => period - amount,
            Continuity::Continuous => 0,
        };
        Ok(Supply::Periodic { amount, period, delay: delay + ROUNDING_NS })
    }

    fn linear(share: &Share, error: &Span) -> Result<Self, Obstacle> {
        let share = (share.ratio() * BigRational::from_integer(BigInt::from(WHOLE))).to_integer();
        match share.to_u64() {
            None | Some(0) => Err(Obstacle::NothingPromised),
            Some(share) => {
                let error = whole_nanos(error, Rounded::Up)? + ROUNDING_NS;
                Ok(Supply::Linear { share: share.min(WHOLE), error })
            }
        }
    }

    /// The least length that every window has which is sure to hold `work`.
    #[inline]
    pub fn time_for(&self, work: u128) -> u128 {
        match *self {
            Supply::Whole => work,
            _ if work == 0 => 0,
            Supply::Periodic { amount, period, delay } => {
                let (amount, period) = (u128::from(amount), u128::from(period));
                let whole = (work - 1) / amount;
                let rest = work - whole * amount;
                u128::from(delay)
                    .saturating_add(whole.saturating_mul(period))
                    .saturating_add(period - amount + rest)
            }
            Supply::Linear { share, error } => {
                match (work + u128::from(error)).checked_mul(u128::from(WHOLE)) {
                    Some(product) => product.div_ceil(u128::from(share)),
                    None => u128::MAX,
                }
            }
        }
    }

    /// The part of a processor in the long run, for display.
    pub fn share(&self) -> f64 {
        self.line().0 as f64 / 2_f64.powi(64)
    }

    /// What every window of this length holds at least.
    pub fn within(&self, window: u64) -> u64 {
        match *self {
            Supply::Whole => window,
            Supply::Periodic { amount, period, delay } => {
                let window = window.saturating_sub(delay);
                let partial = (window % period).saturating_sub(period - amount);
                window / period * amount + partial
            }
            Supply::Linear { share, error } => {
                let fluid = u128::from(window) * u128::from(share) / u128::from(WHOLE);
                (fluid as u64).saturating_sub(error)
            }
        }
    }

    /// What is left of each of several processors where at any time one of them may be missing, as long as they give this together.
    pub(super) fn of_each(self, processors: usize) -> Result<Self, Obstacle> {
        let Supply::Periodic { amount, period, delay } = self else { return Ok(self) };
        let missing = (period - amount).checked_mul(processors as u64);
        match missing.and_then(|missing| period.checked_sub(missing)).filter(|amount| *amount > 0) {
            Some(amount) => Ok(Supply::Periodic { amount, period, delay }),
            None => Err(Obstacle::NothingPromised),
        }
    }

    /// What is missing to a whole processor, as a task that takes it; none where nothing is missing.
    pub(super) fn missing(&self) -> Option<Task> {
        let (missing, period) = match *self {
            Supply::Whole => return None,
            Supply::Periodic { amount, period, .. } => (period - amount, period),
            Supply::Linear { share, .. } => (WHOLE - share, WHOLE),
        };
        let time = |ns: u64| i64::try_from(ns).expect("it is a time");
        Task::new(Duration::from_nanos(time(period)), Work::from_nanos(time(missing))).ok()
    }

    /// A straight line below it: the share in units of 2^-64, rounded down, and the error.
    pub(super) fn line(&self) -> (u128, u128) {
        match *self {
            Supply::Whole => (1 << 64, 0),
            Supply::Periodic { amount, period, delay } => {
                let share = (u128::from(amount) << 64) / u128::from(period);
                let latest = u128::from(delay) + u128::from(period - amount);
                (share, (latest * share).div_ceil(1 << 64))
            }
            Supply::Linear { share, error } => (u128::from(share) << 2, u128::from(error)),
        }
    }
}

enum Rounded {
    Up,
    Down,
}

fn whole_nanos(span: &Span, rounded: Rounded) -> Result<u64, Obstacle> {
    let nanos = match rounded {
        Rounded::Down => span.nanos().floor(),
        Rounded::Up => span.nanos().ceil(),
    };
    debug_assert!(nanos.denom().is_one());
    // A quarter of the range leaves room for what is added.
    nanos.to_integer().to_u64().filter(|nanos| *nanos <= TIME_MAX / 4).ok_or(Obstacle::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn supply() -> impl Strategy<Value = Supply> {
        let periodic = (1_u64..60, 0_u64..60, 0_u64..80).prop_map(|(amount, more, delay)| Supply::Periodic {
            amount,
            period: amount + more,
            delay,
        });
        let linear = (1..=WHOLE, 0_u64..80)
            .prop_map(|(share, error)| Supply::Linear { share: share.max(WHOLE / 50), error });
        prop_oneof![Just(Supply::Whole), periodic, linear]
    }

    proptest! {
        #[test]
        fn the_time_for_an_amount_is_the_least_window_that_holds_it(supply in supply(), work in 1_u64..400) {
            let time = u64::try_from(supply.time_for(work.into())).unwrap();
            prop_assert!(supply.within(time) >= work);
            prop_assert!(supply.within(time - 1) < work);
        }

        #[test]
        fn the_line_lies_below(supply in supply(), window in 0_u64..2_000) {
            let (share, error) = supply.line();
            let line = (u128::from(window) * share) >> 64;
            prop_assert!(line.saturating_sub(error) <= u128::from(supply.within(window)));
        }

        /// By definition: the least that a window holds of a reservation whose scheduler serves each period as unkindly as it may.
        #[test]
        fn a_basic_reservation_holds_what_the_unkindest_scheduler_gives(
            amount in 1_u64..20, more in 0_u64..20, window in 0_u64..200
        ) {
            let period = amount + more;
            let supply = Supply::Periodic { amount, period, delay: period - amount };
            // The first period has its amount at its beginning, all others at their ends; the window begins behind the first amount.
            let served = |instant: u64| match instant / period {
                0 => instant < amount,
                _ => instant % period >= period - amount,
            };
            let received = (amount..amount + window).filter(|instant| served(*instant)).count() as u64;
            prop_assert_eq!(supply.within(window), received);
        }
    }

    #[test]
    fn guarantees_become_supplies() {
        let of = |text: &str| Supply::of(&text.parse().expect(text));
        let ms = 1_000_000;
        let periodic =
            |amount, period, delay| Ok(Supply::Periodic { amount, period, delay: delay + ROUNDING_NS });
        assert_eq!(of("ALL"), Ok(Supply::Whole));
        assert_eq!(of("RESBH 5ms 10ms"), periodic(5 * ms, 10 * ms, 5 * ms));
        assert_eq!(of("RESCS 5ms 10ms"), periodic(5 * ms, 10 * ms, 0));
        assert_eq!(of("PSBE 0.5 3ms"), Ok(Supply::Linear { share: WHOLE / 2, error: 3 * ms + ROUNDING_NS }));
        assert_eq!(of("PS 0.5"), Err(Obstacle::LongRun));
        assert_eq!(of("RESU 0.5"), Err(Obstacle::ByDeadlines));
        assert_eq!(of("NULL"), Err(Obstacle::NothingPromised));
    }
}
