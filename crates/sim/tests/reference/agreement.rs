//! The simulator and the reference agree on who runs when.

use super::naive::{Happening, Naive, Segment};
use crate::replay::records;
use crate::systems::{Scope, systems};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::fmt::Debug;
use talea_model::{
    Communication, Criticality, Description, Execution, Join, LaneDispatch, Late, Laxity, Node, Overhead,
    Overrun, Strategy, Subtask, Synchronisation, System, Task,
};
use talea_record::{Event, JobId, Record};
use talea_time::{Duration, Work};

/// What records tell: who ran when, what was released and what completed. Of one instant in the order of operations and instances.
#[derive(Debug, Default)]
struct Told {
    segments: Vec<Segment>,
    releases: Vec<Happening>,
    completions: Vec<Happening>,
    /// By processor: who has it, and since when.
    running: BTreeMap<u16, (i64, JobId)>,
}

impl Told {
    fn by(records: &[Record]) -> Self {
        let mut told = Told::default();
        for record in records {
            told.take(record);
        }
        told.in_order()
    }

    fn by_naive(naive: Naive<'_>) -> Self {
        let Naive { segments, releases, completions, .. } = naive;
        Told { segments, releases, completions, ..Told::default() }.in_order()
    }

    fn in_order(mut self) -> Self {
        self.segments.sort_unstable_by_key(|(start, _, operation, instance)| (*start, *operation, *instance));
        self.releases.sort_unstable();
        self.completions.sort_unstable();
        self
    }

    fn take(&mut self, record: &Record) {
        let (now, job) = (record.time.as_nanos(), record.job());
        let happening = (now, job.operation.index(), job.instance);
        match record.event {
            Event::RELEASE => self.releases.push(happening),
            Event::START | Event::RESUME => {
                let before = self.running.insert(record.cpu, (now, job));
                assert_eq!(before, None, "{record:?}: a processor runs one job at a time");
            }
            Event::COMPLETE | Event::PREEMPT => {
                assert_eq!(self.stop(record.cpu, now), Some(job), "{record:?}: it has the processor");
                if record.event == Event::COMPLETE {
                    self.completions.push(happening);
                }
            }
            Event::ABORT if record.arg != 0 => {
                assert_eq!(self.stop(record.cpu, now), Some(job), "{record:?}: it has the processor");
            }
            Event::RUN_END => {
                let busy: Vec<u16> = self.running.keys().copied().collect();
                busy.into_iter().for_each(|cpu| _ = self.stop(cpu, now));
            }
            _ => {}
        }
    }

    /// Whoever has the processor has it no longer.
    fn stop(&mut self, cpu: u16, now: i64) -> Option<JobId> {
        let (start, job) = self.running.remove(&cpu)?;
        if start < now {
            self.segments.push((start, now, job.operation.index(), job.instance));
        }
        Some(job)
    }
}

/// # Panics
/// At the first that is not the same in both.
fn assert_same<T: PartialEq + Debug>(what: &str, simulated: &[T], naive: &[T], system: &System) {
    let differs =
        (0..simulated.len().max(naive.len())).find(|index| simulated.get(*index) != naive.get(*index));
    if let Some(index) = differs {
        let (simulated, naive) = (simulated.get(index), naive.get(index));
        panic!("{what} {index}: simulated {simulated:?}, naive {naive:?} in {system:#?}");
    }
}

fn assert_agreement(system: &System, until: i64) {
    let (naive, simulated) =
        (Told::by_naive(Naive::run(system, until)), Told::by(&records(system, &[], until)));
    assert_same("release", &simulated.releases, &naive.releases, system);
    assert_same("segment", &simulated.segments, &naive.segments, system);
    assert_same("completion", &simulated.completions, &naive.completions, system);
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// As many lanes execute as there are processors, the highest that have work, whatever keeps successors back: a protocol of each task, or one
    /// of all.
    #[test]
    fn random_systems_run_alike_on_several_processors(
        system in systems(Scope::SEVERAL_PROCESSORS), sync in prop::option::of(select(Synchronisation::ALL)),
    ) {
        let mut description = without_draws(&system);
        for task in &mut description.tasks {
            task.sync = sync.unwrap_or(task.sync);
        }
        let Description { lane_dispatch, laxity, late, .. } = description;
        for strategy in Strategy::ALL {
            assert_agreement(&under(&description, (*strategy, lane_dispatch, laxity, late)), 120);
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
