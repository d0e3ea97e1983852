//! What a scheduler promises to a virtual processor (Regehr and Stankovic 2001, section 4).
//!
//! A guarantee is a statement about supply, the processor time that the virtual processor receives for as long as
//! it wants to run:
//!
//! | Guarantee | Every supply that keeps it |
//! |---|---|
//! | `ALL` | is the whole processor |
//! | `RESBS x y` | holds at least x in each interval `[t + iy, t + (i+1)y]`, for some t that the scheduler chooses |
//! | `RESCS x y` | holds at least x in every interval of length y |
//! | `RESBH`, `RESCH` | the same, and never more than x in these intervals |
//! | `RESU r` | holds r (d' - d) between any two consecutive announced deadlines d, d' |
//! | `PSBE s e` | holds at least st - e in every interval of length t |
//! | `PS s` | approaches at least the share s in the long run |
//! | `NULL` | may be anything |
//!
//! Times are in nanoseconds and exact; shares are parts of one whole processor wherever they stand in a hierarchy.

use crate::exact::{Share, Span};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The nine kinds of guarantee, in the order of the published rewrite matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Kind {
    /// The whole processor.
    All,
    /// A uniformly slower processor.
    Resu,
    /// Basic hard reservation.
    Resbh,
    /// Basic soft reservation.
    Resbs,
    /// Continuous hard reservation.
    Resch,
    /// Continuous soft reservation.
    Rescs,
    /// Proportional share with bounded error.
    Psbe,
    /// Proportional share in the long run.
    Ps,
    /// Nothing.
    Null,
}

impl Kind {
    /// Every kind, in the order of the matrix.
    pub const EVERY: [Kind; 9] = [
        Kind::All,
        Kind::Resu,
        Kind::Resbh,
        Kind::Resbs,
        Kind::Resch,
        Kind::Rescs,
        Kind::Psbe,
        Kind::Ps,
        Kind::Null,
    ];

    /// The published name.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::All => "ALL",
            Kind::Resu => "RESU",
            Kind::Resbh => "RESBH",
            Kind::Resbs => "RESBS",
            Kind::Resch => "RESCH",
            Kind::Rescs => "RESCS",
            Kind::Psbe => "PSBE",
            Kind::Ps => "PS",
            Kind::Null => "NULL",
        }
    }

    /// The kind of that published name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::EVERY.into_iter().find(|kind| kind.name() == name)
    }

    /// What a reservation of this kind is, if it is one.
    pub const fn reservation(self) -> Option<(Continuity, Hardness)> {
        match self {
            Kind::Resbh => Some((Continuity::Basic, Hardness::Hard)),
            Kind::Resbs => Some((Continuity::Basic, Hardness::Soft)),
            Kind::Resch => Some((Continuity::Continuous, Hardness::Hard)),
            Kind::Rescs => Some((Continuity::Continuous, Hardness::Soft)),
            Kind::All | Kind::Resu | Kind::Psbe | Kind::Ps | Kind::Null => None,
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// In which intervals a reservation holds its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Continuity {
    /// In consecutive periods that the scheduler lays down.
    Basic,
    /// In every interval as long as the period.
    Continuous,
}

/// Whether a reservation is a maximum too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hardness {
    /// Never more than the amount.
    Hard,
    /// More is possible, and not promised.
    Soft,
}

/// A CPU reservation: an amount of processor time in every period.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reservation {
    continuity: Continuity,
    hardness: Hardness,
    /// At most the period.
    amount: Span,
    /// More than zero.
    period: Span,
}

/// Why there is no such reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReservationError {
    /// The period is zero.
    #[error("the period of a reservation is longer than zero")]
    NoPeriod,
    /// The amount does not fit into the period.
    #[error("a processor has no more time than passes: the amount of a reservation is at most its period")]
    AmountAbovePeriod,
}

impl Reservation {
    /// `amount` in every `period`.
    ///
    /// # Errors
    /// A period of zero, or an amount longer than the period.
    pub fn new(
        continuity: Continuity,
        hardness: Hardness,
        amount: Span,
        period: Span,
    ) -> Result<Self, ReservationError> {
        match () {
            () if period.is_zero() => Err(ReservationError::NoPeriod),
            () if amount > period => Err(ReservationError::AmountAbovePeriod),
            () => Ok(Reservation { continuity, hardness, amount, period }),
        }
    }

    /// In which intervals the amount is promised.
    pub fn continuity(&self) -> Continuity {
        self.continuity
    }

    /// Whether the amount is a maximum too.
    pub fn hardness(&self) -> Hardness {
        self.hardness
    }

    /// The processor time in every period.
    pub fn amount(&self) -> &Span {
        &self.amount
    }

    /// The period.
    pub fn period(&self) -> &Span {
        &self.period
    }

    /// `amount / period`.
    pub fn share(&self) -> Share {
        Share::new(self.amount.per(&self.period)).expect("the amount is at most the period")
    }

    /// One of the four kinds of reservation.
    pub fn kind(&self) -> Kind {
        match (self.continuity, self.hardness) {
            (Continuity::Basic, Hardness::Hard) => Kind::Resbh,
            (Continuity::Basic, Hardness::Soft) => Kind::Resbs,
            (Continuity::Continuous, Hardness::Hard) => Kind::Resch,
            (Continuity::Continuous, Hardness::Soft) => Kind::Rescs,
        }
    }

    /// The same numbers as a reservation of another kind.
    #[must_use]
    pub fn as_kind(&self, continuity: Continuity, hardness: Hardness) -> Reservation {
        Reservation { continuity, hardness, ..self.clone() }
    }

    /// The reservation of a processor of speed `pace`, counted in time of the whole processor.
    #[must_use]
    pub fn slowed(&self, pace: &Share) -> Reservation {
        Reservation { amount: &self.amount * pace, ..self.clone() }
    }
}

/// A guarantee with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guarantee {
    /// The whole processor.
    All,
    /// A uniformly slower processor of this rate.
    Resu(Share),
    /// One of the four reservations.
    Reservation(Reservation),
    /// A share that is never further behind than the error.
    Psbe {
        /// Long-run share.
        share: Share,
        /// How far the supply may be behind the share, in processor time.
        error: Span,
    },
    /// A share in the long run.
    Ps(Share),
    /// Nothing.
    Null,
}

impl Guarantee {
    /// The guarantee's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Guarantee::All => Kind::All,
            Guarantee::Resu(_) => Kind::Resu,
            Guarantee::Reservation(reservation) => reservation.kind(),
            Guarantee::Psbe { .. } => Kind::Psbe,
            Guarantee::Ps(_) => Kind::Ps,
            Guarantee::Null => Kind::Null,
        }
    }

    /// The part of a processor that the guarantee amounts to in the long run.
    pub fn share(&self) -> Share {
        match self {
            Guarantee::All => Share::whole(),
            Guarantee::Resu(share) | Guarantee::Psbe { share, .. } | Guarantee::Ps(share) => share.clone(),
            Guarantee::Reservation(reservation) => reservation.share(),
            Guarantee::Null => Share::none(),
        }
    }

    /// The reservation, if it is one.
    pub fn as_reservation(&self) -> Option<&Reservation> {
        match self {
            Guarantee::Reservation(reservation) => Some(reservation),
            _ => None,
        }
    }

    /// The same without a maximum: what a join passes on.
    #[must_use]
    pub fn softened(&self) -> Guarantee {
        match self {
            Guarantee::Reservation(reservation) => {
                Guarantee::Reservation(reservation.as_kind(reservation.continuity, Hardness::Soft))
            }
            other => other.clone(),
        }
    }
}

impl From<Reservation> for Guarantee {
    fn from(reservation: Reservation) -> Self {
        Guarantee::Reservation(reservation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_reservations_cannot_be_made() {
        let make = |amount, period| {
            let (amount, period) = (Span::from_millis(amount), Span::from_millis(period));
            Reservation::new(Continuity::Basic, Hardness::Hard, amount, period)
        };
        assert_eq!(make(0, 0), Err(ReservationError::NoPeriod));
        assert_eq!(make(3, 2), Err(ReservationError::AmountAbovePeriod));
        assert_eq!(make(2, 2).map(|all| all.share()), Ok(Share::whole()));
    }

    #[test]
    fn names_and_kinds_agree() {
        for kind in Kind::EVERY {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        assert_eq!(Kind::named("resbh"), None);
    }
}
