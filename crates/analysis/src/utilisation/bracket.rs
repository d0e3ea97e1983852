//! A sum of C/T between two multiples of 2^-64.

use crate::task::Task;
use std::cmp::Ordering;

/// Utilisation 1 in units of 2^-64.
pub(crate) const ONE: u128 = 1 << 64;

/// A sum of utilisations: it is `low` if no term was rounded, else above `low` and below `low + rounded`, in units of
/// 2^-64.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bracket {
    low: u128,
    rounded: u64,
}

impl Bracket {
    /// Adds the utilisation of `task`.
    pub(crate) fn add(&mut self, task: &Task) {
        let numbers = task.numbers();
        let (wcet, period) = (u128::from(numbers.wcet) << 64, u128::from(numbers.period));
        let low = wcet / period;
        self.rounded += u64::from(low * period != wcet);
        // A saturated sum is as much above 1 as the true one.
        self.low = self.low.saturating_add(low);
    }

    /// The sum, rounded down, in units of 2^-64.
    pub(crate) fn low(&self) -> u128 {
        self.low
    }

    /// How the sum compares with 1, unless 1 lies inside the bracket.
    pub(crate) fn compare_with_one(&self) -> Option<Ordering> {
        match (self.low.cmp(&ONE), self.rounded) {
            (Ordering::Equal, 0) => Some(Ordering::Equal),
            (Ordering::Equal | Ordering::Greater, _) => Some(Ordering::Greater),
            (Ordering::Less, rounded) if self.low + u128::from(rounded) <= ONE => Some(Ordering::Less),
            (Ordering::Less, _) => None,
        }
    }
}
