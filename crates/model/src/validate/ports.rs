//! Rules about outputs and inputs.

use super::times::{Least, violation_of};
use super::{Place, Spelling, Unresolved, Violation, check_name, check_unique, label};
use crate::description::{Description, Subtask, Task};
use crate::operation::OperationAddress;
use crate::ports::{FieldValues, Full, Input, Output, PORT_LIMIT, SyntheticField, Take};
use crate::trigger::Communication;

/// Checks all outputs and inputs. What reads an output that was not found is left alone.
pub(super) fn check(description: &Description, unresolved: &Unresolved, found: &mut Vec<Violation>) {
    check_count(&description.tasks, "outputs", |subtask| subtask.outputs.len(), found);
    check_count(&description.tasks, "inputs", |subtask| subtask.inputs.len(), found);
    for (index, task) in description.tasks.iter().enumerate() {
        for (position, subtask) in task.subtasks.iter().enumerate() {
            let address = OperationAddress { task: index, subtask: position };
            check_outputs(address, task, subtask, found);
            check_inputs(description, address, unresolved, found);
        }
    }
}

fn check_count(
    tasks: &[Task],
    key: &'static str,
    of: impl Fn(&Subtask) -> usize,
    found: &mut Vec<Violation>,
) {
    let mut count = 0;
    for (index, task) in tasks.iter().enumerate() {
        for (position, subtask) in task.subtasks.iter().enumerate() {
            count += of(subtask);
            if count > PORT_LIMIT {
                found.push(Violation::error(
                    Place::Subtask(index, position, key),
                    format!("with {} the system has more than {PORT_LIMIT} {key}", label(task, subtask)),
                    "describe it as several systems",
                ));
                return;
            }
        }
    }
}

fn check_outputs(address: OperationAddress, task: &Task, subtask: &Subtask, found: &mut Vec<Violation>) {
    let OperationAddress { task: index, subtask: position } = address;
    if subtask.outputs.is_empty() {
        return;
    }
    let owner = label(task, subtask);
    let names = subtask.outputs.iter().map(|output| output.name.as_str());
    check_unique("output", &format!("{owner}: output"), names, found, |output| {
        Place::Output(index, position, output, "name")
    });
    for (number, output) in subtask.outputs.iter().enumerate() {
        let place = |key| Place::Output(index, position, number, key);
        check_name("output", &output.name, Spelling::OneWord, place("name"), found);
        let subject = format!("output \"{}\" of {owner}", output.name);
        check_bytes(output.bytes, &format!("the values of {subject}"), place("bytes"), found);
        check_fields((output.bytes, &output.fields), &subject, place("fields"), found);
    }
}

/// The size of synthetic values, or of events.
pub(super) fn check_bytes(bytes: u32, subject: &str, place: Place, found: &mut Vec<Violation>) {
    if bytes > Output::BYTES_LIMIT {
        found.push(Violation::error(
            place,
            format!("{subject} have {bytes} bytes"),
            format!("make them {} bytes (1 MiB) at most", Output::BYTES_LIMIT),
        ));
    }
}

/// The fields of synthetic values, or of events, of this size.
pub(super) fn check_fields(
    (bytes, fields): (u32, &[SyntheticField]),
    subject: &str,
    place: Place,
    found: &mut Vec<Violation>,
) {
    check_numbers(fields, subject, place, found);
    let room = bytes / SyntheticField::BYTES;
    if fields.len() > room as usize && bytes <= Output::BYTES_LIMIT {
        let needed = fields.len() * SyntheticField::BYTES as usize;
        found.push(Violation::error(
            place,
            format!("the {bytes} bytes of {subject} have no room for the fields"),
            format!("write bytes = {needed} or more; each field takes {}", SyntheticField::BYTES),
        ));
    }
}

/// Synthetic fields, wherever they are.
pub(super) fn check_numbers(
    fields: &[SyntheticField],
    subject: &str,
    place: Place,
    found: &mut Vec<Violation>,
) {
    let names = fields.iter().map(|field| field.name.as_str());
    check_unique("field", &format!("{subject}: field"), names, found, |_| place);
    for SyntheticField { name, values } in fields {
        check_name("field", name, Spelling::OneWord, place, found);
        let fault = match values {
            FieldValues::Uniform(low, high) if low > high => (
                format!("is uniform from {low} down to {high}"),
                format!("write the smaller one first: uniform = [{high}, {low}]"),
            ),
            FieldValues::List(list) if list.is_empty() => {
                ("is an empty list".into(), "list at least one number".into())
            }
            _ => continue,
        };
        found.push(Violation::error(place, format!("field \"{name}\" of {subject} {}", fault.0), fault.1));
    }
}

fn check_inputs(
    description: &Description,
    address: OperationAddress,
    unresolved: &Unresolved,
    found: &mut Vec<Violation>,
) {
    let OperationAddress { task: index, subtask: position } = address;
    let task = &description.tasks[index];
    let subtask = &task.subtasks[position];
    if subtask.inputs.is_empty() {
        return;
    }
    let owner = label(task, subtask);
    let names = subtask.inputs.iter().map(|input| input.name.as_str());
    check_unique("input", &format!("{owner}: input"), names, found, |input| {
        Place::Input(index, position, input, "name")
    });
    for (number, input) in subtask.inputs.iter().enumerate() {
        let place = |key| Place::Input(index, position, number, key);
        check_name("input", &input.name, Spelling::OneWord, place("name"), found);
        if unresolved.contains(&place("from")) {
            continue;
        }
        let subject = format!("input \"{}\" of {owner}", input.name);
        let connection = Connected { description, address, number, input, subject };
        connection.check(found);
    }
}

/// An input whose output may exist.
struct Connected<'d> {
    description: &'d Description,
    address: OperationAddress,
    number: usize,
    input: &'d Input,
    /// How messages call it.
    subject: String,
}

impl Connected<'_> {
    fn place(&self, key: &'static str) -> Place {
        Place::Input(self.address.task, self.address.subtask, self.number, key)
    }

    fn check(&self, found: &mut Vec<Violation>) {
        let Connected { description, address, input, subject, .. } = self;
        let from = input.from.operation;
        let Some((producer, output)) = description.output_at(input.from) else {
            found.push(Violation::error(
                self.place("from"),
                format!(
                    "{subject} reads output number {} of subtask number {} of task number {}, which does not exist",
                    input.from.output, from.subtask, from.task
                ),
                "they are counted from 0",
            ));
            return;
        };
        if from == *address {
            found.push(Violation::error(
                self.place("from"),
                format!("{subject} reads \"{}\" of the same operation", output.name),
                "an operation remembers what it needs of its own; read the output of another one",
            ));
            return;
        }
        let is_sibling = from.task == address.task;
        match input.take {
            Take::Instance if !is_sibling || !producer.precedes(from.subtask, address.subtask) => {
                found.push(Violation {
                    related: Some(self.place("from")),
                    ..Violation::error(
                        self.place("take"),
                        format!(
                            "{subject} takes the value of its own instance, but {} is no predecessor",
                            label(producer, &producer.subtasks[from.subtask])
                        ),
                        match is_sibling {
                            true => "name it in \"after\", or write take = \"latest\" or \"each\"",
                            false => "write take = \"latest\" or \"each\"; only subtasks of one task have instances in common",
                        },
                    )
                });
            }
            Take::Instance | Take::Latest => {}
            Take::Each { capacity, full } => self.check_queue(capacity, full, producer, found),
        }
    }

    fn check_queue(&self, capacity: u32, full: Full, producer: &Task, found: &mut Vec<Violation>) {
        let subject = &self.subject;
        if capacity == 0 || capacity as usize > PORT_LIMIT {
            found.push(Violation::error(
                self.place("capacity"),
                format!("{subject} has a capacity of {capacity}"),
                format!("write a whole number from 1 to {PORT_LIMIT}"),
            ));
        }
        let Full::Block { limit } = full else { return };
        found.extend(violation_of(limit, Least::AboveZero, self.place("limit"), "limit", || subject.clone()));
        let (from, to) = (self.input.from.operation, self.address);
        let runs_in_turn = from.task == to.task
            && (producer.precedes(from.subtask, to.subtask) || producer.precedes(to.subtask, from.subtask));
        let by = label(producer, &producer.subtasks[from.subtask]);
        let (related, message, remedy) = if producer.criticality.is_critical() {
            (
                Some(Place::Task(from.task, "criticality")),
                format!("{subject} would make {by} wait, which is critical"),
                "write full = \"oldest\" or \"newest\"; what is critical waits for no reader",
            )
        } else if runs_in_turn {
            (
                None,
                format!(
                    "{subject} would make {by} wait for an operation that runs only when it has completed"
                ),
                "write full = \"oldest\" or \"newest\", or read it from another task",
            )
        } else if producer.communication == Communication::Let {
            (
                Some(Place::Task(from.task, "communication")),
                format!(
                    "{subject} would make {by} wait, which publishes at the end of its period, when no job is there to wait"
                ),
                "write full = \"oldest\" or \"newest\", or make the communication of the producer's task implicit",
            )
        } else {
            return;
        };
        found.push(Violation { related, ..Violation::error(self.place("full"), message, remedy) });
    }
}
