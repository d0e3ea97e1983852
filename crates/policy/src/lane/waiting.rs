//! Waiting jobs in the order of their constant keys, late ones apart.
//!
//! Keys of waiting jobs do not change and time only grows, so a job moves from `timely` to `late` at most
//! once per stay: every operation is logarithmic, amortised.

use super::{Order, Progress};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use talea_time::Instant;

/// The total order of waiting jobs; the smallest is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// The discipline's key.
    pub urgency: Instant,
    /// Earlier release first.
    pub release: Instant,
    /// Position among the lane's members.
    pub rank: u32,
    /// Job number.
    pub number: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    progress: Progress,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// The waiting jobs of one lane.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    timely: BinaryHeap<Reverse<Entry>>,
    /// Jobs seen to be late; empty unless the lane separates them.
    late: BinaryHeap<Reverse<Entry>>,
}

impl Waiting {
    pub fn with_capacity(capacity: usize) -> Self {
        Waiting { timely: BinaryHeap::with_capacity(capacity), late: BinaryHeap::with_capacity(capacity) }
    }

    pub fn len(&self) -> usize {
        self.timely.len() + self.late.len()
    }

    pub fn push(&mut self, key: Key, progress: Progress) {
        self.timely.push(Reverse(Entry { key, progress }));
    }

    /// The key of the job to serve first at `now`.
    pub fn best(&mut self, now: Instant, order: &Order) -> Option<Key> {
        self.set_late_apart(now, order);
        self.timely.peek().or_else(|| self.late.peek()).map(|entry| entry.0.key)
    }

    /// Removes the job to serve first at `now`.
    pub fn pop_best(&mut self, now: Instant, order: &Order) -> Option<Progress> {
        self.set_late_apart(now, order);
        self.timely.pop().or_else(|| self.late.pop()).map(|entry| entry.0.progress)
    }

    /// Removes the job with `tag`, in linear time.
    pub fn remove(&mut self, tag: u32) -> Option<Progress> {
        for heap in [&mut self.timely, &mut self.late] {
            let found = heap.iter().find(|entry| entry.0.progress.job.tag == tag).map(|entry| entry.0.progress);
            if found.is_some() {
                heap.retain(|entry| entry.0.progress.job.tag != tag);
                return found;
            }
        }
        None
    }

    pub fn iter(&self) -> impl Iterator<Item = &Progress> {
        self.timely.iter().chain(self.late.iter()).map(|entry| &entry.0.progress)
    }

    fn set_late_apart(&mut self, now: Instant, order: &Order) {
        while self.timely.peek().is_some_and(|entry| order.is_late(&entry.0.key, now)) {
            let entry = self.timely.pop().expect("peeked");
            self.late.push(entry);
        }
    }
}
