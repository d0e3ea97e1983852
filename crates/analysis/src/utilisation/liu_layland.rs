//! The utilisation bound for rate-monotonic priorities (Liu and Layland 1973, theorem 5).

use super::exact;
use crate::effort::{AnalysisError, Effort};
use crate::task::Task;
use num_bigint::BigUint;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::One;

/// The bound n (2^(1/n) - 1), rounded, for display; [`holds`] decides without it. For no tasks it is 1.
pub fn bound(tasks: usize) -> f64 {
    match tasks {
        0 => 1.0,
        n => n as f64 * (std::f64::consts::LN_2 / n as f64).exp_m1(),
    }
}

/// Whether the utilisation is at most n (2^(1/n) - 1), exactly.
///
/// If so, the tasks meet their deadlines under preemptive rate-monotonic priorities, provided that deadlines are not
/// shorter than periods and there is no jitter or blocking. If not, nothing is known: the bound is only sufficient.
///
/// U <= n (2^(1/n) - 1) is (1 + U/n)^n <= 2. The power is computed between two multiples of 2^-p with growing p. For
/// n >= 2 the two sides are never equal, since the nth root of 2 is irrational, so some p decides.
///
/// # Errors
/// [`AnalysisError::TooCostly`], as for [`total`](super::total).
pub fn holds(tasks: &[Task], effort: &mut Effort) -> Result<bool, AnalysisError> {
    let utilisation = exact::sum(tasks, effort)?.reduced(effort)?;
    let one = BigRational::one();
    if tasks.len() < 2 || utilisation > one {
        return Ok(utilisation <= one);
    }
    let n = tasks.len() as u64;
    let base = one + utilisation / BigRational::from_integer(n.into());
    let numerator = base.numer().magnitude();
    let denominator = base.denom().magnitude();
    for places in (7..).map(|power| 1_u64 << power) {
        let words = places / 64 + numerator.bits() / 64 + 1;
        effort.spend(words.saturating_mul(words).saturating_mul(u64::from(2 * n.ilog2() + 2)))?;
        let scaled = numerator << places;
        let (low, high) = (scaled.div_floor(denominator), scaled.div_ceil(denominator));
        let two = BigUint::one() << (places + 1);
        if power(&high, n, places, Rounding::Up) <= two {
            return Ok(true);
        }
        if power(&low, n, places, Rounding::Down) > two {
            return Ok(false);
        }
    }
    unreachable!("the places grow until they decide or the budget is used up")
}

#[derive(Clone, Copy)]
enum Rounding {
    Up,
    Down,
}

/// The `exponent`th power of `base`, both in units of 2^-`places`.
fn power(base: &BigUint, exponent: u64, places: u64, rounding: Rounding) -> BigUint {
    let times = |left: &BigUint, right: &BigUint| {
        let product = left * right;
        match rounding {
            Rounding::Down => product >> places,
            Rounding::Up => product.div_ceil(&(BigUint::one() << places)),
        }
    };
    let mut result = BigUint::one() << places;
    for bit in (0..=exponent.ilog2()).rev() {
        result = times(&result, &result);
        if exponent >> bit & 1 == 1 {
            result = times(&result, base);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_time::{Duration, Work};

    fn tasks(shares: &[(i64, i64)]) -> Vec<Task> {
        let task = |(period, wcet): &(i64, i64)| {
            Task::new(Duration::from_nanos(*period), Work::from_nanos(*wcet)).unwrap()
        };
        shares.iter().map(task).collect()
    }

    #[test]
    fn the_bound_falls_from_one_to_the_logarithm_of_two() {
        assert_eq!(bound(1), 1.0);
        assert!((bound(2) - 0.828_427_124_746_190_1).abs() < 1e-15);
        assert!((bound(1_000_000) - std::f64::consts::LN_2).abs() < 1e-6);
    }

    #[test]
    fn two_tasks_are_decided_to_the_last_nanosecond() {
        // Each may use sqrt(2) - 1 = 0.414213562373095048801..
        let period = 1_000_000_000_000_000_000;
        let share = 414_213_562_373_095_048;
        let mut effort = Effort::default();
        assert_eq!(holds(&tasks(&[(period, share), (period, share)]), &mut effort), Ok(true));
        assert_eq!(holds(&tasks(&[(period, share), (period, share + 1)]), &mut effort), Ok(true));
        assert_eq!(holds(&tasks(&[(period, share + 1), (period, share + 1)]), &mut effort), Ok(false));
    }

    #[test]
    fn one_task_may_use_everything() {
        assert_eq!(holds(&tasks(&[(7, 7)]), &mut Effort::default()), Ok(true));
        assert_eq!(holds(&tasks(&[(7, 8)]), &mut Effort::default()), Ok(false));
    }
}
