//! The families of this process: numbered once, the same in every stream that it writes.
//!
//! An event's switch has one number in the whole process, so that emitting needs no look-up per stream. Registering
//! enters a family into the directories of all streams of the process; a stream begins with those registered before.
//! It takes a lock, allocates and may write to a file system: register from an ordinary thread, before the work.
//!
//! Lock order: the registry, nothing inside.

use super::{LiveFile, NoRoom};
use crate::declaration::{FIRST_FREE, FIRST_MADE, Family};
use crate::definition::Definition;
use crate::directory::{Entry, FIRST_SWITCH, encode, encode_definition, event_span};
use crate::namespace::{NameSpace, NameSpaceError};
use crate::passive::{PASSIVE_ALIGNMENT, PASSIVE_WORDS, PassiveEntry, PassiveKind};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use talea_ring::control::ASSIGNABLE;
use thiserror::Error;

/// A passive entity to be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassiveDeclaration {
    /// Its name, unique within the family, among events too.
    pub name: Cow<'static, str>,
    /// What it says, one sentence.
    pub about: Cow<'static, str>,
    /// What it is.
    pub kind: PassiveKind,
}

/// Where a family's number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// Its declaration.
    Declared,
    /// It is one of Talea's own that is free in this process.
    Own,
}

/// Why a family could not be registered. Nothing has changed.
#[derive(Debug, Error)]
pub enum RegisterError {
    /// Its number belongs to Talea.
    #[error("family \"{name}\" has number {number:#04x}; numbers below {FIRST_FREE:#04x} are Talea's own")]
    Reserved {
        /// Its name.
        name: String,
        /// Its number.
        number: u8,
    },
    /// It contradicts itself, or this process has another one of its number or name.
    #[error("{source}{}", remedy(source))]
    Family {
        /// What is wrong.
        #[from]
        source: NameSpaceError,
    },
    /// The process has no switch left for its events.
    #[error("no room for the {wanted} events of family \"{name}\": a process has {limit} in all")]
    Events {
        /// Its name.
        name: String,
        /// Events and passive entities it has.
        wanted: usize,
        /// Switches of all families together.
        limit: usize,
    },
    /// The process has no place left for its passive entities.
    #[error(
        "no room for the passive entities of family \"{name}\": a process has {limit} words for all of them"
    )]
    Passive {
        /// Its name.
        name: String,
        /// Words of all families together.
        limit: usize,
    },
    /// The numbers for families that are made while a program runs are used up.
    #[error("no number is left for family \"{name}\": a process makes at most {limit} such families", limit = FIRST_FREE - FIRST_MADE)]
    Numbers {
        /// Its name.
        name: String,
    },
    /// A stream's directory is full.
    #[error("the directory of a stream has no room for family \"{0}\"; shorten its texts")]
    Directory(String),
    /// The file system has no room.
    #[error("cannot enter family \"{name}\" into a stream: {source}")]
    Io {
        /// Its name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

fn remedy(error: &NameSpaceError) -> &'static str {
    match error {
        NameSpaceError::Taken { .. } => "; give one of the families another name, or a number of its own",
        NameSpaceError::Misfit { .. } | NameSpaceError::Twice { .. } => "",
    }
}

#[derive(Debug)]
struct Registry {
    space: Option<NameSpace>,
    entries: Vec<Entry>,
    next_switch: usize,
    next_place: usize,
    streams: Vec<Weak<LiveFile>>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    space: None,
    entries: Vec::new(),
    next_switch: FIRST_SWITCH,
    next_place: 0,
    streams: Vec::new(),
});

fn lock() -> MutexGuard<'static, Registry> {
    // Whoever panicked had not changed anything yet: changes come last.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a family and its passive entities in all streams of this process, present and future. A family that is
/// registered already stays as it is. A recorder that this process was started by and that has asked for families that were not there
/// chooses before this returns.
///
/// # Errors
/// See [`RegisterError`].
pub fn register(family: &Family, passive: &[PassiveDeclaration]) -> Result<Entry, RegisterError> {
    register_numbered(family, Numbering::Declared, passive)
}

/// The same of a family whose number is from there.
pub(crate) fn register_numbered(
    family: &Family,
    numbering: Numbering,
    passive: &[PassiveDeclaration],
) -> Result<Entry, RegisterError> {
    let entry = enter(family, numbering, passive)?;
    if numbering == Numbering::Own {
        // It has nothing that a recorder would choose.
        return Ok(entry);
    }
    let streams: Vec<Arc<LiveFile>> = lock().streams.iter().filter_map(Weak::upgrade).collect();
    for stream in streams {
        let used = stream.region().end() as u64 - size_of::<u64>() as u64;
        stream.wait_for_recorder(|control| !control.is_attended() || control.chosen_by() >= used);
    }
    Ok(entry)
}

fn enter(
    family: &Family,
    numbering: Numbering,
    passive: &[PassiveDeclaration],
) -> Result<Entry, RegisterError> {
    let mut registry = lock();
    let registered = registry.entries.iter().find(|entry| entry.family.name == family.name);
    if let Some(entry) = registered.filter(|entry| is_of(entry, family, passive)) {
        return Ok(entry.clone());
    }
    let entry = registry.assign(family, numbering, passive)?;
    let mut space = registry.space.clone().unwrap_or_default();
    space.add(entry.family.clone())?;

    let document = encode(&entry);
    registry.streams.retain(|stream| stream.strong_count() > 0);
    let streams: Vec<Arc<LiveFile>> = registry.streams.iter().filter_map(Weak::upgrade).collect();
    for stream in &streams {
        stream.make_room(&entry, &document)?;
    }
    streams.iter().for_each(|stream| stream.enter(&document));
    registry.next_switch = entry.switch + entry.span();
    registry.next_place = end_of_passive(&entry).max(registry.next_place);
    registry.space = Some(space);
    registry.entries.push(entry.clone());
    Ok(entry)
}

/// Enters all families of this process into a new stream, and those that come later.
pub(crate) fn join(stream: &Arc<LiveFile>) -> Result<(), RegisterError> {
    let mut registry = lock();
    for entry in &registry.entries {
        let document = encode(entry);
        stream.make_room(entry, &document)?;
        stream.enter(&document);
    }
    registry.streams.retain(|stream| stream.strong_count() > 0);
    registry.streams.push(Arc::downgrade(stream));
    Ok(())
}

/// Enters a definition into one stream of this process, unless it is of a thread that the stream knows. Allocates, and may wait.
///
/// # Errors
/// There is no room; nothing has been entered.
pub(crate) fn define(stream: &LiveFile, definition: &Definition) -> Result<(), NoRoom> {
    // A stream has one writer, which is whoever holds this.
    let _registry = lock();
    if let Definition::Thread(thread) = definition
        && stream.knows_thread(thread)?
    {
        return Ok(());
    }
    let document = encode_definition(definition);
    stream.make_room_for(&document)?;
    stream.enter(&document);
    if let Definition::Thread(thread) = definition {
        stream.note_thread(thread);
    }
    Ok(())
}

impl Registry {
    /// The family with its switches and places.
    fn assign(
        &self,
        family: &Family,
        numbering: Numbering,
        passive: &[PassiveDeclaration],
    ) -> Result<Entry, RegisterError> {
        let name = family.name.clone().into_owned();
        let number = match numbering {
            Numbering::Declared if family.number < FIRST_FREE => {
                return Err(RegisterError::Reserved { name, number: family.number });
            }
            Numbering::Declared => family.number,
            Numbering::Own => {
                let is_free = |number: &u8| self.entries.iter().all(|entry| entry.family.number != *number);
                let free = (FIRST_MADE..FIRST_FREE).find(is_free);
                free.ok_or_else(|| RegisterError::Numbers { name: name.clone() })?
            }
        };
        let family = Family { number, ..family.clone() };
        let mut names: BTreeSet<&str> = family.events.iter().map(|event| event.name.as_ref()).collect();
        if let Some(twice) = passive.iter().find(|entity| !names.insert(&entity.name)) {
            let twice = NameSpaceError::Twice { family: name, name: twice.name.clone().into_owned() };
            return Err(RegisterError::Family { source: twice });
        }
        let switch = self.next_switch;
        let first = switch + event_span(&family);
        let mut place = self.next_place;
        let passive = passive.iter().enumerate().map(|(index, entity)| {
            let entry = PassiveEntry {
                name: entity.name.clone(),
                about: entity.about.clone(),
                kind: entity.kind.clone(),
                switch: first + index,
                place,
            };
            place = (place + entry.kind.words()).next_multiple_of(PASSIVE_ALIGNMENT);
            entry
        });
        let entry = Entry { passive: passive.collect(), family, switch };
        if switch + entry.span() > ASSIGNABLE {
            return Err(RegisterError::Events {
                name,
                wanted: entry.span(),
                limit: ASSIGNABLE - FIRST_SWITCH,
            });
        }
        if place > PASSIVE_WORDS {
            return Err(RegisterError::Passive { name, limit: PASSIVE_WORDS });
        }
        Ok(entry)
    }
}

fn is_of(entry: &Entry, family: &Family, passive: &[PassiveDeclaration]) -> bool {
    let same = |(a, b): (&PassiveEntry, &PassiveDeclaration)| {
        (&a.name, &a.about, &a.kind) == (&b.name, &b.about, &b.kind)
    };
    entry.family == *family
        && entry.passive.len() == passive.len()
        && entry.passive.iter().zip(passive).all(same)
}

fn end_of_passive(entry: &Entry) -> usize {
    let ends = entry.passive.iter().map(|passive| passive.place + passive.kind.words());
    ends.max().unwrap_or(0).next_multiple_of(PASSIVE_ALIGNMENT)
}
