//! The channels that a description of a system declares: made, with a supplier for all that operations publish, a consumer for each task that is
//! released by events, whose deliveries are its jobs, and one for each operation with a subscription of its own, whose jobs look there when they begin.
//!
//! Simulations, runs and replays call [`connect`], so that none of them knows of channels more than that operations have ends there
//! ([`EventEnds`]). What operations with code publish and take, they open when they are registered
//! ([`EventPorts`]); others push [`SyntheticEvent`]s.

mod ends;
mod filters;
mod instances;
mod ports;
mod pushes;
mod synthetic;

pub use crate::kept::answered_push;
pub use ports::{EventPorts, JobEvents, Publication};
pub use pushes::{numbered_push, parts_of_push};
pub use synthetic::SyntheticEvent;

use crate::channel::{EventChannel, EventChannelFactory};
use crate::connected::ConnectedConsumer;
use crate::event::{EventType, Origin};
use crate::filter::Filter;
use crate::kept::Contents;
use crate::mapping::MappingFilter;
use crate::qos::QosSettings;
use ends::{Ends, Keeping, Published, Subscribed};
use filters::{ByContent, Carried};
use instances::Instances;
use pushes::PushKeeping;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use synthetic::SyntheticSource;
use talea_model::{Mapped, OperationId, PublicationId, Subscription, System, Trigger};
use talea_operation::{EventEnds, Operations};

/// For how much there is to be room: of what is recorded until it is, 0 for what never is, and of what is unfinished.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    /// Of what jobs of an operation [take](talea_operation::EventEnds::keep).
    pub taken: &'a dyn Fn(OperationId) -> usize,
    /// Of what jobs [push](talea_operation::EventEnds::keep_pushes) as a publication.
    pub pushed: &'a dyn Fn(PublicationId) -> usize,
    /// Instances of a task that may be unfinished at once; for more of them memory is taken when they come.
    pub instances: usize,
}

impl Room<'static> {
    /// Nothing is recorded.
    pub const NONE: Room<'static> = Room { taken: &|_| 0, pushed: &|_| 0, instances: 0 };
}

impl std::fmt::Debug for Room<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

/// Operations with their ends at the channels of a description.
#[derive(Debug)]
pub struct Connected {
    /// The operations.
    pub operations: Operations,
    /// By index of the node, the channels into which its operations push or of which they take. A channel that is used on several nodes is one channel on
    /// each, for no event leaves its node. Nothing if the operations were connected before.
    pub factories: BTreeMap<usize, EventChannelFactory>,
}

/// Connects operations with the channels that the description declares, with this room for what is recorded of them. Nothing changes where it
/// declares none.
///
/// # Panics
/// If the system has not been validated, which there is no other way to have one.
#[must_use]
pub fn connect(system: &System, operations: Operations, room: Room<'_>) -> Connected {
    if system.channels.is_empty() || operations.have_events() {
        return Connected { operations, factories: BTreeMap::new() };
    }
    let (factories, channels) = make_channels(system);
    let node_of = |operation: OperationId| system.subtask(operation).node;
    let contents = Contents::new(system.publications().len());
    let mut ends: BTreeMap<OperationId, Ends> = BTreeMap::new();
    for operation in system.operations() {
        let Some(subscription) = system.subscription_of(operation.id) else { continue };
        let is_first = |operation: &&talea_model::Operation| operation.predecessors.is_empty();
        let is_released =
            is_first(&operation) && matches!(system.tasks[operation.task].trigger, Some(Trigger::Events(_)));
        let id = operation.id;
        let may_come = |site: &&talea_model::PublicationSite| site.subscriber(id).is_some();
        let may_come: Vec<&talea_model::PublicationSite> =
            system.publications().iter().filter(may_come).collect();
        let publications = may_come.iter().map(|site| site.id).collect();
        let own_contents = Arc::clone(&contents);
        let (take, taken_room) = (subscription.take, (room.taken)(id));
        let keeping = Keeping { contents: own_contents, publications, room: taken_room, take, port: None };
        let firsts = || system.operations_of(operation.task).iter().filter(is_first);
        let lead = firsts().next().filter(|lead| is_released && lead.id != id);
        if let Some(lead) = lead {
            let subscribed = ends.get(&lead.id).and_then(|ends| ends.subscribed.as_ref());
            let subscribed = subscribed.expect("what stands before it has been made").beside(keeping);
            ends.entry(id).or_default().subscribed = Some(subscribed);
            continue;
        }
        let have_code = |site: &&talea_model::PublicationSite| {
            operations.have_code(&system.operations()[site.operation.index()].name)
        };
        let carried = match may_come.iter().any(have_code) {
            true => Carried::Anything,
            false => {
                let fields = may_come.iter().map(|site| {
                    let described = system.publication(site);
                    described.fields.len() + described.header_fields.len()
                });
                Carried::Numbers(fields.max().unwrap_or(0))
            }
        };
        let together = if is_released { firsts().count() } else { 1 };
        let subscriber = match is_released {
            true => Subscriber::Task { name: &system.tasks[operation.task].name, first: id, together },
            false => Subscriber::Operation { name: &operation.name },
        };
        let instances = (together > 1).then(|| Instances::new(together, room.instances));
        let channel = &channels[&(node_of(id), subscription.channel)];
        let (consumer, filters) = subscribe(channel, subscriber, subscription, carried);
        let keeping = (system.most_taken(subscription) as usize, keeping);
        let subscribed = Subscribed::new(consumer, id, filters, instances, keeping);
        ends.entry(id).or_default().subscribed = Some(subscribed);
    }
    for site in system.publications() {
        let described = system.publication(site);
        let event_type = EventType::new(&described.event_type.domain, &described.event_type.name);
        let supplier = channels[&(node_of(site.operation), described.channel)]
            .supplier(&site.name)
            .described()
            .offer([event_type.clone()])
            .connect();
        let ends_of =
            |subscriber: &talea_model::Subscriber| ends.get(&subscriber.operation)?.subscribed.as_ref();
        let filters = site.subscribers.iter().filter_map(ends_of);
        let filters = filters.flat_map(|subscribed| subscribed.filters.iter().cloned()).collect();
        // How many of its events can be under way at once.
        let held = |subscriber: &talea_model::Subscriber| {
            let condition = &system.subscription_of(subscriber.operation)?.condition;
            let at_once = subscriber.leaves.len().max(1) * condition.events_of_leaf();
            let room_of = |operation| Some(ends.get(&operation)?.subscribed.as_ref()?.room(at_once));
            Some(subscriber.operations().filter_map(room_of).sum::<usize>())
        };
        let pushed_room = (room.pushed)(site.id);
        let events =
            site.subscribers.iter().filter_map(held).sum::<usize>() + PushKeeping::held(pushed_room) + 2;
        let origin = Origin { publication: site.id, operation: site.operation, instance: 0 };
        let source = SyntheticSource::new(system, site, &event_type, events);
        if !operations.have_code(&system.operations()[site.operation.index()].name) {
            contents.set_codec(site.id, SyntheticEvent::CODEC, source.empty());
        }
        ends.entry(site.operation).or_default().published.push(Published {
            supplier: supplier.expect("there is no limit on suppliers"),
            event_type: described.event_type.clone(),
            origin,
            priority: described.priority,
            timeout: described.timeout,
            events,
            number_of_source: described.source,
            source: Some(source),
            pool: None,
            filters,
            contents: Arc::clone(&contents),
            pushed_room,
            keeping: PushKeeping::Nothing,
        });
    }
    // Whoever pushes tells of what that discards at whose events it went to.
    let losses: BTreeMap<OperationId, ends::Losses> =
        ends.iter().filter_map(|(taker, ends)| Some((*taker, ends.subscribed.as_ref()?.losses()))).collect();
    for site in system.publications() {
        let of = |subscriber: &talea_model::Subscriber| losses.get(&subscriber.operation).cloned();
        let ends = ends.get_mut(&site.operation).expect("it publishes something");
        ends.watch(site.subscribers.iter().filter_map(of));
    }
    let bind = {
        let factories: Vec<EventChannelFactory> = factories.values().cloned().collect();
        Box::new(move |workplace: Arc<dyn talea_operation::Workplace>| {
            factories.iter().try_for_each(|factory| factory.bind_shared(Arc::clone(&workplace)))?;
            Ok(())
        })
    };
    let ends = ends.into_iter().map(|(operation, mut ends)| {
        ends.keep(factories[&node_of(operation)].clone());
        (operation, Box::new(ends) as Box<dyn EventEnds>)
    });
    Connected { operations: operations.with_events(ends, bind), factories }
}

/// By node and index of the channel.
type NodeChannels = BTreeMap<(usize, usize), EventChannel>;

/// The channels that are used on each node, in the order of the description, and the nodes' factories.
fn make_channels(system: &System) -> (BTreeMap<usize, EventChannelFactory>, NodeChannels) {
    let published =
        system.publications().iter().map(|site| (site.operation, system.publication(site).channel));
    let taken = system
        .operations()
        .iter()
        .filter_map(|operation| Some((operation.id, system.subscription_of(operation.id)?.channel)));
    let used: BTreeSet<(usize, usize)> = published
        .chain(taken)
        .map(|(operation, channel)| (system.subtask(operation).node, channel))
        .collect();
    let mut factories: BTreeMap<usize, EventChannelFactory> = BTreeMap::new();
    let make = |(node, index): (usize, usize)| {
        let factory = factories.entry(node).or_default();
        let talea_model::Channel { name, qos } = &system.channels[index];
        let made = factory.create(name, qos, Default::default());
        ((node, index), made.expect("validation has checked the properties"))
    };
    let channels = used.into_iter().map(make).collect();
    (factories, channels)
}

/// Who has subscribed.
#[derive(Clone, Copy)]
enum Subscriber<'s> {
    /// A task that is released by the events, with its first operation, and how many it begins with.
    Task { name: &'s str, first: OperationId, together: usize },
    /// An operation that something else releases.
    Operation { name: &'s str },
}

impl std::fmt::Display for Subscriber<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Subscriber::Task { name, .. } => write!(f, "task \"{name}\""),
            Subscriber::Operation { name } => write!(f, "operation \"{name}\""),
        }
    }
}

/// The consumer of a subscriber, with the constraints that it holds against events.
fn subscribe(
    channel: &EventChannel,
    subscriber: Subscriber<'_>,
    subscription: &Subscription,
    carried: Carried,
) -> (ConnectedConsumer, Vec<ByContent>) {
    let Subscription { condition, filter, priority_by, timeout_by, qos, .. } = subscription;
    let (called, mut filters) = (subscriber.to_string(), Vec::new());
    let (Subscriber::Task { name, .. } | Subscriber::Operation { name }) = subscriber;
    let mut expression = |text: &str| {
        let (expression, by_content) = ByContent::parse(&called, text, carried);
        filters.push(by_content);
        expression
    };
    let mut consumer = channel.consumer(name).qos(QosSettings::clone(qos));
    if !priority_by.is_empty() {
        consumer = consumer.map_priority(mapping(priority_by, &mut expression));
    }
    if !timeout_by.is_empty() {
        consumer = consumer.map_lifetime(mapping(timeout_by, &mut expression));
    }
    let mut made = |text: &String| Filter::of(&[], expression(text));
    if let Some(text) = filter {
        consumer = consumer.filter(made(text));
    }
    let consumer = match condition {
        talea_model::Condition::Types(types) => consumer.subscribe(types.iter().cloned()),
        condition => consumer.when(condition.map(&mut |text| Arc::new(made(text)))),
    };
    let connected = match subscriber {
        Subscriber::Task { first, together, .. } => consumer.connect_task(first, together),
        Subscriber::Operation { .. } => consumer.connect_jobs(),
    };
    (connected.expect("validation has checked the subscription"), filters)
}

/// The mapping filter of these entries, of which only the last may be without a constraint.
fn mapping<V: Copy>(
    entries: &[Mapped<V>],
    expression: &mut impl FnMut(&str) -> filters::Opened,
) -> MappingFilter<V> {
    entries.iter().fold(MappingFilter::new(), |mapping, Mapped { filter, value }| match filter {
        Some(text) => mapping.with(&[], expression(text), *value),
        None => mapping.or(*value),
    })
}
