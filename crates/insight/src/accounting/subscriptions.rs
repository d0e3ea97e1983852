//! What tasks and operations have of the events that they have subscribed to: how many were pushed, delivered and lost, and how long they were on the way.

use super::distribution::{Distribution, Precision, Recorder};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use talea_record::event::{Deliver, EventsLost, Push, Typed};
use talea_record::{EventLossReason, Metadata, OperationEntry, Record, ReleasedBy};
use talea_time::Instant;

/// Events of a publication whose pushes are remembered: an event that waits longer has no delay.
const REMEMBERED: usize = 4096;

/// The events of a task that is released by them, or of an operation whose jobs take them when something else releases them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionReport {
    /// The task, or that of the operation.
    pub task: String,
    /// The operation, if it takes events that do not release it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The channel.
    pub channel: String,
    /// Events of the types that it has subscribed to.
    pub pushed: u64,
    /// Events that its jobs took; what several jobs of an instance have counts once.
    pub delivered: u64,
    /// Lost because as many waited as may; of a conjunction, so many of these.
    pub discarded: u64,
    /// Lost because they were not worth being delivered any more; of a conjunction, so many of these.
    pub expired: u64,
    /// From the push of an event to the beginning of the job that took it.
    pub delay_ns: Option<Distribution>,
}

impl SubscriptionReport {
    /// The name of who has the events.
    pub fn subscriber(&self) -> &str {
        self.operation.as_ref().unwrap_or(&self.task)
    }

    /// Events that neither came nor were lost: they did not pass the filter, another one counted in their place, or they wait.
    pub fn others(&self) -> u64 {
        self.pushed.saturating_sub(self.delivered + self.discarded + self.expired)
    }
}

#[derive(Debug)]
struct Subscription {
    task: usize,
    /// If its events do not release the task.
    operation: Option<usize>,
    channel: String,
    pushed: u64,
    delivered: u64,
    discarded: u64,
    expired: u64,
    delay: Recorder,
    /// By instance, of the latest, the operation whose job had the events first, if the task begins with several.
    takers: Option<HashMap<u64, usize>>,
}

impl Subscription {
    /// A job of the operation has an event. Whether another one of its instance had it before.
    fn has_already(&mut self, operation: usize, instance: u64) -> bool {
        let Some(takers) = &mut self.takers else { return false };
        if takers.len() > 2 * REMEMBERED {
            let least = instance.saturating_sub(REMEMBERED as u64);
            takers.retain(|instance, _| *instance >= least);
        }
        *takers.entry(instance).or_insert(operation) != operation
    }
}

/// What is known of a publication.
#[derive(Debug)]
struct Publication {
    /// Of those who have subscribed to it.
    subscriptions: Vec<usize>,
    /// The instances of the latest events, and when they were pushed.
    pushed: VecDeque<(u64, Instant)>,
}

/// Those of all tasks and operations.
#[derive(Debug)]
pub(super) struct Subscriptions {
    subscriptions: Vec<Subscription>,
    publications: Vec<Publication>,
    /// By operation, its subscription, or else that of its task.
    of_operation: Vec<Option<usize>>,
}

impl Subscriptions {
    pub fn new(metadata: &Metadata, precision: Precision) -> Self {
        let mut subscriptions = Vec::new();
        let mut add = |task: usize, operation: Option<usize>, channel: String| {
            let delay = Recorder::new(precision);
            let (pushed, delivered, discarded, expired) = (0, 0, 0, 0);
            let is_first = |entry: &&OperationEntry| entry.task == task && entry.predecessors.is_empty();
            let begins_with_several = metadata.operations.iter().filter(is_first).nth(1).is_some();
            let takers = (operation.is_none() && begins_with_several).then(HashMap::new);
            subscriptions.push(Subscription {
                task,
                operation,
                channel,
                pushed,
                delivered,
                discarded,
                expired,
                delay,
                takers,
            });
            Some(subscriptions.len() - 1)
        };
        let mut of_task = vec![None; metadata.tasks.len()];
        for (task, entry) in metadata.tasks.iter().enumerate() {
            if entry.released_by != ReleasedBy::Events {
                continue;
            }
            let published = metadata.publications.iter().find(|one| one.subscribers.contains(&task));
            let channel = published.map_or_else(String::new, |one| one.channel.clone());
            of_task[task] = add(task, None, channel);
        }
        let mut of_taker = vec![None; metadata.operations.len()];
        for (operation, entry) in metadata.operations.iter().enumerate() {
            let published = metadata.publications.iter().find(|one| one.takers.contains(&operation));
            of_taker[operation] =
                published.and_then(|one| add(entry.task, Some(operation), one.channel.clone()));
        }
        let publications = metadata.publications.iter().map(|publication| {
            let released = publication.subscribers.iter().filter_map(|task| of_task[*task]);
            let takers = publication.takers.iter().filter_map(|operation| of_taker[*operation]);
            Publication { subscriptions: released.chain(takers).collect(), pushed: VecDeque::new() }
        });
        let operations = metadata.operations.iter().zip(&of_taker);
        Subscriptions {
            publications: publications.collect(),
            of_operation: operations.map(|(operation, own)| own.or(of_task[operation.task])).collect(),
            subscriptions,
        }
    }

    /// Takes a record of the family of events.
    pub fn record(&mut self, record: &Record) {
        match record.typed() {
            Typed::Push(Push { job, publication, .. }) => {
                let Some(known) = self.publications.get_mut(publication as usize) else {
                    return;
                };
                let Publication { subscriptions, pushed } = known;
                subscriptions.iter().for_each(|subscription| self.subscriptions[*subscription].pushed += 1);
                if pushed.len() == REMEMBERED {
                    pushed.pop_front();
                }
                pushed.push_back((job.instance, record.time));
            }
            Typed::Deliver(Deliver { job, from, publication, .. }) => {
                let Some(Some(subscription)) = self.of_operation.get(job.operation.index()) else { return };
                let subscription = &mut self.subscriptions[*subscription];
                if subscription.has_already(job.operation.index(), job.instance) {
                    return;
                }
                subscription.delivered += 1;
                let Some((from, known)) =
                    from.zip(publication.and_then(|of| self.publications.get(of as usize)))
                else {
                    return;
                };
                let pushed = known.pushed.iter().rev().find(|(instance, _)| *instance == from.instance);
                if let Some((_, at)) = pushed {
                    subscription.delay.record((record.time - *at).as_nanos());
                }
            }
            Typed::EventsLost(EventsLost { operation, events, why, .. }) => {
                let Some(Some(subscription)) = self.of_operation.get(operation as usize) else { return };
                let subscription = &mut self.subscriptions[*subscription];
                match why.known() {
                    Some(EventLossReason::Discarded) => subscription.discarded += u64::from(events),
                    Some(EventLossReason::Expired) => subscription.expired += u64::from(events),
                    None => {}
                }
            }
            _ => {}
        }
    }

    pub fn reports(&self, metadata: &Metadata) -> Vec<SubscriptionReport> {
        let report = |subscription: &Subscription| SubscriptionReport {
            task: metadata.tasks[subscription.task].name.clone(),
            operation: subscription.operation.map(|operation| metadata.operations[operation].name.clone()),
            channel: subscription.channel.clone(),
            pushed: subscription.pushed,
            delivered: subscription.delivered,
            discarded: subscription.discarded,
            expired: subscription.expired,
            delay_ns: subscription.delay.distribution(),
        };
        self.subscriptions.iter().map(report).collect()
    }
}
