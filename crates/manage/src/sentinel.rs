//! A sentinel: the dispatcher of one processor.
//!
//! It is always ready, just below the thread that is granted the processor. So when it runs, that thread has blocked; nothing had to be
//! traced to know it.
//!
//! ```text
//!                      1 nobody to grant
//!        ┌───────────────────────────────────────┐
//!        │            2 somebody is granted      ▼
//!   in its place ◀────────────────────────── asleep
//!        │  ▲                                    │
//!      3 │  │ 4 has brought it about           3 │
//!        ▼  │                                    │
//!    standing in ◀───────────────────────────────┘
//! ```
//!
//! 3: somebody who may not bring a decision about raises the sentinel above everybody. Standing in, it says nothing about who
//! blocked. 4: a thread that lowers itself goes to the head of the queue of its new level. If there is a thread that was granted
//! [`Level::Beside`] it and was preempted, it gives way to that once.
//!
//! *When is it sure?* In its own place it runs only if nobody it granted can, with two exceptions. A thread granted by a
//! controller elsewhere may still be on its way (see [`Absence::Arriving`]). And it may have inherited the priority of somebody
//! who waits for the lock: that is ruled out if the lock was free ([`Evidence::OwnPriority`]); otherwise the granted thread is
//! looked at, and whether it is in line for the lock itself. To try again until the lock is free would not do: a thread that is parked
//! may be the one that waits for it, and whoever is above it takes it away from it for ever.

use crate::priorities::{self, Level};
use crate::shared::Shared;
use crate::state::{Absence, After, Caller, Evidence, State};
use rustix::thread::sched_yield;
use talea_time::Instant;

/// Where the sentinel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    InPlace,
    StandingIn,
}

pub(crate) struct Sentinel<'a> {
    shared: &'a Shared,
    place: usize,
    /// How often it had been raised when it was last known to be in its place.
    raises: u64,
}

impl<'a> Sentinel<'a> {
    pub fn new(shared: &'a Shared, place: usize) -> Self {
        // The first round asks the kernel.
        Sentinel { shared, place, raises: u64::MAX }
    }

    /// Until the set stops.
    pub fn run(mut self) {
        while !self.shared.is_stopping() {
            match self.position() {
                Position::InPlace => self.dispatch(),
                Position::StandingIn => self.stand_in(),
            }
        }
    }

    fn position(&mut self) -> Position {
        let sentinel = &self.shared.sentinels[self.place];
        if sentinel.raises_begun() == self.raises {
            return Position::InPlace;
        }
        let over = sentinel.raises_over();
        if priorities::own_priority() != self.shared.priorities.priority(Level::Beside) {
            return Position::StandingIn;
        }
        if let Some(over) = over {
            self.raises = over;
        }
        Position::InPlace
    }

    /// The granted thread has blocked: who is next?
    fn dispatch(&mut self) {
        let shared = self.shared;
        let (mut state, evidence) = match shared.state.take_free() {
            Some(state) => (state, Evidence::OwnPriority),
            None => (shared.state.lock(), Evidence::None),
        };
        let now = shared.now();
        if state.absent(self.place, (evidence, shared.state.progress()), now) == Absence::Arriving {
            drop(state);
            sched_yield();
            return;
        }
        // Under the lock, so that all of them are about what is settled here.
        let raises = shared.sentinels[self.place].raises_begun();
        shared.arm(state.settle(now));
        let after = state.bring(self.place, Caller::Sentinel, now);
        if matches!(after, After::Idle) {
            shared.arm(state.note_left(self.place, shared.now()));
            shared.sentinels[self.place].announce_sleep();
        }
        shared.sentinels[self.place].answer(raises);
        self.call_others(&mut state, now);
        let granted = state.granted_at(self.place);
        drop(state);
        match after {
            After::Nothing => {}
            After::GiveWay => sched_yield(),
            After::Wake(sleep_word) => sleep_word.wake_up(),
            After::StepDown => self.step_down(raises, granted),
            After::Idle => shared.sentinels[self.place].sleep(&shared.stop),
        }
    }

    /// Somebody else decided and may not bring it about.
    fn stand_in(&mut self) {
        let shared = self.shared;
        let mut state = shared.state.lock();
        let raises = shared.sentinels[self.place].raises_begun();
        let now = shared.now();
        shared.arm(state.settle(now));
        let _nothing = state.bring(self.place, Caller::Above, now);
        shared.sentinels[self.place].answer(raises);
        self.call_others(&mut state, now);
        let granted = state.granted_at(self.place);
        drop(state);
        self.step_down(raises, granted);
    }

    /// Has decisions for other places brought about, and those for its own that come of what was created while it was lowered.
    fn call_others(&self, state: &mut State, now: Instant) {
        let own = match std::mem::take(&mut state.recheck) {
            false => Some(self.place),
            true => {
                self.shared.arm(state.settle(now));
                None
            }
        };
        self.shared.call_others(state, own);
    }

    /// Back to its own place, if nobody has raised it since it knew of so many `raises`, and out of the way of who is `granted` its processor, if
    /// that one is beside it.
    fn step_down(&mut self, raises: u64, granted: Option<Level>) {
        let sentinel = &self.shared.sentinels[self.place];
        // A raise that is under way now may come after this; then the kernel is asked again.
        self.raises = sentinel.raises_over().filter(|over| *over == raises).unwrap_or(u64::MAX);
        match sentinel.step_down(self.shared.priorities, raises) {
            Ok(true) if granted == Some(Level::Beside) => sched_yield(),
            Ok(true) => {}
            // It still stands in.
            Ok(false) => {}
            Err(errno) => {
                self.shared.begin_stop(Some(format!("a sentinel may not lower itself: {errno}")));
            }
        }
    }
}
