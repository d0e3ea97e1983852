//! A non-preemptive lane: takes jobs from its inbox, orders them, and runs the best to its end. Preemption by higher lanes is not
//! its business, so it never has to ask: that is its [`Enforcement`]'s. Schedulers above that guarantee single jobs hear of a
//! job before it begins, and the lane elects anew afterwards.
//!
//! ```text
//!          ┌─────────── ring ────────────┐
//!          ▼                             │
//!   (1) take in ──► (2) elect ──None──► (5) sleep
//!          ▲             │ job
//!          │             ▼
//!          └── (4) ── (3) run to completion, release successors, ring
//! ```
//!
//! One round of this, 1 to 4, is a [step](LaneAgent::step). A thread of the lane's own takes one after the other and sleeps in
//! between; who steps it otherwise decides when.

use super::enforcement::Enforcement;
use super::execute::{Chosen, OthersOfLane, execute};
use crate::flow::{JobFlow, Shared};
use crate::job_table::Begin;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_linux::clock::MonotonicClock;
use talea_policy::job::Job;
use talea_policy::lane::LaneQueue;
use talea_record::CostKind;
use talea_ring::inbox::Receiver;
use talea_time::{Clock, Instant, Work};

/// Everything a lane owns.
pub(crate) struct LaneAgent {
    pub shared: Arc<Shared>,
    pub inbox: Receiver,
    pub queue: LaneQueue,
    /// Index over the lanes of all nodes.
    pub lane: usize,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A job was executed, or dropped; there may be more.
    Worked,
    /// There is no job.
    Idle,
}

impl LaneAgent {
    /// Serves the lane until the run is stopped.
    pub fn serve(mut self, mut flow: JobFlow, enforcement: &mut impl Enforcement) {
        while !self.is_over() && !enforcement.is_gone() {
            if self.step(&mut flow, enforcement) == Step::Idle {
                self.sleep(&mut flow, enforcement);
            }
        }
    }

    /// Whether the run is, or that of the node.
    pub fn is_over(&self) -> bool {
        self.shared.is_over(self.shared.layout.lanes[self.lane].node)
    }

    /// Takes in what has come, and runs the best job to its end.
    pub fn step(&mut self, flow: &mut JobFlow, enforcement: &mut impl Enforcement) -> Step {
        let LaneAgent { shared, inbox, queue, lane } = self;
        let job = loop {
            let began = flow.recorder.stopwatch();
            let moved = take_in(shared, inbox, queue);
            let Some(job) = queue.elect(MonotonicClock.now(), Work::ZERO) else {
                enforcement.give_back(flow);
                return Step::Idle;
            };
            flow.recorder.cost(began, CostKind::Queue, Some(*lane), moved);
            let is_dead = shared.jobs.is_dead(job.tag, job.number);
            if !is_dead && enforcement.offer(flow, &job) {
                return Step::Worked;
            }
            // A job that has come since then may have to go first.
            if is_dead || !inbox.has_number() {
                break job;
            }
        };
        let dead = &shared.port(*lane).dead;
        let depth = queue.len().saturating_sub(dead.load(Ordering::Relaxed) as usize).max(1);
        let others = RefCell::new((&mut *inbox, &mut *queue));
        let chosen = Chosen::ByLane { depth, waiting: Some(&others) };
        if execute(shared, flow, enforcement, &job, chosen) == Begin::Dead {
            dead.fetch_sub(1, Ordering::Relaxed);
        }
        forget(shared, queue, &job);
        flow.ring(shared);
        Step::Worked
    }

    /// Sleeps until something is posted into the lane, or the run is over.
    pub fn sleep(&self, flow: &mut JobFlow, enforcement: &mut impl Enforcement) {
        flow.recorder.sleep(self.lane);
        enforcement.sleep(|| self.inbox.has_number() || self.is_over());
        flow.recorder.wake(self.lane);
    }
}

/// Takes what has been posted into the lane's queue. Returns how many jobs that were.
fn take_in(shared: &Shared, inbox: &mut Receiver, queue: &mut LaneQueue) -> usize {
    let mut moved = 0;
    while let Some(tag) = inbox.pop() {
        queue.push(shared.job(tag));
        moved += 1;
    }
    moved
}

impl OthersOfLane for RefCell<(&mut Receiver, &mut LaneQueue)> {
    fn let_first(&self, shared: &Shared, job: &Job, now: Instant) -> bool {
        let (inbox, queue) = &mut *self.borrow_mut();
        take_in(shared, inbox, queue);
        queue.precedes_waiting(job, now)
    }
}

/// The job is over: the queue, and then the table, forget it.
pub(super) fn forget(shared: &Shared, queue: &mut LaneQueue, job: &Job) {
    let removed = queue.remove(job.tag);
    assert!(removed.is_some(), "a lane holds the job it ran");
    shared.jobs.forget(job.tag, job.number);
}
