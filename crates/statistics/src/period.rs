//! Whether values come periodically.

use crate::mean;
use std::f64::consts::TAU;

/// The frequency of which most of the values' variance is.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Periodicity {
    /// Its period, in values.
    pub period: f64,
    /// Its share of the variance: Fisher's g.
    pub share: f64,
    /// How likely values without any period have as great a share at some frequency (Fisher, Tests of Significance in Harmonic Analysis,
    /// 1929), if they are normal.
    pub p: f64,
}

/// The strongest frequency of `values` in their order. `None` below five values and where all are the same.
///
/// Of an even number the first value is left out: the highest frequency has one degree of freedom only then, and a pattern that repeats
/// with every second value would be the one that is not looked at.
pub fn periodicity(values: &[f64]) -> Option<Periodicity> {
    let values = &values[usize::from(values.len().is_multiple_of(2)).min(values.len())..];
    let count = values.len();
    if count < 5 {
        return None;
    }
    let mean = mean(values);
    let scale = values.iter().map(|value| value.abs()).fold(0.0, f64::max);
    if values.iter().all(|value| (value - mean).abs() <= scale * 1e-12) {
        return None;
    }
    let turns: Vec<(f64, f64)> =
        (0..count).map(|place| (TAU * place as f64 / count as f64).sin_cos()).collect();
    let power = |cycles: usize| {
        let (sine, cosine) = values.iter().enumerate().fold((0.0, 0.0), |(sine, cosine), (place, value)| {
            let turn = turns[place * cycles % count];
            (sine + (value - mean) * turn.0, cosine + (value - mean) * turn.1)
        });
        sine * sine + cosine * cosine
    };
    let powers: Vec<f64> = (1..=(count - 1) / 2).map(power).collect();
    let (index, greatest) = powers.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = greatest / powers.iter().sum::<f64>();
    Some(Periodicity { period: count as f64 / (index + 1) as f64, share, p: fisher(powers.len(), share) })
}

/// The probability that the greatest of `frequencies` shares of white noise is at least `share`.
fn fisher(frequencies: usize, share: f64) -> f64 {
    let m = frequencies as f64;
    // Beyond it terms cancel each other to more digits than there are, and their sum is 1 to within 1e-6.
    if m * (-m * share).exp() > 15.0 {
        return 1.0;
    }
    let mut choose_ln = 0.0;
    let mut sum = 0.0;
    for term in 1..=frequencies {
        let of = term as f64;
        let rest = 1.0 - of * share;
        if rest <= 0.0 {
            break;
        }
        choose_ln += ((m - of + 1.0) / of).ln();
        let size = (choose_ln + (m - 1.0) * rest.ln()).exp();
        sum += if term % 2 == 1 { size } else { -size };
    }
    sum.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    #[test]
    fn a_period_is_found_in_noise() {
        let mut random = Pcg64::seed_from_u64(1);
        for (period, count) in [(7.0, 140), (2.0, 300), (12.5, 75)] {
            let value =
                |place: usize| (TAU * place as f64 / period + 0.3).cos() + random.random_range(-1.0..1.0);
            let values: Vec<f64> = (0..count).map(value).collect();
            let found = periodicity(&values).expect("it varies");
            assert!((found.period - period).abs() < period * 0.1, "{found:?}");
            assert!(found.p < 0.001 && found.share > 0.3, "{found:?}");
        }
    }

    #[test]
    fn noise_has_a_period_as_often_as_it_is_said() {
        let mut random = Pcg64::seed_from_u64(2);
        let mut normal = || (0..12).map(|_| random.random_range(-0.5..0.5)).sum::<f64>();
        let (mut below_half, mut below_tenth) = (0, 0);
        for _ in 0..1000 {
            let values: Vec<f64> = (0..61).map(|_| normal()).collect();
            let p = periodicity(&values).expect("it varies").p;
            below_half += u32::from(p < 0.5);
            below_tenth += u32::from(p < 0.1);
        }
        assert!((440..560).contains(&below_half), "{below_half}");
        assert!((70..130).contains(&below_tenth), "{below_tenth}");
    }

    #[test]
    fn the_table_of_fisher() {
        // The 5 % points of g for 10 and 50 frequencies (Fisher 1929; Davis 1941).
        assert!((fisher(10, 0.44495) - 0.05).abs() < 0.0005, "{}", fisher(10, 0.44495));
        assert!((fisher(50, 0.13135) - 0.05).abs() < 0.0005, "{}", fisher(50, 0.13135));
        assert_eq!(fisher(149, 1.0 / 149.0), 1.0);
    }

    #[test]
    fn what_does_not_vary_has_no_period() {
        assert_eq!(periodicity(&[0.3; 40]), None);
        assert_eq!(periodicity(&[1.0, 2.0, 1.0, 2.0]), None);
        assert_eq!(periodicity(&[]), None);
    }
}
