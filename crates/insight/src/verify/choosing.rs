//! Since when a lane may have made the choice that its next start tells.
//!
//! The thread of a lane chooses a job, and then writes that it starts it. In between it may lose its processor to a lane of a higher level, to schedulers
//! above or to the kernel. What is released until it has one again was not there when it chose. So no time counts in which the lane could not go on.
//!
//! A virtual machine may stand still meanwhile, too, which no record tells. But a thread above all lanes that wakes up late for an instant does: if no
//! other record is from in between, nobody on the one processor of its node has gone on since that instant.

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

/// How long a lane could go on since it last told of something.
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

    /// Whether the lane could not go on, since others have every processor that it could have.
    fn is_kept_off(&self, index: usize) -> bool {
        let node = self.lanes[index].node;
        let hierarchies = &self.hierarchies;
        if hierarchies.decide_on(node) && hierarchies.knows(index) && hierarchies.turn(index) != Turn::Granted
        {
            return true;
        }
        match self.occupancy.thread_state(index) {
            ThreadState::Running => return false,
            ThreadState::Preempted | ThreadState::Off => return true,
            ThreadState::Unknown => {}
        }
        let places = 0..self.occupancy.processors(node).len();
        !places.into_iter().any(|place| match self.occupancy.holder(node, place) {
            Occupant::Idle => true,
            Occupant::Lane(lane) => self.goes_before(index, lane),
            Occupant::Job(job) => {
                self.occupancy.lane_of(job).is_some_and(|lane| self.goes_before(index, lane))
            }
            _ => false,
        })
    }

    /// Whether the lane has the processor that this other one, or itself, has.
    fn goes_before(&self, index: usize, holder: usize) -> bool {
        let levels = [index, holder].map(|lane| self.lanes[lane].level);
        let is_ranked =
            self.occupancy.is_by_level(self.lanes[index].node) && self.expected.are_ranked(index, holder);
        index == holder || is_ranked && levels[0] < levels[1]
    }
}
