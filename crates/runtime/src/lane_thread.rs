//! A non-preemptive lane: one thread that takes jobs from its inbox, orders them, and runs the best to
//! its end. Preemption by higher lanes is the kernel's, so the thread never has to ask.
//!
//! ```text
//!          ┌─────────── ring ────────────┐
//!          ▼                             │
//!   (1) take in ──► (2) elect ──None──► (5) sleep
//!          ▲             │ job
//!          │             ▼
//!          └── (4) ── (3) run to completion, release successors, ring
//! ```

use crate::execute::{Surroundings, execute};
use crate::flow::{Equipment, Hand, Shared};
use crate::inbox::Receiver;
use crate::job_table::Begin;
use crate::seat::Seat;
use crate::sys::clock::MonotonicClock;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_policy::job::Job;
use talea_policy::lane::LaneQueue;
use talea_time::{Clock, Instant, Work};
use talea_trace::{CostKind, Event, JobId, ThreadRole};

/// Everything a lane's thread owns.
pub(crate) struct LaneThread {
    pub shared: Arc<Shared>,
    pub inbox: Receiver,
    pub queue: LaneQueue,
    /// Index over the lanes of all nodes.
    pub lane: usize,
    /// The word of the node's processor, if preemption is recorded.
    pub processor: Option<usize>,
}

/// A job of this lane runs on the lane's own thread.
struct OnLane<'a> {
    shared: &'a Shared,
    seat: &'a mut Seat,
    processor: Option<usize>,
}

impl Surroundings for OnLane<'_> {
    fn started(&mut self, hand: &mut Hand, job: JobId, now: Instant) {
        self.seat.take(self.shared, hand, job, now);
    }

    fn checkpoint(&self) {}

    fn processor(&self) -> Option<usize> {
        self.processor
    }
}

impl LaneThread {
    /// Serves the lane until the run is stopped.
    pub fn serve(self, equipment: Equipment) {
        let LaneThread { shared, mut inbox, mut queue, lane, processor } = self;
        let mut seat = Seat::new(processor);
        let port = shared.port(lane);
        let mut hand = equipment.take_up(ThreadRole::Lane, Some(lane));
        while !shared.stop.is_stopped() {
            let began = hand.recorder.stopwatch();
            let mut moved = 0;
            while let Some(tag) = inbox.pop() {
                queue.push(shared.job(tag));
                moved += 1;
            }
            let Some(job) = queue.elect(MonotonicClock.now(), Work::ZERO) else {
                seat.leave(&shared, &mut hand, MonotonicClock.now());
                hand.recorder.lane(Event::SLEEP, lane);
                port.bell.wait_unless(|| inbox.has_number() || shared.stop.is_stopped());
                hand.recorder.lane(Event::WAKE, lane);
                continue;
            };
            hand.recorder.cost(began, CostKind::Queue, Some(lane), moved);
            let depth = queue.len().saturating_sub(port.dead.load(Ordering::Relaxed) as usize).max(1);
            let mut on_lane = OnLane { shared: &shared, seat: &mut seat, processor };
            if execute(&shared, &mut hand, &mut on_lane, &job, depth) == Begin::Dead {
                port.dead.fetch_sub(1, Ordering::Relaxed);
            }
            forget(&shared, &mut queue, &job);
            hand.ring(&shared);
        }
    }
}

/// The job is over: the queue, and then the table, forget it.
pub(crate) fn forget(shared: &Shared, queue: &mut LaneQueue, job: &Job) {
    let removed = queue.remove(job.tag);
    assert!(removed.is_some(), "a lane holds the job it ran");
    shared.jobs.forget(job.tag, job.number);
}
