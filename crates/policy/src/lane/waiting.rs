//! Waiting jobs in the order of their constant keys, late ones apart.
//!
//! Keys of waiting jobs do not change and time only grows, so a job moves from `timely` to `late` at most
//! once per stay: every operation is logarithmic, amortised.

use super::Order;
use super::jobs::Place;
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
    place: Place,
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
    /// Room for `capacity` jobs, all of which may be late if the order separates late ones.
    pub fn with_capacity(capacity: usize, order: &Order) -> Self {
        let late = if order.separates_late { capacity } else { 0 };
        Waiting { timely: BinaryHeap::with_capacity(capacity), late: BinaryHeap::with_capacity(late) }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.timely.len() + self.late.len()
    }

    #[inline]
    pub fn push(&mut self, key: Key, place: Place) {
        self.timely.push(Reverse(Entry { key, place }));
    }

    /// The key of the job to serve first at `now`.
    #[inline]
    pub fn best(&mut self, now: Instant, order: &Order) -> Option<Key> {
        self.set_late_apart(now, order);
        self.timely.peek().or_else(|| self.late.peek()).map(|entry| entry.0.key)
    }

    /// Removes the job to serve first at `now`.
    #[inline]
    pub fn pop(&mut self, now: Instant, order: &Order) -> Option<Place> {
        self.set_late_apart(now, order);
        match self.timely.pop() {
            Some(entry) => Some(entry.0.place),
            None => self.late.pop().map(|entry| entry.0.place),
        }
    }

    #[inline(always)]
    fn set_late_apart(&mut self, now: Instant, order: &Order) {
        while self.timely.peek().is_some_and(|entry| order.is_late(&entry.0.key, now)) {
            self.set_first_apart();
        }
    }

    #[inline(never)]
    fn set_first_apart(&mut self) {
        let entry = self.timely.pop().expect("the first was seen to be late");
        self.late.push(entry);
    }

    /// Removes the job that `is_it` recognises, in linear time.
    pub fn remove(&mut self, is_it: impl Fn(Place) -> bool) -> Option<Place> {
        for heap in [&mut self.timely, &mut self.late] {
            let found = heap.iter().map(|entry| entry.0.place).find(|place| is_it(*place));
            if found.is_some() {
                heap.retain(|entry| Some(entry.0.place) != found);
                return found;
            }
        }
        None
    }

    pub fn iter(&self) -> impl Iterator<Item = Place> + '_ {
        self.timely.iter().chain(self.late.iter()).map(|entry| entry.0.place)
    }
}
