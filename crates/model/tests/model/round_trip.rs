//! Any system, written as a file, reads back as the same system.

use crate::parsed;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::sync::Arc;
use talea_model::{
    CPU_LIMIT, Criticality, Execution, Join, LaneDispatch, Late, Laxity, LinkBuilder, LossRate, Overhead,
    Overrun, SubtaskBuilder, Synchronisation, System, SystemBuilder, TIME_LIMIT, TaskBuilder,
};
use talea_time::{Duration, Work};

const LONGEST_NS: i64 = TIME_LIMIT.as_nanos();

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_µß-]{1,20}"
}

fn work(least: i64) -> impl Strategy<Value = Work> {
    (least..=LONGEST_NS).prop_map(Work::from_nanos)
}

fn execution() -> impl Strategy<Value = Execution> {
    prop_oneof![
        work(0).prop_map(Execution::Constant),
        (work(0), work(0)).prop_map(|(a, b)| Execution::Uniform(a.min(b), a.max(b))),
        vec(work(0), 1..5).prop_map(|works| Execution::List(Arc::from(works))),
    ]
}

/// Name, node, worst case, execution time, predecessors, join and response bound; indices are taken modulo what there is.
type Step = (String, Index, Work, Option<Execution>, Option<Vec<Index>>, Option<Index>, Option<i64>);

/// A subtask after some of those before it; the names are made unique by position.
fn subtask() -> impl Strategy<Value = Step> {
    let order = (option::of(vec(any::<Index>(), 0..3)), option::of(any::<Index>()));
    let step = (name(), any::<Index>(), work(1), option::of(execution()), order, option::of(1..=LONGEST_NS));
    step.prop_map(|(name, node, wcet, exec, (after, join), bound)| {
        (name, node, wcet, exec, after, join, bound)
    })
}

fn task() -> impl Strategy<Value = (TaskBuilder, Vec<Step>)> {
    let times = (2..=LONGEST_NS, 1..=LONGEST_NS, 0..=LONGEST_NS, any::<Index>());
    let rank = (0u8..=4, any::<i32>(), select(Overrun::ALL), select(Synchronisation::ALL));
    (name(), times, rank, vec(subtask(), 1..6)).prop_map(
        |(name, (period, deadline, phase, jitter), (level, importance, overrun, sync), subtasks)| {
            let jitter = jitter.index(period as usize) as i64;
            let task = TaskBuilder::new(name, Duration::from_nanos(period))
                .deadline(Duration::from_nanos(deadline))
                .phase(Duration::from_nanos(phase))
                .jitter(Duration::from_nanos(jitter))
                .criticality(Criticality::from_level(level).expect("0 to 4"))
                .importance(importance)
                .overrun(overrun)
                .sync(sync);
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
    let costs = (work(0), work(0), work(0), work(0), any::<u64>());
    (name(), words, costs).prop_map(|(name, (strategy, dispatch, laxity, late), costs)| {
        let (switch, queue, timer, message, seed) = costs;
        System::builder(name)
            .strategy(strategy)
            .lane_dispatch(dispatch)
            .laxity(laxity)
            .late(late)
            .seed(seed)
            .overhead(Overhead { switch, queue, timer, message })
    })
}

/// Whom a link joins, delay, jitter and loss; nodes are taken modulo what there is.
type Joint = (Option<(Index, Index, bool)>, Work, Work, u32);

fn link() -> impl Strategy<Value = Joint> {
    (option::of(any::<(Index, Index, bool)>()), work(0), work(0), 0..=1_000_000_000_u32)
}

/// The links among these that join nodes which none before them joins.
fn linked(mut system: SystemBuilder, nodes: usize, links: Vec<Joint>) -> SystemBuilder {
    let mut joined = std::collections::HashSet::new();
    for (ends, delay, jitter, loss) in links {
        let name = |node: usize| format!("node-{node}");
        let (link, directions) = match ends.map(|(a, b, both)| (a.index(nodes), b.index(nodes), both)) {
            None => (LinkBuilder::others(), vec![None]),
            Some((a, b, true)) => (LinkBuilder::between(name(a), name(b)), vec![Some((a, b)), Some((b, a))]),
            Some((a, b, false)) => (LinkBuilder::from_to(name(a), name(b)), vec![Some((a, b))]),
        };
        let is_same = matches!(ends, Some((a, b, _)) if a.index(nodes) == b.index(nodes));
        if !is_same && directions.iter().all(|direction| !joined.contains(direction)) {
            joined.extend(directions);
            let loss = LossRate::from_billionths(loss).expect("at most all");
            system = system.link(link.delay(delay.at_full_speed()).jitter(jitter.at_full_speed()).loss(loss));
        }
    }
    system
}

prop_compose! {
    fn any_system()(
        settings in settings(),
        node_cpus in vec(proptest::collection::hash_set(0u16..CPU_LIMIT, 1..4), 1..4),
        links in vec(link(), 0..4),
        tasks in vec(task(), 1..5),
    ) -> System {
        let nodes = node_cpus.len();
        let mut system = settings;
        for (index, cpus) in node_cpus.into_iter().enumerate() {
            system = system.node(format!("node-{index}"), cpus);
        }
        system = linked(system, nodes, links);
        for (number, (mut task, subtasks)) in tasks.into_iter().enumerate() {
            let name_of = |position: usize| format!("{}-{position}", subtasks[position].0);
            for (position, (_, node, wcet, exec, after, join, bound)) in subtasks.iter().enumerate() {
                let mut subtask = SubtaskBuilder::new(name_of(position)).wcet(*wcet)
                    .on(format!("node-{}", node.index(nodes)));
                if let Some(exec) = exec {
                    subtask = subtask.exec(exec.clone());
                }
                if let (Some(after), true) = (after, position > 0) {
                    let mut before: Vec<_> = after.iter().map(|index| index.index(position)).collect();
                    before.sort_unstable();
                    before.dedup();
                    if let (Some(join), true) = (join, before.len() > 1) {
                        subtask = subtask.join(match join.index(before.len() + 2) {
                            0 => Join::First,
                            1 => Join::All,
                            count => Join::Count(count as u32 - 1),
                        });
                    }
                    subtask = subtask.after(before.into_iter().map(name_of));
                }
                if let Some(bound) = bound {
                    subtask = subtask.bound(Duration::from_nanos(*bound));
                }
                task = task.subtask(subtask);
            }
            // Tasks are named by number: the generated names may be equal.
            system = system.task(task.named(format!("task-{number}")));
        }
        system.build().expect("generated systems are valid")
    }
}

proptest! {
    #[test]
    fn a_written_system_reads_back(system in any_system()) {
        let text = system.to_toml();
        prop_assert_eq!(&parsed(&text).system, &system, "{}", text);
    }
}

#[test]
fn a_task_of_one_operation_is_written_without_a_subtask() {
    let work = Work::from_millis(1);
    let system = System::builder("s").task(TaskBuilder::new("t", Duration::from_millis(9)).wcet(work));
    let text = system.build().expect("the system is valid").to_toml();
    assert!(!text.contains("subtask"), "{text}");
    assert_eq!(parsed(&text).system.operations()[0].name, "t");
}
