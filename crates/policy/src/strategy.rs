//! Strategies: pure functions from operations to lanes (Gill et al. 2002, section 3.1; `docs/policies.md`).
//!
//! A strategy decides two things for every operation: its *level* and the *discipline* of that level's
//! lane. It looks at periods, criticality and worst cases only, never at a clock or a queue.

use crate::discipline::Discipline;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use talea_model::{
    Criticality, InputSite, LaneDispatch, Late, Laxity, OperationId, Scheduling, Strategy, System,
};
use talea_time::{Duration, Work};

/// What a strategy needs to know about one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationTraits {
    /// The operation.
    pub id: OperationId,
    /// Its name, for anomalies.
    pub name: String,
    /// The period of its task; zero stands for "none" and is an anomaly for rate-based strategies.
    pub period: Duration,
    /// Relative deadline of its task.
    pub deadline: Duration,
    /// Worst-case execution time; zero stands for "unknown" and is an anomaly for laxity lanes.
    pub wcet: Work,
    /// Criticality 0 to 4.
    pub criticality: talea_model::Criticality,
    /// Static subpriority, larger first.
    pub importance: i32,
    /// Position in a topological order of its task.
    pub topological_rank: u32,
}

/// How a node's lanes behave, the same for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneRules {
    /// Inside a lane: run to completion, or choose anew at every scheduling point.
    pub dispatch: LaneDispatch,
    /// Which laxity orders laxity lanes.
    pub laxity: Laxity,
    /// Where late jobs stand in deadline and laxity lanes.
    pub late: Late,
}

/// One lane: a queue of one discipline whose jobs run at one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its place in the plan. 0 is the highest; a higher lane always preempts a lower one, where both are [under](Self::under) the same.
    pub level: usize,
    /// What the lane is for, for reports: `20Hz`, `high`, `high 50ms`, `all`.
    pub label: String,
    /// The order of its queue.
    pub discipline: Discipline,
    /// Dispatch, laxity and lateness rules.
    pub rules: LaneRules,
    /// Choose anew at every multiple of this much time too, with ties in member order, as SimSo's LLF does.
    /// No strategy sets it.
    pub tick: Option<Duration>,
    /// Its operations in the order of static subpriority: importance (larger first), then topological
    /// order, then file order. This is the last tie-break before the job number.
    pub members: Vec<OperationId>,
    /// The scheduler of kind `lanes` that it is a lane of, an index into [`talea_model::Description::schedulers`]. None where the lanes of
    /// the node are below no scheduler.
    pub under: Option<usize>,
}

/// The lanes of one node, highest first, and what is questionable about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Highest first: `lanes[i].level == i`.
    pub lanes: Vec<Lane>,
    /// Anomalies that do not prevent running.
    pub warnings: Vec<Anomaly>,
}

impl Plan {
    /// The index of the lane that serves `operation`, if it is placed on this node.
    pub fn lane_of(&self, operation: OperationId) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.members.contains(&operation))
    }
}

impl Lane {
    /// Sum of wcet / period over the lane's operations, for display (the analysis is exact).
    pub fn utilisation(&self, system: &System) -> f64 {
        let share = |id: &OperationId| {
            system.subtask(*id).wcet.as_nanos() as f64 / system.task_of(*id).period.as_nanos() as f64
        };
        self.members.iter().map(share).sum()
    }
}

/// Something a strategy cannot work with, or should not be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Anomaly {
    /// There is nothing to schedule. Error for a strategy; a warning for one node among several.
    #[error("there are no operations to schedule")]
    NoOperations,
    /// Two operations share a name, so reports would mix them. Error.
    #[error("operation \"{0}\" is declared twice")]
    DuplicateName(String),
    /// A rate-based strategy met an operation without a period. Error.
    #[error("operation \"{operation}\" has no period, which {strategy} sorts by")]
    NoPeriod {
        /// The operation.
        operation: String,
        /// The strategy.
        strategy: Strategy,
    },
    /// A laxity lane met an operation without a worst-case execution time. Error.
    #[error(
        "operation \"{operation}\" has no worst-case execution time, which {strategy} needs for its laxity"
    )]
    NoWorstCase {
        /// The operation.
        operation: String,
        /// The strategy.
        strategy: Strategy,
    },
    /// More lanes than the platform has priorities for. Error: Kokyu silently reuses the lowest
    /// priority, which would merge lanes.
    #[error("{strategy} needs {needed} levels but only {available} priorities are available")]
    TooManyLevels {
        /// The strategy.
        strategy: Strategy,
        /// Distinct levels.
        needed: usize,
        /// Priorities to be had.
        available: usize,
    },
    /// Jobs that wait for room in an input would keep those of a critical operation from running, whose lane they share. Error.
    #[error(
        "operation \"{operation}\" may wait for room in the input \"{input}\" (full = \"block\") in one lane with \"{critical}\", which is critical and would wait as well"
    )]
    WaitsBeforeCritical {
        /// Who waits.
        operation: String,
        /// For what.
        input: String,
        /// Who would, too.
        critical: String,
    },
    /// Schedulers, not lanes, decide who runs next on the node. Error where only lanes will do.
    #[error("its [[scheduler]] tables, not lanes alone, say who runs next")]
    Hierarchy,
    /// The worst case needs more than the node's processors. Warning: overload may be meant.
    #[error("worst-case utilisation is {percent} % of {processors} processor(s)")]
    Overload {
        /// Utilisation of all operations in percent, rounded up.
        percent: u64,
        /// Processors of the node.
        processors: usize,
    },
    /// Already the critical operations need more than the node's processors. Warning: no strategy can
    /// meet all hard deadlines in the worst case.
    #[error("worst-case utilisation of the critical operations is {percent} % of {processors} processor(s)")]
    CriticalOverload {
        /// Utilisation of the critical operations in percent, rounded up.
        percent: u64,
        /// Processors of the node.
        processors: usize,
    },
}

/// The place of a lane among the others; smaller is higher.
type LevelKey = (Reverse<u8>, Duration);

/// An anomaly and the node it concerns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node \"{node}\": {anomaly}")]
pub struct NodeAnomaly {
    /// Name of the node.
    pub node: String,
    /// What is wrong there.
    pub anomaly: Anomaly,
}

/// The plans of all nodes, in their order. A node without operations has a plan without lanes.
///
/// # Errors
/// The complete list of anomalies of all nodes. A node with a hierarchy is one.
pub fn plan_system(system: &System) -> Result<Vec<Plan>, Vec<NodeAnomaly>> {
    plan_each(system, plan_node)
}

/// As [`plan_system`], with the lanes inside hierarchies: they are sorted as if they had their node for themselves.
///
/// # Errors
/// The complete list of anomalies of all nodes.
pub fn plan_lanes_of(system: &System) -> Result<Vec<Plan>, Vec<NodeAnomaly>> {
    plan_each(system, plan_lanes)
}

fn plan_each(
    system: &System,
    plan: fn(&System, usize) -> Result<Plan, Vec<Anomaly>>,
) -> Result<Vec<Plan>, Vec<NodeAnomaly>> {
    let mut plans = Vec::new();
    let mut anomalies = Vec::new();
    for (index, node) in system.nodes.iter().enumerate() {
        let is_idle = system.lane_operations_on(index).next().is_none();
        match plan(system, index) {
            Err(found) if is_idle && found == [Anomaly::NoOperations] => {
                plans.push(Plan { lanes: Vec::new(), warnings: found });
            }
            Ok(plan) => {
                let waiting = waits_before_critical(system, &plan);
                let named = |anomaly| NodeAnomaly { node: node.name.clone(), anomaly };
                anomalies.extend(waiting.map(named));
                plans.push(plan);
            }
            Err(found) => anomalies
                .extend(found.into_iter().map(|anomaly| NodeAnomaly { node: node.name.clone(), anomaly })),
        }
    }
    if anomalies.is_empty() { Ok(plans) } else { Err(anomalies) }
}

/// Operations that may wait for room in an input, in lanes that have critical ones. In preemptive lanes as well: one that waits gives way to those
/// alone that come before it in the lane's order, and where that is by arrival none does.
fn waits_before_critical(system: &System, plan: &Plan) -> impl Iterator<Item = Anomaly> {
    let blocking = system.inputs().iter().filter(|input| input.take.wait_limit().is_some());
    let of_input = |input: &InputSite| {
        let waits = system.outputs()[input.output.index()].operation;
        let lane = &plan.lanes[plan.lane_of(waits)?];
        let is_critical = |id: &&OperationId| system.task_of(**id).criticality.is_critical();
        let name = |id: OperationId| system.operations()[id.index()].name.clone();
        let critical = name(*lane.members.iter().find(is_critical)?);
        Some(Anomaly::WaitsBeforeCritical { operation: name(waits), input: input.name.clone(), critical })
    };
    blocking.filter_map(of_input).collect::<Vec<_>>().into_iter()
}

/// Sorts the operations of `node`, which has no hierarchy, into lanes by the system's strategy.
///
/// # Errors
/// The complete list of anomalies that prevent it.
pub fn plan_node(system: &System, node: usize) -> Result<Plan, Vec<Anomaly>> {
    match system.scheduling(node) {
        Scheduling::Lanes => plan_lanes(system, node),
        Scheduling::Hierarchy => Err(vec![Anomaly::Hierarchy]),
    }
}

/// Sorts the operations of `node` into lanes by the system's strategy, wherever in a hierarchy the lanes stand: those below each scheduler of
/// kind `lanes` for themselves, in file order of these.
///
/// # Errors
/// The complete list of anomalies that prevent it.
pub fn plan_lanes(system: &System, node: usize) -> Result<Plan, Vec<Anomaly>> {
    let traits = |operation: &talea_model::Operation| {
        let task = system.task_of(operation.id);
        OperationTraits {
            id: operation.id,
            name: operation.name.clone(),
            period: task.period,
            deadline: task.deadline,
            wcet: system.subtask(operation.id).wcet,
            criticality: task.criticality,
            importance: task.importance,
            topological_rank: operation.topological_rank,
        }
    };
    let operations: Vec<OperationTraits> = system.lane_operations_on(node).map(traits).collect();
    let errors = errors(system.strategy, &operations);
    if !errors.is_empty() {
        return Err(errors);
    }
    let rules = LaneRules { dispatch: system.lane_dispatch, laxity: system.laxity, late: system.late };
    let warnings = warnings(&operations, system.nodes[node].cpus.len());
    let mut places: BTreeMap<Option<usize>, Vec<OperationTraits>> = BTreeMap::new();
    for operation in operations {
        let place = system.lanes_with(system.subtask(operation.id));
        places.entry(place).or_default().push(operation);
    }
    let has_several = places.len() > 1;
    let mut lanes: Vec<Lane> = Vec::new();
    for (under, operations) in places {
        let mut own = sort(system.strategy, rules, &operations);
        for lane in &mut own {
            lane.level += lanes.len();
            lane.under = under;
            if let Some(place) = under.filter(|_| has_several) {
                lane.label = format!("{} {}", system.schedulers[place].name, lane.label);
            }
        }
        lanes.append(&mut own);
    }
    Ok(Plan { lanes, warnings })
}

/// The lane under the scheduler `under` that an operation which the system does not have would be in: the one of its own level or, where
/// there is none, the next lower one, so that it stands before nothing that is more urgent. None where all lanes there are more urgent than it.
pub fn lane_for(
    system: &System,
    plan: &Plan,
    under: Option<usize>,
    operation: &OperationTraits,
) -> Option<usize> {
    let key = level_key(system.strategy, operation);
    let key_of = |lane: &Lane| {
        let member = *lane.members.first()?;
        let task = system.task_of(member);
        let (period, criticality) = (task.period, task.criticality);
        Some(level_key(
            system.strategy,
            &OperationTraits { id: member, period, criticality, ..operation.clone() },
        ))
    };
    let is_it = |lane: &Lane| lane.under == under && key_of(lane).is_some_and(|other| other >= key);
    plan.lanes.iter().position(is_it)
}

/// Sorts `operations` into lanes for a node of `processors` processors.
///
/// # Errors
/// The complete list of anomalies that prevent it.
pub fn plan(
    strategy: Strategy,
    rules: LaneRules,
    operations: &[OperationTraits],
    processors: usize,
) -> Result<Plan, Vec<Anomaly>> {
    let errors = errors(strategy, operations);
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(Plan { lanes: sort(strategy, rules, operations), warnings: warnings(operations, processors) })
}

/// The operations of one place in lanes, highest first.
fn sort(strategy: Strategy, rules: LaneRules, operations: &[OperationTraits]) -> Vec<Lane> {
    let mut levels: BTreeMap<LevelKey, Vec<&OperationTraits>> = BTreeMap::new();
    for operation in operations {
        levels.entry(level_key(strategy, operation)).or_default().push(operation);
    }
    levels
        .into_values()
        .enumerate()
        .map(|(level, mut members)| {
            // A stable sort, so that file order decides between equals.
            members.sort_by_key(|operation| (Reverse(operation.importance), operation.topological_rank));
            Lane {
                level,
                label: label(strategy, members[0]),
                discipline: discipline(strategy, members[0]),
                rules,
                tick: None,
                members: members.iter().map(|operation| operation.id).collect(),
                under: None,
            }
        })
        .collect()
}

fn level_key(strategy: Strategy, operation: &OperationTraits) -> LevelKey {
    let criticality = Reverse(operation.criticality.level());
    match strategy {
        Strategy::Rms => (Reverse(0), operation.period),
        Strategy::Edf | Strategy::Mlf => (Reverse(0), Duration::ZERO),
        Strategy::RmsMlf if operation.criticality.is_critical() => (criticality, operation.period),
        Strategy::Muf | Strategy::RmsMlf | Strategy::Criticality => (criticality, Duration::ZERO),
    }
}

/// Whether the strategy chooses the lane of operations of this criticality by their period.
pub fn sorts_by_period(strategy: Strategy, criticality: Criticality) -> bool {
    strategy == Strategy::Rms || strategy == Strategy::RmsMlf && criticality.is_critical()
}

fn discipline(strategy: Strategy, operation: &OperationTraits) -> Discipline {
    match strategy {
        Strategy::Rms | Strategy::Criticality => Discipline::Fifo,
        Strategy::Edf => Discipline::Deadline,
        Strategy::Mlf | Strategy::Muf => Discipline::Laxity,
        Strategy::RmsMlf if operation.criticality.is_critical() => Discipline::Fifo,
        Strategy::RmsMlf => Discipline::Laxity,
    }
}

fn label(strategy: Strategy, operation: &OperationTraits) -> String {
    match strategy {
        Strategy::Rms => operation.period.to_string(),
        Strategy::Edf | Strategy::Mlf => "all".into(),
        Strategy::RmsMlf if operation.criticality.is_critical() => {
            format!("{} {}", operation.criticality, operation.period)
        }
        Strategy::Muf | Strategy::RmsMlf | Strategy::Criticality => operation.criticality.to_string(),
    }
}

fn errors(strategy: Strategy, operations: &[OperationTraits]) -> Vec<Anomaly> {
    let mut errors = Vec::new();
    if operations.is_empty() {
        errors.push(Anomaly::NoOperations);
    }
    let mut seen = std::collections::HashSet::new();
    for operation in operations {
        let name = || operation.name.clone();
        if !seen.insert(operation.name.as_str()) {
            errors.push(Anomaly::DuplicateName(name()));
        }
        let by_period = sorts_by_period(strategy, operation.criticality);
        if by_period && operation.period <= Duration::ZERO {
            errors.push(Anomaly::NoPeriod { operation: name(), strategy });
        }
        if discipline(strategy, operation) == Discipline::Laxity && operation.wcet <= Work::ZERO {
            errors.push(Anomaly::NoWorstCase { operation: name(), strategy });
        }
    }
    errors
}

/// Utilisation 1. With 40 binary places a million operations of any wcet and period fit 128 bits.
const WHOLE_PROCESSOR: u128 = 1 << 40;

/// wcet / period of `operation`, rounded down, so that shares which fill a processor exactly never seem to
/// overload it.
fn share_of_a_processor(operation: &OperationTraits) -> u128 {
    let [wcet, period] =
        [operation.wcet.as_nanos(), operation.period.as_nanos()].map(|ns| u128::try_from(ns).unwrap_or(0));
    (wcet * WHOLE_PROCESSOR).checked_div(period).unwrap_or(0)
}

fn warnings(operations: &[OperationTraits], processors: usize) -> Vec<Anomaly> {
    let percent = |counts: fn(&OperationTraits) -> bool| -> u64 {
        let shares = operations.iter().filter(|operation| counts(operation)).map(share_of_a_processor);
        let percent = (shares.sum::<u128>() * 100).div_ceil(WHOLE_PROCESSOR * processors as u128);
        u64::try_from(percent).unwrap_or(u64::MAX)
    };
    let (critical, all) = (percent(|operation| operation.criticality.is_critical()), percent(|_| true));
    if critical > 100 {
        vec![Anomaly::CriticalOverload { percent: critical, processors }]
    } else if all > 100 {
        vec![Anomaly::Overload { percent: all, processors }]
    } else {
        Vec::new()
    }
}

/// Checks that a plan fits a platform with `available` priorities.
///
/// # Errors
/// [`Anomaly::TooManyLevels`].
pub fn fit_priorities(plan: &Plan, strategy: Strategy, available: usize) -> Result<(), Anomaly> {
    let needed = plan.lanes.len();
    if needed > available { Err(Anomaly::TooManyLevels { strategy, needed, available }) } else { Ok(()) }
}
