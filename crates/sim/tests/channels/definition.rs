//! What each job of a task that is released by events has to take, by the definitions alone: from the records of what was pushed when, and when
//! jobs began. It knows nothing of channels, filters or queues as they are built.

use std::collections::BTreeMap;
use talea_event::qos::{DiscardPolicy, Level, OrderPolicy, Qos};
use talea_model::{Collect, Condition, EventTypeName, LaneDispatch, OperationId, System, Trigger};
use talea_policy::demand::{self, Purpose};
use talea_record::event::{Deliver, EventsLost, Push, Typed};
use talea_record::{EventLossReason, JobId, Record};
use talea_time::{Duration, Instant};

/// An event: its publication and the instance of who pushed it; none if time came.
type Event = Option<(u32, u64)>;

/// A condition with what it has of its parts so far.
#[derive(Clone)]
enum Part {
    One(Condition),
    Any(Vec<Part>),
    All {
        parts: Vec<(Part, Vec<Event>)>,
        collect: Collect,
        within: Option<Duration>,
        since: Option<Instant>,
    },
    InOrder {
        parts: Vec<Part>,
        next: usize,
        had: Vec<Event>,
        within: Option<Duration>,
        since: Option<Instant>,
    },
    Timer {
        due: Instant,
        every: Option<Duration>,
    },
    Unless {
        part: Box<Part>,
        within: Duration,
        due: Instant,
    },
}

/// What comes: an event of this type with this field, or time alone.
#[derive(Clone, Copy)]
struct Step<'s> {
    event: Event,
    event_type: Option<(&'s EventTypeName, i64)>,
    now: Instant,
}

fn is_one(condition: &Condition, step: Step<'_>) -> bool {
    let Some((EventTypeName { domain, name }, x)) = step.event_type else { return false };
    match condition {
        Condition::Types(types) => types.iter().any(|pattern| pattern.matches(domain, name)),
        Condition::Matching(filter) => x < limit_of(filter),
        Condition::AllOfOne(parts) => parts.iter().all(|part| is_one(part, step)),
        Condition::Not(part) => !is_one(part, step),
        other => unreachable!("none is drawn: {other:?}"),
    }
}

fn limit_of(filter: &str) -> i64 {
    filter.strip_prefix("x < ").expect("filters are of this form").parse().expect("a number")
}

/// Begins anew if it began too long ago.
fn begun(since: &mut Option<Instant>, within: Option<Duration>, now: Instant) -> bool {
    let is_over = since.zip(within).is_some_and(|(since, within)| now - since > within);
    if is_over {
        *since = None;
    }
    is_over
}

impl Part {
    fn of(condition: &Condition) -> Self {
        let all = |parts: &[Condition]| parts.iter().map(Part::of).collect::<Vec<_>>();
        match condition {
            Condition::Any(parts) => Part::Any(all(parts)),
            Condition::All { parts, collect, within } => {
                let parts = all(parts).into_iter().map(|part| (part, Vec::new())).collect();
                Part::All { parts, collect: *collect, within: *within, since: None }
            }
            Condition::InOrder { parts, within } => {
                Part::InOrder { parts: all(parts), next: 0, had: Vec::new(), within: *within, since: None }
            }
            Condition::After(time) => Part::Timer { due: Instant::ZERO + *time, every: None },
            Condition::Every(period) => Part::Timer { due: Instant::ZERO + *period, every: Some(*period) },
            Condition::Unless { part, within } => {
                Part::Unless { part: Box::new(Part::of(part)), within: *within, due: Instant::ZERO + *within }
            }
            one => Part::One(one.clone()),
        }
    }

    /// What it comes true with, if it does.
    fn feed(&mut self, step: Step<'_>) -> Option<Vec<Event>> {
        let now = step.now;
        match self {
            Part::One(condition) => is_one(condition, step).then(|| vec![step.event]),
            Part::Any(parts) => {
                let came: Vec<_> = parts.iter_mut().filter_map(|part| part.feed(step)).collect();
                came.into_iter().next()
            }
            Part::All { parts, collect, within, since } => {
                if begun(since, *within, now) {
                    parts.iter_mut().for_each(|(_, had)| had.clear());
                }
                for (part, had) in parts.iter_mut() {
                    let came = part.feed(step).filter(|_| had.is_empty() || *collect == Collect::Latest);
                    if let Some(came) = came {
                        *had = came;
                        since.get_or_insert(now);
                    }
                }
                if parts.iter().any(|(_, had)| had.is_empty()) {
                    return None;
                }
                *since = None;
                Some(parts.iter_mut().flat_map(|(_, had)| std::mem::take(had)).collect())
            }
            Part::InOrder { parts, next, had, within, since } => {
                if begun(since, *within, now) {
                    (*next, *had) = (0, Vec::new());
                }
                had.extend(parts[*next].feed(step)?);
                since.get_or_insert(now);
                *next = (*next + 1) % parts.len();
                if *next != 0 {
                    return None;
                }
                *since = None;
                Some(std::mem::take(had))
            }
            Part::Timer { due, every } => {
                let is_it = step.event.is_none() && *due <= now;
                while is_it && *due <= now {
                    *due = every.map_or(Instant::MAX, |every| *due + every);
                }
                is_it.then(|| vec![None])
            }
            Part::Unless { part, within, due } => {
                if part.feed(step).is_some() {
                    *due = now + *within;
                    return None;
                }
                let is_it = step.event.is_none() && *due <= now;
                if is_it {
                    *due = Instant::MAX;
                }
                is_it.then(|| vec![None])
            }
        }
    }

    fn due(&self) -> Instant {
        match self {
            Part::One(_) => Instant::MAX,
            Part::Any(parts) => parts.iter().map(Part::due).min().expect("it has parts"),
            Part::All { parts, .. } => parts.iter().map(|(part, _)| part.due()).min().expect("it has parts"),
            Part::InOrder { parts, next, .. } => parts[*next].due(),
            Part::Timer { due, .. } => *due,
            Part::Unless { part, due, .. } => part.due().min(*due),
        }
    }
}

/// What waits for a task.
#[derive(Clone, Debug)]
struct Waiting {
    events: Vec<Event>,
    priority: i16,
    expires: Instant,
}

struct Task {
    qos: Qos,
    /// Filters let through what has a smaller field.
    below: Option<i64>,
    waiting: Vec<Waiting>,
    condition: Part,
    /// When something came last.
    latest: Instant,
    /// Jobs that events have released.
    released: u64,
    lost: BTreeMap<EventLossReason, u64>,
    /// What a job that has begun has to take, and what it has taken.
    wanted: Vec<Event>,
    /// When the run ends.
    end: Instant,
}

/// What of the task does not follow from the definitions.
pub fn faults(system: &System, records: &[Record]) -> Vec<String> {
    let end = records.last().map_or(Instant::ZERO, |record| record.time);
    let mut tasks: Vec<Option<Task>> =
        (0..system.tasks.len()).map(|task| followed(system, task, end)).collect();
    let first = |job: JobId| {
        let operation = &system.operations()[job.operation.index()];
        operation.predecessors.is_empty().then_some(operation.task)
    };
    // In a preemptive lane a job that goes before another one of its task has its event when it gets there, which only the delivery says.
    let is_in_turn = system.lane_dispatch == LaneDispatch::NonPreemptive;
    let mut faults = Vec::new();
    let mut released = vec![0; tasks.len()];
    let mut lost: Vec<BTreeMap<EventLossReason, u64>> = vec![BTreeMap::new(); tasks.len()];
    for record in records {
        tasks.iter_mut().flatten().for_each(|task| task.pass(system, record.time));
        match record.typed() {
            Typed::Push(push) => {
                let subscribers = &system.publications()[push.publication as usize].subscribers;
                for (task, _) in subscribers {
                    tasks[*task].as_mut().expect("it subscribes").push(system, push, record.time);
                }
            }
            Typed::Release(release) => {
                if let Some(task) = first(release.job) {
                    released[task] += 1;
                }
            }
            Typed::Start(start) => {
                if let Some(task) = first(start.job)
                    && let Some(task) = &mut tasks[task]
                {
                    if !task.wanted.is_empty() {
                        faults.push(format!("{:?} were not delivered by {}", task.wanted, record.time));
                    }
                    if is_in_turn {
                        task.begin(record.time);
                    }
                }
            }
            Typed::Deliver(Deliver { job, from, publication, number, .. }) => {
                let task = first(job).and_then(|task| tasks[task].as_mut()).expect("it subscribes");
                if !is_in_turn && number == 0 {
                    task.begin(record.time);
                }
                let event = Some((
                    publication.expect("an operation publishes it"),
                    from.expect("a job has pushed it").instance,
                ));
                match task.wanted.iter().position(|wanted| *wanted == event) {
                    Some(place) => _ = task.wanted.remove(place),
                    None => faults.push(format!("{job:?} took {event:?}, and not {:?}", task.wanted)),
                }
            }
            Typed::EventsLost(EventsLost { operation, events, why, .. }) => {
                let task = system.operations()[operation as usize].task;
                // A job that finds nothing leaves no other trace.
                tasks[task]
                    .as_mut()
                    .filter(|_| !is_in_turn)
                    .into_iter()
                    .for_each(|task| task.expire(record.time));
                *lost[task].entry(why.known().expect("a reason")).or_default() += u64::from(events);
            }
            _ => {}
        }
    }
    // Time looks at what waits, too, whenever it may bring something.
    tasks.iter_mut().flatten().for_each(|task| task.expire(end));
    for (index, task) in tasks.iter().enumerate().filter_map(|(index, task)| Some((index, task.as_ref()?))) {
        let name = &system.tasks[index].name;
        if !task.wanted.is_empty() {
            faults.push(format!("{name}: {:?} were not delivered", task.wanted));
        }
        // With a separation some wait for their release at the end.
        let is_exact = system.tasks[index].separation.is_none();
        if released[index] > task.released || is_exact && released[index] < task.released {
            faults.push(format!("{name}: {} jobs were released, and not {}", released[index], task.released));
        }
        // What is discarded when time brings something is told by who pushes or takes next.
        let is_timed = match &system.tasks[index].trigger {
            Some(Trigger::Events(subscription)) => subscription.condition.is_timed(),
            _ => false,
        };
        for why in [EventLossReason::Discarded, EventLossReason::Expired] {
            let (told, known) = (lost[index].get(&why), task.lost.get(&why));
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

fn followed(system: &System, task: usize, end: Instant) -> Option<Task> {
    let Some(Trigger::Events(subscription)) = &system.tasks[task].trigger else { return None };
    let channel = Qos::default().with(&system.channels[subscription.channel].qos, Level::Channel);
    let qos = channel.expect("valid").with(&subscription.qos, Level::Proxy).expect("valid");
    let below = subscription.filter.as_deref().map(limit_of);
    let condition = Part::of(&subscription.condition);
    let (waiting, released, lost, wanted) = (Vec::new(), 0, BTreeMap::new(), Vec::new());
    Some(Task { qos, below, waiting, condition, latest: Instant::ZERO, released, lost, wanted, end })
}

impl Task {
    fn lose(&mut self, why: EventLossReason) {
        *self.lost.entry(why).or_default() += 1;
    }

    /// Time comes to this, at the latest at the end.
    fn pass(&mut self, system: &System, now: Instant) {
        while self.condition.due() <= now {
            // A part of a sequence whose turn has only just come may have been due before.
            let due = self.condition.due().max(self.latest);
            self.step(system, Step { event: None, event_type: None, now: due });
        }
    }

    fn push(&mut self, system: &System, push: Push, now: Instant) {
        let Push { job, publication, .. } = push;
        /// Streams of publications do not overlap.
        const FIELDS: usize = 1 << 10;
        let stream = demand::stream(system.seed, Purpose::Event, publication as usize * FIELDS);
        let described = system.publication(&system.publications()[publication as usize]);
        let x = demand::field_from(&described.fields[0].values, stream, job.instance);
        if self.below.is_some_and(|below| x >= below) {
            return;
        }
        let event = Some((publication, job.instance));
        self.step(system, Step { event, event_type: Some((&described.event_type, x)), now });
    }

    fn step(&mut self, system: &System, step: Step<'_>) {
        self.latest = step.now;
        let Some(events) = self.condition.feed(step) else { return };
        let of = |event: &(u32, u64)| system.publication(&system.publications()[event.0 as usize]);
        let priority = events.iter().flatten().filter_map(|event| of(event).priority).max();
        let timeout = events.iter().flatten().filter_map(|event| of(event).timeout).min();
        self.wait(events, priority, timeout, step.now);
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
        let come = Waiting { events, priority, expires };
        if self.waiting.len() == self.qos.max_events as usize {
            self.expire(now);
        }
        if self.waiting.len() < self.qos.max_events as usize {
            self.waiting.push(come);
            // At the end nothing is released any more.
            self.released += u64::from(now < self.end);
            return;
        }
        self.lose(EventLossReason::Discarded);
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

    fn begin(&mut self, now: Instant) {
        self.expire(now);
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
        let events = next.map_or_else(Vec::new, |next| self.waiting.remove(next).events);
        // Time comes from nobody, and is not recorded.
        self.wanted = events.into_iter().filter(Option::is_some).collect();
    }
}

/// The first operation of a task.
pub fn first_of(system: &System, task: usize) -> OperationId {
    let first = system.operations_of(task).iter().find(|operation| operation.predecessors.is_empty());
    first.expect("a task has a first subtask").id
}
