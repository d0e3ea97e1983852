//! When the instances of a task arrive, are released and are due.
//!
//! The nominal arrival of instance `k` is `start + phase + k * period`, whatever happened to the instances before it, so nothing drifts. Its
//! first subtasks are released up to the task's jitter later, by a draw that depends on the seed and `k` alone.

use crate::demand::{self, Purpose};
use std::sync::Arc;
use talea_model::{OutsideArrivals, System, Trigger};
use talea_time::{Duration, Instant};

/// Descriptions are limited to ten years, so what has a longer period than this arrives once.
const ENDLESS: Duration = Duration::from_secs(100 * 365 * 86_400);

/// How the arrivals of a task follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// At least `least` apart, and exponentially distributed beyond that, by draws of a stream of [`demand`].
    Random {
        /// The least distance.
        least: Duration,
        /// The mean of what it is longer by.
        mean: Duration,
        /// The stream.
        stream: u64,
    },
    /// These times after the start, in their order.
    Listed(Arc<[Duration]>),
    /// Nobody knows beforehand: it is said when it has happened.
    Unforeseen,
}

/// The arrivals of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Those of the task at index `task`; of what never ends, one. Of what something outside releases, those that are drawn for it, and of what
    /// another task's values release, none that would be known beforehand.
    pub fn of_task(system: &System, task: usize) -> Self {
        let jitter_stream = demand::stream(system.seed, Purpose::Jitter, task);
        let stream = demand::stream(system.seed, Purpose::Outside, task);
        let task = &system.tasks[task];
        let mut jitter = task.jitter;
        let pattern = match &task.trigger {
            None if task.period > ENDLESS => Pattern::Once { phase: task.phase },
            None => Pattern::Periodic { phase: task.phase, period: task.period },
            Some(
                Trigger::Output { .. }
                | Trigger::Events(_)
                | Trigger::External { arrivals: OutsideArrivals::None },
            ) => Pattern::Unforeseen,
            Some(Trigger::External { arrivals: OutsideArrivals::Periodic { period, jitter: delay } }) => {
                jitter = *delay;
                Pattern::Periodic { phase: Duration::ZERO, period: *period }
            }
            Some(Trigger::External { arrivals: OutsideArrivals::Sporadic { mean } }) => {
                let least = task.separation.map_or(Duration::ZERO, |separation| separation.separation);
                Pattern::Random { least, mean: *mean - least, stream }
            }
            Some(Trigger::External { arrivals: OutsideArrivals::Poisson { mean } }) => {
                Pattern::Random { least: Duration::ZERO, mean: *mean, stream }
            }
            Some(Trigger::External { arrivals: OutsideArrivals::Listed(times) }) => {
                Pattern::Listed(Arc::clone(times))
            }
        };
        Arrivals { pattern, deadline: task.deadline, jitter, jitter_stream }
    }

    /// The nominal arrival of `instance`, counted from `start`; [`Instant::MAX`] if there is none, or none known beforehand. Of random ones it
    /// takes as many steps as there are before it.
    pub fn nominal(&self, start: Instant, instance: u64) -> Instant {
        let since_start = match &self.pattern {
            Pattern::Periodic { phase, period } => {
                let periods = i64::try_from(instance).ok().and_then(|count| period.checked_mul(count));
                periods.and_then(|distance| distance.checked_add(*phase))
            }
            Pattern::Once { phase } => (instance == 0).then_some(*phase),
            Pattern::Random { .. } => {
                let distances = (0..=instance).map(|instance| self.distance(instance));
                return distances.fold(start, Instant::saturating_add);
            }
            Pattern::Listed(times) => {
                usize::try_from(instance).ok().and_then(|index| times.get(index)).copied()
            }
            Pattern::Unforeseen => None,
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
        match &self.pattern {
            Pattern::Periodic { period, .. } => {
                self.released(instance, earlier.nominal.saturating_add(*period))
            }
            Pattern::Random { .. } => {
                self.released(instance, earlier.nominal.saturating_add(self.distance(instance)))
            }
            Pattern::Listed(times) => {
                let time =
                    |index: u64| usize::try_from(index).ok().and_then(|index| times.get(index)).copied();
                match (time(earlier.instance), time(instance)) {
                    (Some(before), Some(time)) => {
                        self.released(instance, earlier.nominal.saturating_add(time - before))
                    }
                    _ => Arrival::never(instance),
                }
            }
            Pattern::Once { .. } | Pattern::Unforeseen => Arrival::never(instance),
        }
    }

    /// Of random arrivals, how long `instance` comes after the one before, or after the start.
    fn distance(&self, instance: u64) -> Duration {
        match self.pattern {
            Pattern::Random { least, mean, stream } => {
                let more = demand::exponential_from(mean, stream, instance);
                least.checked_add(more).unwrap_or(Duration::MAX)
            }
            _ => Duration::ZERO,
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
        assert_eq!(arrivals(Pattern::Unforeseen).at(start, 0).release, Instant::MAX);
    }

    #[test]
    fn random_arrivals_keep_their_distance_and_have_the_mean_that_was_asked_for() {
        let random = arrivals(Pattern::Random { least: MS(4), mean: MS(6), stream: 7 });
        let first = random.at(Instant::ZERO, 0);
        let all: Vec<Arrival> =
            std::iter::successors(Some(first), |last| Some(random.after(*last))).take(10_000).collect();
        assert!(all.windows(2).all(|pair| pair[1].nominal - pair[0].nominal >= MS(4)));
        let mean = (all[9_999].nominal - all[0].nominal).as_nanos() / 9_999;
        assert!((9_700_000..10_300_000).contains(&mean), "{mean}");
    }

    fn patterns() -> impl Strategy<Value = Pattern> {
        let time = |most: i64| (0..most).prop_map(Duration::from_nanos);
        let periodic = (time(1 << 40), 2i64..1 << 40)
            .prop_map(|(phase, period)| Pattern::Periodic { phase, period: Duration::from_nanos(period) });
        let random = (time(1 << 30), time(1 << 30), any::<u64>()).prop_map(|(least, mean, stream)| {
            Pattern::Random { least: least + Duration::from_nanos(2), mean, stream }
        });
        let listed = prop::collection::btree_set(0i64..1 << 40, 0..30).prop_map(|times| {
            Pattern::Listed(times.into_iter().map(|time| Duration::from_nanos(2 * time)).collect())
        });
        prop_oneof![periodic, random, listed]
    }

    proptest! {
        #[test]
        fn one_after_the_other_is_the_same_as_by_number(
            pattern in patterns(),
            jitter: u32,
            seed: u64,
        ) {
            let period = match &pattern {
                Pattern::Periodic { period, .. } => period.as_nanos(),
                _ => 2,
            };
            let jitter = Duration::from_nanos(i64::from(jitter) % period);
            let arrivals = Arrivals { jitter, jitter_stream: seed, ..arrivals(pattern) };
            let start = Instant::from_nanos(77);
            let mut arrival = arrivals.at(start, 0);
            for instance in 1..20 {
                let next = arrivals.after(arrival);
                prop_assert_eq!(next, arrivals.at(start, instance));
                prop_assert!(next.release > arrival.release || next.release == Instant::MAX);
                arrival = next;
            }
        }
    }
}
