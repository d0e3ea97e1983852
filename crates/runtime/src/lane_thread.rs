//! A non-preemptive lane: one thread that takes jobs from its inbox, orders them, and runs the best to
//! its end. Preemption by higher lanes is not its business, so the thread never has to ask: it is the kernel's, by
//! priorities, or that of the schedulers above the lane, if the thread is a member of a managed set. Which of the two it is
//! decides where the thread sleeps and who records preemptions: its [`LaneHost`]. Schedulers above that guarantee single jobs hear of a job
//! before it begins, and the lane elects anew afterwards.
//!
//! ```text
//!          ┌─────────── ring ────────────┐
//!          ▼                             │
//!   (1) take in ──► (2) elect ──None──► (5) sleep
//!          ▲             │ job
//!          │             ▼
//!          └── (4) ── (3) run to completion, release successors, ring
//! ```

use crate::execute::{JobHost, execute};
use crate::flow::{JobFlow, Shared};
use crate::job_table::Begin;
use crate::preemption::{LanePreemption, vacate};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_linux::clock::MonotonicClock;
use talea_policy::job::Job;
use talea_policy::lane::LaneQueue;
use talea_record::{CostKind, JobId};
use talea_ring::bell::Bell;
use talea_ring::inbox::Receiver;
use talea_time::{Clock, Instant, Work};

/// Everything a lane's thread owns.
pub(crate) struct LaneThread {
    pub shared: Arc<Shared>,
    pub inbox: Receiver,
    pub queue: LaneQueue,
    /// Index over the lanes of all nodes.
    pub lane: usize,
}

/// What a lane's thread stands on.
pub(crate) trait LaneHost: JobHost {
    /// There is nothing to do: whom the lane displaced has the processor again.
    fn give_back(&mut self, flow: &mut JobFlow);
    /// Whether the schedulers above the lane hear of `job`, which is about to begin, and have not before. Then others may have run
    /// meanwhile.
    fn offer(&mut self, _job: &Job) -> bool {
        false
    }
    /// Sleeps until the lane is rung for, unless `has_work` says that there is something to do.
    fn sleep(&mut self, has_work: impl Fn() -> bool);
    /// Whether nobody schedules the thread any more, although the run is not over.
    fn is_gone(&self) -> bool;
}

/// The kernel preempts lanes by their priorities.
pub(crate) struct ByPriority<'a> {
    shared: &'a Shared,
    bell: &'a Bell,
    preemption: LanePreemption,
    /// The word of the node's processor, if preemption is recorded.
    processor: Option<usize>,
}

impl<'a> ByPriority<'a> {
    pub fn new(shared: &'a Shared, lane: usize, processor: Option<usize>) -> Self {
        ByPriority {
            shared,
            bell: shared.port(lane).bell(),
            preemption: LanePreemption::new(processor),
            processor,
        }
    }
}

impl JobHost for ByPriority<'_> {
    fn begin(&mut self, flow: &mut JobFlow, job: JobId, record: impl FnOnce(&mut JobFlow, Instant)) {
        let now = MonotonicClock.now();
        self.preemption.take(self.shared, flow, job, now);
        record(flow, now);
    }

    fn checkpoint(&self) {}

    fn end<R>(&mut self, flow: &mut JobFlow, record: impl FnOnce(&mut JobFlow, Instant) -> R) -> R {
        let recorded = record(flow, MonotonicClock.now());
        vacate(self.shared, self.processor);
        recorded
    }
}

impl LaneHost for ByPriority<'_> {
    fn give_back(&mut self, flow: &mut JobFlow) {
        self.preemption.leave(self.shared, flow, MonotonicClock.now());
    }

    fn sleep(&mut self, has_work: impl Fn() -> bool) {
        self.bell.wait_unless(has_work);
    }

    fn is_gone(&self) -> bool {
        false
    }
}

impl LaneThread {
    /// Serves the lane until the run is stopped.
    pub fn serve(self, mut flow: JobFlow, host: &mut impl LaneHost) {
        let LaneThread { shared, mut inbox, mut queue, lane } = self;
        let port = shared.port(lane);
        while !shared.stop.is_stopped() && !host.is_gone() {
            let began = flow.recorder.stopwatch();
            let mut moved = 0;
            while let Some(tag) = inbox.pop() {
                queue.push(shared.job(tag));
                moved += 1;
            }
            let Some(job) = queue.elect(MonotonicClock.now(), Work::ZERO) else {
                host.give_back(&mut flow);
                flow.recorder.sleep(lane);
                host.sleep(|| inbox.has_number() || shared.stop.is_stopped());
                flow.recorder.wake(lane);
                continue;
            };
            flow.recorder.cost(began, CostKind::Queue, Some(lane), moved);
            if !shared.jobs.is_dead(job.tag, job.number) && host.offer(&job) {
                continue;
            }
            let depth = queue.len().saturating_sub(port.dead.load(Ordering::Relaxed) as usize).max(1);
            if execute(&shared, &mut flow, host, &job, depth) == Begin::Dead {
                port.dead.fetch_sub(1, Ordering::Relaxed);
            }
            forget(&shared, &mut queue, &job);
            flow.ring(&shared);
        }
    }
}

/// The job is over: the queue, and then the table, forget it.
pub(crate) fn forget(shared: &Shared, queue: &mut LaneQueue, job: &Job) {
    let removed = queue.remove(job.tag);
    assert!(removed.is_some(), "a lane holds the job it ran");
    shared.jobs.forget(job.tag, job.number);
}
