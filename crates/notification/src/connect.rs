//! Connecting consumers, and the work by which they have their events.

use crate::admin::ConsumerAdmin;
use crate::condition::Condition;
use crate::connected::{ConnectedConsumer, PullConsumer, SequencePullConsumer};
use crate::consumer::{Call, Consumer, Settings};
use crate::delivery::Delivery;
use crate::event::{Content, ContentType};
use crate::filter::{Filter, FilterGroup};
use crate::grouped::Grouped;
use crate::limits::LimitExceeded;
use crate::mapping::{MappingError, MappingFilter, MappingFilters, allow_mapping};
use crate::posting::{When, begin};
use crate::qos::{Level, PropertyName, Qos, QosError, QosProblems, QosSettings};
use crate::shared::About;
use crate::topology::Subscribed;
use crate::work::{LaneWork, Miss, OnMiss};
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use talea_event::{Outcome, TypePattern};
use talea_linux::replaced::Replaced;
use talea_model::OperationId;
use talea_operation::{Declaration, JobContext};
use talea_time::Duration;
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
    /// The channel has been destroyed.
    #[error("the channel has been destroyed")]
    Closed,
    /// Its admin has been destroyed.
    #[error("its admin has been destroyed; take another one, or the channel's own")]
    NoAdmin,
    /// The quality of service cannot be.
    #[error(transparent)]
    Qos(#[from] QosProblems),
    /// It has more filters, or these more constraints, or more types, than the channel allows.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The pace at which it would be pulled makes no sense.
    #[error("its pace makes no sense: {0}")]
    Pace(&'static str),
    /// A mapping filter cannot be attached.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// The condition makes no sense.
    #[error("its condition makes no sense: {0}")]
    Condition(&'static str),
    /// The work by which it would have its events, or be asked for them, cannot be declared.
    #[error("its deliveries, or its turns, cannot be declared as work: {0}")]
    Work(Box<dyn Error + Send + Sync>),
}

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
    content: Option<ContentType>,
    is_queued: bool,
    is_gateway: bool,
    lanes: Vec<LaneWork>,
    task: Option<OperationId>,
    /// Jobs that have an event together.
    together: usize,
}

impl fmt::Debug for ConsumerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ConsumerAdmin {
    /// Begins to connect a consumer of this group.
    pub fn consumer(&self, name: &str) -> ConsumerBuilder {
        ConsumerBuilder::new(self.clone(), name)
    }
}

impl ConsumerBuilder {
    fn new(admin: ConsumerAdmin, name: &str) -> Self {
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
            content: None,
            is_queued: false,
            is_gateway: false,
            lanes: Vec::new(),
            task: None,
            together: 1,
        }
    }

    /// It has events of these types. Without any, of those that its [condition](Self::when) needs, or else those to which its
    /// [admin](ConsumerAdmin::subscription_change) has subscribed: all, unless that says otherwise.
    pub fn subscribe(mut self, types: impl IntoIterator<Item = TypePattern>) -> Self {
        self.patterns.extend(types);
        self
    }

    /// Of these only those that this filter, or another one of its own, matches.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Its events carry a `T`; others do not come to it, which is counted
    /// ([`incompatible`](crate::ConsumerStatistics::incompatible)). A supplier that has said that it pushes something else is no partner.
    pub fn content<T: Content>(mut self) -> Self {
        self.content = Some(ContentType::of::<T>());
        self
    }

    /// It passes events on to another channel: [observers](crate::EventChannel::observe) are not told of what it has
    /// subscribed to (`is_gateway`). Between two channels with a gateway each way, each of which subscribes to what is
    /// wanted beyond, one would otherwise keep alive what the other one wants.
    pub fn gateway(mut self) -> Self {
        self.is_gateway = true;
        self
    }

    /// Its code is never called in the midst of a job that pushes, but when its lane comes to it: for code that takes a lock which others hold while
    /// they push.
    pub fn queued(mut self) -> Self {
        self.is_queued = true;
        self
    }

    /// Its events have the priority that this says, where it says one (`priority_filter`); else that which its
    /// [admin's](ConsumerAdmin::priority_filter) says.
    pub fn map_priority(mut self, mapping: MappingFilter<i16>) -> Self {
        self.priorities = Some(mapping);
        self
    }

    /// Its events are worth being delivered for as long after their push as this says, where it says something (`lifetime_filter`); else for as long
    /// as its [admin's](ConsumerAdmin::lifetime_filter) says.
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

    /// Calls `code` for each delivery that was late, in the job that has delivered it: when its call ended after the event had stopped being worth anything, or
    /// else later after the push, its start or the instant from which on it was to be tried again than the lane's declaration says. One that is to be tried again is
    /// told of when it has been. `code` is called as the consumer is, by one lane at a time unless it is [concurrent](Self::connect_concurrent), and if it panics the
    /// consumer is disconnected. Events that expire before they are delivered are [counted](crate::ConsumerStatistics::expired).
    pub fn on_deadline_miss(mut self, code: impl Fn(&Miss<'_>) + Send + Sync + 'static) -> Self {
        self.on_miss = Some(Box::new(code));
        self
    }

    /// All its events are delivered in the lane of this work, whatever their priority (the standard's `SERVER_DECLARED`). The name in the
    /// declaration is the operation's. Without any, its admin's [pool](crate::ThreadPool) or its channel's says where; without these the work is called
    /// `channel.consumer`, is due 100 ms after the push and takes 100 µs at most.
    pub fn lane(mut self, work: Declaration) -> Self {
        self.lanes = vec![LaneWork::of(i16::MIN, work)];
        self
    }

    /// Events of this priority or a greater one are delivered in the lane of this work, if they are not of a lane for greater ones
    /// (`CLIENT_PROPAGATED`). Called for each lane. Events of lower priorities go to the lowest of these lanes; events of priorities with which no lane
    /// begins are counted (`lane_misses`), unless their lane is for all from `i16::MIN` on.
    pub fn lane_from(mut self, least_priority: i16, work: Declaration) -> Self {
        self.lanes.push(LaneWork::of(least_priority, work));
        self
    }

    /// The lane named last, or one for all events, is served by another thread as well, that of the lane of this work, on another node or processor: its
    /// events have one queue, and whoever is free delivers the first one. Called for each. Of use to consumers that are [connected
    /// concurrently](Self::connect_concurrent); others are called one at a time.
    pub fn server(mut self, work: Declaration) -> Self {
        LaneWork::add_server(&mut self.lanes, work);
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
        self.refuse_batches()?;
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
        self.refuse_batches()?;
        self.connect_as(Call::Concurrent(Replaced::new(Box::new(code))))
    }

    /// Connects it: `code` is called with up to as many events at once as its quality of service says.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect_sequence(
        self,
        code: impl FnMut(&[Delivery], &JobContext<'_>) -> Outcome + Send + 'static,
    ) -> Result<ConnectedConsumer, ConnectError> {
        let qos = self.effective()?;
        self.connect_with(Call::serial(Box::new(code)), qos)
    }

    /// Connects it: it takes its events itself.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect_pull(self) -> Result<PullConsumer, ConnectError> {
        self.refuse_batches()?;
        self.connect_as(Call::Pull).map(PullConsumer::new)
    }

    /// Connects it: it takes its events itself, several at once, as its quality of service says.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect_pull_sequence(self) -> Result<SequencePullConsumer, ConnectError> {
        let qos = self.effective()?;
        self.connect_with(Call::Pull, qos).map(SequencePullConsumer::new)
    }

    /// Connects it: jobs of the task with this first operation take its events, for each of which an instance is posted; so many first subtasks of
    /// that have an event together.
    pub(crate) fn connect_task(
        mut self,
        first: OperationId,
        together: usize,
    ) -> Result<ConnectedConsumer, ConnectError> {
        (self.task, self.together) = (Some(first), together);
        self.connect_as(Call::Jobs)
    }

    /// Connects it: jobs of an operation, which something else releases, take its events when they begin.
    pub(crate) fn connect_jobs(self) -> Result<ConnectedConsumer, ConnectError> {
        self.connect_as(Call::Jobs)
    }

    /// Only sequences have several events at once. What a channel or an admin says of batches is for those of its consumers that have them.
    fn refuse_batches(&self) -> Result<(), QosProblems> {
        let qos = self.effective()?;
        match qos.origin(PropertyName::MaximumBatchSize) {
            _ if qos.max_batch == 1 => Ok(()),
            Some(Level::Channel | Level::Admin) => Ok(()),
            _ => Err(QosProblems(vec![PropertyName::MaximumBatchSize.problem(
                QosError::UnavailableValue,
                "more than one event at once is for consumers of sequences (connect_sequence)",
            )])),
        }
    }

    fn effective(&self) -> Result<Qos, QosProblems> {
        self.admin.qos().with(&self.settings, Level::Proxy)
    }

    /// Of one that has one event at a time.
    fn connect_as(self, call: Call) -> Result<ConnectedConsumer, ConnectError> {
        let mut qos = self.effective()?;
        (qos.max_batch, qos.pacing) = (1, None);
        self.connect_with(call, qos)
    }

    fn connect_with(self, call: Call, qos: Qos) -> Result<ConnectedConsumer, ConnectError> {
        let ConsumerBuilder {
            admin,
            name,
            patterns,
            filters,
            priorities,
            lifetimes,
            condition,
            on_miss,
            content,
            is_queued,
            is_gateway,
            lanes,
            task,
            together,
            ..
        } = self;
        if let Some(problem) = condition.as_ref().and_then(Condition::problem) {
            return Err(ConnectError::Condition(problem));
        }
        let shared = Arc::clone(&admin.shared);
        let properties = shared.properties();
        let filters = filters.into_iter().collect::<FilterGroup>();
        properties.allow_group(&filters)?;
        allow_mapping(&properties, priorities.as_ref())?;
        allow_mapping(&properties, lifetimes.as_ref())?;
        let number = {
            let mut topology = shared.topology();
            let most = properties.max_consumers;
            if most > 0 && topology.consumers.len() >= most {
                return Err(ConnectError::TooMany { who: "consumers", most });
            }
            topology.number()
        };
        // A condition that waits for time alone needs none, which is not the same as not to say.
        let needed = || condition.as_ref().and_then(Condition::needed_types);
        let patterns = match patterns.is_empty() {
            true => needed().map(|types| types.into_iter().cloned().collect()),
            false => Some(patterns),
        };
        let has_lanes = matches!(call, Call::Serial(_) | Call::Concurrent(_));
        let load = (Arc::clone(&shared.load), shared.counters, Arc::clone(&shared.publications));
        // Besides those that wait, each of them may have one of its own in its hands.
        let sets = qos.max_events as usize + together - 1;
        let grouped = condition.map(|condition| Grouped::new(condition, sets));
        let settings = Settings { qos, filters, mappings: MappingFilters::new(priorities, lifetimes) };
        let mut consumer =
            Consumer::new((number, &name), admin.own_filters(), settings, (call, grouped), load);
        consumer.on_miss = on_miss;
        (consumer.content, consumer.is_queued) = (content, is_queued);
        consumer.task = task;
        let consumer = Arc::new(consumer);
        if has_lanes {
            consumer.keep_lanes(lanes_of(&consumer, &admin, lanes));
        }
        let changed = {
            let mut topology = shared.topology();
            if topology.is_closed {
                return Err(ConnectError::Closed);
            }
            let group = &topology.consumer_admins[&admin.number];
            if group.is_destroyed {
                return Err(ConnectError::NoAdmin);
            }
            let patterns = patterns.unwrap_or_else(|| group.patterns.clone());
            shared.load.join(&consumer);
            let consumer = Arc::clone(&consumer);
            topology.connect(Subscribed { consumer, admin: admin.number, patterns, is_gateway })
        };
        shared.tell(About::Subscriptions, &changed);
        if let Err(error) = begin(&consumer, &shared, When::Connected) {
            shared.remove_consumer(number);
            return Err(ConnectError::Work(error));
        }
        Ok(ConnectedConsumer::new(shared, consumer))
    }
}

/// The lanes of a consumer, the one for the greatest priorities first: those that it has asked for, those of a pool, or one.
fn lanes_of(consumer: &Consumer, admin: &ConsumerAdmin, mut lanes: Vec<LaneWork>) -> Vec<LaneWork> {
    let name = format!("{}.{}", admin.shared.name, consumer.name);
    if lanes.is_empty() {
        lanes = admin.pool_lanes(&name);
    }
    if lanes.is_empty() {
        let work = Declaration::new(&name, DEFAULT_DEADLINE).wcet(DEFAULT_WCET);
        lanes.push(LaneWork::of(i16::MIN, work));
    }
    lanes.sort_by_key(|lane| std::cmp::Reverse(lane.least));
    lanes
}

/// How long after its push an event is to be delivered where nothing says so.
const DEFAULT_DEADLINE: Duration = Duration::from_millis(100);
/// How long a delivery executes at most where nothing says so.
const DEFAULT_WCET: talea_time::Work = talea_time::Work::from_micros(100);
