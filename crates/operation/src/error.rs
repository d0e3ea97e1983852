//! What can be wrong between a program's code and the description of the system.

use std::fmt;
use thiserror::Error;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OperationError {
    /// Code was given for an operation that the system does not have.
    #[error("the system has no operation \"{name}\"{}", hint(nearest))]
    UnknownOperation {
        /// What was asked for.
        name: String,
        /// The operation of the system that is written most alike.
        nearest: Option<String>,
    },
    /// Values of an output are to be kept that the system does not have.
    #[error(
        "the system has no output \"{name}\" whose values could be kept, no channel of that name, no operation of that name that reads from outside, and no operation of that name that takes events{}",
        hint(nearest)
    )]
    UnknownOutput {
        /// What was asked for.
        name: String,
        /// The output of the system that is written most alike.
        nearest: Option<String>,
    },
    /// Values of an output are to be kept that are never bytes.
    #[error(
        "the values of output \"{output}\" cannot be kept, for they are never bytes; register it with \
         `OutputKind::any().serialized()` or `.plain()`"
    )]
    NeverBytes {
        /// The output's name.
        output: String,
    },
    /// What jobs of an operation take of a channel is to be kept, and some of it is never bytes.
    #[error(
        "the events that \"{operation}\" takes cannot be kept, for some are never bytes; open those that operations publish with \
         `publication_of` and `OutputKind::any().serialized()` or `.plain()`"
    )]
    EventsNeverBytes {
        /// The operation's name.
        operation: String,
    },
    /// What jobs push is to be kept, and is never bytes.
    #[error(
        "the events that are pushed as \"{publication}\" cannot be kept, for they are never bytes; open them with `publication_of` and \
         `OutputKind::any().serialized()` or `.plain()`"
    )]
    PushesNeverBytes {
        /// The name of the publication.
        publication: String,
    },
    /// Code opens a port that its operation does not have.
    #[error(
        "operation \"{operation}\" has no {direction} \"{name}\"{}; describe it, or open another",
        hint(nearest)
    )]
    UnknownPort {
        /// Whose code.
        operation: String,
        /// "input" or "output".
        direction: &'static str,
        /// What was asked for.
        name: String,
        /// The port of the operation that is written most alike.
        nearest: Option<String>,
    },
    /// Code opens a port twice.
    #[error(
        "the code of operation \"{operation}\" opens \"{name}\" twice; keep the first token, which can be copied"
    )]
    OpenedTwice {
        /// Whose code.
        operation: String,
        /// The port.
        name: String,
    },
    /// An operation has code, and the description gives it a port that the code does not open.
    #[error(
        "the code of operation \"{operation}\" does not open its {direction} \"{name}\", which the system describes: register the code \
         with ports and open it, or leave the port out of the description"
    )]
    NotOpened {
        /// Whose code.
        operation: String,
        /// "input" or "output".
        direction: &'static str,
        /// The port.
        name: String,
    },
    /// Code opens the descriptor that releases its task, and none can.
    #[error(
        "the code of operation \"{operation}\" opens the descriptor that releases its task, and none can: write trigger = \"external\" in its \
         [[task]], and let the first subtask read"
    )]
    NoDescriptor {
        /// Whose code.
        operation: String,
    },
    /// What an operation reads is to be kept, and it has no code that opens what it would read.
    #[error(
        "nothing that \"{operation}\" reads from outside can be kept: its jobs do not read by `JobContext::read`; let its code open \
         `Ports::descriptor`"
    )]
    NotReadHere {
        /// The operation's name.
        operation: String,
    },
    /// Code opens an end at a channel that its operation does not have, or in a way in which it cannot be.
    #[error("the code of operation \"{operation}\" {problem}")]
    Events {
        /// Whose code.
        operation: String,
        /// What is wrong, with what to do instead.
        problem: String,
    },
    /// The two ends of a connection are of different types.
    #[error(
        "input \"{input}\" takes values of type {taken}, and output \"{output}\", which it reads, has values of type {written}: let \
         both ends name the same type"
    )]
    TypeMismatch {
        /// `operation.input`.
        input: String,
        /// Its type.
        taken: &'static str,
        /// `operation.output`.
        output: String,
        /// Its type.
        written: &'static str,
    },
    /// An input has code, and the output that it reads is synthetic.
    #[error(
        "input \"{input}\" takes values of type {taken}, and operation \"{producer}\", which is to write them, has no code: give it some, \
         or let the input take SyntheticValue"
    )]
    NoProducer {
        /// `operation.input`.
        input: String,
        /// Its type.
        taken: &'static str,
        /// The operation that it reads.
        producer: String,
    },
    /// A task is to be triggered when a value changes, and values cannot be compared.
    #[error(
        "task \"{task}\" is triggered when output \"{output}\" changes, and its values are not compared: open it with \
         OutputKind::any().compared()"
    )]
    NotCompared {
        /// The task.
        task: String,
        /// `operation.output`.
        output: String,
    },
    /// Values are to go to another process otherwise than to a successor.
    #[error(
        "input \"{input}\" reads output \"{output}\", and the two are in different processes, between which values go to successors alone, \
         with the completion that releases them: put both on one node, or make the reader a subtask directly after the other that takes the value \
         of its own instance (take = \"instance\")"
    )]
    Apart {
        /// `operation.input`.
        input: String,
        /// `operation.output`.
        output: String,
    },
    /// A task is to be released by values of another process.
    #[error(
        "task \"{task}\" is released by output \"{output}\", and the two are in different processes, between which only completions go: put \
         both on one node, or make the later one a subtask after the other"
    )]
    TriggerApart {
        /// The task.
        task: String,
        /// `operation.output`.
        output: String,
    },
    /// Values are to go to another process with a completion and are longer than a message.
    #[error(
        "operation \"{operation}\" sends {bytes} bytes to another process: values of {}, and {each} for each of them; a message has room for \
         {most}: make them shorter, or put who reads them on the same node",
        outputs.join(", "),
        each = talea_model::VALUE_HEADER_BYTES
    )]
    TooLarge {
        /// Who sends them.
        operation: String,
        /// `operation.output`, each.
        outputs: Vec<String>,
        /// What they take together.
        bytes: usize,
        /// What there is room for.
        most: usize,
    },
    /// Values are to go to another process, and have no bytes to send.
    #[error(
        "the values of output \"{output}\" go to another process, and are never bytes: open it with `OutputKind::any().plain()` or \
         `.serialized()`"
    )]
    NoBytesForProcess {
        /// `operation.output`.
        output: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean \"{name}\"?"))
}

/// Everything that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationErrors(pub Vec<OperationError>);

impl std::error::Error for OperationErrors {}

/// One problem per line.
impl fmt::Display for OperationErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

/// Of `known`, what is written most alike.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known.min_by_key(|other| strsim::damerau_levenshtein(other, name)).map(str::to_owned)
}
