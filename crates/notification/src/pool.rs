//! Thread pools: the lanes in which the consumers of a channel or an admin have their events.
//!
//! The standard's real-time extension gives a channel, an admin or a proxy threads of its own (`ThreadPool`, `ThreadPoolLanes`). Here a pool makes no threads
//! beside those of the run: its lanes are lanes of the node, on the one scale of priorities that everything on it has. The nearest pool counts: what a
//! consumer says itself ([`lane`](crate::ConsumerBuilder::lane), [`lane_from`](crate::ConsumerBuilder::lane_from)), else its admin's, else its channel's, as
//! of when it is connected.

use crate::qos::{QosError, QosProblem, QosProblems};
use crate::work::LaneWork;
use talea_operation::Declaration;

/// The lanes in which consumers have their events, by priority.
#[derive(Clone, Debug)]
#[must_use]
pub struct ThreadPool {
    lanes: Vec<LaneWork>,
    static_threads: Option<u32>,
    dynamic_threads: u32,
    borrows: bool,
    buffers: bool,
}

impl ThreadPool {
    fn of(lanes: Vec<LaneWork>) -> Self {
        ThreadPool { lanes, static_threads: None, dynamic_threads: 0, borrows: false, buffers: false }
    }

    /// All events are delivered in the lane of this work, whatever their priority (`SERVER_DECLARED`). The operation of each consumer is called
    /// `channel.consumer`, whatever the name in the declaration.
    pub fn server_declared(work: Declaration) -> Self {
        ThreadPool::of(vec![LaneWork::of(i16::MIN, work)])
    }

    /// Events are delivered in the lane of their priority (`CLIENT_PROPAGATED`), which [`lane_from`](Self::lane_from) adds.
    pub fn client_propagated() -> Self {
        ThreadPool::of(Vec::new())
    }

    /// Events of this priority or a greater one are delivered in the lane of this work, if they are not of a lane for greater ones. Events of
    /// lower priorities than all go to the lowest lane, and are counted. The operation of each consumer is called `channel.consumer.name`, by the name
    /// in the declaration.
    pub fn lane_from(mut self, least_priority: i16, work: Declaration) -> Self {
        self.lanes.push(LaneWork::of(least_priority, work));
        self
    }

    /// The lane named last, or one for all events, is served by another thread as well, that of the lane of this work, on another node or processor: its
    /// events have one queue for each consumer, and whoever is free delivers the first one. Called for each. Of use to consumers that are
    /// [connected concurrently](crate::ConsumerBuilder::connect_concurrent); others are called one at a time.
    pub fn server(mut self, work: Declaration) -> Self {
        LaneWork::add_server(&mut self.lanes, work);
        self
    }

    /// Threads of each lane from the start. A thread is that of a lane of a node, so each is [said](Self::server); another number than that is refused.
    pub fn static_threads(mut self, threads: u32) -> Self {
        self.static_threads = Some(threads);
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
        let mut priorities: Vec<i16> = self.lanes.iter().map(|lane| lane.least).collect();
        priorities.sort_unstable();
        if priorities.windows(2).any(|two| two[0] == two[1]) {
            refuse(
                "ThreadPoolLanes.lane_priority",
                QosError::BadValue,
                "each lane is for other priorities than the others",
            );
        }
        let differs = |threads: u32| {
            self.lanes.is_empty() || self.lanes.iter().any(|lane| lane.servers.len() != threads as usize)
        };
        if self.static_threads.is_some_and(differs) {
            refuse(
                "ThreadPool.static_threads",
                QosError::UnsupportedValue,
                "it is how many threads each lane has: one by its work, and one by each further `server`, which says the node and the lane of that thread",
            );
        }
        let names = self.lanes.iter().flat_map(|lane| &lane.servers).map(|work| &work.name);
        let mut names: Vec<&String> = names.collect();
        names.sort_unstable();
        if names.windows(2).any(|two| two[0] == two[1]) {
            refuse(
                "ThreadPoolLanes.name",
                QosError::BadValue,
                "each thread's work has another name than the others",
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

    /// The work of its lane for this priority, for who is one piece of work alone, of this name.
    pub(crate) fn work_for(&self, priority: i16, name: &str) -> Option<Declaration> {
        let fitting = self.lanes.iter().filter(|lane| lane.least <= priority).max_by_key(|lane| lane.least);
        let lane = fitting.or_else(|| self.lanes.iter().min_by_key(|lane| lane.least))?;
        Some(Declaration { name: name.to_owned(), ..lane.servers.first()?.clone() })
    }

    /// Its lanes for the consumer of this name.
    pub(crate) fn lanes_of(&self, consumer: &str) -> Vec<LaneWork> {
        let is_alone = self.lanes.iter().map(|lane| lane.servers.len()).sum::<usize>() == 1;
        let named = |work: &Declaration| {
            let name = if is_alone { consumer.to_owned() } else { format!("{consumer}.{}", work.name) };
            Declaration { name, ..work.clone() }
        };
        let lane = |lane: &LaneWork| LaneWork {
            least: lane.least,
            servers: lane.servers.iter().map(named).collect(),
        };
        self.lanes.iter().map(lane).collect()
    }
}
