//! Distributions of lengths of time in constant memory.
//!
//! [`Recorder`] counts in the buckets of an HDR histogram of three digits: values below 2048 each have
//! one, and every doubling above shares 1024, so that a bucket is never wider than a thousandth of its
//! values. It has nothing else of such a histogram: several of them are touched for every job that
//! is simulated, so what matters is that recording is inlined and the head is one cache line.

use serde::{Deserialize, Serialize};
use talea_time::Duration;

/// Longer times count as an hour in percentiles; minimum and maximum stay exact.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Binary logarithm of the buckets in a doubling.
const BUCKET_BITS: u32 = 10;

/// Percentiles of a set of lengths of time, in nanoseconds. Minimum and maximum are exact, percentiles
/// to three significant digits, rounded up.
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
    /// By [`bucket`]; as long as the longest time so far needs, in whole doublings.
    counts: Vec<u64>,
    /// Values of zero or less. Lateness is zero so often that these are kept apart.
    zeros: u64,
    min: i64,
    max: i64,
}

/// The bucket of a positive time.
#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.min(LONGEST_NS);
    // Values below twice the buckets of a doubling are not shifted.
    let shift = (u64::BITS - BUCKET_BITS - 1) - (ns | ((2 << BUCKET_BITS) - 1)).leading_zeros();
    ((shift as usize) << BUCKET_BITS) + (ns >> shift) as usize
}

/// The longest time in a bucket.
fn longest_in(bucket: usize) -> u64 {
    let shift = (bucket >> BUCKET_BITS).saturating_sub(1);
    (((bucket - (shift << BUCKET_BITS)) as u64 + 1) << shift) - 1
}

impl Recorder {
    /// A recorder that needs no memory beyond this for times up to `expected`, and grows for longer
    /// ones, at most 32 times in all.
    pub fn new(expected: Duration) -> Self {
        let mut recorder = Recorder { counts: Vec::new(), zeros: 0, min: i64::MAX, max: i64::MIN };
        if expected > Duration::ZERO {
            recorder.grow(bucket(expected.as_nanos() as u64));
        }
        recorder
    }

    #[inline]
    pub fn record(&mut self, ns: i64) {
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        if ns <= 0 {
            self.zeros += 1;
            return;
        }
        let bucket = bucket(ns as u64);
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        self.counts[bucket] += 1;
    }

    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize((bucket + 1).next_multiple_of(1 << BUCKET_BITS), 0);
    }

    /// The distribution; `None` if nothing was recorded.
    pub fn distribution(&self) -> Option<Distribution> {
        let count = self.zeros + self.counts.iter().sum::<u64>();
        if count == 0 {
            return None;
        }
        let at = |per_mille: u64| {
            // The rank of the value that this share of all values does not exceed.
            let rank = (u128::from(count) * u128::from(per_mille)).div_ceil(1000) as u64;
            let mut seen = self.zeros;
            let mut buckets = self.counts.iter().enumerate();
            let mut value = 0;
            while seen < rank {
                let (bucket, in_bucket) = buckets.next().expect("the buckets hold all that is not zero");
                seen += in_bucket;
                value = longest_in(bucket) as i64;
            }
            value.clamp(self.min, self.max)
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
        assert_eq!(Recorder::new(Duration::from_millis(1)).distribution(), None);
    }

    #[test]
    fn beyond_an_hour_only_the_maximum_is_exact() {
        let mut recorder = Recorder::new(Duration::ZERO);
        recorder.record(1);
        recorder.record(i64::MAX);
        let found = recorder.distribution().unwrap();
        assert_eq!((found.count, found.min, found.p50, found.max), (2, 1, 1, i64::MAX));
        assert!(found.p99 >= LONGEST_NS as i64 && found.p99 < LONGEST_NS as i64 / 1000 * 1001);
    }

    proptest! {
        #[test]
        fn a_bucket_is_no_wider_than_a_thousandth(ns in prop_oneof![1..LONGEST_NS, 1u64..10_000]) {
            let longest = longest_in(bucket(ns));
            prop_assert!(longest >= ns && longest - ns <= ns / 1000);
            prop_assert!(longest >= LONGEST_NS || bucket(longest + 1) == bucket(ns) + 1);
        }

        #[test]
        fn percentiles_are_right_to_three_digits(
            mut values in prop::collection::vec(prop_oneof![Just(0i64), 0i64..5_000, 0i64..10_000_000_000], 1..400),
        ) {
            let mut recorder = Recorder::new(Duration::from_millis(1));
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
