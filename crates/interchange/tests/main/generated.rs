//! Random systems, and what is left of them if they say only what a format can carry.

use proptest::collection::{hash_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::collections::BTreeSet;
use std::sync::Arc;
use talea_model::{
    CPU_LIMIT, Criticality, Description, Execution, LaneDispatch, Late, Laxity, LinkBuilder, Node, Overhead,
    Overrun, SubtaskBuilder, System, SystemBuilder, TIME_LIMIT, TaskBuilder,
};
use talea_time::{Duration, Work};

const LONGEST_NS: i64 = TIME_LIMIT.as_nanos();

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_µß-]{1,20}"
}

/// Times of every size: a few nanoseconds, milliseconds, years.
fn nanos(least: i64) -> impl Strategy<Value = i64> {
    prop_oneof![
        least..=5_000,
        (1_i64..=10_000).prop_map(|us| us * 1_000),
        (1_i64..=10_000).prop_map(|ms| ms * 1_000_000),
        least..=LONGEST_NS,
    ]
}

fn work(least: i64) -> impl Strategy<Value = Work> {
    nanos(least).prop_map(Work::from_nanos)
}

fn execution() -> impl Strategy<Value = Execution> {
    prop_oneof![
        work(0).prop_map(Execution::Constant),
        (work(0), work(0)).prop_map(|(a, b)| Execution::Uniform(a.min(b), a.max(b))),
        vec(work(0), 1..5).prop_map(|works| Execution::List(Arc::from(works))),
    ]
}

/// Name, node, worst case, execution time and predecessors; indices are taken modulo what there is.
type Step = (String, Index, Work, Option<Execution>, Option<Vec<Index>>);

fn subtask() -> impl Strategy<Value = Step> {
    (name(), any::<Index>(), work(1), option::of(execution()), option::of(vec(any::<Index>(), 0..3)))
}

fn task() -> impl Strategy<Value = (TaskBuilder, Vec<Step>)> {
    let times = (nanos(2), nanos(1), nanos(0), any::<Index>(), any::<bool>());
    let rank = (0u8..=4, select(vec![0, 0, -3, 7, i32::MAX]), select(Overrun::ALL));
    (name(), times, rank, vec(subtask(), 1..6)).prop_map(
        |(name, (period, deadline, phase, jitter, implicit), (level, importance, overrun), subtasks)| {
            let begins = |step: &Step| step.4.as_ref().is_some_and(|after| after.is_empty());
            // Instances are merged only where one subtask begins.
            let overrun = match overrun {
                Overrun::Merge if subtasks.iter().skip(1).any(begins) => Overrun::Queue,
                overrun => overrun,
            };
            let deadline = if implicit { period } else { deadline };
            let task = TaskBuilder::new(name, Duration::from_nanos(period))
                .deadline(Duration::from_nanos(deadline))
                .phase(Duration::from_nanos(phase))
                .jitter(Duration::from_nanos(jitter.index(period as usize) as i64))
                .criticality(Criticality::from_level(level).expect("0 to 4"))
                .importance(importance)
                .overrun(overrun);
            (task, subtasks)
        },
    )
}

fn settings() -> impl Strategy<Value = SystemBuilder> {
    let words = (
        select(talea_model::Strategy::ALL),
        select(LaneDispatch::ALL),
        select(Laxity::ALL),
        select(Late::ALL),
    );
    let costs = (work(0), work(0), work(0), work(0), work(0), any::<u64>());
    (name(), words, costs).prop_map(|(name, (strategy, dispatch, laxity, late), costs)| {
        let (switch, queue, timer, message, delay, seed) = costs;
        System::builder(name)
            .strategy(strategy)
            .lane_dispatch(dispatch)
            .laxity(laxity)
            .late(late)
            .seed(seed)
            .overhead(Overhead {
                switch,
                queue,
                timer,
                message,
                push: timer,
                filter: switch,
                delivery: queue,
            })
            .link(LinkBuilder::others().delay(delay.at_full_speed()))
    })
}

prop_compose! {
    /// Any system.
    pub fn any_system()(
        settings in settings(),
        node_cpus in vec(
            prop_oneof![hash_set(0u16..3, 1..3), hash_set(0u16..CPU_LIMIT, 1..4)], 1..4),
        local in any::<bool>(),
        tasks in vec(task(), 1..5),
    ) -> System {
        let nodes = node_cpus.len();
        let mut system = settings;
        let node_name = |index: usize| match (local, nodes) {
            (true, 1) => "local".to_owned(),
            _ => format!("node-{index}"),
        };
        for (index, cpus) in node_cpus.into_iter().enumerate() {
            system = system.node(node_name(index), cpus);
        }
        for (number, (mut task, subtasks)) in tasks.into_iter().enumerate() {
            let task_name = format!("{}-{number}", subtasks[0].0);
            // A task of one operation often has its name.
            let name_of = |position: usize| match (subtasks.len(), subtasks[0].3.is_some()) {
                (1, true) => task_name.clone(),
                _ => format!("{}-{position}", subtasks[position].0),
            };
            for (position, (_, node, wcet, exec, after)) in subtasks.iter().enumerate() {
                let mut subtask =
                    SubtaskBuilder::new(name_of(position)).wcet(*wcet).on(node_name(node.index(nodes)));
                if let Some(exec) = exec {
                    subtask = subtask.exec(exec.clone());
                }
                if let (Some(after), true) = (after, position > 0) {
                    let mut before: Vec<_> = after.iter().map(|index| index.index(position)).collect();
                    before.sort_unstable();
                    before.dedup();
                    subtask = subtask.after(before.into_iter().map(name_of));
                }
                task = task.subtask(subtask);
            }
            system = system.task(task.named(task_name));
        }
        system.build().expect("generated systems are valid")
    }
}

/// A system that is as good as new: validated again.
fn checked(description: Description) -> System {
    System::new(description).expect("it says less than a valid one")
}

fn without_costs(description: &mut Description) {
    description.seed = 1;
    description.links.clear();
    description.overhead = Overhead::default();
}

/// Nodes in the order in which subtasks name them, without the others.
fn renumber_nodes(description: &mut Description, same: impl Fn(&Node, &Node) -> bool) {
    let mut kept: Vec<Node> = Vec::new();
    for subtask in description.tasks.iter_mut().flat_map(|task| &mut task.subtasks) {
        let node = &description.nodes[subtask.node];
        subtask.node = kept.iter().position(|other| same(other, node)).unwrap_or_else(|| {
            kept.push(node.clone());
            kept.len() - 1
        });
    }
    description.nodes = kept;
}

/// What a table carries of a system.
pub fn carried_by_csv(system: &System) -> System {
    let mut reduced = (**system).clone();
    without_costs(&mut reduced);
    reduced.strategy = talea_model::Strategy::RmsMlf;
    reduced.lane_dispatch = LaneDispatch::NonPreemptive;
    reduced.laxity = Laxity::Declared;
    reduced.late = Late::Last;
    renumber_nodes(&mut reduced, |one, other| one.name == other.name);
    checked(reduced)
}

fn plain_ranks(description: &mut Description) {
    for task in &mut description.tasks {
        task.jitter = Duration::ZERO;
        task.criticality = Criticality::Medium;
        task.importance = 0;
    }
}

/// Ordered by rate or by deadline.
fn plain_order(description: &mut Description) {
    if description.strategy == talea_model::Strategy::Edf {
        description.lane_dispatch = LaneDispatch::Preemptive;
        description.late = Late::None;
    } else {
        description.strategy = talea_model::Strategy::Rms;
        description.lane_dispatch = LaneDispatch::NonPreemptive;
        description.late = Late::Last;
    }
    description.laxity = Laxity::Declared;
}

/// What rt-app carries of a system: trees, whole microseconds, processors without names.
pub fn carried_by_rt_app(system: &System) -> System {
    let micros = |ns: i64, least: i64| (ns / 1_000).clamp(least, i32::MAX.into()) * 1_000;
    let whole = |work: &Work| Work::from_nanos(micros(work.as_nanos(), 0));
    let mut reduced = (**system).clone();
    without_costs(&mut reduced);
    plain_ranks(&mut reduced);
    plain_order(&mut reduced);
    for task in &mut reduced.tasks {
        task.overrun = Overrun::Queue;
        task.period = Duration::from_nanos(micros(task.period.as_nanos(), 1));
        task.deadline = Duration::from_nanos(micros(task.deadline.as_nanos(), 1));
        if reduced.strategy == talea_model::Strategy::Edf {
            task.deadline = task.deadline.min(task.period);
        }
        task.phase = Duration::from_nanos(micros(task.phase.as_nanos(), 0));
        for subtask in &mut task.subtasks {
            subtask.after.truncate(1);
            subtask.wcet = Work::from_nanos(micros(subtask.wcet.as_nanos(), 1));
            subtask.exec = match &subtask.exec {
                Execution::List(works) => super::differences::canonical(&Execution::List(
                    works.iter().map(whole).collect::<Vec<_>>().into(),
                )),
                other => Execution::Constant(whole(&other.max())),
            };
        }
    }
    let set = |node: &Node| node.cpus.iter().copied().collect::<BTreeSet<_>>();
    renumber_nodes(&mut reduced, |one, other| set(one) == set(other));
    let alone = reduced.nodes.len() == 1;
    for node in &mut reduced.nodes {
        node.name = if alone { "local".into() } else { name_of_processors(&node.cpus) };
    }
    checked(reduced)
}

fn name_of_processors(cpus: &[u16]) -> String {
    let cpus: BTreeSet<u16> = cpus.iter().copied().collect();
    let mut name = String::from(if cpus.len() == 1 { "cpu" } else { "cpus" });
    let mut rest: Vec<u16> = cpus.iter().copied().collect();
    if let [only] = rest.as_slice() {
        return format!("{name}{only}");
    }
    while let Some(first) = rest.first().copied() {
        let run = rest.iter().zip(first..).take_while(|(cpu, expected)| *cpu == expected).count();
        name += &match run {
            1 => format!("-{first}"),
            2 => format!("-{first}-{}", first + 1),
            _ => format!("-{first}to{}", first + run as u16 - 1),
        };
        rest.drain(..run);
    }
    name
}

/// What SimSo carries of a system: chains, constant execution times, numbered processors.
pub fn carried_by_simso(system: &System) -> System {
    let ascii = |name: &str| format!("n{}", name.replace(|c: char| !c.is_ascii(), "x"));
    let mut reduced = (**system).clone();
    let switch = reduced.overhead.switch;
    without_costs(&mut reduced);
    reduced.overhead.switch = switch;
    plain_ranks(&mut reduced);
    plain_order(&mut reduced);
    for task in &mut reduced.tasks {
        task.name = ascii(&task.name);
        if task.overrun == Overrun::SkipNext {
            task.overrun = Overrun::Abort;
        }
        if task.overrun == Overrun::Merge {
            task.overrun = Overrun::Queue;
        }
        let count = task.subtasks.len();
        for (position, subtask) in task.subtasks.iter_mut().enumerate() {
            subtask.name = if count == 1 { task.name.clone() } else { ascii(&subtask.name) };
            subtask.node = 0;
            subtask.exec = Execution::Constant(subtask.exec.max().min(subtask.wcet));
            subtask.after = position.checked_sub(1).into_iter().collect();
        }
    }
    let processors = reduced.nodes[0].cpus.len() as u16;
    reduced.nodes = vec![Node { name: "local".into(), cpus: (0..processors).collect() }];
    checked(reduced)
}
