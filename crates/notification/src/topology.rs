//! Who is connected to a channel, and which consumers have subscribed to which types.
//!
//! For each type that anybody has named there is a list of the consumers that have subscribed to it, by that type or by a pattern. A supplier finds
//! the list of its event's type at once, however many types and consumers there are, and reads it without a lock: lists are replaced as a whole.

use crate::changes::{OfferChange, SubscriptionChange};
use crate::consumer::{AdminFilters, Consumer};
use crate::event::{ContentType, Event, EventType};
use crate::filter::{FilterGroup, GroupOperator};
use crate::pool::ThreadPool;
use crate::publications::Publications;
use crate::qos::Qos;
use crate::replaced::ReplacedFilters;
use crate::stated::Stated;
use crate::statistics::{Members, Told};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use talea_event::TypePattern;
use talea_linux::pi_lock::PiLock;
use talea_linux::replaced::Replaced;
use talea_model::PublicationId;
use talea_time::Instant;

/// A list of consumers.
pub(crate) type Subscribers = Vec<Arc<Consumer>>;

/// A consumer whose subscriptions have changed, and what it had subscribed to before.
pub(crate) type Resubscribed = (Arc<Consumer>, BTreeSet<TypePattern>);

/// A type that somebody has named, and who wants events of it.
pub(crate) struct TypeEntry {
    pub event_type: EventType,
    pub subscribers: Replaced<Subscribers>,
    /// Suppliers that have said that they push it.
    pub offers: AtomicUsize,
    /// The newest events of it, if these are kept for who comes later.
    pub retained: OnceLock<PiLock<Retained>>,
    /// As what programs publish it and 1 more, once that has been found; 0 before.
    publication: AtomicUsize,
}

impl TypeEntry {
    /// As what programs publish events of the type, if that has a number.
    #[inline]
    pub fn publication(&self, publications: &Publications) -> Option<PublicationId> {
        if let Some(known) = self.publication.load(Ordering::Relaxed).checked_sub(1) {
            return Some(PublicationId::from_index(known));
        }
        let found = publications.of(&self.event_type)?;
        self.publication.store(found.index() + 1, Ordering::Relaxed);
        Some(found)
    }
}

/// The newest events of a type, the oldest first, with when they were pushed and what their suppliers say of them.
pub(crate) struct Retained {
    events: VecDeque<(Event, Stated)>,
    most: usize,
}

impl Retained {
    pub fn new(most: usize) -> Self {
        Retained { events: VecDeque::with_capacity(most), most }
    }

    /// Returns the one that it has no more, which is dropped when no lock is held.
    #[must_use]
    pub fn add(&mut self, event: &Event, stated: &Stated, pushed: Instant) -> Option<Event> {
        let oldest = if self.events.len() == self.most { self.events.pop_front() } else { None };
        self.events.push_back((event.clone(), Stated { pushed: Some(pushed), ..*stated }));
        oldest.map(|(event, _)| event)
    }
}

/// A connected consumer, and what it has subscribed to.
pub(crate) struct Subscribed {
    pub consumer: Arc<Consumer>,
    pub admin: u32,
    pub patterns: BTreeSet<TypePattern>,
    /// Observers are not told of it.
    pub is_gateway: bool,
}

impl Subscribed {
    pub fn wants(&self, event_type: &EventType) -> bool {
        wants(&self.patterns, event_type)
    }
}

fn wants(patterns: &BTreeSet<TypePattern>, event_type: &EventType) -> bool {
    patterns.iter().any(|pattern| pattern.matches(event_type.domain(), event_type.name()))
}

/// An admin of consumers.
pub(crate) struct ConsumerGroup {
    pub filters: Arc<AdminFilters>,
    pub qos: Qos,
    /// What its consumers have subscribed to that do not say so themselves.
    pub patterns: BTreeSet<TypePattern>,
    /// Whether nobody has had it yet: the admin that is always there is made when it is first used, and has what its channel has then.
    pub is_unused: bool,
    /// Where its consumers have their events that do not say so themselves.
    pub pool: Option<ThreadPool>,
    /// Nobody is connected to it any more.
    pub is_destroyed: bool,
}

impl ConsumerGroup {
    pub fn new(filters: Arc<AdminFilters>, qos: Qos) -> Self {
        ConsumerGroup {
            filters,
            qos,
            patterns: BTreeSet::from([TypePattern::all()]),
            is_unused: false,
            pool: None,
            is_destroyed: false,
        }
    }
}

/// An admin of suppliers.
pub(crate) struct SupplierGroup {
    pub filters: Arc<AdminFilters>,
    pub qos: Qos,
    /// What its suppliers offer that do not say so themselves, in the order in which it came.
    pub types: Vec<EventType>,
    /// As for consumers.
    pub is_unused: bool,
    /// As for consumers.
    pub is_destroyed: bool,
}

impl SupplierGroup {
    pub fn new(filters: Arc<AdminFilters>, qos: Qos) -> Self {
        SupplierGroup { filters, qos, types: Vec::new(), is_unused: false, is_destroyed: false }
    }
}

/// What a connected supplier has said that it pushes.
pub(crate) struct Offering {
    pub name: Arc<str>,
    pub admin: u32,
    pub types: BTreeSet<u32>,
    /// What they carry, if it has said so.
    pub content: Option<ContentType>,
    /// Observers are not told of it.
    pub is_gateway: bool,
    pub state: Arc<SupplierState>,
}

/// What is set of a supplier; replaced as a whole.
pub(crate) struct SupplierSettings {
    pub qos: Qos,
    /// What that says of its events.
    pub stated: Stated,
}

impl SupplierSettings {
    pub fn new(qos: Qos) -> Self {
        SupplierSettings { stated: Stated::of(&qos), qos }
    }
}

/// What a supplier and its channel know of it.
pub(crate) struct SupplierState {
    /// Events that it has pushed; only it writes that.
    pub pushed: AtomicU64,
    /// Events that filters did not let through; only it writes that.
    pub filtered: AtomicU64,
    /// Events that had less time left than its filters may take.
    pub expired: AtomicU64,
    /// Constraints that could not be evaluated.
    pub filter_errors: AtomicU64,
    /// Somebody has removed it.
    pub is_removed: AtomicBool,
    pub settings: Replaced<SupplierSettings>,
    pub filters: ReplacedFilters<FilterGroup>,
}

impl SupplierState {
    pub fn new(qos: Qos, filters: FilterGroup) -> Self {
        SupplierState {
            pushed: AtomicU64::new(0),
            filtered: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            filter_errors: AtomicU64::new(0),
            is_removed: AtomicBool::new(false),
            settings: Replaced::new(SupplierSettings::new(qos)),
            filters: ReplacedFilters::new(filters),
        }
    }
}

/// All of it.
pub(crate) struct Topology {
    pub qos: Qos,
    /// Where consumers have their events where nothing nearer says so.
    pub pool: Option<ThreadPool>,
    pub consumer_admins: BTreeMap<u32, ConsumerGroup>,
    pub supplier_admins: BTreeMap<u32, SupplierGroup>,
    pub consumers: BTreeMap<u32, Subscribed>,
    pub suppliers: BTreeMap<u32, Offering>,
    /// Suppliers that were removed and whose programs have them still.
    pub removed: BTreeMap<u32, Arc<SupplierState>>,
    /// Events that suppliers had pushed which are gone.
    pub pushed_before: u64,
    /// Former lists of consumers that nobody reads any more. They are dropped when others may have the topology: with them may go what a call-back
    /// has, such as a supplier of this channel.
    pub unread: Vec<Subscribers>,
    /// Whether the channel has been destroyed: nobody is connected any more.
    pub is_closed: bool,
    /// What streams know of who is there.
    pub told: Told<Members>,
    types: HashMap<EventType, Arc<TypeEntry>>,
    /// The consumers that have subscribed to a type by its name.
    named: HashMap<EventType, BTreeSet<u32>>,
    /// The consumers with patterns that may match many.
    wildcards: BTreeSet<u32>,
    next: u32,
}

impl Topology {
    pub fn new(qos: Qos) -> Self {
        let default = || Arc::new(AdminFilters::new(GroupOperator::And));
        let consumer_admins =
            [(0, ConsumerGroup { is_unused: true, ..ConsumerGroup::new(default(), qos.clone()) })].into();
        let supplier_admins =
            [(0, SupplierGroup { is_unused: true, ..SupplierGroup::new(default(), qos.clone()) })].into();
        Topology {
            qos,
            pool: None,
            consumer_admins,
            supplier_admins,
            consumers: BTreeMap::new(),
            suppliers: BTreeMap::new(),
            removed: BTreeMap::new(),
            pushed_before: 0,
            unread: Vec::new(),
            is_closed: false,
            told: Told::default(),
            types: HashMap::new(),
            named: HashMap::new(),
            wildcards: BTreeSet::new(),
            next: 1,
        }
    }

    /// The channel has this quality of service from now on, and the admins that are made from now on.
    pub fn set_qos(&mut self, qos: Qos) {
        let consumers = self.consumer_admins.values_mut().filter(|group| group.is_unused);
        consumers.for_each(|group| group.qos = qos.clone());
        let suppliers = self.supplier_admins.values_mut().filter(|group| group.is_unused);
        suppliers.for_each(|group| group.qos = qos.clone());
        self.qos = qos;
    }

    /// A number that nothing in the channel has.
    pub fn number(&mut self) -> u32 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// The numbers of the consumers of this admin.
    pub fn consumers_of(&self, admin: u32) -> Vec<u32> {
        let own = self.consumers.iter().filter(|(_, consumer)| consumer.admin == admin);
        own.map(|(number, _)| *number).collect()
    }

    /// The numbers of the suppliers of this admin.
    pub fn suppliers_of(&self, admin: u32) -> Vec<u32> {
        let own = self.suppliers.iter().filter(|(_, supplier)| supplier.admin == admin);
        own.map(|(number, _)| *number).collect()
    }

    /// The entry of a type, with those that want it.
    pub fn entry(&mut self, event_type: &EventType) -> Arc<TypeEntry> {
        if let Some(entry) = self.types.get(event_type) {
            return Arc::clone(entry);
        }
        let named = self.named.get(event_type).into_iter().flatten();
        let candidates: BTreeSet<u32> = named.chain(&self.wildcards).copied().collect();
        let candidates = candidates.iter().filter_map(|number| self.consumers.get(number));
        let wants = candidates.filter(|subscribed| subscribed.wants(event_type));
        let subscribers = wants.map(|subscribed| Arc::clone(&subscribed.consumer)).collect();
        let entry = Arc::new(TypeEntry {
            event_type: event_type.clone(),
            subscribers: Replaced::new(subscribers),
            offers: AtomicUsize::new(0),
            retained: OnceLock::new(),
            publication: AtomicUsize::new(0),
        });
        self.types.insert(event_type.clone(), Arc::clone(&entry));
        entry
    }

    pub fn types(&self) -> impl Iterator<Item = &Arc<TypeEntry>> {
        self.types.values()
    }

    /// The events that are kept for a consumer that has subscribed to their types later, without those `before` was for already, in the order in
    /// which they were pushed.
    pub fn retained(&self, number: u32, before: &BTreeSet<TypePattern>) -> Vec<(Event, Stated)> {
        let Some(subscribed) = self.consumers.get(&number) else { return Vec::new() };
        let is_new = |of_type: &EventType| subscribed.wants(of_type) && !wants(before, of_type);
        let of_types = self.types.values().filter(|entry| is_new(&entry.event_type));
        let mut kept = Vec::new();
        for retained in of_types.filter_map(|entry| entry.retained.get()) {
            kept.extend(retained.lock().events.iter().cloned());
        }
        kept.sort_by_key(|(_, stated)| stated.pushed);
        kept
    }

    /// Enters a consumer with what it has subscribed to.
    pub fn connect(&mut self, mut subscribed: Subscribed) -> Changed {
        let (number, patterns) = (subscribed.consumer.number, std::mem::take(&mut subscribed.patterns));
        self.consumers.insert(number, subscribed);
        self.subscribe(number, patterns).unwrap_or_default()
    }

    /// The consumer has these subscriptions now. None if there is no such consumer.
    pub fn subscribe(&mut self, number: u32, patterns: BTreeSet<TypePattern>) -> Option<Changed> {
        let subscribed = self.consumers.get_mut(&number)?;
        let before = std::mem::replace(&mut subscribed.patterns, patterns);
        let subscribed = self.consumers.get(&number)?;
        let exact = |patterns: &BTreeSet<TypePattern>| -> BTreeSet<EventTypeKey> {
            let exact = patterns.iter().filter_map(TypePattern::exact);
            exact.map(|(domain, name)| EventTypeKey(EventType::new(domain, name))).collect()
        };
        let has_wildcards =
            |patterns: &BTreeSet<TypePattern>| patterns.iter().any(|pattern| pattern.exact().is_none());
        let (old, new) = (exact(&before), exact(&subscribed.patterns));
        for EventTypeKey(lost) in old.difference(&new) {
            if let Some(numbers) = self.named.get_mut(lost) {
                numbers.remove(&number);
            }
        }
        for EventTypeKey(gained) in new.difference(&old) {
            self.named.entry(gained.clone()).or_default().insert(number);
        }
        match has_wildcards(&subscribed.patterns) {
            true => self.wildcards.insert(number),
            false => self.wildcards.remove(&number),
        };
        let mut changed = Changed::default();
        let unread = &mut self.unread;
        let change = |entry: &Arc<TypeEntry>| unread.extend(changed.add(entry, subscribed));
        if has_wildcards(&before) || has_wildcards(&subscribed.patterns) {
            self.types.values().for_each(change);
        } else {
            let touched =
                old.symmetric_difference(&new).filter_map(|EventTypeKey(touched)| self.types.get(touched));
            touched.for_each(change);
        }
        Some(changed)
    }

    /// What these consumers have subscribed to changes. Returns what that comes to for all of them together, and those that are there.
    pub fn change_subscriptions(
        &mut self,
        numbers: &[u32],
        change: &SubscriptionChange,
    ) -> (Changed, Vec<Resubscribed>) {
        let (mut changed, mut touched) = (Changed::default(), Vec::new());
        for number in numbers {
            let Some(subscribed) = self.consumers.get(number) else { continue };
            let (consumer, before) = (Arc::clone(&subscribed.consumer), subscribed.patterns.clone());
            changed.then(self.subscribe(*number, change.apply(&before)).unwrap_or_default());
            touched.push((consumer, before));
        }
        (changed, touched)
    }

    /// What these suppliers offer changes. Returns what that comes to for all of them together.
    pub fn change_offers(&mut self, numbers: &[u32], change: &OfferChange) -> Changed {
        let mut changed = Changed::default();
        for number in numbers {
            changed.then(self.offer(*number, change).unwrap_or_default());
        }
        changed
    }

    /// What the supplier offers changes. None if there is no such supplier.
    fn offer(&mut self, number: u32, change: &OfferChange) -> Option<Changed> {
        let mut changed = Changed::default();
        for event_type in &change.added {
            let entry = self.entry(event_type);
            if self.suppliers.get_mut(&number)?.types.insert(event_type.number() as u32)
                && entry.offers.fetch_add(1, Ordering::Relaxed) == 0
            {
                changed.gained.push(event_type.clone());
            }
        }
        for event_type in &change.removed {
            let entry = self.entry(event_type);
            if self.suppliers.get_mut(&number)?.types.remove(&(event_type.number() as u32))
                && entry.offers.fetch_sub(1, Ordering::Relaxed) == 1
            {
                changed.lost.push(event_type.clone());
            }
        }
        Some(changed)
    }

    /// Removes a supplier, if it is one still, with what it has offered; says what that has changed.
    pub fn withdraw(&mut self, number: u32) -> Option<(Offering, Changed)> {
        let offering = self.suppliers.remove(&number)?;
        let mut changed = Changed::default();
        let offered = |entry: &&Arc<TypeEntry>| offering.types.contains(&(entry.event_type.number() as u32));
        for entry in self.types.values().filter(offered) {
            if entry.offers.fetch_sub(1, Ordering::Relaxed) == 1 {
                changed.lost.push(entry.event_type.clone());
            }
        }
        Some((offering, changed))
    }

    /// How many there are of whom; nobody in a channel that is destroyed.
    pub fn members(&self) -> Members {
        if self.is_closed {
            return Members::default();
        }
        Members {
            consumers: self.consumers.len(),
            suppliers: self.suppliers.len(),
            consumer_admins: self.consumer_admins.values().filter(|admin| !admin.is_destroyed).count(),
            supplier_admins: self.supplier_admins.values().filter(|admin| !admin.is_destroyed).count(),
        }
    }

    /// Events that were pushed, by those who are gone, too.
    pub fn pushed(&self) -> u64 {
        let states = self.suppliers.values().map(|supplier| &supplier.state).chain(self.removed.values());
        self.pushed_before + states.map(|state| state.pushed.load(Ordering::Relaxed)).sum::<u64>()
    }

    /// Removes a consumer.
    pub fn disconnect(&mut self, number: u32) -> Changed {
        let changed = self.subscribe(number, BTreeSet::new()).unwrap_or_default();
        self.consumers.remove(&number);
        changed
    }
}

/// A type, in the order of its number.
#[derive(PartialEq, Eq)]
struct EventTypeKey(EventType);

impl Ord for EventTypeKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.number().cmp(&other.0.number())
    }
}

impl PartialOrd for EventTypeKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Types that have somebody now, and had nobody; and types that have nobody any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// They have.
    pub gained: Vec<EventType>,
    /// They have not.
    pub lost: Vec<EventType>,
}

impl Changed {
    /// Brings the list of a type up to date with what one consumer wants. Returns former lists that nobody reads any more.
    fn add(&mut self, entry: &TypeEntry, subscribed: &Subscribed) -> Vec<Subscribers> {
        let (mut list, own) = (entry.subscribers.load().to_vec(), &subscribed.consumer);
        let is_there = list.iter().any(|consumer| consumer.number == own.number);
        let is_wanted = subscribed.wants(&entry.event_type);
        if is_there == is_wanted {
            return Vec::new();
        }
        if is_wanted {
            if list.is_empty() {
                self.gained.push(entry.event_type.clone());
            }
            list.push(Arc::clone(own));
        } else {
            list.retain(|consumer| consumer.number != own.number);
            if list.is_empty() {
                self.lost.push(entry.event_type.clone());
            }
        }
        entry.subscribers.store(list)
    }

    /// What this comes to with what has changed `later`: nothing for a type that has gone from one and to another.
    pub(crate) fn then(&mut self, later: Changed) {
        let settle = |new: Vec<EventType>, undone: &mut Vec<EventType>, done: &mut Vec<EventType>| {
            for event_type in new {
                match undone.iter().position(|other| *other == event_type) {
                    Some(place) => _ = undone.remove(place),
                    None => done.push(event_type),
                }
            }
        };
        settle(later.lost, &mut self.gained, &mut self.lost);
        settle(later.gained, &mut self.lost, &mut self.gained);
    }

    /// Whether it is none.
    pub fn is_empty(&self) -> bool {
        self.gained.is_empty() && self.lost.is_empty()
    }
}
