//! The report; times in nanoseconds.

use super::{Accounts, Node, Usage};
use crate::CostKind;
use serde::{Deserialize, Serialize};

/// What the time of a run went into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReport {
    /// By node.
    pub nodes: Vec<NodeUsage>,
    /// By operation; only jobs that completed.
    pub operations: Vec<OperationUsage>,
    /// Whether the trace tells of dispatching costs.
    pub has_costs: bool,
    /// Whether it tells when lanes' threads are at work.
    pub has_wakes: bool,
    /// Whether it has the kernel's context switches.
    pub has_kernel: bool,
}

/// The accounts of one node. Their sum is `available_ns`, but for `error_ns`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeUsage {
    /// Its name.
    pub name: String,
    /// Its processors.
    pub processors: usize,
    /// From its start to its end.
    pub duration_ns: i64,
    /// Processors times duration.
    pub available_ns: i64,
    /// Jobs.
    pub execution_ns: i64,
    /// The same by operation, as index and time, those without any left out.
    pub execution: Vec<(usize, i64)>,
    /// Dispatching, all of it.
    pub overhead_ns: i64,
    /// Of that by kind.
    pub costs: Vec<CostUsage>,
    /// Of that what no COST record tells the kind of.
    pub not_broken_down_ns: i64,
    /// Interrupt handlers.
    pub interrupts_ns: i64,
    /// Threads that are none of the run's.
    pub programs_ns: i64,
    /// The same by thread, the greatest first.
    pub programs: Vec<ProgramUsage>,
    /// Threads that are not observed: the kernel does not show them to the user who recorded.
    #[serde(default)]
    pub unobserved_ns: i64,
    /// Nobody, although a thread of the run could go on: the kernel held it off, as real-time throttling does.
    #[serde(default)]
    pub withheld_ns: i64,
    /// Nobody that any record tells of.
    pub idle_ns: i64,
    /// Records were lost, or nothing was heard yet.
    pub unknown_ns: i64,
    /// `available_ns` minus all of the above: processors that joined late, or times that contradict each other.
    pub error_ns: i64,
    /// Part of what COST records tell that overlapped with jobs of other lanes and so is not in `overhead_ns`.
    pub unplaced_ns: i64,
    /// Part of the execution that may be another job's, because preemption was not recorded.
    pub ambiguous_ns: i64,
    /// Whether the trace says which threads are those of the node's lanes. Without, the kernel's switches do not override
    /// the records of jobs, and preemption by others is not seen.
    #[serde(default)]
    pub has_threads: bool,
}

/// One kind of dispatching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostUsage {
    /// The kind.
    pub kind: CostKind,
    /// Time.
    pub ns: i64,
    /// Events it was for.
    pub count: u64,
}

/// A thread that is none of the run's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramUsage {
    /// Its number.
    pub thread: u32,
    /// Its name, if it is in the trace.
    pub name: Option<String>,
    /// Time.
    pub ns: i64,
}

/// Least, mean and greatest of something over jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The least.
    pub min_ns: i64,
    /// The mean, rounded down.
    pub mean_ns: i64,
    /// The greatest.
    pub max_ns: i64,
    /// All of it.
    pub sum_ns: i64,
}

impl Spread {
    /// Adds the value of the job that makes `jobs` of them.
    pub(super) fn add(&mut self, ns: i64, jobs: u64) {
        self.min_ns = if jobs == 1 { ns } else { self.min_ns.min(ns) };
        self.max_ns = if jobs == 1 { ns } else { self.max_ns.max(ns) };
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.mean_ns = self.sum_ns / i64::try_from(jobs).unwrap_or(i64::MAX);
    }
}

/// What the completed jobs of one operation took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationUsage {
    /// The operation's name.
    pub name: String,
    /// Index of its node.
    pub node: usize,
    /// Completed jobs.
    pub jobs: u64,
    /// Processor time of their own.
    pub execution: Spread,
    /// Dispatching for them: their own switches, queueing, interrupts and messages, and what their lane did right before
    /// them.
    pub overhead: Spread,
    /// From nominal release to completion.
    pub response: Spread,
}

pub(super) fn build(usage: Usage) -> UsageReport {
    let Usage { metadata, occupancy, nodes, jobs, told, .. } = usage;
    let operations = jobs
        .finish()
        .into_iter()
        .zip(&metadata.operations)
        .map(|(sums, entry)| OperationUsage {
            name: entry.name.clone(),
            node: metadata.lanes[entry.lane].node,
            jobs: sums.jobs,
            execution: sums.execution,
            overhead: sums.overhead,
            response: sums.response,
        })
        .collect();
    let name = |thread: u32| occupancy.thread_name(thread).map(str::to_owned);
    let node_usage = |(index, node): (usize, &Node)| {
        let processors = metadata.nodes[index].cpus.len().max(node.strips.len());
        let has_threads = occupancy.identifies(index);
        NodeUsage { has_threads, ..of_node(&metadata.nodes[index].name, processors, node, name) }
    };
    UsageReport {
        nodes: nodes.iter().enumerate().map(node_usage).collect(),
        operations,
        has_costs: told.costs,
        has_wakes: told.wakes,
        has_kernel: told.kernel,
    }
}

fn of_node(name: &str, processors: usize, node: &Node, name_of: impl Fn(u32) -> Option<String>) -> NodeUsage {
    let accounts: &Accounts = &node.accounts;
    let nanos = |at: Option<talea_time::Instant>| at.map_or(0, talea_time::Instant::as_nanos);
    // A node that never started has no time to account for.
    let duration_ns = node.start.map_or(0, |_| nanos(node.end).saturating_sub(nanos(node.start)));
    let available_ns = duration_ns.saturating_mul(processors as i64);
    let execution: Vec<(usize, i64)> =
        accounts.execution.iter().copied().enumerate().filter(|(_, ns)| *ns != 0).collect();
    let mut programs: Vec<ProgramUsage> = accounts
        .programs
        .iter()
        .map(|(thread, ns)| ProgramUsage { thread: *thread, name: name_of(*thread), ns: *ns })
        .collect();
    programs.sort_by_key(|program| (std::cmp::Reverse(program.ns), program.thread));
    let cost = |kind: &CostKind| CostUsage {
        kind: *kind,
        ns: accounts.costs[kind.place()],
        count: accounts.counts[kind.place()],
    };
    // Damaged records may tell of centuries.
    let sum = |parts: &mut dyn Iterator<Item = i64>| parts.fold(0, i64::saturating_add);
    let execution_ns = sum(&mut execution.iter().map(|(_, ns)| *ns));
    let overhead_ns = sum(&mut accounts.costs.iter().copied().chain([accounts.dispatch]));
    let programs_ns = sum(&mut programs.iter().map(|program| program.ns));
    let nobodys = [accounts.withheld, accounts.idle, accounts.unknown];
    let rest = [accounts.interrupts, programs_ns, accounts.unobserved];
    let others = [overhead_ns].into_iter().chain(rest).chain(nobodys);
    let sum_ns = sum(&mut others.chain([execution_ns]));
    NodeUsage {
        name: name.to_owned(),
        processors,
        duration_ns,
        available_ns,
        execution_ns,
        execution,
        overhead_ns,
        costs: CostKind::ALL.iter().map(cost).collect(),
        not_broken_down_ns: accounts.dispatch,
        interrupts_ns: accounts.interrupts,
        programs_ns,
        programs,
        unobserved_ns: accounts.unobserved,
        withheld_ns: accounts.withheld,
        idle_ns: accounts.idle,
        unknown_ns: accounts.unknown,
        error_ns: available_ns.saturating_sub(sum_ns),
        unplaced_ns: accounts.unplaced,
        ambiguous_ns: accounts.ambiguous,
        has_threads: false,
    }
}
