//! A simulation as the place where deliveries of channels are work: tasks of the system are released when jobs push events, or when time
//! brings something, for which channels ask to be called at instants.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use talea_model::{OperationId, System};
use talea_operation::{ChannelTask, Code, Declaration, PostedOperation, Workplace};
use talea_policy::release::guard::WaitingEvents;
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

struct Inner {
    /// By operation, its task.
    tasks: Box<[usize]>,
    /// In nanoseconds.
    now: AtomicI64,
    /// When the first is due, in nanoseconds: most steps of a simulation need no more.
    next: AtomicI64,
    due: Mutex<Due>,
    /// By task, the earliest instant for which it waits, in nanoseconds.
    asked: Box<[AtomicI64]>,
    /// By task, the channel whose events release it.
    channels: Box<[OnceLock<Box<dyn ChannelTask>>]>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("now", &self.now).field("due", &self.due).finish_non_exhaustive()
    }
}

/// No instant is waited for.
const NEVER: i64 = i64::MAX;

/// Tasks that wait for instants, each for its earliest.
type Due = BTreeSet<(Instant, usize)>;

impl VirtualWorkplace {
    pub fn new(system: &System) -> Self {
        let tasks = system.operations().iter().map(|operation| operation.task).collect();
        let (now, next) = (Instant::ZERO.as_nanos().into(), Instant::MAX.as_nanos().into());
        let asked = system.tasks.iter().map(|_| AtomicI64::new(NEVER)).collect();
        let channels = system.tasks.iter().map(|_| OnceLock::new()).collect();
        VirtualWorkplace(Arc::new(Inner { tasks, now, next, due: Mutex::default(), asked, channels }))
    }

    /// Lets `change` change what is due.
    fn change<T>(&self, change: impl FnOnce(&mut Due) -> T) -> T {
        let mut due = self.0.due.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut due);
        let next = due.first().map_or(Instant::MAX, |(at, _)| *at);
        self.0.next.store(next.as_nanos(), Ordering::Relaxed);
        result
    }

    /// When the next task is to be released.
    pub fn next(&self) -> Instant {
        Instant::from_nanos(self.0.next.load(Ordering::Relaxed))
    }

    /// It is `now`. The next task that waits for an instant until then, if there is one, and how many of its jobs are to be released.
    pub fn pop(&self, now: Instant) -> Option<(usize, usize)> {
        self.0.now.store(now.as_nanos(), Ordering::Relaxed);
        if self.next() > now {
            return None;
        }
        let (_, task) = self.change(|due| due.pop_first())?;
        // Whoever asks from now on asks anew.
        self.0.asked[task].store(NEVER, Ordering::Relaxed);
        Some((task, self.0.channels[task].get().map_or(0, |channel| channel.time_came(now))))
    }

    /// The events that wait `now` for jobs of the task, against a release at that instant, if events release it.
    pub fn waiting(&self, task: usize, release: Instant, now: Instant) -> Option<WaitingEvents> {
        Some(self.0.channels[task].get()?.waiting(release, now))
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

    fn task(
        &self,
        first: OperationId,
        channel_task: Box<dyn ChannelTask>,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        let task = self.0.tasks[first.index()];
        self.0.channels[task].set(channel_task).map_err(|_| "the task is released by another consumer")?;
        Ok(PostedOperation { id: first, run: SIMULATED })
    }

    fn post_at(&self, at: Instant, operation: PostedOperation) {
        let task = self.0.tasks[operation.id.index()];
        let before = self.0.asked[task].fetch_min(at.as_nanos(), Ordering::Relaxed);
        if at.as_nanos() < before {
            self.change(|due| {
                due.remove(&(Instant::from_nanos(before), task));
                due.insert((at, task));
            });
        }
    }
}
