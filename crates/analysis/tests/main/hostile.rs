//! Numbers that make a search long, or leave the range of times: every analysis answers within its budget.

use crate::sets::task;
use proptest::prelude::*;
use talea_analysis::chain::{Chain, Chains, Subtask, holistic, sa_ds, sa_pm};
use talea_analysis::critical_set::critical_set;
use talea_analysis::edf::{Verdict, demand, nonpreemptive, qpa, response};
use talea_analysis::utilisation::{compare_with_one, hyperbolic, liu_layland, total};
use talea_analysis::{AnalysisError, Effort, Task, fixed_priority};
use talea_time::{Duration, Work};

const YEAR: i64 = 365 * 86_400 * 1_000_000_000;

/// Runs every analysis of one processor, each with a budget of `steps`, and asserts that none exceeds it.
fn run_all(tasks: &[Task], steps: u64) {
    type Analysis = fn(&[Task], &mut Effort) -> Result<(), AnalysisError>;
    let analyses: [Analysis; 17] = [
        |tasks, effort| total(tasks, effort).map(drop),
        |tasks, effort| compare_with_one(tasks, effort).map(drop),
        |tasks, effort| liu_layland::holds(tasks, effort).map(drop),
        |tasks, effort| hyperbolic::holds(tasks, effort).map(drop),
        |tasks, effort| hyperbolic::product(tasks, effort).map(drop),
        |tasks, effort| fixed_priority::preemptive::response_times(tasks, effort).map(drop),
        |tasks, effort| fixed_priority::preemptive::schedulable(tasks, effort).map(drop),
        |tasks, effort| fixed_priority::nonpreemptive::response_times(tasks, effort).map(drop),
        |tasks, effort| fixed_priority::nonpreemptive::schedulable(tasks, effort).map(drop),
        |tasks, effort| demand::test(tasks, effort).map(drop),
        |tasks, effort| demand::busy_period(tasks, effort).map(drop),
        |tasks, effort| qpa::test(tasks, effort).map(drop),
        |tasks, effort| nonpreemptive::test(tasks, effort).map(drop),
        |tasks, effort| nonpreemptive::first_failure(tasks, effort).map(drop),
        |tasks, effort| response::preemptive(tasks, effort).map(drop),
        |tasks, effort| response::nonpreemptive(tasks, effort).map(drop),
        |tasks, effort| critical_set(tasks, effort).map(drop),
    ];
    for (index, analysis) in analyses.iter().enumerate() {
        let mut effort = Effort::new(steps);
        if let Err(AnalysisError::TooCostly { steps: told }) = analysis(tasks, &mut effort) {
            assert_eq!((told, effort.spent()), (steps, steps), "analysis {index}");
        }
        assert!(effort.spent() <= steps, "analysis {index}");
    }
}

#[test]
fn an_overload_of_a_year_every_nanosecond_is_seen_at_once() {
    let tasks = [task(1, YEAR, 1, 0), task(YEAR, 1, 1, 0)];
    let effort = &mut Effort::new(1_000);
    assert_eq!(fixed_priority::preemptive::response_times(&tasks, effort), Ok(vec![None, None]));
    assert_eq!(demand::test(&tasks, effort), Ok(Verdict::Overloaded));
    assert_eq!(qpa::test(&tasks, effort), Ok(Verdict::Overloaded));
    assert_eq!(response::nonpreemptive(&tasks, effort), Ok(None));
}

#[test]
fn a_full_processor_with_a_hyperperiod_of_ages_is_given_up() {
    // With odd p and q, (p - 1)/2p + (q - 1)/2q + (p + q)/2pq = 1.
    let (p, q) = (999_999_937, 999_999_893);
    let tasks = [task(p, p / 2, p, 1), task(q, q / 2, q, 1), task(p * q, (p + q) / 2, p, 0)];
    assert_eq!(compare_with_one(&tasks, &mut Effort::default()), Ok(std::cmp::Ordering::Equal));
    let effort = &mut Effort::new(1_000_000);
    assert_eq!(response::preemptive(&tasks, effort), Err(AnalysisError::TooCostly { steps: 1_000_000 }));
    run_all(&tasks, 1_000_000);
}

#[test]
fn nearly_full_processors_are_given_up() {
    let long = 1_000_000_000_000_000;
    run_all(&[task(2, 1, 2, 0), task(long, long / 2 - 1, long, 0)], 100_000);
    run_all(&[task(1, 1, 1, 0)], 100_000);
    run_all(&[task(3, 1, 3, 0), task(7, 4, 7, 0), task(long, 1, 1, 0)], 100_000);
}

#[test]
fn a_million_tasks_are_given_up() {
    let tasks: Vec<Task> = (0..1_000_000).map(|index| task(1_000_000 + index, 1, 2_000_000, 0)).collect();
    let effort = &mut Effort::new(2_000_000);
    let given_up = Err(AnalysisError::TooCostly { steps: 2_000_000 });
    assert_eq!(fixed_priority::preemptive::response_times(&tasks, effort), given_up);
    run_all(&tasks[..100_000], 2_000_000);
}

#[test]
fn responses_beyond_the_range_are_an_overflow() {
    let half = i64::MAX / 2;
    let tasks =
        [task(i64::MAX, half, i64::MAX, 0), task(i64::MAX, half, i64::MAX, 0), task(i64::MAX, 1, 1, 9)];
    let effort = &mut Effort::default();
    let overflow = AnalysisError::Overflow;
    let late = task(i64::MAX, 1, 1, i64::MAX);
    assert_eq!(fixed_priority::preemptive::response_time(&late, &[], effort), Err(overflow.clone()));
    assert_eq!(response::preemptive(&[late], effort), Err(overflow.clone()));
    assert_eq!(demand::demand(&[task(1, half, 1, 0)], Duration::MAX), Err(overflow));
    run_all(&tasks, 100_000);
}

#[test]
fn chains_that_feed_their_own_jitter_diverge() {
    let subtask = |processor, priority, wcet, after: &[usize]| Subtask {
        processor,
        priority,
        wcet: Work::from_nanos(wcet),
        bcet: Work::ZERO,
        blocking: Duration::ZERO,
        delay: Duration::ZERO,
        after: after.to_vec(),
    };
    let chain = |first, second| Chain {
        period: Duration::from_nanos(10),
        jitter: Duration::ZERO,
        subtasks: vec![subtask(first, 2, 4, &[]), subtask(second, 1, 5, &[0])],
    };
    let chains = Chains::new(vec![chain(0, 1), chain(1, 0)]).unwrap();
    let effort = &mut Effort::default();
    // Each processor carries 90 %, but a first subtask's bound grows by at least what the other chain's grows by.
    let greedy = sa_ds::bounds(&chains, 300, effort).unwrap();
    assert_eq!(greedy.end_to_end, [None, None]);
    assert_eq!(holistic::bounds(&chains, 300, effort), Ok(greedy));
    let guarded = sa_pm::bounds(&chains, effort).unwrap();
    assert_eq!(guarded.end_to_end, [Some(Duration::from_nanos(14)); 2]);
    let few = &mut Effort::new(50);
    assert_eq!(sa_ds::bounds(&chains, u32::MAX, few), Err(AnalysisError::TooCostly { steps: 50 }));
}

/// Any time, and often one at a border.
fn time(least: i64) -> impl Strategy<Value = i64> {
    let border =
        prop::sample::select(vec![1, 2, 3, 1 << 31, 1 << 32, 1 << 61, (1 << 62) + 1, i64::MAX - 1, i64::MAX]);
    prop_oneof![border, least..100, least..=i64::MAX].prop_map(move |time| time.max(least))
}

fn any_task() -> impl Strategy<Value = Task> {
    (time(1), time(1), time(1), prop_oneof![Just(0), time(0)], prop_oneof![Just(0), time(0)]).prop_map(
        |(period, wcet, deadline, jitter, blocking)| {
            task(period, wcet, deadline, jitter).with_blocking(Duration::from_nanos(blocking)).unwrap()
        },
    )
}

/// The textbook's recurrence in numbers that cannot overflow here, for a few rounds.
fn textbook(task: &Task, higher: &[Task]) -> Option<i128> {
    let numbers = |task: &Task| {
        let (jitter, blocking) = (task.jitter().as_nanos(), task.blocking().as_nanos());
        (task.period().as_nanos(), task.wcet().as_nanos(), jitter, blocking)
    };
    let ((period, wcet, jitter, blocking), mut worst) = (numbers(task), 0);
    for job in 0..200_i128 {
        let base = (job + 1) * i128::from(wcet) + i128::from(blocking);
        let mut window = base;
        let settled = (0..200).any(|_| {
            let interference = higher.iter().map(|task| {
                let (period, wcet, jitter, _) = numbers(task);
                let last = window.saturating_add(jitter.into()) - 1;
                last.div_euclid(period.into()).saturating_add(1).saturating_mul(wcet.into())
            });
            let needed = interference.fold(base, i128::saturating_add);
            std::mem::replace(&mut window, needed) == needed
        });
        if !settled || window == i128::MAX {
            return None;
        }
        worst = worst.max(window + i128::from(jitter) - job * i128::from(period));
        if window + i128::from(jitter) <= (job + 1) * i128::from(period) {
            return Some(worst);
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_numbers_break_an_analysis(tasks in prop::collection::vec(any_task(), 0..6)) {
        run_all(&tasks, 20_000);
    }

    #[test]
    fn what_is_found_at_the_borders_is_right(tasks in prop::collection::vec(any_task(), 1..5)) {
        let (task, higher) = tasks.split_last().unwrap();
        let found = fixed_priority::preemptive::response_time(task, higher, &mut Effort::new(20_000));
        if let (Ok(Some(response)), Some(expected)) = (&found, textbook(task, higher)) {
            prop_assert_eq!(i128::from(response.worst.as_nanos()), expected);
        }
        if found == Ok(None) {
            prop_assert_eq!(textbook(task, higher), None);
        }
    }
}
