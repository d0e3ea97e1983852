//! A thread's demand: what has arrived and is not yet done.

use super::{Load, ThreadTally};
use std::collections::VecDeque;
use talea_policy::demand::{self, Purpose};
use talea_policy::hierarchy::VpId;
use talea_policy::job::Job;
use talea_time::{Duration, Instant, Work};

/// A burst that is not yet done.
#[derive(Clone, Copy, Debug)]
struct Burst {
    number: u64,
    arrival: Instant,
    deadline: Instant,
    /// `None` if it never ends.
    left: Option<Work>,
}

/// What comes after a burst.
pub(super) enum Finished {
    /// The thread blocks.
    Last,
    /// The next burst has arrived already.
    Next(Job),
}

pub(super) struct Actor {
    vp: VpId,
    load: Load,
    stream: u64,
    next_arrival: Instant,
    /// The first is being worked on.
    bursts: VecDeque<Burst>,
    tally: ThreadTally,
}

impl Actor {
    pub fn new(vp: VpId, load: Load, seed: u64, number: u32) -> Self {
        let next_arrival = match &load {
            Load::Endless => Instant::ZERO,
            Load::Bursts { phase, period, .. } => {
                assert!(*period > Duration::ZERO, "time passes between bursts");
                Instant::ZERO + *phase
            }
        };
        let stream = demand::stream(seed, Purpose::Execution, number as usize);
        Actor { vp, load, stream, next_arrival, bursts: VecDeque::new(), tally: ThreadTally::default() }
    }

    pub fn vp(&self) -> VpId {
        self.vp
    }

    pub fn tally(&self) -> ThreadTally {
        self.tally
    }

    pub fn next_arrival(&self) -> Instant {
        self.next_arrival
    }

    pub fn granted(&mut self) {
        self.tally.grants += 1;
    }

    /// The thread had a processor for so long, whatever it did with it.
    pub fn receive(&mut self, time: Work) {
        self.tally.received += time;
    }

    /// When the current burst ends if it is worked on from `from` on.
    pub fn ends(&self, from: Instant) -> Instant {
        match self.bursts.front() {
            Some(Burst { left: Some(left), .. }) => from.saturating_add(left.at_full_speed()),
            _ => Instant::MAX,
        }
    }

    /// The current burst is worked on for so long.
    pub fn work(&mut self, done: Work) {
        if let Some(Burst { left: Some(left), .. }) = self.bursts.front_mut() {
            *left -= done;
        }
    }

    /// The next burst arrives. Returns the job to request a processor for, unless one is being worked on.
    pub fn arrive(&mut self, now: Instant) -> Option<Job> {
        let number = self.tally.arrived;
        self.tally.arrived += 1;
        let burst = match &self.load {
            Load::Endless => {
                self.next_arrival = Instant::MAX;
                Burst { number, arrival: now, deadline: Instant::MAX, left: None }
            }
            Load::Bursts { exec, period, deadline, .. } => {
                self.next_arrival = now.saturating_add(*period);
                let work = demand::execution_from(exec, self.stream, number);
                Burst { number, arrival: now, deadline: now.saturating_add(*deadline), left: Some(work) }
            }
        };
        self.bursts.push_back(burst);
        (self.bursts.len() == 1).then(|| self.job(&burst))
    }

    /// Ends the current burst if nothing is left of it.
    pub fn finish(&mut self, now: Instant) -> Option<Finished> {
        let burst = *self.bursts.front()?;
        if burst.left != Some(Work::ZERO) {
            return None;
        }
        self.bursts.pop_front();
        let response = now - burst.arrival;
        self.tally.longest_response = self.tally.longest_response.max(response);
        match now <= burst.deadline {
            true => self.tally.met += 1,
            false => self.tally.late += 1,
        }
        Some(match self.bursts.front() {
            Some(next) => Finished::Next(self.job(next)),
            None => Finished::Last,
        })
    }

    fn job(&self, burst: &Burst) -> Job {
        let wcet = match &self.load {
            Load::Endless => Work::ZERO,
            Load::Bursts { wcet, .. } => *wcet,
        };
        Job {
            release: burst.arrival,
            deadline: burst.deadline,
            wcet,
            rank: 0,
            number: burst.number,
            tag: self.vp.index() as u32,
        }
    }
}
