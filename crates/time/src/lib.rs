//! Time as Talea counts it: integer nanoseconds in distinct types.
//!
//! * [`Instant`]: a point on a clock whose origin the owner of the clock chooses.
//! * [`Duration`]: a signed distance between instants; lateness and laxity may be negative.
//! * [`Work`]: processor time needed or received. A job with 3 ms of work left needs 3 ms *of a
//!   processor*, which may take any length of time.
//! * [`Clock`]: where `now` comes from. This crate implements none that reads a real clock: the
//!   simulator owns a virtual one, the Linux runtime the real one.
//!
//! `Instant - Instant = Duration`; instants do not add. Arithmetic that leaves the range of 64 bits
//! (292 years) is a broken invariant and panics where overflow checks are on, which all of Talea's
//! profiles do; input is range-checked before it gets here.

#![forbid(unsafe_code)]

mod parse;

pub use parse::{ParseDurationError, UNITS};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

/// A point in time, in nanoseconds since the origin of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(i64);

/// A signed length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

/// Processor time in nanoseconds: demanded (an execution time) or received (service).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work(i64);

/// A source of the current time.
pub trait Clock {
    /// The current instant; never earlier than any instant this clock returned before.
    fn now(&self) -> Instant;
}

impl Instant {
    /// The origin of the clock.
    pub const ZERO: Instant = Instant(0);
    /// The last representable instant, used as "never".
    pub const MAX: Instant = Instant(i64::MAX);

    /// The instant `ns` nanoseconds after the origin.
    pub const fn from_nanos(ns: i64) -> Self {
        Instant(ns)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The distance from the origin.
    pub const fn since_origin(self) -> Duration {
        Duration(self.0)
    }

    /// `self + d`, or [`Instant::MAX`] ("never") where that is not representable.
    pub const fn saturating_add(self, d: Duration) -> Self {
        Instant(self.0.saturating_add(d.0))
    }

    /// `self - earlier`, or the nearest duration where that is not representable: for instants that were read from a file,
    /// which may be any.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

/// What lengths of time and amounts of processor time have in common.
macro_rules! quantity {
    ($t:ident, $what:literal) => {
        impl $t {
            #[doc = concat!("No ", $what, " at all.")]
            pub const ZERO: $t = $t(0);
            #[doc = concat!("The most ", $what, " that can be represented (292 years).")]
            pub const MAX: $t = $t(i64::MAX);

            #[doc = concat!("`ns` nanoseconds of ", $what, ".")]
            pub const fn from_nanos(ns: i64) -> Self {
                $t(ns)
            }

            #[doc = concat!("`us` microseconds of ", $what, ".")]
            pub const fn from_micros(us: i64) -> Self {
                $t(us * 1_000)
            }

            #[doc = concat!("`ms` milliseconds of ", $what, ".")]
            pub const fn from_millis(ms: i64) -> Self {
                $t(ms * 1_000_000)
            }

            #[doc = concat!("`s` seconds of ", $what, ".")]
            pub const fn from_secs(s: i64) -> Self {
                $t(s * 1_000_000_000)
            }

            /// In nanoseconds.
            pub const fn as_nanos(self) -> i64 {
                self.0
            }

            /// In seconds, for display and ratios only.
            pub fn as_secs_f64(self) -> f64 {
                self.0 as f64 / 1e9
            }

            /// `self * n`, or `None` where that is not representable.
            pub const fn checked_mul(self, n: i64) -> Option<Self> {
                match self.0.checked_mul(n) {
                    Some(ns) => Some($t(ns)),
                    None => None,
                }
            }

            /// `self + other`, or `None` where that is not representable.
            pub const fn checked_add(self, other: $t) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(ns) => Some($t(ns)),
                    None => None,
                }
            }

            /// Three significant digits and a unit, for tables: `1.23ms`, `45.0us`.
            pub fn rounded(self) -> Rounded {
                Rounded(self.0)
            }
        }
    };
}
quantity!(Duration, "time");
quantity!(Work, "processor time");

impl Duration {
    /// The processor time a processor of full speed delivers in this length of time.
    pub const fn as_work(self) -> Work {
        Work(self.0)
    }
}

impl Work {
    /// How long a processor of full speed takes for this work without interruption.
    pub const fn at_full_speed(self) -> Duration {
        Duration(self.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        Instant(self.0 + d.0)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, d: Duration) -> Instant {
        Instant(self.0 - d.0)
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        Duration(self.0 - earlier.0)
    }
}

impl Neg for Duration {
    type Output = Duration;
    fn neg(self) -> Duration {
        Duration(-self.0)
    }
}

macro_rules! sums {
    ($($t:ident),*) => {$(
        impl Add for $t {
            type Output = $t;
            fn add(self, other: $t) -> $t {
                $t(self.0 + other.0)
            }
        }
        impl AddAssign for $t {
            fn add_assign(&mut self, other: $t) {
                *self = *self + other;
            }
        }
        impl Sub for $t {
            type Output = $t;
            fn sub(self, other: $t) -> $t {
                $t(self.0 - other.0)
            }
        }
        impl SubAssign for $t {
            fn sub_assign(&mut self, other: $t) {
                *self = *self - other;
            }
        }
        impl Mul<i64> for $t {
            type Output = $t;
            fn mul(self, n: i64) -> $t {
                $t(self.0 * n)
            }
        }
        impl std::iter::Sum for $t {
            fn sum<I: Iterator<Item = $t>>(values: I) -> $t {
                values.fold($t(0), |a, b| a + b)
            }
        }
        /// Exact, in the largest unit up to seconds of which it holds at least one, or in whole hours: `50ms`, `1.5s`,
        /// `90s`, `2h`, `0s`.
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&parse::exact(self.0))
            }
        }
        /// As the exact text, `"50ms"`.
        impl Serialize for $t {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&parse::exact(self.0))
            }
        }
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(d)?;
                parse::nanos(&text).map($t).map_err(serde::de::Error::custom)
            }
        }
        impl std::str::FromStr for $t {
            type Err = ParseDurationError;
            fn from_str(text: &str) -> Result<Self, ParseDurationError> {
                parse::nanos(text).map($t)
            }
        }
    )*};
}
sums!(Duration, Work);

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&parse::exact(self.0))
    }
}

/// Time displayed with three significant digits; made by [`Duration::rounded`] and [`Work::rounded`].
#[derive(Clone, Copy, Debug)]
pub struct Rounded(i64);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&parse::rounded(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_subtract_to_durations() {
        let a = Instant::from_nanos(1_000);
        let b = a + Duration::from_micros(2);
        assert_eq!(b - a, Duration::from_nanos(2_000));
        assert_eq!(a - b, Duration::from_nanos(-2_000));
        assert_eq!(Instant::MAX.saturating_add(Duration::from_secs(1)), Instant::MAX);
        assert_eq!(b.saturating_since(a), b - a);
        assert_eq!(Instant::from_nanos(-2).saturating_since(Instant::MAX), Duration::from_nanos(i64::MIN));
    }

    #[test]
    #[should_panic(expected = "overflow")]
    fn leaving_the_range_is_a_broken_invariant() {
        let _ = Instant::MAX + Duration::from_nanos(1);
    }
}
