//! What the dispatcher notes down for whoever judges receipts: at scheduling points, under its lock.

use talea_policy::arrangement::Change;
use talea_policy::hierarchy::{Transition, Trigger, VpId, VpState};
use talea_time::Instant;

/// Notes that may wait: those of several seconds in which an ordinary thread gets no processor.
const CAPACITY: usize = 16 * 1024;

/// Something that was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// An edge is watched, or not any more. Comes with what allocates anyway.
    Change(Box<Change>),
    /// A virtual processor has come into another state.
    State(Transition),
    /// The thread of this number belongs to the member behind this virtual processor.
    Thread(u32, VpId),
    /// The run has begun.
    Begun,
    /// The run is over.
    Over,
}

/// What was decided, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub at: Instant,
    pub what: What,
}

/// Notes in the order of time, in memory that is there from the beginning.
#[derive(Debug)]
pub struct Notes {
    notes: Vec<Note>,
    last: Instant,
    /// Notes that found no room.
    dropped: u64,
}

impl Notes {
    /// No notes, with room that has been touched, so that writing them down waits for no page.
    pub fn empty() -> Self {
        let transition =
            Transition { vp: VpId::from_index(0), state: VpState::Waiting, trigger: Trigger::Change };
        let mut notes = vec![Note { at: Instant::ZERO, what: What::State(transition) }; CAPACITY];
        notes.clear();
        Notes { notes, last: Instant::ZERO, dropped: 0 }
    }

    /// Neither allocates nor waits.
    #[inline]
    pub(crate) fn write(&mut self, at: Instant, what: What) {
        self.last = self.last.max(at);
        if self.notes.len() == self.notes.capacity() {
            self.dropped += 1;
            return;
        }
        self.notes.push(Note { at: self.last, what });
    }

    /// Takes what was written, and leaves `empty`'s room for more. Returns the number of notes dropped so far.
    pub(crate) fn exchange(&mut self, empty: &mut Vec<Note>) -> u64 {
        debug_assert!(empty.is_empty() && empty.capacity() >= CAPACITY, "the room is exchanged");
        std::mem::swap(&mut self.notes, empty);
        self.dropped
    }

    /// Room to [exchange](Self::exchange).
    pub(crate) fn room() -> Vec<Note> {
        Notes::empty().notes
    }
}
