//! Whether a virtual processor receives what it was promised, judged as time goes by.
//!
//! A [`Monitor`] is told when its virtual processor waits, is ready or runs ([`Standing`]). From when it begins to want
//! a processor until it waits again is a *stretch of demand*: only inside one can anybody be held to a promise, and no
//! window reaches beyond it.
//!
//! | Promise | Judged |
//! |---|---|
//! | ALL | every time that is spent ready |
//! | RESB x, y | every window i of every phase t: some t must be left for which all [t + iy, t + (i + 1) y] hold x |
//! | RESC x, y | every interval of length y |
//! | PSBE s, δ | every interval, by its deficit |
//! | RESU r, PS s | all time that was wanted, by the bound that is [stated](LongRun) of its scheduler; not at all where none is |
//! | NULL | not at all: nothing is promised |
//!
//! H adds that no such window holds more than x. What falls between nanoseconds is rounded in favour of the
//! scheduler that promised; a basic reservation whose period does is judged as the continuous one that it implies (theorem 1).
//!
//! A violation is reported once: what is judged begins anew behind it.

mod basic;
mod continuous;
mod history;
mod long_run;
mod proportional;

use crate::exact::Span;
use crate::guarantee::{Continuity, Guarantee, Hardness, Reservation};
use crate::theorem;
use basic::Basic;
use continuous::Continuous;
use long_run::Average;
pub use long_run::LongRun;
pub(crate) use long_run::lessened;
use num_traits::ToPrimitive;
use proportional::Proportional;
use talea_time::{Duration, Instant, Work};

/// What a virtual processor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has no use for a processor.
    Waiting,
    /// It could use one.
    Ready,
    /// It has one.
    Running,
}

/// Which side of a promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// At least this much.
    Least,
    /// At most this much.
    Most,
}

/// A window that holds less, or more, than was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where the window begins.
    pub from: Instant,
    /// Where it ends.
    pub to: Instant,
    /// The processor time received in it.
    pub received: Work,
    /// What was promised for it.
    pub promised: Work,
    /// Whether that was the least or the most.
    pub bound: Bound,
}

impl Violation {
    /// By how much the promise was missed.
    pub fn amount(&self) -> Work {
        match self.bound {
            Bound::Least => self.promised - self.received,
            Bound::Most => self.received - self.promised,
        }
    }
}

/// What a monitor has seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Time outside of waiting.
    pub wanted: Duration,
    /// Processor time received.
    pub received: Work,
    /// Windows judged; for a share with an error, times without service.
    pub judged: u64,
    /// How many of them broke the promise.
    pub violations: u64,
    /// The first violation of the greatest amount.
    pub worst: Option<Violation>,
}

/// Where judging leaves what it finds.
struct Findings<'a> {
    tally: &'a mut Tally,
    /// Hears of each.
    on_violation: &'a mut dyn FnMut(Violation),
}

impl Findings<'_> {
    fn note(&mut self, violation: Violation) {
        self.tally.violations += 1;
        if self.tally.worst.is_none_or(|worst| violation.amount() > worst.amount()) {
            self.tally.worst = Some(violation);
        }
        (self.on_violation)(violation);
    }
}

/// Compares one virtual processor with its guarantee. Memory grows with the switches within two periods of a
/// reservation.
#[derive(Clone, Debug)]
pub struct Monitor {
    judge: Judge,
    standing: Standing,
    since: Instant,
    tally: Tally,
}

#[derive(Clone, Debug)]
enum Judge {
    Nothing,
    Whole(Whole),
    Basic(Basic),
    Continuous(Continuous),
    Proportional(Proportional),
    Average(Average),
}

/// The whole processor: no time without it.
#[derive(Clone, Copy, Debug)]
struct Whole {
    tolerance: i64,
    /// How long it has been missing by now.
    without: i64,
}

impl Whole {
    fn pass(&mut self, from: i64, to: i64, serving: bool, found: &mut Findings<'_>) {
        if serving {
            self.without = 0;
            return;
        }
        let before = self.without;
        self.without += to - from;
        found.tally.judged += u64::from(before == 0);
        if before <= self.tolerance && self.without > self.tolerance {
            let missing = self.without;
            let limits = Limits { least: missing, most: i64::MAX, promised: missing };
            found.note(limits.check(0, to - missing, missing).expect("it is missing"));
        }
    }
}

/// What may be received in a window, in nanoseconds, with the tolerance on both sides.
#[derive(Clone, Copy, Debug)]
struct Limits {
    least: i64,
    most: i64,
    /// The promise itself.
    promised: i64,
}

impl Limits {
    /// The violation that receiving `received` in `from..from + length` is.
    fn check(&self, received: i64, from: i64, length: i64) -> Option<Violation> {
        let bound = match received {
            received if received < self.least => Bound::Least,
            received if received > self.most => Bound::Most,
            _ => return None,
        };
        Some(Violation {
            from: Instant::from_nanos(from),
            to: Instant::from_nanos(from + length),
            received: Work::from_nanos(received),
            promised: Work::from_nanos(self.promised),
            bound,
        })
    }
}

impl Monitor {
    /// A monitor of a virtual processor that waits, from `now` on. What misses the promise by no more than
    /// `tolerance` is not a violation: on a real machine nobody is switched at an instant.
    pub fn new(guarantee: &Guarantee, tolerance: Duration, now: Instant) -> Self {
        Self::with_bound(guarantee, None, tolerance, now)
    }

    /// The same where something is stated of how far a share in the long run, or a slower processor, may be behind.
    pub fn with_bound(
        guarantee: &Guarantee,
        stated: Option<LongRun>,
        tolerance: Duration,
        now: Instant,
    ) -> Self {
        let tolerance = tolerance.as_nanos();
        let judge = match guarantee {
            Guarantee::All => Judge::Whole(Whole { tolerance, without: 0 }),
            Guarantee::Reservation(reservation) => reserved(reservation, tolerance),
            Guarantee::Psbe { share, error } => match error.nanos().ceil().to_integer().to_i64() {
                Some(error) => {
                    Judge::Proportional(Proportional::new(share.ratio(), error.saturating_add(tolerance)))
                }
                None => Judge::Nothing,
            },
            Guarantee::Resu(share) | Guarantee::Ps(share) => match stated {
                Some(bound) => Judge::Average(Average::new(share, bound, tolerance)),
                None => Judge::Nothing,
            },
            Guarantee::Null => Judge::Nothing,
        };
        Monitor { judge, standing: Standing::Waiting, since: now, tally: Tally::default() }
    }

    /// Another bound is stated from now on of how far behind a share in the long run may be; what it was before may still be felt. Without
    /// one it is not judged any more.
    pub fn restate(&mut self, stated: Option<LongRun>) {
        match (&mut self.judge, stated) {
            (Judge::Average(average), Some(bound)) => average.restate(bound),
            (judge @ Judge::Average(_), None) => *judge = Judge::Nothing,
            _ => {}
        }
    }

    /// Whether this kind of promise can be judged at all.
    pub fn judges(&self) -> bool {
        !matches!(self.judge, Judge::Nothing)
    }

    /// What has been seen up to the last note.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The earliest instant at which a window may begin that is yet to be found broken.
    pub fn earliest(&self) -> Instant {
        let judged = match &self.judge {
            Judge::Average(average) => Some(average.earliest()),
            _ if self.standing == Standing::Waiting => None,
            Judge::Nothing => None,
            Judge::Whole(whole) => Some(self.since.as_nanos() - whole.without),
            Judge::Basic(basic) => Some(basic.earliest()),
            Judge::Continuous(continuous) => Some(continuous.earliest(self.since.as_nanos())),
            Judge::Proportional(proportional) => Some(proportional.earliest()),
        };
        judged.map_or(self.since, |at| self.since.min(Instant::from_nanos(at)))
    }

    /// Judges what has gone by until `now`; it stands as before. `broken` hears of each violation that became certain.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn pass(&mut self, now: Instant, broken: &mut dyn FnMut(Violation)) {
        self.note(now, self.standing, broken);
    }

    /// The promise is none any more from `now` on. `broken` hears of each violation that became certain until then; what a window comes to that is cut
    /// short nobody holds against it.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn let_go(&mut self, now: Instant, broken: &mut dyn FnMut(Violation)) {
        self.pass(now, broken);
        let Tally { violations, worst, .. } = self.tally;
        self.note(now, Standing::Waiting, &mut |_| {});
        (self.tally.violations, self.tally.worst) = (violations, worst);
    }

    /// From `now` on the virtual processor stands like this; until now it stood as told before. To be told the same again
    /// judges what has gone by. `broken` hears of each violation that became certain.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn note(&mut self, now: Instant, standing: Standing, broken: &mut dyn FnMut(Violation)) {
        assert!(now >= self.since, "time runs forward: {now} after {}", self.since);
        let (from, to) = (self.since.as_nanos(), now.as_nanos());
        if self.standing != Standing::Waiting {
            self.tally.wanted = Duration::from_nanos(self.tally.wanted.as_nanos() + (to - from));
            if self.standing == Standing::Running {
                self.tally.received = Work::from_nanos(self.tally.received.as_nanos() + (to - from));
            }
            self.judge.pass(
                from,
                to,
                self.standing,
                &mut Findings { tally: &mut self.tally, on_violation: broken },
            );
        }
        match (self.standing, standing) {
            (Standing::Waiting, Standing::Ready | Standing::Running) => self.judge.begin(to),
            (Standing::Ready | Standing::Running, Standing::Waiting) => {
                self.judge.end(to, &mut Findings { tally: &mut self.tally, on_violation: broken });
            }
            _ => {}
        }
        (self.standing, self.since) = (standing, now);
    }
}

fn reserved(reservation: &Reservation, tolerance: i64) -> Judge {
    let continuity = reservation.continuity();
    if continuity == Continuity::Basic && !reservation.period().nanos().is_integer() {
        let (amount, period) = (reservation.amount().clone(), theorem::one(reservation, &Span::zero()));
        let continuous = Reservation::new(Continuity::Continuous, Hardness::Soft, amount, period);
        return reserved(&continuous.expect("the period has grown"), tolerance);
    }
    let promised = reservation.amount().nanos().floor().to_integer().to_i64();
    let most = match reservation.hardness() {
        Hardness::Hard => reservation.amount().nanos().ceil().to_integer().to_i64(),
        Hardness::Soft => Some(i64::MAX),
    };
    let period = reservation.period().nanos().ceil().to_integer().to_i64();
    match (promised, most, period) {
        (Some(promised), Some(most), Some(period)) => {
            let limits = Limits {
                least: promised.saturating_sub(tolerance),
                most: most.saturating_add(tolerance),
                promised,
            };
            match continuity {
                Continuity::Basic => Judge::Basic(Basic::new(limits, period)),
                Continuity::Continuous => Judge::Continuous(Continuous::new(limits, period)),
            }
        }
        _ => Judge::Nothing,
    }
}

impl Judge {
    /// A stretch of demand begins.
    fn begin(&mut self, now: i64) {
        match self {
            Judge::Nothing => {}
            Judge::Whole(whole) => whole.without = 0,
            Judge::Basic(basic) => basic.begin(now),
            Judge::Continuous(continuous) => continuous.begin(now),
            Judge::Proportional(proportional) => proportional.begin(now),
            Judge::Average(average) => average.begin(now),
        }
    }

    /// Inside a stretch, `from..to` was spent like this.
    fn pass(&mut self, from: i64, to: i64, standing: Standing, found: &mut Findings<'_>) {
        let serving = standing == Standing::Running;
        match self {
            Judge::Nothing => {}
            Judge::Whole(whole) => whole.pass(from, to, serving, found),
            Judge::Basic(basic) => basic.pass(from, to, serving, found),
            Judge::Continuous(continuous) => continuous.pass(from, to, serving, found),
            Judge::Proportional(proportional) => proportional.pass(from, to, serving, found),
            Judge::Average(average) => average.pass(from, to, serving, found),
        }
    }

    /// The stretch ends.
    fn end(&mut self, now: i64, found: &mut Findings<'_>) {
        if let Judge::Basic(basic) = self {
            basic.end(now, found);
        }
    }
}

#[cfg(test)]
mod tests;
