//! What a run leaves.

mod hierarchy;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use talea_insight::Report;
use talea_linux::thread::ThreadReport;
use talea_linux::timer::SpinCost;
use talea_model::System;
use talea_operation::LostValues;
use talea_policy::release::guard;
use talea_time::Duration;

pub use hierarchy::{HierarchyOutcome, MemberOutcome, ParkingOutcome, ScheduledBy};

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// It lasted as long as it was to last.
    Completed,
    /// It was stopped before, or had no planned end.
    Interrupted,
    /// All its hierarchies ended before for causes of their own, which they tell.
    Failed,
}

/// One thread: what was asked for and what the kernel says it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadAttributes {
    /// Its name.
    pub name: String,
    /// The kernel's number for it.
    pub tid: i32,
    /// The policy asked for, as Linux writes it.
    pub wanted_policy: String,
    /// The policy read back.
    pub actual_policy: String,
    /// The processors asked for.
    pub wanted_cpus: Vec<u16>,
    /// The processors read back.
    pub actual_cpus: Vec<u16>,
}

impl From<&ThreadReport> for ThreadAttributes {
    fn from(report: &ThreadReport) -> Self {
        ThreadAttributes {
            name: report.name.clone(),
            tid: report.tid.as_raw_nonzero().get(),
            wanted_policy: report.wanted_policy.to_string(),
            actual_policy: report.actual_policy.to_string(),
            wanted_cpus: report.wanted_cpus.clone(),
            actual_cpus: report.actual_cpus.clone(),
        }
    }
}

/// What the spin tail of a node's release thread has cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpin {
    /// The node.
    pub node: String,
    /// Time spun.
    pub spun: Duration,
    /// The time over which it was.
    pub over: Duration,
    /// How many times the thread spun.
    pub times: u64,
}

impl NodeSpin {
    pub(crate) fn new(node: String, cost: SpinCost) -> Self {
        NodeSpin { node, spun: cost.spun, over: cost.over, times: cost.times }
    }

    /// The share of one processor, 0 to 1.
    pub fn share(&self) -> f64 {
        SpinCost { spun: self.spun, over: self.over, times: self.times }.share()
    }
}

/// A panic in a user's operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationPanic {
    /// The operation's name.
    pub operation: String,
    /// Number of the instance.
    pub instance: u64,
    /// What the panic said.
    pub message: String,
}

/// A process of the run that ended before the run did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostNode {
    /// Its node.
    pub node: String,
    /// How it ended: an exit status, a signal, or why it was never executed.
    pub how: String,
    /// When that was noticed, in nanoseconds since the run's start.
    #[serde(default)]
    pub after_ns: i64,
}

/// A signal that came later than the response bounds had promised by which its subtask is released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundOverrun {
    /// The subtask that it was for.
    pub operation: String,
    /// The instance of that.
    pub instance: u64,
    /// By how much it was late, in nanoseconds.
    pub late_ns: i64,
}

/// Arrivals that came earlier than separation and burst declare of their task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyArrivals {
    /// The task.
    pub task: String,
    /// How many.
    pub arrivals: u64,
    /// What became of them, as the description says it: `defer`, `drop` or `count`.
    pub excess: String,
}

impl EarlyArrivals {
    /// Those that guards have counted in a run or simulation of `system`.
    pub fn of(system: &System, early: guard::EarlyArrivals) -> Self {
        let guard::EarlyArrivals { operation, arrivals, excess } = early;
        EarlyArrivals { task: system.task_of(operation).name.clone(), arrivals, excess: excess.to_string() }
    }
}

/// Events that are no part of the schedule and that a good run has none of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mishaps {
    /// Jobs skipped, or as successors aborted, because too many instances were in flight.
    pub overflows: u64,
    /// Signals to successors that had been released without them, as they wait for some of their predecessors only.
    #[serde(default)]
    pub late_signals: u64,
    /// Signals that came later than the response bounds had promised by which successors are released.
    #[serde(default)]
    pub bound_overruns: u64,
    /// The worst of these.
    #[serde(default)]
    pub worst_overrun: Option<BoundOverrun>,
    /// Messages to other processes that were lost because their pipe was full or closed.
    pub unsent: u64,
    /// Messages that were not sent because the process of their node had ended.
    #[serde(default)]
    pub to_left: u64,
    /// Messages that imposed links lost, as they may; not counting [`Mishaps::unheld`].
    #[serde(default)]
    pub lost_on_links: u64,
    /// Messages of imposed links that were lost because their receiver had no room to hold them until they were due.
    #[serde(default)]
    pub unheld: u64,
    /// Values that did not fit into a message to another process, and were not sent with it.
    #[serde(default)]
    pub values_unsent: u64,
    /// Messages from other processes none of whose values was published, for what they carry could not be decoded.
    #[serde(default)]
    pub values_unread: u64,
    /// Values, and events of jobs, that were to be kept and are not: they came faster than they could be written, or were too long.
    #[serde(default)]
    pub values_unkept: u64,
    /// Values that were published after the end of their period, as their job was late.
    #[serde(default)]
    pub late_values: u64,
    /// Calls of triggers that found no room for another instance.
    #[serde(default)]
    pub triggers_refused: u64,
    /// Arrivals that came earlier than is declared of their tasks.
    #[serde(default)]
    pub early_arrivals: Vec<EarlyArrivals>,
    /// Tasks whose descriptors have ended, as the other side closed them: nothing has released these tasks since.
    #[serde(default)]
    pub ended_descriptors: Vec<String>,
    /// Values that an input had no room for, by its name.
    #[serde(default)]
    pub lost_values: Vec<LostValues>,
    /// Messages from other processes that took longer than their link promises.
    #[serde(default)]
    pub slow_messages: u64,
    /// By how much the slowest of them, in nanoseconds.
    #[serde(default)]
    pub slowest_excess_ns: i64,
    /// How long behind the start of the run its threads were let begin, in nanoseconds, on the node where that took longest; 0 if they were in time.
    #[serde(default)]
    pub late_begin_ns: i64,
    /// Times an elected job of a preemptive lane waited because all of the lane's threads were taken.
    pub slot_shortages: u64,
    /// Panics of operations; each also aborted its job.
    pub panics: Vec<OperationPanic>,
    /// Processes that ended early; the report has what they had recorded.
    pub lost_nodes: Vec<LostNode>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Every number, computed from the run's records.
    pub report: Report,
    /// What came of the nodes' hierarchies of schedulers.
    pub hierarchies: Vec<HierarchyOutcome>,
    /// How it ended.
    pub stopped: Stopped,
    /// Whether every lane had a real-time priority.
    pub realtime: bool,
    /// What was asked for and not granted, each with its remedy; only in [`crate::RtMode::Warn`].
    pub missing: Vec<String>,
    /// The threads, with their attributes as the kernel has them.
    pub threads: Vec<ThreadAttributes>,
    /// What spinning before releases cost, by node.
    pub spin: Vec<NodeSpin>,
    /// What went wrong without ending the run.
    pub mishaps: Mishaps,
    /// Records that came too late to be put in order as they came; their job's numbers may be off here. The log has them in order.
    pub late_records: u64,
    /// The trace, if it was to be kept.
    pub log: Option<PathBuf>,
    /// Why the trace is incomplete, if it is.
    pub log_failure: Option<String>,
}
