//! Suppliers (`ProxyConsumer`): who pushes events.

use crate::admin::SupplierAdmin;
use crate::attached::{FilterAdmin, Owner};
use crate::changes::OfferChange;
use crate::connect::ConnectError;
use crate::consumer::{AdminFilters, Offered};
use crate::delivery::Pusher;
use crate::event::{Content, ContentType, Event, EventType, Header};
use crate::fields::FieldProblem;
use crate::filter::{Filter, FilterGroup, passes, together};
use crate::kept::{PUSH_BYTES, encode_push};
use crate::limits::{LimitExceeded, allow_bytes};
use crate::partners::{Partner, PartnersChanged};
use crate::posting::{InReplay, post, wake_at};
use crate::qos::{Level, PropertyName, Qos, QosError, QosProblem, QosProblems, QosSettings, Reliability};
use crate::shared::{About, ObtainInfoMode, Shared};
use crate::stated::{self, Stated};
use crate::statistics::Counted;
use crate::topology::{Changed, Offering, Retained, SupplierSettings, SupplierState, Topology, TypeEntry};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_linux::pi_lock::PiLock;
use talea_model::PublicationId;
use talea_operation::{EventNote, KeptEvent, Post, PushAnswer};
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
    /// The header has more than [fields](crate::HeaderFields) may be, as that of a structured event can, or of one that came as bytes.
    #[error("the header of the event is refused: {0}")]
    Header(FieldProblem),
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
    is_gateway: bool,
    /// Whether the description of a system says what it pushes.
    is_described: bool,
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

    /// The supplier of this number, if it is connected and one of these (`get_proxy_consumer`).
    pub fn supplier_of(&self, number: u32) -> Option<SupplierHandle> {
        SupplierHandle::find(&self.shared, number, Some(self.number))
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
            is_gateway: false,
            is_described: false,
        }
    }

    /// It pushes what the description of a system says, which has its number there.
    pub(crate) fn described(mut self) -> Self {
        self.is_described = true;
        self
    }

    /// It pushes events of these types; without any, of those that its [admin](SupplierAdmin::offer_change) says. Others can be pushed as well; the
    /// first of each then allocates, and waits for who connects or disconnects somebody.
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

    /// It passes on events of another channel: [observers](crate::EventChannel::observe) are not told of what it offers
    /// (`is_gateway`).
    pub fn gateway(mut self) -> Self {
        self.is_gateway = true;
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
        let SupplierBuilder {
            admin,
            name,
            types,
            retained,
            filters,
            settings,
            content,
            is_gateway,
            is_described,
        } = self;
        let qos = stated::with(&admin.qos(), &settings, Level::Proxy)?;
        let shared = Arc::clone(&admin.shared);
        let admin_filters = admin.own_filters();
        let filters = filters.into_iter().collect::<FilterGroup>();
        let properties = shared.properties();
        properties.allow_group(&filters)?;
        let state = Arc::new(SupplierState::new(qos, filters));
        let mut topology = shared.topology();
        if topology.is_closed {
            return Err(ConnectError::Closed);
        }
        let group = &topology.supplier_admins[&admin.number];
        if group.is_destroyed {
            return Err(ConnectError::NoAdmin);
        }
        let types = if types.is_empty() { group.types.clone() } else { types };
        properties.allow_types(types.iter().map(EventType::number).collect::<BTreeSet<_>>().len())?;
        let most = properties.max_suppliers;
        if most > 0 && topology.suppliers.len() >= most {
            return Err(ConnectError::TooMany { who: "suppliers", most });
        }
        let number = topology.number();
        let name: Arc<str> = name.into();
        let offering = Offering {
            name: Arc::clone(&name),
            admin: admin.number,
            types: BTreeSet::new(),
            content,
            is_gateway,
            state: Arc::clone(&state),
        };
        topology.suppliers.insert(number, offering);
        for (event_type, events) in retained {
            _ = topology.entry(&event_type).retained.set(PiLock::new(Retained::new(events)));
        }
        let change = OfferChange::new(types, []);
        let changed = topology.change_offers(&[number], &change);
        let handle = SupplierHandle { shared: Arc::clone(&shared), number, name, state };
        let mut supplier = Supplier { admin: admin_filters, entries: Vec::new(), handle, is_described };
        supplier.find_all(&mut topology, &change.added);
        drop(topology);
        supplier.ask_for_numbers(&change.added);
        shared.tell(About::Offers, &changed);
        Ok(supplier)
    }
}

/// A connected supplier. It belongs to one thread, or one operation, at a time. Dropping it disconnects it. What can be asked and set is that of its
/// [`SupplierHandle`].
pub struct Supplier {
    admin: Arc<AdminFilters>,
    /// By number of the type.
    entries: Vec<Option<Arc<TypeEntry>>>,
    handle: SupplierHandle,
    /// Whether the description of a system says what it pushes.
    is_described: bool,
}

impl fmt::Debug for Supplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supplier").field("number", &self.number).finish_non_exhaustive()
    }
}

impl std::ops::Deref for Supplier {
    type Target = SupplierHandle;

    fn deref(&self) -> &SupplierHandle {
        &self.handle
    }
}

impl Supplier {
    /// Pushes an event: `via` is the job in which this happens, or the means of a thread of the program to post work. Of types that were
    /// [offered](SupplierBuilder::offer) it neither allocates nor locks; it waits only where a consumer's quality of service says so
    /// (`BlockingPolicy`) and `via` may, which jobs may not.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn push(&mut self, via: impl Post, event: &Event) -> Result<Pushed, PushError> {
        let now = via.now();
        self.push_at(via, event, now)
    }

    /// The same at this instant, which `via` has just [told](Post::now).
    pub(crate) fn push_at(
        &mut self,
        mut via: impl Post,
        event: &Event,
        now: Instant,
    ) -> Result<Pushed, PushError> {
        match self.pass_on(&mut via, event, now) {
            Ok((pushed, None)) => Ok(pushed),
            Ok((pushed, Some(publication))) => {
                self.keep(&via, publication, event, (PushAnswer::from(pushed), Ok(pushed)))
            }
            Err(not_passed_on) => self.keep_not_passed_on(&via, event, not_passed_on),
        }
    }

    /// The same; with as what it is to be kept, if it is.
    fn pass_on(
        &mut self,
        via: &mut impl Post,
        event: &Event,
        now: Instant,
    ) -> Result<(Pushed, Option<PublicationId>), NotPassedOn> {
        if self.shared.is_closed.load(Ordering::Relaxed) {
            return Err(PushError::Closed.into());
        }
        if self.state.is_removed.load(Ordering::Relaxed) {
            return Err(PushError::NotConnected.into());
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
            publications,
            ..
        } = &*self.handle.shared;
        let most = max_event_bytes.load(Ordering::Relaxed);
        if most > 0 {
            allow_bytes(event.bytes(), most).map_err(PushError::from)?;
        }
        if let Some(problem) = event.header().fields.excess() {
            return Err(PushError::Header(problem.clone()).into());
        }
        self.validate_event_qos(event.header()).map_err(PushError::Qos)?;
        if reject_new_events.load(Ordering::Relaxed) && load.is_full() {
            rejected.fetch_add(1, Ordering::Relaxed);
            counters.add(Counted::Rejected, 1);
            return Err(PushError::Rejected.into());
        }
        let state = &*self.handle.state;
        let job = via.job();
        let stated = Stated { by: Pusher::of(job), ..state.settings.load().stated };
        if self.expires_in_filters(event, &stated) && !self.may_last_longer(number) {
            state.expired.store(state.expired.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            expired.fetch_add(1, Ordering::Relaxed);
            counters.add(Counted::Expired, 1);
            return Err(NotPassedOn::LeftOut);
        }
        let (proxy, errors) = (state.filters.judge(event, now), &state.filter_errors);
        if !passes(self.admin.operator, proxy, || self.admin.filters.judge(event, now), errors) {
            state.filtered.store(state.filtered.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            left_out.fetch_add(1, Ordering::Relaxed);
            counters.add(Counted::LeftOut, 1);
            return Err(NotPassedOn::LeftOut);
        }
        let entry = self.entries[number].as_ref().expect("it has been found");
        state.pushed.store(state.pushed.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        counters.add(Counted::Pushed, 1);
        // What a description says has no number here, and is told of by the operation.
        let mut kept = None;
        if job.is_some()
            && let Some(publication) = entry.publication(publications)
        {
            via.note(EventNote::Pushed(publication), now);
            if via.services().is_some_and(|services| services.keeps_events()) {
                kept = Some(publication);
            }
        }
        if let Some(retained) = entry.retained.get() {
            let oldest = retained.lock().add(event, &stated, now);
            drop(oldest);
        }
        let subscribers = entry.subscribers.load();
        let mut pushed = Pushed { subscribed: subscribers.len(), ..Pushed::default() };
        // Before there is somebody who makes room, nobody waits for it.
        let may_wait = via.may_wait() && place.get().is_some();
        let mut released = Some(now);
        for consumer in subscribers.iter() {
            let time = || place.get().map_or(Instant::MAX, |workplace| workplace.now());
            let wait: Option<&dyn Fn() -> Instant> = if may_wait { Some(&time) } else { None };
            let mut posted = Ok(());
            consumer.offer((event, &stated), now, wait, &mut |offered| match *offered {
                Offered::Queued { not_before, priority, expires } => {
                    pushed.queued += 1;
                    let at = (not_before, priority, expires);
                    posted = posted.and(post(consumer, place, via, at, (now, &mut released)));
                }
                Offered::ToBePulled | Offered::InPlace => pushed.queued += 1,
                Offered::Due(due) => wake_at(consumer, place, due),
                Offered::Discarded => pushed.discarded += 1,
                Offered::Unwanted => {}
            });
            if let Err(InReplay) = posted {
                consumer.forget_waiting();
            }
        }
        Ok((pushed, kept))
    }

    /// An event goes on to nobody, which is kept if it is to be.
    #[cold]
    fn keep_not_passed_on(
        &self,
        via: &impl Post,
        event: &Event,
        not_passed_on: NotPassedOn,
    ) -> Result<Pushed, PushError> {
        let answer = PushAnswer::from(&not_passed_on);
        let now = match not_passed_on {
            NotPassedOn::LeftOut => Ok(Pushed::default()),
            NotPassedOn::Refused(error) => Err(error),
        };
        if !via.services().is_some_and(|services| services.keeps_events()) {
            return now;
        }
        let number = || self.shared.publications.of(event.event_type());
        // A type that was not offered has none if it was refused whenever it was pushed; in a replay it may not be.
        let publication = number().or_else(|| {
            self.ask_for_numbers(std::slice::from_ref(event.event_type()));
            number()
        });
        match publication {
            Some(publication) => self.keep(via, publication, event, (answer, now)),
            None => now,
        }
    }

    /// Has recorded what a job pushes, or its header alone if nobody has said how the rest becomes bytes, and how that is answered. Returns the answer: in a replay,
    /// that of then. Does not allocate.
    #[cold]
    fn keep(
        &self,
        via: &impl Post,
        publication: PublicationId,
        event: &Event,
        (answer, now): (PushAnswer, Result<Pushed, PushError>),
    ) -> Result<Pushed, PushError> {
        let Some(services) = via.services() else { return now };
        let mut bytes = [0; PUSH_BYTES];
        let length = encode_push(&self.shared.publications.kinds, event, answer, &mut bytes);
        services.keep(KeptEvent::Pushed(publication), length.map(|length| &bytes[..length]));
        match services.answer_push(answer) {
            same if same == answer => now,
            then => answered_again(then, now),
        }
    }

    /// Whether a consumer of this type may say by a mapping filter how long events are worth something, whatever they state.
    fn may_last_longer(&self, number: usize) -> bool {
        let entry = self.entries[number].as_ref().expect("it has been found");
        entry.subscribers.load().iter().any(|consumer| consumer.maps_lifetimes())
    }

    /// Whether the event, by its own timeout or what is set for its supplier, is worth something for less time than its filters and those of its admin may
    /// take. Whether consumers heed its stop time is not known here.
    fn expires_in_filters(&self, event: &Event, stated: &Stated) -> bool {
        let timeout = stated.timeout(event).filter(|timeout| *timeout > Duration::ZERO);
        let filters = &self.handle.state.filters;
        timeout.is_some_and(|timeout| timeout < together([filters.longest(), self.admin.filters.longest()]))
    }

    /// Pushes events, one after the other; of a sequence that is refused from some event on, those before it are pushed.
    ///
    /// # Errors
    /// What became of those before it, and why the next one was not pushed.
    pub fn push_sequence(&mut self, via: impl Post, events: &[Event]) -> Result<Pushed, (Pushed, PushError)> {
        self.push_all(via, events)
    }

    /// Pushes the events of an iterator, one after the other, until it ends or one is refused, which nobody has then. Where the iterator waits for events,
    /// this is how a thread of the program pulls them from a supplier (`pull`).
    ///
    /// # Errors
    /// What became of those before it, and why the next one was not pushed.
    pub fn push_all(
        &mut self,
        mut via: impl Post,
        events: impl IntoIterator<Item: Borrow<Event>>,
    ) -> Result<Pushed, (Pushed, PushError)> {
        let mut sum = Pushed::default();
        for event in events {
            match self.push(&mut via, event.borrow()) {
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

    /// Finds who has subscribed to a type that the supplier has not offered itself.
    fn find(&mut self, event_type: &EventType) -> Result<(), PushError> {
        let number = event_type.number();
        if number >= MOST_TYPES {
            return Err(PushError::TooManyTypes);
        }
        let handle = self.handle.clone();
        let mut topology = handle.shared.topology();
        // What its admin has offered for it counts already.
        let offered = topology.suppliers.get(&self.number).map(|offering| &offering.types);
        let is_offered = |number: usize| offered.is_some_and(|types| types.contains(&(number as u32)));
        if !is_offered(number) {
            let found = self.entries.iter().enumerate().filter(|(_, entry)| entry.is_some());
            let others = found.filter(|(number, _)| !is_offered(*number)).count();
            handle.shared.properties().allow_types(offered.map_or(0, BTreeSet::len) + others + 1)?;
        }
        self.find_all(&mut topology, std::slice::from_ref(event_type));
        drop(topology);
        self.ask_for_numbers(std::slice::from_ref(event_type));
        Ok(())
    }

    /// The same of several types, those among the first [`MOST_TYPES`] of the process.
    fn find_all(&mut self, topology: &mut Topology, types: &[EventType]) {
        for event_type in types.iter().filter(|one| one.number() < MOST_TYPES) {
            let number = event_type.number();
            if self.entries.len() <= number {
                self.entries.resize(number + 1, None);
            }
            self.entries[number] = Some(topology.entry(event_type));
        }
    }

    /// These types are to have numbers in records.
    fn ask_for_numbers(&self, types: &[EventType]) {
        if !self.is_described {
            let Shared { publications, place, .. } = &*self.handle.shared;
            publications.ask(place, types);
        }
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
        let change = OfferChange::new(added, removed);
        let handle = self.handle.clone();
        let properties = handle.shared.properties();
        let mut topology = handle.shared.topology();
        let Some(offering) = topology.suppliers.get(&self.number) else { return Ok(Changed::default()) };
        properties.allow_types(change.apply(&offering.types).len())?;
        let changed = topology.change_offers(&[self.number], &change);
        self.find_all(&mut topology, &change.added);
        drop(topology);
        self.ask_for_numbers(&change.added);
        handle.shared.tell(About::Offers, &changed);
        Ok(changed)
    }
}

impl Drop for Supplier {
    fn drop(&mut self) {
        let SupplierHandle { shared, number, state, .. } = &self.handle;
        let mut topology = shared.topology();
        let withdrawn = topology.withdraw(*number);
        topology.removed.remove(number);
        topology.pushed_before += state.pushed.load(Ordering::Relaxed);
        drop(topology);
        state.is_removed.store(true, Ordering::Relaxed);
        // Nobody can have it listen any more.
        shared.listen_no_more((*number, About::Subscriptions));
        if let Some((_, changed)) = withdrawn {
            shared.tell(About::Offers, &changed);
        }
    }
}

/// A supplier that is connected, or was (the standard's `ProxyConsumer`): of one's own, or [found](crate::EventChannel::supplier_of) by its number. Dropping
/// it changes nothing; only a [`Supplier`] pushes. Once the supplier is disconnected nothing that is set has an effect.
#[derive(Clone)]
pub struct SupplierHandle {
    shared: Arc<Shared>,
    number: u32,
    name: Arc<str>,
    state: Arc<SupplierState>,
}

impl fmt::Debug for SupplierHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupplierHandle").field("name", &self.name).finish_non_exhaustive()
    }
}

impl SupplierHandle {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The supplier of this number, if it is connected, and has this admin if one is asked for.
    pub(crate) fn find(shared: &Arc<Shared>, number: u32, admin: Option<u32>) -> Option<Self> {
        let topology = shared.topology();
        let found = topology.suppliers.get(&number);
        let found = found.filter(|one| admin.is_none_or(|admin| admin == one.admin))?;
        let (name, state) = (Arc::clone(&found.name), Arc::clone(&found.state));
        Some(SupplierHandle { shared: Arc::clone(shared), number, name, state })
    }

    /// Its number in the channel.
    pub fn id(&self) -> u32 {
        self.number
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of its admin, while it is connected (`MyAdmin`).
    pub fn admin(&self) -> Option<u32> {
        self.shared.topology().suppliers.get(&self.number).map(|offering| offering.admin)
    }

    /// Whether it is connected: neither dropped nor removed.
    pub fn is_connected(&self) -> bool {
        !self.state.is_removed.load(Ordering::Relaxed) && !self.shared.is_closed.load(Ordering::Relaxed)
    }

    /// Disconnects it, whoever has it: its pushes are refused from then on (`disconnect_*`). False if it is not connected any more.
    pub fn disconnect(&self) -> bool {
        self.shared.remove_supplier(self.number)
    }

    /// The types that it offers.
    pub fn offered_types(&self) -> Vec<EventType> {
        let topology = self.shared.topology();
        let Some(offering) = topology.suppliers.get(&self.number) else { return Vec::new() };
        let all = topology.types().map(|entry| &entry.event_type);
        all.filter(|one| offering.types.contains(&(one.number() as u32))).cloned().collect()
    }

    /// Events that it has pushed.
    pub fn pushed(&self) -> u64 {
        self.state.pushed.load(Ordering::Relaxed)
    }

    /// Events that its own filters, or those of its admin, did not let through, and constraints that could not be evaluated.
    pub fn filtered(&self) -> (u64, u64) {
        let SupplierState { filtered, filter_errors, .. } = &*self.state;
        (filtered.load(Ordering::Relaxed), filter_errors.load(Ordering::Relaxed))
    }

    /// Events that were not pushed since they were worth something for less time than its own filters and those of its admin may take: they have expired.
    pub fn expired(&self) -> u64 {
        self.state.expired.load(Ordering::Relaxed)
    }

    /// Its own filters, to add some and to remove them.
    pub fn filters(&self) -> FilterAdmin<'_> {
        FilterAdmin::new(&self.shared, Owner::Supplier(&self.state.filters))
    }

    /// What counts for it.
    pub fn qos(&self) -> Qos {
        self.state.settings.load().qos.clone()
    }

    /// Sets properties of it, all or none: for events that are pushed after that.
    ///
    /// # Errors
    /// Every problem.
    pub fn set_qos(&self, settings: &QosSettings) -> Result<(), QosProblems> {
        // Its lock lets one change after the other, so that none undoes what another one has set.
        let topology = self.shared.topology();
        let qos = stated::with(&self.qos(), settings, Level::Proxy)?;
        let former = self.state.settings.store(SupplierSettings::new(qos));
        drop(topology);
        drop(former);
        Ok(())
    }

    /// Whether these could be set, and what else could then: of each property its name and the values that it may have.
    ///
    /// # Errors
    /// Every problem.
    pub fn validate_qos(&self, settings: &QosSettings) -> Result<Vec<(PropertyName, String)>, QosProblems> {
        Ok(stated::available(&stated::with(&self.qos(), settings, Level::Proxy)?, Level::Proxy))
    }

    /// Whether events with this header are taken (`validate_event_qos`); the others are [refused](PushError::Qos).
    ///
    /// # Errors
    /// What there is not.
    #[inline]
    pub fn validate_event_qos(&self, header: &Header) -> Result<(), QosProblem> {
        match header.reliability {
            None | Some(Reliability::BestEffort) => Ok(()),
            Some(Reliability::Persistent) => Err(PropertyName::EventReliability.problem(
                QosError::UnsupportedValue,
                "nothing is kept when the process ends; it is BestEffort",
            )),
        }
    }

    /// Who it is where it is told of something.
    fn owner(&self) -> (u32, About) {
        (self.number, About::Subscriptions)
    }

    /// The types that consumers have subscribed to, if `mode` says so, and whether
    /// [`on_subscription_change`](Self::on_subscription_change) is called from now on (`obtain_subscription_types`).
    pub fn obtain_subscription_types(&self, mode: ObtainInfoMode) -> Vec<EventType> {
        self.shared.obtain(self.owner(), mode)
    }

    /// Calls `listener`, from whichever thread it is that changes something, when a type gains its first consumer or loses its last
    /// (`subscription_change`). If it panics, the supplier is disconnected.
    pub fn on_subscription_change(&self, listener: impl Fn(&Changed) + Send + Sync + 'static) {
        self.shared.listen(self.owner(), Arc::new(listener));
    }

    /// The consumers that have subscribed to types that it offers.
    pub fn partners(&self) -> Vec<Partner> {
        self.shared.topology().partners(self.number).into_values().collect()
    }

    /// Calls `listener` with the consumers that there are, if any, and from whichever thread it is that changes something when others come, go, or
    /// subscribe to other types. If it panics, the supplier is disconnected.
    pub fn on_partners(&self, listener: impl Fn(&PartnersChanged) + Send + Sync + 'static) {
        self.shared.listen_to_partners(self.owner(), Arc::new(listener));
    }
}

/// Why an event goes on to nobody.
enum NotPassedOn {
    /// It has expired, or filters of its supplier have not let it through.
    LeftOut,
    Refused(PushError),
}

impl From<PushError> for NotPassedOn {
    fn from(error: PushError) -> Self {
        NotPassedOn::Refused(error)
    }
}

impl From<&NotPassedOn> for PushAnswer {
    fn from(not_passed_on: &NotPassedOn) -> Self {
        match not_passed_on {
            NotPassedOn::LeftOut => PushAnswer::LeftOut,
            NotPassedOn::Refused(error) => match error {
                PushError::Closed => PushAnswer::Closed,
                PushError::NotConnected => PushAnswer::NotConnected,
                PushError::Rejected => PushAnswer::Rejected,
                PushError::TooManyTypes => PushAnswer::TooManyTypes,
                PushError::Qos(_) | PushError::Limit(_) | PushError::Header(_) => PushAnswer::Unfit,
            },
        }
    }
}

impl From<Pushed> for PushAnswer {
    fn from(Pushed { subscribed, queued, discarded }: Pushed) -> Self {
        let number = |consumers: usize| u32::try_from(consumers).unwrap_or(u32::MAX);
        PushAnswer::Pushed {
            subscribed: number(subscribed),
            queued: number(queued),
            discarded: number(discarded),
        }
    }
}

/// What a push is answered in a replay that was answered so then; what comes of it now is what counts where it was refused for what it is itself.
fn answered_again(then: PushAnswer, now: Result<Pushed, PushError>) -> Result<Pushed, PushError> {
    match then {
        PushAnswer::Pushed { subscribed, queued, discarded } => Ok(Pushed {
            subscribed: subscribed as usize,
            queued: queued as usize,
            discarded: discarded as usize,
        }),
        PushAnswer::LeftOut => Ok(Pushed::default()),
        PushAnswer::Unfit => now,
        PushAnswer::Closed => Err(PushError::Closed),
        PushAnswer::NotConnected => Err(PushError::NotConnected),
        PushAnswer::Rejected => Err(PushError::Rejected),
        PushAnswer::TooManyTypes => Err(PushError::TooManyTypes),
    }
}
