//! The instances of one task that are in flight.

use crate::seen_numbers::SeenNumbers;
use std::collections::VecDeque;
use talea_record::TaskEntry;

/// Where an instance stands.
///
/// ```text
/// Pending --1--> Expired      its deadline passed; the miss has been counted
/// Pending --2--> Resolved     completed, aborted or skipped
/// Expired --2--> Resolved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Pending,
    Expired,
    Resolved,
}

/// One instance of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance {
    pub number: u64,
    pub release_ns: i64,
    pub deadline_ns: i64,
    /// Last operations that have not completed.
    pub remaining: u32,
    pub stage: Stage,
}

/// Instances from the oldest unresolved one on, in the order of their numbers.
///
/// Numbers are consecutive unless records were lost, so an instance is found by subtraction, and by
/// binary search where that fails.
#[derive(Debug)]
pub(super) struct Window {
    instances: VecDeque<Instance>,
    seen: SeenNumbers,
    /// Instances at the front that [`Self::expire`] need not look at again; none of what has no period.
    expired: usize,
}

impl Window {
    /// More instances in flight than this can only be instances whose end was lost.
    pub const LIMIT: usize = 1 << 16;

    pub fn new(task: &TaskEntry) -> Self {
        let instances = VecDeque::with_capacity(4);
        Window { instances, seen: SeenNumbers::of(task), expired: 0 }
    }

    /// Whether this number has never been seen, nor a greater one; of what has no period, whether it has never been seen.
    #[inline]
    pub fn is_new(&self, number: u64) -> bool {
        self.seen.is_new(number)
    }

    /// Adds a new instance. Returns the oldest one if the window is full, which is then given up.
    #[inline]
    pub fn push(&mut self, instance: Instance) -> Option<Instance> {
        debug_assert!(self.is_new(instance.number));
        self.seen.note(instance.number);
        let given_up = if self.instances.len() == Self::LIMIT { self.instances.pop_front() } else { None };
        if given_up.is_some() {
            self.expired = self.expired.saturating_sub(1);
        }
        if self.instances.back().is_some_and(|last| last.number > instance.number) {
            self.insert(instance);
        } else {
            self.instances.push_back(instance);
        }
        given_up
    }

    /// Adds an instance before those of greater numbers.
    #[cold]
    fn insert(&mut self, instance: Instance) {
        let place = self.instances.partition_point(|other| other.number < instance.number);
        self.instances.insert(place, instance);
    }

    /// Notes a new instance that is resolved from the beginning.
    pub fn pass(&mut self, number: u64) {
        self.seen.note(number);
    }

    /// The instance of this number if it is unresolved or behind an unresolved one.
    #[inline]
    pub fn find(&mut self, number: u64) -> Option<&mut Instance> {
        let offset = number.checked_sub(self.instances.front()?.number)? as usize;
        let index = match self.instances.get(offset) {
            Some(instance) if instance.number == number => offset,
            _ => self.instances.binary_search_by_key(&number, |instance| instance.number).ok()?,
        };
        self.instances.get_mut(index)
    }

    /// Forgets resolved instances at the front.
    #[inline]
    pub fn trim(&mut self) {
        while self.instances.front().is_some_and(|instance| instance.stage == Stage::Resolved) {
            self.instances.pop_front();
            self.expired = self.expired.saturating_sub(1);
        }
        if self.instances.is_empty() {
            // Begins again at the start of its memory, so that one instance at a time keeps to one place.
            self.instances.clear();
        }
    }

    /// Marks the pending instances with deadlines up to `boundary_ns` expired and returns their number,
    /// and the earliest deadline left. Deadlines of later instances are taken to be no earlier, but for what has no period, of which
    /// each job may have one of its own.
    pub fn expire(&mut self, boundary_ns: i64) -> (u64, Option<i64>) {
        if self.seen.is_unordered() {
            return self.expire_any(boundary_ns);
        }
        let mut count = 0;
        while let Some(instance) = self.instances.get_mut(self.expired) {
            if instance.stage == Stage::Pending {
                if instance.deadline_ns > boundary_ns {
                    return (count, Some(instance.deadline_ns));
                }
                instance.stage = Stage::Expired;
                count += 1;
            }
            self.expired += 1;
        }
        (count, None)
    }

    /// The same where any instance may be due before those in front of it.
    #[cold]
    fn expire_any(&mut self, boundary_ns: i64) -> (u64, Option<i64>) {
        let mut count = 0;
        let mut earliest: Option<i64> = None;
        for instance in self.instances.iter_mut().filter(|instance| instance.stage == Stage::Pending) {
            if instance.deadline_ns <= boundary_ns {
                instance.stage = Stage::Expired;
                count += 1;
            } else {
                earliest =
                    Some(earliest.map_or(instance.deadline_ns, |least| least.min(instance.deadline_ns)));
            }
        }
        (count, earliest)
    }

    /// From the oldest unresolved one on.
    pub fn iter(&self) -> impl Iterator<Item = &Instance> {
        self.instances.iter()
    }

    /// Instances neither resolved nor expired.
    pub fn pending(&self) -> u64 {
        self.instances.iter().filter(|instance| instance.stage == Stage::Pending).count() as u64
    }
}
