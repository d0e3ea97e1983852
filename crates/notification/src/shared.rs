//! What all handles of a channel share.

use crate::consumer::ChannelLoad;
use crate::place::Place;
use crate::topology::{Changed, Topology};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who is told of changes.
type Listener = Arc<dyn Fn(&Changed) + Send + Sync>;

/// Of what somebody wants to be told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    Subscriptions,
    Offers,
}

/// What all handles of a channel share.
pub(crate) struct Shared {
    pub number: u32,
    pub name: Box<str>,
    pub place: Place,
    pub load: Arc<ChannelLoad>,
    pub max_consumers: AtomicUsize,
    pub max_suppliers: AtomicUsize,
    pub reject_new_events: AtomicBool,
    pub rejected: AtomicU64,
    topology: Mutex<Topology>,
    listeners: Mutex<Vec<(u32, About, Listener)>>,
}

impl Shared {
    pub fn new(number: u32, name: &str, place: Place, topology: Topology) -> Self {
        Shared {
            number,
            name: name.into(),
            place,
            load: Arc::new(ChannelLoad::default()),
            max_consumers: AtomicUsize::new(0),
            max_suppliers: AtomicUsize::new(0),
            reject_new_events: AtomicBool::new(false),
            rejected: AtomicU64::new(0),
            topology: Mutex::new(topology),
            listeners: Mutex::default(),
        }
    }

    pub fn topology(&self) -> MutexGuard<'_, Topology> {
        self.topology.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn listen(&self, owner: u32, about: About, listener: Listener) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|(other, what, _)| (*other, *what) != (owner, about));
        listeners.push((owner, about, listener));
    }

    pub fn listen_no_more(&self, owner: u32) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).retain(|(other, ..)| *other != owner);
    }

    /// Tells those who want to know. Not while the topology is locked: they may ask about it.
    pub fn tell(&self, about: About, changed: &Changed) {
        if changed.is_empty() {
            return;
        }
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner).clone();
        listeners.iter().filter(|(_, what, _)| *what == about).for_each(|(_, _, listener)| listener(changed));
    }
}
