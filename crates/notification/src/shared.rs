//! What all handles of a channel share.

use crate::consumer::ChannelLoad;
use crate::event::EventType;
use crate::limits::AdminProperties;
use crate::observing::Observing;
use crate::partners::{Partner, PartnersChanged};
use crate::place::Place;
use crate::publications::Publications;
use crate::statistics::ChannelCounters;
use crate::topology::{Changed, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use talea_time::Instant;

/// Who is told of types that have somebody, or nobody any more.
type Listener = Arc<dyn Fn(&Changed) + Send + Sync>;
/// Who is told of partners.
type PartnerListener = Arc<dyn Fn(&PartnersChanged) + Send + Sync>;

/// Of what somebody wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// Who is told of something: the number of a proxy or an admin in its channel, and of what. The admins that are always there have the same number.
type Owner = (u32, About);

/// Those who are told of changes.
#[derive(Default)]
struct Listeners {
    of_types: BTreeMap<Owner, Listener>,
    /// By the numbers of proxies, with the partners of which they know.
    of_partners: BTreeMap<u32, (PartnerListener, BTreeMap<u32, Partner>)>,
    /// Who does not want to be told of types now.
    without_updates: BTreeSet<Owner>,
    /// Those who are told of all that is subscribed to and offered, by their numbers.
    observers: BTreeMap<u64, Arc<Observing>>,
    /// The number of the next one.
    next_observer: u64,
    /// Changes under way of which observers are told when they are complete.
    under_way: usize,
}

/// A supplier whose work is declared when it is known where.
pub(crate) struct Unbound {
    pub number: u32,
    pub name: Box<str>,
    pub begin: Box<dyn FnOnce() -> Result<(), Box<dyn Error + Send + Sync>> + Send>,
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
    /// Of consumers, too.
    pub publications: Arc<Publications>,
    properties: Mutex<AdminProperties>,
    topology: Mutex<Topology>,
    listeners: Mutex<Listeners>,
    /// Suppliers whose work has not been declared; some may be gone.
    unbound: Mutex<Vec<Unbound>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let topology = self.topology.get_mut().unwrap_or_else(PoisonError::into_inner);
        topology.is_closed = true;
        let now = topology.members();
        self.counters.tell_members(&mut topology.told, now);
        self.counters.tell_creation(self.publications.channel(), None);
        drop(self.load.leave_all());
    }
}

impl Shared {
    pub fn new(
        number: u32,
        name: &str,
        place: Place,
        topology: Topology,
        properties: AdminProperties,
    ) -> Self {
        let discard = topology.qos.discard;
        let shared = Shared {
            number,
            name: name.into(),
            created: OnceLock::new(),
            place,
            load: Arc::new(ChannelLoad::new(discard)),
            reject_new_events: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            max_event_bytes: AtomicUsize::new(0),
            rejected: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            counters: ChannelCounters::of(name),
            publications: Arc::new(Publications::new(name)),
            properties: Mutex::default(),
            topology: Mutex::new(topology),
            listeners: Mutex::default(),
            unbound: Mutex::default(),
        };
        shared.set_properties(properties);
        shared.note_created();
        shared.show_members(&mut shared.topology());
        shared
    }

    /// Its workplace is known: from now on there is a clock.
    pub fn note_created(&self) {
        if let Some(workplace) = self.place.get() {
            self.created.get_or_init(|| workplace.now());
        }
    }

    /// Begins with the work of a supplier, now or when it is known where that is posted.
    ///
    /// # Errors
    /// It cannot be declared.
    pub fn when_bound(&self, unbound: Unbound) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut waiting = self.unbound();
        if self.place.get().is_none() {
            waiting.push(unbound);
            return Ok(());
        }
        drop(waiting);
        (unbound.begin)()
    }

    /// The suppliers whose work is still to be declared.
    pub fn unbound(&self) -> MutexGuard<'_, Vec<Unbound>> {
        let mut waiting = self.unbound.lock().unwrap_or_else(PoisonError::into_inner);
        let topology = self.topology();
        waiting.retain(|one| topology.suppliers.contains_key(&one.number));
        drop(topology);
        waiting
    }

    pub fn properties(&self) -> AdminProperties {
        *self.properties.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_properties(&self, properties: AdminProperties) {
        let mut own = self.properties.lock().unwrap_or_else(PoisonError::into_inner);
        *own = properties;
        self.load.limit(properties.max_queue_length);
        self.reject_new_events.store(properties.reject_new_events, Ordering::Relaxed);
        self.max_event_bytes.store(properties.max_event_bytes, Ordering::Relaxed);
    }

    pub fn topology(&self) -> MutexGuard<'_, Topology> {
        self.topology.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody is connected, nothing pushed and no admin told of anything from now on. Returns the consumers that are connected still.
    pub fn close(&self) -> Vec<u32> {
        let _together = self.together();
        let mut topology = self.topology();
        topology.is_closed = true;
        self.is_closed.store(true, Ordering::Relaxed);
        self.show_members(&mut topology);
        let consumers = topology.consumers.keys().copied().collect();
        let of_consumers = topology.consumer_admins.keys().map(|admin| (*admin, About::Offers));
        let of_suppliers = topology.supplier_admins.keys().map(|admin| (*admin, About::Subscriptions));
        let admins: Vec<Owner> = of_consumers.chain(of_suppliers).collect();
        drop(topology);
        admins.into_iter().for_each(|admin| self.listen_no_more(admin));
        consumers
    }

    /// Disconnects a consumer; what waits for it is discarded. False if there is none of this number.
    pub fn remove_consumer(&self, number: u32) -> bool {
        let mut topology = self.topology();
        let Some(consumer) =
            topology.consumers.get(&number).map(|subscribed| Arc::clone(&subscribed.consumer))
        else {
            return false;
        };
        let changed = topology.disconnect(number);
        let left = self.load.leave(number);
        drop(topology);
        drop(left);
        self.listen_no_more((number, About::Offers));
        consumer.close();
        self.tell(About::Subscriptions, &changed);
        true
    }

    /// Takes a supplier out, which pushes nothing any more. False if there is none of this number.
    pub fn remove_supplier(&self, number: u32) -> bool {
        let mut topology = self.topology();
        let Some((offering, changed)) = topology.withdraw(number) else { return false };
        offering.state.is_removed.store(true, Ordering::Relaxed);
        topology.removed.insert(number, offering.state);
        drop(topology);
        self.listen_no_more((number, About::Subscriptions));
        self.tell(About::Offers, &changed);
        true
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this is a proxy that is connected, or an admin that is there: who is gone is told of nothing. Listeners are locked before the topology.
    fn is_there(&self, (number, about): Owner) -> bool {
        let topology = self.topology();
        match about {
            About::Subscriptions => {
                let admin = topology.supplier_admins.get(&number).filter(|_| !topology.is_closed);
                topology.suppliers.contains_key(&number) || admin.is_some_and(|admin| !admin.is_destroyed)
            }
            About::Offers => {
                let admin = topology.consumer_admins.get(&number).filter(|_| !topology.is_closed);
                topology.consumers.contains_key(&number) || admin.is_some_and(|admin| !admin.is_destroyed)
            }
        }
    }

    /// The owner is told of types from now on, in place of what it was told by before. What is dropped for it may run code of the program, so the lock is released before.
    pub fn listen(&self, owner: Owner, listener: Listener) {
        let mut listeners = self.listeners();
        let former = match self.is_there(owner) {
            true => listeners.of_types.insert(owner, listener),
            false => Some(listener),
        };
        drop(listeners);
        drop(former);
    }

    /// Who is told of partners is told first of those that there are.
    pub fn listen_to_partners(&self, owner: Owner, listener: PartnerListener) {
        let mut listeners = self.listeners();
        let former = match self.is_there(owner) {
            true => listeners.of_partners.insert(owner.0, (listener, BTreeMap::new())),
            false => Some((listener, BTreeMap::new())),
        };
        drop(listeners);
        drop(former);
        self.tell_of_partners();
    }

    pub fn listen_no_more(&self, owner: Owner) {
        let mut listeners = self.listeners();
        let of_types = listeners.of_types.remove(&owner);
        // Admins have none, and a proxy's number is nobody else's.
        let of_partners = listeners.of_partners.remove(&owner.0);
        listeners.without_updates.remove(&owner);
        drop(listeners);
        drop((of_types, of_partners));
    }

    /// Somebody is told of all that is subscribed to and offered, first of what there is. Returns its number.
    pub fn observe(&self, observing: &Arc<Observing>) -> u64 {
        let mut listeners = self.listeners();
        let number = listeners.next_observer;
        listeners.next_observer += 1;
        listeners.observers.insert(number, Arc::clone(observing));
        drop(listeners);
        observing.ask(|| self.topology().observed());
        number
    }

    pub fn observe_no_more(&self, number: u64) {
        let observing = self.listeners().observers.remove(&number);
        drop(observing);
    }

    /// What is subscribed to or offered may have changed, or by which filters: observers are told, unless there is more
    /// to come. Not while anything is locked.
    pub fn tell_observers(&self) {
        let listeners = self.listeners();
        if listeners.observers.is_empty() || listeners.under_way > 0 {
            return;
        }
        let observers: Vec<Arc<Observing>> = listeners.observers.values().cloned().collect();
        drop(listeners);
        observers.iter().for_each(|observing| observing.ask(|| self.topology().observed()));
    }

    /// Several changes that are one for observers, until it is dropped.
    pub fn together(&self) -> Together<'_> {
        self.listeners().under_way += 1;
        Together(self)
    }

    /// The types that there are, if the mode says so, and whether the owner is told of changes from now on.
    pub fn obtain(&self, owner: Owner, mode: ObtainInfoMode) -> Vec<EventType> {
        let (all, updates) = match mode {
            ObtainInfoMode::AllNowUpdatesOff => (true, false),
            ObtainInfoMode::AllNowUpdatesOn => (true, true),
            ObtainInfoMode::NoneNowUpdatesOff => (false, false),
            ObtainInfoMode::NoneNowUpdatesOn => (false, true),
        };
        let mut listeners = self.listeners();
        if updates {
            listeners.without_updates.remove(&owner);
        } else if self.is_there(owner) {
            listeners.without_updates.insert(owner);
        }
        drop(listeners);
        if all { self.types(owner.1) } else { Vec::new() }
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

    /// The stream shows who is there, if the calling thread has one; if not, the next change does so.
    pub fn show_members(&self, topology: &mut Topology) {
        let created = self.created.get().copied().filter(|_| !topology.is_closed);
        self.counters.tell_creation(self.publications.channel(), created);
        let now = topology.members();
        self.counters.tell_members(&mut topology.told, now);
    }

    /// Who is connected, or what they offer or have subscribed to, has changed: tells those who want to know. Not while the topology is locked,
    /// since they may ask about it.
    pub fn tell(&self, about: About, changed: &Changed) {
        let mut topology = self.topology();
        let unread = std::mem::take(&mut topology.unread);
        self.show_members(&mut topology);
        drop(topology);
        drop(unread);
        if !changed.is_empty() {
            let listeners = self.listeners();
            let of_types = listeners.of_types.iter();
            let wants =
                of_types.filter(|(owner, _)| owner.1 == about && !listeners.without_updates.contains(owner));
            let wants: Vec<(Owner, Listener)> =
                wants.map(|(owner, listener)| (*owner, Arc::clone(listener))).collect();
            drop(listeners);
            wants.iter().for_each(|(owner, listener)| self.call(*owner, || listener(changed)));
        }
        self.tell_of_partners();
        self.tell_observers();
    }

    fn tell_of_partners(&self) {
        let mut listeners = self.listeners();
        if listeners.of_partners.is_empty() {
            return;
        }
        let mut news = Vec::new();
        {
            let topology = self.topology();
            for (number, (listener, known)) in &mut listeners.of_partners {
                let partners = topology.partners(*number);
                let changed = PartnersChanged::between(known, &partners);
                *known = partners;
                let is_consumer = topology.consumers.contains_key(number);
                let about = if is_consumer { About::Offers } else { About::Subscriptions };
                news.push(((*number, about), Arc::clone(listener), changed));
            }
        }
        drop(listeners);
        let news = news.iter().filter(|(_, _, changed)| !changed.is_empty());
        news.for_each(|(owner, listener, changed)| self.call(*owner, || listener(changed)));
    }

    /// Calls what somebody is told by. A panic is that of its owner, which is disconnected, and nobody else's: whoever changes something goes on, and
    /// the others are told. An admin stays, and is told of nothing any more. The panic hook has told of it.
    fn call(&self, owner: Owner, listener: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(listener)).is_ok() {
            return;
        }
        self.listen_no_more(owner);
        match owner.1 {
            About::Subscriptions => self.remove_supplier(owner.0),
            About::Offers => self.remove_consumer(owner.0),
        };
    }
}

/// See [`Shared::together`].
pub(crate) struct Together<'a>(&'a Shared);

impl Drop for Together<'_> {
    fn drop(&mut self) {
        self.0.listeners().under_way -= 1;
        self.0.tell_observers();
    }
}
