//! A channel, and the factory that makes channels.

use crate::admin::{ConsumerAdmin, SupplierAdmin};
use crate::connect::ConsumerBuilder;
use crate::connected::ConsumerHandle;
use crate::consumer::{AdminFilters, Consumer};
use crate::event::{Content, Event, EventType};
use crate::filter::GroupOperator;
use crate::limits::AdminProperties;
use crate::place::Place;
use crate::pool::ThreadPool;
use crate::posting::{When, begin};
use crate::qos::{Level, PropertyName, Qos, QosProblems, QosSettings};
use crate::shared::{About, Shared, Unbound};
use crate::stated;
use crate::statistics::{ChannelStatistics, ConsumerStatistics};
use crate::supplier::{SupplierBuilder, SupplierHandle};
use crate::topology::{ConsumerGroup, SupplierGroup, Topology};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use talea_linux::replaced::prepare_thread;
use talea_operation::{OutputKind, Workplace, on_each_thread};
use talea_time::{Duration, Instant};
use thiserror::Error;

/// Events of a kind that is never bytes cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "events {event_type} are of a kind that is never bytes; say how: `OutputKind::any().plain()`, or `serialized()`"
)]
pub struct NeverBytes {
    /// Their type.
    pub event_type: String,
}

/// A channel: suppliers push events into it, and each consumer has those that it has subscribed to and lets through. All copies are the same one.
#[derive(Clone)]
pub struct EventChannel(pub(crate) Arc<Shared>);

impl fmt::Debug for EventChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventChannel").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl EventChannel {
    /// Its number in its factory.
    pub fn id(&self) -> u32 {
        self.0.number
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The admin of consumers that is always there (`default_consumer_admin`). It has the channel's quality of service of when it is first asked for.
    pub fn consumer_admin(&self) -> ConsumerAdmin {
        ConsumerAdmin::of(&self.0, 0).expect("it is always there")
    }

    /// The admin of suppliers that is always there (`default_supplier_admin`). It has the channel's quality of service of when it is first asked for.
    pub fn supplier_admin(&self) -> SupplierAdmin {
        SupplierAdmin::of(&self.0, 0).expect("it is always there")
    }

    /// A group of consumers that share filters, which go with their own by `operator`, and have this quality of service where theirs says
    /// nothing (`new_for_consumers`).
    ///
    /// # Errors
    /// Every problem with the settings.
    pub fn new_consumer_admin(
        &self,
        operator: GroupOperator,
        settings: &QosSettings,
    ) -> Result<ConsumerAdmin, QosProblems> {
        let mut topology = self.0.topology();
        let qos = topology.qos.with(settings, Level::Admin)?;
        let number = topology.number();
        let group = ConsumerGroup::new(Arc::new(AdminFilters::new(operator)), qos);
        topology.consumer_admins.insert(number, group);
        self.0.show_members(&mut topology);
        Ok(ConsumerAdmin { shared: Arc::clone(&self.0), number })
    }

    /// A group of suppliers that share filters (`new_for_suppliers`), and have this quality of service where theirs says nothing.
    ///
    /// # Errors
    /// Every problem with the settings.
    pub fn new_supplier_admin(
        &self,
        operator: GroupOperator,
        settings: &QosSettings,
    ) -> Result<SupplierAdmin, QosProblems> {
        let mut topology = self.0.topology();
        let qos = stated::with(&topology.qos, settings, Level::Admin)?;
        let number = topology.number();
        let group = SupplierGroup::new(Arc::new(AdminFilters::new(operator)), qos);
        topology.supplier_admins.insert(number, group);
        self.0.show_members(&mut topology);
        Ok(SupplierAdmin { shared: Arc::clone(&self.0), number })
    }

    /// The admin of this number, if there is one.
    pub fn consumer_admin_of(&self, number: u32) -> Option<ConsumerAdmin> {
        ConsumerAdmin::of(&self.0, number)
    }

    /// The admin of this number, if there is one.
    pub fn supplier_admin_of(&self, number: u32) -> Option<SupplierAdmin> {
        SupplierAdmin::of(&self.0, number)
    }

    /// The numbers of all admins of consumers that are there (`get_all_consumeradmins`).
    pub fn consumer_admins(&self) -> Vec<u32> {
        let topology = self.0.topology();
        admins(topology.consumer_admins.iter().map(|(number, one)| (number, one.is_destroyed)))
    }

    /// The numbers of all admins of suppliers that are there (`get_all_supplieradmins`).
    pub fn supplier_admins(&self) -> Vec<u32> {
        let topology = self.0.topology();
        admins(topology.supplier_admins.iter().map(|(number, one)| (number, one.is_destroyed)))
    }

    /// The consumer of this number, whoever has it, if it is connected.
    pub fn consumer_of(&self, number: u32) -> Option<ConsumerHandle> {
        ConsumerHandle::find(&self.0, number, None)
    }

    /// The supplier of this number, whoever has it, if it is connected.
    pub fn supplier_of(&self, number: u32) -> Option<SupplierHandle> {
        SupplierHandle::find(&self.0, number, None)
    }

    /// Events of this type carry a `T` of this kind, from now on: how it becomes bytes, so that runs that keep values record what consumers are handed and jobs push,
    /// and replays hand it to the same code again. Structured events need no word of this.
    ///
    /// # Errors
    /// Values of this kind are never bytes.
    pub fn carries<T: Content + Default>(
        &self,
        event_type: &EventType,
        kind: &OutputKind<T>,
    ) -> Result<(), NeverBytes> {
        let codec = kind.codec().ok_or_else(|| NeverBytes { event_type: event_type.to_string() })?;
        self.0.publications.kinds.set_codec(event_type, codec);
        Ok(())
    }

    /// Begins to connect a consumer.
    pub fn consumer(&self, name: &str) -> ConsumerBuilder {
        self.consumer_admin().consumer(name)
    }

    /// Begins to connect a supplier.
    pub fn supplier(&self, name: &str) -> SupplierBuilder {
        self.supplier_admin().supplier(name)
    }

    /// The quality of service that admins have from now on when they are made.
    pub fn qos(&self) -> Qos {
        self.0.topology().qos.clone()
    }

    /// Sets properties of it, all or none.
    ///
    /// # Errors
    /// Every problem.
    pub fn set_qos(&self, settings: &QosSettings) -> Result<(), QosProblems> {
        let mut topology = self.0.topology();
        let qos = topology.qos.with(settings, Level::Channel)?;
        self.0.load.discard_by(qos.discard);
        topology.set_qos(qos);
        Ok(())
    }

    /// The lanes in which consumers have their events that are connected from now on, unless they or their admins have lanes of their own.
    ///
    /// # Errors
    /// Everything that cannot be; nothing has changed.
    pub fn set_thread_pool(&self, pool: ThreadPool) -> Result<(), QosProblems> {
        pool.check()?;
        self.0.topology().pool = Some(pool);
        Ok(())
    }

    /// Whether these could be set, and what else could: of each property its name and the values that it may have.
    ///
    /// # Errors
    /// Every problem.
    pub fn validate_qos(&self, settings: &QosSettings) -> Result<Vec<(PropertyName, String)>, QosProblems> {
        Ok(self.0.topology().qos.with(settings, Level::Channel)?.available(Level::Channel))
    }

    /// The channel's own properties.
    pub fn admin_properties(&self) -> AdminProperties {
        self.0.properties()
    }

    /// Sets them. Those who are connected, and what waits, stay.
    pub fn set_admin_properties(&self, properties: AdminProperties) {
        self.0.set_properties(properties);
    }

    /// The types that consumers have subscribed to and somebody has named, without those of which no consumer wants any
    /// (`obtain_subscription_types`).
    pub fn subscribed_types(&self) -> Vec<EventType> {
        self.0.types(About::Subscriptions)
    }

    /// The types that suppliers have said that they push (`obtain_offered_types`).
    pub fn offered_types(&self) -> Vec<EventType> {
        self.0.types(About::Offers)
    }

    /// What is counted, as of `now`.
    pub fn statistics(&self, now: Instant) -> ChannelStatistics {
        let named = |types: Vec<EventType>| {
            let mut names: Vec<String> = types.iter().map(EventType::to_string).collect();
            names.sort_unstable();
            names
        };
        let (offered_types, subscribed_types) = (named(self.offered_types()), named(self.subscribed_types()));
        // What has expired is dropped, which is not done while the topology is locked.
        let oldest = self.connected().iter().filter_map(|consumer| consumer.oldest(now)).min();
        let topology = self.0.topology();
        let consumers = topology.consumers.values().map(|subscribed| {
            let consumer = &subscribed.consumer;
            (consumer.name.to_string(), consumer.queued(), consumer.statistics())
        });
        ChannelStatistics {
            consumers: consumers.collect(),
            suppliers: topology.suppliers.values().map(|supplier| supplier.name.to_string()).collect(),
            offered_types,
            subscribed_types,
            consumer_admins: admins(
                topology.consumer_admins.iter().map(|(number, one)| (number, one.is_destroyed)),
            ),
            supplier_admins: admins(
                topology.supplier_admins.iter().map(|(number, one)| (number, one.is_destroyed)),
            ),
            queued: topology.consumers.values().map(|one| one.consumer.queued()).sum(),
            created: self.0.created.get().copied(),
            pushed: topology.pushed(),
            rejected: self.0.rejected.load(Ordering::Relaxed),
            left_out: self.0.left_out.load(Ordering::Relaxed),
            expired: self.0.expired.load(Ordering::Relaxed),
            oldest: oldest.map_or(Duration::ZERO, |oldest| now - oldest),
        }
    }

    /// Bytes of the events that wait, each once for each consumer.
    pub fn queued_bytes(&self, now: Instant) -> usize {
        // What users' types say of themselves is asked without a lock.
        let waiting: Vec<Event> =
            self.connected().iter().flat_map(|consumer| consumer.waiting(now)).collect();
        waiting.iter().map(Event::bytes).sum()
    }

    /// The consumers that are connected, for what is not done while the topology is locked.
    fn connected(&self) -> Vec<Arc<Consumer>> {
        self.0.topology().consumers.values().map(|one| Arc::clone(&one.consumer)).collect()
    }

    /// Whether a consumer or a supplier is connected.
    pub fn is_active(&self) -> bool {
        let topology = self.0.topology();
        !topology.consumers.is_empty() || !topology.suppliers.is_empty()
    }

    /// The numbers and names of connected consumers.
    pub fn consumers(&self) -> Vec<(u32, String)> {
        let topology = self.0.topology();
        topology.consumers.iter().map(|(number, one)| (*number, one.consumer.name.to_string())).collect()
    }

    /// The numbers and names of connected suppliers.
    pub fn suppliers(&self) -> Vec<(u32, String)> {
        let topology = self.0.topology();
        topology.suppliers.iter().map(|(number, one)| (*number, one.name.to_string())).collect()
    }

    /// Disconnects the consumer of this number, whoever has it, and discards what waits for it. False if there is none.
    pub fn remove_consumer(&self, number: u32) -> bool {
        self.0.remove_consumer(number)
    }

    /// Disconnects the supplier of this number, whoever has it: its pushes are refused from then on. False if there is none.
    pub fn remove_supplier(&self, number: u32) -> bool {
        self.0.remove_supplier(number)
    }

    /// What became of the events that came to the consumer of this number, if it is connected.
    pub fn consumer_statistics(&self, number: u32) -> Option<ConsumerStatistics> {
        self.0.topology().consumers.get(&number).map(|subscribed| subscribed.consumer.statistics())
    }
}

/// Why channels do not deliver.
#[derive(Debug, Error)]
pub enum BindError {
    /// The factory is bound to another run.
    #[error("the factory delivers in another run; make one for each run")]
    Bound,
    /// The work of a consumer cannot be declared.
    #[error("the deliveries to consumer \"{consumer}\" cannot be declared as work: {source}")]
    Work {
        /// Its name.
        consumer: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The work of a supplier that is pulled cannot be declared.
    #[error("the turns of supplier \"{supplier}\" cannot be declared as work: {source}")]
    Pull {
        /// Its name.
        supplier: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The numbers of admins that are there.
fn admins<'a>(all: impl Iterator<Item = (&'a u32, bool)>) -> Vec<u32> {
    all.filter(|(_, is_destroyed)| !is_destroyed).map(|(number, _)| *number).collect()
}

/// Makes channels, and finds them by their numbers. All copies are the same one.
#[derive(Clone, Default)]
pub struct EventChannelFactory {
    place: Place,
    made: Arc<Made>,
}

/// The channels of a factory.
#[derive(Default)]
struct Made {
    channels: Mutex<BTreeMap<u32, EventChannel>>,
    /// The number of the next channel: no number is given twice.
    next: AtomicU32,
}

impl fmt::Debug for EventChannelFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventChannelFactory")
            .field("channels", &self.channels().len())
            .finish_non_exhaustive()
    }
}

impl EventChannelFactory {
    /// A factory whose channels deliver from when it is [bound](Self::bind) on. Until then events wait, as many as may.
    pub fn new() -> Self {
        EventChannelFactory::default()
    }

    /// A factory whose channels deliver by work that is declared and posted here.
    pub fn on(workplace: impl Workplace + 'static) -> Self {
        let factory = EventChannelFactory::new();
        factory.place.set(Arc::new(workplace));
        factory
    }

    /// From now on channels deliver by work that is declared and posted here; that of consumers which are connected already, and of suppliers that are
    /// pulled, is declared now.
    ///
    /// # Errors
    /// It is bound already, or work cannot be declared; then those from this one on have no events, and are not asked for any.
    pub fn bind(&self, workplace: impl Workplace + 'static) -> Result<(), BindError> {
        self.bind_shared(Arc::new(workplace))
    }

    /// The same with a workplace that others have, too.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub fn bind_shared(&self, workplace: Arc<dyn Workplace>) -> Result<(), BindError> {
        if !self.place.set(workplace) {
            return Err(BindError::Bound);
        }
        // What is begun may be given up meanwhile, and drop code of the program: not under the lock.
        let channels: Vec<EventChannel> = self.channels().values().cloned().collect();
        for channel in channels {
            channel.0.note_created();
            channel.0.publications.ask_again(&channel.0.place);
            channel.0.show_members(&mut channel.0.topology());
            for consumer in channel.connected() {
                let named = |source| BindError::Work { consumer: consumer.name.to_string(), source };
                begin(&consumer, &channel.0, When::Bound).map_err(named)?;
            }
            let unbound = std::mem::take(&mut *channel.0.unbound());
            for Unbound { name, begin, .. } in unbound {
                begin().map_err(|source| BindError::Pull { supplier: name.into(), source })?;
            }
        }
        Ok(())
    }

    /// What the consumers that are connected, and the suppliers that are to be pulled, need of a workplace: operations, and jobs of each that wait.
    pub fn needs(&self) -> (usize, usize) {
        let (mut operations, mut jobs) = (0, 0);
        for channel in self.channels().values() {
            for subscribed in channel.0.topology().consumers.values() {
                let needed = subscribed.consumer.operations();
                operations += needed;
                jobs = jobs.max(if needed > 0 { subscribed.consumer.room() } else { 0 });
            }
            let pulled = channel.0.unbound().len();
            (operations, jobs) = (operations + pulled, jobs.max(pulled.min(1)));
        }
        (operations, jobs)
    }

    fn channels(&self) -> MutexGuard<'_, BTreeMap<u32, EventChannel>> {
        self.made.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a channel with this quality of service and these properties of its own (`create_channel`).
    ///
    /// # Errors
    /// Every problem with the settings.
    pub fn create(
        &self,
        name: &str,
        settings: &QosSettings,
        properties: AdminProperties,
    ) -> Result<EventChannel, QosProblems> {
        on_each_thread(prepare_thread);
        let qos = Qos::default().with(settings, Level::Channel)?;
        let mut channels = self.channels();
        let number = self.made.next.fetch_add(1, Ordering::Relaxed);
        let shared = Shared::new(number, name, self.place.clone(), Topology::new(qos), properties);
        let channel = EventChannel(Arc::new(shared));
        channels.insert(number, channel.clone());
        Ok(channel)
    }

    /// The same, with what holds where nothing is set.
    pub fn create_with_defaults(&self, name: &str) -> EventChannel {
        let channel = self.create(name, &QosSettings::new(), AdminProperties::default());
        channel.expect("nothing is set that could be wrong")
    }

    /// The channel of this number (`get_event_channel`).
    pub fn channel(&self, number: u32) -> Option<EventChannel> {
        self.channels().get(&number).cloned()
    }

    /// The numbers of all channels (`get_all_channels`).
    pub fn all(&self) -> Vec<u32> {
        self.channels().keys().copied().collect()
    }

    /// Ends a channel: all who are connected are disconnected, and what waits is discarded; pushes and connections are refused from then on. False
    /// if there is none of this number.
    pub fn destroy(&self, number: u32) -> bool {
        let Some(channel) = self.channels().remove(&number) else { return false };
        let consumers: Vec<u32> = channel.0.close();
        consumers.into_iter().for_each(|consumer| _ = channel.0.remove_consumer(consumer));
        true
    }
}
