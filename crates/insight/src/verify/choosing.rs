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
    /// The first instant at which it could go on since its last job began or ended, or since it got its first one; none if it could not yet.
    since: Option<Instant>,
    /// How long it could since then.
    able: Duration,
    /// Nobody has gone on for some time before this.
    stood_until: Instant,
}

impl Choosing {
    pub fn new(start: Instant) -> Self {
        Choosing { since: None, able: Duration::ZERO, stood_until: start }
    }

    /// It has begun or ended a job.
    pub fn begin_anew(&mut self) {
        if self.since.is_some() {
            (self.since, self.able) = (None, Duration::ZERO);
        }
    }

    /// It could go on for so long from `now` on.
    fn go_on(&mut self, now: Instant, length: Duration) {
        self.since.get_or_insert(now);
        self.able = Duration::from_nanos(self.able.as_nanos().saturating_add(length.as_nanos()));
    }

    /// Nobody has gone on from `due` to `now`.
    fn take_back(&mut self, due: Instant, now: Instant) {
        let Some(since) = self.since else { return };
        let from = due.max(since).max(self.stood_until);
        self.stood_until = self.stood_until.max(now);
        let stood = now.saturating_since(from).max(Duration::ZERO);
        self.able = (self.able - stood).max(Duration::ZERO);
    }

    /// The first instant at which what it starts `now` may have been chosen, if threads take up to `tolerance` for that.
    pub fn earliest(&self, now: Instant, tolerance: Duration) -> Instant {
        let before = Instant::from_nanos(now.as_nanos().saturating_sub(tolerance.as_nanos()));
        // Before it could go on for the first time it had chosen nothing.
        self.since.filter(|_| self.able <= tolerance).map_or(before, |since| before.min(since))
    }
}

impl Judge<'_> {
    /// For so long from `since` on the lane stood as it stands, and executed nothing. `holders` are those of the node that was asked for last: lanes
    /// of a node stand together.
    pub(super) fn count_choosing(
        &mut self,
        index: usize,
        (since, length): (Instant, Duration),
        holders: &mut Option<(usize, Vec<Occupant>)>,
    ) {
        let lane = &mut self.lanes[index];
        // Whoever waits for room keeps the lane, which chooses nobody meanwhile.
        if lane.ready.is_empty() || lane.ready.values().any(|ready| ready.waits.is_some()) {
            return lane.choosing.begin_anew();
        }
        if lane.order.rules.dispatch == LaneDispatch::Preemptive || self.is_simulated() {
            return;
        }
        let node = self.lanes[index].node;
        let (_, holders) = match holders.take().filter(|(of, _)| *of == node) {
            Some(known) => holders.insert(known),
            None => {
                let places = 0..self.occupancy.processors(node).len();
                holders.insert((node, places.map(|place| self.occupancy.holder(node, place)).collect()))
            }
        };
        if !self.is_kept_off(index, holders) {
            self.lanes[index].choosing.go_on(since, length);
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

    /// Whether the lane could not go on, since others have every processor that it could have, which these have.
    fn is_kept_off(&self, index: usize, holders: &[Occupant]) -> bool {
        let node = self.lanes[index].node;
        let hierarchies = &self.hierarchies;
        if hierarchies.decide_on(node) && hierarchies.knows(index) && hierarchies.turn(index) != Turn::Granted
        {
            return true;
        }
        if self.occupancy.hears_kernel() {
            match self.occupancy.thread_state(index) {
                ThreadState::Running | ThreadState::Off => return false,
                ThreadState::Preempted => return true,
                ThreadState::Unknown => {}
            }
        }
        !holders.iter().any(|holder| match holder {
            Occupant::Idle => true,
            Occupant::Lane(lane) => self.goes_before(index, *lane),
            Occupant::Job(job) => {
                let lanes = [self.occupancy.lane_of(*job), self.occupancy.lent_by(*job)];
                lanes.into_iter().flatten().any(|lane| self.goes_before(index, lane))
            }
            _ => false,
        })
    }

    /// Whether the lane has the processor that this other one, or itself, has.
    fn goes_before(&self, index: usize, holder: usize) -> bool {
        let [own, other] = [index, holder].map(|lane| &self.lanes[lane]);
        let is_higher = own.level < other.level && self.occupancy.is_by_level(own.node);
        index == holder || is_higher && self.expected.are_ranked(index, holder)
    }
}
