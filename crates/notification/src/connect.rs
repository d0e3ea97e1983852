//! Connecting consumers, and the work by which they have their events.

use crate::admin::ConsumerAdmin;
use crate::channel::{About, EventChannel, Shared};
use crate::condition::Condition;
use crate::consumer::{Call, Connection, Consumer, Settings};
use crate::delivery::{Delivery, Outcome};
use crate::filter::{Filter, FilterGroup, MappingFilter};
use crate::grouped::Grouped;
use crate::pattern::TypePattern;
use crate::place::{Place, WeakPlace};
use crate::qos::{Level, PropertyName, Qos, QosError, QosProblem, QosProblems, QosSettings};
use crate::statistics::ConsumerStatistics;
use crate::topology::{Changed, Subscribed};
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use talea_operation::{Declaration, JobContext, Post, Posted, PostedOperation, Workplace};
use talea_time::{Duration, Instant};
use thiserror::Error;

/// Why somebody was not connected. Nothing has changed, but that operations may have been declared.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// As many are connected as may be.
    #[error("{most} {who} are connected, which is as many as may be")]
    TooMany {
        /// Consumers or suppliers.
        who: &'static str,
        /// The limit.
        most: usize,
    },
    /// The quality of service cannot be.
    #[error(transparent)]
    Qos(#[from] QosProblems),
    /// The condition makes no sense.
    #[error("its condition makes no sense: {0}")]
    Condition(&'static str),
    /// The work by which it would have its events cannot be declared.
    #[error("its deliveries cannot be declared as work: {0}")]
    Work(Box<dyn Error + Send + Sync>),
}

/// The work by which a consumer has its events: an operation for each of its lanes.
pub(crate) struct Work {
    /// The least priority of events for each lane, the greatest first.
    lanes: Box<[(i16, PostedOperation)]>,
    /// Jobs that were posted for events and have not begun. As a rule there are as many as events wait; where there was no room for one, a job
    /// does for several.
    outstanding: AtomicUsize,
    /// The instant for which a job is to be posted, in nanoseconds.
    armed: AtomicI64,
    /// Deliveries whose priority is below that of all lanes.
    pub lane_misses: AtomicU64,
}

impl Work {
    fn new(lanes: Box<[(i16, PostedOperation)]>) -> Self {
        let (outstanding, armed) = (AtomicUsize::new(0), AtomicI64::new(i64::MIN));
        Work { lanes, outstanding, armed, lane_misses: AtomicU64::new(0) }
    }

    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The lane for events of this priority: the highest that is for no more than that, or else the lowest, which is counted.
    fn lane(&self, priority: i16) -> PostedOperation {
        match self.lanes.iter().find(|(least, _)| *least <= priority) {
            Some((_, operation)) => *operation,
            None => {
                self.lane_misses.fetch_add(1, Ordering::Relaxed);
                self.lanes.last().expect("there is a lane").1
            }
        }
    }

    /// A job is to be posted at this instant, unless one is to be posted no later.
    fn wake_at(&self, workplace: &dyn Workplace, due: Instant, now: Instant) {
        let armed = self.armed.load(Ordering::Relaxed);
        if armed > now.as_nanos() && armed <= due.as_nanos() {
            return;
        }
        self.armed.store(due.as_nanos(), Ordering::Relaxed);
        let operation = self.lanes.last().expect("there is a lane").1;
        if !workplace.post_at(due, operation) {
            // The next job, of whichever event, sees to it.
            self.armed.store(i64::MIN, Ordering::Relaxed);
        }
    }

    /// One of the jobs begins, or one that was posted for an instant and is none of them.
    fn begin(&self) {
        let less_one = |outstanding: usize| outstanding.checked_sub(1);
        _ = self.outstanding.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less_one);
    }
}

/// Posts a job for an event that waits: its priority says the lane, and when it expires is the deadline.
#[inline]
pub(crate) fn post(
    consumer: &Consumer,
    place: &Place,
    via: &mut impl Post,
    (not_before, priority, expires): (Instant, i16, Instant),
    now: Instant,
) {
    let (Some(work), Some(workplace)) = (consumer.work.get(), place.get()) else { return };
    if not_before > now {
        work.wake_at(workplace, not_before, now);
        return;
    }
    let deadline = Some(expires).filter(|expires| *expires != Instant::MAX);
    let posted = Posted { operation: work.lane(priority), deadline, handle: consumer.number.into() };
    // Before it is posted, for it may begin at once.
    work.outstanding.fetch_add(1, Ordering::Relaxed);
    if via.post_work(posted).is_err() {
        work.begin();
        // The run has not begun, or as many jobs wait as there is room for, of which one does what this one would have done. Should these begin
        // before the event is seen, there is one more.
        work.wake_at(workplace, now.saturating_add(AGAIN), now);
    }
}

/// A job of the consumer is to look at this instant.
pub(crate) fn wake_at(consumer: &Consumer, place: &Place, due: Instant, now: Instant) {
    if let (Some(work), Some(workplace)) = (consumer.work.get(), place.get()) {
        work.wake_at(workplace, due, now);
    }
}

/// A job of a consumer.
fn run(consumer: &Consumer, place: &WeakPlace, job: &JobContext<'_>) {
    let Some(work) = consumer.work.get() else { return };
    work.begin();
    let mut turn = consumer.deliver(job);
    let has_delivered = turn.delivered > 0;
    while turn.delivered > 0 && turn.left > work.outstanding.load(Ordering::Relaxed) {
        turn = consumer.deliver(job);
    }
    if let Some(on_miss) = &consumer.on_miss
        && has_delivered
    {
        let lateness = job.now() - job.deadline();
        if lateness > Duration::ZERO {
            let (operation, instance) = (job.operation(), job.instance());
            on_miss(&Miss { operation, instance, lateness });
        }
    }
    if let Some(due) = turn.due {
        place.with(|workplace| work.wake_at(workplace, due, job.now()));
    }
}

/// A delivery that was late. `talea trace explain TRACE --task OPERATION --job INSTANCE` says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss<'a> {
    /// The operation of the consumer's lane.
    pub operation: &'a str,
    /// The number of the job.
    pub instance: u64,
    /// How long after its deadline the delivery ended.
    pub lateness: Duration,
}

/// Who is called when a delivery was late.
pub(crate) type OnMiss = Box<dyn Fn(&Miss<'_>) + Send + Sync>;

/// A consumer that is about to be connected.
#[must_use]
pub struct ConsumerBuilder {
    admin: ConsumerAdmin,
    name: Box<str>,
    patterns: BTreeSet<TypePattern>,
    filters: Vec<Filter>,
    priorities: Option<MappingFilter<i16>>,
    lifetimes: Option<MappingFilter<Duration>>,
    settings: QosSettings,
    condition: Option<Condition>,
    on_miss: Option<OnMiss>,
    lanes: Vec<(i16, Declaration)>,
}

impl fmt::Debug for ConsumerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ConsumerBuilder {
    pub(crate) fn new(admin: ConsumerAdmin, name: &str) -> Self {
        ConsumerBuilder {
            admin,
            name: name.into(),
            patterns: BTreeSet::new(),
            filters: Vec::new(),
            priorities: None,
            lifetimes: None,
            settings: QosSettings::new(),
            condition: None,
            on_miss: None,
            lanes: Vec::new(),
        }
    }

    /// It has events of these types. Without any, of all types.
    pub fn subscribe(mut self, types: impl IntoIterator<Item = TypePattern>) -> Self {
        self.patterns.extend(types);
        self
    }

    /// Of these only those that this filter, or another one of its own, matches.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Its events have the priority that this says, where it says one (`priority_filter`).
    pub fn map_priority(mut self, mapping: MappingFilter<i16>) -> Self {
        self.priorities = Some(mapping);
        self
    }

    /// Its events expire as this says, where it says something (`lifetime_filter`).
    pub fn map_lifetime(mut self, mapping: MappingFilter<Duration>) -> Self {
        self.lifetimes = Some(mapping);
        self
    }

    /// Its quality of service, where it is another one than that of its admin.
    pub fn qos(mut self, settings: QosSettings) -> Self {
        self.settings = settings;
        self
    }

    /// It is called when this comes true, with the events with which it does ([`Delivery::events`]), of those that its subscriptions and filters let
    /// through.
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    /// Calls `code` with each job of its lanes that ends after its deadline, in the lane: when the event has been delivered, and late.
    pub fn on_deadline_miss(mut self, code: impl Fn(&Miss<'_>) + Send + Sync + 'static) -> Self {
        self.on_miss = Some(Box::new(code));
        self
    }

    /// All its events are delivered in the lane of this work, whatever their priority (the standard's `SERVER_DECLARED`). The name in the
    /// declaration is the operation's. Without any, the work is called `channel.consumer`, is due 100 ms after the push and takes 100 µs at most.
    pub fn lane(mut self, work: Declaration) -> Self {
        self.lanes = vec![(i16::MIN, work)];
        self
    }

    /// Events of this priority or a greater one are delivered in the lane of this work, if they are not of a lane for greater ones
    /// (`CLIENT_PROPAGATED`). Called for each lane. Events of lower priorities go to the lowest of these lanes, and are counted.
    pub fn lane_from(mut self, least_priority: i16, work: Declaration) -> Self {
        self.lanes.push((least_priority, work));
        self
    }

    /// Connects it: `code` is called with each event, one at a time.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(
        self,
        mut code: impl FnMut(&Delivery) -> Outcome + Send + 'static,
    ) -> Result<ConnectedConsumer, ConnectError> {
        self.connect_with_job(move |delivery, _| code(delivery))
    }

    /// The same with code that is told of the job in which it is called: it can push events by it, and post work.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect_with_job(
        self,
        mut code: impl FnMut(&Delivery, &JobContext<'_>) -> Outcome + Send + 'static,
    ) -> Result<ConnectedConsumer, ConnectError> {
        if self.effective()?.max_batch > 1 {
            let allowed = "more than one event at once is for consumers of sequences (connect_sequence)";
            let error = QosError::UnavailableValue;
            let property = PropertyName::MaximumBatchSize.to_string();
            return Err(QosProblems(vec![QosProblem { property, error, allowed: allowed.into() }]).into());
        }
        self.connect_as(Call::serial(Box::new(move |events, job| code(&events[0], job))))
    }

    /// Connects it: `code` is called with each event, possibly by several lanes at once.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect_concurrent(
        self,
        code: impl Fn(&Delivery, &JobContext<'_>) -> Outcome + Send + Sync + 'static,
    ) -> Result<ConnectedConsumer, ConnectError> {
        self.connect_as(Call::Concurrent(Box::new(code)))
    }

    /// Connects it: `code` is called with up to as many events at once as its quality of service says.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect_sequence(
        self,
        code: impl FnMut(&[Delivery], &JobContext<'_>) -> Outcome + Send + 'static,
    ) -> Result<ConnectedConsumer, ConnectError> {
        self.connect_as(Call::serial(Box::new(code)))
    }

    /// Connects it: it takes its events itself.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect_pull(self) -> Result<PullConsumer, ConnectError> {
        self.connect_as(Call::Pull).map(PullConsumer)
    }

    fn effective(&self) -> Result<Qos, QosProblems> {
        self.admin.qos().with(&self.settings, Level::Proxy)
    }

    fn connect_as(self, call: Call) -> Result<ConnectedConsumer, ConnectError> {
        let qos = self.effective()?;
        let ConsumerBuilder {
            admin,
            name,
            mut patterns,
            filters,
            priorities,
            lifetimes,
            condition,
            on_miss,
            lanes,
            ..
        } = self;
        if let Some(problem) = condition.as_ref().and_then(Condition::problem) {
            return Err(ConnectError::Condition(problem));
        }
        let channel = admin.channel.clone();
        let number = {
            let mut topology = channel.0.topology();
            let most = channel.0.max_consumers.load(Ordering::Relaxed);
            if most > 0 && topology.consumers.len() >= most {
                return Err(ConnectError::TooMany { who: "consumers", most });
            }
            topology.number()
        };
        if patterns.is_empty() {
            patterns.insert(TypePattern::all());
        }
        let (is_pull, load) = (call.is_pull(), Arc::clone(&channel.0.load));
        let grouped = condition.map(|condition| Grouped::new(condition, qos.max_events as usize));
        let filters = FilterGroup(filters.into_iter().map(Arc::new).collect());
        let (priorities, lifetimes) = (priorities.map(Arc::new), lifetimes.map(Arc::new));
        let settings = Settings { qos, filters, priorities, lifetimes };
        let mut consumer = Consumer::new((number, &name), admin.filters(), settings, (call, grouped), load);
        consumer.on_miss = on_miss;
        let consumer = Arc::new(consumer);
        if !is_pull {
            consumer.keep_lanes(lanes_of(&consumer, &channel.0, lanes));
        }
        let subscribed = Subscribed { consumer: Arc::clone(&consumer), admin: admin.number, patterns };
        let changed = channel.0.topology().connect(subscribed);
        channel.0.tell(About::Subscriptions, &changed);
        if let Err(error) = begin(&consumer, &channel.0) {
            disconnect(&channel.0, number);
            return Err(ConnectError::Work(error));
        }
        Ok(ConnectedConsumer { channel, consumer })
    }
}

/// The lanes of a consumer, the one for the greatest priorities first: one, unless it has asked for others.
fn lanes_of(
    consumer: &Consumer,
    channel: &Shared,
    mut lanes: Vec<(i16, Declaration)>,
) -> Vec<(i16, Declaration)> {
    if lanes.is_empty() {
        let name = format!("{}.{}", channel.name, consumer.name);
        lanes.push((i16::MIN, Declaration::new(&name, DEFAULT_DEADLINE).wcet(DEFAULT_WCET)));
    }
    lanes.sort_by_key(|(least, _)| std::cmp::Reverse(*least));
    lanes
}

/// Begins to deliver, if it is known where: declares the work of the consumer, and its condition counts time from now on.
///
/// # Errors
/// The work cannot be declared.
pub(crate) fn begin(consumer: &Arc<Consumer>, channel: &Shared) -> Result<(), Box<dyn Error + Send + Sync>> {
    let Some(workplace) = channel.place.get() else { return Ok(()) };
    let now = workplace.now();
    consumer.begin(now);
    let retained = channel.topology().retained(consumer.number);
    // What comes of each is counted there, and a job looks below.
    retained.iter().for_each(|event| consumer.offer(event, now, None, &mut |_| ()));
    let lanes = consumer.take_lanes();
    if lanes.is_empty() {
        return Ok(());
    }
    let mut declared = Vec::with_capacity(lanes.len());
    for (least, declaration) in lanes {
        let (own, place) = (Arc::clone(consumer), channel.place.weak());
        let code = Box::new(move |job: &JobContext<'_>| run(&own, &place, job));
        declared.push((least, workplace.declare(declaration, code)?));
    }
    _ = consumer.work.set(Work::new(declared.into()));
    let due = consumer.first_due().into_iter().chain((consumer.queued() > 0).then_some(now)).min();
    if let Some(due) = due {
        wake_at(consumer, &channel.place, due, now);
    }
    Ok(())
}

/// After how long it is tried again to post a job.
const AGAIN: Duration = Duration::from_millis(1);
/// How long after its push an event is to be delivered where nothing says so.
const DEFAULT_DEADLINE: Duration = Duration::from_millis(100);
/// How long a delivery executes at most where nothing says so.
const DEFAULT_WCET: talea_time::Work = talea_time::Work::from_micros(100);

/// Disconnects a consumer. False if it is not connected.
pub(crate) fn disconnect(channel: &Shared, number: u32) -> bool {
    channel.listen_no_more(number);
    let mut topology = channel.topology();
    let Some(consumer) = topology.consumers.get(&number).map(|subscribed| Arc::clone(&subscribed.consumer))
    else {
        return false;
    };
    let changed = topology.disconnect(number);
    drop(topology);
    consumer.close();
    channel.tell(About::Subscriptions, &changed);
    true
}

/// A connected consumer (the standard's `ProxySupplier`, seen from its consumer). Dropping it disconnects it, and discards what waits for it.
#[must_use = "dropping it disconnects the consumer"]
pub struct ConnectedConsumer {
    channel: EventChannel,
    consumer: Arc<Consumer>,
}

impl fmt::Debug for ConnectedConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectedConsumer").field("name", &self.consumer.name).finish_non_exhaustive()
    }
}

/// The consumer is not in the state in which that can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotNow {
    /// It is active (`ConnectionAlreadyActive`).
    #[error("the consumer is not suspended")]
    AlreadyActive,
    /// It is suspended (`ConnectionAlreadyInactive`).
    #[error("the consumer is suspended")]
    AlreadySuspended,
    /// It is disconnected, for its code has failed (`NotConnected`).
    #[error("the consumer is not connected any more")]
    NotConnected,
}

impl ConnectedConsumer {
    /// Its number in the channel.
    pub fn id(&self) -> u32 {
        self.consumer.number
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

    /// One job for each event that waits.
    fn post_all(&self, via: &mut impl Post) {
        let (now, settings) = (via.now(), self.consumer.settings.load());
        for _ in 0..self.consumer.queued() {
            let waiting = (now, settings.qos.priority, Instant::MAX);
            post(&self.consumer, &self.channel.0.place, via, waiting, now);
        }
    }

    /// It has subscribed to these as well, and to those no more (`subscription_change`). A pattern that is in both is not changed. Where it had
    /// all types, those that are added take their place; all types take the place of everything else.
    pub fn subscription_change(
        &self,
        added: impl IntoIterator<Item = TypePattern>,
        removed: impl IntoIterator<Item = TypePattern>,
    ) -> Changed {
        let (added, removed): (BTreeSet<_>, BTreeSet<_>) =
            (added.into_iter().collect(), removed.into_iter().collect());
        let mut topology = self.channel.0.topology();
        let number = self.consumer.number;
        let Some(subscribed) = topology.consumers.get(&number) else { return Changed::default() };
        let mut patterns = subscribed.patterns.clone();
        let had_all = patterns.iter().any(TypePattern::is_all);
        for pattern in added.difference(&removed) {
            if pattern.is_all() {
                patterns = BTreeSet::from([pattern.clone()]);
                break;
            }
            if had_all {
                patterns.retain(|pattern| !pattern.is_all());
            }
            patterns.insert(pattern.clone());
        }
        removed.difference(&added).filter(|pattern| !pattern.is_all()).for_each(|pattern| {
            patterns.remove(pattern);
        });
        let changed = topology.subscribe(number, patterns).unwrap_or_default();
        drop(topology);
        self.channel.0.tell(About::Subscriptions, &changed);
        changed
    }

    /// Calls `listener`, from whichever thread it is that changes something, when a type gains its first supplier or loses its last
    /// (`offer_change`).
    pub fn on_offer_change(&self, listener: impl Fn(&Changed) + Send + Sync + 'static) {
        self.channel.0.listen(self.consumer.number, About::Offers, Arc::new(listener));
    }

    /// Replaces its own filters.
    pub fn set_filters(&self, filters: impl IntoIterator<Item = Filter>) {
        let filters = FilterGroup(filters.into_iter().map(Arc::new).collect());
        self.consumer.set(|settings| settings.filters = filters.clone());
    }

    /// What counts for it.
    pub fn qos(&self) -> Qos {
        self.consumer.settings.load().qos.clone()
    }

    /// Sets properties of it, all or none. What waits is put into the new order.
    ///
    /// # Errors
    /// Every problem. It cannot have more events waiting than when it was connected, when memory was made for them.
    pub fn set_qos(&self, settings: &QosSettings) -> Result<(), QosProblems> {
        let qos = self.consumer.settings.load().qos.with(settings, Level::Proxy)?;
        let room = self.consumer.room();
        if qos.max_events as usize > room {
            let allowed = format!("memory was made for {room} when it was connected");
            let property = PropertyName::MaxEventsPerConsumer.to_string();
            let error = QosError::UnavailableValue;
            return Err(QosProblems(vec![QosProblem { property, error, allowed }]));
        }
        self.consumer.set_qos(qos);
        Ok(())
    }

    /// Whether these could be set, and what else could: of each property its name and the values that it may have.
    ///
    /// # Errors
    /// Every problem.
    pub fn validate_qos(&self, settings: &QosSettings) -> Result<Vec<(PropertyName, String)>, QosProblems> {
        self.consumer.settings.load().qos.with(settings, Level::Proxy)?;
        let available = PropertyName::ALL.iter().filter(|property| property.levels().contains(&Level::Proxy));
        Ok(available.map(|property| (*property, property.allowed())).collect())
    }

    /// Events that wait.
    pub fn queued(&self) -> usize {
        self.consumer.queued()
    }

    /// What became of the others.
    pub fn statistics(&self) -> ConsumerStatistics {
        self.consumer.statistics()
    }

    /// Deliveries whose priority was below that of all its lanes.
    pub fn lane_misses(&self) -> u64 {
        self.consumer.work.get().map_or(0, |work| work.lane_misses.load(Ordering::Relaxed))
    }
}

impl Drop for ConnectedConsumer {
    fn drop(&mut self) {
        disconnect(&self.channel.0, self.consumer.number);
    }
}

/// A connected consumer that takes its events itself.
#[derive(Debug)]
#[must_use = "dropping it disconnects the consumer"]
pub struct PullConsumer(ConnectedConsumer);

impl PullConsumer {
    /// The next event, if one is there (`try_pull_structured_event`).
    pub fn try_pull(&self, now: Instant) -> Option<Delivery> {
        self.0.consumer.try_take(now)
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
