//! Events of channels: what a job takes was pushed for it, is taken once, and in the order in which it came where the quality of service says
//! so. Which events a filter lets through is not judged: what programs push is not in the trace.
//!
//! On real threads two that push at once are recorded in another order than they come into a queue; of those less than the tolerance apart nothing
//! is said. A thread may also lose its processor between telling of a push and making it: that an event was taken out of turn is certain only where
//! the operation that pushed it had begun its next job before the job began that pushed the other one, and else [possible](Certainty::Possible).

use super::judge::Judge;
use super::report::{Certainty, Rule};
use super::shared_events::SharedEvents;
use std::collections::{HashMap, VecDeque};
use talea_event::qos::OrderPolicy;
use talea_model::{Condition, EventTake, Subscriber, Subscription, System};
use talea_record::event::{Deliver, Push};
use talea_record::{Event, JobId, Metadata, RecordedEvents};
use talea_time::Instant;

/// Events of a publication that are remembered: more than wait at any time.
const REMEMBERED: usize = 1 << 17;

/// Jobs of an operation of which is remembered when they began: of late ones events may have waited for long.
const BEGUN: usize = 256;

/// What has been delivered to jobs of an operation.
#[derive(Debug, Default)]
struct Delivered {
    /// Publication and instance of the event, with the job that took it last, and how many have.
    events: HashMap<(u32, u64), (JobId, usize)>,
    /// The latest job, and the place behind the leaf of its condition of which it has an event.
    job: Option<JobId>,
    next_leaf: usize,
    /// How often the condition has come true for what that has, as far as is known.
    times: u32,
}

/// How late the events are that jobs of an operation, or of a task that begins with several, have taken out of a channel.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    /// When the latest event was pushed.
    pushed: Option<Instant>,
    /// When the latest of the jobs began that pushed one of the events.
    begun: Option<Instant>,
}

/// What is known of all publications and subscriptions.
#[derive(Debug)]
pub(super) struct Events {
    is_known: bool,
    /// By publication: instances, and when they were pushed.
    pushed: Vec<VecDeque<(u64, Instant)>>,
    /// By operation: the instances that began last, and when.
    begun: Vec<VecDeque<(u64, Instant)>>,
    /// By operation.
    delivered: Vec<Delivered>,
    /// By operation, of which there is one for all first subtasks of a task.
    latest: Vec<Latest>,
    /// By task: what its first subtasks have together, if it begins with several when there are events.
    shared: Vec<Option<SharedEvents>>,
    /// By operation, whether events come in the order in which they were pushed.
    in_order: Vec<bool>,
}

impl Events {
    pub fn new(trace: &Metadata, system: &System) -> Self {
        let in_order = |operation: &talea_model::Operation| match system.subscription_of(operation.id) {
            Some(subscription) if subscription.condition.comes_at_once() => {
                let order = system.subscription_qos(subscription).order;
                matches!(order, OrderPolicy::Any | OrderPolicy::Fifo)
            }
            _ => false,
        };
        Events {
            is_known: true,
            pushed: system.publications().iter().map(|_| VecDeque::new()).collect(),
            begun: trace.operations.iter().map(|_| VecDeque::new()).collect(),
            delivered: system.operations().iter().map(|_| Delivered::default()).collect(),
            latest: vec![Latest::default(); system.operations().len()],
            shared: (0..system.tasks.len()).map(|task| SharedEvents::of(system, task)).collect(),
            in_order: system.operations().iter().map(in_order).collect(),
        }
    }

    /// Of a trace that has these events.
    pub fn rest_on(&mut self, recorded: &RecordedEvents) {
        self.is_known &= recorded.has_all(&[Event::PUSH, Event::DELIVER]);
    }

    /// Whether all is known that was pushed.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// A job begins.
    pub fn begins(&mut self, job: JobId, now: Instant) {
        let Some(begun) = self.begun.get_mut(job.operation.index()) else { return };
        if begun.len() == BEGUN {
            begun.pop_front();
        }
        begun.push_back((job.instance, now));
    }

    /// Records are missing.
    pub fn forget(&mut self) {
        self.is_known = false;
        self.shared.iter_mut().flatten().for_each(SharedEvents::forget);
    }

    /// What first subtasks of a task have together, if it begins with several when there are events.
    pub fn shared_by(&mut self, task: usize) -> Option<&mut SharedEvents> {
        self.shared.get_mut(task).and_then(Option::as_mut)
    }
}

impl Judge<'_> {
    pub(super) fn push(&mut self, told: Push) {
        let Push { job, publication, .. } = told;
        let Some(site) = self.system.publications().get(publication as usize) else { return };
        if site.operation != job.operation {
            return self
                .find(Rule::Events, job, None, || "it pushed what another operation publishes".into());
        }
        self.inheritance.pushed(job, publication as usize, self.now);
        let (now, pushed) = (self.now, &mut self.events.pushed[publication as usize]);
        if pushed.len() == REMEMBERED {
            pushed.pop_front();
        }
        pushed.push_back((job.instance, now));
    }

    pub(super) fn deliver(&mut self, told: Deliver) {
        let Deliver { job, from, publication, .. } = told;
        let task = self.trace.operations[job.operation.index()].task;
        // What programs push otherwise is not described, also where it has a number.
        let described = publication.map(|publication| publication as usize);
        let site = described.and_then(|publication| self.system.publications().get(publication));
        let (Some(from), Some(publication), Some(site)) = (from, publication, site) else {
            return self.inheritance.heard_program(task);
        };
        if !self.events.is_known {
            return self.findings.leave_unknown(Rule::Events, 1);
        }
        self.findings.count_case(Rule::Events);
        let described = self.system.operations().get(job.operation.index());
        let Some(subscription) = described.and_then(|described| self.system.subscription_of(described.id))
        else {
            return self.find(Rule::Events, job, Some(from), || "it has not subscribed to any events".into());
        };
        let subscriber = site.subscriber(job.operation);
        let subscriber =
            subscriber.filter(|subscriber| site.operation == from.operation && !subscriber.leaves.is_empty());
        let Some(Subscriber { operation: lead, leaves, is_released, .. }) = subscriber else {
            return self.find(Rule::Events, job, Some(from), || {
                "it has not subscribed to the event that it took".into()
            });
        };
        let pushed = self.events.pushed[publication as usize].iter().rev();
        let pushed = pushed.copied().find(|(instance, _)| *instance == from.instance).map(|(_, at)| at);
        let is_simulated = self.is_simulated();
        let (tolerance, in_order) = (self.tolerance, self.events.in_order[job.operation.index()]);
        let Events { delivered, begun, latest, shared, .. } = &mut self.events;
        let (delivered, latest) = (&mut delivered[job.operation.index()], &mut latest[lead.index()]);
        let shared = shared[task].as_mut().filter(|_| *is_released);
        let is_shared = shared.is_some();
        // What it only has, too, was another one's turn.
        let takes = shared.is_none_or(|shared| shared.take(job, (publication, from.instance)));
        // Instances and when they began, the latest first.
        let begun = || begun.get(from.operation.index()).into_iter().flatten().rev().copied();
        let own_begun = begun().find(|(instance, _)| *instance == from.instance).map(|(_, at)| at);
        let is_first = delivered.job != Some(job);
        if is_first {
            (delivered.job, delivered.next_leaf, delivered.times) = (Some(job), 0, 0);
        }
        // One event may be of several parts of a condition.
        let (last, had) = delivered.events.entry((publication, from.instance)).or_insert((job, 0));
        let is_twice = *had > 0 && *last == job && subscription.condition.comes_at_once();
        *had = (*had).max(1);
        if *last != job {
            (*last, *had) = (job, *had + 1);
        }
        let is_taken = *had > if is_kept_once(&subscription.condition) { 1 } else { leaves.len() };
        if delivered.events.len() > 2 * REMEMBERED {
            let least = from.instance.saturating_sub(REMEMBERED as u64 / 2);
            delivered.events.retain(|(_, instance), _| *instance >= least);
        }
        let Latest { pushed: before, begun: others_begun } = *latest;
        if takes {
            *latest = Latest { pushed: before.max(pushed), begun: others_begun.max(own_begun) };
        }
        let mut certainty = Certainty::Certain;
        let problem = match pushed {
            None => Some("nobody has pushed the event that it took"),
            Some(_) if is_taken => Some("another job of its operation had the event that it took"),
            Some(_) if is_twice => Some("it took an event twice"),
            Some(at)
                if in_order
                    && takes
                    && before.is_some_and(|before| before > at.saturating_add(tolerance)) =>
            {
                let next = begun().filter(|(instance, _)| *instance > from.instance).map(|(_, at)| at).min();
                // Of jobs that begin at once in several lanes the records do not tell which came first.
                if !is_simulated && (is_shared || next.is_none_or(|next| others_begun <= Some(next))) {
                    certainty = Certainty::Possible;
                }
                Some("it took an event that was pushed before one that another job had")
            }
            Some(_) => delivered.beside(subscription, leaves, self.system.most_taken(subscription)),
        };
        if let Some(problem) = problem {
            self.find_with(Rule::Events, certainty, (job, Some(from)), || problem.into());
        }
    }
}

/// Whether an event is handed on once at most: nested parts may each keep it, and come true at different times.
fn is_kept_once(condition: &Condition) -> bool {
    match condition {
        Condition::All { parts, .. } | Condition::InOrder { parts, .. } => {
            parts.iter().all(Condition::is_of_one_event)
        }
        Condition::Times { part, .. } => part.is_of_one_event(),
        condition => condition.comes_at_once(),
    }
}

impl Delivered {
    /// What is wrong with the job having the event beside others. Events of a condition come in the order of its leaves, each time that it comes true, for
    /// which a job may have as much as was taken at `most`.
    fn beside(&mut self, subscription: &Subscription, leaves: &[usize], most: u32) -> Option<&'static str> {
        let comes_at_once = subscription.condition.comes_at_once();
        // Of one leaf come several, in whichever order with those of others.
        if subscription.condition.events_of_leaf() > 1 {
            self.times += 1;
            let all = most as usize * subscription.condition.events();
            return (self.times as usize > all).then_some("it took more events than its condition has");
        }
        let next =
            leaves.iter().find(|leaf| **leaf >= self.next_leaf).filter(|_| !comes_at_once && self.times > 0);
        if let Some(leaf) = next {
            self.next_leaf = leaf + 1;
            return None;
        }
        self.times += 1;
        self.next_leaf = leaves.first().map_or(0, |leaf| leaf + 1);
        match (self.times > most, subscription.take, comes_at_once) {
            (false, _, _) => None,
            (true, EventTake::Next, true) => Some("it took two events, and each job has one"),
            (true, EventTake::Next, false) => Some("it took two events for one part of its condition"),
            (true, EventTake::All, _) => Some("it took more events than may wait"),
        }
    }
}
