//! Punctual sleeping: the kernel's timer, and a short spin where the timer is not good enough.
//!
//! A thread that asks the kernel to wake it at an instant runs some tens of microseconds later: the
//! timer interrupt, the wake-up and, in a virtual machine, the host's part of both. A [`Sleeper`]
//! asks for `lead` earlier and spins over the rest, so that it is late only when the kernel is late
//! by more than the lead.
//!
//! ```text
//!   until - lead          woken              until
//!   ────┬───────────────────┬──────────────────┬────────►
//!       └── kernel's lateness ──┘└──── spun ────┘  then on time
//! ```
//!
//! The price is processor time: on average the lead less the kernel's mean lateness, each time. How
//! much the lead should be is therefore learnt: the sleeper keeps a histogram of the kernel's
//! lateness (buckets of 1 µs, old samples fading) and takes the lead that covers 99.9 % of it, but
//! no more than the budget pays for at the rate at which it is called, and never more than
//! [`LEAD_MAX`]. [`Sleeper::spin_cost`] tells what was spent.
//!
//! The histogram only sees waits that were slept. A wait shorter than the lead would be spun whole, and
//! a source that is due every few microseconds would spin a processor away unseen. So all that is spun
//! is also taken from an allowance that grows by the budget, and while that is used up a wait shorter
//! than the lead is slept without any.

use crate::clock::MonotonicClock;
use crate::stop::{Slept, StopFlag};
use std::fmt;
use talea_time::{Clock, Duration, Instant};

/// No lead is longer: what the kernel is later than this is not worth spinning for.
pub const LEAD_MAX: Duration = Duration::from_micros(80);

/// The share of one processor that [`Tail::default`] may spin away.
pub const DEFAULT_BUDGET: f64 = 0.02;

/// How the last stretch before an instant is passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tail {
    /// Asleep: no cost, and the kernel's lateness.
    Off,
    /// Spinning, always for this long less the kernel's lateness.
    Fixed(Duration),
    /// Spinning for as long as the measured lateness makes worthwhile.
    Adaptive {
        /// The share of one processor that may be spun away, from 0 to 1.
        budget: f64,
    },
}

impl Default for Tail {
    /// Adaptive within [`DEFAULT_BUDGET`].
    fn default() -> Self {
        Tail::Adaptive { budget: DEFAULT_BUDGET }
    }
}

/// How [`Sleeper::sleep_until`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The instant has come.
    Due {
        /// How long ago; never negative.
        late_by: Duration,
        /// How much of the wait was spun.
        spun: Duration,
    },
    /// The stop was requested, or another interruption came, first.
    Stopped,
}

/// What ends a sleep before its time.
pub trait Interruption {
    /// Sleeps until `until` on CLOCK_MONOTONIC or the interruption, whichever is first.
    fn sleep_until(&self, until: Instant) -> Slept;
    /// Whether it is there already.
    fn is_there(&self) -> bool;
}

impl Interruption for StopFlag {
    fn sleep_until(&self, until: Instant) -> Slept {
        StopFlag::sleep_until(self, until)
    }

    fn is_there(&self) -> bool {
        self.is_stopped()
    }
}

/// What the tails have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpinCost {
    /// Time spun.
    pub spun: Duration,
    /// The time over which it was: from the first call of the sleeper to the end of the last.
    pub over: Duration,
    /// How many times the sleeper spun.
    pub times: u64,
}

impl SpinCost {
    /// The share of one processor, 0 to 1.
    pub fn share(&self) -> f64 {
        if self.over == Duration::ZERO { 0.0 } else { self.spun.as_secs_f64() / self.over.as_secs_f64() }
    }
}

impl fmt::Display for SpinCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpinCost { spun, times, .. } = self;
        write!(f, "{} spun in {times} tails, {:.2} % of a CPU", spun.rounded(), 100.0 * self.share())
    }
}

/// Sleeps until instants of CLOCK_MONOTONIC. One per thread; holds what it has learnt.
#[derive(Clone, Debug)]
pub struct Sleeper {
    tail: Tail,
    lateness: Lateness,
    /// The lead in force, for the adaptive tail.
    lead: Duration,
    /// Samples until the lead is computed again.
    until_review: u32,
    allowance: Allowance,
    began: Option<Instant>,
    cost: SpinCost,
}

/// The last stretch of a spin goes without the processor's pause, which alone can take 60 ns; before,
/// the pause leaves the core to its other hardware thread.
const UNPAUSED: Duration = Duration::from_micros(1);

/// Kernel wake-ups between two computations of the lead (each about 0.1 µs, before the sleep).
const REVIEW_EVERY: u32 = 16;

impl Sleeper {
    /// A sleeper that has learnt nothing yet. An adaptive one begins with the longest lead, whatever
    /// its budget, for its first few sleeps: then it knows.
    ///
    /// # Panics
    /// If the budget is not within 0 to 1, or a fixed tail is negative.
    pub fn new(tail: Tail) -> Self {
        match tail {
            Tail::Adaptive { budget } => assert!((0.0..=1.0).contains(&budget), "a budget of {budget}"),
            Tail::Fixed(lead) => assert!(lead >= Duration::ZERO, "a tail of {lead}"),
            Tail::Off => {}
        }
        Sleeper {
            tail,
            lateness: Lateness::default(),
            lead: LEAD_MAX,
            until_review: REVIEW_EVERY,
            allowance: Allowance::default(),
            began: None,
            cost: SpinCost::default(),
        }
    }

    /// Sleeps until `until`, or until the interruption. An instant that has passed is due at once.
    pub fn sleep_until(&mut self, until: Instant, interruption: &impl Interruption) -> Woken {
        let asked = MonotonicClock.now();
        let began = *self.began.get_or_insert(asked);
        // What never comes need not be met.
        let lead = if until < Instant::MAX { self.next_lead(asked) } else { Duration::ZERO };
        let alarm = match until.saturating_add(-lead) {
            alarm if alarm <= asked && self.must_save() => until,
            alarm => alarm,
        };
        if alarm > asked {
            if interruption.sleep_until(alarm) == Slept::Stopped {
                return Woken::Stopped;
            }
        } else if interruption.is_there() {
            return Woken::Stopped;
        }
        let woken = MonotonicClock.now();
        if alarm > asked {
            self.lateness.add(woken - alarm);
        }
        let mut now = woken;
        while now < until {
            if until - now > UNPAUSED {
                std::hint::spin_loop();
            }
            now = MonotonicClock.now();
        }
        let spun = now - woken;
        if woken < until {
            self.cost.spun += spun;
            self.cost.times += 1;
            self.allowance.spend(spun);
        }
        self.cost.over = now - began;
        Woken::Due { late_by: now - until, spun: if woken < until { spun } else { Duration::ZERO } }
    }

    /// What the tails of this sleeper have cost so far.
    pub fn spin_cost(&self) -> SpinCost {
        self.cost
    }

    /// The lead in force: how much before the instant the kernel is asked to wake the thread.
    pub fn lead(&self) -> Duration {
        match self.tail {
            Tail::Off => Duration::ZERO,
            Tail::Fixed(lead) => lead,
            Tail::Adaptive { .. } => self.lead,
        }
    }

    /// Whether a wait has to be slept although it is shorter than the lead.
    fn must_save(&self) -> bool {
        matches!(self.tail, Tail::Adaptive { .. }) && self.allowance.is_used_up()
    }

    fn next_lead(&mut self, now: Instant) -> Duration {
        let Tail::Adaptive { budget } = self.tail else { return self.lead() };
        self.allowance.grow(budget, now);
        self.lateness.last_review.get_or_insert(now);
        self.until_review -= 1;
        if self.until_review == 0 {
            self.until_review = REVIEW_EVERY;
            self.lateness.reviewed_at(now);
            self.lead = self.lateness.lead(budget);
        }
        self.lead
    }
}

/// What may still be spun.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// Below zero after a spin longer than what was left.
    left: Duration,
    grown: Option<Instant>,
}

/// What the first sleeps spin with the longest lead, before anything is learnt, and the most that is
/// saved up: after a long quiet time no burst may spin longer.
const ALLOWANCE_MAX: Duration = Duration::from_nanos(LEAD_MAX.as_nanos() * REVIEW_EVERY as i64);

impl Default for Allowance {
    fn default() -> Self {
        Allowance { left: ALLOWANCE_MAX, grown: None }
    }
}

impl Allowance {
    /// Adds the share `budget` of the time since it was last called.
    fn grow(&mut self, budget: f64, now: Instant) {
        let last = self.grown.replace(now).unwrap_or(now);
        let earned = Duration::from_nanos((budget * (now - last).as_nanos() as f64) as i64);
        self.left = (self.left + earned).min(ALLOWANCE_MAX);
    }

    fn spend(&mut self, spun: Duration) {
        self.left += -spun;
    }

    fn is_used_up(&self) -> bool {
        self.left <= Duration::ZERO
    }
}

const BUCKETS: usize = (LEAD_MAX.as_nanos() / BUCKET_NS) as usize;
const BUCKET_NS: i64 = 1_000;
/// When so many samples are held, all counts are halved.
const FADE_AT: u32 = 2_048;
/// The lead covers all samples but one in this many.
const UNCOVERED: u32 = 1_000;

/// The kernel's lateness, and how often it is met.
#[derive(Clone, Debug)]
struct Lateness {
    /// Counts by microseconds; the last one counts what is later than all others.
    counts: [u32; BUCKETS + 1],
    /// The sum of the counts.
    samples: u32,
    last_review: Option<Instant>,
    /// Mean distance of two sleeps between the last two reviews.
    interval: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness { counts: [0; BUCKETS + 1], samples: 0, last_review: None, interval: Duration::ZERO }
    }
}

impl Lateness {
    fn add(&mut self, late_by: Duration) {
        if self.samples == FADE_AT {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            // Not half of itself: each odd count has lost one half.
            self.samples = self.counts.iter().sum();
        }
        self.samples += 1;
        self.counts[BUCKETS.min((late_by.as_nanos().max(0) / BUCKET_NS) as usize)] += 1;
    }

    /// Notes that [`REVIEW_EVERY`] sleeps were asked for since the last note.
    fn reviewed_at(&mut self, now: Instant) {
        let last = self.last_review.replace(now).unwrap_or(now);
        self.interval = Duration::from_nanos((now - last).as_nanos() / i64::from(REVIEW_EVERY));
    }

    /// The lead worth taking: the least that covers the samples but one in [`UNCOVERED`], and not
    /// more than costs `budget` times the interval on average.
    fn lead(&self, budget: f64) -> Duration {
        let affordable_ns = (budget * self.interval.as_nanos() as f64 * f64::from(self.samples)) as i64;
        let (mut covered, mut spun_ns, mut lead_ns) = (0, 0, 0);
        for &count in &self.counts[..BUCKETS] {
            // A lead longer by one bucket makes every covered wake-up spin longer by as much, and
            // those of this bucket by half of it.
            spun_ns += i64::from(covered) * BUCKET_NS + i64::from(count) * BUCKET_NS / 2;
            if spun_ns > affordable_ns || (self.samples - covered) * UNCOVERED <= self.samples {
                break;
            }
            covered += count;
            lead_ns += BUCKET_NS;
        }
        Duration::from_nanos(lead_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Late by 20 to 39 µs, evenly, asked for every millisecond.
    fn regular() -> Lateness {
        let mut lateness = Lateness { interval: Duration::from_millis(1), ..Lateness::default() };
        (0..1_000).for_each(|n| lateness.add(Duration::from_micros(20 + n % 20)));
        lateness
    }

    #[test]
    fn the_lead_covers_what_was_seen() {
        assert_eq!(regular().lead(1.0), Duration::from_micros(40));
    }

    #[test]
    fn the_lead_stays_within_the_budget() {
        // A lead of 40 us spins 10.5 us on average, about 1.05 % of a millisecond.
        assert_eq!(regular().lead(0.0106), Duration::from_micros(40));
        let half = regular().lead(0.005);
        assert!(Duration::from_micros(30) < half && half < Duration::from_micros(36), "{half}");
        assert!(regular().lead(0.0) <= Duration::from_micros(20));
    }

    #[test]
    fn a_few_wild_wake_ups_do_not_lengthen_the_lead() {
        let mut lateness = regular();
        lateness.add(Duration::from_millis(3));
        assert_eq!(lateness.lead(1.0), Duration::from_micros(40));
        (0..20).for_each(|_| lateness.add(Duration::from_millis(3)));
        assert_eq!(lateness.lead(1.0), LEAD_MAX);
    }

    #[test]
    fn what_was_learnt_fades() {
        let mut lateness = regular();
        (0..60_000).for_each(|_| lateness.add(Duration::from_micros(5)));
        assert_eq!(lateness.lead(1.0), Duration::from_micros(6));
        assert!(lateness.samples <= FADE_AT);
    }

    #[test]
    fn no_sample_means_no_lead() {
        assert_eq!(Lateness::default().lead(1.0), Duration::ZERO);
    }

    /// Spins every gap it may, back to back for one second, and tells what it spun.
    fn spun_in_a_second(budget: f64, gap: Duration) -> Duration {
        let (mut allowance, mut spun) = (Allowance::default(), Duration::ZERO);
        for n in 0..Duration::from_secs(1).as_nanos() / gap.as_nanos() {
            allowance.grow(budget, Instant::ZERO + gap * n);
            if !allowance.is_used_up() {
                allowance.spend(gap);
                spun += gap;
            }
        }
        spun
    }

    #[test]
    fn gaps_shorter_than_the_lead_cost_no_more_than_the_budget() {
        for gap in [1, 10, 79].map(Duration::from_micros) {
            let spun = spun_in_a_second(0.02, gap);
            let most = ALLOWANCE_MAX + Duration::from_millis(20);
            assert!(Duration::from_millis(20) <= spun && spun <= most + gap, "{spun} in gaps of {gap}");
        }
        assert!(spun_in_a_second(0.0, Duration::from_micros(10)) <= ALLOWANCE_MAX);
        assert!(spun_in_a_second(1.0, Duration::from_micros(10)) >= Duration::from_millis(999));
    }

    #[test]
    fn a_quiet_hour_saves_up_no_more_than_the_first_sleeps_may_spin() {
        let mut allowance = Allowance::default();
        allowance.grow(0.02, Instant::ZERO);
        allowance.grow(0.02, Instant::ZERO + Duration::from_secs(3_600));
        allowance.spend(ALLOWANCE_MAX);
        assert!(allowance.is_used_up());
    }

    #[test]
    fn the_cost_reads_as_a_share() {
        let cost = SpinCost { spun: Duration::from_millis(3), over: Duration::from_millis(200), times: 40 };
        assert_eq!(cost.to_string(), "3.00ms spun in 40 tails, 1.50 % of a CPU");
        assert_eq!(SpinCost::default().share(), 0.0);
    }
}
