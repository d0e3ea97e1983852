//! Who was served when, as far back as a window reaches.

use std::collections::VecDeque;

/// A time of service or of none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub from: i64,
    /// Service before it, since the history began.
    pub before: i64,
    pub serving: bool,
}

impl Piece {
    /// The service up to `at`, which is not before the piece and not beyond it.
    pub fn served_by(&self, at: i64) -> i64 {
        if self.serving { self.before + (at - self.from) } else { self.before }
    }
}

/// Times of service and of none by turns, without gaps, of one stretch of demand.
#[derive(Clone, Debug)]
pub(super) struct History {
    pieces: VecDeque<Piece>,
}

impl History {
    /// An empty history that has room for so many pieces.
    pub fn with_room(pieces: usize) -> Self {
        History { pieces: VecDeque::with_capacity(pieces) }
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
    }

    /// What is told from now on begins at `from`, where the last ended.
    pub fn add(&mut self, from: i64, serving: bool) {
        match self.pieces.back() {
            Some(last) if last.serving == serving => {}
            Some(last) => {
                let before = last.served_by(from);
                self.pieces.push_back(Piece { from, before, serving });
            }
            None => self.pieces.push_back(Piece { from, before: 0, serving }),
        }
    }

    /// Forgets pieces that end at `until` or before.
    pub fn forget(&mut self, until: i64) {
        while self.pieces.get(1).is_some_and(|second| second.from <= until) {
            self.pieces.pop_front();
        }
    }

    /// The pieces that are left, in order.
    pub fn pieces(&self) -> &VecDeque<Piece> {
        &self.pieces
    }
}

/// Service up to instants that do not decrease.
pub(super) struct Cursor<'a> {
    pieces: &'a VecDeque<Piece>,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(history: &'a History) -> Self {
        Cursor { pieces: &history.pieces, at: 0 }
    }

    /// The service up to `instant`, which is not before the first piece.
    pub fn served_by(&mut self, instant: i64) -> i64 {
        while self.pieces.get(self.at + 1).is_some_and(|next| next.from <= instant) {
            self.at += 1;
        }
        self.pieces[self.at].served_by(instant)
    }
}
