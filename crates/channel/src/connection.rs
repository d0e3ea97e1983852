//! What the two ends of a connection share.

use std::sync::atomic::{AtomicU64, Ordering};
use talea_ring::bell::{Bell, Waited};
use talea_ring::queue::Queue;
use talea_time::Duration;

/// What becomes of a value for which the queue of a connection has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest value in the queue is dropped for it.
    DropOldest,
    /// It is dropped itself.
    DropNewest,
    /// The producer waits up to this long for room; then it is dropped itself.
    Wait(Duration),
}

/// What a connection shares between its two ends.
pub struct Connection {
    pub(crate) queue: Queue,
    /// Rung when an entry has been taken, if the producer may wait for that.
    pub(crate) room: Option<Bell>,
    dropped: AtomicU64,
    overtaken: AtomicU64,
    lost: AtomicU64,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(capacity: usize, when_full: WhenFull) -> Self {
        let room = matches!(when_full, WhenFull::Wait(_)).then(Bell::new);
        let [dropped, overtaken, lost] = [0; 3].map(AtomicU64::new);
        Connection { queue: Queue::new(capacity), room, dropped, overtaken, lost }
    }

    /// Values that no job has had: for which there was no room, the oldest or the new ones, and where only the latest is taken, those before it.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Values of instances whose job had begun without them, or never came.
    pub fn overtaken(&self) -> u64 {
        self.overtaken.load(Ordering::Relaxed)
    }

    /// Values that never came, as a link lost them.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn count_lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_overtaken(&self) {
        self.overtaken.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it takes one more value as it is.
    pub fn has_room(&self) -> bool {
        self.queue.len() < self.queue.capacity()
    }

    /// Sleeps until there is room, or `until` has come, which counts from the origin of CLOCK_MONOTONIC.
    ///
    /// # Panics
    /// If nobody may wait for room here.
    pub fn wait_for_room(&self, until: std::time::Duration) {
        let bell = self.room.as_ref().expect("the producer may wait");
        while !self.has_room() {
            let waited = bell.wait_until(until, || self.has_room());
            if waited == Waited::Due {
                return;
            }
        }
    }
}
