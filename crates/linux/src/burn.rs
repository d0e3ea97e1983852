//! Synthetic work: consuming a given amount of *processor time*, however long that takes.
//!
//! The amount is measured by the CPU clock of the calling thread, so the time during which others
//! run instead does not count, which is what an execution time means. Reading that clock is a
//! system call; the work is therefore done in chunks of a calibrated loop, with one reading between
//! two chunks. The loop's speed is only used to size the chunks. What was consumed is always taken
//! from the clock, so a changed processor frequency or a cold cache costs accuracy in the last
//! chunk only; and a chunk stops short of the target, so that the steps towards it shrink.

use crate::clock::thread_cpu_time;
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

/// What is burnt, and the clock that says how much was.
trait Fuel {
    /// Consumes processor time in proportion to `turns`.
    fn spin(&mut self, turns: u64);
    /// Processor time consumed since some point before.
    fn consumed(&mut self) -> Work;
}

/// The processor time of the calling thread.
struct ThisThread;

impl Fuel for ThisThread {
    fn spin(&mut self, turns: u64) {
        spin(turns);
    }

    fn consumed(&mut self) -> Work {
        thread_cpu_time()
    }
}

impl Burner {
    /// Measures the loop on the calling thread, for about 5 ms of its time: the fastest of several
    /// rounds, since interrupts only ever slow a round down.
    pub fn calibrate() -> Self {
        Self::calibrate_on(&mut ThisThread)
    }

    /// Consumes `work` of processor time, or less if `abandoned`, which is asked about every 50 µs
    /// of it, says so. Returns what was consumed: at least `work` if it was not abandoned, and more
    /// by less than a microsecond, or by what a single interrupt at the very end costs.
    pub fn burn(&self, work: Work, abandoned: impl Fn() -> bool) -> Work {
        self.burn_on(&mut ThisThread, work, abandoned)
    }

    fn calibrate_on(fuel: &mut impl Fuel) -> Self {
        let mut turns = 1_000u64;
        while timed(fuel, turns) < Work::from_nanos(200_000) {
            turns *= 2;
        }
        let mut fastest = |turns| {
            let rounds = (0..CALIBRATION_ROUNDS).map(|_| timed(fuel, turns));
            rounds.min().expect("there are rounds")
        };
        let (whole, reading) = (fastest(turns), fastest(0));
        let net_ns = (whole - reading).as_nanos().max(1);
        Burner { turns_per_us: turns as f64 * 1_000.0 / net_ns as f64, reading }
    }

    fn burn_on(&self, fuel: &mut impl Fuel, work: Work, abandoned: impl Fn() -> bool) -> Work {
        let start = fuel.consumed();
        let mut consumed = Work::ZERO;
        while consumed < work && !abandoned() {
            fuel.spin(self.next_turns(work - consumed));
            consumed = fuel.consumed() - start;
        }
        consumed
    }

    /// The turns of the next chunk when `left` is to be consumed, of which the reading after the chunk
    /// takes its part.
    fn next_turns(&self, left: Work) -> u64 {
        let left_ns = (left - self.reading).as_nanos().max(0);
        let chunk_ns = if left <= LAST { left_ns } else { CHUNK.as_nanos().min(left_ns / 4 * 3) };
        (chunk_ns as f64 * self.turns_per_us / 1_000.0) as u64 + 1
    }
}

fn timed(fuel: &mut impl Fuel, turns: u64) -> Work {
    let start = fuel.consumed();
    fuel.spin(turns);
    fuel.consumed() - start
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::{Cell, RefCell};

    /// A processor whose every nanosecond is accounted for.
    struct Simulated<'a> {
        spent_ns: &'a Cell<f64>,
        turn_ns: f64,
        /// What the clock costs; it shows what was consumed after the reading.
        reading_ns: i64,
        /// Every second chunk of turns is interrupted for so long.
        interrupt_ns: f64,
        chunks: u64,
    }

    impl<'a> Simulated<'a> {
        fn new(spent_ns: &'a Cell<f64>, turn_ns: f64, reading_ns: i64) -> Self {
            Simulated { spent_ns, turn_ns, reading_ns, interrupt_ns: 0.0, chunks: 0 }
        }

        fn spend(&self, ns: f64) {
            self.spent_ns.set(self.spent_ns.get() + ns);
        }
    }

    impl Fuel for Simulated<'_> {
        fn spin(&mut self, turns: u64) {
            self.chunks += 1;
            let interrupt_ns = if self.chunks.is_multiple_of(2) { self.interrupt_ns } else { 0.0 };
            self.spend(turns as f64 * self.turn_ns + interrupt_ns);
        }

        fn consumed(&mut self) -> Work {
            self.spend(self.reading_ns as f64);
            Work::from_nanos(self.spent_ns.get() as i64)
        }
    }

    #[test]
    fn calibration_finds_the_speed_between_interrupts() {
        let spent_ns = Cell::new(0.0);
        let mut fuel = Simulated { interrupt_ns: 70_000.0, ..Simulated::new(&spent_ns, 1.25, 300) };
        let burner = Burner::calibrate_on(&mut fuel);
        assert_eq!(burner.reading, Work::from_nanos(300));
        assert!((burner.turns_per_us - 800.0).abs() < 0.1, "{burner:?}");
    }

    #[test]
    fn a_loop_too_short_for_its_clock_does_not_divide_by_zero() {
        let burner = Burner::calibrate_on(&mut Simulated::new(&Cell::new(0.0), 1e-9, 500));
        assert!(burner.turns_per_us.is_finite());
    }

    #[test]
    fn an_interrupt_is_part_of_what_was_consumed() {
        let spent_ns = Cell::new(0.0);
        let mut fuel = Simulated::new(&spent_ns, 1.0, 200);
        let burner = Burner::calibrate_on(&mut fuel);
        fuel.interrupt_ns = 30_000.0;
        let consumed = burner.burn_on(&mut fuel, Work::from_millis(1), || false);
        let excess_ns = consumed.as_nanos() - 1_000_000;
        assert!((0..=30_000 + 202).contains(&excess_ns), "over by {excess_ns} ns");
    }

    #[test]
    fn the_question_is_asked_before_every_chunk() {
        let spent_ns = Cell::new(0.0);
        let mut fuel = Simulated::new(&spent_ns, 1.0, 200);
        let burner = Burner::calibrate_on(&mut fuel);
        let asked_at = RefCell::new(Vec::new());
        let consumed = burner.burn_on(&mut fuel, Work::from_millis(1_000), || {
            asked_at.borrow_mut().push(spent_ns.get());
            asked_at.borrow().len() > 10
        });
        let asked_at = asked_at.into_inner();
        assert_eq!(asked_at.len(), 11, "it is not asked again once it was answered");
        // A chunk, the turn that it is rounded up by, and the reading after it.
        assert!(asked_at.windows(2).all(|pair| pair[1] - pair[0] <= 50_000.0 + 1.0 + 200.0), "{asked_at:?}");
        assert!((consumed.as_nanos() - 500_000).abs() <= 10 * 201, "{consumed}");
    }

    proptest! {
        /// The target is reached, and exceeded by a turn and a reading at most; on a processor that has become
        /// slower since the calibration, also by as much as that is of the last two microseconds.
        #[test]
        fn a_burn_takes_what_was_asked_and_hardly_more(
            turn_ns in 0.2f64..50.0,
            reading_ns in 1i64..3_000,
            slower in 0.3f64..1.33,
            work_ns in 0i64..3_000_000,
        ) {
            let spent_ns = Cell::new(0.0);
            let mut fuel = Simulated::new(&spent_ns, turn_ns, reading_ns);
            let burner = Burner::calibrate_on(&mut fuel);
            fuel.turn_ns *= slower;
            let work = Work::from_nanos(work_ns);
            let consumed = burner.burn_on(&mut fuel, work, || false);
            let excess_ns = (consumed - work).as_nanos();
            let step_ns = fuel.turn_ns + reading_ns as f64;
            let drift_ns = (slower - 1.0).max(0.0) * LAST.as_nanos() as f64;
            // Two nanoseconds for the rounding of the clock and the calibration.
            let most_ns = if work_ns == 0 { 0.0 } else { step_ns + drift_ns + 2.0 };
            prop_assert!(0 <= excess_ns && excess_ns as f64 <= most_ns, "{excess_ns} of at most {most_ns} ns");
        }
    }
}
