//! Operations with both their code and their connections.

use crate::context::Code;
use crate::ends::Ends;
use crate::ends::EventEnds;
use crate::error::{OperationError, OperationErrors, nearest};
use crate::kind::OutputKind;
use crate::operation::{Body, Operation};
use crate::operations::Operations;
use crate::ports::{AllEnds, Audience, OpenedOutput, Ports, ValueType, connect};
use crate::reading::Reading;
use crate::synthetic::{Fields, SyntheticValue};
use crate::workplace::Binding;
use std::cell::RefCell;
use std::collections::BTreeMap;
use talea_channel::{Input, KeptEnd, Output, Reader, Take, WhenFull};
use talea_model::{
    Full, InputId, InputSite, MESSAGE_BYTES, OnValue, OperationId, OutputId, OutputSite, System, Trigger,
    message_bytes,
};
use talea_policy::demand::{self, Purpose};
use talea_time::Duration;

/// Places for values of the same instance, at most: what is further behind is overtaken, and counted.
const MOST_BEHIND: i64 = 64;
/// Bytes that places for values of the same instance may take for more of them than deadlines call for: jobs that a stall of the machine holds up
/// have their values all the same where these are small.
const SMALL: i64 = 4 << 10;

/// The operations of a system with what connects them.
pub struct Assembled {
    /// Those that have code or ports, by number; others are synthetic work alone.
    pub operations: Vec<Option<Operation>>,
    /// The outputs whose values are recorded.
    pub kept: Vec<KeptOutput>,
    /// To be called, each once, when it is known where deliveries of channels are work.
    pub bindings: Vec<Binding>,
}

/// An output whose values are recorded.
pub struct KeptOutput {
    /// Which.
    pub output: OutputId,
    /// Bytes of a value in its slot, without the memory that it may have elsewhere.
    pub bytes: usize,
    /// Where they are taken; none where values are never bytes.
    pub end: Option<Box<dyn KeptEnd>>,
}

impl std::fmt::Debug for KeptOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptOutput")
            .field("output", &self.output)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Assembled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.operations.iter().flatten()).finish()
    }
}

/// Which connections of a system a process makes, and with what.
pub struct Wiring<'a> {
    /// Whether the process has the node of this index. Operations of others have their outputs, for what is [received](Operation::receive)
    /// of them.
    pub hosts: &'a dyn Fn(usize) -> bool,
    /// Room for values of the output that are to be recorded, if they are; each takes about so many bytes.
    pub kept: &'a dyn Fn(OutputId, usize) -> Option<usize>,
    /// Whether jobs [take again](Operation::take_again) what they once took. Then nobody waits for room, and there is more than there was.
    pub is_replay: bool,
}

impl std::fmt::Debug for Wiring<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wiring").field("is_replay", &self.is_replay).finish_non_exhaustive()
    }
}

impl Wiring<'static> {
    /// All nodes, and nothing is kept.
    pub const WHOLE: Wiring<'static> = Wiring { hosts: &|_| true, kept: &|_, _| None, is_replay: false };
}

/// What one operation's registration has said.
struct Registered {
    code: Code,
    inputs: Vec<Option<ValueType>>,
    is_outside: bool,
    reading: Option<Reading>,
}

impl Operations {
    /// Registers all code, connects all ports, for a process that has all nodes.
    ///
    /// # Errors
    /// Everything that is wrong. All registrations have been called.
    pub fn assemble(self, system: &System) -> Result<Assembled, OperationErrors> {
        self.assemble_as(system, &Wiring::WHOLE)
    }

    /// The same for a process that has some of the nodes, and with outputs whose values are kept.
    ///
    /// # Errors
    /// As for [`Self::assemble`].
    pub fn assemble_as(mut self, system: &System, wiring: &Wiring<'_>) -> Result<Assembled, OperationErrors> {
        let mut errors = Vec::new();
        let mut outputs: Vec<Option<OpenedOutput>> = system.outputs().iter().map(|_| None).collect();
        let mut registered: Vec<Option<Registered>> = Vec::with_capacity(system.operations().len());
        for operation in system.operations() {
            let Some(registration) = self.by_name.remove(&operation.name) else {
                registered.push(None);
                continue;
            };
            let subtask = system.subtask(operation.id);
            let mut ports = Ports {
                operation: operation.id,
                name: &operation.name,
                inputs: subtask.inputs.iter().map(|input| input.name.as_str()).collect(),
                outputs: subtask.outputs.iter().map(|output| output.name.as_str()).collect(),
                opened_inputs: vec![None; subtask.inputs.len()],
                opened_outputs: subtask.outputs.iter().map(|_| None).collect(),
                is_outside: false,
                is_external: system.reads_outside(operation.id),
                takes_events: system.takes_events(operation.id),
                reading: None,
                events: self.events.get_mut(&operation.id),
                errors: &mut errors,
            };
            let code = registration(&mut ports);
            let Ports { opened_inputs: inputs, opened_outputs, is_outside, reading, .. } = ports;
            for (site, opened) in system.outputs_of(operation.id).iter().zip(opened_outputs) {
                outputs[site.id.index()] = opened;
            }
            registered.push(Some(Registered { code, inputs, is_outside, reading }));
            let unopened = self.events.get(&operation.id).map_or_else(Vec::new, |ends| ends.unopened());
            errors.extend(unopened.into_iter().map(|what| OperationError::Events {
                operation: operation.name.clone(),
                problem: format!("does not open {what}, which the system describes: open it, or leave it out of the description"),
            }));
        }
        for name in self.by_name.into_keys() {
            let nearest = nearest(&name, system.operations().iter().map(|operation| operation.name.as_str()));
            errors.push(OperationError::UnknownOperation { name, nearest });
        }
        check(system, &registered, &outputs, &mut errors);
        let is_here = |operation: OperationId| (wiring.hosts)(system.subtask(operation).node);
        check_apart(system, &outputs, is_here, &mut errors);
        if !errors.is_empty() {
            return Err(OperationErrors(errors));
        }
        let events = (self.events, self.bindings);
        Ok(connect_all(system, registered, outputs, events, (is_here, wiring)))
    }
}

/// Holds what has been opened against the description, and the ends of each connection against each other.
fn check(
    system: &System,
    registered: &[Option<Registered>],
    outputs: &[Option<OpenedOutput>],
    errors: &mut Vec<OperationError>,
) {
    let has_code = |operation: OperationId| registered[operation.index()].is_some();
    let name = |operation: OperationId| system.operations()[operation.index()].name.clone();
    for (site, opened) in system.outputs().iter().zip(outputs) {
        if has_code(site.operation) && opened.is_none() {
            let (operation, name) = (name(site.operation), system.output(site.id).name.clone());
            errors.push(OperationError::NotOpened { operation, direction: "output", name });
        }
        let compares = opened.as_ref().is_none_or(|opened| opened.compares);
        for task in site.triggers.iter().filter(|_| !compares) {
            if let Some(Trigger::Output { on: OnValue::Change, .. }) = system.tasks[*task].trigger {
                let (task, output) = (system.tasks[*task].name.clone(), site.name.clone());
                errors.push(OperationError::NotCompared { task, output });
            }
        }
    }
    for site in system.inputs() {
        let Some(consumer) = &registered[site.operation.index()] else { continue };
        let Some(taken) = consumer.inputs[site.index] else {
            let (operation, name) = (name(site.operation), system.input(site.id).name.clone());
            errors.push(OperationError::NotOpened { operation, direction: "input", name });
            continue;
        };
        let output = &system.outputs()[site.output.index()];
        let producer = output.operation;
        let written = match (&outputs[site.output.index()], has_code(producer)) {
            (Some(opened), _) => opened.value,
            (None, false) => ValueType::of::<SyntheticValue>(),
            // That it is not opened has been said.
            (None, true) => continue,
        };
        if taken.id == written.id {
            continue;
        }
        errors.push(match has_code(producer) {
            true => OperationError::TypeMismatch {
                input: site.name.clone(),
                taken: taken.name,
                output: output.name.clone(),
                written: written.name,
            },
            false => OperationError::NoProducer {
                input: site.name.clone(),
                taken: taken.name,
                producer: name(producer),
            },
        });
    }
}

/// Holds connections between processes against what goes there: values of a predecessor, with its completion, as bytes.
fn check_apart(
    system: &System,
    outputs: &[Option<OpenedOutput>],
    is_here: impl Fn(OperationId) -> bool,
    errors: &mut Vec<OperationError>,
) {
    // By who sends them, the outputs whose values go to another process, and their bytes.
    let mut sent: BTreeMap<OperationId, BTreeMap<OutputId, usize>> = BTreeMap::new();
    for site in system.inputs() {
        let output = &system.outputs()[site.output.index()];
        if is_here(output.operation) == is_here(site.operation) {
            continue;
        }
        let successors = &system.operations()[output.operation.index()].successors;
        if site.take != talea_model::Take::Instance || !successors.contains(&site.operation) {
            let (input, output) = (site.name.clone(), output.name.clone());
            errors.push(OperationError::Apart { input, output });
            continue;
        }
        let bytes = match &outputs[site.output.index()] {
            Some(opened) if !opened.has_bytes => {
                errors.push(OperationError::NoBytesForProcess { output: output.name.clone() });
                continue;
            }
            Some(opened) => opened.bytes,
            None => described_bytes(system, site.output),
        };
        sent.entry(output.operation).or_default().insert(site.output, bytes);
    }
    for (operation, values) in sent {
        let bytes = message_bytes(values.values().copied());
        if bytes > MESSAGE_BYTES {
            let outputs = values.keys().map(|output| system.outputs()[output.index()].name.clone()).collect();
            let operation = system.operations()[operation.index()].name.clone();
            errors.push(OperationError::TooLarge { operation, outputs, bytes, most: MESSAGE_BYTES });
        }
    }
    for output in system.outputs() {
        let is_apart = |task: &&usize| {
            let mut firsts =
                system.operations_of(**task).iter().filter(|operation| operation.predecessors.is_empty());
            firsts.any(|first| is_here(first.id) != is_here(output.operation))
        };
        errors.extend(output.triggers.iter().filter(is_apart).map(|task| OperationError::TriggerApart {
            task: system.tasks[*task].name.clone(),
            output: output.name.clone(),
        }));
    }
}

fn connect_all(
    system: &System,
    registered: Vec<Option<Registered>>,
    opened: Vec<Option<OpenedOutput>>,
    (mut events, bindings): (BTreeMap<OperationId, Box<dyn EventEnds>>, Vec<Binding>),
    (is_here, wiring): (impl Fn(OperationId) -> bool, &Wiring<'_>),
) -> Assembled {
    let mut kept = Vec::new();
    let mut inputs: Vec<Option<Box<dyn Input>>> = system.inputs().iter().map(|_| None).collect();
    let mut outputs: Vec<Option<(Box<dyn Output>, Fields)>> = Vec::with_capacity(opened.len());
    for (index, opened) in opened.into_iter().enumerate() {
        let id = OutputId::from_index(index);
        let is_read_here = |input: &&InputId| is_here(system.inputs()[input.index()].operation);
        let readers: Vec<InputId> =
            system.outputs()[index].readers.iter().filter(is_read_here).copied().collect();
        let fields = fields(system, id);
        let bytes = opened.as_ref().map_or_else(|| described_bytes(system, id), |opened| opened.bytes);
        let kept_bytes = opened.as_ref().map_or(bytes, |opened| opened.kept_bytes);
        let room = (wiring.kept)(id, kept_bytes).filter(|_| is_here(system.outputs()[index].operation));
        let AllEnds { output, inputs: ends, kept: end } = {
            let of = |input: &InputId| match wiring.is_replay {
                true => with_spare_room(reader(system, *input, kept_bytes)),
                false => reader(system, *input, kept_bytes),
            };
            let readers: Vec<Reader> = readers.iter().map(of).collect();
            let compares = system.outputs()[index].triggers.iter().any(|task| {
                matches!(system.tasks[*task].trigger, Some(Trigger::Output { on: OnValue::Change, .. }))
            });
            let audience = Audience { readers: &readers, kept: room, compares };
            match opened {
                Some(opened) => (opened.connect)(&audience),
                None => connect(&audience, synthetic_kind(), || fields.empty_value()),
            }
        };
        if room.is_some() {
            kept.push(KeptOutput { output: id, bytes, end });
        }
        outputs.push(Some((output, fields)));
        for (input, end) in readers.iter().zip(ends) {
            inputs[input.index()] = Some(end);
        }
    }
    let mut assemble = |(operation, mut registered): (OperationId, Option<Registered>)| {
        let sites = if is_here(operation) { system.inputs_of(operation) } else { &[] };
        let taken = |site: &InputSite| inputs[site.id.index()].take().expect("each input reads one output");
        let inputs: Box<[Box<dyn Input>]> = sites.iter().map(taken).collect();
        let input_ids = sites.iter().map(|site| site.id.index()).collect();
        let taken =
            |site: &OutputSite| outputs[site.id.index()].take().expect("an output is one operation's");
        let (outputs, fields): (Vec<_>, Vec<_>) = system.outputs_of(operation).iter().map(taken).unzip();
        let (is_synthetic, is_outside) =
            (registered.is_none(), registered.as_ref().is_some_and(|registered| registered.is_outside));
        let events = events.remove(&operation).filter(|_| is_here(operation)).map(RefCell::new);
        if is_synthetic && inputs.is_empty() && outputs.is_empty() && events.is_none() {
            return None;
        }
        let outputs = outputs.into_iter().map(RefCell::new).collect();
        let reading = registered
            .as_mut()
            .and_then(|registered| registered.reading.take())
            .map(|reading| RefCell::new(Box::new(reading)));
        let body = registered.map_or(Body::Synthetic, |registered| Body::User(registered.code));
        let fields = if is_synthetic { fields.into() } else { Box::default() };
        let ends = Ends { operation, inputs, input_ids, outputs, events, reading };
        Some(Operation { body, ends, fields, is_outside })
    };
    let operations = system.operations().iter().map(|operation| operation.id);
    Assembled { operations: operations.zip(registered).map(&mut assemble).collect(), kept, bindings }
}

/// The reader when values come in an order in which they nearly came once: it has had no more at once than it had room for then.
fn with_spare_room(reader: Reader) -> Reader {
    Reader { capacity: 2 * reader.capacity + MOST_BEHIND as usize, when_full: WhenFull::DropOldest, ..reader }
}

/// Bytes of a synthetic value.
fn described_bytes(system: &System, output: OutputId) -> usize {
    system.output(output).bytes as usize
}

fn synthetic_kind() -> OutputKind<SyntheticValue> {
    OutputKind::any().compared().encoded(SyntheticValue::encode, SyntheticValue::decode)
}

/// What the synthetic values of an output are made of.
fn fields(system: &System, output: OutputId) -> Fields {
    /// The most fields of an output: streams of outputs do not overlap.
    const FIELDS: usize = 1 << 10;
    let described = system.output(output);
    let stream = |place: usize| demand::stream(system.seed, Purpose::Value, output.index() * FIELDS + place);
    let draw = |(place, field): (usize, &talea_model::SyntheticField)| (field.values.clone(), stream(place));
    let draws = described.fields.iter().enumerate().map(draw).collect();
    let rest = (described.bytes as usize).saturating_sub(described.fields.len() * size_of::<i64>());
    Fields { draws, rest }
}

/// What an input has room for, where a value takes about so many bytes.
fn reader(system: &System, input: InputId, bytes: usize) -> Reader {
    let site = &system.inputs()[input.index()];
    let (producer, consumer) = (system.outputs()[site.output.index()].operation, site.operation);
    let (writes, reads) = (system.task_of(producer), system.task_of(consumer));
    // Values that come in this time, and one at each of its ends.
    let within = |time: Duration| {
        let values = time.as_nanos().saturating_add(writes.period.as_nanos() - 1) / writes.period.as_nanos();
        values.saturating_add(2).min(MOST_BEHIND) as usize
    };
    let node = |operation: OperationId| system.subtask(operation).node;
    let route = system.route(node(producer), node(consumer));
    let on_the_way = route.delay.checked_add(route.jitter).unwrap_or(Duration::MAX);
    let (take, capacity, full) = match site.take {
        talea_model::Take::Instance => {
            let small = MOST_BEHIND.min(SMALL / (bytes as i64).max(1)) as usize;
            (Take::Instance, within(reads.deadline.max(on_the_way)).max(small), Full::Oldest)
        }
        talea_model::Take::Each { capacity, full } => (Take::Each, capacity as usize, full),
        talea_model::Take::Latest => (Take::Latest, system.room_of_latest(input), Full::Oldest),
    };
    let when_full = match full {
        Full::Oldest => WhenFull::DropOldest,
        Full::Newest => WhenFull::DropNewest,
        Full::Block { limit } => WhenFull::Wait(limit),
    };
    Reader { take, capacity, when_full }
}
