//! Suppliers (`ProxyConsumer`): who pushes events.

use crate::admin::SupplierAdmin;
use crate::attached::{FilterAdmin, Owner};
use crate::connect::ConnectError;
use crate::consumer::{AdminFilters, Offered};
use crate::event::{Content, ContentType, Event, EventType};
use crate::filter::{Filter, FilterGroup, SharedFilters, passes, together};
use crate::limits::{LimitExceeded, allow_bytes};
use crate::partners::{Partner, PartnersChanged};
use crate::posting::{post, wake_at};
use crate::qos::{Level, PropertyName, QosError, QosProblem, QosSettings, Reliability};
use crate::shared::{About, ObtainInfoMode, Shared};
use crate::stated::{self, Stated};
use crate::statistics::Counted;
use crate::topology::{Changed, Offering, Retained, SupplierState, TypeEntry};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_linux::pi_lock::PiLock;
use talea_operation::Post;
use talea_time::{Duration, Instant};
use thiserror::Error;

/// Types that one supplier may push: each costs a word of memory, so strangers have a limit.
const MOST_TYPES: usize = 1 << 20;

/// What a push came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Consumers that have subscribed to the type.
    pub subscribed: usize,
    /// Those of them for which the event waits now.
    pub queued: usize,
    /// Those for which it was discarded, which is counted there. The others do not want it.
    pub discarded: usize,
}

/// Why an event was not pushed. Nobody has it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PushError {
    /// The channel has been destroyed.
    #[error("the channel has been destroyed")]
    Closed,
    /// The supplier, or its admin, has been removed from the channel.
    #[error("the supplier has been removed from its channel; connect another one")]
    NotConnected,
    /// As many events wait in the channel as may, and the channel rejects more.
    #[error("as many events wait in the channel as may (MaxQueueLength), and it rejects new ones")]
    Rejected,
    /// The header asks for what there is not.
    #[error("{0}")]
    Qos(QosProblem),
    /// The process has too many types.
    #[error("suppliers push the first {MOST_TYPES} types that a process names")]
    TooManyTypes,
    /// The supplier would push more types than it may, or the event has more bytes.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

/// A supplier that is about to be connected.
#[must_use]
pub struct SupplierBuilder {
    admin: SupplierAdmin,
    name: Box<str>,
    types: Vec<EventType>,
    retained: Vec<(EventType, usize)>,
    filters: Vec<Filter>,
    settings: QosSettings,
    content: Option<ContentType>,
}

impl fmt::Debug for SupplierBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupplierBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl SupplierAdmin {
    /// Begins to connect a supplier of this group.
    pub fn supplier(&self, name: &str) -> SupplierBuilder {
        SupplierBuilder::new(self.clone(), name)
    }
}

impl SupplierBuilder {
    fn new(admin: SupplierAdmin, name: &str) -> Self {
        SupplierBuilder {
            admin,
            name: name.into(),
            types: Vec::new(),
            retained: Vec::new(),
            filters: Vec::new(),
            settings: QosSettings::new(),
            content: None,
        }
    }

    /// It pushes events of these types. Others can be pushed as well; the first of each then allocates, and waits for who connects or
    /// disconnects somebody.
    pub fn offer(mut self, types: impl IntoIterator<Item = EventType>) -> Self {
        self.types.extend(types);
        self
    }

    /// It pushes events of these types, the newest of which, so many, are kept for consumers that connect later (transient local durability in
    /// DDS and ROS 2). An event that is pushed while a consumer connects may come to that one twice. What counts is what the first supplier of a
    /// type says. A push of such an event takes a lock for as long as it takes to remember it; who waits for it lends its priority.
    pub fn offer_retained(mut self, types: impl IntoIterator<Item = EventType>, events: u16) -> Self {
        for event_type in types {
            self.retained.push((event_type.clone(), usize::from(events.max(1))));
            self.types.push(event_type);
        }
        self
    }

    /// Its events carry a `T`, which partners are told. Others that it pushes all the same come to consumers that take them.
    pub fn content<T: Content>(mut self) -> Self {
        self.content = Some(ContentType::of::<T>());
        self
    }

    /// Only events that this filter, or another one of its own, matches go on.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Its quality of service, where it is another one than that of its admin: the priority and the timeout of events that state none. What is set
    /// for an admin or a supplier goes before what is set for consumers, but for those with a [condition](crate::ConsumerBuilder::when), which have what
    /// events state themselves.
    pub fn qos(mut self, settings: QosSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Connects it.
    ///
    /// # Errors
    /// The channel has been destroyed, as many are connected as may be, its quality of service cannot be, or it has more filters or types than the
    /// channel allows.
    pub fn connect(self) -> Result<Supplier, ConnectError> {
        let SupplierBuilder { admin, name, types, retained, filters, settings, content } = self;
        let qos = stated::with(&admin.qos(), &settings, Level::Proxy)?;
        let shared = Arc::clone(&admin.shared);
        let admin_filters = admin.own_filters();
        let filters = filters.into_iter().collect::<FilterGroup>();
        let properties = shared.properties();
        properties.allow_group(&filters)?;
        let offered: BTreeSet<usize> = types.iter().map(EventType::number).collect();
        properties.allow_types(offered.len())?;
        let filters = SharedFilters::new(filters);
        let state = Arc::<SupplierState>::default();
        let mut topology = shared.topology();
        if topology.is_closed {
            return Err(ConnectError::Closed);
        }
        if topology.supplier_admins[&admin.number].is_destroyed {
            return Err(ConnectError::NoAdmin);
        }
        let most = properties.max_suppliers;
        if most > 0 && topology.suppliers.len() >= most {
            return Err(ConnectError::TooMany { who: "suppliers", most });
        }
        let number = topology.number();
        let offering = Offering {
            name,
            admin: admin.number,
            types: BTreeSet::new(),
            content,
            state: Arc::clone(&state),
        };
        topology.suppliers.insert(number, offering);
        for (event_type, events) in retained {
            _ = topology.entry(&event_type).retained.set(PiLock::new(Retained::new(events)));
        }
        drop(topology);
        let (filter_errors, filtered, expired) = (AtomicU64::new(0), 0, 0);
        let mut supplier = Supplier {
            shared,
            number,
            admin: admin_filters,
            filters,
            stated: Stated::of(&qos),
            state,
            entries: Vec::new(),
            filter_errors,
            filtered,
            expired,
        };
        supplier.offer_change(types, [])?;
        Ok(supplier)
    }
}

/// A connected supplier. It belongs to one thread, or one operation, at a time. Dropping it disconnects it.
pub struct Supplier {
    shared: Arc<Shared>,
    number: u32,
    admin: Arc<AdminFilters>,
    filters: SharedFilters,
    stated: Stated,
    state: Arc<SupplierState>,
    /// By number of the type.
    entries: Vec<Option<Arc<TypeEntry>>>,
    filter_errors: AtomicU64,
    filtered: u64,
    expired: u64,
}

impl fmt::Debug for Supplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supplier").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Supplier {
    /// Its number in the channel.
    pub fn id(&self) -> u32 {
        self.number
    }

    /// Pushes an event: `via` is the job in which this happens, or the means of a thread of the program to post work. Of types that were
    /// [offered](SupplierBuilder::offer) it neither allocates nor locks; it waits only where a consumer's quality of service says so
    /// (`BlockingPolicy`) and `via` may, which jobs may not.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push(&mut self, mut via: impl Post, event: &Event) -> Result<Pushed, PushError> {
        if self.shared.is_closed.load(Ordering::Relaxed) {
            return Err(PushError::Closed);
        }
        if self.state.is_removed.load(Ordering::Relaxed) {
            return Err(PushError::NotConnected);
        }
        let number = event.event_type().number();
        if self.entries.get(number).is_none_or(Option::is_none) {
            self.find(event.event_type())?;
        }
        let Shared {
            place,
            load,
            reject_new_events,
            max_event_bytes,
            rejected,
            left_out,
            expired,
            counters,
            ..
        } = &*self.shared;
        let most = max_event_bytes.load(Ordering::Relaxed);
        if most > 0 {
            allow_bytes(event.bytes(), most)?;
        }
        if event.header().reliability == Some(Reliability::Persistent) {
            let allowed = "nothing is kept when the process ends; it is BestEffort".to_owned();
            let (property, error) = (PropertyName::EventReliability.to_string(), QosError::UnsupportedValue);
            return Err(PushError::Qos(QosProblem { property, error, allowed }));
        }
        if reject_new_events.load(Ordering::Relaxed) && load.is_full() {
            rejected.fetch_add(1, Ordering::Relaxed);
            counters.add(Counted::Rejected, 1);
            return Err(PushError::Rejected);
        }
        if self.expires_in_filters(event) {
            self.expired += 1;
            expired.fetch_add(1, Ordering::Relaxed);
            counters.add(Counted::Expired, 1);
            return Ok(Pushed::default());
        }
        let now = via.now();
        let proxy = self.filters.judge(event, now);
        if !passes(self.admin.operator, proxy, || self.admin.filters.judge(event, now), &self.filter_errors) {
            self.filtered += 1;
            left_out.fetch_add(1, Ordering::Relaxed);
            counters.add(Counted::LeftOut, 1);
            return Ok(Pushed::default());
        }
        let entry = self.entries[number].as_ref().expect("it has been found");
        let before = self.state.pushed.load(Ordering::Relaxed);
        self.state.pushed.store(before + 1, Ordering::Relaxed);
        counters.add(Counted::Pushed, 1);
        if let Some(retained) = entry.retained.get() {
            retained.lock().0.add(event, self.stated, now);
        }
        let subscribers = entry.subscribers.load();
        let mut pushed = Pushed { subscribed: subscribers.len(), ..Pushed::default() };
        // Before there is somebody who makes room, nobody waits for it.
        let may_wait = via.may_wait() && place.get().is_some();
        let mut released = Some(now);
        for consumer in subscribers.iter() {
            let time = || place.get().map_or(Instant::MAX, |workplace| workplace.now());
            let wait: Option<&dyn Fn() -> Instant> = if may_wait { Some(&time) } else { None };
            consumer.offer((event, self.stated), now, wait, &mut |offered| match offered {
                Offered::Queued { not_before, priority, expires } => {
                    pushed.queued += 1;
                    post(consumer, place, &mut via, (not_before, priority, expires), (now, &mut released));
                }
                Offered::ToBePulled | Offered::InPlace => pushed.queued += 1,
                Offered::Due(due) => wake_at(consumer, place, due),
                Offered::Discarded => pushed.discarded += 1,
                Offered::Unwanted => {}
            });
        }
        Ok(pushed)
    }

    /// Whether the event, by its own timeout or what is set for its supplier, is worth something for less time than its filters and those of its admin may
    /// take. What consumers say of it, and whether they heed its stop time, is not known here.
    fn expires_in_filters(&self, event: &Event) -> bool {
        let timeout = self.stated.timeout(event).filter(|timeout| *timeout > Duration::ZERO);
        timeout
            .is_some_and(|timeout| timeout < together([self.filters.longest(), self.admin.filters.longest()]))
    }

    /// Pushes events, one after the other; of a sequence that is refused from some event on, those before it are pushed.
    ///
    /// # Errors
    /// What became of those before it, and why the next one was not pushed.
    pub fn push_sequence(
        &mut self,
        mut via: impl Post,
        events: &[Event],
    ) -> Result<Pushed, (Pushed, PushError)> {
        let mut sum = Pushed::default();
        for event in events {
            match self.push(&mut via, event) {
                Ok(one) => {
                    sum.subscribed += one.subscribed;
                    sum.queued += one.queued;
                    sum.discarded += one.discarded;
                }
                Err(error) => return Err((sum, error)),
            }
        }
        Ok(sum)
    }

    /// Whether any consumer has subscribed to this type: what nobody wants need not be made.
    pub fn is_wanted(&self, event_type: &EventType) -> bool {
        match self.entries.get(event_type.number()) {
            Some(Some(entry)) => !entry.subscribers.load().is_empty(),
            _ => !self.shared.topology().entry(event_type).subscribers.load().is_empty(),
        }
    }

    fn find(&mut self, event_type: &EventType) -> Result<(), PushError> {
        let number = event_type.number();
        if number >= MOST_TYPES {
            return Err(PushError::TooManyTypes);
        }
        self.shared.properties().allow_types(self.entries.iter().flatten().count() + 1)?;
        if self.entries.len() <= number {
            self.entries.resize(number + 1, None);
        }
        self.entries[number] = Some(self.shared.topology().entry(event_type));
        Ok(())
    }

    /// It pushes these types as well, and those no more (`offer_change`). Types that are in both are not changed. Consumers that want to know
    /// are told of types that gained their first supplier or lost their last.
    ///
    /// # Errors
    /// It would have more types than the channel allows; nothing has changed.
    pub fn offer_change(
        &mut self,
        added: impl IntoIterator<Item = EventType>,
        removed: impl IntoIterator<Item = EventType>,
    ) -> Result<Changed, LimitExceeded> {
        let (mut added, mut removed): (Vec<_>, Vec<_>) =
            (added.into_iter().collect(), removed.into_iter().collect());
        let in_both: Vec<EventType> = added.iter().filter(|one| removed.contains(one)).cloned().collect();
        added.retain(|one| !in_both.contains(one));
        removed.retain(|one| !in_both.contains(one));
        let mut changed = Changed::default();
        let properties = self.shared.properties();
        let mut topology = self.shared.topology();
        if let Some(offering) = topology.suppliers.get(&self.number) {
            let mut types = offering.types.clone();
            types.extend(added.iter().map(|one| one.number() as u32));
            removed.iter().for_each(|one| _ = types.remove(&(one.number() as u32)));
            properties.allow_types(types.len())?;
        }
        for event_type in added {
            let entry = topology.entry(&event_type);
            let Some(offering) = topology.suppliers.get_mut(&self.number) else { continue };
            if offering.types.insert(event_type.number() as u32)
                && entry.offers.fetch_add(1, Ordering::Relaxed) == 0
            {
                changed.gained.push(event_type.clone());
            }
            let number = event_type.number();
            if self.entries.len() <= number && number < MOST_TYPES {
                self.entries.resize(number + 1, None);
            }
            if let Some(place) = self.entries.get_mut(number) {
                *place = Some(entry);
            }
        }
        for event_type in removed {
            let entry = topology.entry(&event_type);
            let Some(offering) = topology.suppliers.get_mut(&self.number) else { continue };
            if offering.types.remove(&(event_type.number() as u32))
                && entry.offers.fetch_sub(1, Ordering::Relaxed) == 1
            {
                changed.lost.push(event_type);
            }
        }
        drop(topology);
        self.shared.tell(About::Offers, &changed);
        Ok(changed)
    }

    /// The types that consumers have subscribed to, if `mode` says so, and whether
    /// [`on_subscription_change`](Self::on_subscription_change) is called from now on (`obtain_subscription_types`).
    pub fn obtain_subscription_types(&self, mode: ObtainInfoMode) -> Vec<EventType> {
        self.shared.obtain(self.number, About::Subscriptions, mode)
    }

    /// The consumers that have subscribed to types that it offers.
    pub fn partners(&self) -> Vec<Partner> {
        self.shared.topology().partners(self.number).into_values().collect()
    }

    /// Calls `listener` with the consumers that there are, if any, and from whichever thread it is that changes something when others come, go, or
    /// subscribe to other types.
    pub fn on_partners(&self, listener: impl Fn(&PartnersChanged) + Send + Sync + 'static) {
        self.shared.listen_to_partners(self.number, Arc::new(listener));
    }

    /// Calls `listener`, from whichever thread it is that changes something, when a type gains its first consumer or loses its last
    /// (`subscription_change`).
    pub fn on_subscription_change(&self, listener: impl Fn(&Changed) + Send + Sync + 'static) {
        self.shared.listen(self.number, About::Subscriptions, Arc::new(listener));
    }

    /// Events that its own filters, or those of its admin, did not let through, and constraints that could not be evaluated.
    pub fn filtered(&self) -> (u64, u64) {
        (self.filtered, self.filter_errors.load(Ordering::Relaxed))
    }

    /// Events that were not pushed since they were worth something for less time than its own filters and those of its admin may take: they have expired.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Its own filters, to add some and to remove them.
    pub fn filters(&self) -> FilterAdmin<'_> {
        FilterAdmin::new(&self.shared, Owner::Supplier(&self.filters))
    }
}

impl Drop for Supplier {
    fn drop(&mut self) {
        self.shared.listen_no_more(self.number);
        let mut topology = self.shared.topology();
        let withdrawn = topology.withdraw(self.number);
        topology.removed.remove(&self.number);
        topology.pushed_before += self.state.pushed.load(Ordering::Relaxed);
        drop(topology);
        if let Some((_, changed)) = withdrawn {
            self.shared.tell(About::Offers, &changed);
        }
    }
}
