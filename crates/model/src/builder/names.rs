//! The operations and outputs that inputs, triggers and chains name.

use crate::description::Task;
use crate::operation::OperationAddress;
use crate::ports::OutputAddress;
use crate::suggest::known_words;
use std::collections::HashMap;

/// Why a name stands for nothing.
pub(super) struct Misnamed {
    /// The end of a sentence about it.
    pub fault: String,
    /// What to write.
    pub remedy: String,
}

/// The names of all operations of a system.
pub(super) struct OperationNames {
    /// In file order, so that suggestions are the same on every run.
    names: Vec<String>,
    addresses: HashMap<String, OperationAddress>,
}

impl OperationNames {
    pub(super) fn of(tasks: &[Task]) -> Self {
        let mut found = OperationNames { names: Vec::new(), addresses: HashMap::new() };
        for (index, task) in tasks.iter().enumerate() {
            for subtask in 0..task.subtasks.len() {
                let address = OperationAddress { task: index, subtask };
                let name = task.operation_name(subtask);
                found.addresses.entry(name.clone()).or_insert(address);
                found.names.push(name);
            }
        }
        found
    }

    /// The operation called `name`.
    pub(super) fn operation(&self, name: &str) -> Result<OperationAddress, Misnamed> {
        self.addresses.get(name).copied().ok_or_else(|| Misnamed {
            fault: format!("there is no operation \"{name}\""),
            remedy: match self.names.iter().filter(|known| belongs_to(known, name)).count() {
                0 => known_words(name, self.names.iter().map(String::as_str)),
                _ => known_words(
                    "",
                    self.names.iter().map(String::as_str).filter(|known| belongs_to(known, name)),
                ),
            },
        })
    }

    /// The output called `operation.output`.
    pub(super) fn output(&self, name: &str, tasks: &[Task]) -> Result<OutputAddress, Misnamed> {
        let Some((operation_name, output)) = name.rsplit_once('.') else {
            let outputs = self.addresses.get(name).map(|address| self.outputs_of(*address, tasks));
            return Err(Misnamed {
                fault: "that names no output".into(),
                remedy: match outputs.filter(|names| !names.is_empty()) {
                    Some(outputs) => known_words(name, outputs.iter().map(String::as_str)),
                    None => "write the names of the operation and of its output, \"task.output\" or \"task.subtask.output\"".into(),
                },
            });
        };
        let operation = match self.operation(operation_name) {
            Ok(operation) => operation,
            Err(misnamed) => {
                // The name may be that of an operation whose output was left out.
                let outputs = self.addresses.get(name).map(|address| self.outputs_of(*address, tasks));
                return Err(match outputs.filter(|names| !names.is_empty()) {
                    Some(outputs) => Misnamed {
                        fault: "that is an operation and no output".into(),
                        remedy: known_words(name, outputs.iter().map(String::as_str)),
                    },
                    None => misnamed,
                });
            }
        };
        let subtask = &tasks[operation.task].subtasks[operation.subtask];
        let position = subtask.outputs.iter().position(|known| known.name == output);
        let address = position.map(|output| OutputAddress { operation, output });
        address.ok_or_else(|| {
            let outputs = self.outputs_of(operation, tasks);
            Misnamed {
                fault: format!("operation \"{operation_name}\" has no output \"{output}\""),
                remedy: match outputs.is_empty() {
                    true => format!("it has none; add outputs = [{{ name = \"{output}\" }}] to it"),
                    false => known_words(name, outputs.iter().map(String::as_str)),
                },
            }
        })
    }

    /// The outputs of an operation with its name in front.
    fn outputs_of(&self, operation: OperationAddress, tasks: &[Task]) -> Vec<String> {
        let task = &tasks[operation.task];
        let name = task.operation_name(operation.subtask);
        let outputs = &task.subtasks[operation.subtask].outputs;
        outputs.iter().map(|output| format!("{name}.{}", output.name)).collect()
    }
}

/// Whether an operation is a subtask of the task called `task`.
fn belongs_to(operation: &str, task: &str) -> bool {
    operation.strip_prefix(task).is_some_and(|rest| rest.starts_with('.'))
}
