//! Whose wake-ups the kernel is asked to tell.

use crate::priorities::{Level, Priorities};
use std::io;
use talea_recording::kernel::{Chosen, WATCHED_MAX, WakeChoice, Woken};

/// Whose wake-ups are to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Traced {
    /// Those of these threads.
    Threads(Vec<u32>),
    /// Those of all commands, whose threads come and go, by their priorities, and those of these threads, by their numbers where parked threads have
    /// the priority of most others.
    All(Vec<u32>),
}

/// Has them told. Asking the kernel takes milliseconds, in which nobody else waits.
pub(crate) struct Chooser {
    choice: WakeChoice,
    priorities: Priorities,
    /// Controller and sentinels: they hold programs and let them go, which wakes all threads of a program, also those that sleep. The set notes that
    /// itself.
    excluded_wakers: Vec<u32>,
    last: Option<Traced>,
}

impl Chooser {
    pub fn new(choice: WakeChoice, priorities: Priorities) -> Self {
        Chooser { choice, priorities, excluded_wakers: Vec::new(), last: None }
    }

    /// What these threads wake is not told from the next choice on, where all commands are chosen.
    pub fn exclude_wakers(&mut self, wakers: Vec<u32>) {
        self.excluded_wakers = wakers;
    }

    /// Chooses these instead of those before.
    ///
    /// # Errors
    /// The kernel has no room for it.
    pub fn choose(&mut self, traced: Traced) -> io::Result<()> {
        let traced = match traced {
            // By their priorities, and the first of them by their numbers, too.
            Traced::Threads(threads) if threads.len() > WATCHED_MAX => Traced::All(threads),
            other => other,
        };
        if self.last.as_ref() == Some(&traced) {
            return Ok(());
        }
        let priorities = [self.priorities.in_events(Level::Parked)];
        // Who is granted its processor goes on by itself when it is woken. It has to be heard of in the moment alone in which it is lowered for
        // having blocked; see `State::absent`. Who is beside its sentinel goes on after it.
        let quiet = [self.priorities.in_events(Level::Beside)];
        let from_elsewhere = [self.priorities.in_events(Level::Granted)];
        let woken = match &traced {
            Traced::Threads(threads) => Woken::Threads(threads),
            Traced::All(threads) => {
                Woken::Priorities { priorities: &priorities, threads, excluded_wakers: &self.excluded_wakers }
            }
        };
        self.choice.choose(Chosen { woken, quiet: &quiet, from_elsewhere: &from_elsewhere })?;
        self.last = Some(traced);
        Ok(())
    }
}
