//! A slot of a preemptive lane: the thread that runs one job at a time, and what it shares with the
//! controller.

use super::interruption::Interruptions;
use crate::flow::{JobFlow, JobFlowSetUp, Shared};
use crate::job_table::{Begin, Tag};
use crate::lane::enforcement::JobHost;
use crate::lane::execute::{Candidate, Chosen, execute};
use crate::lane::preemption::ended_on;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use talea_linux::clock::{MonotonicClock, thread_cpu_time};
use talea_record::{JobId, ThreadRole};
use talea_ring::bell::Bell;
use talea_time::{Clock, Instant};

/// Room for the one job that a slot is given at a time, with the number of jobs in the lane.
#[derive(Debug)]
pub(crate) struct Assignment(AtomicU64);

impl Assignment {
    /// The depth of a lane is its number of jobs, which all have tags, so it is smaller than this.
    const NONE: u64 = u64::MAX;

    pub fn put(&self, tag: Tag, depth: usize) {
        let before = self.0.swap((depth as u64) << 32 | u64::from(tag), Ordering::AcqRel);
        assert_eq!(before, Self::NONE, "a free slot has taken what it was assigned before");
    }

    fn take(&self) -> Option<(Tag, usize)> {
        let word = self.0.swap(Self::NONE, Ordering::AcqRel);
        (word != Self::NONE).then_some((word as Tag, (word >> 32) as usize))
    }

    fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed) != Self::NONE
    }
}

/// What a slot's thread and the controller both see.
#[derive(Debug)]
pub(crate) struct SlotCell {
    pub assignment: Assignment,
    /// For assignments.
    pub bell: Bell,
    /// For the end of a cooperative park.
    pub permit: Bell,
    /// The job is to park itself at its next cancellation point. Only without real-time priorities.
    pub parked: AtomicBool,
    /// The thread's processor time when the job began.
    pub began_at: AtomicI64,
    /// What the controller records of the job, against its end.
    pub interruptions: Interruptions,
}

impl SlotCell {
    pub fn new() -> Self {
        SlotCell {
            assignment: Assignment(AtomicU64::new(Assignment::NONE)),
            bell: Bell::new(),
            permit: Bell::new(),
            parked: AtomicBool::new(false),
            began_at: AtomicI64::new(0),
            interruptions: Interruptions::new(),
        }
    }

    /// Wakes the slot's thread so that it sees that the run is over.
    pub fn wake_to_stop(&self) {
        self.bell.ring();
        self.permit.ring();
    }
}

/// Everything a slot's thread owns.
pub(crate) struct SlotThread {
    pub shared: Arc<Shared>,
    pub cell: Arc<SlotCell>,
    pub lane: usize,
    pub processor: Option<usize>,
}

struct InSlot<'a> {
    shared: &'a Shared,
    cell: &'a SlotCell,
    processor: Option<usize>,
}

impl JobHost for InSlot<'_> {
    /// The controller of a preemptive lane decides about each job.
    fn may_execute_within(&self) -> bool {
        false
    }

    fn begin(&mut self, flow: &mut JobFlow, _job: JobId, record: impl FnOnce(&mut JobFlow, Instant)) {
        record(flow, MonotonicClock.now());
    }

    /// The controller has put the job into the processor's word when it granted it, so whoever displaces it is recorded to do so as soon as it has
    /// begun. So the instant of that is read before.
    fn start(
        &mut self,
        flow: &mut JobFlow,
        candidate: &Candidate<'_>,
        record: impl FnOnce(&mut JobFlow, Instant),
    ) -> Begin {
        let processor = self.processor.map(|processor| &self.shared.processors[processor]);
        let looked = processor.map(|processor| (processor, processor.found(), processor.displaced()));
        let mut now = MonotonicClock.now();
        let begun = candidate.begin();
        if begun == Begin::Run {
            if let Some((processor, found, displaced)) = looked
                && !(found.is(candidate.id) && processor.is_as(found))
                && processor.displaced() == displaced
            {
                // Others ran before it had begun, and gave the processor back to nobody.
                now = processor.take_for(candidate.id);
            }
            record(flow, now);
        }
        begun
    }

    fn checkpoint(&self) {
        let goes_on = || !self.cell.parked.load(Ordering::Acquire) || self.shared.stop.is_stopped();
        while !goes_on() {
            self.cell.permit.wait_unless(goes_on);
        }
    }

    fn end<F, R>(
        &mut self,
        flow: &mut JobFlow,
        finish: impl FnOnce() -> F,
        record: impl FnOnce(&mut JobFlow, Instant, F) -> Option<R>,
    ) -> Option<R> {
        let interruptions = &self.cell.interruptions;
        let before = interruptions.before();
        let finish = || (interruptions.end(before), finish());
        let record = |flow: &mut JobFlow, end: Instant, (earliest, finished): (Instant, F)| {
            record(flow, end.max(earliest), finished)
        };
        ended_on(self.shared, self.processor, flow, (finish, record))
    }
}

impl SlotThread {
    /// Runs what is assigned until the run is stopped.
    pub fn serve(self, flow_set_up: JobFlowSetUp) {
        let SlotThread { shared, cell, lane, processor } = self;
        let port = shared.port(lane);
        let mut flow = flow_set_up.begin(ThreadRole::Lane, Some(lane));
        while !shared.stop.is_stopped() {
            let Some((tag, depth)) = cell.assignment.take() else {
                cell.bell.wait_unless(|| cell.assignment.is_there() || shared.stop.is_stopped());
                continue;
            };
            let job = shared.job(tag);
            let mut in_slot = InSlot { shared: &shared, cell: &cell, processor };
            // Before the job begins, so that the controller never measures from an older job's beginning.
            cell.began_at.store(thread_cpu_time().as_nanos(), Ordering::Release);
            // A dead job is done as well.
            let _ = execute(&shared, &mut flow, &mut in_slot, &job, Chosen::ByLane { depth, waiting: None });
            // The controller is told before anybody is woken: it, and the successors' lanes, preempt
            // this thread, and a lane must not decide on the belief that an ended job still runs.
            port.push(tag);
            flow.ring(&shared);
            port.ring();
        }
    }
}
