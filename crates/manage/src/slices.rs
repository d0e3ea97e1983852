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
//! enough by itself is never interrupted, and one that wants everything is for half a millisecond in every nine. In each of the
//! kernel's periods at least the part is left that the kernel wants, and three to six thousandths more.
//!
//! What counts is when the processor is really left: from a decision to there it took a hundred microseconds on a slow virtual machine,
//! in which those who decide have it, who are real-time threads to the kernel. That was a fifth of a slice, and would be the difference
//! between what the kernel wants and what it gets.
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
    /// It is taken from the hierarchy, and those who decide have it still.
    Leaving,
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
    /// In nanoseconds times [`rest`](Self::rest), so that it stays exact: rounded each time that it is counted, it would be gone earlier with every
    /// decision, and the timer be set anew.
    credit: i64,
    at: Use,
    /// Up to when credit has been counted.
    counted: Instant,
    /// When it is given back at the latest, should nobody say that it was left.
    until: Instant,
}

impl Account {
    /// Of a processor of whose use before `now` nothing is known.
    pub fn new(slices: Slices, now: Instant) -> Self {
        Account { slices, credit: 0, at: Use::Unused, counted: now, until: now }
    }

    /// So many parts of use cost as much as [`left`](Self::left) parts bring that are left.
    fn rest(&self) -> i64 {
        self.slices.thousandths().1
    }

    fn left(&self) -> i64 {
        self.slices.thousandths().0
    }

    /// The credit of so much time that is left.
    fn credit_of(&self, left: Duration) -> i64 {
        left.as_nanos().saturating_mul(self.rest())
    }

    fn count(&mut self, now: Instant) {
        let past = now - self.counted;
        if past <= Duration::ZERO {
            return;
        }
        self.counted = now;
        self.credit = match self.at {
            Use::Used | Use::Leaving => {
                self.credit.saturating_sub(past.as_nanos().saturating_mul(self.left()))
            }
            Use::Unused | Use::Left => {
                self.credit.saturating_add(self.credit_of(past)).min(self.credit_of(self.slices.most()))
            }
        };
    }

    /// What is to be done at `now`, if anything.
    pub fn turn(&mut self, now: Instant) -> Option<Turn> {
        self.count(now);
        match self.at {
            Use::Used if self.credit <= 0 => {
                (self.at, self.until) = (Use::Leaving, now + SLICE + SLICE);
                Some(Turn::Leave)
            }
            Use::Left if self.credit >= self.credit_of(SLICE) => {
                self.at = Use::Unused;
                Some(Turn::Resume)
            }
            Use::Leaving if now >= self.until => {
                (self.at, self.credit) = (Use::Unused, self.credit_of(SLICE));
                Some(Turn::Resume)
            }
            _ => None,
        }
    }

    /// From `now` on nobody of the hierarchy has the processor that is to be left, and nobody who decides. Returns whether that is news.
    pub fn begin(&mut self, now: Instant) -> bool {
        if self.at != Use::Leaving {
            return false;
        }
        self.count(now);
        self.at = Use::Left;
        true
    }

    /// Whether somebody has the processor from `now` on.
    pub fn note(&mut self, now: Instant, is_used: bool) {
        self.count(now);
        if !matches!(self.at, Use::Leaving | Use::Left) {
            self.at = if is_used { Use::Used } else { Use::Unused };
        }
    }

    /// When there is something to do unless something else happens.
    pub fn next(&self) -> Option<Instant> {
        match self.at {
            Use::Unused => None,
            // Not before it is gone, and not at the same instant over and over.
            Use::Used => Some(self.counted + Duration::from_nanos(div_up(self.credit, self.left()).max(1))),
            Use::Leaving => Some(self.until),
            Use::Left => {
                let missing = self.credit_of(SLICE) - self.credit;
                Some(self.counted + Duration::from_nanos(div_up(missing, self.rest())))
            }
        }
    }
}

/// For a positive divisor.
fn div_up(credit: i64, by: i64) -> i64 {
    -(-credit).div_euclid(by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use talea_time::Work;

    fn usual() -> Slices {
        Slices::leaving(Work::from_millis(50), Duration::from_secs(1)).expect("most is left")
    }

    /// As on a slow machine.
    const WAY: i64 = 110_000;

    fn at(ns: i64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Who wants the processor at these times, for so long; what was left unused of it, where it takes `way` to leave it.
    fn played(slices: Slices, wants: &[(i64, i64)], until: i64, way: i64) -> Vec<(i64, i64)> {
        let mut account = Account::new(slices, at(0));
        let mut unused = vec![];
        let mut edges: Vec<(i64, bool)> =
            wants.iter().flat_map(|(from, to)| [(*from, true), (*to, false)]).collect();
        edges.push((until, false));
        let (mut now, mut is_wanted, mut is_left, mut edge, mut begins) = (0, false, false, 0, i64::MAX);
        while now < until {
            let next = account.next().map_or(i64::MAX, Instant::as_nanos).min(edges[edge].0).min(begins);
            if !is_wanted && begins == i64::MAX || is_left {
                unused.push((now, next));
            }
            now = next;
            if now == begins {
                (is_left, begins) = (account.begin(at(now)), i64::MAX);
            }
            if edges[edge].0 == now {
                is_wanted = edges[edge].1;
                edge += 1;
            }
            match account.turn(at(now)) {
                Some(Turn::Leave) => begins = now + way,
                Some(Turn::Resume) => is_left = false,
                None => {}
            }
            account.note(at(now), is_wanted && !is_left && begins == i64::MAX);
        }
        unused
    }

    fn unused_in(unused: &[(i64, i64)], from: i64, to: i64) -> i64 {
        unused.iter().map(|(a, b)| (b.min(&to) - a.max(&from)).max(0)).sum()
    }

    #[test]
    fn what_is_left_counts_with_a_slice_at_the_worst_instant() {
        let slices = usual();
        let unused = played(slices, &[(0, 3_000_000_000)], 3_000_000_000, WAY);
        for (from, _) in &unused {
            for length in [100_000, 500_000, 1_000_000, 8_000_000, 8_500_000, 40_000_000, 1_000_000_000] {
                let used = length - unused_in(&unused, *from, from + length);
                // Of the time that is not left the way has a part, too.
                let used = used
                    - unused.iter().filter(|(a, b)| a < b && (from..&(from + length)).contains(&a)).count()
                        as i64
                        * WAY;
                assert!(used as f64 >= 0.93 * length as f64 - 581_250.0, "{used} in {length} from {from}");
            }
        }
    }

    #[test]
    fn who_leaves_enough_is_not_interrupted() {
        let slices = usual();
        // 45 ms of each 50, and none of them in pieces.
        let wants: Vec<(i64, i64)> =
            (0..20).map(|k| (k * 50_000_000 + 5_000_000, (k + 1) * 50_000_000)).collect();
        let unused = played(slices, &wants, 1_000_000_000, WAY);
        assert_eq!(unused_in(&unused, 0, 1_000_000_000), 20 * 5_000_000, "{unused:?}");
    }

    #[test]
    fn one_that_wants_everything_is_interrupted_for_short_times() {
        let slices = usual();
        let second = 1_000_000_000;
        for way in [0, WAY] {
            let unused = played(slices, &[(0, 10 * second)], 10 * second, way);
            // And what was used on the way, and in the nanosecond that a timer is late by.
            assert!(
                unused.iter().all(|(from, to)| to - from <= SLICE.as_nanos() + way / 15 + 10),
                "{unused:?}"
            );
            for k in 0..9 {
                let left = unused_in(&unused, k * second, (k + 1) * second);
                assert!((54_500_000..57_500_000).contains(&left), "{left}");
            }
        }
    }

    /// The timer is set anew when it is due earlier than before.
    #[test]
    fn decisions_leave_the_end_of_the_credit_where_it_is() {
        let mut account = Account::new(usual(), at(0));
        account.note(at(5_000_000), true);
        let end = account.next();
        for step in 1..2_000 {
            account.note(at(5_000_000 + 997 * step), true);
            assert_eq!((account.turn(at(5_000_000 + 997 * step)), account.next()), (None, end));
        }
    }

    #[test]
    fn who_never_says_that_it_is_left_gets_it_back() {
        let mut account = Account::new(usual(), at(0));
        account.note(at(0), true);
        assert_eq!(account.turn(at(1)), Some(Turn::Leave));
        let until = account.next().expect("it is given back");
        assert_eq!(until, at(1) + SLICE + SLICE);
        assert_eq!(account.turn(until), Some(Turn::Resume));
        assert!(!account.begin(until));
    }

    proptest! {
        /// Whatever is wanted, in every second at least what the kernel keeps is left, and two thousandths more.
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
            let unused = played(slices, &wants, until, WAY);
            for (from, _) in wants.iter().filter(|(from, _)| from + second <= until) {
                let left = unused_in(&unused, *from, from + second);
                prop_assert!(left >= 52_000_000, "{left} from {from}");
            }
        }
    }
}
