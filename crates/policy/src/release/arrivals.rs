//! When the instances of a task arrive, are released and are due.
//!
//! The nominal arrival of instance `k` is `start + phase + k * period`, whatever happened to the instances before it, so nothing drifts. Its
//! first subtasks are released up to the task's jitter later, by a draw that depends on the seed and `k` alone.

use crate::demand::{self, Purpose};
use talea_model::System;
use talea_time::{Duration, Instant};

/// Descriptions are limited to ten years, so what has a longer period than this arrives once.
const ENDLESS: Duration = Duration::from_secs(100 * 365 * 86_400);

/// How the arrivals of a task follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The first comes `phase` after the start, each other a period after the one before.
    Periodic {
        /// Of the first arrival after the start.
        phase: Duration,
        /// Distance between arrivals.
        period: Duration,
    },
    /// One instance, this long after the start.
    Once {
        /// Of the arrival after the start.
        phase: Duration,
    },
    /// Nobody knows beforehand: whoever causes an arrival says when it is.
    FromOutside,
}

/// The arrivals of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// How they follow each other.
    pub pattern: Pattern,
    /// From the nominal arrival to the deadline.
    pub deadline: Duration,
    /// The greatest delay of a release after the nominal arrival; less than a period, so that releases keep their order.
    pub jitter: Duration,
    /// The stream of [`demand`] that each instance's delay is drawn from.
    pub jitter_stream: u64,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the instance.
    pub instance: u64,
    /// The nominal arrival; [`Instant::MAX`] if there is none.
    pub nominal: Instant,
    /// The release of the first subtasks.
    pub release: Instant,
}

impl Arrival {
    /// There is none.
    fn never(instance: u64) -> Self {
        Arrival { instance, nominal: Instant::MAX, release: Instant::MAX }
    }
}

impl Arrivals {
    /// Those of the task at index `task`; of what never ends, one.
    pub fn of_task(system: &System, task: usize) -> Self {
        let stream = demand::stream(system.seed, Purpose::Jitter, task);
        let task = &system.tasks[task];
        let pattern = match task.period > ENDLESS {
            true => Pattern::Once { phase: task.phase },
            false => Pattern::Periodic { phase: task.phase, period: task.period },
        };
        Arrivals { pattern, deadline: task.deadline, jitter: task.jitter, jitter_stream: stream }
    }

    /// The nominal arrival of `instance`, counted from `start`; [`Instant::MAX`] if there is none, or none known beforehand.
    pub fn nominal(&self, start: Instant, instance: u64) -> Instant {
        let since_start = match self.pattern {
            Pattern::Periodic { phase, period } => {
                let periods = i64::try_from(instance).ok().and_then(|count| period.checked_mul(count));
                periods.and_then(|distance| distance.checked_add(phase))
            }
            Pattern::Once { phase } => (instance == 0).then_some(phase),
            Pattern::FromOutside => None,
        };
        since_start.map_or(Instant::MAX, |distance| start.saturating_add(distance))
    }

    /// Instance `instance`, counted from `start`.
    #[inline]
    pub fn at(&self, start: Instant, instance: u64) -> Arrival {
        self.released(instance, self.nominal(start, instance))
    }

    /// The one after `earlier`, without a multiplication.
    #[inline]
    pub fn after(&self, earlier: Arrival) -> Arrival {
        let instance = earlier.instance + 1;
        match self.pattern {
            Pattern::Periodic { period, .. } => {
                self.released(instance, earlier.nominal.saturating_add(period))
            }
            Pattern::Once { .. } | Pattern::FromOutside => Arrival::never(instance),
        }
    }

    /// The deadline of an instance that arrives nominally at `nominal`.
    #[inline]
    pub fn deadline(&self, nominal: Instant) -> Instant {
        nominal.saturating_add(self.deadline)
    }

    #[inline]
    fn released(&self, instance: u64, nominal: Instant) -> Arrival {
        let delay = demand::release_jitter_from(self.jitter, self.jitter_stream, instance);
        Arrival { instance, nominal, release: nominal.saturating_add(delay) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: fn(i64) -> Duration = Duration::from_millis;

    fn arrivals(pattern: Pattern) -> Arrivals {
        Arrivals { pattern, deadline: MS(8), jitter: Duration::ZERO, jitter_stream: 0 }
    }

    #[test]
    fn periodic_arrivals_do_not_drift() {
        let start = Instant::from_nanos(1_000);
        let periodic = arrivals(Pattern::Periodic { phase: MS(3), period: MS(10) });
        for instance in 0..5 {
            let expected = start + MS(3) + MS(10 * instance as i64);
            let arrival = periodic.at(start, instance);
            assert_eq!(arrival, Arrival { instance, nominal: expected, release: expected });
        }
        assert_eq!(periodic.deadline(start), start + MS(8));
        assert_eq!(periodic.nominal(start, u64::MAX), Instant::MAX, "beyond the end of time");
    }

    #[test]
    fn what_never_ends_arrives_once_and_what_comes_from_outside_is_not_foreseen() {
        let start = Instant::from_nanos(1_000);
        let once = arrivals(Pattern::Once { phase: MS(3) });
        let first = once.at(start, 0);
        assert_eq!(first.release, start + MS(3));
        assert_eq!((once.after(first), once.at(start, 1)), (Arrival::never(1), Arrival::never(1)));
        assert_eq!(arrivals(Pattern::FromOutside).at(start, 0).release, Instant::MAX);
    }

    proptest! {
        #[test]
        fn one_after_the_other_is_the_same_as_by_number(
            phase in 0i64..1 << 40,
            period in 2i64..1 << 40,
            jitter: u32,
            seed: u64,
        ) {
            let pattern = Pattern::Periodic { phase: Duration::from_nanos(phase), period: Duration::from_nanos(period) };
            let jitter = Duration::from_nanos(i64::from(jitter) % period);
            let arrivals = Arrivals { jitter, jitter_stream: seed, ..arrivals(pattern) };
            let start = Instant::from_nanos(77);
            let mut arrival = arrivals.at(start, 0);
            for instance in 1..20 {
                let next = arrivals.after(arrival);
                prop_assert_eq!(next, arrivals.at(start, instance));
                prop_assert!(next.release > arrival.release);
                arrival = next;
            }
        }
    }
}
