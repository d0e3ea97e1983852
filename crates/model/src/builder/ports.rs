//! Outputs and inputs under construction.

use super::names::{Misnamed, OperationNames};
use crate::description::Task;
use crate::operation::OperationAddress;
use crate::ports::{FieldValues, Full, Input, Output, OutputAddress, SyntheticField, Take};
use crate::validate::label;
use crate::{Place, Violation};

/// Stands in for an output that does not exist; the rules leave inputs alone of which that was reported.
const FIRST_OUTPUT: OutputAddress =
    OutputAddress { operation: OperationAddress { task: 0, subtask: 0 }, output: 0 };

/// An output under construction.
#[derive(Clone, Debug)]
pub struct OutputBuilder {
    output: Output,
}

impl OutputBuilder {
    /// Begins an output with synthetic values of eight bytes, all of them zero.
    pub fn new(name: impl Into<String>) -> Self {
        OutputBuilder {
            output: Output { name: name.into(), bytes: Output::DEFAULT_BYTES, fields: Vec::new() },
        }
    }

    /// Another size of synthetic values.
    pub fn bytes(mut self, bytes: u32) -> Self {
        self.output.bytes = bytes;
        self
    }

    /// Adds a whole number to synthetic values.
    pub fn field(mut self, name: impl Into<String>, values: FieldValues) -> Self {
        self.output.fields.push(SyntheticField { name: name.into(), values });
        self
    }

    pub(super) fn resolve(self) -> Output {
        self.output
    }
}

/// An input under construction. It needs to say [from](Self::from) where its values come.
#[derive(Clone, Debug)]
pub struct InputBuilder {
    name: String,
    from: Option<String>,
    take: Option<Take>,
    capacity: Option<u32>,
    full: Option<Full>,
}

impl InputBuilder {
    /// Begins an input that takes the value of the same instance where it reads a predecessor, and the latest where it reads another
    /// operation.
    pub fn new(name: impl Into<String>) -> Self {
        InputBuilder { name: name.into(), from: None, take: None, capacity: None, full: None }
    }

    /// The output that it reads, `task.output` or `task.subtask.output`.
    pub fn from(mut self, output: impl Into<String>) -> Self {
        self.from = Some(output.into());
        self
    }

    /// Takes the value of the same instance.
    pub fn instance(self) -> Self {
        self.take(Take::Instance)
    }

    /// Takes the newest value.
    pub fn latest(self) -> Self {
        self.take(Take::Latest)
    }

    /// Takes all values; of those that wait the newest 16, unless more is said.
    pub fn each(self) -> Self {
        self.take(Take::Each { capacity: Take::DEFAULT_CAPACITY, full: Full::default() })
    }

    /// Which values it takes.
    pub fn take(mut self, take: Take) -> Self {
        self.take = Some(take);
        self
    }

    /// Another number of values that wait at most, of an input that takes each.
    pub fn capacity(mut self, capacity: u32) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// What happens when that many wait.
    pub fn full(mut self, full: Full) -> Self {
        self.full = Some(full);
        self
    }

    /// With indices for names.
    pub(super) fn resolve(
        self,
        operation: OperationAddress,
        index: usize,
        tasks: &[Task],
        names: &OperationNames,
        violations: &mut Vec<Violation>,
    ) -> Input {
        let place = |key| Place::Input(operation.task, operation.subtask, index, key);
        let task = &tasks[operation.task];
        let owner = label(task, &task.subtasks[operation.subtask]);
        let subject = || format!("input \"{}\" of {}", self.name, owner);
        let from = match self.from.as_deref().map(|from| names.output(from, tasks)) {
            Some(Ok(from)) => from,
            Some(Err(Misnamed { fault, remedy })) => {
                let written = self.from.as_deref().unwrap_or_default();
                let message = format!("{} reads \"{written}\": {fault}", subject());
                violations.push(Violation::error(place("from"), message, remedy));
                FIRST_OUTPUT
            }
            None => {
                let message = format!("{} does not say what it reads", subject());
                let remedy = "name an output: from = \"task.output\"";
                violations.push(Violation::error(place("from"), message, remedy));
                FIRST_OUTPUT
            }
        };
        let is_handed_on =
            from.operation.task == operation.task && task.precedes(from.operation.subtask, operation.subtask);
        let take = self.take.unwrap_or(if is_handed_on { Take::Instance } else { Take::Latest });
        let take = match take {
            Take::Each { capacity, full } => {
                Take::Each { capacity: self.capacity.unwrap_or(capacity), full: self.full.unwrap_or(full) }
            }
            Take::Instance | Take::Latest => {
                let given = [("capacity", self.capacity.is_some()), ("full", self.full.is_some())];
                for (key, _) in given.into_iter().filter(|(_, given)| *given) {
                    violations.push(Violation {
                        related: Some(place("take")),
                        ..Violation::error(
                            place(key),
                            format!("{} has a \"{key}\" and takes \"{}\"", subject(), take.keyword()),
                            "values wait only where each is taken: write take = \"each\", or remove it",
                        )
                    });
                }
                take
            }
        };
        Input { name: self.name, from, take }
    }
}
