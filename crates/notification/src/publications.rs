//! The numbers by which records name what programs push into a channel.
//!
//! A type has one as soon as a supplier of a program is to push it and the workplace is known: it is asked for beside the pushing, under locks that no push
//! takes of a type that is offered, and looked up by who pushes or delivers without any. What operations publish by the description of a system has its number from there.

use crate::event::EventType;
use crate::kept::Kinds;
use crate::place::Place;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use talea_linux::replaced::Replaced;
use talea_model::PublicationId;
use talea_operation::{ProgramChannel, Workplace};

/// The number of the next channel of the process.
static NEXT_CHANNEL: AtomicU64 = AtomicU64::new(0);

/// Those of one channel.
pub(crate) struct Publications {
    name: Box<str>,
    channel: u64,
    /// With the numbers of their types, in the order of these. The workplace says how many there can be.
    numbered: Replaced<Vec<(usize, PublicationId)>>,
    /// How they become bytes.
    pub kinds: Kinds,
    /// Types for which there was no workplace yet. Who has it is the one that changes what is numbered.
    waiting: Mutex<Vec<EventType>>,
}

impl Publications {
    pub fn new(name: &str) -> Self {
        let channel = NEXT_CHANNEL.fetch_add(1, Ordering::Relaxed);
        let (numbered, waiting) = (Replaced::new(Vec::new()), Mutex::default());
        Publications { name: name.into(), channel, numbered, kinds: Kinds::new(), waiting }
    }

    /// Which channel it is, of all of the process.
    pub fn channel(&self) -> u64 {
        self.channel
    }

    /// As what events of this type are published, if that has a number.
    #[inline]
    pub fn of(&self, event_type: &EventType) -> Option<PublicationId> {
        let numbered = self.numbered.load();
        let place = numbered.binary_search_by_key(&event_type.number(), |(number, _)| *number).ok()?;
        Some(numbered[place].1)
    }

    /// A program is to push these types. Allocates, and may wait.
    pub fn ask(&self, place: &Place, types: &[EventType]) {
        let mut waiting = self.waiting();
        match place.get() {
            None => waiting.extend_from_slice(types),
            Some(workplace) => types.iter().for_each(|event_type| self.define(workplace, event_type)),
        }
    }

    /// The workplace is known now.
    pub fn ask_again(&self, place: &Place) {
        let types = std::mem::take(&mut *self.waiting());
        self.ask(place, &types);
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<EventType>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn define(&self, workplace: &dyn Workplace, event_type: &EventType) {
        if self.of(event_type).is_some() {
            return;
        }
        let channel = ProgramChannel { name: &self.name, number: self.channel };
        let Some(publication) = workplace.publication(channel, &event_type.to_string()) else { return };
        let mut numbered = self.numbered.load().to_vec();
        let place = numbered.partition_point(|(number, _)| *number < event_type.number());
        numbered.insert(place, (event_type.number(), publication));
        drop(self.numbered.store(numbered));
    }
}
