//! What crosses from one node to another. A run starts a process for each node, and between two of these go completions of predecessors,
//! with their values, and nothing else. A program that runs all nodes in one process has no such limits, so these are warnings.

use super::{Place, Violation, label};
use crate::description::Description;
use crate::operation::OperationAddress;
use crate::ports::{OutputAddress, Take};
use crate::trigger::Trigger;
use std::collections::BTreeMap;

/// The most bytes that go from one process to another with a completion.
pub const MESSAGE_BYTES: usize = 4_016;
/// Of these, what stands in front of each value.
pub const VALUE_HEADER_BYTES: usize = 4;

/// How many bytes of a message values of these lengths take.
pub fn message_bytes(values: impl IntoIterator<Item = usize>) -> usize {
    values.into_iter().map(|bytes| VALUE_HEADER_BYTES.saturating_add(bytes)).fold(0, usize::saturating_add)
}

/// What to do where something other than a completion would have to cross.
const REMEDY: &str = "put both on one node, or make the later one a subtask that comes \"after\" the other: `talea run` starts a process for \
                      each node, and only completions go from one to another, with their values";

/// The same where the reader comes directly after the writer, with whose completion only the value of the same instance comes.
const OTHER_INSTANCES: &str = "write take = \"instance\", or put both on one node: `talea run` starts a process for each node, and only \
                               completions go from one to another, with the values of their own instances";

/// Warns of all in a description without errors that `talea run` refuses, or cannot send.
pub(super) fn check(description: &Description, found: &mut Vec<Violation>) {
    for (index, task) in description.tasks.iter().enumerate() {
        let Some(Trigger::Output { output: from, .. }) = task.trigger else { continue };
        let node = node_of(description, from.operation);
        if let Some(first) =
            task.subtasks.iter().find(|subtask| subtask.after.is_empty() && subtask.node != node)
        {
            let by = named(description, from);
            let message = format!("{} is released by {by}, which is on another node", label(task, first));
            found.push(Violation::warning(Place::Trigger(index, "output"), message, REMEDY));
        }
    }
    check_values(description, found);
}

fn check_values(description: &Description, found: &mut Vec<Violation>) {
    // By who sends them, the outputs that go to another node.
    let mut sent: BTreeMap<OperationAddress, Vec<usize>> = BTreeMap::new();
    for (task, described) in description.tasks.iter().enumerate() {
        for (subtask, reader) in described.subtasks.iter().enumerate() {
            for (number, input) in reader.inputs.iter().enumerate() {
                let OutputAddress { operation: from, output } = input.from;
                if node_of(description, from) == reader.node {
                    continue;
                }
                let comes_after = from.task == task && reader.after.contains(&from.subtask);
                let (why, key, remedy) = match (comes_after, input.take) {
                    (true, Take::Instance) => {
                        sent.entry(from).or_default().push(output);
                        continue;
                    }
                    (true, take @ (Take::Latest | Take::Each { .. })) => {
                        (format!(", by take = \"{}\"", take.keyword()), "take", OTHER_INSTANCES)
                    }
                    (false, _) => (" and not what it comes directly after".to_string(), "from", REMEDY),
                };
                let message = format!(
                    "input \"{}\" of {} reads {}, which is on another node{why}",
                    input.name,
                    label(described, reader),
                    named(description, input.from),
                );
                found.push(Violation::warning(Place::Input(task, subtask, number, key), message, remedy));
            }
        }
    }
    for (OperationAddress { task, subtask }, mut outputs) in sent {
        let sender = &description.tasks[task].subtasks[subtask];
        outputs.sort_unstable();
        outputs.dedup();
        let bytes = message_bytes(outputs.iter().map(|output| sender.outputs[*output].bytes as usize));
        if bytes > MESSAGE_BYTES {
            let message = format!(
                "what {} sends to other nodes takes {bytes} bytes: its values, and {VALUE_HEADER_BYTES} for each",
                label(&description.tasks[task], sender)
            );
            let remedy = format!(
                "make that {MESSAGE_BYTES} bytes at most, or put who reads the values on the same node: `talea run` starts a process for \
                 each node, and no more goes from one to another with a completion"
            );
            found.push(Violation::warning(Place::Subtask(task, subtask, "outputs"), message, remedy));
        }
    }
}

fn node_of(description: &Description, address: OperationAddress) -> usize {
    description.tasks[address.task].subtasks[address.subtask].node
}

fn named(description: &Description, address: OutputAddress) -> String {
    let (task, output) = description.output_at(address).expect("the description has no errors");
    format!("output \"{}\" of {}", output.name, label(task, &task.subtasks[address.operation.subtask]))
}
