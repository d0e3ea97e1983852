//! Division by periods that do not change, without a division instruction.

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
    let estimate = ((u128::from(dividend) * u128::from(reciprocal)) >> 64) as u64;
    let remainder = dividend - estimate * divisor;
    estimate + u64::from(remainder >= divisor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_borders_divide_exactly() {
        for divisor in [1, 2, 3, 1 << 32, (1 << 32) + 1, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX] {
            for dividend in [0, 1, divisor - 1, divisor, divisor.saturating_add(1), u64::MAX - 1, u64::MAX] {
                assert_eq!(quotient(dividend, divisor, reciprocal(divisor)), dividend / divisor);
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_division(dividend: u64, divisor in 1u64.., shift in 0u32..64) {
            let divisor = (divisor >> shift).max(1);
            prop_assert_eq!(quotient(dividend, divisor, reciprocal(divisor)), dividend / divisor);
        }
    }
}
