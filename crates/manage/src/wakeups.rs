//! Whose wake-ups the kernel is asked to tell.

use crate::priorities::{Level, Priorities};
use std::io;
use talea_recording::kernel::{Chosen, WATCHED_MAX, WakeChoice};

/// Whose wake-ups are to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Traced {
    /// Those of these threads.
    Threads(Vec<u32>),
    /// Those of all that are managed, for threads come and go.
    All,
}

/// Has them told. Asking the kernel takes milliseconds, in which nobody else waits.
pub(crate) struct Chooser {
    choice: WakeChoice,
    priorities: Priorities,
    /// Threads of the set that hold programs and let them go, which wakes all of their threads, those that sleep too: of that the set knows.
    holders: Vec<u32>,
    last: Option<Traced>,
}

impl Chooser {
    pub fn new(choice: WakeChoice, priorities: Priorities) -> Self {
        Chooser { choice, priorities, holders: Vec::new(), last: None }
    }

    /// What these wake is not told from the next choice on.
    pub fn leave_out(&mut self, holders: Vec<u32>) {
        self.holders = holders;
    }

    /// Chooses these instead of those before.
    ///
    /// # Errors
    /// The kernel has no room for it.
    pub fn choose(&mut self, traced: Traced) -> io::Result<()> {
        let traced = match traced {
            Traced::Threads(threads) if threads.len() > WATCHED_MAX => Traced::All,
            other => other,
        };
        if self.last.as_ref() == Some(&traced) {
            return Ok(());
        }
        match &traced {
            Traced::Threads(threads) => self.choice.choose(Chosen::Threads(threads))?,
            Traced::All => {
                let levels = [Level::Parked, Level::Beside, Level::Granted];
                let levels = levels.map(|level| self.priorities.priority(level));
                self.choice.choose(Chosen::Priorities(&levels, &self.holders))?;
            }
        }
        self.last = Some(traced);
        Ok(())
    }
}
