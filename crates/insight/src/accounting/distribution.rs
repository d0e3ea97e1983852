//! Distributions of lengths of time in memory that does not grow with their number.

use super::histogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longer times count as an hour in percentiles; minimum and maximum stay exact.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// How finely times are told apart, which decides how much memory a recorder takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// Three significant digits: 4 KiB for each power of two of which times come everywhere.
    Fine,
    /// Two significant digits, an eighth of that.
    Coarse,
}

impl Precision {
    /// The most operations whose times are kept to three digits.
    const FINE_LIMIT: usize = 512;

    /// Fine, unless there are so many operations that memory matters more.
    pub fn for_operations(count: usize) -> Self {
        if count <= Self::FINE_LIMIT { Precision::Fine } else { Precision::Coarse }
    }

    fn digits(self) -> u32 {
        match self {
            Precision::Fine => 3,
            Precision::Coarse => 2,
        }
    }
}

/// Percentiles of a set of lengths of time, in nanoseconds. Minimum and maximum are exact, percentiles
/// to three significant digits (two in systems of more than 512 operations), rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// The shortest.
    pub min: i64,
    /// Half are no longer.
    pub p50: i64,
    /// 99 % are no longer.
    pub p99: i64,
    /// 99.9 % are no longer.
    pub p99_9: i64,
    /// The longest.
    pub max: i64,
}

/// Collects a distribution.
#[derive(Debug)]
pub(super) struct Recorder {
    histogram: Histogram,
    /// Values of zero or less. Lateness is zero so often that these bypass the histogram.
    zeros: u64,
    min: i64,
    max: i64,
}

impl Recorder {
    /// A recorder of nothing.
    pub fn new(precision: Precision) -> Self {
        Recorder { histogram: Histogram::new(precision.digits()), zeros: 0, min: i64::MAX, max: i64::MIN }
    }

    #[inline]
    pub fn record(&mut self, ns: i64) {
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        if ns <= 0 {
            self.zeros += 1;
        } else {
            self.histogram.record((ns as u64).min(LONGEST_NS));
        }
    }

    /// The distribution; `None` if nothing was recorded.
    pub fn distribution(&self) -> Option<Distribution> {
        let count = self.zeros + self.histogram.len();
        if count == 0 {
            return None;
        }
        let at = |per_mille: u64| {
            // The rank of the value that this share of all values does not exceed.
            let rank = (u128::from(count) * u128::from(per_mille)).div_ceil(1000) as u64;
            if rank <= self.zeros {
                return self.min.max(0).min(self.max);
            }
            (self.histogram.value_at_rank(rank - self.zeros) as i64).clamp(self.min, self.max)
        };
        Some(Distribution { count, min: self.min, p50: at(500), p99: at(990), p99_9: at(999), max: self.max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_has_no_distribution() {
        assert_eq!(Recorder::new(Precision::Fine).distribution(), None);
    }

    #[test]
    fn beyond_an_hour_only_the_maximum_is_exact() {
        let mut recorder = Recorder::new(Precision::Fine);
        recorder.record(1);
        recorder.record(i64::MAX);
        let found = recorder.distribution().unwrap();
        assert_eq!((found.count, found.min, found.p50, found.max), (2, 1, 1, i64::MAX));
        assert!(found.p99 >= LONGEST_NS as i64 && found.p99 < LONGEST_NS as i64 / 1000 * 1001);
    }

    proptest! {
        #[test]
        fn percentiles_are_right_to_three_digits(
            mut values in prop::collection::vec(prop_oneof![Just(0i64), 0i64..5_000, 0i64..10_000_000_000], 1..400),
        ) {
            let mut recorder = Recorder::new(Precision::Fine);
            values.iter().for_each(|value| recorder.record(*value));
            values.sort_unstable();
            let found = recorder.distribution().unwrap();
            let exact = |per_mille: usize| values[(values.len() * per_mille).div_ceil(1000) - 1];
            prop_assert_eq!((found.min, found.max), (values[0], *values.last().unwrap()));
            for (value, exact) in [(found.p50, exact(500)), (found.p99, exact(990)), (found.p99_9, exact(999))] {
                prop_assert!(value >= exact && value <= exact + exact / 1000 + 1, "{} for {}", value, exact);
            }
        }
    }
}
