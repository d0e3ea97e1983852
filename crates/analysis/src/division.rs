//! Division by periods that do not change, without a division instruction.
//!
//! These are the innermost steps of all searches, so what the callers promise is not checked again here.

/// The multiplier that stands for `divisor`, which is not zero: floor((2^64 - 1) / divisor).
pub(crate) fn reciprocal(divisor: u64) -> u64 {
    u64::MAX / divisor
}

/// floor(`dividend` / `divisor`), given the divisor's [`reciprocal`].
///
/// The reciprocal falls short of 2^64 / divisor by at most 1, so the product's upper half falls short of the
/// quotient by less than dividend / 2^64 < 1 before rounding: one correction suffices, for every dividend.
#[inline(always)]
pub(crate) fn quotient(dividend: u64, divisor: u64, reciprocal: u64) -> u64 {
    let estimate = (u128::from(dividend).wrapping_mul(u128::from(reciprocal)) >> 64) as u64;
    let remainder = dividend.wrapping_sub(estimate.wrapping_mul(divisor));
    estimate.wrapping_add(u64::from(remainder >= divisor))
}

/// The work of floor(`dividend` / `period`) + 1 jobs, if it fits in a word, which the caller sees to.
#[inline(always)]
pub(crate) fn work_of_jobs(dividend: u64, period: u64, reciprocal: u64, wcet: u64) -> u64 {
    quotient(dividend, period, reciprocal).wrapping_add(1).wrapping_mul(wcet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_borders_divide_exactly() {
        for divisor in [1, 2, 3, 1 << 32, (1 << 32) + 1, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX] {
            let below_multiple = u64::MAX / divisor * divisor - 1;
            for dividend in [0, 1, divisor - 1, divisor, divisor.saturating_add(1), below_multiple, u64::MAX]
            {
                assert_eq!(quotient(dividend, divisor, reciprocal(divisor)), dividend / divisor);
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_division(dividend: u64, divisor in 1u64.., shift in 0u32..64) {
            let divisor = (divisor >> shift).max(1);
            let below_multiple = (dividend / divisor * divisor).saturating_sub(1);
            for dividend in [dividend, below_multiple] {
                prop_assert_eq!(quotient(dividend, divisor, reciprocal(divisor)), dividend / divisor);
            }
        }
    }
}
