//! The work by which consumers have their events.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use talea_operation::{PostedOperation, Workplace};
use talea_time::{Duration, Instant};

/// The work by which a consumer has its events: an operation for each of its lanes.
pub(crate) struct Work {
    /// The least priority of events for each lane, the greatest first.
    lanes: Box<[(i16, PostedOperation)]>,
    /// Jobs that were posted for events and have not begun. As a rule there are as many as events wait; where there was no room for one, a job
    /// does for several.
    pub outstanding: AtomicUsize,
    /// The instant for which a job is to be posted, in nanoseconds.
    armed: AtomicI64,
    /// Deliveries whose priority is below that of all lanes.
    pub lane_misses: AtomicU64,
}

impl Work {
    pub fn new(lanes: Box<[(i16, PostedOperation)]>) -> Self {
        let (outstanding, armed) = (AtomicUsize::new(0), AtomicI64::new(i64::MIN));
        Work { lanes, outstanding, armed, lane_misses: AtomicU64::new(0) }
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The lane for events of this priority: the highest that is for no more than that, or else the lowest, which is counted.
    pub fn lane(&self, priority: i16) -> PostedOperation {
        match self.lanes.iter().find(|(least, _)| *least <= priority) {
            Some((_, operation)) => *operation,
            None => {
                self.lane_misses.fetch_add(1, Ordering::Relaxed);
                self.lanes.last().expect("there is a lane").1
            }
        }
    }

    /// A job is to be posted at this instant, unless one is to be posted no later.
    pub fn wake_at(&self, workplace: &dyn Workplace, due: Instant, now: Instant) {
        let armed = self.armed.load(Ordering::Relaxed);
        if armed > now.as_nanos() && armed <= due.as_nanos() {
            return;
        }
        self.armed.store(due.as_nanos(), Ordering::Relaxed);
        let operation = self.lanes.last().expect("there is a lane").1;
        if !workplace.post_at(due, operation) {
            // The next job, of whichever event, sees to it.
            self.armed.store(i64::MIN, Ordering::Relaxed);
        }
    }

    /// One of the jobs begins, or one that was posted for an instant and is none of them.
    pub fn begin(&self) {
        let less_one = |outstanding: usize| outstanding.checked_sub(1);
        _ = self.outstanding.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less_one);
    }
}

/// A delivery that was late. `talea trace explain TRACE --task OPERATION --job INSTANCE` says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss<'a> {
    /// The operation of the consumer's lane.
    pub operation: &'a str,
    /// The number of the job.
    pub instance: u64,
    /// How long after its deadline the delivery ended.
    pub lateness: Duration,
}

/// Who is called when a delivery was late.
pub(crate) type OnMiss = Box<dyn Fn(&Miss<'_>) + Send + Sync>;
