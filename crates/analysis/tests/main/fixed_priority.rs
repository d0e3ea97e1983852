//! Fixed priorities against the naive scheduler and against themselves.

use crate::naive::{Dispatch, Order, worst_over_offsets};
use crate::sets::{LONGEST_WINDOW, few, hyperperiod, small};
use proptest::prelude::*;
use talea_analysis::fixed_priority::{Response, nonpreemptive, preemptive};
use talea_analysis::{Effort, Task};
use talea_time::{Duration, Work};

const NS: fn(i64) -> Duration = Duration::from_nanos;

fn bounds(responses: &[Option<Response>]) -> Vec<Option<i64>> {
    responses.iter().map(|response| response.map(|response| response.worst.as_nanos())).collect()
}

fn naive(tasks: &[Task], dispatch: Dispatch, gate: i64) -> Vec<Option<i64>> {
    let horizon = 2 * hyperperiod(tasks) + LONGEST_WINDOW;
    let worst = |task| worst_over_offsets(tasks, Order::Priority, dispatch, task, horizon, gate);
    (0..tasks.len()).map(|task| Some(worst(task))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    /// Jitter included: the bound is reached and never exceeded, whatever the offsets.
    #[test]
    fn preemptive_response_times_are_the_worst_of_all_offsets(tasks in few(8)) {
        let responses = preemptive::response_times(&tasks, &mut Effort::default()).unwrap();
        prop_assert_eq!(bounds(&responses), naive(&tasks, Dispatch::Preemptive, 0));
    }

    #[test]
    fn nonpreemptive_response_times_are_the_worst_of_all_offsets(tasks in few(1)) {
        let responses = nonpreemptive::response_times(&tasks, &mut Effort::default()).unwrap();
        prop_assert_eq!(bounds(&responses), naive(&tasks, Dispatch::NonPreemptive, 0));
    }

    /// The critical instant of tasks with jitter needs a blocker without any, so not every bound is reached here.
    #[test]
    fn nonpreemptive_response_times_with_jitter_are_never_exceeded(tasks in few(5), gate in 0_i64..3) {
        let responses = nonpreemptive::response_times(&tasks, &mut Effort::default()).unwrap();
        for (bound, seen) in bounds(&responses).into_iter().zip(naive(&tasks, Dispatch::NonPreemptive, gate)) {
            prop_assert!(bound >= seen, "{:?} < {:?}", bound, seen);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn verdicts_are_what_the_response_times_say(tasks in small()) {
        let meets = |responses: Vec<Option<Response>>| {
            let mut pairs = responses.iter().zip(&tasks);
            pairs.all(|(response, task)| response.is_some_and(|response| response.worst <= task.deadline()))
        };
        let effort = &mut Effort::default();
        let responses = preemptive::response_times(&tasks, effort).unwrap();
        prop_assert_eq!(preemptive::schedulable(&tasks, effort).unwrap(), meets(responses));
        let responses = nonpreemptive::response_times(&tasks, effort).unwrap();
        prop_assert_eq!(nonpreemptive::schedulable(&tasks, effort).unwrap(), meets(responses));
    }

    #[test]
    fn one_task_alone_has_the_response_time_it_has_among_all(
        tasks in small(),
        blocking in prop::collection::vec(0_i64..40, 12),
        index: prop::sample::Index,
    ) {
        let with = |(task, blocking): (&Task, i64)| task.with_blocking(NS(blocking)).unwrap();
        let tasks: Vec<Task> = tasks.iter().zip(blocking).map(with).collect();
        let index = index.index(tasks.len());
        let (higher, task, lower) = (&tasks[..index], tasks[index], &tasks[index + 1..]);
        let effort = &mut Effort::default();
        let all = preemptive::response_times(&tasks, effort).unwrap();
        prop_assert_eq!(preemptive::response_time(&task, higher, effort).unwrap(), all[index]);
        let all = nonpreemptive::response_times(&tasks, effort).unwrap();
        prop_assert_eq!(nonpreemptive::response_time(&task, higher, lower, effort).unwrap(), all[index]);
    }

    /// Blocking delays as a job of a higher task that never comes back does.
    #[test]
    fn blocking_is_one_job_of_higher_priority(tasks in small(), blocking in 1_i64..40) {
        let (task, higher) = tasks.split_last().unwrap();
        let never = Task::new(NS(1_000_000_000_000), Work::from_nanos(blocking)).unwrap();
        let with: Vec<Task> = higher.iter().copied().chain([never]).collect();
        let blocked = task.with_blocking(NS(blocking)).unwrap();
        let effort = &mut Effort::new(1_000_000);
        let (Ok(own), Ok(other)) = (
            preemptive::response_time(&blocked, higher, effort),
            preemptive::response_time(task, &with, effort),
        ) else {
            return Err(TestCaseError::reject("a utilisation very close to 1"));
        };
        // At a utilisation of exactly 1 the other task is an overload.
        prop_assume!(own.is_none_or(|own| own.busy_period.is_some()));
        prop_assert_eq!(own, other);
    }
}
