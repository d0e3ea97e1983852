//! Shares with a bounded error: every interval of any length t holds s t - δ.
//!
//! The *lag* s t - S(t), with the service S since the stretch began, falls during service and rises otherwise. The
//! deficit of an interval is how far the lag rises in it, so the greatest is found from where the lag was lowest.

use super::{Bound, Findings, Violation};
use crate::exact::Ratio;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use talea_time::{Instant, Work};

/// Shares are rounded down to so many parts of one: less than three nanoseconds in an hour.
const PARTS: i64 = 1 << 40;

/// Judges one stretch of demand after the other.
#[derive(Clone, Debug)]
pub(super) struct Proportional {
    /// In parts.
    share: i128,
    /// Nanoseconds.
    error: i64,
    /// In parts of a nanosecond, since the stretch or the last violation.
    lag: i128,
    lowest: i128,
    lowest_at: i64,
    /// Service since then.
    since_lowest: i64,
    /// Whether a violation was reported since the lag last fell.
    reported: bool,
}

impl Proportional {
    pub fn new(share: &Ratio, error: i64) -> Self {
        let share = (share * BigInt::from(PARTS)).floor().to_integer().to_i128();
        Proportional {
            share: share.expect("a share is at most the whole"),
            error,
            lag: 0,
            lowest: 0,
            lowest_at: 0,
            since_lowest: 0,
            reported: false,
        }
    }

    pub fn begin(&mut self, now: i64) {
        (self.lag, self.lowest, self.lowest_at, self.since_lowest) = (0, 0, now, 0);
        self.reported = false;
    }

    /// No interval begins earlier that is still to be judged.
    pub fn earliest(&self) -> i64 {
        self.lowest_at
    }

    pub fn pass(&mut self, from: i64, to: i64, serving: bool, found: &mut Findings<'_>) {
        let length = to - from;
        self.lag += self.share * i128::from(length);
        if serving {
            self.lag -= i128::from(PARTS) * i128::from(length);
            self.since_lowest += length;
            if self.lag <= self.lowest {
                (self.lowest, self.lowest_at, self.since_lowest) = (self.lag, to, 0);
                self.reported = false;
            }
            return;
        }
        found.tally.judged += 1;
        let deficit = self.lag - self.lowest;
        if deficit > i128::from(PARTS) * i128::from(self.error) && !self.reported {
            self.reported = true;
            let behind = i64::try_from(deficit / i128::from(PARTS)).unwrap_or(i64::MAX);
            let promised = self.since_lowest.saturating_add(behind - self.error);
            found.note(Violation {
                from: Instant::from_nanos(self.lowest_at),
                to: Instant::from_nanos(to),
                received: Work::from_nanos(self.since_lowest),
                promised: Work::from_nanos(promised),
                bound: Bound::Least,
            });
        }
    }
}
