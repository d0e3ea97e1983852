//! The simulator and the reference agree on who runs when.

use super::naive::{Completion, Naive, Segment};
use crate::replay::records;
use crate::systems::{Scope, systems};
use proptest::prelude::*;
use talea_model::{
    Communication, Criticality, Description, Execution, Join, LaneDispatch, Late, Laxity, Node, Overhead,
    Overrun, Strategy, Subtask, Synchronisation, System, Task,
};
use talea_record::{Event, Record};
use talea_time::{Duration, Work};

/// Who ran when and what completed, from the records of a system with one processor.
fn told(records: &[Record]) -> (Vec<Segment>, Vec<Completion>) {
    let (mut segments, mut completions): (Vec<Segment>, _) = (Vec::new(), Vec::new());
    let mut running = None;
    for record in records {
        let (now, job) = (record.time.as_nanos(), record.job());
        match record.event {
            Event::START | Event::RESUME => running = Some((now, job)),
            Event::COMPLETE | Event::PREEMPT | Event::ABORT | Event::RUN_END => {
                let aborted_waiting = record.event == Event::ABORT && record.arg == 0;
                if let Some((start, who)) = running.filter(|_| !aborted_waiting) {
                    running = None;
                    let (operation, instance) = (who.operation.index(), who.instance);
                    match segments.last_mut() {
                        Some(last) if *last == (last.0, start, operation, instance) => last.1 = now,
                        _ if start < now => segments.push((start, now, operation, instance)),
                        _ => {}
                    }
                }
                if record.event == Event::COMPLETE {
                    completions.push((job.operation.index(), job.instance, now));
                }
            }
            _ => {}
        }
    }
    (segments, completions)
}

fn assert_agreement(system: &System, until: i64) {
    let naive = Naive::run(system, until);
    let (segments, completions) = told(&records(system, &[], until));
    let differs = (0..segments.len().max(naive.segments.len()))
        .find(|index| segments.get(*index) != naive.segments.get(*index));
    if let Some(index) = differs {
        panic!(
            "segment {index}: simulated {:?}, naive {:?} in {system:#?}",
            segments.get(index),
            naive.segments.get(index)
        );
    }
    assert_eq!(completions, naive.completions);
}

fn has_no_draws(system: &System) -> bool {
    let drawn = |exec: &Execution| matches!(exec, Execution::Uniform(..));
    system.operations().iter().all(|operation| !drawn(&system.subtask(operation.id).exec))
}

/// Every combination of strategy, lane dispatch, laxity and lateness rule.
fn policies() -> impl Iterator<Item = (Strategy, LaneDispatch, Laxity, Late)> {
    Strategy::ALL.iter().flat_map(|strategy| {
        LaneDispatch::ALL.iter().flat_map(move |dispatch| {
            Laxity::ALL.iter().flat_map(move |laxity| {
                Late::ALL.iter().map(move |late| (*strategy, *dispatch, *laxity, *late))
            })
        })
    })
}

fn under(description: &Description, policy: (Strategy, LaneDispatch, Laxity, Late)) -> System {
    let (strategy, lane_dispatch, laxity, late) = policy;
    System::new(Description { strategy, lane_dispatch, laxity, late, ..description.clone() })
        .expect("the policy is no reason to refuse a system")
}

/// The system with its drawn execution times replaced by their least.
fn without_draws(system: &System) -> Description {
    let mut description = Description::clone(system);
    for subtask in description.tasks.iter_mut().flat_map(|task| &mut task.subtasks) {
        if let Execution::Uniform(low, _) = subtask.exec {
            subtask.exec = Execution::Constant(low);
        }
    }
    description
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_systems_run_alike_under_every_policy(system in systems(Scope::ONE_PROCESSOR)) {
        let description = without_draws(&system);
        for policy in policies() {
            let system = under(&description, policy);
            assert!(has_no_draws(&system));
            assert_agreement(&system, 120);
        }
    }
}

/// Period, deadline, worst case, phase, criticality.
type Row = (i64, i64, i64, i64, u8);

fn rows(phases: &[i64], criticality: u8) -> Vec<Row> {
    let mut rows = Vec::new();
    for period in [2, 3, 5] {
        for wcet in 1..=period.min(3) {
            for deadline in [wcet, period, period + 2] {
                rows.extend(phases.iter().map(|phase| (period, deadline, wcet, *phase, criticality)));
            }
        }
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

fn two_tasks(rows: [Row; 2]) -> Description {
    let task = |(index, (period, deadline, wcet, phase, level)): (usize, Row)| {
        let name = format!("t{index}");
        let wcet = Work::from_nanos(wcet);
        let exec = Execution::Constant(wcet);
        Task {
            subtasks: vec![Subtask {
                name: name.clone(),
                node: 0,
                lanes: None,
                wcet,
                exec,
                after: Vec::new(),
                join: Join::All,
                bound: None,
                outputs: Vec::new(),
                inputs: Vec::new(),
                events: Vec::new(),
                subscription: None,
            }],
            name,
            period: Duration::from_nanos(period),
            deadline: Duration::from_nanos(deadline),
            phase: Duration::from_nanos(phase),
            jitter: Duration::ZERO,
            trigger: None,
            inherits_deadline: false,
            inherits_criticality: false,
            separation: None,
            communication: Communication::Implicit,
            criticality: Criticality::from_level(level).expect("0 to 4"),
            importance: 0,
            overrun: Overrun::Queue,
            sync: Synchronisation::Greedy,
        }
    };
    Description {
        chains: Vec::new(),
        schedulers: Vec::new(),
        threads: Vec::new(),
        name: "two".into(),
        strategy: Strategy::Rms,
        lane_dispatch: LaneDispatch::Preemptive,
        laxity: Laxity::Declared,
        late: Late::None,
        seed: 0,
        overhead: Overhead::default(),
        links: Vec::new(),
        channels: Vec::new(),
        nodes: vec![Node { name: "n".into(), cpus: vec![0] }],
        tasks: rows.into_iter().enumerate().map(task).collect(),
    }
}

/// Every pair of small tasks, one of fixed phase, of these criticalities.
fn assert_pairs_agree(levels: (u8, u8)) {
    let mut compared = 0u32;
    for first in rows(&[0], levels.0) {
        for second in rows(&[0, 1], levels.1) {
            let description = two_tasks([first, second]);
            for policy in policies() {
                assert_agreement(&under(&description, policy), 24);
                compared += 1;
            }
        }
    }
    assert!(compared > 12_500, "{compared} runs compared");
}

#[test]
fn all_pairs_of_small_tasks_run_alike_under_every_policy_where_neither_is_critical() {
    assert_pairs_agree((2, 2));
}

#[test]
fn all_pairs_of_small_tasks_run_alike_under_every_policy_where_the_first_is_critical() {
    assert_pairs_agree((4, 2));
}

#[test]
fn all_pairs_of_small_tasks_run_alike_under_every_policy_where_the_second_is_critical() {
    assert_pairs_agree((2, 4));
}

#[test]
fn all_pairs_of_small_tasks_run_alike_under_every_policy_where_both_are_critical() {
    assert_pairs_agree((4, 4));
}
