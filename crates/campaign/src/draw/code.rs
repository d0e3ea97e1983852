//! Code for the operations of a system: each publishes and pushes a digest of all that it was ever handed.

use super::deliveries::Pushing;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use talea_etcl::Filterable;
use talea_model::{Description, OperationId, Output, System, Trigger};
use talea_notification::declared::{EventPorts, JobEvents, Publication, SyntheticEvent};
use talea_notification::{Content, Delivery, TimeCame};
use talea_operation::{Input, JobContext, Operations, OutputKind, Ports, SyntheticValue};

/// What an event of an operation with code carries.
#[derive(Clone, Copy, Debug, Default, Filterable)]
pub struct Drawn {
    x: i64,
    digest: u64,
}

impl Content for Drawn {}

impl Drawn {
    /// One with this digest, whose `x` is that of drawn events: from 0 to 9.
    pub fn of(digest: u64) -> Self {
        Drawn { x: (digest % 10) as i64, digest }
    }

    /// Events that carry it can be bytes.
    pub fn kind() -> OutputKind<Drawn> {
        let encode = |drawn: &Drawn, to: &mut [u8]| {
            to.get_mut(..8)?.copy_from_slice(&drawn.digest.to_le_bytes());
            Some(8)
        };
        let decode = |drawn: &mut Drawn, from: &[u8]| {
            let digest = from.try_into().map(u64::from_le_bytes);
            *drawn = Drawn::of(digest.unwrap_or_default());
            digest.is_ok()
        };
        OutputKind::any().encoded(encode, decode)
    }
}

/// A job, of the operation of this name, that does otherwise than it did: all that it hands on is something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The operation.
    pub operation: String,
    /// The number of the job.
    pub instance: u64,
}

/// What is known of a job whose code was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The operation.
    pub operation: String,
    /// The number of the job.
    pub instance: u64,
    /// A digest of what it was handed, of what those before it were, and of how that which it did was answered.
    pub digest: u64,
    /// Whether it has handed on something that can be another one.
    pub has_handed_on: bool,
}

/// How the code of a program is called, and what is known of it.
#[derive(Clone, Default)]
pub struct Calls {
    called: Arc<Mutex<Vec<Called>>>,
    changed: Option<Changed>,
    /// Whether jobs take about as long as is described.
    takes_time: bool,
}

impl Calls {
    /// Of jobs that take about as long as is described.
    pub fn that_take_time() -> Self {
        Calls { takes_time: true, ..Calls::default() }
    }

    /// Of jobs of which this one does otherwise.
    pub fn with_change(changed: Changed) -> Self {
        Calls { changed: Some(changed), ..Calls::default() }
    }

    /// The jobs that were called, in that order.
    pub fn called(&self) -> Vec<Called> {
        self.called.lock().expect("whole").clone()
    }

    /// Whether the job does otherwise than it did.
    pub fn is_changed(&self, job: &JobContext<'_>) -> bool {
        let is_it = |one: &Changed| one.operation == job.operation() && one.instance == job.instance();
        self.changed.as_ref().is_some_and(is_it)
    }

    /// The job has been called.
    pub fn note(&self, job: &JobContext<'_>, digest: u64, has_handed_on: bool) {
        let (operation, instance) = (job.operation().to_owned(), job.instance());
        let called = Called { operation, instance, digest, has_handed_on };
        self.called.lock().expect("whole").push(called);
    }

    /// Takes as long as this, if jobs take time.
    pub fn spend(&self, nanos: u64) {
        let begun = Instant::now();
        while self.takes_time && begun.elapsed() < Duration::from_nanos(nanos) {
            std::hint::spin_loop();
        }
    }
}

/// An input of an operation with code.
enum Read {
    OfCode(Input<u64>),
    Synthetic(Input<SyntheticValue>),
}

/// What the description says of an operation, for its code.
struct Described {
    /// The names of its inputs, and whether code writes them.
    inputs: Vec<(String, bool)>,
    outputs: Vec<String>,
    /// The types of the events that it publishes, and whether their headers have fields.
    events: Vec<(String, bool)>,
    takes_events: bool,
}

/// The same system, in which each operation that takes events has one output more, on which its code can say what it was handed.
pub fn with_digests(system: &System) -> Option<System> {
    let mut description = Description::clone(system);
    for task in &mut description.tasks {
        let is_released = matches!(task.trigger, Some(Trigger::Events(_)));
        for subtask in &mut task.subtasks {
            if is_released && subtask.after.is_empty() || subtask.subscription.is_some() {
                subtask.outputs.push(Output { name: "digest".into(), bytes: 8, fields: Vec::new() });
            }
        }
    }
    System::new(description).ok()
}

/// Code for all operations but every other one of those that publish events, which stay as they are drawn. Each pushes into a channel of the program,
/// too, if `pushing` has one for it.
pub fn code(system: &System, calls: &Calls, mut pushing: impl FnMut(&str) -> Option<Pushing>) -> Operations {
    let has_code = |operation: OperationId| {
        system.subtask(operation).events.is_empty() || operation.index().is_multiple_of(2)
    };
    let mut operations = Operations::synthetic();
    for operation in system.operations().iter().filter(|operation| has_code(operation.id)) {
        let subtask = system.subtask(operation.id);
        let inputs: Vec<(String, bool)> = system
            .inputs_of(operation.id)
            .iter()
            .map(|site| {
                let producer = system.outputs()[site.output.index()].operation;
                (system.input(site.id).name.clone(), has_code(producer))
            })
            .collect();
        let outputs = system.outputs_of(operation.id).iter();
        let outputs: Vec<String> = outputs.map(|site| system.output(site.id).name.clone()).collect();
        let events: Vec<(String, bool)> = subtask
            .events
            .iter()
            .map(|one| (one.event_type.to_string(), !one.header_fields.is_empty()))
            .collect();
        let takes_events = system.takes_events(operation.id);
        let nanos = subtask.wcet.as_nanos().unsigned_abs() / 2;
        let (calls, pushing) = (calls.clone(), pushing(&operation.name));
        let described = Described { inputs, outputs, events, takes_events };
        operations = operations
            .with_ports(&operation.name, move |ports| digesting(ports, &described, pushing, (calls, nanos)));
    }
    operations
}

fn digesting(
    ports: &mut Ports<'_>,
    described: &Described,
    mut pushing: Option<Pushing>,
    (calls, nanos): (Calls, u64),
) -> impl FnMut(&JobContext<'_>) + Send + use<> {
    let open = |(name, is_of_code): &(String, bool)| match is_of_code {
        true => Read::OfCode(ports.input(name)),
        false => Read::Synthetic(ports.input(name)),
    };
    let Described { inputs, outputs, events, takes_events } = described;
    let inputs: Vec<Read> = inputs.iter().map(open).collect();
    let kind = || OutputKind::any().compared().plain();
    let outputs: Vec<_> =
        outputs.iter().map(|name| ports.output_of::<u64>(name, kind(), Default::default)).collect();
    let publications: Vec<(Publication<Drawn>, bool)> = events
        .iter()
        .map(|(name, has_fields)| (ports.publication_of(name, Drawn::kind()), *has_fields))
        .collect();
    if *takes_events {
        ports.subscription();
    }
    let mut state = 0u64;
    move |job: &JobContext<'_>| {
        let mut hasher = DefaultHasher::new();
        (state, job.instance(), job.started(), job.now(), job.deadline(), job.release()).hash(&mut hasher);
        for input in &inputs {
            match input {
                Read::OfCode(input) => take(job, *input, &mut hasher, |value, hasher| value.hash(hasher)),
                Read::Synthetic(input) => {
                    take(job, *input, &mut hasher, |value, hasher| {
                        (&value.fields, &value.bytes).hash(hasher)
                    });
                }
            }
        }
        job.events().for_each(|delivery| digest_delivery(&delivery, &mut hasher));
        calls.spend(nanos);
        let handed = hasher.finish();
        let told = handed ^ u64::from(calls.is_changed(job));
        let mut has_handed_on = !outputs.is_empty();
        for (place, (publication, has_fields)) in (1..).zip(&publications) {
            // One or two mostly, by turns with others of the job.
            for turn in 0..(handed >> place) % 4 % 3 {
                let is_pushed = job.push(*publication, |event, header| {
                    *event = Drawn::of(told.rotate_left(turn as u32));
                    header.priority = handed.is_multiple_of(3).then_some((handed % 5) as i16 - 2);
                    if *has_fields {
                        header.fields.set("leg", (handed % 10) as i64).expect("there is room");
                    }
                });
                has_handed_on |= is_pushed;
                is_pushed.hash(&mut hasher);
            }
        }
        if let Some(pushing) = &mut pushing {
            has_handed_on |= pushing.push(job, told, &mut hasher);
        }
        state = hasher.finish();
        // What is told of the events stands here, too.
        outputs.iter().for_each(|output| job.set(*output, told ^ state.rotate_left(7)));
        calls.note(job, state, has_handed_on);
    }
}

fn take<T: 'static>(
    job: &JobContext<'_>,
    input: Input<T>,
    hasher: &mut DefaultHasher,
    hash: impl Fn(&T, &mut DefaultHasher),
) {
    job.all(input).for_each(|value| hash(value, hasher));
    job.stamp(input).map(|stamp| (stamp.instance, stamp.visible_at)).hash(hasher);
    job.age(input).hash(hasher);
}

/// All that a delivery says.
pub fn digest_delivery(delivery: &Delivery, hasher: &mut DefaultHasher) {
    (delivery.priority(), delivery.pushed(), delivery.expires(), delivery.number()).hash(hasher);
    for event in delivery.events() {
        let header = event.header();
        (header.priority, header.timeout, header.source, header.stop).hash(hasher);
        header.origin.map(|origin| (origin.publication, origin.operation, origin.instance)).hash(hasher);
        event.content::<SyntheticEvent>().map(|event| (&event.fields, &event.bytes)).hash(hasher);
        event.content::<Drawn>().map(|event| event.digest).hash(hasher);
        event.content::<TimeCame>().is_some().hash(hasher);
    }
}
