//! How what a lane decides is brought about.

use super::preemption::{LanePreemption, vacate};
use crate::flow::{JobFlow, Shared};
use talea_linux::clock::MonotonicClock;
use talea_policy::job::Job;
use talea_record::JobId;
use talea_ring::bell::Bell;
use talea_time::{Clock, Instant};

/// What the thread that executes a job does around it.
pub(crate) trait JobHost {
    /// The job is about to run. Calls `record` once with the instant at which it begins.
    fn begin(&mut self, flow: &mut JobFlow, job: JobId, record: impl FnOnce(&mut JobFlow, Instant));
    /// The job asks whether it is to stop.
    fn checkpoint(&self);
    /// The job's code has returned. Calls `record` once with the instant at which it ends.
    fn end<R>(&mut self, flow: &mut JobFlow, record: impl FnOnce(&mut JobFlow, Instant) -> R) -> R;
}

/// What sees to it that a lane's thread runs when the lane has jobs and nobody above it does.
pub(crate) trait Enforcement: JobHost {
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
    fn is_gone(&self) -> bool {
        false
    }
}

/// The kernel preempts lanes by their priorities.
pub(crate) struct KernelPriorities<'a> {
    shared: &'a Shared,
    bell: &'a Bell,
    preemption: LanePreemption,
    /// The word of the node's processor, if preemption is recorded.
    processor: Option<usize>,
}

impl<'a> KernelPriorities<'a> {
    pub fn new(shared: &'a Shared, lane: usize, processor: Option<usize>) -> Self {
        let preemption = LanePreemption::new(processor);
        KernelPriorities { shared, bell: shared.port(lane).bell(), preemption, processor }
    }
}

impl JobHost for KernelPriorities<'_> {
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

impl Enforcement for KernelPriorities<'_> {
    fn give_back(&mut self, flow: &mut JobFlow) {
        self.preemption.leave(self.shared, flow, MonotonicClock.now());
    }

    fn sleep(&mut self, has_work: impl Fn() -> bool) {
        self.bell.wait_unless(has_work);
    }
}
