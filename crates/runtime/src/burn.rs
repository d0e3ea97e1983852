//! Synthetic work: consuming a given amount of *processor time*, however long that takes.
//!
//! The amount is measured by the CPU clock of the calling thread, so the time during which others
//! run instead does not count, which is what an execution time means. Reading that clock is a
//! system call; the work is therefore done in chunks of a calibrated loop, with one reading between
//! two chunks. The loop's speed is only used to size the chunks. What was consumed is always taken
//! from the clock, so a changed processor frequency or a cold cache costs accuracy in the last
//! chunk only; and a chunk stops short of the target, so that the steps towards it shrink.

use crate::sys::clock::thread_cpu_time;
use std::hint::black_box;
use talea_time::Work;

/// Work between two looks at whether the job was abandoned.
const CHUNK: Work = Work::from_nanos(50_000);
/// Below this a chunk is sized to hit the target; above, to go three quarters of the way at most, so
/// that a processor slower than calibrated by a third does not overshoot.
const LAST: Work = Work::from_nanos(2_000);
const CALIBRATION_ROUNDS: usize = 20;

/// A loop of known speed.
#[derive(Clone, Copy, Debug)]
pub struct Burner {
    /// Turns of the loop in a microsecond of processor time.
    turns_per_us: f64,
    /// What one reading of the CPU clock costs.
    reading: Work,
}

impl Burner {
    /// Measures the loop on the calling thread, for about 5 ms of its time: the fastest of several
    /// rounds, since interrupts only ever slow a round down.
    pub fn calibrate() -> Self {
        let mut turns = 1_000u64;
        while timed(turns) < Work::from_nanos(200_000) {
            turns *= 2;
        }
        let fastest = (0..CALIBRATION_ROUNDS).map(|_| timed(turns)).min().expect("there are rounds");
        let reading = (0..CALIBRATION_ROUNDS).map(|_| timed(0)).min().expect("there are rounds");
        let net_ns = (fastest - reading).as_nanos().max(1);
        Burner { turns_per_us: turns as f64 * 1_000.0 / net_ns as f64, reading }
    }

    /// Consumes `work` of processor time, or less if `abandoned`, which is asked about every 50 µs
    /// of it, says so. Returns what was consumed: at least `work` if it was not abandoned, and more
    /// by less than a microsecond, or by what a single interrupt at the very end costs.
    pub fn burn(&self, work: Work, abandoned: impl Fn() -> bool) -> Work {
        let start = thread_cpu_time();
        let mut consumed = Work::ZERO;
        while consumed + self.reading < work && !abandoned() {
            let left = work - consumed - self.reading;
            let chunk_ns =
                if left <= LAST { left.as_nanos() } else { CHUNK.as_nanos().min(left.as_nanos() / 4 * 3) };
            spin((chunk_ns as f64 * self.turns_per_us / 1_000.0) as u64 + 1);
            consumed = thread_cpu_time() - start;
        }
        consumed
    }
}

fn timed(turns: u64) -> Work {
    let start = thread_cpu_time();
    spin(turns);
    thread_cpu_time() - start
}

/// A dependent chain of multiplications, which no compiler shortens and no processor overlaps.
#[inline(never)]
fn spin(turns: u64) {
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..turns {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    black_box(state);
}
