//! The warden: what nobody tells of programs, and who gives everything back.

use super::program::{Program, give_back};
use crate::flow::Shared;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use talea_linux::clock::MonotonicClock;
use talea_manage::guardian::Guardian;
use talea_time::{Clock, Duration, Instant};

/// How often programs are looked at: for threads that they have created, and whether they are still there.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What came of the programs.
#[derive(Default)]
pub(super) struct Account {
    pub programs: Vec<Program>,
    /// Threads that could not be taken in.
    pub unmanaged_threads: u64,
}

pub(super) struct Warden {
    pub shared: Arc<Shared>,
    pub node: usize,
    /// When the run starts; nothing if it does not.
    pub start: Receiver<Instant>,
    pub guardian: Arc<Guardian>,
    pub programs: Vec<Program>,
}

impl Warden {
    /// From before the start until the end, at which everything is given back.
    pub fn serve(mut self) -> Account {
        let mut beyond = 0;
        if let Ok(start) = self.start.recv() {
            self.shared.stop.sleep_until(start);
            if !self.is_over() {
                let released = self.programs.iter_mut().try_for_each(|program| program.release(start));
                self.heed(released.map_err(|error| error.to_string()));
            }
            while !self.is_over() {
                self.shared.stop.sleep_until(MonotonicClock.now().saturating_add(LOOK_EVERY));
                let guardian = &self.guardian;
                let looked =
                    self.programs.iter_mut().try_for_each(|program| program.look_after(guardian, start));
                self.heed(looked.map_err(|error| error.to_string()));
                beyond = self.programs.iter().map(|program| program.unmanaged(&self.guardian)).sum();
                if !self.guardian.is_alive() {
                    self.heed(Err("the guardian was killed, so nobody would restore the threads".into()));
                }
            }
        }
        give_back(&mut self.programs, &self.guardian);
        Account { programs: self.programs, unmanaged_threads: beyond }
    }

    fn is_over(&self) -> bool {
        self.shared.is_over(self.node)
    }

    /// What must not be ends the run of the node.
    fn heed(&self, result: Result<(), String>) {
        if let Err(cause) = result {
            self.shared.end_node(self.node, Some(cause));
        }
    }
}
