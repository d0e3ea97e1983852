//! EDF against the naive scheduler, and its tests against each other.

use crate::naive::{Dispatch, Order, worst_over_offsets};
use crate::sets::{LONGEST_WINDOW, few, full, hyperperiod, small};
use proptest::prelude::*;
use talea_analysis::edf::{Verdict, demand, nonpreemptive, qpa, response};
use talea_analysis::{AnalysisError, Effort, Task};
use talea_time::Duration;

fn bounds(responses: Option<Vec<response::Response>>) -> Vec<i64> {
    let responses = responses.expect("the utilisation is at most 1");
    responses.iter().map(|response| response.worst.as_nanos()).collect()
}

fn naive(tasks: &[Task], dispatch: Dispatch, gate: i64) -> Vec<i64> {
    let horizon = 2 * hyperperiod(tasks) + LONGEST_WINDOW;
    let worst = |task| worst_over_offsets(tasks, Order::Deadline, dispatch, task, horizon, gate);
    (0..tasks.len()).map(worst).collect()
}

fn meets(tasks: &[Task], responses: &[i64]) -> bool {
    tasks.iter().zip(responses).all(|(task, response)| *response <= task.deadline().as_nanos())
}

/// Whether some job has its deadline `time` after a release of all tasks that uses up their jitter.
fn is_a_deadline(tasks: &[Task], time: Duration) -> bool {
    tasks.iter().any(|task| {
        let first = (task.deadline() - task.jitter()).max(Duration::ZERO);
        time >= first && (time - first).as_nanos() % task.period().as_nanos() == 0
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    /// Jitter included: the bound is reached and never exceeded, and the demand says the same of the deadlines.
    #[test]
    fn preemptive_response_times_are_the_worst_of_all_offsets(tasks in few(6)) {
        let effort = &mut Effort::default();
        let seen = naive(&tasks, Dispatch::Preemptive, 0);
        prop_assert_eq!(bounds(response::preemptive(&tasks, effort).unwrap()), seen.clone());
        prop_assert_eq!(demand::test(&tasks, effort).unwrap().is_schedulable(), meets(&tasks, &seen));
    }

    #[test]
    fn nonpreemptive_response_times_are_the_worst_of_all_offsets(tasks in few(1)) {
        let effort = &mut Effort::default();
        let seen = naive(&tasks, Dispatch::NonPreemptive, 0);
        prop_assert_eq!(bounds(response::nonpreemptive(&tasks, effort).unwrap()), seen.clone());
        prop_assert_eq!(nonpreemptive::test(&tasks, effort).unwrap().is_schedulable(), meets(&tasks, &seen));
    }

    /// The critical instant of tasks with jitter needs a blocker without any, so not every bound is reached here.
    #[test]
    fn nonpreemptive_response_times_with_jitter_are_never_exceeded(tasks in few(5), gate in 0_i64..3) {
        let responses = bounds(response::nonpreemptive(&tasks, &mut Effort::default()).unwrap());
        for (bound, seen) in responses.into_iter().zip(naive(&tasks, Dispatch::NonPreemptive, gate)) {
            prop_assert!(bound >= seen, "{} < {}", bound, seen);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn the_tests_agree_with_each_other_and_with_the_response_times(tasks in small()) {
        let effort = &mut Effort::new(20_000_000);
        let verdicts = || -> Result<_, AnalysisError> {
            let by_demand = demand::test(&tasks, effort)?;
            let responses = response::preemptive(&tasks, effort)?;
            Ok((by_demand, qpa::test(&tasks, effort)?, responses))
        }();
        let Ok((by_demand, by_qpa, responses)) = verdicts else {
            return Err(TestCaseError::reject("a utilisation very close to 1"));
        };
        prop_assert_eq!(by_demand.is_schedulable(), by_qpa.is_schedulable());
        prop_assert_eq!(responses.is_none(), by_demand == Verdict::Overloaded);
        if let Some(responses) = responses {
            prop_assert_eq!(meets(&tasks, &bounds(Some(responses))), by_demand.is_schedulable());
        }
        if let (Verdict::Miss { deadline: first }, Verdict::Miss { deadline: some }) = (by_demand, by_qpa) {
            prop_assert!(first <= some);
            let needed = |window| demand::demand(&tasks, window).unwrap().at_full_speed();
            prop_assert!(needed(first) > first);
            prop_assert!(needed(some) > some);
            prop_assert!(is_a_deadline(&tasks, first) && is_a_deadline(&tasks, some));
        }
    }

    #[test]
    fn the_nonpreemptive_tests_agree_with_each_other_and_with_the_response_times(tasks in small()) {
        let effort = &mut Effort::new(20_000_000);
        let verdicts = || -> Result<_, AnalysisError> {
            let first = nonpreemptive::first_failure(&tasks, effort)?;
            let responses = response::nonpreemptive(&tasks, effort)?;
            Ok((first, nonpreemptive::test(&tasks, effort)?, responses))
        }();
        let Ok((first, any, responses)) = verdicts else {
            return Err(TestCaseError::reject("a utilisation very close to 1"));
        };
        prop_assert_eq!(first.is_schedulable(), any.is_schedulable());
        prop_assert_eq!(responses.is_none(), first == Verdict::Overloaded);
        if let Some(responses) = responses {
            prop_assert_eq!(meets(&tasks, &bounds(Some(responses))), first.is_schedulable());
        }
        if let (Verdict::Miss { deadline: first }, Verdict::Miss { deadline: some }) = (first, any) {
            prop_assert!(first <= some);
            prop_assert!(is_a_deadline(&tasks, first) && is_a_deadline(&tasks, some));
        }
    }

    /// With blocking the demand test is sufficient: it never accepts what the response times refuse.
    #[test]
    fn blocking_is_counted_alike(tasks in prop_oneof![2 => small().boxed(), 1 => full(4).boxed()], blocking in prop::collection::vec(0_i64..40, 12)) {
        let with = |(task, blocking): (&Task, i64)| task.with_blocking(Duration::from_nanos(blocking)).unwrap();
        let tasks: Vec<Task> = tasks.iter().zip(blocking).map(with).collect();
        let effort = &mut Effort::new(20_000_000);
        let found = (demand::test(&tasks, effort), qpa::test(&tasks, effort), response::preemptive(&tasks, effort));
        let (Ok(by_demand), Ok(by_qpa), Ok(responses)) = found else {
            return Err(TestCaseError::reject("a utilisation very close to 1"));
        };
        prop_assert_eq!(by_demand.is_schedulable(), by_qpa.is_schedulable());
        if let Some(responses) = responses {
            prop_assert_eq!(meets(&tasks, &bounds(Some(responses))), by_demand.is_schedulable());
        }
    }
}
