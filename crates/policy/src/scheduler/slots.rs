//! A precomputed plan: a cycle of slots, each with an owner or free. Rialto's has a number of slots per period, Spring's one.

use talea_time::{Duration, Instant};

/// `start..next start` of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    start: i64,
    owner: Option<usize>,
    /// Free time of the cycle before this slot.
    free_before: i64,
}

/// A cycle of slots that begins at its origin, and again every length of it before and after.
#[derive(Clone, Debug)]
pub struct Slots {
    origin: Instant,
    length: i64,
    /// From 0 on, without gaps.
    slots: Vec<Slot>,
    free: i64,
}

/// `start..end` of a cycle for an owner.
pub type Taken = (i64, i64, usize);

impl Slots {
    /// The cycle of `length` in which nothing is reserved.
    pub fn empty(length: Duration) -> Self {
        Self::of(Instant::ZERO, length, &[])
    }

    /// The cycle in which what is `taken`, in order and without overlaps, has owners.
    pub fn of(origin: Instant, length: Duration, taken: &[Taken]) -> Self {
        let length = length.as_nanos();
        let mut slots = Slots { origin, length, slots: Vec::with_capacity(2 * taken.len() + 1), free: 0 };
        let mut at = 0;
        for &(start, end, owner) in taken {
            if start > at {
                slots.push(at, start, None);
            }
            slots.push(start, end, Some(owner));
            at = end;
        }
        if at < length {
            slots.push(at, length, None);
        }
        slots
    }

    fn push(&mut self, start: i64, end: i64, owner: Option<usize>) {
        self.slots.push(Slot { start, owner, free_before: self.free });
        if owner.is_none() {
            self.free += end - start;
        }
    }

    /// When a cycle begins.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// How long it is.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.length)
    }

    /// How many of them have an owner.
    pub fn count(&self) -> usize {
        self.taken().count()
    }

    /// What has an owner, in order.
    pub fn taken(&self) -> impl Iterator<Item = Taken> {
        let end = |index: usize| self.slots.get(index + 1).map_or(self.length, |next| next.start);
        let taken = self.slots.iter().enumerate();
        taken.filter_map(move |(index, slot)| slot.owner.map(|owner| (slot.start, end(index), owner)))
    }

    /// Cycle and offset in it.
    fn position(&self, instant: Instant) -> (i64, i64) {
        let since = (instant - self.origin).as_nanos();
        (since.div_euclid(self.length), since.rem_euclid(self.length))
    }

    fn index(&self, offset: i64) -> usize {
        self.slots.partition_point(|slot| slot.start <= offset) - 1
    }

    /// Who owns the processor at `now`, and until when that holds.
    pub fn at(&self, now: Instant) -> (Option<usize>, Instant) {
        let (_, offset) = self.position(now);
        let index = self.index(offset);
        let end = self.slots.get(index + 1).map_or(self.length, |next| next.start);
        (self.slots[index].owner, now.saturating_add(Duration::from_nanos(end - offset)))
    }

    /// Free time between the origin and `instant`.
    pub fn free_until(&self, instant: Instant) -> i128 {
        let (cycle, offset) = self.position(instant);
        let slot = self.slots[self.index(offset)];
        let inside = if slot.owner.is_none() { offset - slot.start } else { 0 };
        i128::from(cycle) * i128::from(self.free) + i128::from(slot.free_before + inside)
    }
}
