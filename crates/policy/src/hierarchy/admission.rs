//! Admission: exact fractions of a processor, their sum, and what is missing when something is refused.

use super::Constraint;
use num_bigint::BigInt;
use num_rational::BigRational;
use std::fmt;
use talea_time::{Duration, Instant, Work};

/// A fraction of a processor, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    numerator: i64,
    denominator: i64,
}

impl Fraction {
    /// The whole processor.
    pub const ONE: Fraction = Fraction { numerator: 1, denominator: 1 };

    /// `numerator / denominator`, or `None` if that is not above 0 or does not exist.
    pub const fn new(numerator: i64, denominator: i64) -> Option<Self> {
        if numerator > 0 && denominator > 0 { Some(Fraction { numerator, denominator }) } else { None }
    }

    /// `budget` per `period`; `None` if either is not above zero.
    pub const fn of(budget: Work, period: Duration) -> Option<Self> {
        Self::new(budget.as_nanos(), period.as_nanos())
    }

    /// The numerator, as it was given.
    pub const fn numerator(self) -> i64 {
        self.numerator
    }

    /// The denominator, as it was given.
    pub const fn denominator(self) -> i64 {
        self.denominator
    }

    /// What a processor of this speed delivers in `time`, rounded down.
    pub fn work_in(self, time: Duration) -> Work {
        let product = i128::from(time.as_nanos()) * i128::from(self.numerator);
        Work::from_nanos(product.div_euclid(i128::from(self.denominator)) as i64)
    }

    /// Numerator and denominator of the product, in lowest terms.
    pub fn times(self, other: Fraction) -> (i128, i128) {
        let product = self.exact() * other.exact();
        let of = |part: &BigInt| i128::try_from(part).expect("a product of two 64-bit numbers");
        (of(product.numer()), of(product.denom()))
    }

    fn exact(self) -> BigRational {
        BigRational::new(self.numerator.into(), self.denominator.into())
    }
}

/// A sum of fractions, exactly: for admission tests, which must neither refuse a processor that is reserved
/// to the last nanosecond nor accept one more.
#[derive(Clone, Debug)]
pub struct Load(BigRational);

impl Load {
    /// The sum of `fractions`.
    pub fn of(fractions: impl IntoIterator<Item = Fraction>) -> Self {
        let zero = BigRational::from_integer(BigInt::ZERO);
        Load(fractions.into_iter().fold(zero, |sum, fraction| sum + fraction.exact()))
    }

    /// Whether `asked` fits beside this into `capacity`.
    ///
    /// # Errors
    /// [`Shortage::Capacity`] if not.
    pub fn admit(&self, asked: Fraction, capacity: Fraction) -> Result<(), Shortage> {
        let left = capacity.exact() - &self.0;
        if asked.exact() <= left {
            return Ok(());
        }
        Err(Shortage::Capacity { asked: Millionths::of(&asked.exact()), left: Millionths::of(&left) })
    }
}

/// A fraction for people, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Millionths(i64);

impl Millionths {
    fn of(exact: &BigRational) -> Self {
        let million = BigRational::from_integer(1_000_000.into());
        let rounded = (exact * million).round().to_integer();
        Millionths(i64::try_from(rounded).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for Millionths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0 as f64 / 10_000.0)
    }
}

/// What is missing for an admission.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// The shares add up to more than there is.
    #[error("{asked} of the processor are asked for and {left} are left")]
    Capacity {
        /// The share asked for.
        asked: Millionths,
        /// What nobody has.
        left: Millionths,
    },
    /// A reserve, this one or one that was admitted before, would get its budget too late.
    #[error("a reserve of {budget} within {deadline} would need {}", Needed(*response))]
    Response {
        /// The reserve's budget.
        budget: Work,
        /// Within this much time it is promised.
        deadline: Duration,
        /// Within this much it would be received, if that is within its period.
        response: Option<Duration>,
    },
    /// More is accepted and asked for than can be done by a deadline.
    #[error("it asks for {missing} more than can be done by {}", whose.deadline_in(*within))]
    Demand {
        /// Whose deadline it is.
        whose: Whose,
        /// How long from now it is.
        within: Duration,
        /// How much too much.
        missing: Work,
    },
    /// No order was found in which everything accepted and asked for meets its deadline.
    #[error("no order of {pieces} pieces of work that meets every deadline was found in {tried} attempts")]
    Order {
        /// How many have to be ordered.
        pieces: usize,
        /// How many choices were tried.
        tried: u32,
    },
    /// A piece of work that is not interrupted is longer than what others leave at a time.
    #[error(
        "a piece of {piece} without interruption does not fit between pieces of {budget} in every {period}, which leave {gap} \
         at most"
    )]
    Piece {
        /// The piece.
        piece: Work,
        /// The others' budget
        budget: Work,
        /// and period.
        period: Duration,
        /// The longest time between two of them.
        gap: Duration,
    },
    /// Periods do not begin together again soon enough to be planned.
    #[error(
        "its periods and those of the others begin together again only after more than {most} pieces of work"
    )]
    Cycle {
        /// How many pieces a plan holds.
        most: usize,
    },
    /// There is a plan, but no way to it from the present one.
    #[error(
        "the others' slots leave no room, and no moment was found at which a new plan could begin without harm to a period of \
         theirs"
    )]
    Transition,
    /// A child that reserves is promised that much and no more.
    #[error("who reserves a budget has its slots for all its work")]
    Reserved,
    /// The period does not fit those of the other children.
    #[error("a period of {given} beside one of {other}: {rule}")]
    Period {
        /// The period asked for.
        given: Duration,
        /// The other period.
        other: Duration,
        /// What is required of them.
        rule: &'static str,
    },
    /// There is no room in the scheduler's tables.
    #[error("at most {most} {what} at a time")]
    Table {
        /// The size of the table.
        most: usize,
        /// What it holds.
        what: &'static str,
    },
}

/// Whose deadline cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// That of what is asked for.
    Own,
    /// That of something that was accepted before.
    Accepted,
}

impl Shortage {
    /// What is missing `now` for a piece of work that is too long for the time between its own start and deadline, if it is.
    pub(crate) fn of_piece(piece: &Constraint, now: Instant) -> Option<Self> {
        let missing = piece.work - (piece.deadline - piece.start.max(now)).as_work();
        let within = piece.deadline - now;
        (missing > Work::ZERO).then_some(Shortage::Demand { whose: Whose::Own, within, missing })
    }
}

impl Whose {
    /// An own deadline is said as it was asked for, another one to three digits.
    fn deadline_in(self, within: Duration) -> String {
        match self {
            Whose::Own => format!("its deadline, in {within}"),
            Whose::Accepted => format!("a deadline that was accepted before, in {}", within.rounded()),
        }
    }
}

struct Needed(Option<Duration>);

impl fmt::Display for Needed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(response) => response.fmt(f),
            None => f.write_str("more than its period"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(numerator: i64, denominator: i64) -> Fraction {
        Fraction::new(numerator, denominator).expect("above zero")
    }

    #[test]
    fn three_thirds_are_one_and_not_more() {
        let third = part(333_333_333, 999_999_999);
        let load = Load::of([third, third]);
        assert_eq!(load.admit(third, Fraction::ONE), Ok(()));
        let more = part(333_333_334, 999_999_999);
        let refusal = load.admit(more, Fraction::ONE).unwrap_err();
        assert_eq!(refusal.to_string(), "33.3333 % of the processor are asked for and 33.3333 % are left");
    }

    #[test]
    fn nothing_is_no_fraction() {
        assert_eq!(Fraction::new(0, 1), None);
        assert_eq!(Fraction::of(Work::from_nanos(1), Duration::ZERO), None);
        assert_eq!(part(1, 3).work_in(Duration::from_nanos(10)), Work::from_nanos(3));
    }
}
