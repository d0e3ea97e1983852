//! The clocks: CLOCK_MONOTONIC for instants, the calling thread's CPU clock for work.

use rustix::thread::ClockId;
use rustix::time::{Timespec, clock_gettime};
use talea_time::{Clock, Instant, Work};

/// CLOCK_MONOTONIC: nanoseconds since some point about the machine's start, the same for all
/// processes of the machine, never stepped. Read through the vDSO, without a system call wherever
/// the clock source allows that (`talea doctor` tells).
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Instant {
        Instant::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
    }
}

/// Processor time the calling thread has received since it began. A system call (0.2 µs or so).
pub fn thread_cpu_time() -> Work {
    Work::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

#[inline]
fn nanos(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The absolute time of an instant on CLOCK_MONOTONIC, as system calls want it. Instants before the
/// clock's origin are past in any case and become the origin, which the kernel accepts.
pub fn timespec(instant: Instant) -> Timespec {
    let ns = instant.as_nanos().max(0);
    Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_never_goes_back() {
        let mut last = MonotonicClock.now();
        for _ in 0..10_000 {
            let now = MonotonicClock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn a_timespec_is_never_negative() {
        assert_eq!(timespec(Instant::from_nanos(-5)), Timespec { tv_sec: 0, tv_nsec: 0 });
        let one_and_a_bit = Instant::from_nanos(1_000_000_007);
        assert_eq!(timespec(one_and_a_bit), Timespec { tv_sec: 1, tv_nsec: 7 });
        assert_eq!(nanos(timespec(Instant::MAX)), i64::MAX);
    }
}
