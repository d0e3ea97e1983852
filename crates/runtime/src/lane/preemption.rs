//! Preemption between the lanes of a node, told by the [word of their processor](crate::occupancy).

use crate::flow::{JobFlow, Shared};
use crate::occupancy::{OthersRan, Processor, Stay};
use crate::recorder::Subject;
use talea_linux::clock::MonotonicClock;
use talea_record::JobId;
use talea_time::{Clock, Duration, Instant};

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

    /// The processor, where preemption is recorded.
    pub fn processor<'s>(&self, shared: &'s Shared) -> Option<&'s Processor> {
        self.processor.map(|processor| &shared.processors[processor])
    }

    /// The lane gives the processor to `job`, from a lower lane, from another job of its own, or
    /// from nobody. Returns the instant from which it is the job's.
    pub fn take(&mut self, shared: &Shared, flow: &mut JobFlow, job: JobId) -> Instant {
        let Some(processor) = self.processor else { return MonotonicClock.now() };
        let processor = &shared.processors[processor];
        let (victim, now) = loop {
            let (found, now) = (processor.found(), MonotonicClock.now());
            if let Ok(victim) = self.stay.take((processor, found), job, |victim| shared.is_under_way(victim))
            {
                break (victim, now);
            }
        };
        if let Some(victim) = victim {
            let subject = Subject { job: victim, lane: shared.layout.operation(victim.operation).lane };
            processor.count_displaced(now);
            flow.recorder.put(now, subject.preempt(job));
        }
        now
    }

    /// A job has ended that was executed in the midst of `outer`, another one of the lane, which has the processor again: `finish` and `record` as
    /// with [`ended_on`]. Returns what was recorded, and the instant from which the processor is the outer one's.
    pub fn hand_back<F, R>(
        &mut self,
        shared: &Shared,
        flow: &mut JobFlow,
        (finish, record): (impl FnOnce() -> F, impl FnOnce(&mut JobFlow, Instant, F) -> R),
        outer: JobId,
    ) -> (R, Instant) {
        let processor = self.processor(shared);
        let found = processor.map(Processor::found);
        let (end, finished) = finished_at(processor, finish);
        let recorded = record(flow, end, finished);
        let Some(found) = processor.zip(found) else { return (recorded, end) };
        match self.stay.take(found, outer, |victim| shared.is_under_way(victim)) {
            Ok(_) => (recorded, end),
            // Other threads ran while the inner job ended, or after that.
            Err(OthersRan) => (recorded, self.take(shared, flow, outer).max(end)),
        }
    }

    /// The lane has nothing to do, or its job sleeps, and it gives the processor back. `record` learns from which instant on, before that is recorded of
    /// whoever goes on.
    pub fn leave(&mut self, shared: &Shared, flow: &mut JobFlow, record: impl FnOnce(&mut JobFlow, Instant)) {
        let Some(processor) = self.processor else { return record(flow, MonotonicClock.now()) };
        let processor = &shared.processors[processor];
        let (victim, now) = loop {
            let (found, now) = (processor.found(), MonotonicClock.now());
            if let Ok(victim) = self.stay.leave((processor, found), |victim| shared.is_under_way(victim)) {
                break (victim, now);
            }
        };
        record(flow, now);
        if let Some(victim) = victim {
            processor.goes_on(now);
            let subject = Subject { job: victim, lane: shared.layout.operation(victim.operation).lane };
            flow.recorder.put(now, subject.resume());
        }
    }
}

/// Has a job end by `finish`, and returns the instant at which it did: after what was recorded of it, and not after any instant at
/// which somebody saw that it had ended.
fn finished_at<F>(processor: Option<&Processor>, finish: impl FnOnce() -> F) -> (Instant, F) {
    let before = processor.map(Processor::displaced);
    let end = MonotonicClock.now();
    let finished = finish();
    match processor.zip(before) {
        Some((processor, before)) if processor.displaced() != before => {
            // Records of two threads with the same instant may come in either order.
            (processor.recorded_at().saturating_add(Duration::from_nanos(1)).max(end), finished)
        }
        _ => (end, finished),
    }
}

/// A job has ended whose thread executes on the processor, if that is watched: `finish` says so to everybody, `record` to the trace, and then the
/// processor is free.
pub(crate) fn ended_on<F, R>(
    shared: &Shared,
    processor: Option<usize>,
    flow: &mut JobFlow,
    (finish, record): (impl FnOnce() -> F, impl FnOnce(&mut JobFlow, Instant, F) -> R),
) -> R {
    let processor = processor.map(|processor| &shared.processors[processor]);
    let (end, finished) = finished_at(processor, finish);
    let recorded = record(flow, end, finished);
    // Nothing runs until the lane takes the processor again.
    if let Some(processor) = processor {
        processor.vacate();
    }
    recorded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_displaced_while_it_ends_has_ended_after_what_was_recorded_of_it() {
        let (processor, nanosecond) = (Processor::default(), Duration::from_nanos(1));
        let later = MonotonicClock.now().saturating_add(Duration::from_secs(9));
        let displaced = || {
            processor.count_displaced(later);
            processor.goes_on(later + nanosecond);
        };
        assert_eq!(finished_at(Some(&processor), displaced).0, later + nanosecond + nanosecond);
        assert!(finished_at(Some(&processor), || ()).0 < later, "nobody displaced it");
        assert!(finished_at(None, || ()).0 < later);
    }
}
