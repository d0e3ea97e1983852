//! Virtual time: service divided by weight, exactly for small weights.

use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};
use talea_time::Work;

/// Parts per nanosecond of virtual time: the least common multiple of 1 to 42, so that service at any of these weights,
/// and any sum of it, is exact and equal tags tie. Other weights are off by less than a part per nanosecond.
const PARTS: i128 = 219_060_189_739_591_200;

/// A point or a length of virtual time. The range is that of an instant at weight 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Virtual(i128);

impl Virtual {
    /// The origin.
    pub const ZERO: Virtual = Virtual(0);

    /// Service at weight 1.
    pub const fn of(work: Work) -> Self {
        Virtual(work.as_nanos() as i128 * PARTS)
    }

    /// The length as `numerator / denominator` nanoseconds.
    pub const fn as_nanos(self) -> (i128, i128) {
        (self.0, PARTS)
    }

    /// This much divided by `weight`, towards zero.
    pub fn shared(self, weight: u64) -> Self {
        Virtual(self.0 / i128::from(weight))
    }

    /// In units that can be multiplied with weights: about a ten-thousand-millionth of a nanosecond.
    pub const fn coarse(self) -> i128 {
        self.0 >> 24
    }

    /// This much times `weight`.
    pub fn times(self, weight: u32) -> Self {
        Virtual(self.0 * i128::from(weight))
    }
}

impl fmt::Display for Virtual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0 as f64 / PARTS as f64)
    }
}

impl Add for Virtual {
    type Output = Virtual;
    fn add(self, other: Virtual) -> Virtual {
        Virtual(self.0 + other.0)
    }
}

impl AddAssign for Virtual {
    fn add_assign(&mut self, other: Virtual) {
        self.0 += other.0;
    }
}

impl Sub for Virtual {
    type Output = Virtual;
    fn sub(self, other: Virtual) -> Virtual {
        Virtual(self.0 - other.0)
    }
}

impl SubAssign for Virtual {
    fn sub_assign(&mut self, other: Virtual) {
        self.0 -= other.0;
    }
}

impl Neg for Virtual {
    type Output = Virtual;
    fn neg(self) -> Virtual {
        Virtual(-self.0)
    }
}

/// How fast virtual time passes for whoever is served at a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(i128);

impl Pace {
    /// At `weight`, which is not zero.
    pub const fn of(weight: u64) -> Self {
        Pace(PARTS / weight as i128)
    }

    /// Virtual time that passes while `used` is received.
    pub const fn after(self, used: Work) -> Virtual {
        Virtual(used.as_nanos() as i128 * self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weight_up_to_42_is_exact() {
        for weight in 1..=42u32 {
            let tag = Pace::of(u64::from(weight)).after(Work::from_nanos(7));
            assert_eq!(tag.times(weight), Virtual::of(Work::from_nanos(7)));
        }
    }
}
