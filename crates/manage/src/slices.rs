//! Leaving a processor unused for moments, before the kernel takes it for longer.
//!
//! Linux keeps a part of each second from real-time threads that would take all of it, usually 50 ms at a stretch: longer than many periods,
//! and whoever has the processor then loses it, whatever the hierarchy has promised. What is left unused in small slices it does not take.
//! So an account is kept of each processor:
//!
//! ```text
//!   credit  most ┤‾‾\
//!                │   \  used: falls        /\
//!         length ┤    \                   /  \
//!              0 ┤     \_________________/    \____      left unused, though wanted: rises to `length`
//! ```
//!
//! While it is used, credit falls so that it is gone when the part that is to be left is due; while it is not, it rises. So who leaves
//! enough by itself is never interrupted, and one that wants everything is for half a millisecond in every eight. In each of the
//! kernel's periods at least the part is left that the kernel wants, and a half per cent more.
//!
//! The hierarchy hears of it as of a machine that supplies less (`Engine::take_away`): nobody's budget is charged meanwhile, and what
//! reservations have promised they get from the rest.

use talea_linux::throttling::ordinary_part;
use talea_model::{SLICE, Slices};
use talea_time::{Duration, Instant};

/// What has to be left on this machine as it is set now, if its kernel keeps anything.
pub fn usual() -> Option<Slices> {
    ordinary_part().and_then(|kept| Slices::leaving(kept.amount, kept.period))
}

/// What a processor is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Unused,
    Used,
    /// It is left unused, though somebody may want it.
    Left,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Take the processor away from the hierarchy.
    Leave,
    /// Give it back.
    Resume,
}

/// The account of one processor.
#[derive(Clone, Debug)]
pub struct Account {
    slices: Slices,
    credit: i64,
    at: Use,
    /// Up to when credit has been counted.
    counted: Instant,
}

impl Account {
    /// Of a processor of whose use before `now` nothing is known.
    pub fn new(slices: Slices, now: Instant) -> Self {
        Account { slices, credit: 0, at: Use::Unused, counted: now }
    }

    /// How much credit so much use takes.
    fn cost(&self, used: Duration) -> i64 {
        let (left, rest) = self.slices.thousandths();
        let product = i128::from(used.as_nanos()) * i128::from(left);
        i64::try_from((product + i128::from(rest) - 1) / i128::from(rest)).unwrap_or(i64::MAX)
    }

    /// For how long so much credit lasts.
    fn lasts(&self, credit: i64) -> Duration {
        let (left, rest) = self.slices.thousandths();
        let ns = i128::from(credit.max(0)) * i128::from(rest) / i128::from(left);
        Duration::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    fn count(&mut self, now: Instant) {
        let past = now - self.counted;
        if past <= Duration::ZERO {
            return;
        }
        self.counted = now;
        self.credit = match self.at {
            Use::Used => self.credit.saturating_sub(self.cost(past)),
            Use::Unused | Use::Left => {
                self.credit.saturating_add(past.as_nanos()).min(self.slices.most().as_nanos())
            }
        };
    }

    /// What is to be done at `now`, if anything.
    pub fn turn(&mut self, now: Instant) -> Option<Turn> {
        self.count(now);
        match self.at {
            Use::Used if self.credit <= 0 => {
                self.at = Use::Left;
                Some(Turn::Leave)
            }
            Use::Left if self.credit >= SLICE.as_nanos() => {
                self.at = Use::Unused;
                Some(Turn::Resume)
            }
            _ => None,
        }
    }

    /// Whether somebody has the processor from `now` on.
    pub fn note(&mut self, now: Instant, is_used: bool) {
        self.count(now);
        if self.at != Use::Left {
            self.at = if is_used { Use::Used } else { Use::Unused };
        }
    }

    /// When there is something to do unless something else happens.
    pub fn next(&self) -> Option<Instant> {
        match self.at {
            Use::Unused => None,
            // Not at the same instant over and over.
            Use::Used => Some(self.counted + self.lasts(self.credit).max(Duration::from_nanos(1))),
            Use::Left => Some(self.counted + Duration::from_nanos(SLICE.as_nanos() - self.credit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use talea_time::Work;

    fn usual() -> Slices {
        Slices::leaving(Work::from_millis(50), Duration::from_secs(1)).expect("most is left")
    }

    fn at(ns: i64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Who wants the processor at these times, for so long; what was left unused of it.
    fn played(slices: Slices, wants: &[(i64, i64)], until: i64) -> Vec<(i64, i64)> {
        let mut account = Account::new(slices, at(0));
        let mut unused = vec![];
        let mut edges: Vec<(i64, bool)> =
            wants.iter().flat_map(|(from, to)| [(*from, true), (*to, false)]).collect();
        edges.push((until, false));
        let (mut now, mut is_wanted, mut is_left, mut edge) = (0, false, false, 0);
        while now < until {
            let next = account.next().map_or(i64::MAX, Instant::as_nanos).min(edges[edge].0);
            if !is_wanted || is_left {
                unused.push((now, next));
            }
            now = next;
            if edges[edge].0 == now {
                is_wanted = edges[edge].1;
                edge += 1;
            }
            match account.turn(at(now)) {
                Some(Turn::Leave) => is_left = true,
                Some(Turn::Resume) => is_left = false,
                None => {}
            }
            account.note(at(now), is_wanted && !is_left);
        }
        unused
    }

    fn unused_in(unused: &[(i64, i64)], from: i64, to: i64) -> i64 {
        unused.iter().map(|(a, b)| (b.min(&to) - a.max(&from)).max(0)).sum()
    }

    #[test]
    fn what_is_left_counts_with_a_slice_at_the_worst_instant() {
        let slices = usual();
        let unused = played(slices, &[(0, 3_000_000_000)], 3_000_000_000);
        for (from, _) in &unused {
            for length in [100_000, 500_000, 1_000_000, 8_000_000, 8_500_000, 40_000_000, 1_000_000_000] {
                let used = length - unused_in(&unused, *from, from + length);
                // And the nanosecond that a timer is late by, of each slice.
                assert!(
                    used as f64 >= 0.94 * length as f64 - 470_000.0 - 200.0,
                    "{used} in {length} from {from}"
                );
            }
        }
    }

    #[test]
    fn who_leaves_enough_is_not_interrupted() {
        let slices = usual();
        // 80 ms of each 100, and none of them in pieces.
        let wants: Vec<(i64, i64)> =
            (0..20).map(|k| (k * 100_000_000 + 20_000_000, (k + 1) * 100_000_000)).collect();
        let unused = played(slices, &wants[..1], 100_000_000);
        assert!(unused_in(&unused, 0, 98_000_000) == 20_000_000, "{unused:?}");
    }

    #[test]
    fn one_that_wants_everything_is_interrupted_for_short_times() {
        let slices = usual();
        let second = 1_000_000_000;
        let unused = played(slices, &[(0, 10 * second)], 10 * second);
        // And what was used in the nanosecond that a timer is late by.
        assert!(unused.iter().all(|(from, to)| to - from <= SLICE.as_nanos() + 10), "{unused:?}");
        for k in 0..9 {
            let left = unused_in(&unused, k * second, (k + 1) * second);
            assert!((59_000_000..61_000_000).contains(&left), "{left}");
        }
    }

    proptest! {
        /// Whatever is wanted, in every second at least what the kernel keeps, and a tenth of that more, is left.
        #[test]
        fn in_every_second_enough_is_left(wants in proptest::collection::vec((1i64..40_000, 1i64..400_000), 1..60)) {
            let slices = usual();
            let second = 1_000_000_000;
            let mut now = 0;
            let wants: Vec<(i64, i64)> = wants.iter().map(|(gap, length)| {
                let from = now + gap * 1_000;
                now = from + length * 1_000;
                (from, now)
            }).collect();
            let until = now.max(second) + 1;
            let unused = played(slices, &wants, until);
            for (from, _) in wants.iter().filter(|(from, _)| from + second <= until) {
                let left = unused_in(&unused, *from, from + second);
                prop_assert!(left >= 55_000_000, "{left} from {from}");
            }
        }
    }
}
