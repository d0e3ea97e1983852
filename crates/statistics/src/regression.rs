//! Ordinary least squares, and how much each factor contributes.
//!
//! Columns are centred and orthogonalised one after the other (modified Gram-Schmidt, which is the QR decomposition of the
//! centred design), so that a column without variation, or one that the columns before it already say, is found and left
//! out by name instead of making the system singular. The sizes are a handful of factors over thousands of samples.

use crate::resample::{Interval, bootstrap_all};

/// A regression of a value on factors.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Regression {
    /// Samples.
    pub observations: usize,
    /// The share of the value's variance that all factors together explain, 0 to 1.
    pub r_squared: f64,
    /// Its bootstrap interval.
    pub r_squared_interval: Option<Interval>,
    /// The factors in the given order.
    pub factors: Vec<Factor>,
}

/// One factor.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a factor.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It was estimated.
    Estimated {
        /// Change of the value per unit of the factor.
        coefficient: f64,
        /// Change of the value per standard deviation of the factor, in standard deviations.
        standardised: f64,
        /// Bootstrap interval of the standardised coefficient.
        interval: Option<Interval>,
        /// What R² loses without this factor.
        unique_r_squared: f64,
        /// That loss as a share of what the other factors leave unexplained.
        partial_r_squared: f64,
    },
    /// It is the same in all samples, so it explains no difference between them.
    Constant,
    /// The factors before it say the same.
    Dependent,
}

/// A column whose remainder after orthogonalisation is below this share of its length says nothing new.
const TOLERANCE: f64 = 1e-7;

/// The least squares of `value` on `factors` (names and columns of the same length). `None` if there is nothing to explain:
/// fewer than two samples more than factors, or a value that does not vary.
///
/// # Panics
/// If a column has another length than the value.
pub fn explained(value: &[f64], factors: &[(&str, Vec<f64>)], seed: u64) -> Explained {
    let columns: Vec<&[f64]> = factors.iter().map(|(_, column)| column.as_slice()).collect();
    assert!(columns.iter().all(|column| column.len() == value.len()), "columns are as long as the value");
    if value.len() < factors.len() + 2 {
        return Explained::TooFewSamples;
    }
    let all: Vec<usize> = (0..value.len()).collect();
    let Some(full) = fit(value, &columns, &all) else {
        return Explained::NoVariation;
    };
    let kept: Vec<usize> = (0..columns.len()).filter(|index| full.columns[*index].is_ok()).collect();
    let kept_columns: Vec<&[f64]> = kept.iter().map(|index| columns[*index]).collect();
    let intervals = intervals(value, &kept_columns, seed);
    let factor = |index: usize| match full.columns[index] {
        Err(why) => why.into(),
        Ok(Slope { coefficient, standardised }) => {
            let position = kept.iter().position(|other| *other == index).expect("it is kept");
            let others: Vec<&[f64]> =
                kept.iter().filter(|other| **other != index).map(|other| columns[*other]).collect();
            let without = fit(value, &others, &all).map_or(0.0, |fit| fit.r_squared);
            let unique_r_squared = (full.r_squared - without).max(0.0);
            let left = 1.0 - without;
            let partial_r_squared = if left > TOLERANCE { unique_r_squared / left } else { 0.0 };
            let interval = intervals[position + 1];
            Fate::Estimated { coefficient, standardised, interval, unique_r_squared, partial_r_squared }
        }
    };
    let estimated = factors.iter().enumerate();
    let factors: Vec<Factor> =
        estimated.map(|(index, (name, _))| Factor { name: (*name).into(), fate: factor(index) }).collect();
    Explained::By(Regression {
        observations: value.len(),
        r_squared: full.r_squared,
        r_squared_interval: intervals[0],
        factors,
    })
}

/// Bootstrap intervals of R² and of the standardised coefficients.
fn intervals(value: &[f64], columns: &[&[f64]], seed: u64) -> Vec<Option<Interval>> {
    let number = columns.len() + 1;
    bootstrap_all(value.len(), number, seed, |drawn| match fit(value, columns, drawn) {
        None => vec![None; number],
        Some(fit) => {
            let slopes = fit.columns.iter().map(|column| column.ok().map(|slope| slope.standardised));
            std::iter::once(Some(fit.r_squared)).chain(slopes).collect()
        }
    })
}

/// What a regression found.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explained {
    /// The factors explain so much.
    By(Regression),
    /// The value is the same in all samples.
    NoVariation,
    /// There are fewer than two samples more than factors.
    TooFewSamples,
}

/// The share of the variance of `value` that `columns` explain; `None` if it does not vary.
pub fn r_squared(value: &[f64], columns: &[&[f64]]) -> Option<f64> {
    let all: Vec<usize> = (0..value.len()).collect();
    fit(value, columns, &all).map(|fit| fit.r_squared)
}

/// The slope of the least-squares line of `value` over `column`; `None` if either does not vary.
pub fn slope(value: &[f64], column: &[f64]) -> Option<f64> {
    let all: Vec<usize> = (0..value.len()).collect();
    fit(value, &[column], &all)?.columns[0].ok().map(|slope| slope.coefficient)
}

#[derive(Clone, Copy, Debug)]
struct Slope {
    coefficient: f64,
    standardised: f64,
}

#[derive(Clone, Copy, Debug)]
enum LeftOut {
    Constant,
    Dependent,
}

impl From<LeftOut> for Fate {
    fn from(why: LeftOut) -> Self {
        match why {
            LeftOut::Constant => Fate::Constant,
            LeftOut::Dependent => Fate::Dependent,
        }
    }
}

struct Fit {
    r_squared: f64,
    columns: Vec<Result<Slope, LeftOut>>,
}

/// Fits the rows of `drawn`; `None` if the value does not vary in them.
fn fit(value: &[f64], columns: &[&[f64]], drawn: &[usize]) -> Option<Fit> {
    let (y, y_length) = centred(value, drawn);
    if y_length == 0.0 {
        return None;
    }
    // Orthonormal directions, and the triangle R that makes the kept columns of them.
    let mut directions: Vec<Vec<f64>> = Vec::new();
    let mut triangle: Vec<Vec<f64>> = Vec::new();
    let mut kept: Vec<Result<f64, LeftOut>> = Vec::new();
    for column in columns {
        let (mut rest, length) = centred(column, drawn);
        if length == 0.0 {
            kept.push(Err(LeftOut::Constant));
            continue;
        }
        let mut upper = Vec::with_capacity(directions.len() + 1);
        for direction in &directions {
            let share = dot(direction, &rest);
            rest.iter_mut().zip(direction).for_each(|(rest, direction)| *rest -= share * direction);
            upper.push(share);
        }
        let new = dot(&rest, &rest).sqrt();
        if new <= TOLERANCE * length {
            kept.push(Err(LeftOut::Dependent));
            continue;
        }
        rest.iter_mut().for_each(|rest| *rest /= new);
        upper.push(new);
        directions.push(rest);
        triangle.push(upper);
        kept.push(Ok(length));
    }
    let shares: Vec<f64> = directions.iter().map(|direction| dot(direction, &y)).collect();
    let coefficients = back_substitute(&triangle, &shares);
    let mut coefficients = coefficients.into_iter();
    let columns = kept.into_iter().map(|kept| {
        kept.map(|length| {
            let coefficient = coefficients.next().expect("one for each kept column");
            Slope { coefficient, standardised: coefficient * length / y_length }
        })
    });
    let explained: f64 = shares.iter().map(|share| share * share).sum();
    Some(Fit { r_squared: (explained / (y_length * y_length)).min(1.0), columns: columns.collect() })
}

/// Solves R b = `shares`, where column `k` of R is `triangle[k]`.
fn back_substitute(triangle: &[Vec<f64>], shares: &[f64]) -> Vec<f64> {
    let mut solution = vec![0.0; shares.len()];
    for row in (0..shares.len()).rev() {
        let known: f64 = (row + 1..shares.len()).map(|column| triangle[column][row] * solution[column]).sum();
        solution[row] = (shares[row] - known) / triangle[row][row];
    }
    solution
}

/// The drawn rows less their mean, and the length of that; exactly 0 where they do not vary.
fn centred(column: &[f64], drawn: &[usize]) -> (Vec<f64>, f64) {
    let first = column[drawn[0]];
    if drawn.iter().all(|index| column[*index] == first) {
        return (vec![0.0; drawn.len()], 0.0);
    }
    let mean = drawn.iter().map(|index| column[*index]).sum::<f64>() / drawn.len() as f64;
    let rest: Vec<f64> = drawn.iter().map(|index| column[*index] - mean).collect();
    let length = dot(&rest, &rest).sqrt();
    (rest, length)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without pattern from -1 to 1.
    fn noise(index: usize, salt: u64) -> f64 {
        let word = (index as u64 ^ salt << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (word ^ word >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (word >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn column(salt: u64) -> Vec<f64> {
        (0..500).map(|index| noise(index, salt)).collect()
    }

    fn regression(value: &[f64], factors: &[(&str, Vec<f64>)]) -> Regression {
        match explained(value, factors, 1) {
            Explained::By(regression) => regression,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn known_coefficients_are_recovered() {
        let (one, two, idle) = (column(1), column(2), column(3));
        let value: Vec<f64> = (0..500).map(|row| 7.0 + 3.0 * one[row] - 0.5 * two[row]).collect();
        let found = regression(&value, &[("one", one), ("two", two), ("idle", idle)]);
        assert!((found.r_squared - 1.0).abs() < 1e-12, "{found:?}");
        for (factor, expected) in found.factors.iter().zip([3.0, -0.5, 0.0]) {
            let Fate::Estimated { coefficient, interval, unique_r_squared, .. } = &factor.fate else {
                panic!("{factor:?}")
            };
            assert!((coefficient - expected).abs() < 1e-9, "{factor:?}");
            assert_eq!(*unique_r_squared > 1e-6, expected != 0.0, "{factor:?}");
            assert!(interval.is_some());
        }
    }

    #[test]
    fn what_noise_adds_is_not_explained() {
        let (one, other) = (column(1), column(9));
        // Equal variances: half of it is explained.
        let value: Vec<f64> = one.iter().zip(&other).map(|(one, other)| one + other).collect();
        let found = regression(&value, &[("one", one)]);
        assert!((found.r_squared - 0.5).abs() < 0.06, "{found:?}");
        assert!(found.r_squared_interval.is_some_and(|interval| interval.contains(0.5)), "{found:?}");
        let Fate::Estimated { standardised, unique_r_squared, partial_r_squared, .. } = found.factors[0].fate
        else {
            panic!("{found:?}")
        };
        assert!((standardised - 0.5f64.sqrt()).abs() < 0.05, "{found:?}");
        // The only factor explains all that is explained.
        assert_eq!(unique_r_squared, found.r_squared);
        assert_eq!(partial_r_squared, found.r_squared);
    }

    #[test]
    fn columns_that_say_nothing_new_are_named_and_left_out() {
        let (one, two) = (column(1), column(2));
        let mixed: Vec<f64> = one.iter().zip(&two).map(|(one, two)| 2.0 * one - two + 4.0).collect();
        let value: Vec<f64> = one.iter().zip(&two).map(|(one, two)| one + two).collect();
        let found =
            regression(&value, &[("always 5", vec![5.0; 500]), ("one", one), ("two", two), ("mixed", mixed)]);
        assert_eq!(found.factors[0].fate, Fate::Constant);
        assert_eq!(found.factors[3].fate, Fate::Dependent);
        assert!((found.r_squared - 1.0).abs() < 1e-12);
    }

    #[test]
    fn without_variation_or_samples_there_is_nothing_to_explain() {
        assert_eq!(explained(&[4.0; 500], &[("one", column(1))], 1), Explained::NoVariation);
        assert_eq!(explained(&[1.0, 2.0], &[("one", vec![1.0, 2.0])], 1), Explained::TooFewSamples);
        let found = regression(&column(4), &[("always 5", vec![5.0; 500])]);
        assert_eq!(found.r_squared, 0.0);
    }
}
