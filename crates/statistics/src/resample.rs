//! How sure a statistic is, without assuming a distribution.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Where 95 of 100 resampled statistics lie.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The 2.5th percentile.
    pub low: f64,
    /// The 97.5th percentile.
    pub high: f64,
}

impl Interval {
    /// Whether `value` is in it, ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let places = f.precision().unwrap_or(2);
        write!(f, "{:.places$} to {:.places$}", self.low, self.high)
    }
}

/// Resamples drawn for an interval: its ends are then steady in the second digit.
const RESAMPLES: usize = 1000;
/// Permutations drawn for a test: p is then known to 0.01 or better.
const PERMUTATIONS: usize = 1999;

/// The percentile bootstrap (Efron 1979): the intervals of some statistics over resamples of `count` observations drawn
/// with replacement. `statistics` learns the indices drawn and gives so many values as there are statistics, or nothing, if
/// they have none of this resample. `None` for a statistic that more than half of the resamples lack, and without
/// observations.
pub fn bootstrap<const STATISTICS: usize>(
    count: usize,
    seed: u64,
    mut statistics: impl FnMut(&[usize]) -> [Option<f64>; STATISTICS],
) -> [Option<Interval>; STATISTICS] {
    let intervals = bootstrap_all(count, STATISTICS, seed, |drawn| statistics(drawn).to_vec());
    std::array::from_fn(|index| intervals[index])
}

/// [`bootstrap`] of a number of statistics that is known only when it runs.
pub(super) fn bootstrap_all(
    count: usize,
    number: usize,
    seed: u64,
    mut statistics: impl FnMut(&[usize]) -> Vec<Option<f64>>,
) -> Vec<Option<Interval>> {
    if count == 0 {
        return vec![None; number];
    }
    let mut random = Pcg64::seed_from_u64(seed);
    let mut drawn = vec![0; count];
    let mut values = vec![Vec::with_capacity(RESAMPLES); number];
    for _ in 0..RESAMPLES {
        drawn.fill_with(|| random.random_range(0..count));
        values.iter_mut().zip(statistics(&drawn)).for_each(|(values, value)| values.extend(value));
    }
    values.into_iter().map(interval).collect()
}

fn interval(mut values: Vec<f64>) -> Option<Interval> {
    if values.len() * 2 < RESAMPLES {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let percentile = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    Some(Interval { low: percentile(0.025), high: percentile(0.975) })
}

/// The bootstrap interval of the mean of `values`.
pub fn mean_interval(values: &[f64], seed: u64) -> Option<Interval> {
    let of = |drawn: &[usize]| drawn.iter().map(|index| values[*index]).sum::<f64>() / drawn.len() as f64;
    let [interval] = bootstrap(values.len(), seed, |drawn| [Some(of(drawn))]);
    interval
}

/// How often `statistic` of a random order of `count` observations is at least as large as that of the given order: the p
/// of a permutation test, the given order counted.
pub fn permutation_test(count: usize, seed: u64, mut statistic: impl FnMut(&[usize]) -> f64) -> f64 {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..count).collect();
    // Rounding must not make a permutation that changes nothing look smaller.
    let observed = statistic(&order) - 1e-9;
    let mut as_large = 1;
    for _ in 0..PERMUTATIONS {
        for last in (1..count).rev() {
            order.swap(last, random.random_range(0..=last));
        }
        as_large += usize::from(statistic(&order) >= observed);
    }
    as_large as f64 / (PERMUTATIONS + 1) as f64
}

/// How often `statistic` is at least as large when the members of each of `count` pairs are exchanged at random as when none
/// is: the p of a permutation test within pairs, the given assignment counted. `statistic` learns which pairs are exchanged.
pub fn swap_test(count: usize, seed: u64, mut statistic: impl FnMut(&[bool]) -> f64) -> f64 {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut swapped = vec![false; count];
    let observed = statistic(&swapped) - 1e-9;
    let mut as_large = 1;
    for _ in 0..PERMUTATIONS {
        swapped.fill_with(|| random.random_range(0..2) == 1);
        as_large += usize::from(statistic(&swapped) >= observed);
    }
    as_large as f64 / (PERMUTATIONS + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_has_the_width_of_theory() {
        let values: Vec<f64> = (0..400).map(|index| f64::from(index % 20)).collect();
        let interval = mean_interval(&values, 1).expect("an interval");
        // The standard error is 5.77 / 20; 95 % lie within 1.96 of it.
        assert!(interval.contains(9.5), "{interval}");
        assert!((interval.high - interval.low - 2.0 * 1.96 * 0.2883).abs() < 0.15, "{interval}");
        assert_eq!(mean_interval(&values, 1), Some(interval), "the same seed gives the same");
        assert_eq!(mean_interval(&[], 1), None);
        assert_eq!(bootstrap(5, 1, |_| [None]), [None]);
    }

    #[test]
    fn a_swap_test_tells_a_difference_within_pairs_from_chance() {
        let larger = |differences: &[f64]| {
            let of = |swapped: &[bool]| {
                differences
                    .iter()
                    .zip(swapped)
                    .map(|(value, swapped)| if *swapped { -value } else { *value })
                    .sum()
            };
            swap_test(differences.len(), 1, of)
        };
        assert!(larger(&[1.0; 20]) < 0.002);
        assert!((0.4..0.7).contains(&larger(&[1.0, -1.0].repeat(10))));
        assert_eq!(larger(&[0.0; 20]), 1.0);
    }

    #[test]
    fn a_permutation_test_tells_order_from_chance() {
        let rising: Vec<f64> = (0..12).map(f64::from).collect();
        let trend = |values: &[f64], order: &[usize]| {
            order.iter().enumerate().map(|(place, index)| place as f64 * values[*index]).sum::<f64>()
        };
        assert!(permutation_test(12, 1, |order| trend(&rising, order)) < 0.002);
        let alike = [1.0; 12];
        assert_eq!(permutation_test(12, 1, |order| trend(&alike, order)), 1.0);
    }
}
