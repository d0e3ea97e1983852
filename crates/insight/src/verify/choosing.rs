//! Since when a lane may have made the choice that its next start tells.
//!
//! The thread of a lane chooses a job, and then writes that it starts it. Whoever takes its processor in between, the lane of another level, schedulers
//! above or the kernel, keeps it from writing that for as long as it likes, and what is released meanwhile was not there when the thread chose.
//! So no time counts in which the lane could not go on. A virtual machine may stand still meanwhile, too, which no record tells; but a thread above all
//! lanes that wakes up late for an instant does: if no other record is from in between, nobody on the one processor of its node has gone on since that instant.

use super::judge::Judge;
use crate::hierarchy::Turn;
use crate::occupancy::{Occupant, ThreadState};
use talea_model::LaneDispatch;
use talea_record::Record;
use talea_time::{Duration, Instant};

/// When something was written on a processor last, and at an instant before that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard([Instant; 2]);

impl Heard {
    pub fn nothing(start: Instant) -> Self {
        Heard([start; 2])
    }

    fn at(&mut self, now: Instant) {
        let Heard([last, before]) = *self;
        if now > last {
            *self = Heard([now, before.max(last)]);
        }
    }

    /// The last instant before `now`.
    fn before(self, now: Instant) -> Instant {
        let Heard([last, before]) = self;
        if last < now { last } else { before }
    }
}

/// Of one lane: how long it could have said what it chose, and did not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choosing {
    /// When its last job began or ended, or when it got its first one.
    since: Instant,
    /// How long it could go on since then.
    able: Duration,
    /// Nobody has gone on for some time before this.
    stood_until: Instant,
}

impl Choosing {
    pub fn anew(now: Instant) -> Self {
        Choosing { since: now, able: Duration::ZERO, stood_until: now }
    }

    /// Nobody has gone on from `due` to `now`.
    fn take_back(&mut self, due: Instant, now: Instant) {
        let from = due.max(self.stood_until);
        self.stood_until = self.stood_until.max(now);
        let stood = now.saturating_since(from).max(Duration::ZERO);
        self.able = (self.able - stood).max(Duration::ZERO);
    }

    /// The first instant at which what it starts `now` may have been chosen, if threads take up to `tolerance` for that.
    pub fn earliest(&self, now: Instant, tolerance: Duration) -> Instant {
        let before = Instant::from_nanos(now.as_nanos().saturating_sub(tolerance.as_nanos()));
        if self.able <= tolerance { before.min(self.since) } else { before }
    }
}

impl Judge<'_> {
    /// The time up to `now` is over, in which each lane stood as it stands.
    pub(super) fn count_choosing(&mut self, now: Instant) {
        if self.is_simulated() {
            return;
        }
        let length = now.saturating_since(self.now);
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            if lane.order.rules.dispatch == LaneDispatch::Preemptive {
                continue;
            }
            if lane.ready.is_empty() || lane.ready.values().any(|ready| ready.running.is_some()) {
                self.lanes[index].choosing = Choosing::anew(now);
            } else if !self.is_kept_off(index) {
                let able = &mut self.lanes[index].choosing.able;
                *able = Duration::from_nanos(able.as_nanos().saturating_add(length.as_nanos()));
            }
        }
    }

    /// A thread above the lanes of the node tells that it was to wake up at `due`.
    pub(super) fn hear_late(&mut self, node: usize, due: Instant) {
        let Some(heard) = self.heard[node] else { return };
        let (now, since) = (self.now, due.max(heard.before(self.now)));
        let lanes = self.lanes.iter_mut().filter(|lane| lane.node == node);
        lanes.for_each(|lane| lane.choosing.take_back(since, now));
    }

    /// Somebody has written the record on a processor.
    pub(super) fn hear(&mut self, record: &Record) {
        for (node, heard) in self.heard.iter_mut().enumerate() {
            if let Some(heard) = heard
                && self.occupancy.processors(node)[0].cpu == record.cpu
            {
                heard.at(record.time);
            }
        }
    }

    /// Whether the lane could not go on, for others have what it needs.
    fn is_kept_off(&self, index: usize) -> bool {
        let node = self.lanes[index].node;
        if self.hierarchies.decide_on(node) && self.hierarchies.knows(index) {
            return self.hierarchies.turn(index) != Turn::Granted;
        }
        match self.occupancy.thread_state(index) {
            ThreadState::Preempted => true,
            ThreadState::Running | ThreadState::Off => false,
            ThreadState::Unknown => (0..self.occupancy.processors(node).len()).all(|place| {
                match self.occupancy.holder(node, place) {
                    Occupant::Job(job) => self.occupancy.lane_of(job) != Some(index),
                    holder => holder == Occupant::Withheld,
                }
            }),
        }
    }
}
