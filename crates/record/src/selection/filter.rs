//! What a consumer wants of the records in the rings.
//!
//! A ring holds what *any* consumer wants; each leaves out what it did not ask for. What it asks for can change while
//! records that were written before still wait in the rings. So a change holds from a position of each ring on:
//! records before it were written under the old choice.

use super::Later;
use crate::directory::Directory;
use crate::record::Event;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use talea_ring::control::SwitchSet;

const EVENTS: usize = 1 << 16;
const EVENTS_OF_FAMILY: usize = 1 << 8;

/// The events that are wanted, as a bit for each number an event can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventFilter(Box<[u64]>);

impl EventFilter {
    /// The events whose switches are in `set`, and those of families not in `directory` if they are wanted.
    pub fn new(directory: &Directory, set: &SwitchSet, later: Later) -> Self {
        let unknown = match later {
            Later::Wanted => u64::MAX,
            Later::Unwanted => 0,
        };
        let mut bits = vec![unknown; EVENTS / 64];
        for family in directory.name_space().families() {
            let first = usize::from(family.number) * EVENTS_OF_FAMILY;
            bits[first / 64..(first + EVENTS_OF_FAMILY) / 64].fill(0);
            for entry in family.events.iter() {
                let event = family.event(entry);
                if directory.switch(event).is_some_and(|switch| set.contains(switch)) {
                    bits[usize::from(event.0) / 64] |= 1 << (event.0 % 64);
                }
            }
        }
        EventFilter(bits.into())
    }

    /// What either wants.
    pub fn or(&self, other: &Self) -> Self {
        EventFilter(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }

    pub fn wants(&self, event: Event) -> bool {
        self.0[usize::from(event.0) / 64] >> (event.0 % 64) & 1 == 1
    }
}

/// The choices of a consumer, one after the other.
#[derive(Debug)]
pub(crate) struct Choices {
    changes: Mutex<Vec<Change>>,
    /// Length of the list, so that readers look at it only when there is something new.
    count: AtomicUsize,
}

/// A choice and the records from which on it holds, one number for each ring.
#[derive(Clone, Debug)]
struct Change {
    from: Arc<[u64]>,
    filter: Arc<EventFilter>,
}

impl Choices {
    /// No choice yet: nothing is wanted.
    pub fn new() -> Arc<Self> {
        Arc::new(Choices { changes: Mutex::new(Vec::new()), count: AtomicUsize::new(0) })
    }

    /// From these records on, `filter` holds.
    pub fn push(&self, from: Vec<u64>, filter: EventFilter) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.push(Change { from: from.into(), filter: Arc::new(filter) });
        self.count.store(changes.len(), Ordering::Release);
    }
}

/// A reader's view of the choices.
#[derive(Debug)]
pub(crate) struct RingFilter {
    choices: Arc<Choices>,
    taken: usize,
    current: Option<Arc<EventFilter>>,
    /// Choices that hold from later records on.
    coming: VecDeque<(u64, Arc<EventFilter>)>,
}

impl RingFilter {
    pub fn new(choices: &Arc<Choices>) -> Self {
        RingFilter { choices: Arc::clone(choices), taken: 0, current: None, coming: VecDeque::new() }
    }

    /// Takes in new choices for ring `ring`. Called after records were copied and before they are judged.
    pub fn refresh(&mut self, ring: usize) {
        if self.choices.count.load(Ordering::Acquire) == self.taken {
            return;
        }
        let changes = self.choices.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let new = changes[self.taken..].iter().map(|change| (change.from[ring], Arc::clone(&change.filter)));
        self.coming.extend(new);
        self.taken = changes.len();
    }

    /// Whether record number `number`, an `event`, is wanted. Numbers only increase.
    pub fn wants(&mut self, number: u64, event: Event) -> bool {
        while let Some((from, _)) = self.coming.front()
            && *from <= number
        {
            self.current = self.coming.pop_front().map(|(_, filter)| filter);
        }
        self.current.as_ref().is_some_and(|filter| filter.wants(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;

    fn filter(text: &str) -> EventFilter {
        let directory = Directory::default();
        let resolved = text.parse::<Selection>().unwrap().resolve(&directory).unwrap();
        EventFilter::new(&directory, &resolved.switches, resolved.later)
    }

    #[test]
    fn events_are_judged_by_their_switches_and_unknown_ones_by_all() {
        let unknown = Event(0x5001);
        let wants =
            |filter: &EventFilter| [Event::LOST, Event::START, unknown].map(|event| filter.wants(event));
        assert_eq!(wants(&filter("job")), [false, true, false]);
        assert_eq!(wants(&filter("all,-job.start")), [true, false, true]);
        assert_eq!(wants(&filter("job").or(&filter("run"))), [true, true, false]);
    }

    #[test]
    fn a_choice_holds_from_its_record_on() {
        let choices = Choices::new();
        let mut ring = RingFilter::new(&choices);
        choices.push(vec![0, 0], filter("job"));
        ring.refresh(1);
        assert!(ring.wants(0, Event::START) && !ring.wants(1, Event::THREAD));
        choices.push(vec![9, 3], filter("run"));
        ring.refresh(1);
        assert!(ring.wants(2, Event::START) && !ring.wants(3, Event::START) && ring.wants(3, Event::THREAD));
    }
}
