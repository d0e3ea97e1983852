//! The channels that a description of a system declares: made, with a supplier for all that operations publish and a consumer for each task that is
//! released by events, whose deliveries are its jobs.
//!
//! Simulations, runs and replays call [`connect`], so that none of them knows of channels more than that operations have ends there
//! ([`EventEnds`]). What operations with code publish and take, they open when they are registered
//! ([`EventPorts`]); others push [`SyntheticEvent`]s.

mod ends;
mod ports;
mod synthetic;

pub use ports::{EventPorts, JobEvents, Publication};
pub use synthetic::SyntheticEvent;

use crate::channel::{EventChannel, EventChannelFactory};
use crate::condition::{Collect, Condition};
use crate::connected::ConnectedConsumer;
use crate::event::{EventType, Origin};
use crate::filter::Filter;
use crate::qos::QosSettings;
use ends::{Ends, Published, Subscribed};
use std::collections::BTreeMap;
use std::sync::Arc;
use synthetic::SyntheticSource;
use talea_model::{OperationId, Subscription, System, Trigger};
use talea_operation::{EventEnds, Operations};

/// Connects operations with the channels that the description declares. Nothing changes where it declares none.
///
/// # Panics
/// If the system has not been validated, which there is no other way to have one.
#[must_use]
pub fn connect(system: &System, operations: Operations) -> Operations {
    if system.channels.is_empty() || operations.have_events() {
        return operations;
    }
    let factory = Arc::new(EventChannelFactory::new());
    let make = |channel: &talea_model::Channel| {
        factory
            .create(&channel.name, &channel.qos, Default::default())
            .expect("validation has checked the properties")
    };
    let channels: Vec<EventChannel> = system.channels.iter().map(make).collect();
    let mut ends: BTreeMap<OperationId, Ends> = BTreeMap::new();
    for (task, described) in system.tasks.iter().enumerate() {
        let Some(Trigger::Events(subscription)) = &described.trigger else { continue };
        let first = system.operations_of(task).iter().find(|operation| operation.predecessors.is_empty());
        let first = first.expect("a task has a first subtask").id;
        let consumer = subscribe(&channels[subscription.channel], (&described.name, first), subscription);
        ends.entry(first).or_default().subscribed =
            Some(Subscribed::new(consumer, first, subscription.filter.as_deref()));
    }
    // How many events of a publication can be under way at once.
    let consumers: BTreeMap<OperationId, usize> =
        ends.iter().filter_map(|(first, ends)| Some((*first, ends.subscribed.as_ref()?.room()))).collect();
    for site in system.publications() {
        let described = system.publication(site);
        let event_type = EventType::new(&described.event_type.domain, &described.event_type.name);
        let supplier = channels[described.channel].supplier(&site.name).offer([event_type.clone()]).connect();
        let first_of = |task: &usize| {
            system
                .operations_of(*task)
                .iter()
                .find(|operation| operation.predecessors.is_empty())
                .map(|first| first.id)
        };
        let subscribers: Vec<OperationId> =
            site.subscribers.iter().filter_map(|(task, _)| first_of(task)).collect();
        let filters = subscribers.iter().filter_map(|first| {
            let subscribed = ends.get(first)?.subscribed.as_ref()?;
            Some((subscribed.watched(), subscribed.filter.clone()?))
        });
        let filters = filters.collect();
        let events = subscribers.iter().filter_map(|first| consumers.get(first)).sum::<usize>() + 2;
        let origin = Origin { publication: site.id, operation: site.operation, instance: 0 };
        ends.entry(site.operation).or_default().published.push(Published {
            supplier: supplier.expect("there is no limit on suppliers"),
            event_type: described.event_type.clone(),
            origin,
            priority: described.priority,
            timeout: described.timeout,
            events,
            source: Some(SyntheticSource::new(system, site, &event_type, events)),
            pool: None,
            filters,
        });
    }
    // Whoever pushes tells of what that discards at whose events it went to.
    let losses: BTreeMap<OperationId, ends::Losses> =
        ends.iter().filter_map(|(first, ends)| Some((*first, ends.subscribed.as_ref()?.losses()))).collect();
    for site in system.publications() {
        let of = |(task, _): &(usize, Vec<usize>)| {
            let first =
                system.operations_of(*task).iter().find(|operation| operation.predecessors.is_empty())?;
            losses.get(&first.id).cloned()
        };
        let ends = ends.get_mut(&site.operation).expect("it publishes something");
        ends.watch(site.subscribers.iter().filter_map(of));
    }
    let bind = {
        let factory = Arc::clone(&factory);
        Box::new(move |workplace: Arc<dyn talea_operation::Workplace>| Ok(factory.bind_shared(workplace)?))
    };
    let ends = ends.into_iter().map(|(operation, mut ends)| {
        ends.keep(Arc::clone(&factory));
        (operation, Box::new(ends) as Box<dyn EventEnds>)
    });
    operations.with_events(ends, bind)
}

/// The consumer of a task.
fn subscribe(
    channel: &EventChannel,
    (name, first): (&str, OperationId),
    subscription: &Subscription,
) -> ConnectedConsumer {
    let Subscription { types, filter, collect, within, qos, .. } = subscription;
    let mut consumer = channel.consumer(name).subscribe(types.iter().cloned()).qos(QosSettings::clone(qos));
    if let Some(filter) = filter {
        let filter = Filter::parse_only::<SyntheticEvent>(filter);
        consumer = consumer.filter(filter.expect("validation has read the filter"));
    }
    if let Some(collect) = collect {
        let collect = match collect {
            talea_model::Collect::First => Collect::First,
            talea_model::Collect::Latest => Collect::Latest,
        };
        let all = Condition::all(collect, types.iter().map(|pattern| Condition::of_types([pattern.clone()])));
        consumer = consumer.when(match within {
            Some(within) => all.within(*within),
            None => all,
        });
    }
    consumer.connect_task(first).expect("validation has checked the subscription")
}
