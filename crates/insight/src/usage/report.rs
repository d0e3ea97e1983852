//! The report; times in nanoseconds.

use super::{Accounts, Node, Taker, Usage};
use crate::hierarchy::DECISIONS;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use talea_record::{CostKind, Event, Origin, RecordedEvents};

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
    /// The names of events that an account is without for, as `dispatch.cost`.
    pub not_recorded: Vec<String>,
}

/// The accounts of one node. Their sum, with `None` as 0 and without what was withheld, is `available_ns`, but for `error_ns`. `None` is an account whose
/// events were not recorded.
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
    /// Jobs, as far as it was seen which one ran, and what was added to the node's hierarchy.
    pub execution_ns: Option<i64>,
    /// The same by operation, as index and time, those without any left out. `None` is that of an operation whose jobs shared a
    /// processor unseen.
    pub execution: Vec<(usize, Option<i64>)>,
    /// Part of `execution_ns`, too: what was added to the node's hierarchy while the run lasted, of which there are no jobs. The greatest first.
    #[serde(default)]
    pub members: Vec<MemberUsage>,
    /// Several jobs that had begun on one processor, of which nobody saw which one ran: neither real-time priorities nor the
    /// kernel's records say it.
    #[serde(default)]
    pub shared_unseen_ns: Option<i64>,
    /// Dispatching, all of it that is recorded.
    pub overhead_ns: Option<i64>,
    /// Of that by kind.
    pub costs: Vec<CostUsage>,
    /// Of that what no COST record tells the kind of.
    pub not_broken_down_ns: i64,
    /// Interrupt handlers.
    pub interrupts_ns: Option<i64>,
    /// Threads of the run's processes that neither run its jobs nor release them: a collector, say, or the first one.
    #[serde(default)]
    pub companions_ns: Option<i64>,
    /// The same by thread, the greatest first.
    #[serde(default)]
    pub companions: Vec<ProgramUsage>,
    /// Threads of other programs, and of the kernel. Without the kernel's switches, those of them alone that took what was withheld.
    pub programs_ns: Option<i64>,
    /// The same by thread, the greatest first.
    pub programs: Vec<ProgramUsage>,
    /// Threads that are not observed: the kernel does not show them to the user who recorded.
    pub unobserved_ns: Option<i64>,
    /// What of all accounts was withheld: a thread of the run was granted the processor, and others had it or nobody
    /// ([`crate::receipts`]). It is none of the accounts, and not in their sum.
    pub withheld_ns: Option<i64>,
    /// The same by who took it, the greatest first.
    #[serde(default)]
    pub withheld: Vec<WithheldUsage>,
    /// Nobody, because the hierarchy left the processor to the kernel in slices although somebody wanted it.
    #[serde(default)]
    pub slices_ns: Option<i64>,
    /// Nobody that any record tells of. Without records of decisions, slices as well.
    pub idle_ns: Option<i64>,
    /// Records were lost, or nothing was heard yet.
    pub unknown_ns: i64,
    /// What only events would tell that were not recorded: the time of the accounts that have none.
    pub unrecorded_ns: i64,
    /// `available_ns` minus all of the above: processors that joined late, or times that contradict each other.
    pub error_ns: i64,
    /// Part of what COST records tell that overlapped with jobs of other lanes and so is not in `overhead_ns`.
    pub unplaced_ns: i64,
    /// Whether dispatching was recorded.
    pub dispatching: Dispatching,
    /// Whether the trace says which threads are those of the node's lanes. Without, the kernel's switches do not override
    /// the records of jobs, and preemption by others is not seen.
    #[serde(default)]
    pub has_threads: bool,
}

/// How much of dispatching was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dispatching {
    /// All of it.
    Throughout,
    /// Many jobs began with no record of dispatching: overhead is a lower bound, and idleness an upper one.
    InPart,
    /// Some of its events were not.
    NotRecorded,
}

/// One kind of dispatching; `None` where costs were not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostUsage {
    /// The kind.
    pub kind: CostKind,
    /// Time.
    pub ns: Option<i64>,
    /// Events it was for.
    pub count: Option<u64>,
}

/// A thread that does none of the run's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramUsage {
    /// Its number.
    pub thread: u32,
    /// Its name, if it is in the trace.
    pub name: Option<String>,
    /// Time.
    pub ns: i64,
}

/// What was added to a hierarchy while the run lasted: all threads of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberUsage {
    /// Its name in the hierarchy.
    pub name: String,
    /// Time.
    pub ns: i64,
}

/// What somebody took of what was withheld.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithheldUsage {
    /// Who.
    pub by: WithheldBy,
    /// Its name, if it is a thread that has one in the trace.
    pub name: Option<String>,
    /// Time.
    pub ns: i64,
}

/// Who took what was withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WithheldBy {
    /// Nobody: the processor was idle.
    Nobody,
    /// The thread of this number: of another program, of the kernel, or one of the run's that it was not granted to.
    Thread(u32),
    /// In virtual time, what mechanisms cost.
    Overhead,
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
    /// Completed jobs; `None`, and no times, where events of jobs that this takes were not recorded.
    pub jobs: Option<u64>,
    /// Processor time of their own. `None`, as of the overhead, also where any of them shared a processor unseen.
    pub execution: Option<Spread>,
    /// Dispatching for them: their own switches, queueing, interrupts and messages, and what their lane did right before
    /// them. `None` where it was not recorded.
    pub overhead: Option<Spread>,
    /// From nominal release to completion.
    pub response: Option<Spread>,
}

/// What is known of one node.
#[derive(Clone, Copy, Debug)]
struct Known {
    jobs: bool,
    costs: bool,
    /// What going from one thread to another costs.
    switching: bool,
    idle: bool,
    overhead: bool,
    switches: bool,
    /// Threads of other programs, or those of them that took what was withheld.
    programs: bool,
    /// What was granted and not given.
    withheld: bool,
    /// What was left to the kernel in slices.
    slices: bool,
    interrupts: bool,
    dispatching: Dispatching,
    has_threads: bool,
}

/// Which events say who has a processor.
const OF_JOBS: [Event; 6] =
    [Event::START, Event::PREEMPT, Event::WAIT, Event::RESUME, Event::COMPLETE, Event::ABORT];
/// Which say what the run's threads do besides.
const OF_LANES: [Event; 3] = [Event::COST, Event::WAKE, Event::SLEEP];
/// Which say what others do.
const OF_KERNEL: [Event; 2] = [Event::SWITCH, Event::IRQ_ENTER];

impl Known {
    fn of(recorded: &RecordedEvents, usage: &Usage, index: usize) -> Self {
        // On one processor, whoever begins displaces whoever runs.
        let is_alone = usage.metadata.nodes[index].cpus.len() == 1;
        let needed = [Event::START, Event::WAIT, Event::COMPLETE, Event::ABORT];
        let is_seen = usage.metadata.nodes[index].switches.are_recorded();
        let jobs = is_seen && recorded.has_all(if is_alone { &needed } else { &OF_JOBS });
        let (costs, switches) = (recorded.has(Event::COST), recorded.has(Event::SWITCH));
        let has_threads = usage.occupancy.identifies(index);
        let by_kernel = switches && has_threads;
        let by_lanes = recorded.has_all(&OF_LANES);
        let told = |event| usage.contents.count(event) > 0;
        let is_audited = told(Event::WITHHELD) && !told(Event::UNAUDITED);
        let is_decided =
            usage.hierarchies.decide_on(index) && usage.metadata.nodes[index].decided_by.is_ours();
        Known {
            jobs,
            costs,
            switching: match usage.metadata.origin {
                Origin::Simulation { .. } => costs,
                Origin::Threads { .. } => by_kernel,
            },
            idle: by_kernel || jobs && by_lanes,
            overhead: jobs && (costs || by_kernel || recorded.has_all(&[Event::WAKE, Event::SLEEP])),
            switches,
            programs: switches || !usage.nodes[index].accounts.programs.is_empty(),
            withheld: match usage.metadata.origin {
                Origin::Simulation { .. } => is_decided && costs,
                Origin::Threads { .. } if is_decided => {
                    let by_decisions = recorded.has_all(&DECISIONS) && recorded.has(Event::MEMBER);
                    is_audited || switches && by_decisions
                }
                Origin::Threads { .. } => by_kernel || is_audited,
            },
            slices: !is_decided || recorded.has_all(&DECISIONS) && recorded.has(Event::SUPPLY),
            interrupts: recorded.has(Event::IRQ_ENTER),
            dispatching: match usage.nodes[index].undispatched.is_too_long() {
                _ if !by_lanes => Dispatching::NotRecorded,
                true if usage.contents.count(Event::COST) > 0 => Dispatching::InPart,
                _ => Dispatching::Throughout,
            },
            has_threads,
        }
    }
}

pub(super) fn build(usage: Usage) -> UsageReport {
    let recorded = RecordedEvents::of(&usage.metadata, &usage.contents);
    let known: Vec<Known> = (0..usage.nodes.len()).map(|index| Known::of(&recorded, &usage, index)).collect();
    let Usage { metadata, occupancy, nodes, jobs, contents, .. } = usage;
    let operations = jobs
        .finish()
        .into_iter()
        .zip(&metadata.operations)
        .map(|(sums, entry)| {
            let node = metadata.lanes[entry.lane].node;
            let Known { jobs, costs, .. } = known[node];
            let is_seen = jobs && sums.unseen == 0;
            OperationUsage {
                name: entry.name.clone(),
                node,
                jobs: jobs.then_some(sums.jobs),
                execution: is_seen.then_some(sums.execution),
                overhead: (is_seen && costs).then_some(sums.overhead),
                response: jobs.then_some(sums.response),
            }
        })
        .collect();
    let name = |thread: u32| occupancy.thread_name(thread).map(str::to_owned);
    let node_usage = |(index, node): (usize, &Node)| {
        let processors = metadata.nodes[index].cpus.len().max(node.timelines.len());
        let members = by_member(&node.accounts.members, |edge| occupancy.member_name(edge).to_owned());
        of_node(&metadata.nodes[index].name, processors, (node, members), known[index], name)
    };
    let is_simulated = matches!(metadata.origin, Origin::Simulation { .. });
    let of_kernel = if is_simulated { &[][..] } else { &OF_KERNEL };
    let needed: Vec<Event> = [&OF_JOBS[..], &OF_LANES, of_kernel].concat();
    UsageReport {
        nodes: nodes.iter().enumerate().map(node_usage).collect(),
        operations,
        has_costs: contents.count(Event::COST) > 0,
        has_wakes: contents.count(Event::WAKE) + contents.count(Event::SLEEP) > 0,
        has_kernel: contents.count(Event::SWITCH) > 0,
        not_recorded: recorded.missing(&needed),
    }
}

/// What the operations executed; nothing of those that shared a processor unseen.
fn by_operation(accounts: &Accounts) -> Vec<(usize, Option<i64>)> {
    let is_shared = |operation: &usize| accounts.sharing.contains(operation);
    let all = accounts.execution.iter().enumerate();
    all.filter(|(operation, ns)| **ns != 0 || is_shared(operation))
        .map(|(operation, ns)| (operation, (!is_shared(&operation)).then_some(*ns)))
        .collect()
}

/// What those had who were added, those that had most first. One that was removed and added again is the same.
fn by_member(accounts: &HashMap<usize, i64>, name_of: impl Fn(usize) -> String) -> Vec<MemberUsage> {
    let mut by_name: BTreeMap<String, i64> = BTreeMap::new();
    for (edge, ns) in accounts {
        let of_name = by_name.entry(name_of(*edge)).or_default();
        *of_name = of_name.saturating_add(*ns);
    }
    let mut usage: Vec<MemberUsage> =
        by_name.into_iter().map(|(name, ns)| MemberUsage { name, ns }).collect();
    usage.sort_by_key(|member| std::cmp::Reverse(member.ns));
    usage
}

/// What threads had, those that had most first.
fn by_thread(accounts: &HashMap<u32, i64>, name_of: impl Fn(u32) -> Option<String>) -> Vec<ProgramUsage> {
    let usage = accounts.iter().map(|(thread, ns)| {
        let name = name_of(*thread);
        ProgramUsage { thread: *thread, name, ns: *ns }
    });
    let mut usage: Vec<ProgramUsage> = usage.collect();
    usage.sort_by_key(|program| (std::cmp::Reverse(program.ns), program.thread));
    usage
}

/// What was withheld, those that took most first.
fn by_taker(accounts: &HashMap<Taker, i64>, name_of: impl Fn(u32) -> Option<String>) -> Vec<WithheldUsage> {
    let usage = accounts.iter().filter(|(_, ns)| **ns != 0).map(|(taker, ns)| {
        let (by, name) = match *taker {
            Taker::Thread(0) => (WithheldBy::Nobody, None),
            Taker::Thread(thread) => (WithheldBy::Thread(thread), name_of(thread)),
            Taker::Overhead => (WithheldBy::Overhead, None),
        };
        WithheldUsage { by, name, ns: *ns }
    });
    let mut usage: Vec<WithheldUsage> = usage.collect();
    usage.sort_by_key(|taken| (std::cmp::Reverse(taken.ns), taken.by));
    usage
}

fn of_node(
    name: &str,
    processors: usize,
    (node, members): (&Node, Vec<MemberUsage>),
    known: Known,
    name_of: impl Fn(u32) -> Option<String>,
) -> NodeUsage {
    let accounts: &Accounts = &node.accounts;
    let nanos = |at: Option<talea_time::Instant>| at.map_or(0, talea_time::Instant::as_nanos);
    // A node that never started has no time to account for.
    let duration_ns = node.start.map_or(0, |_| nanos(node.end).saturating_sub(nanos(node.start)));
    let available_ns = duration_ns.saturating_mul(processors as i64);
    let (companions, programs) =
        (by_thread(&accounts.companions, &name_of), by_thread(&accounts.programs, &name_of));
    let cost = |kind: &CostKind| {
        let place = kind.place();
        let (ns, count) = (accounts.costs[place], accounts.counts[place]);
        let is_known = if *kind == CostKind::Switch { known.switching } else { known.costs };
        CostUsage { kind: *kind, ns: is_known.then_some(ns), count: is_known.then_some(count) }
    };
    // Damaged records may tell of centuries.
    let sum = |parts: &mut dyn Iterator<Item = i64>| parts.fold(0, i64::saturating_add);
    let of_members = members.iter().map(|member| member.ns);
    let execution_ns = sum(&mut accounts.execution.iter().copied().chain(of_members));
    let overhead_ns = sum(&mut accounts.costs.iter().copied().chain([accounts.dispatch]));
    let programs_ns = sum(&mut programs.iter().map(|program| program.ns));
    let companions_ns = sum(&mut companions.iter().map(|companion| companion.ns));
    let nobodys = [accounts.shared, accounts.slices, accounts.idle, accounts.unknown];
    let rest = [accounts.interrupts, companions_ns, programs_ns, accounts.unobserved];
    let others = [overhead_ns].into_iter().chain(rest).chain(nobodys);
    let sum_ns = sum(&mut others.chain([execution_ns]));
    let untold = |is_known: bool, ns: i64| if is_known { 0 } else { ns };
    let unrecorded = [
        untold(known.jobs, execution_ns),
        untold(known.jobs, accounts.shared),
        untold(known.overhead, overhead_ns),
        untold(known.idle, accounts.idle),
        untold(known.switches, companions_ns),
        untold(known.programs, programs_ns),
        untold(known.switches, accounts.unobserved),
        untold(known.slices, accounts.slices),
        untold(known.interrupts, accounts.interrupts),
    ];
    NodeUsage {
        name: name.to_owned(),
        processors,
        duration_ns,
        available_ns,
        execution_ns: known.jobs.then_some(execution_ns),
        execution: if known.jobs { by_operation(accounts) } else { Vec::new() },
        members: if known.jobs { members } else { Vec::new() },
        shared_unseen_ns: known.jobs.then_some(accounts.shared),
        overhead_ns: known.overhead.then_some(overhead_ns),
        costs: CostKind::ALL.iter().map(cost).collect(),
        not_broken_down_ns: if known.overhead { accounts.dispatch } else { 0 },
        interrupts_ns: known.interrupts.then_some(accounts.interrupts),
        companions_ns: known.switches.then_some(companions_ns),
        companions,
        programs_ns: known.programs.then_some(programs_ns),
        programs,
        unobserved_ns: known.switches.then_some(accounts.unobserved),
        withheld_ns: known.withheld.then_some(sum(&mut accounts.withheld.values().copied())),
        withheld: if known.withheld { by_taker(&accounts.withheld, &name_of) } else { Vec::new() },
        slices_ns: known.slices.then_some(accounts.slices),
        idle_ns: known.idle.then_some(accounts.idle),
        unknown_ns: accounts.unknown,
        unrecorded_ns: sum(&mut unrecorded.into_iter()),
        error_ns: available_ns.saturating_sub(sum_ns),
        unplaced_ns: accounts.unplaced,
        dispatching: known.dispatching,
        has_threads: known.has_threads,
    }
}
