//! Code that is called with what a channel [has](crate::interest) whenever that has changed: one call at a time, each
//! with what there is then.
//!
//! ```text
//!               ask                  the code is taken out, without a lock     nobody has asked since
//!   (1) at rest ────► (2) asked for ──────────────────────────► (3) being called ──────► (1)
//!                          ▲                                         │ somebody has asked since,
//!                          └─────────────────────────────────────────┘ the call itself perhaps
//!   end, or a panic: from anywhere ► (4) over: never called again; a call that has begun ends by itself
//! ```
//! So whoever asks while the code is being called neither waits nor calls: who calls it looks once more. What changes
//! meanwhile is told in one call.

use crate::interest::Observed;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The code, which is told of all there is.
pub(crate) type ObserverCode = Box<dyn FnMut(&Observed) + Send>;

/// By which thread an observer is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CalledBy {
    /// By the one that changes something.
    WhoChanges,
    /// By one that does nothing else ([`Observing::serve`]).
    ItsThread,
}

/// See the module.
pub(crate) struct Observing {
    called_by: CalledBy,
    state: Mutex<State>,
    /// Somebody has asked, or it is over.
    is_asked: Condvar,
}

struct State {
    /// None while it is being called, and once it is over.
    called: Option<Called>,
    is_asked: bool,
    is_over: bool,
}

struct Called {
    code: ObserverCode,
    /// What it was told last.
    told: Option<Observed>,
}

impl Called {
    /// Tells what there is now, unless that is what it was told last. False if the code has panicked, which the panic
    /// hook has told of.
    fn tell(&mut self, now: Observed) -> bool {
        if self.told.as_ref() == Some(&now) {
            return true;
        }
        let told = catch_unwind(AssertUnwindSafe(|| (self.code)(&now)));
        self.told = Some(now);
        told.is_ok()
    }
}

impl Observing {
    pub fn new(called_by: CalledBy, code: ObserverCode) -> Self {
        let called = Some(Called { code, told: None });
        let state = Mutex::new(State { called, is_asked: false, is_over: false });
        Observing { called_by, state, is_asked: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something may have changed: the code is to be called, if so, with what there is. Not while a lock is held that
    /// the code may want.
    pub fn ask(&self, observed: impl Fn() -> Observed) {
        self.state().is_asked = true;
        match self.called_by {
            CalledBy::WhoChanges => self.call(observed),
            CalledBy::ItsThread => self.is_asked.notify_one(),
        }
    }

    /// Calls the code whenever somebody asks, until it is over.
    pub fn serve(&self, observed: impl Fn() -> Observed) {
        let is_idle = |state: &mut State| !state.is_asked && !state.is_over;
        while !self.is_over() {
            drop(self.is_asked.wait_while(self.state(), is_idle));
            self.call(&observed);
        }
    }

    /// Calls the code as often as somebody asks, unless somebody is calling it.
    fn call(&self, observed: impl Fn() -> Observed) {
        let mut state = self.state();
        let Some(mut called) = state.called.take() else { return };
        while !state.is_over && std::mem::take(&mut state.is_asked) {
            drop(state);
            let is_whole = called.tell(observed());
            state = self.state();
            state.is_over |= !is_whole;
        }
        let over = match state.is_over {
            true => Some(called),
            false => {
                state.called = Some(called);
                None
            }
        };
        drop(state);
        // Dropping it runs code of the program.
        drop(over);
    }

    /// It is called no more.
    pub fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        let called = state.called.take();
        drop(state);
        drop(called);
        self.is_asked.notify_one();
    }

    pub fn is_over(&self) -> bool {
        self.state().is_over
    }
}
