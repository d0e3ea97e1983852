//! The numbers and names by which records name what a program pushes into channels of its own, in runs and in simulations alike.

use crate::workplace::ProgramChannel;
use std::collections::{BTreeMap, BTreeSet};
use talea_model::{PublicationId, System};

/// Types of events in channels of programs that have numbers in the records of a run: their definitions share the room of a stream's directory with those
/// of operations.
const MOST: usize = 256;
/// Bytes of the names of a channel and a type that have a number.
const NAMES_MOST: usize = 256;

/// What has a number so far.
#[derive(Debug)]
pub struct ProgramPublications {
    /// Channels of the description.
    described: BTreeSet<String>,
    /// The channels of programs of which records tell, by their numbers, with the names that they have there: no two the same.
    channels: BTreeMap<u64, String>,
    /// The number of the next one: behind those of the description.
    next: usize,
    end: usize,
}

impl ProgramPublications {
    /// None yet, beside what the description publishes.
    pub fn of(system: &System) -> Self {
        let described = system.channels.iter().map(|channel| channel.name.clone()).collect();
        let next = system.publications().len();
        ProgramPublications { described, channels: BTreeMap::new(), next, end: next + MOST }
    }

    /// A number for events of this type, `Domain/Name`, in this channel, if `define` enters it with the channel's name in the records. A channel of a name that
    /// another one has already, of the program or of the description, has its own with a number behind it: `motion (2)`. None if there is no room, and
    /// nothing has changed.
    pub fn add(
        &mut self,
        channel: ProgramChannel<'_>,
        event_type: &str,
        define: impl FnOnce(usize, &str) -> Option<()>,
    ) -> Option<PublicationId> {
        if channel.name.len() + event_type.len() > NAMES_MOST || self.next == self.end {
            return None;
        }
        let shown =
            self.channels.get(&channel.number).cloned().unwrap_or_else(|| self.name_for(channel.name));
        let number = self.next;
        define(number, &shown)?;
        self.channels.insert(channel.number, shown);
        self.next += 1;
        Some(PublicationId::from_index(number))
    }

    fn name_for(&self, name: &str) -> String {
        let taken: BTreeSet<&String> = self.described.iter().chain(self.channels.values()).collect();
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !taken.contains(name)).expect("there is no end of them")
    }
}
