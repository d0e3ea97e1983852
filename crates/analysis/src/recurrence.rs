//! Least fixed points of windows that must hold the work released in them.

use crate::effort::{AnalysisError, Effort};
use talea_time::Duration;

/// The longest time there is, in nanoseconds.
pub(crate) const TIME_MAX: u64 = i64::MAX as u64;

/// What a search ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FixedPoint {
    /// The least window that holds its demand.
    At(u64),
    /// It lies beyond the cap.
    Beyond,
}

/// The least `window` with `demand(window) <= window`, if it is not beyond `cap`, which is at most [`TIME_MAX`].
///
/// `demand` grows with the window and `start` does not lie above the least fixed point; so every iterate stays below
/// it (Knaster and Tarski), and the closer `start` is, the fewer there are. Each costs `cost` steps.
#[inline]
pub(crate) fn least_fixed_point(
    start: u64,
    cap: u64,
    cost: u64,
    effort: &mut Effort,
    demand: impl Fn(u64) -> u128,
) -> Result<FixedPoint, AnalysisError> {
    let mut window = start;
    while window <= cap {
        effort.spend(cost)?;
        match u64::try_from(demand(window)) {
            Ok(needed) if needed > window => window = needed,
            Ok(_) => return Ok(FixedPoint::At(window)),
            Err(_) => return Ok(FixedPoint::Beyond),
        }
    }
    Ok(FixedPoint::Beyond)
}

/// A time as its type.
///
/// # Errors
/// [`AnalysisError::Overflow`] where it is longer than any duration.
pub(crate) fn duration(ns: impl TryInto<i64>) -> Result<Duration, AnalysisError> {
    ns.try_into().map(Duration::from_nanos).map_err(|_| AnalysisError::Overflow)
}

/// `value`, or [`TIME_MAX`] where it is larger.
pub(crate) fn clamped(value: u128) -> u64 {
    u64::try_from(value).map_or(TIME_MAX, |value| value.min(TIME_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_least_fixed_point_up_to_the_cap() {
        // 2 every 5 and 2 every 7, once.
        let demand = |window: u64| u128::from(2 * window.div_ceil(5) + 2 * window.div_ceil(7));
        let search = |cap| least_fixed_point(1, cap, 1, &mut Effort::new(100), demand);
        assert_eq!(search(100), Ok(FixedPoint::At(4)));
        assert_eq!(search(4), Ok(FixedPoint::At(4)));
        assert_eq!(search(3), Ok(FixedPoint::Beyond));
    }

    #[test]
    fn demand_without_a_fixed_point_ends_with_the_budget_or_the_range() {
        let creeping = |window: u64| u128::from(window) + 1;
        let search = least_fixed_point(0, TIME_MAX, 1, &mut Effort::new(100), creeping);
        assert_eq!(search, Err(AnalysisError::TooCostly { steps: 100 }));
        let exploding = |window: u64| u128::from(window) * 1_000_000 + 1;
        let search = least_fixed_point(0, TIME_MAX, 1, &mut Effort::new(100), exploding);
        assert_eq!(search, Ok(FixedPoint::Beyond));
    }
}
