//! A simulation as the place where deliveries of channels are work: tasks of the system are released when jobs push events, or at instants that
//! channels ask for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// In nanoseconds.
    now: AtomicI64,
    /// When the first is due, in nanoseconds: most steps of a simulation need no more.
    next: AtomicI64,
    due: Mutex<Due>,
}

/// Tasks to be released at instants.
type Due = BinaryHeap<Reverse<(Instant, usize)>>;

impl VirtualWorkplace {
    pub fn new(system: &System) -> Self {
        let tasks = system.operations().iter().map(|operation| operation.task).collect();
        let (now, next) = (Instant::ZERO.as_nanos().into(), Instant::MAX.as_nanos().into());
        VirtualWorkplace(Arc::new(Inner { tasks, now, next, due: Mutex::default() }))
    }

    /// Lets `change` change what is due.
    fn change<T>(&self, change: impl FnOnce(&mut Due) -> T) -> T {
        let mut due = self.0.due.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut due);
        let next = due.peek().map_or(Instant::MAX, |Reverse((at, _))| *at);
        self.0.next.store(next.as_nanos(), Ordering::Relaxed);
        result
    }

    /// When the next task is to be released.
    pub fn next(&self) -> Instant {
        Instant::from_nanos(self.0.next.load(Ordering::Relaxed))
    }

    /// It is `now`. The next task that is to be released by then, if there is one.
    pub fn pop(&self, now: Instant) -> Option<usize> {
        self.0.now.store(now.as_nanos(), Ordering::Relaxed);
        if self.next() > now {
            return None;
        }
        self.change(|due| due.pop()).map(|Reverse((_, task))| task)
    }
}

impl Workplace for VirtualWorkplace {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.now.load(Ordering::Relaxed))
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
        self.change(|due| due.push(Reverse((at, task))));
    }
}
