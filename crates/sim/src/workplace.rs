//! A simulation as the place where deliveries of channels are work: tasks of the system are released when jobs push events, or at instants that
//! channels ask for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use talea_model::{OperationId, System};
use talea_operation::{Code, Declaration, PostedOperation, Workplace};
use talea_time::Instant;

/// Runs have numbers of their own.
const SIMULATED: u64 = u64::MAX;

/// Whether it is one of a simulation.
pub(crate) fn is_simulated(operation: PostedOperation) -> bool {
    operation.run == SIMULATED
}

/// What channels have asked for, in virtual time. All copies are the same one.
#[derive(Clone, Debug)]
pub(crate) struct VirtualWorkplace(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// By operation, its task.
    tasks: Box<[usize]>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    now: Instant,
    /// Tasks to be released at instants.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl VirtualWorkplace {
    pub fn new(system: &System) -> Self {
        let tasks = system.operations().iter().map(|operation| operation.task).collect();
        let state = Mutex::new(State { now: Instant::ZERO, due: BinaryHeap::new() });
        VirtualWorkplace(Arc::new(Inner { tasks, state }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the next task is to be released.
    pub fn next(&self) -> Instant {
        self.state().due.peek().map_or(Instant::MAX, |Reverse((at, _))| *at)
    }

    /// It is `now`. The next task that is to be released by then, if there is one.
    pub fn pop(&self, now: Instant) -> Option<usize> {
        let mut state = self.state();
        state.now = now;
        let is_due = state.due.peek().is_some_and(|Reverse((at, _))| *at <= now);
        is_due.then(|| state.due.pop().map(|Reverse((_, task))| task)).flatten()
    }
}

impl Workplace for VirtualWorkplace {
    fn now(&self) -> Instant {
        self.state().now
    }

    fn declare(
        &self,
        declaration: Declaration,
        _code: Code,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        Err(format!(
            "operation \"{}\" is not of the system's description, and simulations run no others; describe it as a task with a subscription",
            declaration.name
        )
        .into())
    }

    fn task(&self, first: OperationId) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        Ok(PostedOperation { id: first, run: SIMULATED })
    }

    fn post_at(&self, at: Instant, operation: PostedOperation) {
        let task = self.0.tasks[operation.id.index()];
        self.state().due.push(Reverse((at, task)));
    }
}
