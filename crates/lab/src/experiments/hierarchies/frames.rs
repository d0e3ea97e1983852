//! Frames that a CPU-bound renderer makes, and the gaps between them.
//!
//! The renderer does nothing but take processor time, so a frame is done whenever it has had another [`FRAME`] of it. The
//! paper's program measured that itself; here it follows from the records, on both clocks in the same way.
//!
//! A gap of more than [`GAP`] is a miss. The paper counts those, and in the row of the low priority it must have
//! counted every 33 ms without a frame, for there are more misses than frames. Both are counted here: *gaps* and *overdue* frames.

use super::service::{Service, Spell};
use super::setting::{FRAME, GAP, RENDERER, TOLERANCE};
use talea_time::{Duration, Instant};

/// How much withheld time a gap must contain for that to count as its reason.
const NOTABLE: Duration = TOLERANCE;

/// How many frames a renderer made, and the gaps between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Frames {
    /// Frames done.
    pub made: u64,
    /// Gaps that were too long.
    pub gaps: u64,
    /// Of these, the ones in which the kernel withheld the processor from the threads of the run.
    pub gaps_withheld: u64,
    /// Of the others, the ones that the host of the virtual machine may have made too long: it took at most so much of the processor meanwhile, and
    /// when within a tenth of a second it did is not known.
    pub gaps_stolen: u64,
    /// Frames that were due in such gaps and not done: one for each 33 ms.
    pub overdue: u64,
    /// Of these, the ones in gaps in which the kernel withheld the processor.
    pub overdue_withheld: u64,
    /// The longest gap.
    pub longest_ns: i64,
}

impl Frames {
    /// Gaps that were too long although the kernel withheld nothing in them. What the host may have done excuses none.
    pub fn unexcused(&self) -> u64 {
        self.gaps - self.gaps_withheld
    }
}

/// The instants at which frames are done by a thread that has the processor in `spells`.
pub fn instants(spells: &[Spell]) -> Vec<Instant> {
    let mut done = Vec::new();
    let mut left = FRAME.as_nanos();
    for spell in spells {
        let mut from = spell.from;
        while (spell.to - from).as_nanos() >= left {
            from += Duration::from_nanos(left);
            done.push(from);
            left = FRAME.as_nanos();
        }
        left -= (spell.to - from).as_nanos();
    }
    done
}

/// From the beginning of the run to the first frame, between frames, and from the last one to the end.
pub fn gaps(run: Spell, done: &[Instant]) -> Vec<Spell> {
    let edges: Vec<Instant> =
        std::iter::once(run.from).chain(done.iter().copied()).chain(std::iter::once(run.to)).collect();
    edges.windows(2).map(|pair| Spell { from: pair[0], to: pair[1] }).collect()
}

/// Frames that are due within a gap and not done.
fn overdue(gap: Spell) -> u64 {
    let length = (gap.length() - TOLERANCE).as_nanos().max(1);
    ((length - 1) / GAP.as_nanos()) as u64
}

/// The kernel counts what the host takes in ticks, and may be behind by one.
const TICK: Duration = Duration::from_millis(10);

/// Whether the gap would perhaps not have been too long without what the host took of the processor: all of what is known to be taken in a stretch that
/// meets the gap counts, as far as it has room there.
fn may_be_by_host(gap: Spell, stolen: &[(Spell, Duration)]) -> bool {
    let in_gap = |(spell, amount): &(Spell, Duration)| gap.common(&[*spell]).min(*amount);
    let taken: Duration = stolen.iter().map(in_gap).sum();
    taken > Duration::ZERO && gap.length() - GAP <= taken + TICK
}

/// How a renderer fared that had the processor in `spells` of `run`, where the kernel withheld it in `withheld` and the host took so much of it in
/// `stolen`.
pub fn judge(run: Spell, spells: &[Spell], withheld: &[Spell], stolen: &[(Spell, Duration)]) -> Frames {
    let done = instants(spells);
    let mut frames = Frames {
        made: done.len() as u64,
        gaps: 0,
        gaps_withheld: 0,
        gaps_stolen: 0,
        overdue: 0,
        overdue_withheld: 0,
        longest_ns: 0,
    };
    for gap in gaps(run, &done) {
        frames.longest_ns = frames.longest_ns.max(gap.length().as_nanos());
        let overdue = overdue(gap);
        if overdue == 0 {
            continue;
        }
        frames.gaps += 1;
        frames.overdue += overdue;
        if gap.common(withheld) >= NOTABLE {
            frames.gaps_withheld += 1;
            frames.overdue_withheld += overdue;
        } else if may_be_by_host(gap, stolen) {
            frames.gaps_stolen += 1;
        }
    }
    frames
}

/// How the renderer fared by what it received, and how it would have by what the hierarchy granted it.
pub fn of_service(service: &Service) -> [Frames; 2] {
    let account = service.account(RENDERER);
    let Service { run, withheld, stolen, .. } = service;
    [judge(*run, &account.received, withheld, stolen), judge(*run, &account.granted, &[], &[])]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(from: i64, to: i64) -> Spell {
        let at = |ms| Instant::from_nanos(ms * 1_000_000);
        Spell { from: at(from), to: at(to) }
    }

    fn done(spells: &[Spell]) -> Vec<i64> {
        instants(spells).into_iter().map(|at| at.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn a_frame_is_done_when_its_time_has_been_received() {
        assert_eq!(done(&[ms(0, 25), ms(40, 44), ms(50, 51), ms(60, 90)]), [10, 20, 51, 70, 80, 90]);
        assert_eq!(done(&[ms(0, 9)]), Vec::<i64>::new());
    }

    #[test]
    fn a_reservation_that_is_kept_has_no_gap_too_long() {
        let spells: Vec<Spell> = (0..30).map(|period| ms(33 * period, 33 * period + 10)).collect();
        let frames = judge(ms(0, 33 * 30), &spells, &[], &[]);
        assert_eq!((frames.made, frames.gaps, frames.longest_ns), (30, 0, 33_000_000));
    }

    #[test]
    fn what_is_longer_by_the_tolerance_at_most_is_no_miss() {
        let overdue_of = |ns| overdue(Spell { from: Instant::ZERO, to: Instant::from_nanos(ns) });
        assert_eq!([33_000_000, 34_000_000, 34_000_001].map(overdue_of), [0, 0, 1]);
        assert_eq!([67_000_000, 67_000_001, 100_000_001].map(overdue_of), [1, 2, 3]);
        assert_eq!(overdue_of(10), 0);
    }

    #[test]
    fn turns_of_50_ms_miss_once_in_each_of_the_others() {
        let spells: Vec<Spell> = (0..10).map(|turn| ms(100 * turn, 100 * turn + 50)).collect();
        let frames = judge(ms(0, 1000), &spells, &[], &[]);
        // The gap from the last frame of one turn to the first one of the next is 60 ms.
        assert_eq!((frames.made, frames.gaps, frames.overdue), (50, 10, 10));
    }

    #[test]
    fn a_thread_that_never_runs_misses_all_the_time() {
        let frames = judge(ms(0, 991), &[], &[], &[]);
        assert_eq!((frames.made, frames.gaps, frames.overdue, frames.longest_ns), (0, 1, 29, 991_000_000));
    }

    #[test]
    fn misses_in_gaps_with_time_withheld_are_told_apart() {
        let spells = [ms(0, 10), ms(66, 76), ms(126, 136)];
        let frames = judge(ms(0, 136), &spells, &[ms(20, 60)], &[]);
        assert_eq!((frames.gaps, frames.gaps_withheld, frames.unexcused()), (2, 1, 1));
        assert_eq!((frames.overdue, frames.overdue_withheld), (2, 1));
    }

    #[test]
    fn gaps_that_the_host_may_have_made_are_told_apart_once_and_not_excused() {
        let spells = [ms(0, 10), ms(66, 76), ms(126, 136), ms(196, 206), ms(300, 310)];
        let amount = Duration::from_millis;
        let stolen = [(ms(0, 30), amount(30)), (ms(60, 130), amount(20)), (ms(190, 290), amount(30))];
        let frames = judge(ms(0, 310), &spells, &[ms(20, 60)], &stolen);
        // The second is too long by 27 ms, and the host took 20 of it; the others by 37 and 71 ms, and it took 16 and 30.
        assert_eq!((frames.gaps, frames.gaps_withheld, frames.gaps_stolen, frames.unexcused()), (4, 1, 1, 3));
    }
}
