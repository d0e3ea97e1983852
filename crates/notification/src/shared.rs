//! What all handles of a channel share.

use crate::consumer::ChannelLoad;
use crate::event::EventType;
use crate::limits::AdminProperties;
use crate::partners::{Partner, PartnersChanged};
use crate::place::Place;
use crate::statistics::ChannelCounters;
use crate::topology::{Changed, Topology};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use talea_time::Instant;

/// Who is told of types that have somebody, or nobody any more.
type Listener = Arc<dyn Fn(&Changed) + Send + Sync>;
/// Who is told of partners.
type PartnerListener = Arc<dyn Fn(&PartnersChanged) + Send + Sync>;

/// Of what somebody wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Subscriptions,
    Offers,
}

/// What who asks for types is told: all of them now or nothing, and whether of changes from then on (`ObtainInfoMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObtainInfoMode {
    /// `ALL_NOW_UPDATES_OFF`.
    AllNowUpdatesOff,
    /// `ALL_NOW_UPDATES_ON`. A change that happens meanwhile may be among all and be told as well, and is never missing.
    AllNowUpdatesOn,
    /// `NONE_NOW_UPDATES_OFF`.
    NoneNowUpdatesOff,
    /// `NONE_NOW_UPDATES_ON`, as it is for who has never asked.
    NoneNowUpdatesOn,
}

/// Those who are told of changes, by their numbers in the channel.
#[derive(Default)]
struct Listeners {
    of_types: BTreeMap<u32, (About, Listener)>,
    /// With the partners of which they know.
    of_partners: BTreeMap<u32, (PartnerListener, BTreeMap<u32, Partner>)>,
    /// Who does not want to be told of types now.
    without_updates: Vec<u32>,
}

/// What all handles of a channel share.
pub(crate) struct Shared {
    pub number: u32,
    pub name: Box<str>,
    /// When it was made, on the clock of its workplace; when that was known first, if it was made before.
    pub created: OnceLock<Instant>,
    pub place: Place,
    pub load: Arc<ChannelLoad>,
    /// Copies of properties for who pushes.
    pub reject_new_events: AtomicBool,
    /// Whether the channel has been destroyed.
    pub is_closed: AtomicBool,
    pub max_event_bytes: AtomicUsize,
    pub rejected: AtomicU64,
    pub left_out: AtomicU64,
    /// Events that had less time left than filters of their suppliers may take.
    pub expired: AtomicU64,
    pub counters: ChannelCounters,
    properties: Mutex<AdminProperties>,
    topology: Mutex<Topology>,
    listeners: Mutex<Listeners>,
}

impl Shared {
    pub fn new(
        number: u32,
        name: &str,
        place: Place,
        topology: Topology,
        properties: AdminProperties,
    ) -> Self {
        let shared = Shared {
            number,
            name: name.into(),
            created: OnceLock::new(),
            place,
            load: Arc::new(ChannelLoad::default()),
            reject_new_events: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            max_event_bytes: AtomicUsize::new(0),
            rejected: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            counters: ChannelCounters::of(name),
            properties: Mutex::default(),
            topology: Mutex::new(topology),
            listeners: Mutex::default(),
        };
        shared.set_properties(properties);
        shared.note_created();
        shared
    }

    /// Its workplace is known: from now on there is a clock.
    pub fn note_created(&self) {
        if let Some(workplace) = self.place.get() {
            self.created.get_or_init(|| workplace.now());
        }
    }

    pub fn properties(&self) -> AdminProperties {
        *self.properties.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_properties(&self, properties: AdminProperties) {
        let mut own = self.properties.lock().unwrap_or_else(PoisonError::into_inner);
        *own = properties;
        self.load.most.store(properties.max_queue_length, Ordering::Relaxed);
        self.reject_new_events.store(properties.reject_new_events, Ordering::Relaxed);
        self.max_event_bytes.store(properties.max_event_bytes, Ordering::Relaxed);
    }

    pub fn topology(&self) -> MutexGuard<'_, Topology> {
        self.topology.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody is connected and nothing pushed from now on. Returns the consumers that are connected still.
    pub fn close(&self) -> Vec<u32> {
        let mut topology = self.topology();
        topology.is_closed = true;
        self.is_closed.store(true, Ordering::Relaxed);
        topology.consumers.keys().copied().collect()
    }

    /// Takes a supplier out, which pushes nothing any more. False if there is none of this number.
    pub fn remove_supplier(&self, number: u32) -> bool {
        let mut topology = self.topology();
        let Some((offering, changed)) = topology.withdraw(number) else { return false };
        offering.state.is_removed.store(true, Ordering::Relaxed);
        topology.removed.insert(number, offering.state);
        drop(topology);
        self.listen_no_more(number);
        self.tell(About::Offers, &changed);
        true
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn listen(&self, owner: u32, about: About, listener: Listener) {
        self.listeners().of_types.insert(owner, (about, listener));
    }

    /// Who is told of partners is told first of those that there are.
    pub fn listen_to_partners(&self, owner: u32, listener: PartnerListener) {
        self.listeners().of_partners.insert(owner, (listener, BTreeMap::new()));
        self.tell_of_partners();
    }

    pub fn listen_no_more(&self, owner: u32) {
        let mut listeners = self.listeners();
        listeners.of_types.remove(&owner);
        listeners.of_partners.remove(&owner);
        listeners.without_updates.retain(|other| *other != owner);
    }

    /// The types that there are, if the mode says so, and whether the owner is told of changes from now on.
    pub fn obtain(&self, owner: u32, about: About, mode: ObtainInfoMode) -> Vec<EventType> {
        let (all, updates) = match mode {
            ObtainInfoMode::AllNowUpdatesOff => (true, false),
            ObtainInfoMode::AllNowUpdatesOn => (true, true),
            ObtainInfoMode::NoneNowUpdatesOff => (false, false),
            ObtainInfoMode::NoneNowUpdatesOn => (false, true),
        };
        let mut listeners = self.listeners();
        listeners.without_updates.retain(|other| *other != owner);
        if !updates {
            listeners.without_updates.push(owner);
        }
        drop(listeners);
        if all { self.types(about) } else { Vec::new() }
    }

    /// The types that have a consumer, or a supplier.
    pub fn types(&self, about: About) -> Vec<EventType> {
        let topology = self.topology();
        let have = topology.types().filter(|entry| match about {
            About::Subscriptions => !entry.subscribers.load().is_empty(),
            About::Offers => entry.offers.load(Ordering::Relaxed) > 0,
        });
        have.map(|entry| entry.event_type.clone()).collect()
    }

    /// Who is connected, or what they offer or have subscribed to, has changed: tells those who want to know. Not while the topology is locked,
    /// since they may ask about it.
    pub fn tell(&self, about: About, changed: &Changed) {
        let unread = std::mem::take(&mut self.topology().unread);
        drop(unread);
        if !changed.is_empty() {
            let listeners = self.listeners();
            let of_types = listeners.of_types.iter();
            let wants = of_types
                .filter(|(owner, (what, _))| *what == about && !listeners.without_updates.contains(owner));
            let wants: Vec<Listener> = wants.map(|(_, (_, listener))| Arc::clone(listener)).collect();
            drop(listeners);
            wants.iter().for_each(|listener| listener(changed));
        }
        self.tell_of_partners();
    }

    fn tell_of_partners(&self) {
        let mut listeners = self.listeners();
        if listeners.of_partners.is_empty() {
            return;
        }
        let mut news = Vec::new();
        {
            let topology = self.topology();
            for (owner, (listener, known)) in &mut listeners.of_partners {
                let partners = topology.partners(*owner);
                let changed = PartnersChanged::between(known, &partners);
                *known = partners;
                news.push((Arc::clone(listener), changed));
            }
        }
        drop(listeners);
        news.iter()
            .filter(|(_, changed)| !changed.is_empty())
            .for_each(|(listener, changed)| listener(changed));
    }
}
