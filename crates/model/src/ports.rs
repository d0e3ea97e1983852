//! What operations exchange: the outputs on which they publish values and the inputs by which they take them.
//!
//! Each input reads one output; an output may be read by any number of inputs. A job publishes its values when it completes and takes
//! those of others when it begins ([`Communication`](crate::Communication) says when between tasks).

use crate::operation::OperationAddress;
use std::sync::Arc;
use talea_time::Duration;

/// The most outputs, inputs and chains that a system may have of each, and the greatest capacity of an input and burst of a trigger.
pub const PORT_LIMIT: usize = 1 << 16;

/// On what an operation publishes a value per job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Unique among the outputs of its operation.
    pub name: String,
    /// Size of the values where no program makes them, at most [`Output::BYTES_LIMIT`].
    pub bytes: u32,
    /// What stands in those values from their beginning on, [`SyntheticField::BYTES`] each; the rest is zero.
    pub fields: Vec<SyntheticField>,
}

impl Output {
    /// The bytes of a value for which none are stated.
    pub const DEFAULT_BYTES: u32 = 8;

    /// The most bytes of a value: 1 MiB.
    pub const BYTES_LIMIT: u32 = 1 << 20;
}

/// A whole number in the values of an output where no program makes them, so that conditions and filters have something to decide by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticField {
    /// Unique within its output.
    pub name: String,
    /// What it is, job by job.
    pub values: FieldValues,
}

impl SyntheticField {
    /// What a field takes of its value.
    pub const BYTES: u32 = 8;
}

/// The numbers of a synthetic field, job by job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValues {
    /// Always this.
    Constant(i64),
    /// Uniform between the two, both included, drawn from the system's seed and the job's number.
    Uniform(i64, i64),
    /// Job `k` has entry `k` modulo the length, which is at least one.
    List(Arc<[i64]>),
}

/// An output by its indices, before outputs are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputAddress {
    /// The operation that publishes it.
    pub operation: OperationAddress,
    /// Index into the subtask's outputs.
    pub output: usize,
}

/// By what an operation takes values of one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// The value of the same instance of the same task; the output is one of a direct or indirect predecessor.
    Instance,
    /// The newest value that there is, which may have been taken before.
    Latest,
    /// All values that have come since the last job, in their order.
    Each {
        /// How many of them wait at most, from 1 to [`PORT_LIMIT`].
        capacity: u32,
        /// What happens to a value when that many wait.
        full: Full,
    },
}

impl Take {
    /// The values that wait at most where no capacity is stated.
    pub const DEFAULT_CAPACITY: u32 = 16;

    /// The words for the cases, in the order of the cases.
    pub(crate) const WORDS: [&str; 3] = ["instance", "latest", "each"];

    /// The word that stands for the case in files.
    pub const fn keyword(self) -> &'static str {
        match self {
            Take::Instance => Take::WORDS[0],
            Take::Latest => Take::WORDS[1],
            Take::Each { .. } => Take::WORDS[2],
        }
    }

    /// How long a job whose value finds the queue full waits for room at most, if it does.
    pub const fn wait_limit(self) -> Option<Duration> {
        match self {
            Take::Each { full: Full::Block { limit }, .. } => Some(limit),
            Take::Each { .. } | Take::Latest | Take::Instance => None,
        }
    }
}

/// What happens when a value is published and the queue of an input that takes each is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Full {
    /// The oldest value is dropped and counted.
    #[default]
    Oldest,
    /// The value that comes is dropped and counted.
    Newest,
    /// The producer waits until there is room, then drops the value and counts it.
    Block {
        /// How long it waits at most, more than zero.
        limit: Duration,
    },
}

impl Full {
    /// The words for the cases, in the order of the cases.
    pub(crate) const WORDS: [&str; 3] = ["oldest", "newest", "block"];

    /// The word that stands for the case in files.
    pub const fn keyword(self) -> &'static str {
        match self {
            Full::Oldest => Full::WORDS[0],
            Full::Newest => Full::WORDS[1],
            Full::Block { .. } => Full::WORDS[2],
        }
    }
}

/// An input of an operation and the output that it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Unique among the inputs of its operation.
    pub name: String,
    /// The output that it reads.
    pub from: OutputAddress,
    /// Which of its values.
    pub take: Take,
}
