//! Events that wait no more, until no lock is held: what they carry is the program's own, and may connect, disconnect
//! and push when it is dropped.
//!
//! Whoever takes events out under a lock puts them here and drops them when the lock has been given back. Without
//! allocating that is possible for a few: who has as many gives the lock back, drops them, and goes on. Where a lock is
//! held all the way, by who calls, they are put into what that lock protects, with memory of its own, and dropped by
//! who gives it back.

use crate::event::Event;
use smallvec::SmallVec;

/// How many there can be before the lock is given back.
const AT_ONCE: usize = 8;

/// See the module. Declared before the guard of a lock it is dropped after it.
#[derive(Default)]
pub(crate) struct Gone<'a> {
    few: SmallVec<[Event; AT_ONCE]>,
    /// Where they are put instead, since a lock is held beyond.
    beyond: Option<&'a mut Vec<Event>>,
}

impl<'a> Gone<'a> {
    /// They are put there, if a lock is held beyond.
    pub fn into(beyond: Option<&'a mut Vec<Event>>) -> Self {
        Gone { beyond, ..Gone::default() }
    }

    /// There is room, unless it [is full](Self::is_full).
    pub fn add(&mut self, event: Event) {
        match &mut self.beyond {
            Some(beyond) => beyond.push(event),
            None => self.few.push(event),
        }
    }

    /// Takes as many of these as there is room for. Whether none are left.
    pub fn take_from(&mut self, events: &mut Vec<Event>) -> bool {
        while !self.is_full()
            && let Some(event) = events.pop()
        {
            self.add(event);
        }
        events.is_empty()
    }

    /// No more can be added before these are dropped.
    pub fn is_full(&self) -> bool {
        self.few.len() == AT_ONCE
    }

    /// Drops them. No lock is held.
    pub fn let_go(&mut self) {
        self.few.clear();
    }
}
