//! Thread pools: the lanes in which the consumers of a channel or an admin have their events.
//!
//! The standard's real-time extension gives a channel, an admin or a proxy threads of its own (`ThreadPool`, `ThreadPoolLanes`). Here a pool makes no threads
//! beside those of the run: its lanes are lanes of the node, on the one scale of priorities that everything on it has. The nearest pool counts: what a
//! consumer says itself ([`lane`](crate::ConsumerBuilder::lane), [`lane_from`](crate::ConsumerBuilder::lane_from)), else its admin's, else its channel's, as
//! of when it is connected.

use crate::qos::{QosError, QosProblem, QosProblems};
use talea_operation::Declaration;

/// The lanes in which consumers have their events, by priority.
#[derive(Clone, Debug)]
#[must_use]
pub struct ThreadPool {
    /// With the least priority of events for each.
    lanes: Vec<(i16, Declaration)>,
    static_threads: u32,
    dynamic_threads: u32,
    borrows: bool,
    buffers: bool,
}

impl ThreadPool {
    fn of(lanes: Vec<(i16, Declaration)>) -> Self {
        ThreadPool { lanes, static_threads: 1, dynamic_threads: 0, borrows: false, buffers: false }
    }

    /// All events are delivered in the lane of this work, whatever their priority (`SERVER_DECLARED`). The operation of each consumer is called
    /// `channel.consumer`, whatever the name in the declaration.
    pub fn server_declared(work: Declaration) -> Self {
        ThreadPool::of(vec![(i16::MIN, work)])
    }

    /// Events are delivered in the lane of their priority (`CLIENT_PROPAGATED`), which [`lane_from`](Self::lane_from) adds.
    pub fn client_propagated() -> Self {
        ThreadPool::of(Vec::new())
    }

    /// Events of this priority or a greater one are delivered in the lane of this work, if they are not of a lane for greater ones. Events of
    /// lower priorities than all go to the lowest lane, and are counted. The operation of each consumer is called `channel.consumer.name`, by the name
    /// in the declaration.
    pub fn lane_from(mut self, least_priority: i16, work: Declaration) -> Self {
        self.lanes.push((least_priority, work));
        self
    }

    /// Threads of each lane from the start. It is one, and is refused otherwise.
    pub fn static_threads(mut self, threads: u32) -> Self {
        self.static_threads = threads;
        self
    }

    /// Threads that are made when all are busy. Refused unless it is none.
    pub fn dynamic_threads(mut self, threads: u32) -> Self {
        self.dynamic_threads = threads;
        self
    }

    /// Whether a lane may use threads of lower ones. Refused if so.
    pub fn allow_borrowing(mut self, borrows: bool) -> Self {
        self.borrows = borrows;
        self
    }

    /// Whether requests wait in the pool for a thread. Refused if so.
    pub fn allow_request_buffering(mut self, buffers: bool) -> Self {
        self.buffers = buffers;
        self
    }

    /// Everything that cannot be.
    pub(crate) fn check(&self) -> Result<(), QosProblems> {
        let mut problems = Vec::new();
        let mut refuse = |property: &str, error, allowed: &str| {
            problems.push(QosProblem { property: property.into(), error, allowed: allowed.into() });
        };
        if self.lanes.is_empty() {
            refuse("ThreadPoolLanes.lanes", QosError::BadValue, "a pool has at least one lane");
        }
        let mut priorities: Vec<i16> = self.lanes.iter().map(|(least, _)| *least).collect();
        priorities.sort_unstable();
        if priorities.windows(2).any(|two| two[0] == two[1]) {
            refuse(
                "ThreadPoolLanes.lane_priority",
                QosError::BadValue,
                "each lane is for other priorities than the others",
            );
        }
        if self.static_threads != 1 {
            refuse(
                "ThreadPool.static_threads",
                QosError::UnsupportedValue,
                "it is 1, for a lane executes one job at a time, in its order; a consumer that is connected concurrently is called by several lanes at once",
            );
        }
        if self.dynamic_threads != 0 {
            refuse(
                "ThreadPool.dynamic_threads",
                QosError::UnsupportedValue,
                "it is 0, for all threads are made before a run begins; a thread that is made under load comes too late",
            );
        }
        if self.borrows {
            refuse(
                "ThreadPoolLanes.allow_borrowing",
                QosError::UnsupportedValue,
                "it is false, for a lane's thread has the lane's priority; an event that no lane is for goes to the next lower one",
            );
        }
        if self.buffers {
            refuse(
                "ThreadPool.allow_request_buffering",
                QosError::UnsupportedValue,
                "it is false, for events wait in the queue of their consumer, as many as MaxEventsPerConsumer says",
            );
        }
        if problems.is_empty() { Ok(()) } else { Err(QosProblems(problems)) }
    }

    /// Its lanes for the consumer of this name.
    pub(crate) fn lanes_of(&self, consumer: &str) -> Vec<(i16, Declaration)> {
        let is_alone = self.lanes.len() == 1;
        let lane = |(least, work): &(i16, Declaration)| {
            let name = if is_alone { consumer.to_owned() } else { format!("{consumer}.{}", work.name) };
            (*least, Declaration { name, ..work.clone() })
        };
        self.lanes.iter().map(lane).collect()
    }
}
