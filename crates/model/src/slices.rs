//! Parts of a processor that are left to ordinary threads in small pieces, before the kernel takes a larger one.

use talea_guarantee::exact::{Share, Span, ratio};
use talea_guarantee::guarantee::Guarantee;
use talea_time::{Duration, Work};

/// How long a processor is left unused at a time.
pub const SLICE: Duration = Duration::from_micros(500);

/// Parts are counted in thousandths.
const WHOLE: i64 = 1_000;

/// How much of a processor is left unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// In thousandths, more than 0 and less than [`WHOLE`].
    left: i64,
    /// What nobody is promised, in thousandths: what is left, and the way there and back.
    kept: i64,
    /// Unused time up to this counts for later.
    most: Duration,
}

impl Slices {
    /// What has to be left so that a kernel takes nothing that keeps this `amount` of each `period` from real-time threads: six thousandths of the
    /// processor more. Another fourteen are for the ways from a decision to the processor: 0.12 ms for each slice. None if everything would be
    /// kept.
    pub fn leaving(amount: Work, period: Duration) -> Option<Self> {
        let thousandths = i128::from(amount.as_nanos()) * i128::from(WHOLE);
        let period_ns = i128::from(period.as_nanos());
        let taken = i64::try_from((thousandths + period_ns - 1) / period_ns).ok()?;
        let (left, kept) = (taken + 6, taken + 20);
        // Of the six thousandths, half may have been left before.
        let most = Duration::from_nanos(period.as_nanos() / WHOLE * 3).max(SLICE);
        (kept > 0 && kept < WHOLE).then_some(Slices { left, kept, most })
    }

    /// The part that is left and the rest, in thousandths.
    pub fn thousandths(&self) -> (i64, i64) {
        (self.left, WHOLE - self.left)
    }

    /// Unused time that counts for later, at most.
    pub fn most(&self) -> Duration {
        self.most
    }

    /// What a scheduler receives of a processor of which this is left: in any time t the part of it that is promised, less at most that part of
    /// a slice with the ways there and back, a quarter of its length, for a slice may begin with t.
    pub fn given(&self) -> Guarantee {
        let share = ratio((WHOLE - self.kept).unsigned_abs(), WHOLE.unsigned_abs());
        let share = Share::new(share).expect("a part is left, and not all");
        let longest = SLICE.as_nanos() + SLICE.as_nanos() / 4;
        let error = &Span::from_nanos(longest.unsigned_abs()) * &share;
        Guarantee::Psbe { share, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_kept_than_the_kernel_keeps() {
        let slices = Slices::leaving(Work::from_millis(50), Duration::from_secs(1)).expect("most is left");
        assert_eq!((slices.thousandths(), slices.most()), ((56, 944), Duration::from_millis(3)));
        assert_eq!(slices.given().to_string(), "PSBE 0.93 581.25us");
        assert_eq!(Slices::leaving(Work::from_secs(1), Duration::from_secs(1)), None);
    }
}
