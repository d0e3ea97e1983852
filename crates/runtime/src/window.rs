//! How many instances of each operation may be in flight, and where each of them stands in a table.
//!
//! Every table of jobs in flight has one place for each instance of an operation's *window*, which is a power of two:
//! instance `k` has place `k mod window`. Memory for all places is there before the run begins, so windows are no larger
//! than can be of use. An operation does not need room for more instances than the run has. In a large system windows
//! are shortened to what fits [`JOBS_IN_FLIGHT`], those of frequent operations last: each then spans about the same time,
//! so that a node which cannot keep up for that long loses nothing of any of its operations.

use std::ops::RangeInclusive;
use talea_time::Duration;

/// Jobs in flight that a process provides for unless told otherwise.
const JOBS_IN_FLIGHT: usize = 1 << 17;
/// The longest window that is chosen.
const LONGEST: usize = 1024;
/// The shortest window that is chosen, unless the run has fewer instances.
const SHORTEST: usize = 16;

/// How often an operation is released.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Once in each of these.
    Periodic(Duration),
    /// As it comes: on average no more often than that, if it keeps to what is declared. Several may come at once.
    Sporadic(Duration),
}

impl Pace {
    fn period(self) -> Duration {
        match self {
            Pace::Periodic(period) | Pace::Sporadic(period) => period,
        }
    }

    /// Places for all instances in a run of this length.
    fn instances(self, length: Option<Duration>) -> usize {
        match self {
            Pace::Periodic(period) => instances(length, period),
            Pace::Sporadic(_) => LONGEST,
        }
    }
}

/// The windows of operations with these paces in a run of this length, each a power of two: `asked` for all of them,
/// rounded up, or chosen.
pub(crate) fn choose(asked: Option<usize>, paces: &[Pace], length: Option<Duration>) -> Vec<usize> {
    if let Some(asked) = asked {
        // Tags of jobs are 32-bit numbers.
        let most = (u32::MAX as usize / paces.len().max(1)).max(2);
        let window = asked.clamp(2, most).next_power_of_two();
        return vec![if window > most { window / 2 } else { window }; paces.len()];
    }
    let windows = |span_ns: i64| -> Vec<usize> {
        paces.iter().map(|pace| spanning(span_ns, pace.period()).min(pace.instances(length))).collect()
    };
    let longest = paces.iter().map(|pace| pace.period()).max().unwrap_or(Duration::ZERO);
    let mut span_ns = longest.as_nanos().saturating_mul(LONGEST as i64);
    loop {
        let chosen = windows(span_ns);
        let are_shortest = paces.iter().all(|pace| spanning(span_ns, pace.period()) == SHORTEST);
        if are_shortest || chosen.iter().sum::<usize>() <= JOBS_IN_FLIGHT {
            return chosen;
        }
        span_ns -= span_ns / 8;
    }
}

/// No window is longer that is chosen, or asked for.
pub(crate) fn longest(asked: Option<usize>) -> usize {
    asked.map_or(LONGEST, usize::next_power_of_two)
}

/// The window of an operation with this period that spans no more than `span_ns`, within the limits.
fn spanning(span_ns: i64, period: Duration) -> usize {
    let instances = (span_ns / period.as_nanos()).clamp(SHORTEST as i64, LONGEST as i64);
    1 << instances.ilog2()
}

/// Places for all instances in a run of this length.
fn instances(length: Option<Duration>, period: Duration) -> usize {
    let arrivals = length.map_or(i64::MAX, |length| length.as_nanos() / period.as_nanos() + 1);
    arrivals.clamp(2, LONGEST as i64).unsigned_abs().next_power_of_two() as usize
}

/// Where the places of an operation's window are in a table: instance `k` has `first + (k & mask)`.
#[derive(Clone, Copy, Debug)]
struct Window {
    first: u32,
    mask: u32,
}

/// The windows of all operations in one table.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    windows: Box<[Window]>,
    places: usize,
}

impl Windows {
    /// One after the other in the order of the operations; an operation whose window is 0 has no place.
    ///
    /// # Panics
    /// If a window is not 0 or a power of two, or the places outnumber 32-bit numbers.
    pub fn new(sizes: impl IntoIterator<Item = usize>) -> Self {
        let mut places = 0;
        let place = |size: usize| {
            assert!(size == 0 || size.is_power_of_two(), "a window of {size} instances");
            let first = u32::try_from(places).expect("jobs in flight have 32-bit tags");
            places += size;
            Window { first, mask: (size as u32).saturating_sub(1) }
        };
        let windows = sizes.into_iter().map(place).collect();
        assert!(u32::try_from(places).is_ok(), "{places} jobs in flight have no tags");
        Windows { windows, places }
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.places
    }

    /// The place of an operation's instance.
    #[inline]
    pub fn place(&self, operation: usize, instance: u64) -> u32 {
        let Window { first, mask } = self.windows[operation];
        first + (instance as u32 & mask)
    }

    /// The places of an operation that has some.
    pub fn of(&self, operation: usize) -> RangeInclusive<u32> {
        let Window { first, mask } = self.windows[operation];
        first..=first + mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> Duration = Duration::from_millis;

    fn every(ms: i64) -> Pace {
        Pace::Periodic(MS(ms))
    }

    #[test]
    fn small_systems_have_the_longest_window() {
        assert_eq!(choose(None, &[every(1), every(1000)], None), [1024, 1024]);
        assert_eq!(choose(None, &[every(7); 128], None), [1024; 128]);
        assert!(choose(None, &[], None).is_empty());
    }

    #[test]
    fn no_window_is_longer_than_the_run() {
        let paces = [every(1), every(10), every(1000), every(9000)];
        assert_eq!(choose(None, &paces, Some(MS(5000))), [1024, 512, 8, 2]);
        assert_eq!(choose(None, &[every(1000)], Some(MS(1999))), [2]);
        assert_eq!(choose(None, &[every(1000)], Some(MS(2000))), [4]);
        let sporadic = [Pace::Sporadic(MS(1000)), every(1000)];
        assert_eq!(choose(None, &sporadic, Some(MS(1999))), [1024, 2], "many may come at once");
    }

    #[test]
    fn large_systems_have_windows_that_span_the_same_time() {
        let paces: Vec<Pace> = [10, 20, 50, 100, 200, 500, 1000].map(every).repeat(143);
        let chosen = choose(None, &paces, None);
        let jobs: usize = chosen.iter().sum();
        assert!((JOBS_IN_FLIGHT / 2..=JOBS_IN_FLIGHT).contains(&jobs), "{jobs}");
        assert_eq!(chosen[..7], [512, 256, 64, 32, 16, 16, 16]);
        assert_eq!(choose(None, &vec![every(1); 1 << 14], None)[..3], [16, 16, 16]);
    }

    #[test]
    fn an_asked_window_is_rounded_up_as_far_as_tags_reach() {
        assert_eq!(choose(Some(100), &[every(1); 5], Some(MS(1))), [128; 5]);
        let many = choose(Some(1 << 20), &vec![every(1); 1 << 14], None);
        assert!(many[0] << 14 <= u32::MAX as usize);
    }

    #[test]
    fn places_are_apart_and_come_round() {
        let windows = Windows::new([4, 0, 2]);
        assert_eq!(windows.places(), 6);
        assert_eq!([0, 3, 4, 7].map(|instance| windows.place(0, instance)), [0, 3, 0, 3]);
        assert_eq!([0, 1, 2].map(|instance| windows.place(2, instance)), [4, 5, 4]);
    }
}
