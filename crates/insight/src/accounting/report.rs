//! What the accounting of a run comes to: plain numbers, with names, for tables and JSON.

use super::{ChainReport, Distribution, SampleReport, SubscriptionReport};
use serde::{Deserialize, Serialize};
use talea_policy::arrangement::Kept;
use talea_record::{Activity, Origin, Switches};

/// The results of a run. All times are in nanoseconds; instants are on the run's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the system.
    pub system: String,
    /// Keyword of the strategy.
    pub strategy: String,
    /// Simulated or real.
    pub origin: Origin,
    /// The earliest start of a node, or the first event of a job in a recording that began later.
    pub start_ns: i64,
    /// The latest end of a node.
    pub end_ns: i64,
    /// Length of the run.
    pub duration_ns: i64,
    /// Records that were lost. Unless this is 0, the other numbers are lower bounds at best.
    pub lost_records: u64,
    /// Records of events, operations or nodes that the metadata or this version do not know.
    pub unknown_records: u64,
    /// Records of a node after its end, which do not count.
    pub records_after_end: u64,
    /// Tasks, in the order of the system file.
    pub tasks: Vec<TaskReport>,
    /// Operations, in the order of the system file.
    pub operations: Vec<OperationReport>,
    /// Lanes, highest first on each node.
    pub lanes: Vec<LaneReport>,
    /// Nodes, in the order of the system file.
    pub nodes: Vec<NodeReport>,
    /// Cause-effect chains, in the order of the system file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainReport>,
    /// The events of tasks that are released by them, in the order of the system file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriptions: Vec<SubscriptionReport>,
    /// Effectiveness and efficiency.
    pub samples: SampleReport,
    /// What came of the promises in the nodes' hierarchies of schedulers. Whoever ran them knows; a trace tells of broken
    /// ones only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hierarchies: Vec<HierarchyReport>,
}

fn is_none(number: &u64) -> bool {
    *number == 0
}

/// The hierarchy of schedulers of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HierarchyReport {
    /// The node's name.
    pub node: String,
    /// What came of the promise on every edge.
    pub edges: Vec<Kept>,
    /// That it ended before the run was to, if it did: its promises were judged until then alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EndedEarly>,
}

/// A hierarchy came to an end of its own before it was to, which is a failure of the run, and nobody's wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedEarly {
    /// When, since the run's start.
    pub at_ns: i64,
    /// Why.
    pub cause: String,
}

/// A task's instances.
///
/// `offered = released + skipped` and `released = met + missed + unfinished`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskReport {
    /// Its name.
    pub name: String,
    /// Whether it is a task, or a thread of a hierarchy, which arrives once if it always wants a processor.
    #[serde(default, skip_serializing_if = "Activity::is_task")]
    pub activity: Activity,
    /// Its criticality, 0 to 4.
    pub criticality: u8,
    /// Whether a miss is a failure of the system.
    pub critical: bool,
    /// Its period.
    pub period_ns: i64,
    /// Its relative deadline.
    pub deadline_ns: i64,
    /// Instances released or skipped.
    pub offered: u64,
    /// Instances released, those among them of which the first that the trace tells is that they ended; and those that had arrived, and that their guard
    /// held at the end.
    pub released: u64,
    /// Instances of which all last operations completed, in time or not.
    pub completed: u64,
    /// Instances completed no later than their deadline.
    pub met: u64,
    /// Instances completed late, aborted, or unfinished at the end with a deadline no later than it.
    pub missed: u64,
    /// Instances not released because of the overrun policy or full tables.
    pub skipped: u64,
    /// Arrivals that were merged with an instance before them that had not begun. They count nowhere else.
    #[serde(default, skip_serializing_if = "is_none")]
    pub merged: u64,
    /// Messages between its operations that were lost on their way: what waits for one is not released.
    #[serde(default, skip_serializing_if = "is_none")]
    pub messages_lost: u64,
    /// Instances that did not complete and had a subtask to do on a node that left the run before its end.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cut_off: u64,
    /// Instances aborted; those with a deadline are among the missed ones.
    pub aborted: u64,
    /// Instances unfinished at the end whose deadline is beyond it, and aborted ones without a deadline.
    pub unfinished: u64,
    /// From the nominal release to the completion of the last operation.
    pub response_ns: Option<Distribution>,
    /// Completion minus deadline at its worst; negative if every completion was in time.
    pub worst_lateness_ns: Option<i64>,
}

/// An operation's jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationReport {
    /// Its name.
    pub name: String,
    /// Name of its task.
    pub task: String,
    /// Index of its lane in the report's lanes.
    pub lane: usize,
    /// Jobs released, those among them of which the first that the trace tells is that they ended.
    pub released: u64,
    /// Jobs completed.
    pub completed: u64,
    /// Jobs completed no later than their instance's deadline.
    pub met: u64,
    /// Jobs completed late, aborted, or unfinished at the end with a deadline no later than it.
    pub missed: u64,
    /// Instances of the task that were skipped.
    pub skipped: u64,
    /// Jobs aborted; those with a deadline are among the missed ones.
    pub aborted: u64,
    /// How often its jobs lost a processor before they were done.
    pub preemptions: u64,
    /// From the job's release (nominal for a first operation) to its completion.
    pub response_ns: Option<Distribution>,
    /// From the intended release, which is the nominal one and the jitter drawn for it, to the actual one; for
    /// first operations.
    pub release_lateness_ns: Option<Distribution>,
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneReport {
    /// Name of its node.
    pub node: String,
    /// Level on its node, 0 highest.
    pub level: usize,
    /// What it is for.
    pub label: String,
    /// Order of its queue.
    pub discipline: String,
    /// Jobs started.
    pub jobs: u64,
    /// Processor time of its jobs.
    pub busy_ns: i64,
    /// Busy time as a share of the run; above 1 if several processors serve the lane.
    pub utilisation: f64,
    /// Most jobs in the lane at the start of one, itself included.
    pub max_queue: u16,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// Its processors.
    pub processors: usize,
    /// When it left the run before the end, as another node heard, in nanoseconds since the run's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ns: Option<i64>,
    /// Whether what follows, and what its lanes are said to have used, is known: where switches are not seen, jobs count
    /// as running from their start to their end.
    #[serde(default, skip_serializing_if = "Switches::are_all_recorded")]
    pub switches: Switches,
    /// Processor time of all its jobs.
    pub busy_ns: i64,
    /// Busy time as a share of what its processors could have given.
    pub utilisation: f64,
    /// How often a job got a processor: starts and resumptions. The kernel's switches between threads are others.
    pub job_switches: u64,
    /// How often a job lost a processor before it was done.
    pub preemptions: u64,
    /// What a hypervisor took of its processors, as the kernel counts it: in ticks, of 10 ms as a rule. While it has one, nothing goes on there.
    #[serde(default, skip_serializing_if = "is_none")]
    pub stolen_ns: u64,
}

impl Report {
    /// Whether no instance of a critical task was missed or skipped.
    pub fn critical_met(&self) -> bool {
        self.tasks.iter().all(|task| !task.critical || task.missed + task.skipped == 0)
    }

    /// Whether no instance of any task was missed or skipped.
    pub fn all_met(&self) -> bool {
        self.tasks.iter().all(|task| task.missed + task.skipped == 0)
    }

    /// Whether no time of a chain was beyond its limit.
    pub fn chains_met(&self) -> bool {
        self.chains.iter().all(|chain| chain.missed() == 0)
    }

    /// Promises of which nobody knows whether they were kept: node, and edge.
    pub fn unjudged(&self) -> impl Iterator<Item = (&str, &Kept)> {
        self.hierarchies.iter().flat_map(|hierarchy| {
            let node = hierarchy.node.as_str();
            hierarchy.edges.iter().filter(|edge| edge.is_unjudged()).map(move |edge| (node, edge))
        })
    }

    /// Whether no promise of the hierarchies was found broken, by what was granted or by what was received, and none was judged for
    /// less than the run because its hierarchy ended early.
    pub fn promises_kept(&self) -> bool {
        self.hierarchies.iter().all(|hierarchy| hierarchy.ended_early.is_none())
            && self.hierarchies.iter().flat_map(|hierarchy| &hierarchy.edges).all(|edge| !edge.is_broken())
    }
}
