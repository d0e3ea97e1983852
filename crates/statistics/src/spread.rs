//! How values spread.

use crate::mean;

/// Where values lie.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Standard deviation of the population they are a sample of; 0 of a single value.
    pub deviation: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// From the least to the greatest.
    pub fn range(&self) -> f64 {
        self.max - self.min
    }
}

/// The spread of `values`; `None` without any.
pub fn spread(values: &[f64]) -> Option<Spread> {
    if values.is_empty() {
        return None;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let freedom = values.len().saturating_sub(1).max(1) as f64;
    Some(Spread {
        count: values.len(),
        mean,
        deviation: (squares / freedom).sqrt(),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

/// The widest stretch without a value, as a share of the range: near 0 where values fill their range continuously, near
/// 1 where they keep to two places. `None` where all values are the same.
///
/// It asks directly what "continuous" means to the eye. It grows as values get fewer, so compare only samples of one size.
pub fn largest_gap(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let range = sorted.last()? - sorted.first()?;
    let widest = sorted.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    (range > 0.0).then(|| widest / range)
}

/// Sarle's coefficient of bimodality with the corrections for finite samples: (skewness² + 1) / (excess kurtosis +
/// 3 (n - 1)² / ((n - 2) (n - 3))). 1/3 for a normal distribution, 5/9 for a uniform one, towards 1 for two points; above
/// 5/9 speaks for two modes. `None` below four values and where all are the same.
pub fn bimodality(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < 4 {
        return None;
    }
    let mean = mean(values);
    let moment = |power: i32| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / n;
    let variance = moment(2);
    if variance <= 1e-24 * mean.abs().max(1e-300) {
        return None;
    }
    let skewness = moment(3) / variance.powf(1.5) * (n * (n - 1.0)).sqrt() / (n - 2.0);
    let excess = moment(4) / variance.powi(2) - 3.0;
    let excess = (n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * excess + 6.0);
    let correction = 3.0 * (n - 1.0).powi(2) / ((n - 2.0) * (n - 3.0));
    Some((skewness.powi(2) + 1.0) / (excess + correction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn the_spread_of_known_values() {
        let spread = spread(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("values");
        assert_eq!((spread.count, spread.mean, spread.min, spread.max), (8, 5.0, 2.0, 9.0));
        assert!((spread.deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-12, "{spread:?}");
        assert_eq!(super::spread(&[]), None);
        assert_eq!(super::spread(&[3.0]).map(|spread| spread.deviation), Some(0.0));
    }

    #[test]
    fn a_gap_is_relative_to_the_range() {
        assert_eq!(largest_gap(&[0.0, 10.0, 1.0, 9.0]), Some(0.8));
        let even: Vec<f64> = (0..=100).map(f64::from).collect();
        assert!((largest_gap(&even).expect("a range") - 0.01).abs() < 1e-12);
        assert_eq!(largest_gap(&[7.0; 5]), None);
        assert_eq!(largest_gap(&[]), None);
    }

    #[test]
    fn two_places_are_bimodal_and_one_hill_is_not() {
        let two: Vec<f64> = (0..200).map(|index| f64::from(index % 2)).collect();
        assert!(bimodality(&two).expect("spread") > 0.9);
        let uniform: Vec<f64> = (0..2000).map(f64::from).collect();
        assert!((bimodality(&uniform).expect("spread") - 5.0 / 9.0).abs() < 0.01);
        // Sums of twelve uniform draws are close to normal.
        let mut random = rand_pcg::Pcg64::seed_from_u64(1);
        let hill: Vec<f64> =
            (0..5000).map(|_| (0..12).map(|_| random.random_range(0.0..1.0)).sum()).collect();
        assert!((bimodality(&hill).expect("spread") - 1.0 / 3.0).abs() < 0.03, "{:?}", bimodality(&hill));
        assert_eq!(bimodality(&[1.0; 9]), None);
        assert_eq!(bimodality(&[1.0, 2.0, 3.0]), None);
    }
}
