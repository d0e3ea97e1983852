//! Random systems with small integer times, so that ties, lateness and overload are frequent.

use proptest::prelude::*;
use proptest::sample::select;
use talea_model::{
    Communication, Criticality, Description, Execution, Join, LaneDispatch, Late, Laxity, Link, LinkEnds,
    LossRate, Node, Overhead, Overrun, Route, Strategy as StrategyKind, Subtask, Synchronisation, System,
    Task,
};
use talea_time::{Duration, Work};

fn ns(ns: i64) -> Duration {
    Duration::from_nanos(ns)
}

fn work(ns: i64) -> Work {
    Work::from_nanos(ns)
}

/// What kinds of system to draw.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub nodes: usize,
    pub processors: usize,
    /// Greatest numbers of tasks, and of subtasks of each.
    pub tasks: usize,
    pub subtasks: usize,
    /// Greatest period: the longer, the more idle points.
    pub period: i64,
    pub jitter: bool,
    /// Greatest overhead of each kind and greatest message delay.
    pub costs: i64,
    /// Least execution time.
    pub least_exec: i64,
    /// Whether tasks have synchronisation protocols, and joins of some of the predecessors.
    pub protocols: bool,
}

impl Scope {
    /// One processor, no costs, greedy releases.
    pub const ONE_PROCESSOR: Scope = Scope {
        nodes: 1,
        processors: 1,
        tasks: 4,
        subtasks: 3,
        period: 13,
        jitter: false,
        costs: 0,
        least_exec: 1,
        protocols: false,
    };
    /// One node of up to three processors, no costs: what the reference knows.
    pub const SEVERAL_PROCESSORS: Scope =
        Scope { processors: 3, tasks: 6, subtasks: 4, period: 40, protocols: true, ..Scope::ONE_PROCESSOR };
    /// Everything but costs, with jobs that take no time at all.
    pub const FREE: Scope = Scope {
        nodes: 3,
        processors: 2,
        tasks: 4,
        subtasks: 4,
        period: 13,
        jitter: true,
        costs: 0,
        least_exec: 0,
        protocols: false,
    };
    /// Everything with costs.
    pub const COSTLY: Scope = Scope { costs: 2, least_exec: 1, ..Scope::FREE };
    /// The same with tasks that are not released greedily.
    pub const GUARDED: Scope = Scope { protocols: true, ..Scope::COSTLY };
}

fn execution(scope: Scope) -> impl Strategy<Value = Execution> {
    let time = scope.least_exec..5i64;
    prop_oneof![
        time.clone().prop_map(|ns| Execution::Constant(work(ns))),
        (time.clone(), 0..3i64).prop_map(|(low, width)| Execution::Uniform(work(low), work(low + width))),
        proptest::collection::vec(time, 1..4)
            .prop_map(|list| Execution::List(list.into_iter().map(work).collect())),
    ]
}

/// The subtask at `position`; bit `i` of the drawn mask makes subtask `i` a predecessor.
fn subtask(scope: Scope, position: usize) -> impl Strategy<Value = Subtask> {
    let join = prop_oneof![Just(Join::All), Just(Join::First), (1..4u32).prop_map(Join::Count)];
    let others = (any::<u8>(), join, 1..20i64);
    (0..scope.nodes, 1..5i64, execution(scope), others).prop_map(
        move |(node, wcet, exec, (mask, join, bound))| {
            let after: Vec<usize> = (0..position).filter(|before| mask >> before & 1 == 1).collect();
            let join = match join {
                Join::Count(count) if after.len() > 1 => Join::Count(count.min(after.len() as u32)),
                Join::First if after.len() > 1 => join,
                _ => Join::All,
            };
            Subtask {
                name: format!("s{position}"),
                node,
                lanes: None,
                wcet: work(wcet),
                exec,
                after,
                join: if scope.protocols { join } else { Join::All },
                bound: scope.protocols.then_some(ns(bound)),
                outputs: Vec::new(),
                inputs: Vec::new(),
                events: Vec::new(),
                subscription: None,
            }
        },
    )
}

fn task(scope: Scope, index: usize) -> impl Strategy<Value = Task> {
    let subtasks = (1..=scope.subtasks)
        .prop_flat_map(move |count| (0..count).map(|position| subtask(scope, position)).collect::<Vec<_>>());
    let times = (2..=scope.period, 1..25i64, 0..6i64, 0..4i64);
    let rules = (select(Overrun::ALL), select(Synchronisation::ALL));
    (times, 0..5u8, -1..2i32, rules, subtasks).prop_map(
        move |((period, deadline, phase, jitter), level, importance, (overrun, sync), subtasks)| {
            mergeable(Task {
                name: format!("t{index}"),
                period: ns(period),
                deadline: ns(deadline),
                phase: ns(phase),
                jitter: ns(if scope.jitter { jitter.min(period - 1) } else { 0 }),
                criticality: Criticality::from_level(level).expect("0 to 4"),
                importance,
                trigger: None,
                inherits_deadline: false,
                inherits_criticality: false,
                separation: None,
                communication: Communication::Implicit,
                overrun,
                sync: if scope.protocols { sync } else { Synchronisation::Greedy },
                subtasks,
            })
        },
    )
}

/// Where instances cannot be merged, they queue up.
fn mergeable(task: Task) -> Task {
    let cannot = task.overrun == Overrun::Merge && !task.can_merge();
    Task { overrun: if cannot { Overrun::Queue } else { task.overrun }, ..task }
}

/// Any links between the nodes; of each pair of them none, one both ways, or one or two in one direction.
fn links(scope: Scope) -> impl Strategy<Value = Vec<Link>> {
    let loss =
        select(vec![0.0, 0.0, 0.05, 0.5]).prop_map(|share| LossRate::from_share(share).expect("a share"));
    let route = (0..=2 * scope.costs.max(1), 0..4i64, loss).prop_map(|(delay, jitter, loss)| Route {
        delay: ns(delay),
        jitter: ns(jitter),
        loss,
    });
    let nodes = scope.nodes;
    let pairs = (0..nodes).flat_map(move |one| (one + 1..nodes).map(move |other| (one, other)));
    let joining = |route| {
        move |(one, other)| {
            let one_way = move |from, to| Link { ends: LinkEnds::FromTo(from, to), route };
            (0..5u8, Just(one), Just(other)).prop_map(move |(kind, one, other)| match kind {
                0 => vec![],
                1 => vec![Link { ends: LinkEnds::Between(one, other), route }],
                2 => vec![one_way(one, other)],
                3 => vec![one_way(other, one)],
                _ => vec![one_way(one, other), one_way(other, one)],
            })
        }
    };
    let others = proptest::option::of(route.clone());
    let pairs: Vec<(usize, usize)> = pairs.collect();
    let each = pairs
        .into_iter()
        .map(|pair| route.clone().prop_flat_map(move |route| joining(route)(pair)))
        .collect::<Vec<_>>();
    (each, others).prop_map(|(each, others)| {
        let others = others.map(|route| Link { ends: LinkEnds::Others, route });
        each.into_iter().flatten().chain(others).collect()
    })
}

/// Random systems of `scope`.
pub fn systems(scope: Scope) -> impl Strategy<Value = System> {
    let rules =
        (select(StrategyKind::ALL), select(LaneDispatch::ALL), select(Laxity::ALL), select(Late::ALL));
    let cost = 0..=scope.costs;
    let costs = (cost.clone(), cost.clone(), cost.clone(), cost);
    let processors = proptest::collection::vec(1..=scope.processors, scope.nodes);
    let tasks =
        (1..=scope.tasks).prop_flat_map(move |count| (0..count).map(|i| task(scope, i)).collect::<Vec<_>>());
    let links = links(scope);
    (rules, any::<u64>(), costs, processors, (links, tasks)).prop_map(
        |(rules, seed, costs, processors, (links, tasks))| {
            let (strategy, lane_dispatch, laxity, late) = rules;
            let (switch, queue, timer, message) = costs;
            let node = |(index, count): (usize, usize)| Node {
                name: format!("n{index}"),
                cpus: (0..count as u16).map(|cpu| index as u16 * 8 + cpu).collect(),
            };
            let nodes = processors.into_iter().enumerate().map(node).collect();
            let overhead = Overhead {
                switch: work(switch),
                queue: work(queue),
                timer: work(timer),
                message: work(message),
                ..Overhead::default()
            };
            System::new(Description {
                channels: Vec::new(),
                chains: Vec::new(),
                schedulers: Vec::new(),
                threads: Vec::new(),
                name: "random".into(),
                strategy,
                lane_dispatch,
                laxity,
                late,
                seed,
                overhead,
                links,
                nodes,
                tasks,
            })
            .expect("only valid systems are drawn")
        },
    )
}

/// With or without records of dispatching.
pub fn dispatch() -> impl Strategy<Value = talea_sim::DispatchRecords> {
    use talea_sim::DispatchRecords::{Dropped, Kept};
    prop_oneof![Just(Dropped), Just(Kept)]
}
