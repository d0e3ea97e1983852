//! Shares in the long run: what is behind stays below a bound that is stated beforehand.
//!
//! A share in the limit says nothing of any window, and so of no run that ends. What a scheduler does is more: how far somebody falls
//! behind its share while it wants a processor, it bounds by its quanta, and a lottery by a probability. So all time that was wanted
//! is held against all that was received in it, and each stretch of demand may add the bound once: somebody that wakes up waits for those
//! who are served. What was received ahead of the share counts.

use super::{Bound, Findings, Violation};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use talea_time::{Duration, Instant, Work};

use crate::exact::Share;

/// Shares are rounded down to so many parts of one.
const PARTS: i64 = 1 << 40;

/// How far a share in the long run, or a slower processor, may be behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongRun {
    /// In each stretch of demand.
    pub behind: Duration,
    /// By chance: the square root of this times the time wanted. It is zero unless lots are drawn, and then such that more has a
    /// probability of less than one in a hundred million.
    pub chance: Duration,
}

impl LongRun {
    /// Standard deviations of which more has that probability, on one side.
    pub const DEVIATIONS: i64 = 6;

    /// As far as either allows.
    pub(crate) fn or_further(self, other: LongRun) -> LongRun {
        LongRun { behind: self.behind.max(other.behind), chance: self.chance.max(other.chance) }
    }

    /// What may be missing of what was due in `wanted`, in so many stretches, in nanoseconds.
    pub(crate) fn allowed(&self, wanted: i64, stretches: i64) -> i64 {
        let product = self.chance.as_nanos() as u128 * wanted as u128;
        let by_chance = i64::try_from(product.isqrt()).unwrap_or(i64::MAX);
        self.behind.as_nanos().saturating_mul(stretches).saturating_add(by_chance)
    }
}

/// One part of so many of a share that may be missing in the long run: where something is tolerated in a window, mechanisms have a price,
/// which is paid again and again, and up to a twentieth of what is due may go into it; where next to nothing is, amounts are rounded.
fn tolerated_part(tolerance: i64) -> i128 {
    const PRICE: i64 = 1_000;
    if tolerance > PRICE { 20 } else { 10_000 }
}

/// The share without what may be missing of it in the long run.
pub(crate) fn lessened(share: i128, tolerance: i64) -> i128 {
    share - share / tolerated_part(tolerance)
}

/// Judges all stretches of demand together.
#[derive(Clone, Debug)]
pub(super) struct Average {
    /// In parts.
    share: i128,
    bound: LongRun,
    tolerance: i64,
    stretches: i64,
    wanted: i64,
    received: i64,
    /// Where the first stretch began.
    since: i64,
    /// What was missing when a violation was last reported, beyond what was allowed.
    reported: i64,
}

impl Average {
    pub fn new(share: &Share, bound: LongRun, tolerance: i64) -> Self {
        let share = (share.ratio() * BigInt::from(PARTS)).floor().to_integer().to_i128();
        Average {
            share: lessened(share.expect("a share is at most the whole"), tolerance),
            bound,
            tolerance,
            stretches: 0,
            wanted: 0,
            received: 0,
            since: 0,
            reported: 0,
        }
    }

    pub fn restate(&mut self, bound: LongRun) {
        self.bound = self.bound.or_further(bound);
    }

    pub fn begin(&mut self, now: i64) {
        if self.stretches == 0 {
            self.since = now;
        }
        self.stretches += 1;
    }

    /// Where all intervals begin that are judged; any, while nothing is wanted for the first time.
    pub fn earliest(&self) -> i64 {
        if self.stretches == 0 { i64::MAX } else { self.since }
    }

    pub fn pass(&mut self, from: i64, to: i64, serving: bool, found: &mut Findings<'_>) {
        self.wanted += to - from;
        if serving {
            self.received += to - from;
            return;
        }
        found.tally.judged += 1;
        let due = i64::try_from(self.share * i128::from(self.wanted) / i128::from(PARTS)).unwrap_or(i64::MAX);
        let allowed = self.bound.allowed(self.wanted, self.stretches).saturating_add(self.tolerance);
        let missing = (due - self.received).saturating_sub(allowed);
        // Once more only when it has become twice as bad.
        if missing > 0 && missing >= self.reported.saturating_mul(2) {
            self.reported = missing;
            found.note(Violation {
                from: Instant::from_nanos(self.since),
                to: Instant::from_nanos(to),
                received: Work::from_nanos(self.received),
                promised: Work::from_nanos(self.received + missing),
                bound: Bound::Least,
            });
        }
    }
}
