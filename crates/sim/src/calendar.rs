//! What happens next outside the processors: arrivals of tasks and messages under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use talea_model::{OperationId, System};
use talea_policy::demand::{self, Purpose};
use talea_time::{Duration, Instant};

/// The next release of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrival {
    /// When it is released: nominal arrival plus jitter.
    pub release: Instant,
    /// Index of the task.
    pub task: u32,
    /// Number of the instance.
    pub instance: u64,
    /// When it arrives nominally.
    pub nominal: Instant,
}

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
}

struct Source {
    period: Duration,
    jitter: Duration,
    stream: u64,
}

/// Future releases and deliveries in the order of time, then task index or sending order.
pub(crate) struct Calendar {
    sources: Vec<Source>,
    /// Exactly one entry per task.
    arrivals: BinaryHeap<Reverse<Arrival>>,
    deliveries: BinaryHeap<Reverse<Delivery>>,
    sent: u64,
}

impl Calendar {
    pub fn new(system: &System) -> Self {
        let sources: Vec<Source> = system
            .tasks
            .iter()
            .enumerate()
            .map(|(index, task)| Source {
                period: task.period,
                jitter: task.jitter,
                stream: demand::stream(system.seed, Purpose::Jitter, index),
            })
            .collect();
        let arrivals = sources.iter().zip(&system.tasks).enumerate().map(|(index, (source, task))| {
            let nominal = Instant::ZERO + task.phase;
            let release = nominal + demand::release_jitter_from(source.jitter, source.stream, 0);
            Reverse(Arrival { release, task: index as u32, instance: 0, nominal })
        });
        Calendar { arrivals: arrivals.collect(), sources, deliveries: BinaryHeap::new(), sent: 0 }
    }

    /// The instant of the next release or delivery.
    pub fn next(&self) -> Instant {
        let arrival = self.arrivals.peek().map_or(Instant::MAX, |entry| entry.0.release);
        let delivery = self.deliveries.peek().map_or(Instant::MAX, |entry| entry.0.at);
        arrival.min(delivery)
    }

    /// Takes a release of instant `now` and puts the task's next one in its place.
    pub fn pop_arrival(&mut self, now: Instant) -> Option<Arrival> {
        let mut entry = self.arrivals.peek_mut()?;
        let arrival = entry.0;
        if arrival.release > now {
            return None;
        }
        let source = &self.sources[arrival.task as usize];
        let instance = arrival.instance + 1;
        let nominal = arrival.nominal.saturating_add(source.period);
        let jitter = demand::release_jitter_from(source.jitter, source.stream, instance);
        // Jitter is below the period, so releases of a task keep their order.
        *entry = Reverse(Arrival { release: nominal.saturating_add(jitter), instance, nominal, ..arrival });
        Some(arrival)
    }

    /// Takes a delivery of instant `now`.
    pub fn pop_delivery(&mut self, now: Instant) -> Option<Delivery> {
        if self.deliveries.peek()?.0.at > now {
            return None;
        }
        self.deliveries.pop().map(|entry| entry.0)
    }

    /// Sends a release that arrives `at`.
    pub fn send(&mut self, at: Instant, operation: OperationId, instance: u64, deadline: Instant) {
        let sequence = self.sent;
        self.sent += 1;
        self.deliveries.push(Reverse(Delivery { at, sequence, operation, instance, deadline }));
    }
}
