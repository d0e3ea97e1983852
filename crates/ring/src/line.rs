//! Counter readings as instants: a straight line, steered, and published without waiting.
//!
//! **Steering.** A line starts where the old one is at that reading, so time never jumps back; where the old one was
//! off, the new one is a little steeper or flatter, so that it meets the clock when the next is due. Only if it is
//! behind by more than a millisecond does it jump, forward.
//!
//! **Publishing.** There are two places for a line and a version, whose lowest bit says which place counts.
//!
//! ```text
//! refresher, version v                     reader
//! 1 fence(Release)                         a v = version (Acquire)
//! 2 words of place (v + 1) mod 2           b words of place v mod 2, and the counter
//! 3 version = v + 1 (Release)              c fence(Acquire)
//!                                          d if version is no longer v: again from a
//! ```
//! The place that counts is never written to. A refresher that is preempted anywhere leaves `v` and its place as they
//! are, so no reader waits for it. A reader that was preempted while two refreshers passed sees so at (d): if (b) saw
//! a word of line `v + 2`, which is written after version `v + 1` was stored and a fence (1), then (d) sees at least
//! `v + 1`. It reads again, as often as refreshers pass it: they are many milliseconds apart.

use crate::primitive::Word;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Further behind than this, a new line jumps forward.
const STEP_NS: i64 = 1_000_000;
/// Greatest correction, as a part of the rate: 1/512 is far beyond what clocks drift.
const CORRECTION: i128 = 512;
const FRACTION_BITS: u32 = 32;

/// Instants as a function of counter readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The reading at which it starts.
    pub start: u64,
    /// Readings from the start on for which it holds.
    pub span: u64,
    /// The instant at the start, in nanoseconds.
    pub start_ns: u64,
    /// Nanoseconds per count, in units of 2^-32.
    pub rate: u64,
}

/// A reading of the counter and of the clock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The counter.
    pub count: u64,
    /// The clock, in nanoseconds.
    pub ns: u64,
}

impl Line {
    /// A line that holds nowhere.
    pub const NONE: Line = Line { start: 0, span: 0, start_ns: 0, rate: 0 };

    /// The instant at this reading; `None` where the line does not hold.
    #[inline]
    pub fn at(&self, count: u64) -> Option<u64> {
        let elapsed = count.wrapping_sub(self.start);
        (elapsed < self.span).then(|| {
            let ns = (u128::from(elapsed) * u128::from(self.rate)) >> FRACTION_BITS;
            self.start_ns.wrapping_add(ns as u64)
        })
    }

    /// The line from `now` on, after `old`, given an earlier sample. It is to meet the clock `horizon_ns` from now and
    /// holds `span` counts. `None` if the samples do not follow each other.
    pub fn steered(old: Line, earlier: Sample, now: Sample, horizon_ns: u64, span: u64) -> Option<Line> {
        let counts = now.count.checked_sub(earlier.count).filter(|counts| *counts > 0)?;
        let elapsed = now.ns.checked_sub(earlier.ns).filter(|elapsed| *elapsed > 0)?;
        let rate = (i128::from(elapsed) << FRACTION_BITS) / i128::from(counts);
        let held = old.at(now.count).unwrap_or(now.ns);
        let behind = now.ns.wrapping_sub(held) as i64;
        let (start_ns, behind) = if behind > STEP_NS { (now.ns, 0) } else { (held, behind) };
        let correction = rate * i128::from(behind) / i128::from(horizon_ns.max(1));
        let rate = rate + correction.clamp(-rate / CORRECTION, rate / CORRECTION);
        Some(Line { start: now.count, span, start_ns, rate: u64::try_from(rate).ok()? })
    }

    fn words(self) -> [u64; 4] {
        [self.start, self.span, self.start_ns, self.rate]
    }

    #[inline]
    fn from_words([start, span, start_ns, rate]: [u64; 4]) -> Self {
        Line { start, span, start_ns, rate }
    }
}

/// The line that holds now, and the place for the next.
#[derive(Debug)]
#[repr(align(128))]
pub struct Published<W> {
    version: W,
    places: [[W; 4]; 2],
}

impl<W: Word> Published<W> {
    /// Lines in these words, all 0 at first: [`Line::NONE`].
    pub const fn new(version: W, places: [[W; 4]; 2]) -> Self {
        Published { version, places }
    }

    /// Publishes a line. One thread does at a time.
    pub fn publish(&self, line: Line) {
        let version = self.version.load(Relaxed);
        W::fence(Release);
        for (word, value) in self.places[(version.wrapping_add(1) & 1) as usize].iter().zip(line.words()) {
            word.store(value, Relaxed);
        }
        self.version.store(version.wrapping_add(1), Release);
    }

    /// The line that holds, and what `read` gives while it does.
    #[inline]
    pub fn with<T>(&self, mut read: impl FnMut() -> T) -> (Line, T) {
        loop {
            let version = self.version.load(Acquire);
            let place = &self.places[(version & 1) as usize];
            let words = [
                place[0].load(Relaxed),
                place[1].load(Relaxed),
                place[2].load(Relaxed),
                place[3].load(Relaxed),
            ];
            let value = read();
            W::fence(Acquire);
            if self.version.load(Relaxed) == version {
                return (Line::from_words(words), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GHZ: f64 = 2.6;

    /// A counter of about [`GHZ`], which drifts by up to 100 parts in a million, against the clock, read with an
    /// error of up to 30 ns.
    struct World {
        ns: f64,
        count: f64,
    }

    impl World {
        fn pass(&mut self, ns: f64, drift_ppm: f64) {
            self.ns += ns;
            self.count += ns * GHZ * (1.0 + drift_ppm / 1e6);
        }

        fn sample(&self, error_ns: f64) -> Sample {
            Sample { count: self.count as u64, ns: (self.ns + error_ns) as u64 }
        }
    }

    proptest! {
        /// Whatever the clock does against the counter, instants follow readings; and while drift is moderate, they are
        /// off by no more than the drift of one interval and the errors of reading explain.
        #[test]
        fn lines_follow_the_clock_and_never_go_back(
            steps in prop::collection::vec((1e7f64..2e8, -5.0f64..5.0, -30.0f64..30.0), 2..40),
        ) {
            let mut world = World { ns: 1e12, count: 5e11 };
            let mut earlier = world.sample(0.0);
            world.pass(1e8, 0.0);
            let mut line = Line::NONE;
            for (interval, drift, error) in steps {
                let sample = world.sample(error);
                let next = Line::steered(line, earlier, sample, 100_000_000, u64::MAX).unwrap();
                if let Some(before) = line.at(sample.count) {
                    prop_assert!(next.at(sample.count).unwrap() >= before);
                }
                (line, earlier) = (next, sample);
                let mut last = 0;
                for _ in 0..10 {
                    world.pass(interval / 10.0, drift);
                    let instant = line.at(world.count as u64).unwrap();
                    prop_assert!(instant >= last);
                    last = instant;
                    // 10 ppm between two intervals' drifts over 0.2 s is 2 µs; as much again of corrections.
                    prop_assert!((instant as f64 - world.ns).abs() < 10_000.0, "{}", instant as f64 - world.ns);
                }
            }
        }

        #[test]
        fn no_samples_make_it_panic_or_go_back(
            old in any::<(u64, u64, u64, u64)>(), samples in any::<(u64, u64, u64, u64)>(), horizon in any::<u64>(),
        ) {
            let old = Line { start: old.0, span: old.1, start_ns: old.2 / 4, rate: old.3 >> 30 };
            let earlier = Sample { count: samples.0, ns: samples.1 / 4 };
            let now = Sample { count: samples.2, ns: samples.3 / 4 };
            if let Some(line) = Line::steered(old, earlier, now, horizon, 1 << 40) {
                prop_assert!(line.rate > 0 || now.ns - earlier.ns < (now.count - earlier.count) >> 31);
                prop_assert!(line.at(now.count).unwrap() as i64 >= old.at(now.count).map_or(0, |at| at as i64));
            }
        }
    }

    #[test]
    fn a_line_far_behind_jumps_and_one_far_ahead_slows_down() {
        let second = 1_000_000_000;
        let earlier = Sample { count: 0, ns: 10 * second };
        let now = Sample { count: second, ns: 11 * second };
        let old = |start_ns| Line { start: 0, span: u64::MAX, start_ns, rate: 1 << FRACTION_BITS };
        let behind = Line::steered(old(5 * second), earlier, now, second, u64::MAX).unwrap();
        assert_eq!(behind.at(now.count), Some(now.ns));
        let ahead = Line::steered(old(10 * second + 5000), earlier, now, second, u64::MAX).unwrap();
        assert_eq!(ahead.at(now.count), Some(now.ns + 5000));
        let met = ahead.at(2 * second).unwrap();
        assert!(met.abs_diff(12 * second) <= 1, "{met}");
        assert_eq!(Line::NONE.at(5), None);
        assert_eq!(ahead.at(now.count - 1), None, "before its start");
    }
}
