//! Bounds of chains in deadline lanes, beside what subdeadlines prove.
//!
//! With release guards every subtask is sporadic. So a system is schedulable if each chain's deadline can be split among its subtasks and each processor
//! meets the parts, by the exact test of non-preemptive EDF: were lanes to go by these parts. Talea's go by the deadline of the whole, and bound the
//! response of each subtask instead. Neither implies the other by a theorem; here is how many systems each proves.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use talea_analysis::edf::nonpreemptive;
use talea_analysis::task::Task;
use talea_analysis::{Effort, system};
use talea_model::{Strategy, SubtaskBuilder, Synchronisation, System, TaskBuilder};
use talea_policy::strategy::plan_system;
use talea_time::{Duration, Work};

const NODES: usize = 3;
const PERIODS: [i64; 8] = [10, 14, 20, 25, 40, 50, 80, 100];

/// Period, deadline, and of each subtask the node and the execution time.
type Chain = (i64, i64, Vec<(usize, i64)>);

/// Six chains, by which each node is used about as much as `load` says, in percent.
fn draw(seed: u64, load: i64) -> Vec<Chain> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let draw_one = |_| {
        let period = PERIODS[random.random_range(0..PERIODS.len())] * 1_000;
        let nodes: Vec<usize> =
            (0..random.random_range(2..5)).map(|_| random.random_range(0..NODES)).collect();
        (period, nodes)
    };
    let ways: Vec<(i64, Vec<usize>)> = (0..6).map(draw_one).collect();
    let visits =
        |node| ways.iter().flat_map(|(_, nodes)| nodes).filter(|other| **other == node).count() as i64;
    let mut chain = |(period, nodes): &(i64, Vec<usize>)| {
        let mut step = |node: &usize| {
            let wcet = period * load * random.random_range(60..140) / (10_000 * visits(*node));
            (*node, wcet.max(100))
        };
        let steps = nodes.iter().map(&mut step).collect();
        (*period, period * [2, 3, 4, 6][random.random_range(0..4)] / 2, steps)
    };
    ways.iter().map(&mut chain).collect()
}

/// Whether every processor meets the parts of the deadlines, in proportion to execution times or with the same slack for each subtask.
fn subdeadlines_prove(chains: &[Chain]) -> bool {
    let proves = |part: &dyn Fn(i64, i64, &Chain) -> i64| {
        let mut tasks: Vec<Vec<Task>> = vec![Vec::new(); NODES];
        for chain in chains {
            let (period, deadline, steps) = chain;
            let all: i64 = steps.iter().map(|(_, wcet)| wcet).sum();
            if all > *deadline {
                return false;
            }
            for (node, wcet) in steps {
                let task = Task::new(Duration::from_nanos(*period), Work::from_nanos(*wcet)).expect("sound");
                let part = Duration::from_nanos(part(*wcet, all, chain));
                tasks[*node].push(task.with_deadline(part).expect("positive"));
            }
        }
        let holds = |tasks: &Vec<Task>| {
            nonpreemptive::test(tasks, &mut Effort::default()).expect("small numbers").is_schedulable()
        };
        tasks.iter().all(holds)
    };
    proves(&|wcet, all, (_, deadline, _)| deadline * wcet / all)
        || proves(&|wcet, all, (_, deadline, steps)| wcet + (deadline - all) / steps.len() as i64)
}

fn bounds_prove(chains: &[Chain]) -> bool {
    let mut description = System::builder("s").strategy(Strategy::Edf);
    for node in 0..NODES {
        description = description.node(format!("n{node}"), [node as u16]);
    }
    for (number, (period, deadline, steps)) in chains.iter().enumerate() {
        let mut task = TaskBuilder::new(format!("t{number}"), Duration::from_nanos(*period))
            .deadline(Duration::from_nanos(*deadline))
            .sync(Synchronisation::ReleaseGuard);
        for (place, (node, wcet)) in steps.iter().enumerate() {
            let subtask = SubtaskBuilder::new(format!("s{place}")).on(format!("n{node}"));
            let subtask = subtask.wcet(Work::from_nanos(*wcet));
            let before = place.checked_sub(1).map(|before| format!("s{before}"));
            task = task.subtask(subtask.after(before));
        }
        description = description.task(task);
    }
    let system = description.build().expect("sound");
    let plans = plan_system(&system).expect("it has lanes");
    let bounds = system::analyse(&system, &plans, &mut Effort::default()).expect("small numbers");
    (0..chains.len()).all(|task| bounds.holds(&system, task))
}

#[test]
fn bounds_prove_more_systems_than_subdeadlines() {
    let (mut by_bounds, mut by_subdeadlines, mut by_these_alone) = (0, 0, 0);
    for load in [20, 30, 40, 50, 60, 70] {
        for seed in 0..150 {
            let chains = draw(seed, load);
            let (bounds, subdeadlines) = (bounds_prove(&chains), subdeadlines_prove(&chains));
            by_bounds += u32::from(bounds);
            by_subdeadlines += u32::from(subdeadlines);
            by_these_alone += u32::from(subdeadlines && !bounds);
        }
    }
    let counts = format!(
        "of 900 by bounds {by_bounds}, by subdeadlines {by_subdeadlines}, by these alone {by_these_alone}"
    );
    assert!(by_bounds >= 305 && by_subdeadlines >= 200 && by_these_alone <= 4, "{counts}");
}
