//! Continuous reservations: every interval of one length.
//!
//! As the window moves, what it holds grows where service enters it and shrinks where service leaves it. So it is least
//! or most where one of its ends passes a switch, and only there it is looked at.

use super::history::History;
use super::{Findings, Limits};

/// Judges one stretch of demand after the other.
#[derive(Clone, Debug)]
pub(super) struct Continuous {
    limits: Limits,
    length: i64,
    history: History,
    /// Where the first window that is still to be judged begins: the stretch, or the last violation's end.
    first: i64,
}

/// Pieces of history for which there is room from the beginning.
const PIECES: usize = 512;

impl Continuous {
    pub fn new(limits: Limits, length: i64) -> Self {
        Continuous { limits, length, history: History::with_room(PIECES), first: 0 }
    }

    pub fn begin(&mut self, now: i64) {
        self.history.clear();
        self.first = now;
    }

    /// No window begins earlier that is still to be judged, when everything up to `now` has been.
    pub fn earliest(&self, now: i64) -> i64 {
        self.first.max(now - self.length)
    }

    pub fn pass(&mut self, from: i64, to: i64, serving: bool, found: &mut Findings<'_>) {
        self.history.add(from, serving);
        // A window that ends at `from` has been judged unless this is where the stretch begins.
        let mut end = from;
        while end < to {
            // The next instant at which the window's begin passes a switch, or its end does.
            let begin = end - self.length;
            let next = self.history.pieces().iter().map(|piece| piece.from).find(|at| *at > begin);
            end = next.map_or(to, |at| at.saturating_add(self.length)).min(to);
            self.history.forget(end - self.length);
            self.judge(end, found);
        }
    }

    fn judge(&mut self, end: i64, found: &mut Findings<'_>) {
        let begin = end - self.length;
        let pieces = self.history.pieces();
        let (Some(first), Some(last)) = (pieces.front(), pieces.back()) else { return };
        if begin < self.first {
            return;
        }
        found.tally.judged += 1;
        let received = last.served_by(end) - first.served_by(begin);
        if let Some(violation) = self.limits.check(received, begin, self.length) {
            found.note(violation);
            self.first = end;
        }
    }
}
