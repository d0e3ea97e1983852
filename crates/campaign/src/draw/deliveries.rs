//! A channel of a program's own beside a system whose operations have code: these push there, and consumers of all kinds answer what comes.

use super::code::{Called, Calls, Drawn, digest_delivery};
use super::program::declaration;
use super::{micros, one_of};
use rand::{Rng, RngExt};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use talea_model::System;
use talea_notification::qos::{DiscardPolicy, OrderPolicy, PropertyName, PropertyValue, QosSettings};
use talea_notification::{
    AdminProperties, Collect, Condition, ConnectedConsumer, ConsumerBuilder, Delivery, Event, EventChannel,
    EventChannelFactory, EventType, Filter, Header, Outcome, Supplier, TypePattern,
};
use talea_operation::JobContext;
use talea_policy::strategy::Plan;

/// Types of events that the channel carries: operations push the first, and consumers the other.
const TYPES: [&str; 2] = ["Drawn", "Answer"];

/// How the code of a consumer is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Concurrent,
    Serial,
    Sequence,
}

impl Kind {
    /// With which names of its operations begin.
    fn name(self) -> &'static str {
        match self {
            Kind::Concurrent => "concurrent",
            Kind::Serial => "serial",
            Kind::Sequence => "sequence",
        }
    }
}

/// Whether calls of a consumer that has its events one call at a time cannot be made again in their order, by the calls in that order: one was made in one
/// job between two calls in another, or behind one in a job that has not ended.
pub fn loses_order(called: &[Called], has_ended: impl Fn(&Called) -> bool) -> bool {
    let by_turns = called.iter().filter_map(|one| {
        let (consumer, _) = one.operation.split_once(" lane ")?;
        (!consumer.starts_with(Kind::Concurrent.name())).then_some((consumer, one))
    });
    let mut jobs: HashMap<&str, Vec<&Called>> = HashMap::new();
    by_turns.for_each(|(consumer, one)| jobs.entry(consumer).or_default().push(one));
    jobs.into_values().any(|mut jobs| {
        jobs.dedup_by_key(|one| (&one.operation, one.instance));
        let distinct: HashSet<_> = jobs.iter().map(|one| (&one.operation, one.instance)).collect();
        distinct.len() < jobs.len() || jobs.iter().rev().skip(1).any(|one| !has_ended(one))
    })
}

/// By which an operation, or a consumer, pushes into the channel.
pub struct Pushing {
    supplier: Supplier,
    event_type: EventType,
}

impl Pushing {
    fn new(channel: &EventChannel, name: &str, event_type: &str) -> Self {
        let event_type = EventType::new("Program", event_type);
        let supplier = channel.supplier(name).offer([event_type.clone()]).connect();
        let supplier = supplier.expect("a channel takes any number of them");
        Pushing { supplier, event_type }
    }

    /// Pushes some events with this digest. How that is answered is added to what the job has seen. False if there is none.
    pub fn push(&mut self, job: &JobContext<'_>, told: u64, seen: &mut DefaultHasher) -> bool {
        let drawn = seen.finish();
        for turn in 0..drawn % 3 {
            let mut header = Header::new(self.event_type.clone());
            header.priority = Some((drawn % 5) as i16 - 2);
            header.timeout = drawn.is_multiple_of(7).then(|| micros(5_000));
            let event = Event::new(header, Drawn::of(told.rotate_left(turn as u32)));
            match self.supplier.push(job, &event) {
                Ok(pushed) => (pushed.subscribed, pushed.queued, pushed.discarded).hash(seen),
                Err(error) => error.to_string().hash(seen),
            }
        }
        !drawn.is_multiple_of(3)
    }
}

/// The channel with its consumers.
pub struct Deliveries {
    /// To be bound to where the system is run, or replayed.
    pub factory: EventChannelFactory,
    channel: EventChannel,
    _consumers: Vec<ConnectedConsumer>,
}

impl Deliveries {
    /// Those of this seed.
    ///
    /// # Errors
    /// What is wrong with the program.
    pub fn new(
        (system, plans): (&System, &[Plan]),
        rng: &mut impl Rng,
        calls: &Calls,
    ) -> Result<Self, String> {
        let factory = EventChannelFactory::new();
        let admin = AdminProperties {
            max_queue_length: one_of(rng, &[0, 0, 4]),
            reject_new_events: rng.random_ratio(1, 2),
            ..AdminProperties::default()
        };
        let channel = factory.create("program", &QosSettings::new(), admin);
        let channel = channel.map_err(|problems| format!("its channel: {problems}"))?;
        for event_type in TYPES {
            let event_type = EventType::new("Program", event_type);
            channel.carries::<Drawn>(&event_type, &Drawn::kind()).map_err(|error| error.to_string())?;
        }
        let consumers = (0..rng.random_range(1..=3))
            .map(|number| connect((&channel, number), (system, plans), rng, calls))
            .collect::<Result<Vec<_>, String>>()?;
        Ok(Deliveries { factory, channel, _consumers: consumers })
    }

    /// By which the operation of this name pushes.
    pub fn pushing(&self, operation: &str) -> Pushing {
        Pushing::new(&self.channel, operation, TYPES[0])
    }
}

fn connect(
    (channel, number): (&EventChannel, usize),
    place: (&System, &[Plan]),
    rng: &mut impl Rng,
    calls: &Calls,
) -> Result<ConnectedConsumer, String> {
    let kind = one_of(rng, &[Kind::Concurrent, Kind::Serial, Kind::Sequence]);
    let name = format!("{} {number}", kind.name());
    let mut consumer = channel.consumer(&name);
    let mut lanes = 0;
    let mut work = |rng: &mut _| {
        lanes += 1;
        declaration(&format!("{name} lane {lanes}"), place, rng)
    };
    consumer = consumer.lane_from(i16::MIN, work(rng));
    if rng.random_ratio(1, 3) {
        consumer = consumer.server(work(rng));
    }
    if rng.random_ratio(1, 3) {
        consumer = consumer.lane_from(0, work(rng));
    }
    let answers_alone = number > 0 && rng.random_ratio(1, 3);
    let pattern = |name: &str| TypePattern::exactly("Program", name);
    consumer = subscribed(consumer, answers_alone, pattern, rng)?;
    let order = one_of(rng, &[OrderPolicy::Fifo, OrderPolicy::Priority, OrderPolicy::Deadline]);
    let discard = one_of(rng, &[DiscardPolicy::Fifo, DiscardPolicy::Lifo, DiscardPolicy::Priority]);
    let qos = QosSettings::new().order(order).discard(discard).max_events(one_of(rng, &[3, 5, 20]));
    let qos = qos.with(PropertyName::RetryInterval, PropertyValue::Time(micros(one_of(rng, &[1, 4_000]))));
    // Who is handed what consumers push pushes nothing, so that it ends.
    let mut pushing =
        (!answers_alone && rng.random_ratio(1, 2)).then(|| Pushing::new(channel, &name, TYPES[1]));
    let (calls, nanos) = (calls.clone(), one_of(rng, &[20_000, 200_000, 1_500_000]));
    let fails = one_of(rng, &[0, 0, 97]);
    // Whatever it pushes, its answer can be another one.
    let answer = move |seen: DefaultHasher, job: &JobContext<'_>| {
        calls.spend(nanos);
        let digest = seen.finish();
        calls.note(job, digest, true);
        match digest % 100 {
            answer if calls.is_changed(job) && answer != fails => Outcome::Fail,
            _ if calls.is_changed(job) => Outcome::Ok,
            answer if answer < 15 => Outcome::Retry,
            answer if answer < 40 => Outcome::Discard,
            answer if answer == fails => panic!("a consumer is to panic now and then"),
            _ => Outcome::Ok,
        }
    };
    let connected = match kind {
        Kind::Concurrent => consumer.qos(qos).connect_concurrent(move |delivery, job| {
            let mut seen = DefaultHasher::new();
            see(job, std::slice::from_ref(delivery), &mut seen);
            answer(seen, job)
        }),
        Kind::Serial => {
            let mut state = 0;
            consumer.qos(qos).connect_with_job(move |delivery, job| {
                let mut seen = DefaultHasher::new();
                state.hash(&mut seen);
                see(job, std::slice::from_ref(delivery), &mut seen);
                let told = seen.finish();
                if let Some(pushing) = &mut pushing {
                    pushing.push(job, told, &mut seen);
                }
                state = seen.finish();
                answer(seen, job)
            })
        }
        Kind::Sequence => {
            let pacing = PropertyValue::Time(micros(3_000));
            let qos = qos
                .with(PropertyName::MaximumBatchSize, PropertyValue::Number(3))
                .with(PropertyName::PacingInterval, pacing);
            let mut state = 0;
            consumer.qos(qos).connect_sequence(move |deliveries, job| {
                let mut seen = DefaultHasher::new();
                state.hash(&mut seen);
                see(job, deliveries, &mut seen);
                state = seen.finish();
                answer(seen, job)
            })
        }
    };
    connected.map_err(|error| error.to_string())
}

/// It is interested in answers alone, in what operations push, in both, or in one of each.
fn subscribed(
    consumer: ConsumerBuilder,
    answers_alone: bool,
    pattern: impl Fn(&str) -> TypePattern,
    rng: &mut impl Rng,
) -> Result<ConsumerBuilder, String> {
    if answers_alone {
        return Ok(consumer.subscribe([pattern(TYPES[1])]));
    }
    Ok(match rng.random_range(0..4) {
        0 => {
            let filter = Filter::parse::<Drawn>(&[], "x < 6").map_err(|error| error.to_string())?;
            consumer.subscribe([pattern(TYPES[0])]).filter(filter)
        }
        1 => {
            let parts = [TYPES[0], TYPES[0]].map(|name| Condition::of_types([pattern(name)])).into();
            let collect = one_of(rng, &[Collect::First, Collect::Latest]);
            consumer.when(Condition::All { parts, collect, within: None })
        }
        _ => consumer.subscribe([pattern(TYPES[0])]),
    })
}

fn see(job: &JobContext<'_>, deliveries: &[Delivery], seen: &mut DefaultHasher) {
    (job.instance(), job.started(), job.now(), job.deadline(), job.handle()).hash(seen);
    deliveries.iter().for_each(|delivery| digest_delivery(delivery, seen));
}
