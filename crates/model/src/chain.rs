//! Cause-effect chains: paths from a cause through connected operations to an effect.

use crate::operation::OperationAddress;
use talea_time::Duration;

/// A path of operations, each connected with the next: by being its successor, by triggering its task, by events to which its task has
/// subscribed, or by an input that reads an output of it. The words for the times are those of Dürr, von der Brüggen, Chen and Chen 2019.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Unique among the chains; may consist of several words.
    pub name: String,
    /// The operations, at least two, each once.
    pub path: Vec<OperationAddress>,
    /// The limit from the release of the first operation's job to the completion of the last one's that first used its value.
    pub latency: Option<Duration>,
    /// The limit from an event outside just after a job of the first operation sampled to the first completion of the last operation
    /// that has seen it.
    pub reaction: Option<Duration>,
    /// The limit from the release of the first operation's job that sampled to the completion of the last one's that used the sample.
    pub age: Option<Duration>,
}

impl Chain {
    /// The limits with the keys that state them, as far as there are any.
    pub fn limits(&self) -> impl Iterator<Item = (&'static str, Duration)> + use<> {
        let limits = [("latency", self.latency), ("reaction", self.reaction), ("age", self.age)];
        limits.into_iter().filter_map(|(key, limit)| Some((key, limit?)))
    }
}
