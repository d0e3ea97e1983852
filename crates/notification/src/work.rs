//! The work by which consumers have their events.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use talea_operation::{PostedOperation, Workplace};
use talea_time::{Duration, Instant};

/// When there is something to do for which no job is posted, and by which priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub at: Instant,
    pub priority: i16,
}

/// The work by which a consumer has its events: an operation for each of its lanes.
pub(crate) struct Work {
    /// The least priority of events for each lane, the greatest first.
    lanes: Box<[(i16, PostedOperation)]>,
    /// Jobs that were posted for events and have not begun. As a rule there are as many as events wait; where there was no room for one, a job
    /// does for several.
    pub outstanding: AtomicUsize,
    /// Of a task: events of which each is to release a job at an instant, since it may not be delivered before, or there was no room for a job.
    pub without_job: AtomicUsize,
    /// Deliveries of a priority that no lane begins with.
    pub lane_misses: AtomicU64,
}

impl Work {
    pub fn new(lanes: Box<[(i16, PostedOperation)]>) -> Self {
        Work {
            lanes,
            outstanding: AtomicUsize::new(0),
            without_job: AtomicUsize::new(0),
            lane_misses: AtomicU64::new(0),
        }
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The lane for an event of this priority that is to be delivered now. Whether it is that of another one is counted, unless it is for all.
    pub fn lane(&self, priority: i16) -> PostedOperation {
        let (least, lane) = self.lane_for(priority);
        if least != priority && least != i16::MIN {
            self.lane_misses.fetch_add(1, Ordering::Relaxed);
        }
        lane
    }

    /// The highest lane that is for no more than this priority, or else the lowest.
    fn lane_for(&self, priority: i16) -> (i16, PostedOperation) {
        let lane = self.lanes.iter().find(|(least, _)| *least <= priority);
        *lane.or(self.lanes.last()).expect("there is a lane")
    }

    /// Whether events of this priority are of this lane, the first being that for the greatest.
    pub fn is_of(&self, priority: i16, lane: usize) -> bool {
        let is_high_enough = self.lanes[lane].0 <= priority || lane + 1 == self.lanes.len();
        let is_of_higher = lane.checked_sub(1).is_some_and(|above| self.lanes[above].0 <= priority);
        is_high_enough && !is_of_higher
    }

    /// A job of the lane for this priority is to look at this instant.
    pub fn wake_at(&self, workplace: &dyn Workplace, Due { at, priority }: Due) {
        workplace.post_at(at, self.lane_for(priority).1);
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
