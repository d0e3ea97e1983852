//! How what a lane decides is brought about.

use super::agent::{Elected, Step};
use super::execute::Candidate;
use super::preemption::{LanePreemption, ended_on};
use crate::flow::{JobFlow, Shared};
use crate::job_table::{Begin, Tag};
use crate::lowering::hierarchy::Level;
use talea_policy::job::Job;
use talea_record::JobId;
use talea_ring::bell::Bell;
use talea_time::{Instant, Work};

/// What there is to tell of a job that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// It gives up its processor.
    Begins,
    /// It has one again.
    IsOver,
}

/// What the thread that executes a job does around it.
pub(crate) trait JobHost {
    /// The lane has chosen `job`, which has not begun. Whether others may have run meanwhile, so that it is to choose anew: the schedulers above it
    /// hear of the job, and have not before, or those beside the lane had a turn.
    fn offer(&mut self, _flow: &mut JobFlow, _job: &Job) -> bool {
        false
    }
    /// The job is about to run. Calls `record` once with the instant at which it begins.
    fn begin(&mut self, flow: &mut JobFlow, job: JobId, record: impl FnOnce(&mut JobFlow, Instant));
    /// The same of a job that has not begun for anybody yet. If it does not begin, nothing is recorded.
    fn start(
        &mut self,
        flow: &mut JobFlow,
        candidate: &Candidate<'_>,
        record: impl FnOnce(&mut JobFlow, Instant),
    ) -> Begin {
        let begun = candidate.begin();
        if begun == Begin::Run {
            self.begin(flow, candidate.id, record);
        }
        begun
    }
    /// Whether a job may execute another one of its lane in its midst.
    fn may_execute_within(&self) -> bool;
    /// The job asks whether it is to stop. Where a lane's jobs are executed by its one thread nothing follows from that.
    fn checkpoint(&self) {}
    /// As [`Self::end`], of a job that was executed in the midst of another one, which goes on: `resume` is called once with the instant from which the
    /// processor is that one's again.
    fn end_within<F, R>(
        &mut self,
        flow: &mut JobFlow,
        (finish, record): (impl FnOnce() -> F, impl FnOnce(&mut JobFlow, Instant, F) -> Option<R>),
        (outer, resume): (JobId, impl FnOnce(&mut JobFlow, Instant)),
    ) -> Option<R> {
        let recorded = self.end(flow, finish, record);
        self.begin(flow, outer, resume);
        recorded
    }
    /// The job sleeps until `sleep` returns. Where it is known who has the processor then, `record` is called with the instant from which the job has none
    /// and that from which it has one again.
    fn sleep_within(
        &mut self,
        _flow: &mut JobFlow,
        _job: JobId,
        sleep: impl FnOnce(),
        _record: impl FnMut(&mut JobFlow, Instant, Sleep),
    ) {
        sleep();
    }
    /// Calls `release` once, which releases jobs, records that and gives them to their lanes, with `now` or a later instant. Who else has
    /// the processor in the midst of that knows of all of them or of none, unless it is of a lane above.
    fn in_turn<R>(
        &mut self,
        flow: &mut JobFlow,
        now: Instant,
        release: impl FnOnce(&mut JobFlow, Instant) -> R,
    ) -> R {
        release(flow, now)
    }
    /// The job's code has returned. Calls `finish` once, from which on the job has ended for everybody, and `record` with the instant of that
    /// and what came of it, unless the run of its node was over before.
    fn end<F, R>(
        &mut self,
        flow: &mut JobFlow,
        finish: impl FnOnce() -> F,
        record: impl FnOnce(&mut JobFlow, Instant, F) -> Option<R>,
    ) -> Option<R>;
}

/// What sees to it that the job a lane has chosen runs when nobody above the lane has any.
pub(crate) trait Enforcement {
    /// Has the chosen job run: here and to its end, or in another thread.
    fn run(&mut self, flow: &mut JobFlow, elected: Elected<'_>) -> Step;
    /// Whether the tag that came is of a job that has ended in another thread, which then gives it up. One that was released otherwise.
    fn ended(&mut self, _tag: Tag) -> Option<Job> {
        None
    }
    /// Whether the lane is to choose now that so much has come since it last did. If not, something comes.
    fn may_choose(&self, _news: usize) -> bool {
        true
    }
    /// Whether a job that was chosen, and then aborted before it began, is with another thread, which gives it up.
    fn has(&self, _job: &Job) -> bool {
        false
    }
    /// How long a job of the lane has executed that has not ended: at least one nanosecond once it has begun, which is how the queue knows that it has.
    /// None has where jobs run to their ends before the lane chooses again.
    fn executed(&self, _job: &Job) -> Work {
        Work::ZERO
    }
    /// There is nothing to do: whom the lane displaced has the processor again.
    fn give_back(&mut self, flow: &mut JobFlow);
    /// Sleeps until the lane is rung for, unless `has_work` says that there is something to do.
    fn sleep(&mut self, has_work: impl Fn() -> bool);
    /// Whether nobody schedules the thread any more, although the run is not over.
    fn is_gone(&self) -> bool {
        false
    }
}

/// The kernel schedules lanes by their priorities, or by what other policy their threads have.
pub(crate) struct KernelPriorities<'a> {
    shared: &'a Shared,
    bell: &'a Bell,
    preemption: LanePreemption,
    /// The word of the node's processor, if preemption is recorded.
    processor: Option<usize>,
    level: Level,
    /// Whether the lane has run a job since it slept or others had a turn.
    has_had_turn: bool,
}

impl<'a> KernelPriorities<'a> {
    pub fn new(shared: &'a Shared, lane: usize, processor: Option<usize>, level: Level) -> Self {
        let (bell, preemption) = (shared.port(lane).bell(), LanePreemption::new(processor));
        KernelPriorities { shared, bell, preemption, processor, level, has_had_turn: false }
    }
}

impl JobHost for KernelPriorities<'_> {
    fn offer(&mut self, flow: &mut JobFlow, _job: &Job) -> bool {
        let yields = self.level == Level::Shared && self.has_had_turn;
        if yields {
            // The next job has its turn after those of others that have waited for longer.
            self.give_back(flow);
            rustix::thread::sched_yield();
        }
        yields
    }

    fn may_execute_within(&self) -> bool {
        true
    }

    fn begin(&mut self, flow: &mut JobFlow, job: JobId, record: impl FnOnce(&mut JobFlow, Instant)) {
        let now = self.preemption.take(self.shared, flow, job);
        record(flow, now);
    }

    fn end<F, R>(
        &mut self,
        flow: &mut JobFlow,
        finish: impl FnOnce() -> F,
        record: impl FnOnce(&mut JobFlow, Instant, F) -> Option<R>,
    ) -> Option<R> {
        let recorded = ended_on(self.shared, self.processor, flow, (finish, record));
        self.has_had_turn = true;
        recorded
    }

    /// Whom the lane displaced goes on meanwhile.
    fn sleep_within(
        &mut self,
        flow: &mut JobFlow,
        job: JobId,
        sleep: impl FnOnce(),
        mut record: impl FnMut(&mut JobFlow, Instant, Sleep),
    ) {
        self.preemption.leave(self.shared, flow, |flow, now| record(flow, now, Sleep::Begins));
        sleep();
        let now = self.preemption.take(self.shared, flow, job);
        record(flow, now, Sleep::IsOver);
    }

    fn end_within<F, R>(
        &mut self,
        flow: &mut JobFlow,
        ended: (impl FnOnce() -> F, impl FnOnce(&mut JobFlow, Instant, F) -> Option<R>),
        (outer, resume): (JobId, impl FnOnce(&mut JobFlow, Instant)),
    ) -> Option<R> {
        let (recorded, at) = self.preemption.hand_back(self.shared, flow, ended, outer);
        resume(flow, at);
        recorded
    }
}

impl Enforcement for KernelPriorities<'_> {
    fn run(&mut self, flow: &mut JobFlow, elected: Elected<'_>) -> Step {
        elected.run_here(flow, self)
    }

    fn give_back(&mut self, flow: &mut JobFlow) {
        self.preemption.leave(self.shared, flow, |_, _| ());
        self.has_had_turn = false;
    }

    fn sleep(&mut self, has_work: impl Fn() -> bool) {
        self.bell.wait_unless(has_work);
    }
}
