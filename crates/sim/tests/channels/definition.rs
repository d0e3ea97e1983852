//! What each job that has subscribed to events has to take, whether they release its task or something else does, by the definitions alone: from the
//! records of what was pushed when, and when jobs began. It knows nothing of channels, filters or queues as they are built.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use talea_event::qos::{DiscardPolicy, Level, OrderPolicy, Qos};
use talea_model::{Collect, Condition, EventTake, EventTypeName, LaneDispatch, OperationId, System, Trigger};
use talea_policy::demand::{self, Purpose};
use talea_record::event::{Deliver, EventsLost, Push, Typed};
use talea_record::{EventLossReason, Record};
use talea_time::{Duration, Instant};

/// An event: its publication and the instance of who pushed it; none if time came.
type Event = Option<(u32, u64)>;

/// Where something comes: time before the events of that instant, and these one after the other.
type Place = (Instant, usize);

/// Something that a condition comes true with, and where.
type Truth = (Place, Vec<Event>);

/// All that is pushed for a task, in its order.
struct Pushed<'s> {
    all: Vec<(Place, Event, &'s EventTypeName, i64)>,
    end: Instant,
}

fn is_one(condition: &Condition, EventTypeName { domain, name }: &EventTypeName, x: i64) -> bool {
    let is =
        |part: &Condition| is_one(part, &EventTypeName { domain: domain.clone(), name: name.clone() }, x);
    match condition {
        Condition::Types(types) => types.iter().any(|pattern| pattern.matches(domain, name)),
        Condition::Matching(filter) => x < limit_of(filter),
        Condition::AllOfOne(parts) => parts.iter().all(is),
        Condition::Not(part) => !is(part),
        other => unreachable!("none is drawn: {other:?}"),
    }
}

fn limit_of(filter: &str) -> i64 {
    filter.strip_prefix("x < ").expect("filters are of this form").parse().expect("a number")
}

impl Pushed<'_> {
    /// The instants of a timer that began there.
    fn times(&self, from: Place, period: Duration) -> impl Iterator<Item = Truth> {
        let end = self.end;
        std::iter::successors(Some(from.0 + period), move |at| Some(*at + period))
            .take_while(move |at| *at <= end)
            .map(|at| ((at, 0), vec![None]))
    }

    /// Where the condition comes true behind `from`, where it began, and with what. It says of whole histories what a channel finds event by event.
    fn truths(&self, condition: &Condition, from: Place) -> Vec<Truth> {
        let of = |parts: &[Condition]| parts.iter().map(|part| self.truths(part, from)).collect::<Vec<_>>();
        match condition {
            // The first part that comes true in a place is the one.
            Condition::Any(parts) => {
                let mut first = BTreeMap::new();
                for (place, events) in of(parts).into_iter().flatten() {
                    first.entry(place).or_insert(events);
                }
                first.into_iter().collect()
            }
            Condition::All { parts, collect, within } => {
                let parts = of(parts);
                let mut places: Vec<Place> = parts.iter().flatten().map(|(place, _)| *place).collect();
                places.sort_unstable();
                places.dedup();
                let (mut truths, mut had, mut since) = (Vec::new(), vec![None; parts.len()], None);
                for place in places {
                    if is_over(since, *within, place) {
                        (had, since) = (vec![None; parts.len()], None);
                    }
                    for (part, had) in parts.iter().zip(&mut had) {
                        let came = part.iter().find(|(at, _)| *at == place);
                        let came = came.filter(|_| had.is_none() || *collect == Collect::Latest);
                        if let Some((_, events)) = came {
                            *had = Some(events.clone());
                            since.get_or_insert(place.0);
                        }
                    }
                    if had.iter().all(Option::is_some) {
                        let events = had.iter_mut().flat_map(|had| had.take().expect("all have"));
                        truths.push((place, events.collect()));
                        since = None;
                    }
                }
                truths
            }
            // One part after the other, each from where the one before came true.
            Condition::InOrder { parts, within } => {
                let (mut truths, mut begin) = (Vec::new(), from);
                'anew: loop {
                    let (mut at, mut since, mut all) = (begin, None, Vec::new());
                    for part in parts {
                        let next = self.truths(part, at).into_iter().next();
                        let over = since
                            .zip(*within)
                            .map(|(since, within)| since + within + Duration::from_nanos(1));
                        match next {
                            Some((place, _)) if is_over(since, *within, place) => {
                                begin = (over.expect("it has a limit"), 0);
                                continue 'anew;
                            }
                            Some((place, events)) => {
                                since.get_or_insert(place.0);
                                at = place;
                                all.extend(events);
                            }
                            None if over.is_some_and(|over| over <= self.end) => {
                                begin = (over.expect("it has a limit"), 0);
                                continue 'anew;
                            }
                            None => return truths,
                        }
                    }
                    truths.push((at, all));
                    begin = at;
                }
            }
            Condition::Times { part, count, within } => {
                let (mut truths, mut had, mut times, mut since) = (Vec::new(), Vec::new(), 0, None);
                for (place, events) in self.truths(part, from) {
                    if is_over(since, *within, place) {
                        (had, times, since) = (Vec::new(), 0, None);
                    }
                    since.get_or_insert(place.0);
                    had.extend(events);
                    times += 1;
                    if times == *count {
                        truths.push((place, std::mem::take(&mut had)));
                        (times, since) = (0, None);
                    }
                }
                truths
            }
            Condition::After(time) => self.times(from, *time).take(1).collect(),
            Condition::Every(period) => self.times(from, *period).collect(),
            // Each time that the part comes true, and at the beginning, it is awaited until the next time.
            Condition::Unless { part, within } => {
                let comes: Vec<Place> = self.truths(part, from).into_iter().map(|(place, _)| place).collect();
                let next = comes.iter().copied().map(Some).chain([None]);
                let silent = |(last, next): (Place, Option<Place>)| {
                    let due = (last.0 + *within, 0);
                    let is_it = due.0 <= self.end && next.is_none_or(|next| next > due);
                    is_it.then(|| (due, vec![None]))
                };
                [from].into_iter().chain(comes.iter().copied()).zip(next).filter_map(silent).collect()
            }
            one => {
                let all = self.all.iter().filter(|(place, ..)| *place > from);
                let those = all.filter(|(_, _, event_type, x)| is_one(one, event_type, *x));
                those.map(|(place, event, ..)| (*place, vec![*event])).collect()
            }
        }
    }
}

/// Whether what began then is over there.
fn is_over(since: Option<Instant>, within: Option<Duration>, place: Place) -> bool {
    since.zip(within).is_some_and(|(since, within)| place.0 - since > within)
}

/// What waits for an operation.
#[derive(Clone, Debug)]
struct Waiting {
    events: Vec<Event>,
    priority: i16,
    expires: Instant,
}

/// What is known of an operation that has subscribed.
struct Taker {
    /// Whether the events release its task.
    is_released: bool,
    take: EventTake,
    qos: Qos,
    /// What mapping filters say of events with a smaller field than this, or of all others.
    priorities: Vec<(Option<i64>, i16)>,
    timeouts: Vec<(Option<i64>, Duration)>,
    /// How long it takes at most to judge an event by filters, and how long that is for mapping filters alone.
    longest: Duration,
    longest_mapping: Duration,
    /// Whether it waits for a condition.
    is_grouped: bool,
    /// Filters let through what has a smaller field.
    below: Option<i64>,
    waiting: Vec<Waiting>,
    /// With what its condition comes true from now on.
    truths: VecDeque<Truth>,
    /// How many events have been pushed for it.
    pushed: usize,
    /// Jobs that events have released.
    released: u64,
    /// Those of them that have not begun, by instance.
    open: BTreeSet<u64>,
    /// How many have been released, or have come to nothing.
    gone: u64,
    lost: BTreeMap<EventLossReason, u64>,
    /// With how many subtasks the task begins, which have the same event.
    together: usize,
    /// Of instances of which some have begun: what they have, and how many have not.
    begun: BTreeMap<u64, (Vec<Event>, usize)>,
    /// Events of those, which keep their places.
    kept: usize,
    /// When the run ends.
    end: Instant,
}

/// What of the operations that have subscribed does not follow from the definitions.
pub fn faults(system: &System, records: &[Record]) -> Vec<String> {
    let end = records.last().map_or(Instant::ZERO, |record| record.time);
    let operations = system.operations();
    let mut takers: Vec<Option<Taker>> =
        operations.iter().map(|operation| followed(system, operation.id, records)).collect();
    // In a preemptive lane a job that goes before another one of its operation has its event when it gets there, which only the delivery says.
    let is_in_turn = system.lane_dispatch == LaneDispatch::NonPreemptive;
    let mut faults = Vec::new();
    let mut released = vec![0; takers.len()];
    // What a job that has begun has to have and has not been delivered, by operation.
    let mut wanted: Vec<Vec<Event>> = vec![Vec::new(); takers.len()];
    let taker_of: Vec<usize> =
        operations.iter().map(|operation| lead_of(system, operation.id).index()).collect();
    let mut lost: Vec<BTreeMap<EventLossReason, u64>> = vec![BTreeMap::new(); takers.len()];
    for record in records {
        takers.iter_mut().flatten().for_each(|taker| taker.come_to(system, (record.time, 0)));
        match record.typed() {
            Typed::Push(push) => {
                let subscribers = &system.publications()[push.publication as usize].subscribers;
                for subscriber in subscribers {
                    let taker = takers[subscriber.operation.index()].as_mut().expect("it subscribes");
                    if !taker.has_time(system, push.publication) {
                        taker.lose(EventLossReason::Expired);
                    } else if taker.wants(field_of(system, push.publication, push.job.instance)) {
                        taker.pushed += 1;
                        taker.come_to(system, (record.time, taker.pushed));
                    }
                }
            }
            Typed::Release(release) => {
                let index = release.job.operation.index();
                released[index] += 1;
                if let Some(taker) = takers[index].as_mut().filter(|taker| taker.is_released) {
                    taker.gone += 1;
                    taker.expire(record.time);
                    // What is not held is released for its event before that can expire.
                    let deadline = system.task_of(release.job.operation).deadline;
                    let is_held = record.time > release.deadline + -deadline;
                    if is_in_turn && is_held && taker.waiting.len() <= taker.open.len() {
                        faults
                            .push(format!("{:?} was released at {} for no event", release.job, record.time));
                    }
                    taker.open.insert(release.job.instance);
                }
            }
            Typed::Skip(skip) => {
                let index = skip.job.operation.index();
                released[index] += 1;
                let Some(taker) = takers[index].as_mut().filter(|taker| taker.is_released) else { continue };
                taker.gone += 1;
                taker.expire(record.time);
                // What is released later still; at the end nothing is.
                let held = (taker.released - taker.gone) as usize;
                if taker.waiting.len() > taker.open.len() + held && record.time < end {
                    faults.push(format!("without {:?} an event at {} has no job", skip.job, record.time));
                }
            }
            Typed::Start(start) => {
                let index = start.job.operation.index();
                if let Some(taker) = &mut takers[taker_of[index]] {
                    taker.open.remove(&start.job.instance);
                    if !wanted[index].is_empty() {
                        faults.push(format!("{:?} were not delivered by {}", wanted[index], record.time));
                    }
                    if is_in_turn {
                        wanted[index] = taker.begin(start.job.instance, record.time);
                    }
                }
            }
            Typed::Deliver(Deliver { job, from, publication, number, .. }) => {
                let index = job.operation.index();
                let taker = takers[taker_of[index]].as_mut().expect("it subscribes");
                if !is_in_turn && number == 0 {
                    wanted[index] = taker.begin(job.instance, record.time);
                }
                let wanted = &mut wanted[index];
                let event = Some((
                    publication.expect("an operation publishes it"),
                    from.expect("a job has pushed it").instance,
                ));
                // Those of a condition are told in the order of its parts.
                let has_order = !taker.is_grouped;
                match wanted.iter().position(|wanted| *wanted == event || has_order) {
                    Some(place) if wanted[place] != event => {
                        faults.push(format!("{job:?} took {event:?}, and before {wanted:?}"));
                    }
                    Some(place) => _ = wanted.remove(place),
                    None => faults.push(format!("{job:?} took {event:?}, and not {wanted:?}")),
                }
            }
            Typed::EventsLost(EventsLost { operation, events, why, .. }) => {
                // A job that finds nothing leaves no other trace.
                takers[operation as usize]
                    .as_mut()
                    .filter(|_| !is_in_turn)
                    .into_iter()
                    .for_each(|taker| taker.expire(record.time));
                *lost[operation as usize].entry(why.known().expect("a reason")).or_default() +=
                    u64::from(events);
            }
            _ => {}
        }
    }
    // Time looks at what waits, too, whenever it may bring something.
    takers.iter_mut().flatten().for_each(|taker| taker.expire(end));
    for (operation, taker) in operations.iter().zip(&takers) {
        let (index, name) = (operation.id.index(), &operation.name);
        if !wanted[index].is_empty() {
            faults.push(format!("{name}: {:?} were not delivered", wanted[index]));
        }
        if released[index] != released[taker_of[index]] {
            faults.push(format!("{name} was released otherwise than the others of its task"));
        }
        let Some(taker) = taker else { continue };
        // With a separation some wait for their release at the end.
        let is_exact = system.tasks[operation.task].separation.is_none();
        let differs = released[index] > taker.released || is_exact && released[index] < taker.released;
        if taker.is_released && differs {
            faults
                .push(format!("{name}: {} jobs were released, and not {}", released[index], taker.released));
        }
        // What is discarded when time brings something is told by who pushes or takes next.
        let is_timed = system.subscription_of(operation.id).is_some_and(|of| of.condition.is_timed());
        for why in [EventLossReason::Discarded, EventLossReason::Expired] {
            let (told, known) = (lost[index].get(&why), taker.lost.get(&why));
            // What nobody has looked at since is told of by nobody.
            if told.copied().unwrap_or(0) > known.copied().unwrap_or(0)
                || why == EventLossReason::Discarded && told.copied() != known.copied() && !is_timed
            {
                faults.push(format!("{name}: lost {why:?} {told:?}, and not {known:?}"));
            }
        }
    }
    faults
}

fn followed(system: &System, operation: OperationId, records: &[Record]) -> Option<Taker> {
    let own = &system.subtask(operation).subscription;
    let (subscription, is_released) = match (&system.task_of(operation).trigger, own) {
        (_, Some(subscription)) => (subscription, false),
        (Some(Trigger::Events(subscription)), None) => {
            let operation = &system.operations()[operation.index()];
            let stands_for_all =
                operation.predecessors.is_empty() && lead_of(system, operation.id) == operation.id;
            stands_for_all.then_some((subscription, true))?
        }
        _ => return None,
    };
    let end = records.last().map_or(Instant::ZERO, |record| record.time);
    let channel = Qos::default().with(&system.channels[subscription.channel].qos, Level::Channel);
    let qos = channel.expect("valid").with(&subscription.qos, Level::Proxy).expect("valid");
    let below = subscription.filter.as_deref().map(limit_of);
    let (waiting, released, lost) = (Vec::new(), 0, BTreeMap::new());
    let together = if is_released { firsts(system, operation).count() } else { 1 };
    let (truths, pushed, open, gone) = (VecDeque::new(), 0, BTreeSet::new(), 0);
    let limits = |filter: &Option<String>| filter.as_deref().map(limit_of);
    let priorities: Vec<_> =
        subscription.priority_by.iter().map(|entry| (limits(&entry.filter), entry.value)).collect();
    let timeouts: Vec<_> =
        subscription.timeout_by.iter().map(|entry| (limits(&entry.filter), entry.value)).collect();
    let filters = usize::from(below.is_some()) + 2 * subscription.condition.filters().len();
    let limits = priorities.iter().map(|entry| entry.0).chain(timeouts.iter().map(|entry| entry.0));
    let longest_mapping = FILTERING * limits.flatten().count() as i64;
    let mut followed = Taker {
        is_released,
        take: subscription.take,
        qos,
        priorities,
        timeouts,
        longest: FILTERING * filters as i64 + longest_mapping,
        longest_mapping,
        is_grouped: !matches!(subscription.condition, Condition::Types(_)),
        below,
        waiting,
        truths,
        pushed,
        released,
        open,
        gone,
        lost,
        together,
        begun: BTreeMap::new(),
        kept: 0,
        end,
    };
    let mut all: Vec<(Place, Event, &EventTypeName, i64)> = Vec::new();
    for (push, time) in records.iter().filter_map(|record| Some((Push::read(record)?, record.time))) {
        let site = &system.publications()[push.publication as usize];
        let subscribes = site.subscribers.iter().any(|one| one.operation == operation);
        let x = field_of(system, push.publication, push.job.instance);
        if subscribes && followed.has_time(system, push.publication) && followed.wants(x) {
            let place = (time, all.len() + 1);
            let event = Some((push.publication, push.job.instance));
            all.push((place, event, &system.publication(site).event_type, x));
        }
    }
    let pushed = Pushed { all, end };
    followed.truths = pushed.truths(&subscription.condition, (Instant::ZERO, 0)).into();
    Some(followed)
}

/// How long it takes at most to compare the field of an event, which has no other, with a number: an instruction, the name that is looked at, and an
/// instruction to go on.
const FILTERING: Duration = Duration::from_nanos(20);

/// The value of the first entry that is about an event with this field.
fn first_about<Value: Copy>(entries: &[(Option<i64>, Value)], x: i64) -> Option<Value> {
    entries.iter().find(|(below, _)| below.is_none_or(|below| x < below)).map(|(_, value)| *value)
}

/// The field by which filters decide.
fn field_of(system: &System, publication: u32, instance: u64) -> i64 {
    /// Streams of publications do not overlap.
    const FIELDS: usize = 1 << 10;
    let stream = demand::stream(system.seed, Purpose::Event, publication as usize * FIELDS);
    let described = system.publication(&system.publications()[publication as usize]);
    demand::field_from(&described.fields[0].values, stream, instance)
}

impl Taker {
    fn lose(&mut self, why: EventLossReason) {
        *self.lost.entry(why).or_default() += 1;
    }

    /// Whether an event with this field gets to its condition.
    fn wants(&self, x: i64) -> bool {
        self.below.is_none_or(|below| x < below)
    }

    /// Whether an event, if it is known how long it is worth something, can be judged in that time.
    fn has_time(&self, system: &System, publication: u32) -> bool {
        let stated = system.publication(&system.publications()[publication as usize]).timeout;
        let timeout = stated.or(self.qos.timeout).filter(|_| self.timeouts.is_empty());
        timeout.is_none_or(|timeout| timeout >= self.longest)
    }

    /// Whatever comes up to this place has come.
    fn come_to(&mut self, system: &System, place: Place) {
        while let Some((at, events)) = self.truths.pop_front_if(|(at, _)| *at <= place) {
            let of = |event: &(u32, u64)| system.publication(&system.publications()[event.0 as usize]);
            let x = |event: &(u32, u64)| field_of(system, event.0, event.1);
            let priority =
                |event: &(u32, u64)| first_about(&self.priorities, x(event)).or(of(event).priority);
            let timeout = |event: &(u32, u64)| first_about(&self.timeouts, x(event)).or(of(event).timeout);
            let priority = events.iter().flatten().filter_map(priority).max();
            let timeout = events.iter().flatten().filter_map(timeout).min();
            self.wait(events, priority, timeout, at.0);
        }
    }

    fn wait(
        &mut self,
        events: Vec<Event>,
        priority: Option<i16>,
        timeout: Option<talea_time::Duration>,
        now: Instant,
    ) {
        let priority = priority.unwrap_or(self.qos.priority);
        let expires = timeout.or(self.qos.timeout).map_or(Instant::MAX, |timeout| now + timeout);
        let longest = if self.is_grouped { self.longest_mapping } else { self.longest };
        if expires < now + longest {
            return self.lose(EventLossReason::Expired);
        }
        let come = Waiting { events, priority, expires };
        if self.waiting.len() + self.kept == self.qos.max_events as usize {
            self.expire(now);
        }
        if self.waiting.len() + self.kept < self.qos.max_events as usize {
            self.waiting.push(come);
            // At the end nothing is released any more.
            self.released += u64::from(now < self.end);
            return;
        }
        self.lose(EventLossReason::Discarded);
        // What others of its instance are to have stays.
        if self.waiting.is_empty() {
            return;
        }
        let least_priority = self.waiting.iter().map(|one| one.priority).min().expect("it is full");
        let soonest = self.waiting.iter().map(|one| one.expires).min().expect("it is full");
        let victim = match self.qos.discard {
            DiscardPolicy::Any | DiscardPolicy::Fifo => Some(0),
            DiscardPolicy::Lifo => None,
            DiscardPolicy::Priority => (come.priority > least_priority).then(|| {
                self.waiting.iter().position(|one| one.priority == least_priority).expect("one has it")
            }),
            DiscardPolicy::Deadline => (come.expires > soonest)
                .then(|| self.waiting.iter().position(|one| one.expires == soonest).expect("one has it")),
        };
        if let Some(victim) = victim {
            self.waiting.remove(victim);
            self.waiting.push(come);
        }
    }

    fn expire(&mut self, now: Instant) {
        let before = self.waiting.len();
        self.waiting.retain(|one| one.expires >= now);
        (self.waiting.len()..before).for_each(|_| self.lose(EventLossReason::Expired));
    }

    /// A job of this instance begins: what it has.
    fn begin(&mut self, instance: u64, now: Instant) -> Vec<Event> {
        if let Some((events, left)) = self.begun.get_mut(&instance) {
            let events = events.clone();
            *left -= 1;
            if *left == 0 {
                self.begun.remove(&instance);
                self.kept -= usize::from(!events.is_empty());
            }
            return told(events);
        }
        self.expire(now);
        let mut events = self.next();
        while self.take == EventTake::All && !self.waiting.is_empty() {
            let next = self.next();
            events.extend(next);
        }
        if self.together > 1 {
            self.kept += usize::from(!events.is_empty());
            self.begun.insert(instance, (events.clone(), self.together - 1));
        }
        told(events)
    }

    /// The events of the next of those that wait, which does not wait any more.
    fn next(&mut self) -> Vec<Event> {
        let next = match self.qos.order {
            OrderPolicy::Any | OrderPolicy::Fifo => (!self.waiting.is_empty()).then_some(0),
            OrderPolicy::Priority => {
                let most = self.waiting.iter().map(|one| one.priority).max();
                most.and_then(|most| self.waiting.iter().position(|one| one.priority == most))
            }
            OrderPolicy::Deadline => {
                let soonest = self.waiting.iter().map(|one| one.expires).min();
                soonest.and_then(|soonest| self.waiting.iter().position(|one| one.expires == soonest))
            }
        };
        next.map_or_else(Vec::new, |next| self.waiting.remove(next).events)
    }
}

/// Time comes from nobody, and is not recorded.
fn told(events: Vec<Event>) -> Vec<Event> {
    events.into_iter().filter(Option::is_some).collect()
}

/// The subtasks with which the task of an operation begins.
fn firsts(system: &System, operation: OperationId) -> impl Iterator<Item = OperationId> {
    let task = system.operations()[operation.index()].task;
    let all = system.operations_of(task).iter();
    all.filter(|operation| operation.predecessors.is_empty()).map(|operation| operation.id)
}

/// The one of them that stands for all, if events release its task and the operation is one of them; or else the operation itself.
fn lead_of(system: &System, operation: OperationId) -> OperationId {
    let is_released = matches!(system.task_of(operation).trigger, Some(Trigger::Events(_)));
    let is_first = system.operations()[operation.index()].predecessors.is_empty();
    let lead = firsts(system, operation).next().filter(|_| is_released && is_first);
    lead.unwrap_or(operation)
}
