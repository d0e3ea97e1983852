//! What connects the operations of a run, as records and the measurement of chains refer to it.

use serde::{Deserialize, Serialize};
use talea_model::{ChainSite, Communication, HopKind, OnValue, System};
use talea_time::Duration;

/// An output of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputEntry {
    /// Its name, `task.output` or `task.subtask.output`.
    pub name: String,
    /// Index of its operation.
    pub operation: usize,
    /// Whether its values are kept: [`crate::event::Value`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
    /// The tasks that its values release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<ReleasesEntry>,
}

/// A task that values of an output release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasesEntry {
    /// Index of the task.
    pub task: usize,
    /// Which values release an instance.
    pub every: u32,
    /// Which values count.
    #[serde(default, skip_serializing_if = "CountedValues::are_all")]
    pub on: CountedValues,
}

/// What an operation pushes into a channel; or what a program pushes, from wherever it likes, into a channel that it has made itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicationEntry {
    /// The names of operation, channel and type: `imu.read>health Robot/Battery`. Without an operation those of channel and type.
    pub name: String,
    /// Index of its operation. None of what a program pushes, which is [defined](crate::Definition::Publication) while the run lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<usize>,
    /// The name of the channel.
    pub channel: String,
    /// The type of the events, `Domain/Name`.
    pub event_type: String,
    /// The tasks that have subscribed to be released by it, by index.
    pub subscribers: Vec<usize>,
    /// The operations that have subscribed to it themselves, by index: their jobs take what waits when they begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takers: Vec<usize>,
    /// Whether what jobs push is kept: [`crate::event::PushKept`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kept: bool,
}

/// An input of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputEntry {
    /// Its name, `task.input` or `task.subtask.input`.
    pub name: String,
    /// Index of its operation.
    pub operation: usize,
    /// Index of the output that it reads.
    pub output: usize,
    /// Whether a job takes values as of its arrival, and not as of its beginning: under logical execution time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_of_arrival: bool,
    /// Whether jobs whose values find it full wait for room. `job.wait` tells of that, except in preemptive lanes and below schedulers of real runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_waited_for: bool,
}

/// A cause-effect chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainEntry {
    /// Its name.
    pub name: String,
    /// Indices of its operations, in their order.
    pub operations: Vec<usize>,
    /// What connects each with the next.
    pub hops: Vec<HopEntry>,
    /// The limit on the time from the first operation's release to the completion of the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Duration>,
    /// The limit on the time from an event outside to the first completion that has seen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaction: Option<Duration>,
    /// The limit on the age of the sample that a completion used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Duration>,
}

/// What connects one operation of a chain with the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum HopEntry {
    /// The next is released by the completion, in the same instance.
    Successor {
        /// Indices of the inputs by which it takes values of the operation, if it takes some.
        #[serde(
            default,
            alias = "input",
            deserialize_with = "one_or_several",
            skip_serializing_if = "Vec::is_empty"
        )]
        inputs: Vec<usize>,
    },
    /// The next takes events that the operation pushes, for each of which it is released.
    Events,
    /// The next takes events that the operation pushes, whatever releases it.
    TakenEvents,
    /// The next takes values of these inputs, whatever releases it.
    Reads {
        /// Indices of the inputs.
        #[serde(alias = "input", deserialize_with = "one_or_several")]
        inputs: Vec<usize>,
    },
    /// The next is released by each so-many-th value, and takes none: its instance `k` comes from the value `every * (k + 1)`
    /// of those that count.
    Triggers {
        /// Index of the output.
        output: usize,
        /// Which values release an instance.
        every: u32,
        /// Which values count.
        #[serde(default, skip_serializing_if = "CountedValues::are_all")]
        on: CountedValues,
    },
}

impl HopEntry {
    /// The inputs by which values go over this hop.
    pub fn inputs(&self) -> &[usize] {
        match self {
            HopEntry::Successor { inputs } | HopEntry::Reads { inputs } => inputs,
            HopEntry::Events | HopEntry::TakenEvents | HopEntry::Triggers { .. } => &[],
        }
    }
}

/// Older traces name the first input alone.
fn one_or_several<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<usize>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Inputs {
        One(usize),
        Several(Vec<usize>),
    }
    Ok(match Inputs::deserialize(deserializer)? {
        Inputs::One(input) => vec![input],
        Inputs::Several(inputs) => inputs,
    })
}

/// Which values of an output count towards releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedValues {
    /// All.
    #[default]
    All,
    /// Those that differ from the one before.
    Changes,
}

impl CountedValues {
    /// Whether all of them count.
    pub fn are_all(&self) -> bool {
        *self == CountedValues::All
    }
}

/// What releases a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleasedBy {
    /// Its period.
    #[default]
    Period,
    /// Values of another task's output.
    Values,
    /// Something outside.
    Outside,
    /// Events of a channel.
    Events,
}

impl ReleasedBy {
    /// Whether it is its period.
    pub fn is_period(&self) -> bool {
        *self == ReleasedBy::Period
    }
}

pub(crate) fn outputs_of(system: &System) -> Vec<OutputEntry> {
    let entry = |site: &talea_model::OutputSite| OutputEntry {
        name: site.name.clone(),
        operation: site.operation.index(),
        is_kept: false,
        releases: site
            .triggers
            .iter()
            .filter_map(|task| releases(system, *task))
            .map(|(_, entry)| entry)
            .collect(),
    };
    system.outputs().iter().map(entry).collect()
}

/// What values release the task, if values do: the index of their output, and how.
fn releases(system: &System, task: usize) -> Option<(usize, ReleasesEntry)> {
    let Some(talea_model::Trigger::Output { every, on, .. }) = system.tasks[task].trigger else {
        return None;
    };
    let on = match on {
        OnValue::Value => CountedValues::All,
        OnValue::Change => CountedValues::Changes,
    };
    Some((system.trigger_output(task)?.index(), ReleasesEntry { task, every, on }))
}

pub(crate) fn publications_of(system: &System) -> Vec<PublicationEntry> {
    let entry = |site: &talea_model::PublicationSite| {
        let described = system.publication(site);
        PublicationEntry {
            name: site.name.clone(),
            operation: Some(site.operation.index()),
            channel: system.channels[described.channel].name.clone(),
            event_type: described.event_type.to_string(),
            subscribers: site.released().map(|subscriber| subscriber.task).collect(),
            takers: site
                .subscribers
                .iter()
                .filter(|subscriber| !subscriber.is_released)
                .map(|taker| taker.operation.index())
                .collect(),
            is_kept: false,
        }
    };
    system.publications().iter().map(entry).collect()
}

pub(crate) fn inputs_of(system: &System) -> Vec<InputEntry> {
    let entry = |site: &talea_model::InputSite| InputEntry {
        name: site.name.clone(),
        operation: site.operation.index(),
        output: site.output.index(),
        as_of_arrival: system.task_of(site.operation).communication == Communication::Let,
        is_waited_for: site.take.wait_limit().is_some(),
    };
    system.inputs().iter().map(entry).collect()
}

pub(crate) fn chains_of(system: &System) -> Vec<ChainEntry> {
    let entry = |(chain, site): (&talea_model::Chain, &ChainSite)| {
        let hop = |(step, hop): (usize, &talea_model::Hop)| {
            let inputs: Vec<usize> = hop.inputs.iter().map(|input| input.index()).collect();
            match hop.kind {
                HopKind::Successor => HopEntry::Successor { inputs },
                HopKind::Events => HopEntry::Events,
                HopKind::TakenEvents => HopEntry::TakenEvents,
                HopKind::Trigger(_) | HopKind::Data if !inputs.is_empty() => HopEntry::Reads { inputs },
                HopKind::Trigger(_) | HopKind::Data => {
                    let task = site.operations[step + 1].index();
                    let task = system.operations()[task].task;
                    let (output, entry) = releases(system, task).expect("nothing else connects the two");
                    let ReleasesEntry { every, on, .. } = entry;
                    HopEntry::Triggers { output, every, on }
                }
            }
        };
        ChainEntry {
            name: chain.name.clone(),
            operations: site.operations.iter().map(|operation| operation.index()).collect(),
            hops: site.hops.iter().enumerate().map(hop).collect(),
            latency: chain.latency,
            reaction: chain.reaction,
            age: chain.age,
        }
    };
    system.chains.iter().zip(system.chain_sites()).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_of_older_traces_name_one_input() {
        let read = |text: &str| serde_json::from_str::<HopEntry>(text).expect("a hop");
        assert_eq!(read(r#"{"kind":"reads","input":3}"#), HopEntry::Reads { inputs: vec![3] });
        assert_eq!(read(r#"{"kind":"successor","input":2}"#), HopEntry::Successor { inputs: vec![2] });
        for hop in [
            HopEntry::Successor { inputs: Vec::new() },
            HopEntry::Successor { inputs: vec![2] },
            HopEntry::Reads { inputs: vec![4, 5] },
        ] {
            assert_eq!(read(&serde_json::to_string(&hop).expect("it is written")), hop);
        }
        assert!(serde_json::from_str::<HopEntry>(r#"{"kind":"reads"}"#).is_err(), "by no input");
    }
}
