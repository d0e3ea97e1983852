//! The exact numbers that guarantees are made of: spans of time and shares of a processor.
//!
//! Both are rationals of any size. Theorem 6 and the formula of start-time fair queuing leave the integers at
//! once, and a derivation down a deep hierarchy multiplies denominators, so 128 bits would not do.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use std::ops::{Add, Div, Mul};
use talea_time::{Duration, Work};

/// A rational number of any size.
pub type Ratio = BigRational;

/// `numerator / denominator`.
///
/// # Panics
/// If `denominator` is zero.
pub fn ratio(numerator: u64, denominator: u64) -> Ratio {
    Ratio::new(BigInt::from(numerator), BigInt::from(denominator))
}

/// A length of time, or an amount of processor time: zero or more nanoseconds, not necessarily a whole number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(Ratio);

impl Span {
    /// No time at all.
    pub fn zero() -> Self {
        Span(Ratio::zero())
    }

    /// So many nanoseconds, unless they are negative.
    pub fn new(nanos: Ratio) -> Option<Self> {
        (!nanos.is_negative()).then_some(Span(nanos))
    }

    /// So many nanoseconds.
    pub fn from_nanos(nanos: u64) -> Self {
        Span(Ratio::from_integer(nanos.into()))
    }

    /// So many milliseconds, the unit of the published guarantees.
    pub fn from_millis(millis: u64) -> Self {
        Span(Ratio::from_integer(BigInt::from(millis) * 1_000_000))
    }

    /// The nanoseconds.
    pub fn nanos(&self) -> &Ratio {
        &self.0
    }

    /// Whether this is no time at all.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// `self - other`, unless `other` is longer.
    pub fn checked_sub(&self, other: &Span) -> Option<Span> {
        Span::new(&self.0 - &other.0)
    }

    /// How many times `other` goes into `self`.
    ///
    /// # Panics
    /// If `other` is zero.
    pub fn per(&self, other: &Span) -> Ratio {
        &self.0 / &other.0
    }

    /// `factor` times as long, unless `factor` is negative.
    pub fn scaled(&self, factor: &Ratio) -> Option<Span> {
        Span::new(&self.0 * factor)
    }
}

impl Add for &Span {
    type Output = Span;

    fn add(self, other: &Span) -> Span {
        Span(&self.0 + &other.0)
    }
}

impl Mul<&Share> for &Span {
    type Output = Span;

    fn mul(self, share: &Share) -> Span {
        Span(&self.0 * &share.0)
    }
}

impl Mul<u64> for &Span {
    type Output = Span;

    fn mul(self, factor: u64) -> Span {
        Span(&self.0 * BigInt::from(factor))
    }
}

/// The time in which a processor of this share does the work of `self`. Panics if the share is zero.
impl Div<&Share> for &Span {
    type Output = Span;

    fn div(self, share: &Share) -> Span {
        Span(&self.0 / &share.0)
    }
}

/// A negative duration has no span.
impl TryFrom<Duration> for Span {
    type Error = NegativeSpan;

    fn try_from(duration: Duration) -> Result<Self, NegativeSpan> {
        let nanos = duration.as_nanos();
        Span::new(Ratio::from_integer(nanos.into())).ok_or(NegativeSpan { nanos })
    }
}

/// A negative amount of work has no span.
impl TryFrom<Work> for Span {
    type Error = NegativeSpan;

    fn try_from(work: Work) -> Result<Self, NegativeSpan> {
        let nanos = work.as_nanos();
        Span::new(Ratio::from_integer(nanos.into())).ok_or(NegativeSpan { nanos })
    }
}

/// A guarantee speaks of no negative times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{nanos} ns is negative; a guarantee takes times of zero or more")]
pub struct NegativeSpan {
    /// What was given.
    pub nanos: i64,
}

/// A part of one processor: 0 to 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(Ratio);

impl Share {
    /// Nothing of it.
    pub fn none() -> Self {
        Share(Ratio::zero())
    }

    /// The whole processor.
    pub fn whole() -> Self {
        Share(Ratio::one())
    }

    /// This part, unless it is negative or more than the whole.
    pub fn new(part: Ratio) -> Option<Self> {
        (!part.is_negative() && part <= Ratio::one()).then_some(Share(part))
    }

    /// The number, 0 to 1.
    pub fn ratio(&self) -> &Ratio {
        &self.0
    }

    /// Whether this is nothing.
    pub fn is_none(&self) -> bool {
        self.0.is_zero()
    }

    /// Whether this is the whole processor.
    pub fn is_whole(&self) -> bool {
        self.0.is_one()
    }

    /// What is left of the processor beside this share.
    #[must_use]
    pub fn rest(&self) -> Share {
        Share(Ratio::one() - &self.0)
    }
}

impl Mul for &Share {
    type Output = Share;

    fn mul(self, other: &Share) -> Share {
        Share(&self.0 * &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_its_range_can_be_made() {
        assert_eq!(Span::new(-ratio(1, 1_000_000)), None);
        assert_eq!(Share::new(-ratio(1, 9)), None);
        assert_eq!(Share::new(ratio(1_000_001, 1_000_000)), None);
        assert_eq!(Span::from_nanos(3).checked_sub(&Span::from_nanos(4)), None);
        assert!(Span::try_from(Duration::from_nanos(-1)).is_err());
        assert_eq!(Span::try_from(Duration::from_millis(2)), Ok(Span::from_millis(2)));
    }
}
