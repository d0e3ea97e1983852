//! Time stamps that cost little more than reading the processor's counter.
//!
//! CLOCK_MONOTONIC is, on most machines, the processor's time-stamp counter times a rate that the kernel steers.
//! [`now`] does the multiplication itself, with a rate that an ordinary thread, the keeper, compares with the kernel's
//! ten times a second ([`line`](mod@talea_ring::line) says how). So the instants of this process, of others and of the kernel are on one
//! clock, to within the errors of comparing: some tens of nanoseconds on an idle machine.
//!
//! Where there is no such counter, the kernel does not use it, there is no keeper, or the keeper has not run for
//! [`SPAN_NS`], [`now`] asks the kernel. Instants from here and from the kernel may therefore be out of order by the
//! error; within one ring they are put in order ([`super::local`]).

use crate::mapping::counter;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;
use talea_ring::line::{Line, Published, Sample};
use talea_time::Instant;

/// How long a line holds, if the keeper does not run.
pub const SPAN_NS: u64 = 4_000_000_000;
/// How often the rate is compared, once it is known well.
const INTERVAL: Duration = Duration::from_millis(100);
/// The first comparisons come sooner, each twice as late as the last.
const FIRST_INTERVAL: Duration = Duration::from_millis(10);
/// Readings per comparison, of which the one counts that took the least time.
const READINGS: usize = 8;
/// Comparisons after which the kernel's clock source is looked at again.
const SOURCE_EVERY: u32 = 10;
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

static LINE: Published<AtomicU64> =
    Published::new(AtomicU64::new(0), [const { [const { AtomicU64::new(0) }; 4] }; 2]);

/// The instant, on CLOCK_MONOTONIC.
#[inline]
pub fn now() -> Instant {
    let (line, count) = LINE.with(counter::read);
    match line.at(count) {
        Some(ns) => Instant::from_nanos(ns as i64),
        None => kernel_now(),
    }
}

/// The instant as the kernel says it.
#[cold]
pub fn kernel_now() -> Instant {
    Instant::from_nanos(kernel_ns() as i64)
}

/// What makes the time of day of an instant: nanoseconds to be added, as of now. Whoever sets the time of day changes it.
pub fn realtime_offset_ns() -> i64 {
    let before = kernel_ns();
    let day = clock_gettime(ClockId::Realtime);
    let after = kernel_ns();
    let day_ns = day.tv_sec.saturating_mul(1_000_000_000).saturating_add(day.tv_nsec);
    day_ns.saturating_sub((before + (after - before) / 2) as i64)
}

fn kernel_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// The processor's counter as it is, for measuring what everything else costs; 0 where there is none.
#[doc(hidden)]
#[inline]
pub fn raw_count() -> u64 {
    counter::read()
}

/// Where [`now`] takes the time from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// The processor's counter.
    Counter,
    /// The kernel.
    Kernel,
}

/// Where [`now`] takes the time from at this moment.
pub fn source() -> TimeSource {
    let (line, count) = LINE.with(counter::read);
    line.at(count).map_or(TimeSource::Kernel, |_| TimeSource::Counter)
}

/// Whether the kernel takes its time from the counter.
fn is_usable() -> bool {
    counter::IS_READABLE && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

/// The counter and the kernel's clock at the same time.
fn sample() -> Sample {
    let reading = |_| {
        let before = counter::read();
        let ns = kernel_ns();
        let took = counter::read().wrapping_sub(before);
        (took, Sample { count: before.wrapping_add(took / 2), ns })
    };
    let best = (0..READINGS).map(reading).min_by_key(|(took, _)| *took);
    best.expect("there are readings").1
}

/// Of the thread that compares, in bytes; it takes that much memory where memory is locked.
const STACK: usize = 64 * 1024;

/// Holds the thread that compares, which ends with it.
#[derive(Debug)]
pub struct Keeper(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    ended: Mutex<bool>,
    told: Condvar,
}

static KEEPER: Mutex<Weak<Keeper>> = Mutex::new(Weak::new());
/// Held by the thread that compares: there is one at a time.
static COMPARING: Mutex<()> = Mutex::new(());

/// Has the rate compared while what is returned is held. Called from an ordinary thread, whose scheduling the keeper
/// inherits. Without a keeper, because no thread can be made, time comes from the kernel.
pub fn keep() -> Arc<Keeper> {
    let mut current = KEEPER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(keeper) = current.upgrade() {
        return keeper;
    }
    let signal = Arc::new(Signal::default());
    let keeper = Arc::new(Keeper(Arc::clone(&signal)));
    *current = Arc::downgrade(&keeper);
    if is_usable() {
        // Failing to make a thread is no failure: the time comes from the kernel then.
        let thread = std::thread::Builder::new().name("talea-clock".into()).stack_size(STACK);
        let _ = thread.spawn(move || compare(&signal));
    }
    keeper
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.told.notify_all();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slept {
    Due,
    Ended,
}

impl Signal {
    fn sleep(&self, interval: Duration) -> Slept {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wait_timeout_while(ended, interval, |ended| !*ended);
        match *waited.unwrap_or_else(PoisonError::into_inner).0 {
            true => Slept::Ended,
            false => Slept::Due,
        }
    }
}

/// Compares until it is told to end, or the kernel no longer takes its time from the counter.
fn compare(signal: &Signal) {
    let _only = COMPARING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut earlier = sample();
    let mut line = Line::NONE;
    let mut interval = FIRST_INTERVAL;
    for comparison in 1u32.. {
        if signal.sleep(interval) == Slept::Ended || (comparison % SOURCE_EVERY == 0 && !is_usable()) {
            break;
        }
        interval = (interval * 2).min(INTERVAL);
        let now = sample();
        let horizon_ns = interval.as_nanos() as u64;
        let counts = u128::from(now.count.wrapping_sub(earlier.count));
        let span = counts * u128::from(SPAN_NS) / u128::from(now.ns.saturating_sub(earlier.ns).max(1));
        let span = u64::try_from(span).unwrap_or(u64::MAX);
        if let Some(next) = Line::steered(line, earlier, now, horizon_ns, span) {
            LINE.publish(next);
            line = next;
        }
        earlier = now;
    }
    LINE.publish(Line::NONE);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for the keeper's first line; `None` where the machine has no counter to take time from.
    fn kept() -> Option<Arc<Keeper>> {
        let keeper = keep();
        if !is_usable() {
            talea_measure::skip("the kernel does not take its time from the counter");
            return None;
        }
        while source() == TimeSource::Kernel {
            std::thread::yield_now();
        }
        Some(keeper)
    }

    /// Most instants lie between two that the kernel gives before and after. Preemption only widens the bracket. Where
    /// the keeper does not get to run for long, the line drifts until it does; so one good stretch of many suffices.
    #[test]
    fn instants_lie_where_the_kernel_says() {
        const TOLERANCE_NS: i64 = 2_000;
        let Some(_keeper) = kept() else { return };
        let lies_inside = |_: &u32| {
            let before = kernel_now().as_nanos();
            let now = now().as_nanos();
            let after = kernel_now().as_nanos();
            source() == TimeSource::Counter && (before - TOLERANCE_NS..=after + TOLERANCE_NS).contains(&now)
        };
        let stretch = || (0..10_000).filter(lies_inside).count();
        let best = (0..200).map(|_| stretch()).find(|inside| *inside > 5_000);
        assert!(best.is_some(), "no stretch of 200 had most of its instants where the kernel has them");
    }

    #[test]
    fn a_thread_sees_time_go_on() {
        let Some(_keeper) = kept() else { return };
        let (mut last, mut back) = (now(), 0);
        for _ in 0..200_000 {
            let next = now();
            back += u32::from(next < last);
            last = next;
        }
        // Only where the keeper starts a line while this thread reads.
        assert!(back < 100, "{back} of 200000 instants before the last");
    }
}
