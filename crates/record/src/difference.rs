//! What the tables of a trace and those of a description disagree about.

use crate::{InputEntry, Metadata, OperationEntry, PublicationEntry, ReleasedBy, TaskEntry};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use talea_model::Criticality;
use talea_time::{Duration, Work};

/// Something that a trace's tables have otherwise than those of a description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What differs.
    pub what: String,
    /// What it is in the trace.
    pub in_trace: String,
    /// What it is in the description.
    pub described: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { what, in_trace, described } = self;
        write!(f, "{what} is {in_trace} in the trace and {described} in the description")
    }
}

/// What there is of all tasks or operations but posted work, of which no description says anything.
fn described<'a, T>(
    metadata: &'a Metadata,
    entries: &'a [T],
    task: impl Fn(usize, &T) -> usize,
) -> impl Iterator<Item = &'a T> {
    let entries = entries.iter().enumerate();
    let is_described =
        move |(index, entry): &(usize, &'a T)| !metadata.tasks[task(*index, entry)].activity.is_posted();
    entries.filter(is_described).map(|(_, entry)| entry)
}

impl Metadata {
    fn described_tasks(&self) -> impl Iterator<Item = &TaskEntry> {
        described(self, &self.tasks, |index, _| index)
    }

    fn described_operations(&self) -> impl Iterator<Item = &OperationEntry> {
        described(self, &self.operations, |_, operation| operation.task)
    }
}

/// Differences as they are found.
#[derive(Default)]
struct Differences(Vec<Difference>);

impl Differences {
    fn hold<T: PartialEq + ToString>(&mut self, what: impl FnOnce() -> String, in_trace: T, described: T) {
        if in_trace != described {
            let (in_trace, described) = (in_trace.to_string(), described.to_string());
            self.0.push(Difference { what: what(), in_trace, described });
        }
    }
}

fn listed<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Where nodes, tasks and operations of a trace are others than those of a description's tables. Posted work is left out.
pub fn list_differences(trace: &Metadata, described: &Metadata) -> Vec<Difference> {
    let mut found = Differences::default();
    let nodes = |metadata: &Metadata| -> Vec<String> {
        metadata.nodes.iter().map(|node| format!("{} ({})", node.name, node.cpus.len())).collect()
    };
    let what = "the list of nodes and their processors";
    found.hold(|| what.into(), listed(&nodes(trace)), listed(&nodes(described)));
    let tasks = |metadata: &Metadata| listed(metadata.described_tasks().map(|task| &task.name));
    found.hold(|| "the list of tasks".into(), tasks(trace), tasks(described));
    let operations =
        |metadata: &Metadata| listed(metadata.described_operations().map(|operation| &operation.name));
    found.hold(|| "the list of operations".into(), operations(trace), operations(described));
    found.0
}

/// Where tasks and operations that both have are released, due, preceded, or served otherwise. Strategy, lanes and seed are not compared.
pub fn schedule_differences(trace: &Metadata, described: &Metadata) -> Vec<Difference> {
    let mut found = Differences::default();
    for (task, other) in common_tasks(trace, described) {
        let of = |what: &str| format!("the {what} of task \"{}\"", task.name);
        found.hold(|| of("period"), task.period, other.period);
        found.hold(|| of("deadline"), task.deadline, other.deadline);
        let inherits = |entry: &TaskEntry| if entry.inherits_deadline { "yes" } else { "no" };
        found.hold(|| of("inheritance of the deadline"), inherits(task), inherits(other));
        found.hold(|| of("phase"), task.phase, other.phase);
        found.hold(|| of("jitter"), task.jitter, other.jitter);
    }
    let operations = (trace.described_operations(), described.described_operations());
    for (operation, other) in common(operations, |operation| &operation.name) {
        let of = |what: &str| format!("the {what} of \"{}\"", operation.name);
        found.hold(|| of("worst-case execution time"), operation.wcet, other.wcet);
        let node = |metadata: &Metadata, lane: usize| metadata.nodes[metadata.lanes[lane].node].name.clone();
        found.hold(|| of("node"), node(trace, operation.lane), node(described, other.lane));
        let before = |metadata: &Metadata, entry: &OperationEntry| {
            listed(entry.predecessors.iter().map(|index| &metadata.operations[*index].name))
        };
        found.hold(|| of("list of predecessors"), before(trace, operation), before(described, other));
    }
    found.0
}

/// The tasks that both have, by name.
fn common_tasks<'a>(
    trace: &'a Metadata,
    described: &'a Metadata,
) -> impl Iterator<Item = (&'a TaskEntry, &'a TaskEntry)> {
    common((trace.described_tasks(), described.described_tasks()), |task| &task.name)
}

/// What both have, by name.
fn common<'a, T: 'a>(
    (in_trace, described): (impl Iterator<Item = &'a T>, impl Iterator<Item = &'a T>),
    name: fn(&T) -> &String,
) -> impl Iterator<Item = (&'a T, &'a T)> {
    let described: HashMap<&String, &T> = described.map(|entry| (name(entry), entry)).collect();
    in_trace.filter_map(move |entry| Some((entry, *described.get(name(entry))?)))
}

/// Where the strategy is another one, or what both have is released by something else, is more or less critical, or has other subscribers.
pub fn connection_differences(trace: &Metadata, described: &Metadata) -> Vec<Difference> {
    let mut found = Differences::default();
    found.hold(|| "the strategy".into(), &trace.strategy, &described.strategy);
    for (task, other) in common_tasks(trace, described) {
        let of = |what: &str| format!("{what} task \"{}\"", task.name);
        let releases = |entry: &TaskEntry| match entry.released_by {
            ReleasedBy::Period => "its period",
            ReleasedBy::Values => "values of an output",
            ReleasedBy::Outside => "something outside",
            ReleasedBy::Events => "events of a channel",
        };
        found.hold(|| of("what releases"), releases(task), releases(other));
        found.hold(|| of("the criticality of"), task.criticality, other.criticality);
    }
    let publications = (trace.described_publications(), described.described_publications());
    for (publication, other) in common(publications, |publication| &publication.name) {
        let of = || format!("the list of subscribers of \"{}\"", publication.name);
        let subscribers = |metadata: &Metadata, entry: &PublicationEntry| {
            let tasks = entry.subscribers.iter().map(|task| &metadata.tasks[*task].name);
            let takers = entry.takers.iter().map(|operation| &metadata.operations[*operation].name);
            listed(tasks.chain(takers))
        };
        found.hold(of, subscribers(trace, publication), subscribers(described, other));
    }
    found.0
}

/// Where an operation whose jobs were posted, by its number in the trace, is declared otherwise now: what it executes at most, in which lane it is, by node and
/// level, when its jobs are due, and how critical they are.
pub fn declaration_differences(
    trace: &Metadata,
    operation: usize,
    (wcet, (node, level)): (Work, (usize, usize)),
    (deadline, criticality): (Duration, Criticality),
) -> Vec<Difference> {
    let mut found = Differences::default();
    let entry = &trace.operations[operation];
    let (task, lane) = (&trace.tasks[entry.task], &trace.lanes[entry.lane]);
    let of = |what: &str| format!("the {what} of \"{}\", which is posted,", entry.name);
    found.hold(|| of("deadline"), task.deadline, deadline);
    found.hold(|| of("worst-case execution time"), entry.wcet, wcet);
    found.hold(|| of("criticality"), task.criticality, criticality);
    let name = |node: usize| trace.nodes.get(node).map_or("?", |node| node.name.as_str());
    let lane_of = |node: usize, level: usize| format!("{level} on {}", name(node));
    found.hold(|| of("lane"), lane_of(lane.node, lane.level), lane_of(node, level));
    found.0
}

impl Metadata {
    /// The input with the output that it reads, for people.
    pub fn connection(&self, input: &InputEntry) -> String {
        let output = self.outputs.get(input.output).map_or("?", |output| output.name.as_str());
        format!("{} from {output}", input.name)
    }

    /// What operations of the description push into channels; what programs push besides is defined while a run lasts.
    pub fn described_publications(&self) -> impl Iterator<Item = &PublicationEntry> {
        self.publications.iter().filter(|publication| publication.operation.is_some())
    }
}
