//! The pattern that the paper finds over the regions: a cycle with period four, by load jitter more than by load.
//!
//! The statistics are those of the claims. They are asked thousands of times of the same regions, so what depends on the regions alone
//! is computed once: the chain's length and the place in the cycle as columns of length one at right angles. What a factor explains
//! of what others leave is then a sum of squares of as many products. In any [setting](super::setting::Setting) the chain's length is
//! a constant and a multiple of the number of steps, which leaves those columns as they are.

use super::results::RESAMPLING;
use super::setting::Region;
use talea_statistics::permutation_test;

/// What chance does more rarely is no chance.
pub const SURE: f64 = 0.05;

const REGIONS: usize = 12;
type Column = [f64; REGIONS];

/// What the place in the cycle of four explains.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Cycle {
    /// Of what the load leaves.
    pub share: f64,
    /// How likely chance explains as much: Freedman and Lane's permutation of what the load alone leaves.
    pub p: f64,
}

/// What the two factors explain, each of what the other one leaves.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Follows {
    /// The chain's length.
    pub load: f64,
    /// The mean load jitter.
    pub jitter: f64,
    /// Whether more is served with more of it.
    pub rises_with_jitter: bool,
}

/// The factors over the twelve regions.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The mean, and the chain's length.
    load: Vec<Column>,
    /// The place in the cycle, beside the load.
    cycle: Vec<Column>,
    /// The mean, and the load jitter.
    jitter: Vec<Column>,
    /// The load jitter, beside the load.
    jitter_beside: Vec<Column>,
    /// The load, beside the load jitter.
    load_beside: Vec<Column>,
}

impl Pattern {
    /// Of the twelve regions.
    pub fn of_regions() -> Self {
        let mut steps = [0.0; REGIONS];
        let mut jitter_ms = [0.0; REGIONS];
        for region in Region::all() {
            let (low, high) = region.load_jitter().range();
            steps[region.number()] = region.number().max(1) as f64;
            jitter_ms[region.number()] = (low.as_nanos() + high.as_nanos()) as f64 / 2e6;
        }
        let place = |place: usize| std::array::from_fn(|region| f64::from(u8::from(region % 4 == place)));
        let load = beside(&[], &[[1.0; REGIONS], steps]);
        let jitter = beside(&[], &[[1.0; REGIONS], jitter_ms]);
        Pattern {
            cycle: beside(&load, &[place(1), place(2), place(3)]),
            jitter_beside: beside(&load, &[jitter_ms]),
            load_beside: beside(&jitter, &[steps]),
            load,
            jitter,
        }
    }

    /// Whether the place in the cycle explains what the load leaves of `served`, by region; `None` unless of all regions.
    pub fn cycle(&self, served: &[f64]) -> Option<Cycle> {
        let served: Column = served.try_into().ok()?;
        let share = partial(&served, &self.load, &self.cycle);
        let rest = remainder(served, &self.load);
        let p = permutation_test(REGIONS, RESAMPLING, |order| {
            let permuted: Column =
                std::array::from_fn(|place| served[place] - rest[place] + rest[order[place]]);
            partial(&permuted, &self.load, &self.cycle)
        });
        Some(Cycle { share, p })
    }

    /// What the load and the load jitter explain of `served`, by region; `None` unless of all regions.
    pub fn follows(&self, served: &[f64]) -> Option<Follows> {
        let served: Column = served.try_into().ok()?;
        Some(Follows {
            load: partial(&served, &self.jitter, &self.load_beside),
            jitter: partial(&served, &self.load, &self.jitter_beside),
            rises_with_jitter: self.jitter_beside.iter().any(|column| product(&served, column) > 0.0),
        })
    }
}

fn product(one: &Column, other: &Column) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// `value` without what `columns` say of it, which are of length one and at right angles.
fn remainder(value: Column, columns: &[Column]) -> Column {
    columns.iter().fold(value, |rest, column| {
        let along = product(&rest, column);
        std::array::from_fn(|region| rest[region] - along * column[region])
    })
}

/// `columns` without what is said `before` them and by each other, of length one (modified Gram-Schmidt).
fn beside(before: &[Column], columns: &[Column]) -> Vec<Column> {
    let mut found: Vec<Column> = Vec::new();
    for column in columns {
        let rest = remainder(remainder(*column, before), &found);
        let length = product(&rest, &rest).sqrt();
        assert!(length > 1e-9, "the regions differ in their load, their jitter and their place in the cycle");
        found.push(rest.map(|value| value / length));
    }
    found
}

/// What `factor` explains of what `others` leave unexplained of `value`: nothing where they leave nothing.
fn partial(value: &Column, others: &[Column], factor: &[Column]) -> f64 {
    let rest = remainder(*value, others);
    let left = product(&rest, &rest);
    let mean = value.iter().sum::<f64>() / REGIONS as f64;
    let all: f64 = value.iter().map(|value| (value - mean).powi(2)).sum();
    if left <= all * 1e-9 || left <= f64::MIN_POSITIVE {
        return 0.0;
    }
    factor.iter().map(|column| product(&rest, column).powi(2)).sum::<f64>() / left
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_statistics::r_squared;

    fn columns() -> (Vec<f64>, Vec<f64>, Vec<Vec<f64>>) {
        let steps = (0..12).map(|region: usize| region.max(1) as f64 * 2.0 + 7.0).collect();
        let jitter = [0.0, 2.5, 7.5, 5.0].repeat(3);
        let place = |place| (0..12).map(|region| f64::from(u8::from(region % 4 == place))).collect();
        (steps, jitter, (1..4).map(place).collect())
    }

    /// What a factor explains by two regressions.
    fn by_regression(value: &[f64], factor: &[&[f64]], other: &[f64]) -> f64 {
        let without = r_squared(value, &[other]).expect("it varies");
        let with = r_squared(value, &[&[other], factor].concat()).expect("it varies");
        (with - without) / (1.0 - without)
    }

    #[test]
    fn what_a_factor_explains_is_what_regressions_say() {
        let (steps, jitter, places) = columns();
        let served = [45.0, 43.0, 21.0, 38.0, 60.0, 52.5, 31.0, 40.0, 66.0, 58.0, 37.0, 30.0];
        let pattern = Pattern::of_regions();
        let places: Vec<&[f64]> = places.iter().map(Vec::as_slice).collect();
        let cycle = pattern.cycle(&served).expect("twelve regions");
        assert!((cycle.share - by_regression(&served, &places, &steps)).abs() < 1e-9, "{cycle:?}");
        let follows = pattern.follows(&served).expect("twelve regions");
        assert!((follows.load - by_regression(&served, &[&steps], &jitter)).abs() < 1e-9, "{follows:?}");
        assert!((follows.jitter - by_regression(&served, &[&jitter], &steps)).abs() < 1e-9, "{follows:?}");
        assert!(cycle.p < SURE && !follows.rises_with_jitter, "{cycle:?} {follows:?}");
        assert_eq!(pattern.cycle(&served[..8]), None);
    }

    #[test]
    fn growth_alone_is_no_cycle() {
        let pattern = Pattern::of_regions();
        let growing: Vec<f64> = (0..12).map(|region: usize| 20.0 * region.max(1) as f64).collect();
        let cycle = pattern.cycle(&growing).expect("twelve regions");
        assert_eq!((cycle.share, cycle.p), (0.0, 1.0));
        assert_eq!(pattern.follows(&growing).expect("twelve regions").jitter, 0.0);
        let nothing = pattern.cycle(&[0.0; 12]).expect("twelve regions");
        assert_eq!((nothing.share, nothing.p), (0.0, 1.0));
    }
}
