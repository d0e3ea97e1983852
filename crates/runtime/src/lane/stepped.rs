//! Lanes that the caller steps: for a program with a loop of its own, and for whoever wants to decide by hand when a lane runs.

use super::agent::{LaneAgent, Step};
use super::enforcement::{Enforcement, JobHost};
use crate::flow::{JobFlow, JobFlowSetUp, Shared};
use crate::posting::{NotPosted, Posted, PostedOperation};
use std::marker::PhantomData;
use std::sync::Arc;
use talea_linux::clock::MonotonicClock;
use talea_record::{JobId, ThreadRole};
use talea_time::{Clock, Instant};

/// A lane that has no thread, before it is known which thread will step it.
pub struct SteppedLaneSetUp {
    pub(crate) node: String,
    pub(crate) level: usize,
    pub(crate) agent: LaneAgent,
    pub(crate) flow_set_up: JobFlowSetUp,
}

/// A lane that the calling thread steps.
pub struct SteppedLane {
    agent: LaneAgent,
    flow: JobFlow,
    enforcement: Stepped,
    /// Its records are those of the thread that made it.
    _of_one_thread: PhantomData<*const ()>,
}

/// What came of a [step](SteppedLane::step).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneStep {
    /// A job was executed, or one that was aborted before was dropped; there may be more.
    Worked,
    /// There is no job.
    Idle,
    /// The run is over.
    Over,
}

/// Nobody but the caller says when the lane runs.
struct Stepped(Arc<Shared>, usize);

impl JobHost for Stepped {
    fn begin(&mut self, flow: &mut JobFlow, _job: JobId, record: impl FnOnce(&mut JobFlow, Instant)) {
        record(flow, MonotonicClock.now());
    }

    fn checkpoint(&self) {}

    fn end<R>(&mut self, flow: &mut JobFlow, record: impl FnOnce(&mut JobFlow, Instant) -> R) -> R {
        record(flow, MonotonicClock.now())
    }
}

impl Enforcement for Stepped {
    fn give_back(&mut self, _flow: &mut JobFlow) {}

    fn sleep(&mut self, has_work: impl Fn() -> bool) {
        self.0.port(self.1).bell().wait_unless(has_work);
    }
}

impl std::fmt::Debug for SteppedLaneSetUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SteppedLaneSetUp").field("node", &self.node).field("level", &self.level).finish()
    }
}

impl std::fmt::Debug for SteppedLane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SteppedLane").field("lane", &self.agent.lane).finish_non_exhaustive()
    }
}

impl SteppedLaneSetUp {
    /// Name of its node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Its level among the lanes of its node, 0 highest.
    pub fn level(&self) -> usize {
        self.level
    }

    /// The calling thread steps it from now on, at whatever priority that has.
    pub fn begin(self) -> SteppedLane {
        let SteppedLaneSetUp { agent, flow_set_up, .. } = self;
        let flow = flow_set_up.begin(ThreadRole::Lane, Some(agent.lane));
        let enforcement = Stepped(Arc::clone(&agent.shared), agent.lane);
        SteppedLane { agent, flow, enforcement, _of_one_thread: PhantomData }
    }
}

impl SteppedLane {
    /// Takes in what has been released, and runs the best job to its end. Neither allocates nor waits.
    pub fn step(&mut self) -> LaneStep {
        if self.agent.is_over() {
            return LaneStep::Over;
        }
        match self.agent.step(&mut self.flow, &mut self.enforcement) {
            Step::Worked => LaneStep::Worked,
            Step::Idle => LaneStep::Idle,
        }
    }

    /// Posts a job of the operation, as [`Poster::post`](crate::Poster::post) does for a thread that steps no lane.
    ///
    /// # Errors
    /// [`NotPosted`].
    pub fn post(&mut self, operation: PostedOperation, handle: u64) -> Result<u64, NotPosted> {
        self.flow.post(&self.agent.shared, Posted { operation, deadline: None, handle })
    }

    /// Sleeps until there may be something to do, or the run is over.
    pub fn wait(&mut self) {
        self.agent.sleep(&mut self.flow, &mut self.enforcement);
    }
}
