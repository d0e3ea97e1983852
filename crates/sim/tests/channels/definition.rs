//! What each job of a task that is released by events has to take, by the definitions alone: from the records of what was pushed when, and when
//! jobs began. It knows nothing of channels, filters or queues as they are built.

use std::collections::BTreeMap;
use talea_event::qos::{DiscardPolicy, Level, OrderPolicy, Qos};
use talea_model::{Collect, LaneDispatch, OperationId, Subscription, System, Trigger};
use talea_policy::demand::{self, Purpose};
use talea_record::event::{Deliver, EventsLost, Push, Typed};
use talea_record::{EventLossReason, JobId, Record};
use talea_time::Instant;

/// An event: its publication and the instance of who pushed it.
type Event = (u32, u64);

/// What waits for a task.
#[derive(Clone, Debug)]
struct Waiting {
    events: Vec<Event>,
    priority: i16,
    expires: Instant,
}

struct Task<'s> {
    subscription: &'s Subscription,
    qos: Qos,
    /// Filters let through what has a smaller field.
    below: Option<i64>,
    waiting: Vec<Waiting>,
    /// By part of the conjunction, what it has.
    parts: Vec<Option<Event>>,
    since: Option<Instant>,
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
    let mut tasks: Vec<Option<Task<'_>>> =
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
        match record.typed() {
            Typed::Push(push) => {
                let parts = &system.publications()[push.publication as usize].subscribers;
                for (task, parts) in parts {
                    tasks[*task].as_mut().expect("it subscribes").push(system, push, parts, record.time);
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
                let event = (
                    publication.expect("an operation publishes it"),
                    from.expect("a job has pushed it").instance,
                );
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
        for why in [EventLossReason::Discarded, EventLossReason::Expired] {
            let (told, known) = (lost[index].get(&why), task.lost.get(&why));
            // What nobody has looked at since is told of by nobody.
            if told.copied().unwrap_or(0) > known.copied().unwrap_or(0)
                || why == EventLossReason::Discarded && told.copied() != known.copied()
            {
                faults.push(format!("{name}: lost {why:?} {told:?}, and not {known:?}"));
            }
        }
    }
    faults
}

fn followed(system: &System, task: usize, end: Instant) -> Option<Task<'_>> {
    let Some(Trigger::Events(subscription)) = &system.tasks[task].trigger else { return None };
    let channel = Qos::default().with(&system.channels[subscription.channel].qos, Level::Channel);
    let qos = channel.expect("valid").with(&subscription.qos, Level::Proxy).expect("valid");
    let below = subscription.filter.as_ref().map(|filter| {
        filter.strip_prefix("x < ").expect("filters are of this form").parse().expect("a number")
    });
    let parts = vec![None; if subscription.collect.is_some() { subscription.types.len() } else { 0 }];
    let (waiting, released, lost, wanted) = (Vec::new(), 0, BTreeMap::new(), Vec::new());
    Some(Task { subscription, qos, below, waiting, parts, since: None, released, lost, wanted, end })
}

impl Task<'_> {
    fn lose(&mut self, why: EventLossReason) {
        *self.lost.entry(why).or_default() += 1;
    }

    fn push(&mut self, system: &System, push: Push, parts: &[usize], now: Instant) {
        let Push { job, publication, .. } = push;
        /// Streams of publications do not overlap.
        const FIELDS: usize = 1 << 10;
        let stream = demand::stream(system.seed, Purpose::Event, publication as usize * FIELDS);
        let described = system.publication(&system.publications()[publication as usize]);
        let x = demand::field_from(&described.fields[0].values, stream, job.instance);
        if self.below.is_some_and(|below| x >= below) {
            return;
        }
        let event = (publication, job.instance);
        let of = |event: &Event| system.publication(&system.publications()[event.0 as usize]);
        let Some(collect) = self.subscription.collect else {
            return self.wait(vec![event], described.priority, described.timeout, now);
        };
        if let (Some(since), Some(within)) = (self.since, self.subscription.within)
            && now - since > within
        {
            (self.parts, self.since) = (vec![None; self.parts.len()], None);
        }
        for part in parts {
            if self.parts[*part].is_none() || collect == Collect::Latest {
                self.parts[*part] = Some(event);
                self.since.get_or_insert(now);
            }
        }
        if self.parts.iter().all(Option::is_some) {
            let events: Vec<Event> = self.parts.iter_mut().filter_map(Option::take).collect();
            self.since = None;
            let priority = events.iter().filter_map(|event| of(event).priority).max();
            let timeout = events.iter().filter_map(|event| of(event).timeout).min();
            self.wait(events, priority, timeout, now);
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
        self.wanted = next.map_or_else(Vec::new, |next| self.waiting.remove(next).events);
    }
}

/// The first operation of a task.
pub fn first_of(system: &System, task: usize) -> OperationId {
    let first = system.operations_of(task).iter().find(|operation| operation.predecessors.is_empty());
    first.expect("a task has a first subtask").id
}
