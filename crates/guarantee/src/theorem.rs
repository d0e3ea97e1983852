//! The six theorems of Regehr and Stankovic (2001, section 5.2) as functions of exact parameters.
//!
//! Each takes amounts in time of the whole processor. A reservation below a uniformly slower processor is
//! converted first ([`Reservation::slowed`]): the slower processor delivers its time evenly between
//! deadlines, not at every instant, so the gaps that the theorems bound are those of the whole processor.

use crate::exact::{Share, Span};
use crate::guarantee::{Continuity, Guarantee, Hardness, Reservation};
use serde::Serialize;
use std::fmt;

/// One of the six.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Theorem {
    /// A basic reservation is a continuous one with a longer period.
    One,
    /// A basic reservation is no hard continuous one, unless it is the whole processor.
    Two,
    /// A continuous reservation is a share with bounded error.
    Three,
    /// A basic reservation is a share with twice that error.
    Four,
    /// A reservation is a share in the long run.
    Five,
    /// A share with bounded error is a soft reservation of any period that is long enough.
    Six,
}

impl Theorem {
    /// The published number.
    pub const fn number(self) -> u8 {
        match self {
            Theorem::One => 1,
            Theorem::Two => 2,
            Theorem::Three => 3,
            Theorem::Four => 4,
            Theorem::Five => 5,
            Theorem::Six => 6,
        }
    }

    /// What it says.
    pub const fn statement(self) -> &'static str {
        match self {
            Theorem::One => "RESBH x y and RESBS x y are RESCS x (2y - x + c), for any c of zero or more",
            Theorem::Two => "neither RESBH x y nor RESBS x y is a hard continuous reservation, unless x = y",
            Theorem::Three => "RESCH x y and RESCS x y are PSBE x/y (x/y)(y - x)",
            Theorem::Four => "RESBH x y and RESBS x y are PSBE x/y 2(x/y)(y - x)",
            Theorem::Five => "any reservation of x in y is PS x/y",
            Theorem::Six => "PSBE s e is RESCS (ys - e) y and RESBS (ys - e) y, for any y of e/s or more",
        }
    }
}

impl fmt::Display for Theorem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Theorem {}", self.number())
    }
}

/// The time of each period that a reservation leaves to others.
fn gap(reservation: &Reservation) -> Span {
    reservation.period().checked_sub(reservation.amount()).expect("the amount is at most the period")
}

/// Theorem 1: the shortest interval, plus `slack`, of which every one holds the amount of a basic reservation.
///
/// At worst a period is served at its very beginning and the next at its very end, with 2(y - x) between them.
pub fn one(basic: &Reservation, slack: &Span) -> Span {
    &(basic.period() + &gap(basic)) + slack
}

/// Theorem 2: the hard continuous reservation that a basic one is if it is the whole processor.
pub fn two(basic: &Reservation) -> Option<Reservation> {
    let whole = basic.amount() == basic.period();
    whole.then(|| basic.as_kind(Continuity::Continuous, Hardness::Hard))
}

/// Theorem 3, for a continuous reservation.
pub fn three(continuous: &Reservation) -> Guarantee {
    let share = continuous.share();
    Guarantee::Psbe { error: &gap(continuous) * &share, share }
}

/// Theorem 4, for a basic reservation.
pub fn four(basic: &Reservation) -> Guarantee {
    let share = basic.share();
    Guarantee::Psbe { error: &(&gap(basic) * &share) * 2, share }
}

/// Theorem 5, for any reservation.
pub fn five(reservation: &Reservation) -> Guarantee {
    Guarantee::Ps(reservation.share())
}

/// Theorem 6: the amount of a soft reservation, basic or continuous, with this period.
///
/// # Errors
/// The shortest period of which every one can be promised anything, if this one is shorter; none if the share
/// is nothing but the error is not.
pub fn six(share: &Share, error: &Span, period: &Span) -> Result<Span, Option<Span>> {
    let amount = (period * share).checked_sub(error);
    amount.ok_or_else(|| (!share.is_none()).then(|| error / share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::ratio;

    fn basic(amount: u64, period: u64) -> Reservation {
        let (amount, period) = (Span::from_millis(amount), Span::from_millis(period));
        Reservation::new(Continuity::Basic, Hardness::Hard, amount, period).expect("it fits")
    }

    /// Section 5.3: RESBS 10, 20 becomes PSBE 0.5, 10.
    #[test]
    fn the_example_of_section_5_3() {
        let share = Share::new(ratio(1, 2)).expect("a half");
        assert_eq!(four(&basic(10, 20)), Guarantee::Psbe { share, error: Span::from_millis(10) });
        assert_eq!(one(&basic(5, 53), &Span::zero()), Span::from_millis(101));
    }

    #[test]
    fn the_sixth_needs_a_period_longer_than_the_error_lasts() {
        let (share, error) = (Share::new(ratio(2, 5)).expect("a share"), Span::from_millis(2));
        assert_eq!(six(&share, &error, &Span::from_millis(4)), Err(Some(Span::from_millis(5))));
        assert_eq!(six(&share, &error, &Span::from_millis(5)), Ok(Span::zero()));
        assert_eq!(six(&share, &error, &Span::from_millis(10)), Ok(Span::from_millis(2)));
        assert_eq!(six(&Share::none(), &error, &Span::from_millis(10)), Err(None));
    }
}
