//! The handles of connected consumers.

use crate::attached::{FilterAdmin, MappingAdmin, MappingOwner, Owner};
use crate::changes::SubscriptionChange;
use crate::consumer::{Connection, Consumer, ManyGone, SerialCode};
use crate::delivery::Delivery;
use crate::event::EventType;
use crate::gone::Gone;
use crate::partners::{Partner, PartnersChanged};
use crate::posting::{InReplay, offer_retained, post};
use crate::qos::{Level, PropertyName, Qos, QosProblems, QosSettings};
use crate::shared::{About, ObtainInfoMode, Shared};
use crate::statistics::ConsumerStatistics;
use crate::topology::Changed;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_event::{Outcome, TypePattern};
use talea_operation::{JobContext, Post};
use talea_time::{Duration, Instant};
use thiserror::Error;

/// A connected consumer (the standard's `ProxySupplier`, seen from its consumer). Dropping it disconnects it, and discards what waits for it. What can be
/// asked and set is that of its [`ConsumerHandle`].
#[must_use = "dropping it disconnects the consumer"]
pub struct ConnectedConsumer(ConsumerHandle);

impl fmt::Debug for ConnectedConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectedConsumer").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl std::ops::Deref for ConnectedConsumer {
    type Target = ConsumerHandle;

    fn deref(&self) -> &ConsumerHandle {
        &self.0
    }
}

/// A consumer that is connected, or was (the standard's `ProxySupplier`): of one's own, or [found](crate::EventChannel::consumer_of) by its number. Dropping
/// it changes nothing. Once the consumer is disconnected nothing that is set has an effect, and the counts stay as they are.
///
/// The code of a consumer that has a handle of itself keeps it in memory.
#[derive(Clone)]
pub struct ConsumerHandle {
    shared: Arc<Shared>,
    consumer: Arc<Consumer>,
}

impl fmt::Debug for ConsumerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerHandle").field("name", &self.consumer.name).finish_non_exhaustive()
    }
}

/// The consumer, or the supplier that is pulled, is not in the state in which that can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotNow {
    /// It is active (`ConnectionAlreadyActive`).
    #[error("it is not suspended")]
    AlreadyActive,
    /// It is suspended (`ConnectionAlreadyInactive`).
    #[error("it is suspended")]
    AlreadySuspended,
    /// It is disconnected: it was removed, or its code has failed (`NotConnected`).
    #[error("it is not connected any more")]
    NotConnected,
}

/// Why a consumer has no other code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotReconnected {
    /// It is disconnected, for it was removed or its code has failed: what waited is gone.
    #[error("the consumer is not connected any more; connect another one")]
    NotConnected,
    /// It has its events otherwise: one at a time, several at once, by several lanes at once, or by taking them itself.
    #[error(
        "the consumer has its events in another way than this code would; disconnect it, and connect another one"
    )]
    Otherwise,
}

impl ConsumerHandle {
    /// The consumer of this number, if it is connected, and has this admin if one is asked for.
    pub(crate) fn find(shared: &Arc<Shared>, number: u32, admin: Option<u32>) -> Option<Self> {
        let topology = shared.topology();
        let found = topology.consumers.get(&number);
        let found = found.filter(|one| admin.is_none_or(|admin| admin == one.admin))?;
        Some(ConsumerHandle { shared: Arc::clone(shared), consumer: Arc::clone(&found.consumer) })
    }

    /// Its number in the channel.
    pub fn id(&self) -> u32 {
        self.consumer.number
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.consumer.name
    }

    /// The number of its admin, while it is connected (`MyAdmin`).
    pub fn admin(&self) -> Option<u32> {
        self.shared.topology().consumers.get(&self.consumer.number).map(|subscribed| subscribed.admin)
    }

    /// What it has subscribed to.
    pub fn subscriptions(&self) -> Vec<TypePattern> {
        let topology = self.shared.topology();
        let own = topology.consumers.get(&self.consumer.number);
        own.map(|subscribed| subscribed.patterns.iter().cloned().collect()).unwrap_or_default()
    }

    /// Disconnects it, whoever has it, and discards what waits for it (`disconnect_*`). False if it is not connected any more.
    pub fn disconnect(&self) -> bool {
        self.shared.remove_consumer(self.consumer.number)
    }

    /// Who it is where it is told of something.
    fn owner(&self) -> (u32, About) {
        (self.consumer.number, About::Offers)
    }

    /// Whether it has its events.
    pub fn connection(&self) -> Connection {
        self.consumer.connection()
    }

    /// It has no events from now on; they wait, as many as may (`suspend_connection`). A delivery that has begun ends.
    ///
    /// # Errors
    /// It is suspended, or not connected.
    pub fn suspend(&self) -> Result<(), NotNow> {
        match self.consumer.change(Connection::Active, Connection::Suspended) {
            true => Ok(()),
            false if self.connection() == Connection::Suspended => Err(NotNow::AlreadySuspended),
            false => Err(NotNow::NotConnected),
        }
    }

    /// It has its events again (`resume_connection`): those that wait are delivered.
    ///
    /// # Errors
    /// It is not suspended, or not connected.
    pub fn resume(&self, mut via: impl Post) -> Result<(), NotNow> {
        if !self.consumer.change(Connection::Suspended, Connection::Active) {
            return Err(match self.connection() {
                Connection::Active => NotNow::AlreadyActive,
                _ => NotNow::NotConnected,
            });
        }
        self.post_all(&mut via);
        Ok(())
    }

    /// It is called with this code from now on (`connect_*` of what is connected, where `ALLOW_RECONNECT` says so): its number, subscriptions, filters,
    /// quality of service and statistics stay, and the new code has what waits. A call that has begun ends first.
    ///
    /// # Errors
    /// It has not been connected by [`connect`](crate::ConsumerBuilder::connect), or is not any more.
    ///
    /// # Panics
    /// If it is called from its own code.
    pub fn reconnect(
        &self,
        mut code: impl FnMut(&Delivery) -> Outcome + Send + 'static,
    ) -> Result<(), NotReconnected> {
        if self.consumer.batch_room() != 1 {
            return Err(NotReconnected::Otherwise);
        }
        self.call_with(Box::new(move |events, _| code(&events[0])))
    }

    /// The same of one that has been connected by [`connect_sequence`](crate::ConsumerBuilder::connect_sequence), with code that is told of its job.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn reconnect_sequence(
        &self,
        code: impl FnMut(&[Delivery], &JobContext<'_>) -> Outcome + Send + 'static,
    ) -> Result<(), NotReconnected> {
        self.call_with(Box::new(code))
    }

    /// The same of one that has been connected by [`connect_concurrent`](crate::ConsumerBuilder::connect_concurrent). Calls that have begun end with the
    /// former code, which is dropped when nobody has it any more, by who replaces the next one or with the consumer at the latest.
    ///
    /// # Errors
    /// As there.
    pub fn reconnect_concurrent(
        &self,
        code: impl Fn(&Delivery, &JobContext<'_>) -> Outcome + Send + Sync + 'static,
    ) -> Result<(), NotReconnected> {
        self.reconnected(|consumer| consumer.call_concurrently_with(Box::new(code)))
    }

    fn call_with(&self, code: SerialCode) -> Result<(), NotReconnected> {
        self.reconnected(|consumer| consumer.call_with(code))
    }

    fn reconnected(&self, replace: impl FnOnce(&Consumer) -> bool) -> Result<(), NotReconnected> {
        if self.connection() == Connection::Closed {
            return Err(NotReconnected::NotConnected);
        }
        if replace(&self.consumer) { Ok(()) } else { Err(NotReconnected::Otherwise) }
    }

    /// One job for each event that waits, in its lane.
    fn post_all(&self, via: &mut impl Post) {
        let now = via.now();
        for priority in self.consumer.priorities(now) {
            let at = (now, priority, Instant::MAX);
            if let Err(InReplay) = post(&self.consumer, &self.shared.place, via, at, (now, &mut None)) {
                self.consumer.forget_waiting();
            }
        }
        self.consumer.look_again();
    }

    /// It has subscribed to these as well, and to those no more (`subscription_change`). A pattern that is in both is not changed. Where it had
    /// all types, those that are added take their place; all types take the place of everything else. Of types to which it had not subscribed it has
    /// what is [kept](crate::SupplierBuilder::offer_retained).
    pub fn subscription_change(
        &self,
        added: impl IntoIterator<Item = TypePattern>,
        removed: impl IntoIterator<Item = TypePattern>,
    ) -> Changed {
        let change = SubscriptionChange::new(added, removed);
        let (changed, touched) =
            self.shared.topology().change_subscriptions(&[self.consumer.number], &change);
        self.shared.tell(About::Subscriptions, &changed);
        touched.iter().for_each(|(consumer, before)| offer_retained(consumer, &self.shared, before));
        changed
    }

    /// Calls `listener`, from whichever thread it is that changes something, when a type gains its first supplier or loses its last
    /// (`offer_change`). If it panics, the consumer is disconnected.
    pub fn on_offer_change(&self, listener: impl Fn(&Changed) + Send + Sync + 'static) {
        self.shared.listen(self.owner(), Arc::new(listener));
    }

    /// The types that suppliers have said that they push, if `mode` says so, and whether [`on_offer_change`](Self::on_offer_change) is called from
    /// now on (`obtain_offered_types`).
    pub fn obtain_offered_types(&self, mode: ObtainInfoMode) -> Vec<EventType> {
        self.shared.obtain(self.owner(), mode)
    }

    /// The suppliers that offer types to which it has subscribed.
    pub fn partners(&self) -> Vec<Partner> {
        self.shared.topology().partners(self.consumer.number).into_values().collect()
    }

    /// Calls `listener` with the suppliers that there are, if any, and from whichever thread it is that changes something when others come, go, or
    /// offer other types. If it panics, the consumer is disconnected.
    pub fn on_partners(&self, listener: impl Fn(&PartnersChanged) + Send + Sync + 'static) {
        self.shared.listen_to_partners(self.owner(), Arc::new(listener));
    }

    /// Its own mapping filter that says which priority events have for it.
    pub fn priority_filter(&self) -> MappingAdmin<'_, i16> {
        MappingAdmin::new(&self.shared, MappingOwner::Consumer(&self.consumer))
    }

    /// Its own mapping filter that says how long after their push events are worth being delivered to it.
    pub fn lifetime_filter(&self) -> MappingAdmin<'_, Duration> {
        MappingAdmin::new(&self.shared, MappingOwner::Consumer(&self.consumer))
    }

    /// Its own filters, to add some and to remove them.
    pub fn filters(&self) -> FilterAdmin<'_> {
        FilterAdmin::new(&self.shared, Owner::Consumer(&self.consumer))
    }

    /// What counts for it.
    pub fn qos(&self) -> Qos {
        self.consumer.settings.load().qos.clone()
    }

    /// Sets properties of it, all or none. What waits is put into the new order.
    ///
    /// # Errors
    /// Every problem. It cannot have more events waiting, or at once, than when it was connected, when memory was made for them.
    pub fn set_qos(&self, settings: &QosSettings) -> Result<(), QosProblems> {
        self.consumer.set_qos(settings)
    }

    /// Whether these could be set, and what else could then: of each property its name and the values that it may have.
    ///
    /// # Errors
    /// Every problem.
    pub fn validate_qos(&self, settings: &QosSettings) -> Result<Vec<(PropertyName, String)>, QosProblems> {
        // Memory was made for no more.
        let memory = (self.consumer.room(), self.consumer.batch_room());
        Ok(self.consumer.qos_with(settings)?.available_within(Level::Proxy, memory))
    }

    /// Events that wait.
    pub fn queued(&self) -> usize {
        self.consumer.queued()
    }

    /// What became of the others.
    pub fn statistics(&self) -> ConsumerStatistics {
        self.consumer.statistics()
    }

    /// Deliveries whose priority was not that with which one of its lanes begins: they took the next lower one, or the lowest. Not counted
    /// are those of a lane from `i16::MIN` on, which is for all, and what is delivered later than upon its push: by its start, or when tried again.
    pub fn lane_misses(&self) -> u64 {
        self.consumer.work.get().map_or(0, |work| work.lane_misses.load(Ordering::Relaxed))
    }
}

/// A consumer as those see it who push events to it.
#[derive(Clone)]
pub(crate) struct Watched(Arc<Consumer>);

impl Watched {
    /// Events that were lost for want of room, and that have expired.
    pub fn lost(&self) -> (u64, u64) {
        let counts = &self.0.counts;
        (counts.discarded.read() + counts.no_room.read(), counts.expired.read())
    }
}

impl ConnectedConsumer {
    pub(crate) fn new(shared: Arc<Shared>, consumer: Arc<Consumer>) -> Self {
        ConnectedConsumer(ConsumerHandle { shared, consumer })
    }

    pub(crate) fn watched(&self) -> Watched {
        Watched(Arc::clone(&self.consumer))
    }

    /// Events that it can have at once.
    pub(crate) fn memory(&self) -> usize {
        self.consumer.memory()
    }

    /// The most events that a job has at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.consumer.most_at_once()
    }

    /// The next events for a job, up to so many.
    pub(crate) fn take_for_job(&self, most: usize, now: Instant, events: &mut Vec<Delivery>) {
        self.consumer.take_for_job(most, now, events);
    }

    /// The next event, for several jobs: it keeps its place among those that may wait until it is [given
    /// up](Self::give_place_up). What is gone for that is dropped by the caller when no lock is held.
    pub(crate) fn take_in_its_place(
        &self,
        now: Instant,
        gone: &mut Gone<'_>,
    ) -> Result<Option<Delivery>, ManyGone> {
        self.consumer.take_in_its_place(now, gone)
    }

    /// All jobs have begun for which the event was [taken](Self::take_in_its_place).
    pub(crate) fn give_place_up(&self, event: &Delivery) {
        self.consumer.give_place_up(event);
    }

    /// The job has done with what it took.
    pub(crate) fn tidy(&self) {
        self.consumer.tidy();
    }
}

impl Drop for ConnectedConsumer {
    fn drop(&mut self) {
        self.disconnect();
    }
}

/// A connected consumer that takes its events itself.
#[derive(Debug)]
#[must_use = "dropping it disconnects the consumer"]
pub struct PullConsumer(ConnectedConsumer);

impl PullConsumer {
    pub(crate) fn new(consumer: ConnectedConsumer) -> Self {
        PullConsumer(consumer)
    }

    /// The next event, if one is there (`try_pull_structured_event`).
    pub fn try_pull(&self, now: Instant) -> Option<Delivery> {
        self.0.consumer.try_take(now)
    }

    /// The events that are there, one after the other (`try_pull_structured_events`).
    pub fn try_iter(&self, now: impl Fn() -> Instant) -> impl Iterator<Item = Delivery> {
        std::iter::from_fn(move || self.try_pull(now()))
    }

    /// All events, waiting for each; it ends when the channel is destroyed.
    pub fn iter(&self, now: impl Fn() -> Instant) -> impl Iterator<Item = Delivery> {
        std::iter::from_fn(move || {
            loop {
                let next = self.pull(Duration::MAX, &now);
                if next.is_some() || self.connection() == Connection::Closed {
                    return next;
                }
            }
        })
    }

    pub(crate) fn shared(&self) -> Arc<Consumer> {
        Arc::clone(&self.0.consumer)
    }

    /// The next event, waiting so long for it; `now` says what time it is (`pull_structured_event`). None also when the channel is destroyed.
    pub fn pull(&self, limit: Duration, now: impl Fn() -> Instant) -> Option<Delivery> {
        self.0.consumer.take(limit, now)
    }
}

impl std::ops::Deref for PullConsumer {
    type Target = ConnectedConsumer;

    fn deref(&self) -> &ConnectedConsumer {
        &self.0
    }
}

/// A connected consumer that takes its events itself, several at once: as many as its quality of service says (`MaximumBatchSize`). Where that has a
/// `PacingInterval`, less than that are not given before the first of them has waited so long.
#[derive(Debug)]
#[must_use = "dropping it disconnects the consumer"]
pub struct SequencePullConsumer(ConnectedConsumer);

impl SequencePullConsumer {
    pub(crate) fn new(consumer: ConnectedConsumer) -> Self {
        SequencePullConsumer(consumer)
    }

    /// Puts the next events behind those in `events`, up to `most` of them, if they are there (`try_pull_structured_events`); returns how many.
    /// Does not allocate where `events` has room.
    pub fn try_pull(&self, most: usize, now: Instant, events: &mut Vec<Delivery>) -> usize {
        self.0.consumer.try_take_sequence(most, now, events)
    }

    /// The same, waiting so long for them; `now` says what time it is (`pull_structured_events`). 0 if the time has passed, or the consumer is
    /// disconnected.
    pub fn pull(
        &self,
        most: usize,
        limit: Duration,
        now: impl Fn() -> Instant,
        events: &mut Vec<Delivery>,
    ) -> usize {
        self.0.consumer.take_sequence(most, limit, now, events)
    }

    /// All events, up to `most` at once, waiting for them; it ends when the consumer is disconnected.
    ///
    /// # Panics
    /// If `most` is none.
    pub fn iter(&self, most: usize, now: impl Fn() -> Instant) -> impl Iterator<Item = Vec<Delivery>> {
        assert!(most > 0, "`most` must be at least 1");
        std::iter::from_fn(move || {
            let mut events = Vec::new();
            while self.pull(most, Duration::MAX, &now, &mut events) == 0 {
                if self.connection() == Connection::Closed {
                    return None;
                }
            }
            Some(events)
        })
    }

    pub(crate) fn shared(&self) -> Arc<Consumer> {
        Arc::clone(&self.0.consumer)
    }
}

impl std::ops::Deref for SequencePullConsumer {
    type Target = ConnectedConsumer;

    fn deref(&self) -> &ConnectedConsumer {
        &self.0
    }
}
