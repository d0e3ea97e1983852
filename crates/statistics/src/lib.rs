//! Statistics of samples: how they spread, how sure a mean is, what explains them.
//!
//! | File | What it answers |
//! |---|---|
//! | `period` | whether values come periodically |
//! | `spread` | how far values lie apart, and whether they form one group or two |
//! | `resample` | how sure a statistic is: bootstrap intervals, permutation tests |
//! | `regression` | which factors explain a value: ordinary least squares with ablation |
//!
//! Nothing here draws numbers without a seed, so a result can be repeated.

mod period;
mod regression;
mod resample;
mod spread;

pub use period::{Periodicity, periodicity};
pub use regression::{Explained, Factor, Fate, Regression, explained, r_squared, slope};
pub use resample::{Interval, bootstrap, mean_interval, permutation_test, swap_test};
pub use spread::{Spread, bimodality, largest_gap, spread};

/// The mean of `values`.
///
/// # Panics
/// Without values.
pub fn mean(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "a mean is of something");
    values.iter().sum::<f64>() / values.len() as f64
}
