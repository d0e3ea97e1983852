//! The ports of a system, numbered, and what connects its operations.

use crate::channel::{Publication, PublicationAddress, Subscription, SubscriptionOwner};
use crate::description::{Description, Subtask, Task};
use crate::operation::{OperationAddress, OperationId};
use crate::ports::{Input, OutputAddress, PORT_LIMIT, Take};
use crate::trigger::Trigger;
use std::collections::HashMap;

/// Numbers of ports: their positions when all of a kind are listed by operation and in file order.
macro_rules! port_number {
    ($(#[$attribute:meta])* $name:ident, $what:literal) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The port at position `index`.
            ///
            /// # Panics
            /// If `index` is not below [`PORT_LIMIT`], which validation has ruled out.
            #[inline]
            pub fn from_index(index: usize) -> Self {
                assert!(index < PORT_LIMIT, concat!($what, " {} is beyond the limit of {}"), index, PORT_LIMIT);
                $name(index as u32)
            }

            /// The position.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

port_number! {
    /// An output's number, for indexing [`System::outputs`](crate::System::outputs).
    OutputId, "output"
}

port_number! {
    /// An input's number, for indexing [`System::inputs`](crate::System::inputs).
    InputId, "input"
}

port_number! {
    /// A publication's number, for indexing [`System::publications`](crate::System::publications).
    PublicationId, "publication"
}

/// What an operation pushes into a channel, with who has subscribed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationSite {
    /// Its number.
    pub id: PublicationId,
    /// The operation that pushes it.
    pub operation: OperationId,
    /// Index into the subtask's events.
    pub index: usize,
    /// The names of operation, channel and type: `imu.read>health Robot/Battery`.
    pub name: String,
    /// Who has subscribed to it, in file order.
    pub subscribers: Vec<Subscriber>,
}

impl PublicationSite {
    /// The tasks that have subscribed to be released by it.
    pub fn released(&self) -> impl Iterator<Item = &Subscriber> {
        self.subscribers.iter().filter(|subscriber| subscriber.is_released)
    }

    /// What is known of the operation as its subscriber.
    pub fn subscriber(&self, operation: OperationId) -> Option<&Subscriber> {
        self.subscribers.iter().find(|subscriber| subscriber.operations().any(|taker| taker == operation))
    }
}

/// Who has subscribed to a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// The operation whose jobs take the events: the first one of a task that is released by them, or one with a subscription of its own. Records of
    /// events that are lost on the way name it.
    pub operation: OperationId,
    /// Where the events release a task that begins with several subtasks, its other first ones, whose jobs have the events of their instance, too.
    pub beside: Vec<OperationId>,
    /// Its task by index.
    pub task: usize,
    /// Whether the events release the task.
    pub is_released: bool,
    /// The leaves of its condition whose event it may be; none where it only keeps something from coming true.
    pub leaves: Vec<usize>,
}

impl Subscriber {
    /// All operations whose jobs have the events, in file order.
    pub fn operations(&self) -> impl Iterator<Item = OperationId> {
        std::iter::once(self.operation).chain(self.beside.iter().copied())
    }
}

/// An output with what it is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSite {
    /// Its number.
    pub id: OutputId,
    /// The operation that publishes it.
    pub operation: OperationId,
    /// Index into the subtask's outputs.
    pub index: usize,
    /// `task.output` or `task.subtask.output`, as inputs and triggers name it.
    pub name: String,
    /// The inputs that read it, by number.
    pub readers: Vec<InputId>,
    /// The tasks that its values trigger, by index.
    pub triggers: Vec<usize>,
}

/// An input with what it is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSite {
    /// Its number.
    pub id: InputId,
    /// The operation that takes it.
    pub operation: OperationId,
    /// Index into the subtask's inputs.
    pub index: usize,
    /// `task.input` or `task.subtask.input`.
    pub name: String,
    /// The output that it reads.
    pub output: OutputId,
    /// Which values.
    pub take: Take,
}

/// All ports of a system.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Connections {
    pub outputs: Vec<OutputSite>,
    pub inputs: Vec<InputSite>,
    pub publications: Vec<PublicationSite>,
    /// Index of each operation's first output; one more entry than operations.
    output_starts: Vec<u32>,
    /// The same of its inputs.
    input_starts: Vec<u32>,
}

impl Connections {
    /// Numbers the ports of a description that breaks no rule.
    pub(crate) fn number(description: &Description) -> Self {
        let mut made = Connections {
            outputs: Vec::new(),
            inputs: Vec::new(),
            publications: Vec::new(),
            output_starts: vec![0],
            input_starts: vec![0],
        };
        let mut task_starts = Vec::with_capacity(description.tasks.len());
        for task in &description.tasks {
            task_starts.push(made.output_starts.len() - 1);
            for (position, subtask) in task.subtasks.iter().enumerate() {
                let operation = OperationId::from_index(made.output_starts.len() - 1);
                let name = |port: &str| format!("{}.{port}", task.operation_name(position));
                for (index, output) in subtask.outputs.iter().enumerate() {
                    let id = OutputId::from_index(made.outputs.len());
                    let (readers, triggers) = (Vec::new(), Vec::new());
                    let name = name(&output.name);
                    made.outputs.push(OutputSite { id, operation, index, name, readers, triggers });
                }
                made.output_starts.push(made.outputs.len() as u32);
            }
        }
        let mut operations = 0..made.output_starts.len() - 1;
        for (task_index, task) in description.tasks.iter().enumerate() {
            if let Some(Trigger::Output { output, .. }) = &task.trigger {
                let output = made.output_at(&task_starts, *output);
                made.outputs[output.index()].triggers.push(task_index);
            }
            for (position, subtask) in task.subtasks.iter().enumerate() {
                let operation = OperationId::from_index(operations.next().expect("one for each subtask"));
                for (index, input) in subtask.inputs.iter().enumerate() {
                    let id = InputId::from_index(made.inputs.len());
                    let output = made.output_at(&task_starts, input.from);
                    made.outputs[output.index()].readers.push(id);
                    let name = format!("{}.{}", task.operation_name(position), input.name);
                    made.inputs.push(InputSite { id, operation, index, name, output, take: input.take });
                }
                made.input_starts.push(made.inputs.len() as u32);
            }
        }
        let mut subscriptions: HashMap<usize, Vec<(Subscriber, &Subscription)>> = HashMap::new();
        for (owner, subscription) in description.subscriptions() {
            let (task, is_released) = match owner {
                SubscriptionOwner::Operation(address) => (address.task, false),
                SubscriptionOwner::Task(task) => (task, true),
            };
            let takes = |subtask: &(usize, &Subtask)| match owner {
                SubscriptionOwner::Operation(address) => subtask.0 == address.subtask,
                SubscriptionOwner::Task(_) => subtask.1.after.is_empty(),
            };
            let takers = description.tasks[task].subtasks.iter().enumerate().filter(takes);
            let mut takers = takers.map(|(subtask, _)| OperationId::from_index(task_starts[task] + subtask));
            let operation = takers.next().expect("validation refuses tasks without a first subtask");
            let (beside, leaves) = (takers.collect(), Vec::new());
            let subscriber = Subscriber { operation, beside, task, is_released, leaves };
            subscriptions.entry(subscription.channel).or_default().push((subscriber, subscription));
        }
        for (number, (address, publication)) in description.publications().enumerate() {
            let PublicationAddress { operation: at, event: index } = address;
            let channel = &description.channels[publication.channel].name;
            let operation = description.tasks[at.task].operation_name(at.subtask);
            made.publications.push(PublicationSite {
                id: PublicationId::from_index(number),
                operation: OperationId::from_index(task_starts[at.task] + at.subtask),
                index,
                name: format!("{operation}>{channel} {}", publication.event_type),
                subscribers: subscriptions
                    .get(&publication.channel)
                    .map_or_else(Vec::new, |those| subscribers(those, publication)),
            });
        }
        made
    }

    /// The number of an output, given each task's first operation.
    fn output_at(&self, task_starts: &[usize], address: OutputAddress) -> OutputId {
        let operation = task_starts[address.operation.task] + address.operation.subtask;
        OutputId::from_index(self.output_starts[operation] as usize + address.output)
    }

    pub(crate) fn outputs_of(&self, operation: OperationId) -> &[OutputSite] {
        &self.outputs[range(&self.output_starts, operation)]
    }

    pub(crate) fn inputs_of(&self, operation: OperationId) -> &[InputSite] {
        &self.inputs[range(&self.input_starts, operation)]
    }
}

/// Who has subscribed to a publication, of those that have subscribed to its channel.
fn subscribers(those: &[(Subscriber, &Subscription)], publication: &Publication) -> Vec<Subscriber> {
    let subscribed = |(subscriber, subscription): &(Subscriber, &Subscription)| {
        Some(Subscriber { leaves: subscription.leaves_of(publication)?, ..subscriber.clone() })
    };
    those.iter().filter_map(subscribed).collect()
}

fn range(starts: &[u32], operation: OperationId) -> std::ops::Range<usize> {
    starts[operation.index()] as usize..starts[operation.index() + 1] as usize
}

/// A chain with its operations and connections by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSite {
    /// The operations along the path, at least two.
    pub operations: Vec<OperationId>,
    /// What connects each with the next; one fewer than operations.
    pub hops: Vec<Hop>,
}

/// What connects one operation of a chain with the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// How the second comes to run.
    pub kind: HopKind,
    /// The inputs by which the second reads outputs of the first; none where only releases are handed on.
    pub inputs: Vec<InputId>,
}

/// How the second of two connected operations comes to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopKind {
    /// It is a direct successor: the completion of the first, with those of other predecessors, releases it.
    Successor,
    /// Its task is triggered by values on this output of the first, and it is a first subtask.
    Trigger(OutputId),
    /// Its task has subscribed to events that the first pushes, and it is a first subtask.
    Events,
    /// It is released by other means, takes no values of the first, and has a subscription of its own to events that the first pushes.
    TakenEvents,
    /// It is released by other means and takes what the first has published.
    Data,
}

/// What connects two operations, before anything is numbered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    pub kind: ConnectionKind,
    /// Indices into the inputs of the second.
    pub inputs: Vec<usize>,
}

/// As [`HopKind`], with an index into the outputs of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    Successor,
    Trigger(usize),
    Events,
    TakenEvents,
    Data,
}

/// Whether the operation pushes events that this is a subscription to.
fn pushes_to(tasks: &[Task], from: OperationAddress, subscription: &Subscription) -> bool {
    let pushed = &tasks[from.task].subtasks[from.subtask].events;
    pushed.iter().any(|event| subscription.hands_on(event))
}

/// How two operations that exist are connected, if they are.
pub(crate) fn connection_between(
    tasks: &[Task],
    from: OperationAddress,
    to: OperationAddress,
) -> Option<Connection> {
    let task = &tasks[to.task];
    let second = &task.subtasks[to.subtask];
    let reads = |(_, input): &(usize, &Input)| input.from.operation == from;
    let inputs: Vec<usize> = second.inputs.iter().enumerate().filter(reads).map(|(index, _)| index).collect();
    let kind = match &task.trigger {
        _ if from.task == to.task && second.after.contains(&from.subtask) => ConnectionKind::Successor,
        Some(Trigger::Output { output, .. }) if output.operation == from && second.after.is_empty() => {
            ConnectionKind::Trigger(output.output)
        }
        Some(Trigger::Events(subscription))
            if second.after.is_empty() && pushes_to(tasks, from, subscription) =>
        {
            ConnectionKind::Events
        }
        _ if !inputs.is_empty() => ConnectionKind::Data,
        _ if second.subscription.as_ref().is_some_and(|own| pushes_to(tasks, from, own)) => {
            ConnectionKind::TakenEvents
        }
        _ => return None,
    };
    Some(Connection { kind, inputs })
}

impl Connections {
    /// The chain of these operations, which are given by address and by number.
    pub(crate) fn chain(
        &self,
        tasks: &[Task],
        path: &[OperationAddress],
        operations: Vec<OperationId>,
    ) -> ChainSite {
        let hop = |(step, pair): (usize, &[OperationAddress])| {
            let Connection { kind, inputs } =
                connection_between(tasks, pair[0], pair[1]).expect("validation refuses chains with gaps");
            let (from, to) = (operations[step], operations[step + 1]);
            let kind = match kind {
                ConnectionKind::Successor => HopKind::Successor,
                ConnectionKind::Events => HopKind::Events,
                ConnectionKind::TakenEvents => HopKind::TakenEvents,
                ConnectionKind::Trigger(output) => HopKind::Trigger(self.outputs_of(from)[output].id),
                ConnectionKind::Data => HopKind::Data,
            };
            Hop { kind, inputs: inputs.iter().map(|input| self.inputs_of(to)[*input].id).collect() }
        };
        let hops = path.windows(2).enumerate().map(hop).collect();
        ChainSite { hops, operations }
    }
}
