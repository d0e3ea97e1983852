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
    part: i64,
    /// Unused time up to this counts for later.
    most: Duration,
}

impl Slices {
    /// What has to be left so that a kernel takes nothing that keeps this `amount` of each `period` from real-time threads: a hundredth of the
    /// processor more. None if it would keep everything.
    pub fn leaving(amount: Work, period: Duration) -> Option<Self> {
        let thousandths = i128::from(amount.as_nanos()) * i128::from(WHOLE);
        let period_ns = i128::from(period.as_nanos());
        let kept = (thousandths + period_ns - 1) / period_ns;
        let part = i64::try_from(kept).ok()? + WHOLE / 100;
        // Of the hundredth, half may have been left before.
        let most = Duration::from_nanos(period.as_nanos() / 200).max(SLICE);
        (part > 0 && part < WHOLE).then_some(Slices { part, most })
    }

    /// The part that is left and the rest, in thousandths.
    pub fn thousandths(&self) -> (i64, i64) {
        (self.part, WHOLE - self.part)
    }

    /// Unused time that counts for later, at most.
    pub fn most(&self) -> Duration {
        self.most
    }

    /// What a scheduler receives of a processor of which this is left: in any time t the rest of t, less at most what is used of the rest
    /// in the length of a slice, for a slice may begin with t.
    pub fn given(&self) -> Guarantee {
        let share = ratio((WHOLE - self.part).unsigned_abs(), WHOLE.unsigned_abs());
        let share = Share::new(share).expect("a part is left, and not all");
        let error = &Span::from_nanos(SLICE.as_nanos().unsigned_abs()) * &share;
        Guarantee::Psbe { share, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundredth_more_is_left_than_is_kept() {
        let slices = Slices::leaving(Work::from_millis(50), Duration::from_secs(1)).expect("most is left");
        assert_eq!((slices.thousandths(), slices.most()), ((60, 940), Duration::from_millis(5)));
        assert_eq!(slices.given().to_string(), "PSBE 0.94 470us");
        assert_eq!(Slices::leaving(Work::from_secs(1), Duration::from_secs(1)), None);
    }
}
