//! What happens next outside the processors: arrivals of tasks and messages under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use talea_model::{OperationId, System};
use talea_policy::release::{Arrival, Arrivals};
use talea_record::JobId;
use talea_time::Instant;

/// A release of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskArrival {
    /// Index of the task.
    pub task: u32,
    /// The instance.
    pub arrival: Arrival,
}

/// Messages under way for which there is room before more is taken.
const MESSAGES: usize = 64;

/// A successor's release under way to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Delivery {
    /// When it gets there.
    pub at: Instant,
    /// Sending order, which decides between deliveries of one instant.
    pub sequence: u64,
    /// The operation to release.
    pub operation: OperationId,
    /// The instance.
    pub instance: u64,
    /// The instance's absolute deadline.
    pub deadline: Instant,
    /// When the timer of the predecessor expires, if it has one.
    pub timer: Instant,
    /// When it was sent.
    pub sent: Instant,
    /// By the completion of which job.
    pub from: JobId,
}

/// A task as a source of releases.
struct Source {
    arrivals: Arrivals,
    next: Arrival,
}

/// When a task is released next: nominal arrival plus jitter, then the task's index, in one number, for the
/// calendar compares little else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due(u128);

impl Due {
    fn new(release: Instant, task: u32) -> Self {
        assert!(release >= Instant::ZERO, "nothing is released before the common start");
        Due(u128::from(release.as_nanos() as u64) << 32 | u128::from(task))
    }

    fn release(self) -> Instant {
        Instant::from_nanos((self.0 >> 32) as i64)
    }

    fn task(self) -> u32 {
        self.0 as u32
    }
}

/// Future releases and deliveries in the order of time, then task index or sending order.
pub(crate) struct Calendar {
    sources: Vec<Source>,
    /// The next release of every task.
    arrivals: BinaryHeap<Reverse<Due>>,
    deliveries: BinaryHeap<Reverse<Delivery>>,
    sent: u64,
}

impl Calendar {
    pub fn new(system: &System) -> Self {
        let source = |task| {
            let arrivals = Arrivals::of_task(system, task);
            let next = arrivals.at(Instant::ZERO, 0);
            Source { arrivals, next }
        };
        let sources: Vec<Source> = (0..system.tasks.len()).map(source).collect();
        let arrivals = sources
            .iter()
            .enumerate()
            .map(|(index, source)| Reverse(Due::new(source.next.release, index as u32)));
        Calendar {
            arrivals: arrivals.collect(),
            sources,
            deliveries: BinaryHeap::with_capacity(MESSAGES),
            sent: 0,
        }
    }

    /// The instant of the next release or delivery.
    pub fn next(&self) -> Instant {
        let arrival = self.arrivals.peek().map_or(Instant::MAX, |due| due.0.release());
        let delivery = self.deliveries.peek().map_or(Instant::MAX, |entry| entry.0.at);
        arrival.min(delivery)
    }

    /// Takes a release of instant `now` and puts the task's next one in its place.
    pub fn pop_arrival(&mut self, now: Instant) -> Option<TaskArrival> {
        if self.arrivals.peek()?.0.release() > now {
            return None;
        }
        let mut due = self.arrivals.peek_mut()?;
        let task = due.0.task();
        let source = &mut self.sources[task as usize];
        let arrival = source.next;
        source.next = source.arrivals.after(arrival);
        *due = Reverse(Due::new(source.next.release, task));
        Some(TaskArrival { task, arrival })
    }

    /// Takes a delivery of instant `now`.
    pub fn pop_delivery(&mut self, now: Instant) -> Option<Delivery> {
        if self.deliveries.peek()?.0.at > now {
            return None;
        }
        self.deliveries.pop().map(|entry| entry.0)
    }

    /// The job `from` sends a signal to `job` at `sent` that arrives `at`.
    pub fn send(
        &mut self,
        (from, sent): (JobId, Instant),
        at: Instant,
        job: JobId,
        deadline: Instant,
        timer: Instant,
    ) {
        let JobId { operation, instance } = job;
        let sequence = self.sent;
        self.sent += 1;
        let delivery = Delivery { at, sequence, operation, instance, deadline, timer, sent, from };
        self.deliveries.push(Reverse(delivery));
    }

    /// When an instance of a task is released.
    pub fn release(&self, task: usize, instance: u64) -> Instant {
        self.sources[task].arrivals.at(Instant::ZERO, instance).release
    }
}
