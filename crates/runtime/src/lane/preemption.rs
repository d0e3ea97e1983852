//! Preemption between the lanes of a node, told by the [word of their processor](crate::occupancy).

use crate::flow::{JobFlow, Shared};
use crate::occupancy::Stay;
use crate::recorder::Subject;
use talea_record::JobId;
use talea_time::Instant;

/// A lane's view of its processor's word.
#[derive(Debug)]
pub(crate) struct LanePreemption {
    /// Index into [`Shared::processors`]; `None` where preemption is not recorded.
    processor: Option<usize>,
    stay: Stay,
}

impl LanePreemption {
    pub fn new(processor: Option<usize>) -> Self {
        LanePreemption { processor, stay: Stay::default() }
    }

    /// The lane gives the processor to `job`, from a lower lane, from another job of its own, or
    /// from nobody.
    pub fn take(&mut self, shared: &Shared, flow: &mut JobFlow, job: JobId, now: Instant) {
        let Some(processor) = self.processor else { return };
        let is_under_way = |victim| shared.is_under_way(victim);
        if let Some(victim) = self.stay.take(&shared.processors[processor], job, is_under_way) {
            let subject = Subject { job: victim, lane: shared.layout.operation(victim.operation).lane };
            flow.recorder.put(now, subject.preempt(job));
        }
    }

    /// The lane has nothing to do and gives the processor back.
    pub fn leave(&mut self, shared: &Shared, flow: &mut JobFlow, now: Instant) {
        let Some(processor) = self.processor else { return };
        let is_under_way = |victim| shared.is_under_way(victim);
        if let Some(victim) = self.stay.leave(&shared.processors[processor], is_under_way) {
            let subject = Subject { job: victim, lane: shared.layout.operation(victim.operation).lane };
            flow.recorder.put(now, subject.resume());
        }
    }
}

/// A job of the lane has ended; nothing runs until the lane takes the processor again.
pub(crate) fn vacate(shared: &Shared, processor: Option<usize>) {
    if let Some(processor) = processor {
        shared.processors[processor].vacate();
    }
}
