//! The channel's end for one consumer (`ProxySupplier`): what passes waits here until it is delivered.
//!
//! ```text
//!   offer, by suppliers                                                        deliver, by jobs of the consumer's lanes
//!   filters ─ priority, lifetime ─ room? ──► mailbox ──(drain)──► queue, in order ──► call-back
//!                │                  │            │                  ▲                    │ retry
//!                └ counted          └ discard    └─► held until its start ◄──────────────┘
//! ```
//! Suppliers neither lock nor wait: they put events into the mailbox. Whoever has the lock of the inner part drains it: a job that delivers, or a
//! supplier that finds as many events waiting as there may be and gets the lock at once; if it does not, somebody is making room right now, and the
//! mailbox has room for as many events again. Each event that waits has one job posted for it; the job takes the first of those in the queue
//! that are of its lane, which need not be that event.
//!
//! Lock order: the call-back, then the inner part.
//!
//! What events carry is dropped when no lock is held ([`Gone`]), for it may connect, disconnect and push. A consumer's
//! turn is no such lock: what it is called with it may drop itself, so what is dropped in its turn is dropped as by its
//! code.

mod deliver;
mod load;

use crate::condition::{Condition, EventSet, LeftOut, TimeCame};
use crate::delivery::Delivery;
use crate::event::{ContentType, Event, Header};
use crate::filter::{FilterGroup, GroupOperator, passes, together};
use crate::gone::Gone;
use crate::grouped::Grouped;
use crate::mapping::{MappedValue, MappingFilters};
use crate::publications::Publications;
use crate::qos::{Level, PropertyName, Qos, QosError, QosProblem, QosProblems, QosSettings};
use crate::queue::{Came, From, OrderedQueue};
use crate::replaced::ReplacedFilters;
use crate::signal::{Followers, Signal};
use crate::stated::Stated;
use crate::statistics::{ChannelCounters, ConsumerCounts, ConsumerStatistics, Count};
use crate::work::{Due, LaneWork, OnMiss, Work};
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use talea_channel::mailbox::{MailReceiver, MailSender, mailbox};
use talea_event::Outcome;
use talea_linux::pi_lock::{PiGuard, PiLock};
use talea_linux::replaced::Replaced;
use talea_model::OperationId;
use talea_operation::{EventNote, JobContext};
use talea_record::JobId;
use talea_time::{Duration, Instant};

pub(crate) use deliver::ManyGone;
pub(crate) use load::ChannelLoad;
use load::Coming;

/// Code that is called one delivery at a time, with one event or, of a consumer of sequences, several.
pub(crate) type SerialCode = Box<dyn FnMut(&[Delivery], &JobContext<'_>) -> Outcome + Send>;
/// Code that may be called by several lanes at once.
pub(crate) type ConcurrentCode = Box<dyn Fn(&Delivery, &JobContext<'_>) -> Outcome + Send + Sync>;

/// How a consumer has its events.
pub(crate) enum Call {
    /// A delivery that waits for another one lends it its priority.
    Serial(Turns),
    Concurrent(Replaced<ConcurrentCode>),
    /// The consumer takes them itself.
    Pull,
    /// Jobs of an operation of the system take them.
    Jobs,
}

pub(crate) struct Serial {
    code: SerialCode,
    /// What it is given; preallocated.
    batch: Vec<Delivery>,
}

/// Of lanes that deliver to the same consumer one at a time calls its code.
pub(crate) struct Turns {
    lock: PiLock<Serial>,
    /// The job, [as one word](JobId::pack), that has the lock, for those who wait to tell; [`NO_JOB`] while no job has it.
    holder: AtomicU64,
}

/// Not a packed job of any system.
const NO_JOB: u64 = u64::MAX;

/// A job's turn, which ends when it is dropped.
pub(crate) struct JobTurn<'a> {
    serial: PiGuard<'a, Serial>,
    holder: &'a AtomicU64,
}

impl Drop for JobTurn<'_> {
    fn drop(&mut self) {
        self.holder.store(NO_JOB, Ordering::Relaxed);
    }
}

impl Turns {
    fn of(code: SerialCode) -> Self {
        let lock = PiLock::new(Serial { code, batch: Vec::new() });
        Turns { lock, holder: AtomicU64::new(NO_JOB) }
    }

    /// The turn of a job, with the instant at which it has it if it had to wait. That it waits, and for whom, is recorded and counted when it begins to.
    fn wait_for(&self, job: &JobContext<'_>, waits: &AtomicU64) -> (JobTurn<'_>, Option<Instant>) {
        let (serial, waited) = match self.lock.try_lock() {
            Some(serial) => (serial, None),
            None => {
                let holder = self.holder.load(Ordering::Relaxed);
                let by = (holder != NO_JOB).then(|| JobId::unpack(holder));
                let by = by.map(|by| (by.operation, by.instance));
                job.note(EventNote::Blocked { by }, job.services().clock());
                waits.fetch_add(1, Ordering::Relaxed);
                let serial = self.lock.lock();
                let now = job.services().clock();
                job.note(EventNote::Unblocked, now);
                (serial, Some(now))
            }
        };
        let (operation, instance) = job.identity();
        self.holder.store(JobId { operation, instance }.pack(), Ordering::Relaxed);
        (JobTurn { serial, holder: &self.holder }, waited)
    }
}

impl Call {
    pub fn serial(code: SerialCode) -> Self {
        Call::Serial(Turns::of(code))
    }

    pub fn is_pull(&self) -> bool {
        matches!(self, Call::Pull)
    }

    /// Is called with this code from now on, if it is called one event, or batch, at a time. A call that has begun ends first.
    pub fn replace(&self, code: SerialCode) -> bool {
        let Call::Serial(turns) = self else { return false };
        let mut serial = turns.lock.lock();
        let before = std::mem::replace(&mut serial.code, code);
        drop(serial);
        // Dropping it may run code of the program, so the lock is released before.
        drop(before);
        true
    }

    /// The same of code that may be called by several lanes at once. Calls that have begun end with the former code.
    pub fn replace_concurrent(&self, code: ConcurrentCode) -> bool {
        let Call::Concurrent(current) = self else { return false };
        drop(current.store(code));
        true
    }
}

/// Whether a consumer is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// It has its events.
    Active,
    /// Its events wait.
    Suspended,
    /// It is gone.
    Closed,
}

impl Connection {
    const ALL: [Connection; 3] = [Connection::Active, Connection::Suspended, Connection::Closed];
}

/// The filters and the operator of an admin, which its proxies share.
pub(crate) struct AdminFilters {
    pub operator: GroupOperator,
    pub filters: ReplacedFilters<FilterGroup>,
    /// Of an admin of consumers: what its members have where they say nothing themselves.
    pub mappings: ReplacedFilters<MappingFilters>,
}

impl AdminFilters {
    pub fn new(operator: GroupOperator) -> Self {
        let filters = ReplacedFilters::new(FilterGroup::default());
        AdminFilters { operator, filters, mappings: ReplacedFilters::new(MappingFilters::default()) }
    }
}

/// The number of an event that has not come to the queue.
const UNNUMBERED: u64 = u64::MAX;

/// What time has brought.
pub(crate) struct Brought {
    /// Events that may be delivered now.
    pub ready: usize,
    /// Events that may be delivered later.
    pub held: usize,
    /// All events that may be delivered later.
    pub waiting: usize,
    /// When it brings something again.
    pub due: Option<Due>,
}

/// What came of offering an event to a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// It waits, and one delivery more is due, not before this instant, with this priority and this time to expire.
    Queued { not_before: Instant, priority: i16, expires: Instant },
    /// It waits in the place of another one, for which a delivery is due already.
    InPlace,
    /// It waits for the consumer to take it.
    ToBePulled,
    /// A job is to look then, when time alone changes something.
    Due(Due),
    /// The consumer does not want it, by its filters or its state.
    Unwanted,
    /// It is discarded or expired; that is counted.
    Discarded,
}

/// What a job has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Events that were handed on.
    pub delivered: usize,
    /// Events that wait and may be delivered.
    pub left: usize,
    /// What is to do next for which no job is posted.
    pub due: Option<Due>,
}

/// What is set of a consumer; replaced as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub qos: Qos,
    pub filters: FilterGroup,
    pub mappings: MappingFilters,
}

/// See the module.
pub(crate) struct Consumer {
    pub number: u32,
    pub name: Box<str>,
    pub admin: Arc<AdminFilters>,
    pub settings: Replaced<Settings>,
    /// Events for which memory was made, waiting and at once.
    room: usize,
    batch_room: usize,
    connection: AtomicU8,
    mail: MailSender<Delivery>,
    /// Events in the mailbox, in the queue and held.
    queued: AtomicUsize,
    /// When an event was taken last, in nanoseconds.
    last_taken: AtomicI64,
    inner: PiLock<Inner>,
    call: Call,
    pub counts: ConsumerCounts,
    /// Called when a delivery was late.
    pub on_miss: Option<OnMiss>,
    /// What its events are to carry, if it has said so.
    pub content: Option<ContentType>,
    /// The condition over several events that it waits for, if it does.
    grouped: Option<Grouped>,
    /// Whether its deliveries always wait for their turn in the lane.
    pub is_queued: bool,
    /// The lanes in which it is to have its events, while it is not known where.
    lanes: Mutex<Vec<LaneWork>>,
    /// The first operation of the task that takes its events, if one does.
    pub task: Option<OperationId>,
    /// By which it has its events, unless it takes them itself.
    pub work: OnceLock<Work>,
    load: Arc<ChannelLoad>,
    /// Those of its channel.
    pub publications: Arc<Publications>,
    /// Raised when an event has come, if it is pulled.
    arrived: Signal,
    /// Those who wait for events of several consumers, of which it is one.
    followers: Followers,
}

struct Inner {
    mail: MailReceiver<Delivery>,
    queue: OrderedQueue,
    /// The number of the next event.
    next_number: u64,
    /// Since when less than a whole batch waits, if that is awaited.
    batch_since: Option<Instant>,
    may_expire: bool,
}

impl Consumer {
    pub fn new(
        (number, name): (u32, &str),
        admin: Arc<AdminFilters>,
        settings: Settings,
        (mut call, grouped): (Call, Option<Grouped>),
        (load, counters, publications): (Arc<ChannelLoad>, ChannelCounters, Arc<Publications>),
    ) -> Self {
        let qos = &settings.qos;
        let (room, batch_room) = (qos.max_events as usize, qos.max_batch as usize);
        if let Call::Serial(turns) = &mut call {
            turns.lock.get_mut().batch.reserve_exact(batch_room);
        }
        // As many again as may wait, for suppliers that come while somebody makes room.
        let (sender, receiver) = mailbox(2 * room);
        let queue = OrderedQueue::new(qos.order, qos.discard, room);
        if qos.blocking.is_some() {
            load.let_wait();
        }
        let inner = Inner { mail: receiver, queue, next_number: 0, batch_since: None, may_expire: false };
        Consumer {
            number,
            name: name.into(),
            admin,
            settings: Replaced::new(settings),
            room,
            batch_room,
            connection: AtomicU8::new(Connection::Active as u8),
            mail: sender,
            queued: AtomicUsize::new(0),
            last_taken: AtomicI64::new(i64::MIN),
            inner: PiLock::new(inner),
            call,
            counts: ConsumerCounts::new(counters),
            on_miss: None,
            content: None,
            is_queued: false,
            grouped,
            lanes: Mutex::default(),
            task: None,
            work: OnceLock::new(),
            load,
            publications,
            arrived: Signal::default(),
            followers: Followers::default(),
        }
    }

    /// The lanes that it is to have.
    pub fn keep_lanes(&self, lanes: Vec<LaneWork>) {
        *self.lanes.lock().unwrap_or_else(PoisonError::into_inner) = lanes;
    }

    /// Those of them that have not been taken.
    pub fn take_lanes(&self) -> Vec<LaneWork> {
        std::mem::take(&mut *self.lanes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many operations serve them, or are to.
    pub fn operations(&self) -> usize {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lanes.iter().map(|lane| lane.servers.len()).sum();
        self.work.get().map_or(kept, Work::operations)
    }

    /// Time counts from now on.
    pub fn begin(&self, now: Instant) {
        if let Some(grouped) = &self.grouped {
            grouped.begin(now);
        }
    }

    pub fn connection(&self) -> Connection {
        Connection::ALL[usize::from(self.connection.load(Ordering::Acquire))]
    }

    /// From this state into that one; false if it was in another one.
    pub fn change(&self, from: Connection, to: Connection) -> bool {
        let (from, to) = (from as u8, to as u8);
        self.connection.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Whether it waits for a condition over several events.
    pub fn is_grouped(&self) -> bool {
        self.grouped.is_some()
    }

    /// That condition.
    pub fn condition(&self) -> Option<&Condition> {
        self.grouped.as_ref().map(Grouped::condition)
    }

    pub fn is_pulled(&self) -> bool {
        self.call.is_pull()
    }

    /// Whether an event may be delivered in the midst of the job that pushes it. Not where a condition is looked at meanwhile.
    pub fn may_be_called_here(&self) -> bool {
        !self.is_queued && self.grouped.is_none()
    }

    /// Events that it can have at once: waiting, held, on the way and in the hands of a job; and those that a condition keeps.
    pub fn memory(&self) -> usize {
        let one = self.most_at_once();
        let kept = self.grouped.as_ref().map_or(0, Grouped::kept_events);
        (6 * self.room + 2) * one + kept
    }

    /// The most events that a delivery has.
    pub fn most_at_once(&self) -> usize {
        self.grouped.as_ref().map_or(1, Grouped::events)
    }

    /// Events that wait.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Events for which memory was made.
    pub fn room(&self) -> usize {
        self.room
    }

    /// It is called with this code from now on, if it is called with one event, or batch, at a time.
    pub fn call_with(&self, code: SerialCode) -> bool {
        self.call.replace(code)
    }

    /// The same if it is called by several lanes at once.
    pub fn call_concurrently_with(&self, code: ConcurrentCode) -> bool {
        self.call.replace_concurrent(code)
    }

    /// The same of those that it has at once.
    pub fn batch_room(&self) -> usize {
        self.batch_room
    }

    /// An event has been pushed whose type the consumer has subscribed to. Where it may have to wait for room, and the quality of service wants
    /// that, `wait` says what time it is.
    pub fn offer(
        &self,
        (event, stated): (&Event, &Stated),
        now: Instant,
        wait: Option<&dyn Fn() -> Instant>,
        each: &mut dyn FnMut(&Offered),
    ) {
        let settings = self.settings.load();
        match self.passed((event, stated), &settings, now) {
            Err(why) => each(&why),
            Ok(()) => match &self.grouped {
                None => each(&self.offer_one((event, stated), now, wait, &settings, None)),
                Some(grouped) if !grouped.concerns(event, now) => {
                    self.counts.filtered.add(1);
                    each(&Offered::Unwanted);
                }
                Some(grouped) => {
                    let mut came = |event: Event, gone: &mut Vec<Event>| {
                        each(&self.offer_one((&event, &Stated::NOTHING), now, None, &settings, Some(gone)));
                    };
                    let has_room = grouped.offer(event, now, &mut came);
                    match has_room {
                        true => _ = self.counts.grouped.fetch_add(1, Ordering::Relaxed),
                        false => self.counts.no_room.add(1),
                    }
                    if let Some(at) = grouped.due() {
                        each(&Offered::Due(Due { at, priority: settings.qos.priority }));
                    }
                }
            },
        }
    }

    /// Time has come to this, which may complete what a condition waits for.
    #[inline]
    fn pass_time(&self, now: Instant) {
        if let Some(grouped) = &self.grouped {
            // What comes of it is delivered by the job that looks.
            let settings = self.settings.load();
            grouped.pass(now, &mut |event, gone| {
                _ = self.offer_one((&event, &Stated::NOTHING), now, None, &settings, Some(gone));
            });
        }
    }

    /// The same of one whose events release a task, with what comes of it.
    pub fn time_came(&self, now: Instant) -> Brought {
        let (mut ready, mut held) = (0, 0);
        if let Some(grouped) = &self.grouped {
            let settings = self.settings.load();
            grouped.pass(now, &mut |event, gone| {
                if let Offered::Queued { not_before, .. } =
                    self.offer_one((&event, &Stated::NOTHING), now, None, &settings, Some(gone))
                {
                    *(if not_before > now { &mut held } else { &mut ready }) += 1;
                }
            });
        }
        let mut gone = Gone::default();
        let inner = self.drained(now, &mut gone);
        let waiting = inner.queue.held().iter().filter(|one| one.not_before > now).count();
        Brought { ready, held, waiting, due: self.due(&inner) }
    }

    /// Whether it is connected, the event can be judged in the time that is left to it, and filters let it through.
    fn passed(
        &self,
        (event, stated): (&Event, &Stated),
        settings: &Settings,
        now: Instant,
    ) -> Result<(), Offered> {
        if self.connection() == Connection::Closed {
            return Err(Offered::Unwanted);
        }
        if self.content.is_some_and(|content| content.id != event.content_type()) {
            self.counts.incompatible.add(1);
            return Err(Offered::Unwanted);
        }
        if let Some(left) = self.time_left((event, stated), settings, now)
            && left < self.longest(settings)
        {
            self.counts.expired.add(1);
            return Err(Offered::Discarded);
        }
        let (errors, proxy) = (&self.counts.filter_errors, settings.filters.judge(event, now));
        if !passes(self.admin.operator, proxy, || self.admin.filters.judge(event, now), errors) {
            self.counts.filtered.add(1);
            return Err(Offered::Unwanted);
        }
        Ok(())
    }

    /// Where a lock is held beyond this, what goes is put `beyond`, and dropped by who gives that back.
    fn offer_one(
        &self,
        (event, stated): (&Event, &Stated),
        now: Instant,
        wait: Option<&dyn Fn() -> Instant>,
        settings: &Settings,
        mut beyond: Option<&mut Vec<Event>>,
    ) -> Offered {
        let (qos, counts) = (&settings.qos, &self.counts);
        let Some(delivery) = self.delivery((event, stated), settings, now) else { return Offered::Discarded };
        if let Some(separation) = qos.separation
            && !self.is_separated(now, separation)
        {
            counts.too_soon.add(1);
            return Offered::Discarded;
        }
        let Delivery { not_before, priority, expires, .. } = delivery;
        if let (Some(limit), Some(now)) = (qos.blocking, wait)
            && self.is_full(qos)
        {
            counts.blocked.fetch_add(1, Ordering::Relaxed);
            _ = self.load.made_room().wait(limit, now, || !self.is_full(qos));
        }
        let entered = self.enter(delivery, qos, now, &mut beyond);
        if entered == Entered::Refused {
            return Offered::Discarded;
        }
        if self.connection() == Connection::Closed {
            // It was closed meanwhile, and nobody takes what came behind.
            self.close_with(beyond);
            return Offered::Discarded;
        }
        if self.is_pulled() {
            self.look_again();
            return Offered::ToBePulled;
        }
        if entered == Entered::InPlace && matches!(self.call, Call::Jobs) {
            return Offered::InPlace;
        }
        Offered::Queued { not_before, priority, expires }
    }

    fn is_full(&self, qos: &Qos) -> bool {
        self.queued() >= qos.max_events as usize || self.load.is_full()
    }

    /// The event as it is for this consumer; none if it has expired.
    #[inline]
    fn delivery(
        &self,
        (event, stated): (&Event, &Stated),
        settings: &Settings,
        now: Instant,
    ) -> Option<Delivery> {
        let (header, qos) = (event.header(), &settings.qos);
        let stated_priority = |header: &Header| header.priority;
        let mapped = self.mapped(settings, event, now, (stated_priority, i16::max));
        let priority = mapped.or(header.priority).or(stated.priority).unwrap_or(qos.priority);
        let stated_timeout = |header: &Header| header.timeout.filter(|timeout| *timeout > Duration::ZERO);
        let mapped = self.mapped(settings, event, now, (stated_timeout, Duration::min));
        let of_event = mapped.or(stated.timeout(event)).filter(|timeout| *timeout > Duration::ZERO);
        let pushed = stated.pushed.unwrap_or(now);
        let timeout = of_event.or(qos.timeout).map_or(Instant::MAX, |timeout| pushed.saturating_add(timeout));
        let stop = header.stop.filter(|_| qos.stop_times).unwrap_or(Instant::MAX);
        let not_before = header.start.filter(|_| qos.start_times).unwrap_or(now).max(now);
        let expires = timeout.min(stop);
        if expires < not_before || expires != Instant::MAX && expires - now < self.longest_since(settings) {
            self.counts.expired.add(1);
            return None;
        }
        let (number, arrival) = (UNNUMBERED, self.load.number());
        let (event, by) = (event.clone(), stated.by);
        Some(Delivery { event, priority, pushed, not_before, expires, number, arrival, by })
    }

    /// How long an event is worth anything from `now` on, if that is known before it is judged.
    #[inline]
    fn time_left(
        &self,
        (event, stated): (&Event, &Stated),
        settings: &Settings,
        now: Instant,
    ) -> Option<Duration> {
        let (header, qos) = (event.header(), &settings.qos);
        let timeout = match self.maps::<Duration>(settings) {
            // A mapping filter says so, which is evaluated as well.
            true => None,
            false => stated.timeout(event).filter(|timeout| *timeout > Duration::ZERO).or(qos.timeout),
        };
        let until_stop = header.stop.filter(|_| qos.stop_times).map(|stop| stop - now);
        let timeout = timeout.map(|timeout| timeout - (now - stated.pushed.unwrap_or(now)));
        timeout.into_iter().chain(until_stop).min()
    }

    /// How long it takes at most to judge an event by filters and mapping filters, its own and those of its admin.
    fn longest(&self, settings: &Settings) -> Duration {
        let condition = self.grouped.as_ref().map_or(Duration::ZERO, Grouped::longest);
        together([
            settings.filters.longest(),
            self.admin.filters.longest(),
            condition,
            self.longest_mapping(settings),
        ])
    }

    /// The same of what has not been compared with the time that is left to an event before its lifetime is known: everything, if a mapping filter says
    /// that, and mapping filters, if a condition has come true, from which on its events are worth something.
    fn longest_since(&self, settings: &Settings) -> Duration {
        match &self.grouped {
            Some(_) => self.longest_mapping(settings),
            None if self.maps::<Duration>(settings) => self.longest(settings),
            None => Duration::ZERO,
        }
    }

    fn longest_mapping(&self, settings: &Settings) -> Duration {
        let of_admin = self.admin.mappings.ask(MappingFilters::longest);
        together([settings.mappings.longest(), of_admin.unwrap_or_default()])
    }

    /// Whether mapping filters may say how long events are worth something.
    pub fn maps_lifetimes(&self) -> bool {
        self.maps::<Duration>(&self.settings.load())
    }

    /// Whether it or its admin has such a mapping filter.
    fn maps<V: MappedValue>(&self, settings: &Settings) -> bool {
        settings.mappings.have::<V>() || self.admin.mappings.ask(MappingFilters::have::<V>) == Some(true)
    }

    /// What mapping filters say of the event, if there are some and they do. Of several events, with which a condition has come true, what they or else
    /// the events say, put together by `of_both`.
    fn mapped<V: MappedValue>(
        &self,
        settings: &Settings,
        event: &Event,
        now: Instant,
        (stated, of_both): (impl Fn(&Header) -> Option<V>, impl Fn(V, V) -> V),
    ) -> Option<V> {
        if !self.maps::<V>(settings) {
            return None;
        }
        match event.content::<EventSet>() {
            None => self.mapped_one(settings, event, now),
            Some(EventSet(events)) => {
                let of_one =
                    |event: &Event| self.mapped_one(settings, event, now).or_else(|| stated(event.header()));
                events.iter().filter_map(of_one).reduce(of_both)
            }
        }
    }

    /// The same of one event: by its own filter, or else its admin's. That time has come is no event, and has none.
    fn mapped_one<V: MappedValue>(&self, settings: &Settings, event: &Event, now: Instant) -> Option<V> {
        if event.content::<TimeCame>().is_some() {
            return None;
        }
        let (own, mut errors) = settings.mappings.value::<V>(event, now);
        let value = own.or_else(|| {
            let (of_admin, more) = self.admin.mappings.ask(|filters| filters.value::<V>(event, now))?;
            errors += more;
            of_admin
        });
        if errors > 0 {
            self.counts.filter_errors.fetch_add(errors, Ordering::Relaxed);
        }
        value
    }

    /// Whether the last event that was taken lies so far behind; then this is the last one.
    fn is_separated(&self, now: Instant, separation: Duration) -> bool {
        let now = now.as_nanos();
        let mut last = self.last_taken.load(Ordering::Relaxed);
        while last == i64::MIN || now - last >= separation.as_nanos() {
            match self.last_taken.compare_exchange_weak(last, now, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => last = other,
            }
        }
        false
    }

    #[inline]
    fn enter(
        &self,
        delivery: Delivery,
        qos: &Qos,
        now: Instant,
        beyond: &mut Option<&mut Vec<Event>>,
    ) -> Entered {
        let is_one_too_many = self.load.add(&delivery);
        let before = self.queued.fetch_add(1, Ordering::Relaxed);
        self.counts.queue(&delivery.event);
        let coming = if is_one_too_many { Coming::of(&delivery) } else { None };
        let is_full = before >= qos.max_events as usize;
        let entered = if is_full { self.enter_full(delivery, beyond) } else { self.post(delivery, beyond) };
        match coming {
            Some(coming) if entered == Entered::Waits => {
                let mut gone = Gone::into(beyond.as_deref_mut());
                self.load.make_room(self, &coming, now, &mut gone)
            }
            _ => entered,
        }
    }

    #[cold]
    fn enter_full(&self, delivery: Delivery, beyond: &mut Option<&mut Vec<Event>>) -> Entered {
        let mut gone = Gone::into(beyond.as_deref_mut());
        while let Some(mut inner) = self.inner.try_lock() {
            if self.drain(&mut inner, delivery.pushed, &mut gone) {
                let from = from(&delivery, delivery.pushed);
                return self.place(&mut inner, delivery, from, &mut gone);
            }
            drop(inner);
            gone.let_go();
        }
        drop(gone);
        // Who has the lock is taking an event, and puts things right when it looks next.
        self.post(delivery, beyond)
    }

    #[inline]
    fn post(&self, delivery: Delivery, beyond: &mut Option<&mut Vec<Event>>) -> Entered {
        match self.mail.push(delivery) {
            Ok(()) => Entered::Waits,
            Err(delivery) => {
                self.leave(delivery, &self.counts.no_room, &mut Gone::into(beyond.as_deref_mut()));
                Entered::Refused
            }
        }
    }

    /// Puts the event into the queue, unless it is the one that goes for want of room.
    #[inline]
    fn place(&self, inner: &mut Inner, mut delivery: Delivery, from: From, gone: &mut Gone<'_>) -> Entered {
        if delivery.number == UNNUMBERED {
            delivery.number = inner.next_number;
            inner.next_number += 1;
        }
        inner.may_expire |= delivery.expires != Instant::MAX;
        let not_before = delivery.not_before;
        match inner.queue.push(delivery, from) {
            Came::Queued => Entered::Waits,
            Came::InPlaceOf(discarded) => {
                // Of one that was due later the delivery comes too late for this one.
                let is_in_time = discarded.not_before <= not_before;
                self.leave(discarded, &self.counts.discarded, gone);
                if is_in_time { Entered::InPlace } else { Entered::Waits }
            }
            Came::Refused(discarded) => {
                self.leave(discarded, &self.counts.discarded, gone);
                Entered::Refused
            }
        }
    }

    /// An event does not wait any more, for this reason.
    fn gone(&self, delivery: &Delivery, why: &Count) {
        self.counts.leave(&delivery.event, why);
        self.queued.fetch_sub(1, Ordering::Relaxed);
        self.load.remove(delivery);
    }

    /// The same of one that nobody has taken: what it carries is dropped when no lock is held.
    fn leave(&self, delivery: Delivery, why: &Count, gone: &mut Gone<'_>) {
        self.gone(&delivery, why);
        gone.add(delivery.event);
    }

    /// Takes of what is held what may be delivered by now, and what is in the mailbox, which came later. What has
    /// expired makes room first. False if that was not all, since so many are gone that they are to be dropped first;
    /// else there is room for one more of these.
    fn drain(&self, inner: &mut Inner, now: Instant, gone: &mut Gone<'_>) -> bool {
        if inner.may_expire {
            while !gone.is_full()
                && let Some(expired) = inner.queue.take_expired(now)
            {
                self.leave(expired, &self.counts.expired, gone);
            }
            if gone.is_full() {
                return false;
            }
            inner.may_expire = inner.queue.all().any(|delivery| delivery.expires != Instant::MAX);
        }
        inner.queue.let_go(now);
        while !gone.is_full()
            && let Some(delivery) = inner.mail.pop()
        {
            if delivery.expires < now {
                self.leave(delivery, &self.counts.expired, gone);
            } else {
                let from = from(&delivery, now);
                self.place(inner, delivery, from, gone);
            }
        }
        !gone.is_full()
    }

    /// The inner part, [drained](Self::drain). What is gone for that the caller drops after it has given the lock back,
    /// so `gone` is declared before the guard; it has room for one more.
    fn drained<'c>(&'c self, now: Instant, gone: &mut Gone<'_>) -> PiGuard<'c, Inner> {
        loop {
            let mut inner = self.inner.lock();
            if self.drain(&mut inner, now, gone) {
                return inner;
            }
            drop(inner);
            gone.let_go();
        }
    }

    /// Disconnects it; what waits is discarded. False if it was disconnected already.
    pub fn close(&self) -> bool {
        self.close_with(None)
    }

    /// The same where a lock is held beyond this.
    fn close_with(&self, beyond: Option<&mut Vec<Event>>) -> bool {
        let was = self.connection.swap(Connection::Closed as u8, Ordering::AcqRel);
        self.discard_all(beyond, |delivery| self.gone(delivery, &self.counts.discarded));
        self.look_again();
        was != Connection::Closed as u8
    }

    /// Nothing waits any more.
    fn discard_all(&self, beyond: Option<&mut Vec<Event>>, mut count: impl FnMut(&Delivery)) {
        let mut gone = Gone::into(beyond);
        loop {
            let mut inner = self.inner.lock();
            while !gone.is_full()
                && let Some(delivery) = { inner.mail.pop().or_else(|| inner.queue.take_any()) }
            {
                count(&delivery);
                gone.add(delivery.event);
            }
            drop(inner);
            if !gone.is_full() {
                return;
            }
            gone.let_go();
        }
    }

    /// The push of the event that has waited longest.
    pub fn oldest(&self, now: Instant) -> Option<Instant> {
        let mut gone = Gone::default();
        let inner = self.drained(now, &mut gone);
        inner.queue.all().map(|delivery| delivery.pushed).min()
    }

    /// The events that wait.
    pub fn waiting(&self, now: Instant) -> Vec<Event> {
        let mut gone = Gone::default();
        let inner = self.drained(now, &mut gone);
        inner.queue.all().map(|delivery| delivery.event().clone()).collect()
    }

    /// What is to be done now that it is known where: one job at least for each priority of events that wait, and what a condition waits for.
    pub fn dues(&self, now: Instant) -> Vec<Due> {
        let mut gone = Gone::default();
        let inner = self.drained(now, &mut gone);
        let priority = self.settings.load().qos.priority;
        let condition = self.grouped.as_ref().and_then(Grouped::due).map(|at| Due { at, priority });
        inner
            .queue
            .all()
            .map(|one| Due { at: one.not_before.max(now), priority: one.priority })
            .chain(condition)
            .collect()
    }

    /// The priorities of the events that may be delivered, in their order.
    pub fn priorities(&self, now: Instant) -> Vec<i16> {
        let mut gone = Gone::default();
        let inner = self.drained(now, &mut gone);
        inner.queue.iter().map(|delivery| delivery.priority).collect()
    }

    /// The priority of the first event that waits, may be delivered, and is not of this lane. None where each lane takes those of all.
    pub fn first_of_others(&self, is_of: impl Fn(i16) -> bool) -> Option<i16> {
        if self.settings.load().qos.max_batch > 1 {
            return None;
        }
        let inner = self.inner.lock();
        let mut priorities = inner.queue.iter().map(|waiting| waiting.priority);
        priorities.find(|priority| !is_of(*priority)).filter(|_| self.connection() == Connection::Active)
    }

    /// What `look` finds of the first event of this lane that waits and may be delivered. None where each lane takes those of all.
    pub fn first_of<R>(&self, is_of: impl Fn(i16) -> bool, look: impl FnOnce(&Delivery) -> R) -> Option<R> {
        if self.settings.load().qos.max_batch > 1 || self.connection() != Connection::Active {
            return None;
        }
        let inner = self.inner.lock();
        inner.queue.iter().find(|waiting| is_of(waiting.priority)).map(look)
    }

    /// Whoever waits for events looks again.
    #[inline]
    pub fn look_again(&self) {
        self.arrived.raise();
        self.followers.raise();
    }

    /// This is raised as well from now on when there may be something to take.
    pub fn follow(&self, signal: &Arc<Signal>) {
        self.followers.add(signal);
        // Either who pushes sees the follower from here on, or the follower sees what was pushed.
        self.arrived.raise();
    }

    /// This is not raised any more.
    pub fn follow_no_more(&self, signal: &Arc<Signal>) {
        self.followers.remove(signal);
    }

    /// Whether there is an event to be taken now, or will be none any more; if neither, from when on time alone may change that.
    pub fn outlook(&self, now: Instant) -> Outlook {
        self.pass_time(now);
        let mut gone = Gone::default();
        let mut inner = self.drained(now, &mut gone);
        match self.connection() {
            Connection::Closed => Outlook::Closed,
            _ if self.has_sequence(&mut inner, usize::MAX, now) => Outlook::Ready,
            _ => Outlook::Waits(self.due(&inner).map(|due| due.at)),
        }
    }

    /// What is counted.
    pub fn statistics(&self) -> ConsumerStatistics {
        let lost = self.grouped.as_ref().map_or(0, Grouped::lost);
        let LeftOut { timed_out, replaced, not_needed } =
            self.grouped.as_ref().map(Grouped::left_out).unwrap_or_default();
        ConsumerStatistics { lost_sets: lost, timed_out, replaced, not_needed, ..self.counts.read() }
    }

    /// What its quality of service comes to with these settings.
    ///
    /// # Errors
    /// Every problem: what cannot be, and what there is no memory for.
    pub fn qos_with(&self, settings: &QosSettings) -> Result<Qos, QosProblems> {
        let qos = self.settings.load().qos.with(settings, Level::Proxy)?;
        let made_for = [
            (PropertyName::MaxEventsPerConsumer, qos.max_events as usize, self.room),
            (PropertyName::MaximumBatchSize, qos.max_batch as usize, self.batch_room),
        ];
        let too_many = made_for.into_iter().filter(|(_, wanted, room)| wanted > room);
        let problems: Vec<QosProblem> = too_many
            .map(|(property, _, room)| {
                let allowed = format!("memory was made for {room} when it was connected");
                property.problem(QosError::UnavailableValue, allowed)
            })
            .collect();
        if problems.is_empty() { Ok(qos) } else { Err(QosProblems(problems)) }
    }

    /// Has another quality of service from now on. Who changes it has the lock, so that of several none undoes what another one has set.
    ///
    /// # Errors
    /// As [`Self::qos_with`]; nothing has changed.
    pub fn set_qos(&self, settings: &QosSettings) -> Result<(), QosProblems> {
        // Dropped when the lock has been given back: what events carry, and filters, may be code of the program, which
        // may push to this consumer.
        let (mut gone, former);
        let mut inner = self.inner.lock();
        let qos = self.qos_with(settings)?;
        let queue = inner.queue.replaced_by(qos.order, qos.discard, qos.max_events as usize);
        let before = std::mem::replace(&mut inner.queue, queue);
        gone = Vec::new();
        for (delivery, from) in before.into_events() {
            match inner.queue.push(delivery, from) {
                Came::Queued => {}
                Came::InPlaceOf(discarded) | Came::Refused(discarded) => {
                    self.gone(&discarded, &self.counts.discarded);
                    gone.push(discarded);
                }
            }
        }
        if qos.blocking.is_some() {
            self.load.let_wait();
        }
        former = self.set(|settings| settings.qos = qos.clone());
        drop(inner);
        drop((gone, former));
        Ok(())
    }

    /// Changes what is set.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) -> Vec<Settings> {
        self.settings.update(|settings| {
            let mut settings = Settings::clone(settings);
            change(&mut settings);
            settings
        })
    }
}

/// What who takes events finds at a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// An event.
    Ready,
    /// None, but perhaps from this instant on without anybody's doing.
    Waits(Option<Instant>),
    /// None, and none will come.
    Closed,
}

/// From when on an event may be delivered that is put into the queue at `now`, which may have been read before it was pushed.
fn from(delivery: &Delivery, now: Instant) -> From {
    if delivery.not_before > now.max(delivery.pushed) { From::Later } else { From::Now }
}

/// Whether an event waits now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entered {
    Waits,
    /// For another one that waited and is discarded.
    InPlace,
    Refused,
}
