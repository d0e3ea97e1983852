//! What the threads of a lowered node know of each other.

use crate::flow::Gate;
use crate::occupancy::Processor;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::StopFlag;
use talea_ring::bell::Bell;
use talea_time::{Clock, Instant};

/// Who waits at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Release = 0,
    Warden = 1,
}

pub(super) struct Shared {
    pub stop: StopFlag,
    pub gate: Gate,
    /// Of own threads, by place among all threads of the node.
    pub posts: Vec<Post>,
    /// Who has the node's processor, where that is known.
    pub processor: Processor,
    start: AtomicI64,
    end: AtomicI64,
    /// Why, and when, the run of the node ended by itself.
    cause: Mutex<Option<(String, Instant)>>,
}

/// A thread of the run.
#[derive(Default)]
pub(super) struct Post {
    pub bell: Bell,
    /// Jobs released.
    pub arrived: AtomicU64,
    /// Processor time received, once the thread has ended.
    pub received_ns: AtomicI64,
}

impl Shared {
    pub fn new(threads: usize) -> Self {
        Shared {
            stop: StopFlag::new(),
            gate: Gate::new(2),
            posts: (0..threads).map(|_| Post::default()).collect(),
            processor: Processor::default(),
            start: AtomicI64::new(0),
            end: AtomicI64::new(Instant::MAX.as_nanos()),
            cause: Mutex::new(None),
        }
    }

    /// The run will last from `start` to `end`.
    pub fn begin(&self, start: Instant, end: Instant) {
        self.start.store(start.as_nanos(), Ordering::Relaxed);
        self.end.store(end.as_nanos(), Ordering::Relaxed);
        // Opening the gate publishes both.
        self.gate.open(start);
    }

    pub fn start(&self) -> Instant {
        Instant::from_nanos(self.start.load(Ordering::Relaxed))
    }

    pub fn end(&self) -> Instant {
        Instant::from_nanos(self.end.load(Ordering::Relaxed))
    }

    /// Waits for the start; none if the run ends before it is agreed on.
    pub fn wait(&self, who: Waiting) -> Option<Instant> {
        self.gate.wait(who as usize, &self.stop)
    }

    /// Ends it, for a reason if it ends by itself.
    pub fn stop(&self, cause: Option<String>) {
        if let Some(cause) = cause {
            self.cause
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert((cause, MonotonicClock.now()));
        }
        self.stop.stop();
        let bells = self.posts.iter().map(|post| &post.bell).chain(&self.gate.bells);
        bells.for_each(|bell| _ = bell.ring());
    }

    pub fn cause(&self) -> Option<(String, Instant)> {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
