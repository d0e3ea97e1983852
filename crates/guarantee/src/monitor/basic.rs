//! Basic reservations: windows that follow each other, from an instant that nobody has told.
//!
//! The promise is that *there is* a t such that all [t + iy, t + (i + 1) y] hold x. So all phases t are possible at the
//! beginning of a stretch, and every period leaves those with which its window holds x. What a window of phase t
//! holds is, as a function of t, straight between the switches at its two ends; so the phases that are left are a few
//! intervals, found exactly. The promise is broken when none is left.

use super::history::{Cursor, History};
use super::{Findings, Limits};

/// Judges one stretch of demand after the other.
#[derive(Clone, Debug)]
pub(super) struct Basic {
    limits: Limits,
    period: i64,
    history: History,
    /// Where the stretch, or what follows a violation, begins: phase 0 of window 0.
    origin: i64,
    /// Windows judged since.
    windows: i64,
    /// The phases that are left: closed intervals in order, at nanoseconds below the period.
    phases: Vec<(i64, i64)>,
    /// Those that the current window leaves.
    left: Vec<(i64, i64)>,
    scratch: Scratch,
}

/// What judging a window needs besides, kept so that it allocates only where a window has more switches than any before.
#[derive(Clone, Debug)]
struct Scratch {
    /// Phases at which what a window holds may change its slope, with what it holds there.
    bends: Vec<(i64, i64)>,
    pieces: Vec<Linear>,
    /// The phases that the current window alone would leave.
    kept: Vec<(i64, i64)>,
}

/// Switches in a window for which there is room from the beginning.
const SWITCHES: usize = 128;

impl Scratch {
    fn new() -> Self {
        let room = 2 * SWITCHES;
        Scratch {
            bends: Vec::with_capacity(room),
            pieces: Vec::with_capacity(room),
            kept: Vec::with_capacity(room),
        }
    }
}

impl Basic {
    pub fn new(limits: Limits, period: i64) -> Self {
        Basic {
            limits,
            period,
            history: History::with_room(4 * SWITCHES),
            origin: 0,
            windows: 0,
            phases: Vec::with_capacity(2 * SWITCHES),
            left: Vec::with_capacity(2 * SWITCHES),
            scratch: Scratch::new(),
        }
    }

    pub fn begin(&mut self, now: i64) {
        self.history.clear();
        self.restart(now);
    }

    fn restart(&mut self, origin: i64) {
        (self.origin, self.windows) = (origin, 0);
        self.phases.clear();
        self.phases.push((0, self.period - 1));
    }

    /// No window begins earlier that is still to be judged.
    pub fn earliest(&self) -> i64 {
        self.window()
    }

    /// Where the next window of phase 0 begins.
    fn window(&self) -> i64 {
        self.origin + self.windows * self.period
    }

    pub fn pass(&mut self, from: i64, to: i64, serving: bool, found: &mut Findings<'_>) {
        self.history.add(from, serving);
        // With the last phase, the window ends a nanosecond before this.
        while self.window().saturating_add(2 * self.period) <= to {
            self.judge(self.period - 1, found);
            self.history.forget(self.window());
        }
    }

    /// The last window ends within the stretch for some phases only; the others stay possible.
    pub fn end(&mut self, now: i64, found: &mut Findings<'_>) {
        let last_phase = now - self.period - self.window();
        if last_phase >= 0 {
            self.judge(last_phase.min(self.period - 1), found);
        }
    }

    /// Judges the next window for the phases up to `last_phase`.
    fn judge(&mut self, last_phase: i64, found: &mut Findings<'_>) {
        found.tally.judged += 1;
        let window = self.window();
        self.keep(last_phase);
        if self.left.is_empty() {
            let (received, at) = self.closest(last_phase);
            let violation = self.limits.check(received, window + at, self.period);
            found.note(violation.expect("a phase that is not left breaks the promise"));
            self.restart(window + self.period);
            return;
        }
        std::mem::swap(&mut self.phases, &mut self.left);
        self.windows += 1;
    }

    /// Finds which of the phases are left; those beyond `last_phase` are.
    fn keep(&mut self, last_phase: i64) {
        self.left.clear();
        self.find_pieces(last_phase);
        let Scratch { pieces, kept, .. } = &mut self.scratch;
        pieces.push(Linear {
            from: last_phase + 1,
            to: self.period - 1,
            received: self.limits.least,
            slope: 0,
        });
        kept.clear();
        for piece in pieces {
            let Some((from, to)) = piece.within(self.limits.least, self.limits.most) else { continue };
            match kept.last_mut() {
                Some(last) if last.1 + 1 >= from => last.1 = to,
                _ => kept.push((from, to)),
            }
        }
        let mut kept = kept.iter().peekable();
        for &(from, to) in &self.phases {
            while let Some(&&(begin, end)) = kept.peek() {
                if begin <= to && end >= from {
                    self.left.push((begin.max(from), end.min(to)));
                }
                if end > to {
                    break;
                }
                kept.next();
            }
        }
    }

    /// Finds what the window holds, by phase from 0 to `last_phase`.
    fn find_pieces(&mut self, last_phase: i64) {
        let (window, period) = (self.window(), self.period);
        let Scratch { bends, pieces, .. } = &mut self.scratch;
        let switches = || self.history.pieces().iter().map(|piece| piece.from);
        let begins = switches().map(|at| at - window);
        let ends = switches().map(|at| at - window - period);
        bends.clear();
        bends.push((0, 0));
        bends.extend(begins.chain(ends).filter(|at| (1..=last_phase).contains(at)).map(|at| (at, 0)));
        bends.sort_unstable();
        bends.dedup();
        let (mut begin, mut end) = (Cursor::new(&self.history), Cursor::new(&self.history));
        let mut received =
            |phase: i64| end.served_by(window + phase + period) - begin.served_by(window + phase);
        bends.iter_mut().for_each(|(phase, value)| *value = received(*phase));
        let last = received(last_phase);
        pieces.clear();
        for (index, &(from, value)) in bends.iter().enumerate() {
            // The bend itself belongs to the piece behind it.
            let (to, there) = match bends.get(index + 1) {
                Some(&(next, there)) => (next - 1, there),
                None => (last_phase, last),
            };
            pieces.push(Linear { from, to, received: value, slope: (there - value).signum() });
        }
    }

    /// What is closest to the promise among the phases that were left, and its phase.
    fn closest(&mut self, last_phase: i64) -> (i64, i64) {
        self.find_pieces(last_phase);
        let short = |received: i64| (self.limits.least - received).max(received - self.limits.most);
        let ends = self.scratch.pieces.iter().flat_map(|piece| {
            let inside = self.phases.iter().filter_map(move |&(from, to)| {
                let (from, to) = (from.max(piece.from), to.min(piece.to));
                (from <= to).then_some([from, to])
            });
            inside.flatten().map(move |phase| (piece.at(phase), phase))
        });
        ends.min_by_key(|(received, _)| short(*received)).expect("some phase was left before")
    }
}

/// What windows hold whose phases lie in `from..=to`: `received` at `from`, and so much more per nanosecond.
#[derive(Clone, Copy, Debug)]
struct Linear {
    from: i64,
    to: i64,
    received: i64,
    /// -1, 0 or 1.
    slope: i64,
}

impl Linear {
    fn at(&self, phase: i64) -> i64 {
        self.received + self.slope * (phase - self.from)
    }

    /// The phases at which it is from `least` to `most`.
    fn within(&self, least: i64, most: i64) -> Option<(i64, i64)> {
        let (from, to) = match self.slope {
            0 if (least..=most).contains(&self.received) => (self.from, self.to),
            0 => return None,
            1 => (
                self.from.saturating_add(least.saturating_sub(self.received)),
                self.from.saturating_add(most.saturating_sub(self.received)),
            ),
            _ => (
                self.from.saturating_add(self.received.saturating_sub(most)),
                self.from.saturating_add(self.received.saturating_sub(least)),
            ),
        };
        let (from, to) = (from.max(self.from), to.min(self.to));
        (from <= to).then_some((from, to))
    }
}
