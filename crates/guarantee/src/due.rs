//! What was due to somebody by what was wanted and received alone.
//!
//! A judge beside the [monitors](crate::monitor) that shares no notion with what it judges. A monitor hears from a scheduler when somebody
//! wants a processor; if the two take the same pause for sleep, both are content. This one hears of work that arrives and is done,
//! and of processor time that is received, from whoever has the work. It knows no schedulers, no windows of theirs and no periods: of
//! every promise it takes the line that what is received may never be below, and looks at every instant whether it is.
//!
//! ```text
//!   due by t >= share (t - s) - error      for every s from which on until t work was left to do
//! ```
//!
//! | Promise | share | error |
//! |---|---|---|
//! | ALL | 1 | 0 |
//! | RESC x, y | x/y | (x/y) (y - x): theorem 3 |
//! | RESB x, y | x/y | 2 (x/y) (y - x): theorem 4 |
//! | PSBE s, δ | s | δ |
//! | RESU, PS | s | what is [stated](LongRun), over all times together |
//!
//! Where mechanisms have a price, which the tolerance of a window tells, the share is less by a twentieth: that much of it may go into them.
//!
//! Of a maximum x in y it takes the line that what is received may never be above: 2 x + (x/y) t in any t, work or no work.

use crate::guarantee::{Continuity, Guarantee, Hardness};
use crate::monitor::{LongRun, lessened};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use serde::{Deserialize, Serialize};
use talea_time::{Duration, Instant};

/// Shares are rounded to parts of one, of which there are so many, as a power of two.
const PARTS_LOG: u32 = 40;
const PARTS: i64 = 1 << PARTS_LOG;

/// What was wanted and received, and what is missing of what was due. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Time during which there was work to do.
    pub wanted_ns: i64,
    /// Processor time received in it.
    pub received_ns: i64,
    /// The most that was ever missing of what was due, beyond what may be.
    pub missing_ns: i64,
    /// The most that was ever received beyond a maximum.
    pub excess_ns: i64,
}

/// A share of the time, in parts, with what may be missing.
#[derive(Clone, Copy, Debug)]
struct Line {
    share: i64,
    error: i64,
}

/// Compares what is received with what is due.
#[derive(Clone, Debug)]
pub struct Due {
    /// None where nothing is due at any time.
    least: Option<Line>,
    most: Option<Line>,
    /// Over all times together, not each for itself.
    stated: Option<LongRun>,
    /// The instant up to which everything has been heard.
    now: i64,
    /// Since when there is work.
    pending: bool,
    episodes: i64,
    sums: Sums,
    /// Share times time minus service since there is work, in parts, and the least that it was. It grows only while nothing is received,
    /// so it is greatest when service begins and least when service ends.
    lag: i128,
    lowest: i128,
    /// Service minus share times time, in parts, and the least that it was.
    lead: i128,
    lowest_lead: i128,
}

impl Due {
    /// Of somebody that has no work at `now`. What is missing by no more than `tolerance` is not missing.
    pub fn new(guarantee: &Guarantee, stated: Option<LongRun>, tolerance: Duration, now: Instant) -> Self {
        let tolerance = tolerance.as_nanos();
        let least = least(guarantee, stated.is_some(), tolerance);
        let most =
            guarantee.as_reservation().filter(|amount| amount.hardness() == Hardness::Hard).map(|hard| {
                let amount = hard.amount().nanos() + BigInt::from(tolerance);
                Line {
                    share: parts(&(&amount / hard.period().nanos())) + 1,
                    error: (amount * BigInt::from(2)).ceil().to_integer().to_i64().unwrap_or(i64::MAX),
                }
            });
        let is_average = matches!(guarantee, Guarantee::Resu(_) | Guarantee::Ps(_));
        Due {
            least,
            most,
            stated: stated.filter(|_| is_average),
            now: now.as_nanos(),
            pending: false,
            episodes: 0,
            sums: Sums::default(),
            lag: 0,
            lowest: 0,
            lead: 0,
            lowest_lead: 0,
        }
    }

    /// Whether anything can be due.
    pub fn judges(&self) -> bool {
        self.least.is_some()
    }

    /// Another bound is stated from now on; without one, nothing is due any more of a share in the long run.
    pub fn restate(&mut self, stated: Option<LongRun>) {
        if let Some(before) = self.stated {
            self.stated = Some(before.or_further(stated.unwrap_or(before)));
            self.least = self.least.filter(|_| stated.is_some());
        }
    }

    /// From `now` on there is work to do.
    pub fn work_arrives(&mut self, now: Instant) {
        // Of what is received meanwhile nothing may have been said yet.
        if self.pending {
            return;
        }
        self.pass(now);
        (self.pending, self.episodes) = (true, self.episodes + 1);
        if self.stated.is_none() {
            (self.lag, self.lowest) = (0, 0);
        }
    }

    /// All work is done at `now`.
    pub fn work_is_done(&mut self, now: Instant) {
        self.pass(now);
        self.pending = false;
    }

    /// A processor was received from `from` until `to`.
    #[inline]
    pub fn received(&mut self, from: Instant, to: Instant) {
        self.pass(from);
        self.serve(to);
    }

    /// What has become of it until `now`, up to when nothing more was received.
    pub fn until(&mut self, now: Instant) -> Sums {
        self.pass(now);
        self.sums
    }

    /// What has become of it until the last instant that was heard of.
    pub fn sums(&self) -> Sums {
        self.sums
    }

    /// The time from the last instant that was heard of to `to`. Service may be told of when it is over, and work that came meanwhile
    /// before that.
    #[inline]
    fn advance(&mut self, to: Instant) -> i64 {
        let to = to.as_nanos();
        let length = (to - self.now).max(0);
        self.now = self.now.max(to);
        length
    }

    /// Nothing was received until `now`.
    fn pass(&mut self, now: Instant) {
        let length = self.advance(now);
        if length == 0 {
            return;
        }
        if let Some(most) = self.most {
            self.lead -= times(most.share, length);
            self.lowest_lead = self.lowest_lead.min(self.lead);
        }
        if !self.pending {
            return;
        }
        self.sums.wanted_ns += length;
        let Some(least) = self.least else { return };
        self.lag += times(least.share, length);
        let missing = |beyond: i128| whole(beyond).saturating_sub(least.error);
        let missing = match self.stated {
            None => missing(self.lag - self.lowest),
            // A root is not taken where it could change nothing.
            Some(_) if missing(self.lag) <= self.sums.missing_ns => return,
            Some(stated) => {
                let allowed = stated.allowed(self.sums.wanted_ns, self.episodes);
                whole(self.lag).saturating_sub(allowed).saturating_sub(least.error)
            }
        };
        self.sums.missing_ns = self.sums.missing_ns.max(missing);
    }

    /// A processor was received until `now`.
    fn serve(&mut self, now: Instant) {
        let length = self.advance(now);
        if length == 0 {
            return;
        }
        if let Some(most) = self.most {
            self.lead += times(PARTS - most.share, length);
            let excess = whole(self.lead - self.lowest_lead) - most.error;
            self.sums.excess_ns = self.sums.excess_ns.max(excess);
        }
        if !self.pending {
            return;
        }
        self.sums.wanted_ns += length;
        self.sums.received_ns += length;
        if let Some(least) = self.least {
            self.lag -= times(PARTS - least.share, length);
            self.lowest = self.lowest.min(self.lag);
        }
    }
}

/// One multiplication of machine words.
#[inline]
fn times(share: i64, length: i64) -> i128 {
    i128::from(share) * i128::from(length)
}

/// In whole nanoseconds, rounded down.
fn whole(parts: i128) -> i64 {
    i64::try_from(parts >> PARTS_LOG).unwrap_or(i64::MAX)
}

fn parts(share: &BigRational) -> i64 {
    (share * BigInt::from(PARTS)).floor().to_integer().to_i64().unwrap_or(i64::MAX / 2)
}

/// `amount` in every `period`, of which in the worst case `gap` holds nothing.
fn line(amount: &BigRational, period: &BigRational, gap: &BigRational, tolerance: i64) -> Option<Line> {
    let share = amount / period;
    let error = (&share * gap).ceil().to_integer().to_i64()?;
    let share = i64::try_from(lessened(parts(&share).into(), tolerance)).ok()?;
    Some(Line { share, error: error.saturating_add(tolerance) })
}

fn least(guarantee: &Guarantee, is_stated: bool, tolerance: i64) -> Option<Line> {
    let (nothing, whole) = (BigRational::from_integer(0.into()), BigRational::from_integer(1.into()));
    match guarantee {
        Guarantee::All => line(&whole, &whole, &nothing, tolerance),
        Guarantee::Reservation(reservation) => {
            let (amount, period) = (reservation.amount().nanos(), reservation.period().nanos());
            let gap = match reservation.continuity() {
                Continuity::Basic => (period - amount) * BigInt::from(2),
                Continuity::Continuous => period - amount,
            };
            line(amount, period, &gap, tolerance)
        }
        Guarantee::Psbe { share, error } => {
            let gap = if share.is_none() { nothing } else { error.nanos() / share.ratio() };
            line(share.ratio(), &whole, &gap, tolerance)
        }
        Guarantee::Resu(share) | Guarantee::Ps(share) if is_stated => {
            line(share.ratio(), &whole, &nothing, tolerance)
        }
        Guarantee::Resu(_) | Guarantee::Ps(_) | Guarantee::Null => None,
    }
}
