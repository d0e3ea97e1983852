//! Verdicts as data, for the command and for machines.

use super::chains::{ChainCheck, chain_checks};
use super::merging;
use super::names::{Names, causes, more_than_needed};
use super::part::{PartCheck, worst_case_load};
use super::protocols;
use super::triggers;
use super::verdict::Verdict;
use super::why;
use super::witness::Miss;
use serde::Serialize;
use std::collections::HashMap;
use talea_analysis::critical_set::critical_set;
use talea_analysis::system::{ChainBounds, Exactness, Method, Obstacle, OperationBound, SystemBounds};
use talea_analysis::{Effort, Task};
use talea_model::{Synchronisation, System, ThreadWork};
use talea_policy::strategy::{Lane, Plan};
use talea_time::Duration;

/// The verdicts about the tasks of a system.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// The system's name.
    pub system: String,
    /// Its strategy.
    pub strategy: String,
    /// Verdict about all critical tasks and chains together: holds, or the worst of theirs.
    pub critical: Verdict,
    /// The same about all tasks, chains, and threads that run in bursts.
    pub all: Verdict,
    /// By task number.
    pub tasks: Vec<TaskCheck>,
    /// The cause-effect chains, in file order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainCheck>,
    /// By node number.
    pub nodes: Vec<NodeCheck>,
    /// The threads that run in bursts, in file order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadCheck>,
}

/// A thread of a hierarchy that runs in bursts.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadCheck {
    /// Its name.
    pub name: String,
    /// The name of its node.
    pub node: String,
    /// The longest burst.
    pub burst_ns: i64,
    /// How often one comes; it is to be done when the next one does.
    pub period_ns: i64,
    /// Whether every burst is.
    pub verdict: Verdict,
    /// Longest time from a burst's beginning to its end, if it has a bound.
    pub bound_ns: Option<i64>,
    /// Why it has none.
    pub why: Option<String>,
}

/// One task.
#[derive(Clone, Debug, Serialize)]
pub struct TaskCheck {
    /// Its name.
    pub name: String,
    /// 0 to 4.
    pub criticality: u8,
    /// Whether a miss is a failure.
    pub critical: bool,
    /// Its period.
    pub period_ns: i64,
    /// Its relative deadline.
    pub deadline_ns: i64,
    /// When its subtasks with predecessors are released, if it has any.
    pub sync: Option<Synchronisation>,
    /// What is known.
    pub verdict: Verdict,
    /// Longest time from arrival to completion, if it has a bound.
    pub bound_ns: Option<i64>,
    /// Whether a response takes as long as the bound for some phases of the tasks.
    pub exact: bool,
    /// Deadline minus bound; negative if the bound lies beyond the deadline.
    pub slack_ns: Option<i64>,
    /// The subtask, lane or task that contributes most.
    pub dominated_by: Option<String>,
    /// Why it is not sure to hold, in a sentence.
    pub why: Option<String>,
    /// What is to be known about its protocol, in sentences.
    pub remarks: Vec<String>,
    /// A miss, if one was found.
    pub miss: Option<Miss>,
    /// Its subtasks in file order.
    pub subtasks: Vec<SubtaskCheck>,
}

/// One subtask.
#[derive(Clone, Debug, Serialize)]
pub struct SubtaskCheck {
    /// Name of the operation.
    pub name: String,
    /// Name of its node.
    pub node: String,
    /// Label of its lane.
    pub lane: String,
    /// Level of its lane, 0 highest.
    pub level: usize,
    /// Longest time from the task's arrival to its completion.
    pub bound_ns: Option<i64>,
    /// Longest time from its own release to its completion.
    pub from_release_ns: Option<i64>,
    /// The response bound after which its protocol releases its successors.
    pub planned_ns: Option<i64>,
    /// How the bound was found, or why there is none.
    pub method: String,
    /// What the window that gives the bound is filled with, the largest parts first. Empty in a system of more than
    /// [`ITEMISED`](super::ITEMISED) operations.
    pub parts: Vec<PartCheck>,
    /// From the window's beginning to the task's arrival; negative for late releases.
    pub arrival_ns: Option<i64>,
}

/// One node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeCheck {
    /// Its name.
    pub name: String,
    /// How many processors it has.
    pub processors: usize,
    /// Worst-case utilisation of all its operations, 1 for one whole processor. Costs are not in it.
    pub utilisation: f64,
    /// Its lanes, highest first.
    pub lanes: Vec<LaneCheck>,
    /// Where a single processor is overloaded: the longest prefix of its tasks by period that fits (Stewart and
    /// Khosla 1991). Giving these the highest criticality protects them.
    pub critical_set: Option<Vec<String>>,
}

/// One lane.
#[derive(Clone, Debug, Serialize)]
pub struct LaneCheck {
    /// 0 is the highest.
    pub level: usize,
    /// What it is for.
    pub label: String,
    /// The order of its queue.
    pub discipline: String,
    /// Worst-case utilisation of its operations.
    pub utilisation: f64,
    /// That of the lane and those above it.
    pub with_those_above: f64,
    /// Names of its operations.
    pub operations: Vec<String>,
}

pub(super) fn report(
    system: &System,
    plans: &[Plan],
    bounds: &SystemBounds,
    (misses, chains): (HashMap<usize, Miss>, &[ChainBounds]),
) -> CheckReport {
    let names = Names { system, plans, with_heirs: bounds.with_heirs() };
    let tasks: Vec<TaskCheck> = (0..system.tasks.len())
        .map(|task| task_check(&names, bounds, task, misses.get(&task).copied()))
        .collect();
    let chains = chain_checks(&names, bounds, chains);
    let threads: Vec<ThreadCheck> =
        (0..system.threads.len()).filter_map(|thread| thread_check(system, bounds, thread)).collect();
    let of_threads = threads.iter().map(|thread| thread.verdict);
    CheckReport {
        system: system.name.clone(),
        strategy: system.strategy.to_string(),
        critical: together((&tasks, &chains), Counted::Critical),
        all: Verdict::together(of_threads.chain([together((&tasks, &chains), Counted::All)])),
        chains,
        nodes: plans.iter().enumerate().map(|(node, plan)| node_check(system, node, plan)).collect(),
        threads,
        tasks,
    }
}

/// What is known of a thread; none if it does not run in bursts.
fn thread_check(system: &System, bounds: &SystemBounds, index: usize) -> Option<ThreadCheck> {
    let thread = &system.threads[index];
    let ThreadWork::Bursts { burst, period } = &thread.work else { return None };
    let bound = bounds.tasks[system.tasks.len() + index].response;
    let why = match bound {
        Ok(_) => None,
        Err(Obstacle::Overload) => {
            let share = bounds.supply(bounds.tasks[system.tasks.len() + index].last);
            let needed = burst.max().as_nanos() as f64 / period.as_nanos() as f64;
            let received = share.map_or(1.0, |supply| supply.share());
            let more = if needed <= received { more_than_needed(system) } else { "" };
            Some(format!(
                "it needs {:.1} % of a processor and receives {:.1} %{more}",
                needed * 100.0,
                received * 100.0
            ))
        }
        Err(obstacle) => Some(obstacle.to_string()),
    };
    Some(ThreadCheck {
        name: thread.name.clone(),
        node: system.nodes[thread.node].name.clone(),
        burst_ns: burst.max().as_nanos(),
        period_ns: period.as_nanos(),
        verdict: if bound.is_ok_and(|bound| bound <= *period) { Verdict::Holds } else { Verdict::Open },
        bound_ns: bound.ok().map(Duration::as_nanos),
        why,
    })
}

/// Which tasks a verdict is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Critical,
    All,
}

fn together((tasks, chains): (&[TaskCheck], &[ChainCheck]), counted: Counted) -> Verdict {
    let tasks = tasks.iter().map(|task| (task.critical, task.verdict));
    let all = tasks.chain(chains.iter().map(|chain| (chain.critical, chain.verdict)));
    Verdict::together(
        all.filter(|(critical, _)| *critical || counted == Counted::All).map(|(_, verdict)| verdict),
    )
}

fn task_check(names: &Names<'_>, bounds: &SystemBounds, task: usize, miss: Option<Miss>) -> TaskCheck {
    let described = &names.system.tasks[task];
    let bound = &bounds.tasks[task];
    let slack = bound.response.ok().map(|response| described.deadline - response);
    let verdict = match miss {
        _ if bounds.holds(names.system, task) => Verdict::Holds,
        Some(_) => Verdict::Misses,
        None => Verdict::Open,
    };
    let last = &bounds.operations[bound.last.index()];
    let exact = matches!(&last.response, Ok(response) if response.exactness == Exactness::Exact);
    let operations = names.system.operations_of(task);
    TaskCheck {
        name: described.name.clone(),
        criticality: described.criticality.level(),
        critical: described.criticality.is_critical(),
        period_ns: described.period.as_nanos(),
        deadline_ns: described.deadline.as_nanos(),
        sync: operations.iter().any(|operation| !operation.predecessors.is_empty()).then_some(described.sync),
        verdict,
        bound_ns: bound.response.ok().map(Duration::as_nanos),
        exact,
        slack_ns: slack.map(Duration::as_nanos),
        dominated_by: if names.itemised() { why::dominating(names, bounds, task) } else { None },
        why: (verdict != Verdict::Holds).then(|| why::sentence(names, bounds, task, miss)),
        remarks: [
            protocols::remarks(names.system, bounds, task),
            triggers::remarks(names.system, task),
            merging::remarks(names.system, bounds, task),
        ]
        .concat(),
        miss,
        subtasks: operations
            .iter()
            .map(|operation| subtask_check(names, bounds, &bounds.operations[operation.id.index()]))
            .collect(),
    }
}

fn subtask_check(names: &Names<'_>, bounds: &SystemBounds, bound: &OperationBound) -> SubtaskCheck {
    let lane = &names.plans[bound.node].lanes[bound.level];
    let response = bound.response.as_ref();
    SubtaskCheck {
        name: names.operation(bound.operation).into(),
        node: names.system.nodes[bound.node].name.clone(),
        lane: lane.label.clone(),
        level: bound.level,
        bound_ns: response.ok().map(|response| response.bound.as_nanos()),
        from_release_ns: bounds.from_release(bound.operation).ok().map(Duration::as_nanos),
        planned_ns: names.system.subtask(bound.operation).bound.map(Duration::as_nanos),
        method: match response {
            Ok(response) => method(response.method).into(),
            Err(obstacle) => obstacle.to_string(),
        },
        parts: if names.itemised() {
            names.parts(bound, causes(bounds, bound.operation))
        } else {
            Vec::new()
        },
        arrival_ns: response.ok().map(|response| response.arrival.as_nanos()),
    }
}

fn method(method: Method) -> &'static str {
    match method {
        Method::ResponseTime => "response-time analysis",
        Method::Queue => "FIFO queue",
        Method::Urgency => "queue by key",
        Method::Demand => "processor demand",
        Method::BusyPeriod => "busy period, any order",
        Method::Server => "period of its server",
        Method::LinearBound => "straight line",
    }
}

fn node_check(system: &System, index: usize, plan: &Plan) -> NodeCheck {
    let check = |above: &mut f64, lane: &Lane| {
        let utilisation = lane.utilisation(system);
        *above += utilisation;
        LaneCheck {
            level: lane.level,
            label: lane.label.clone(),
            discipline: lane.discipline.to_string(),
            utilisation,
            with_those_above: *above,
            operations: lane.members.iter().map(|id| system.operations()[id.index()].name.clone()).collect(),
        }
    };
    let places = plan.lanes.chunk_by(|one, next| one.under == next.under);
    let lanes = places.flat_map(|lanes| lanes.iter().scan(0.0, |above, lane| Some(check(above, lane))));
    NodeCheck {
        name: system.nodes[index].name.clone(),
        processors: system.nodes[index].cpus.len(),
        utilisation: system.utilisation(index),
        lanes: lanes.collect(),
        critical_set: overloaded_critical_set(system, index),
    }
}

/// The critical set of the operations on an overloaded node of one processor.
fn overloaded_critical_set(system: &System, node: usize) -> Option<Vec<String>> {
    let operations: Vec<_> = system.operations_on(node).collect();
    let load: f64 = operations.iter().map(|operation| worst_case_load(system, operation.id)).sum();
    if system.nodes[node].cpus.len() > 1 || load <= 1.0 {
        return None;
    }
    let task = |operation: &&talea_model::Operation| {
        let subtask = system.subtask(operation.id);
        Task::new(system.task_of(operation.id).period, subtask.wcet.max(subtask.exec.max())).ok()
    };
    let tasks: Option<Vec<Task>> = operations.iter().map(task).collect();
    let set = critical_set(&tasks?, &mut Effort::new(super::EFFORT)).ok()?;
    Some(set.members().iter().map(|index| operations[*index].name.clone()).collect())
}
