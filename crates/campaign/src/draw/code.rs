//! Code for the operations of a system: each publishes a digest of all that it was ever handed.

use std::hash::{DefaultHasher, Hash, Hasher};
use talea_model::{Description, OperationId, Output, System, Trigger};
use talea_notification::TimeCame;
use talea_notification::declared::{EventPorts, JobEvents, SyntheticEvent};
use talea_operation::{Input, JobContext, Operations, OutputKind, Ports, SyntheticValue};

/// An input of an operation with code.
enum Read {
    OfCode(Input<u64>),
    Synthetic(Input<SyntheticValue>),
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

/// Code for all operations that publish no events, which stay as they are drawn.
pub fn code(system: &System) -> Operations {
    let has_code = |operation: OperationId| system.subtask(operation).events.is_empty();
    let mut operations = Operations::synthetic();
    for operation in system.operations().iter().filter(|operation| has_code(operation.id)) {
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
        let takes_events = system.takes_events(operation.id);
        operations = operations
            .with_ports(&operation.name, move |ports| digesting(ports, &inputs, &outputs, takes_events));
    }
    operations
}

fn digesting(
    ports: &mut Ports<'_>,
    inputs: &[(String, bool)],
    outputs: &[String],
    takes_events: bool,
) -> impl FnMut(&JobContext<'_>) + Send + use<> {
    let open = |(name, is_of_code): &(String, bool)| match is_of_code {
        true => Read::OfCode(ports.input(name)),
        false => Read::Synthetic(ports.input(name)),
    };
    let inputs: Vec<Read> = inputs.iter().map(open).collect();
    let kind = || OutputKind::any().compared().plain();
    let outputs: Vec<_> =
        outputs.iter().map(|name| ports.output_of::<u64>(name, kind(), Default::default)).collect();
    if takes_events {
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
        events(job, &mut hasher);
        state = hasher.finish();
        outputs.iter().for_each(|output| job.set(*output, state));
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

fn events(job: &JobContext<'_>, hasher: &mut DefaultHasher) {
    let Some(delivery) = job.event() else { return false.hash(hasher) };
    (delivery.priority(), delivery.pushed(), delivery.expires(), delivery.number()).hash(hasher);
    for event in delivery.events() {
        let header = event.header();
        (header.priority, header.timeout, header.source, header.stop).hash(hasher);
        header.origin.map(|origin| (origin.publication, origin.operation, origin.instance)).hash(hasher);
        event.content::<SyntheticEvent>().map(|event| (&event.fields, &event.bytes)).hash(hasher);
        event.content::<TimeCame>().is_some().hash(hasher);
    }
}
