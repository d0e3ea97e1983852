//! Agreement with `response-time-analysis`, whose analyses are instances of verified ones (Bozhko and Brandenburg 2020).
//!
//! It counts responses and deadlines from the release, so the examined task has no jitter here, and under EDF none has.

use crate::sets::small;
use proptest::prelude::*;
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_point::SearchResult;
use response_time_analysis::supply::{Periodic, SupplyBound};
use response_time_analysis::time::{Duration as Time, Service};
use response_time_analysis::wcet::Scalar;
use response_time_analysis::{edf, fixed_priority};
use talea_analysis::edf::response;
use talea_analysis::fixed_priority::{nonpreemptive, preemptive};
use talea_analysis::system::Supply;
use talea_analysis::{Effort, Task};
use talea_time::Duration;

/// Where the other analysis gives up. Sets whose busy periods are longer are not compared.
const LIMIT: u64 = 20_000;

fn time(duration: Duration) -> Time {
    Time::from(duration.as_nanos().unsigned_abs())
}

fn arrivals(task: &Task) -> Sporadic {
    Sporadic::new(time(task.period()), time(task.jitter()))
}

fn cost(task: &Task) -> Scalar {
    Scalar::new(Service::from(task.wcet().as_nanos().unsigned_abs()))
}

fn requests(task: &Task) -> RBF<Sporadic, Scalar> {
    RBF::new(arrivals(task), cost(task))
}

fn without_jitter(task: &Task) -> Task {
    task.with_jitter(Duration::ZERO).expect("no jitter is not negative")
}

/// The other's result in nanoseconds, if it has one.
fn found(result: SearchResult) -> Option<u64> {
    result.ok().map(u64::from)
}

fn worst(duration: Duration) -> Option<u64> {
    Some(duration.as_nanos().unsigned_abs())
}

/// Whether the load is so high that a search may end without an answer.
fn heavy(tasks: &[Task]) -> bool {
    let load = |task: &Task| task.wcet().as_nanos() as f64 / task.period().as_nanos() as f64;
    tasks.iter().map(load).sum::<f64>() > 0.9
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn fixed_priorities_agree(tasks in small()) {
        let (last, higher) = tasks.split_last().unwrap();
        let task = without_jitter(last);
        let interfering: Vec<_> = higher.iter().map(requests).collect();
        let limit = Time::from(LIMIT);
        let theirs = fixed_priority::fully_preemptive::dedicated_uniproc_rta(&requests(&task), &interfering, limit);
        let theirs = found(theirs);
        prop_assert!(theirs.is_some() || heavy(&tasks), "the other implementation has no answer");
        if let Some(theirs) = theirs {
            let ours = preemptive::response_time(&task, higher, &mut Effort::default()).unwrap();
            prop_assert_eq!(worst(ours.unwrap().worst), Some(theirs));
        }
    }

    #[test]
    fn nonpreemptive_fixed_priorities_agree(tasks in small(), index: prop::sample::Index) {
        let index = index.index(tasks.len());
        let (higher, lower) = (&tasks[..index], &tasks[index + 1..]);
        let task = without_jitter(&tasks[index]);
        let blocking = lower.iter().map(|task| task.wcet().as_nanos().unsigned_abs() - 1).max().unwrap_or(0);
        let arrivals = arrivals(&task);
        let examined = fixed_priority::fully_nonpreemptive::TaskUnderAnalysis {
            wcet: cost(&task),
            arrivals: &arrivals,
            blocking_bound: Service::from(blocking),
        };
        let interfering: Vec<_> = higher.iter().map(requests).collect();
        let limit = Time::from(LIMIT);
        let theirs = fixed_priority::fully_nonpreemptive::dedicated_uniproc_rta(&examined, &interfering, limit);
        let theirs = found(theirs);
        prop_assert!(theirs.is_some() || heavy(&tasks), "the other implementation has no answer");
        if let Some(theirs) = theirs {
            let ours = nonpreemptive::response_time(&task, higher, lower, &mut Effort::default()).unwrap();
            prop_assert_eq!(worst(ours.unwrap().worst), Some(theirs));
        }
    }

    #[test]
    fn edf_agrees(tasks in small()) {
        let tasks: Vec<Task> = tasks.iter().map(without_jitter).collect();
        let (task, others) = tasks.split_first().unwrap();
        let requests: Vec<_> = others.iter().map(requests).collect();
        let rival = |(task, rbf)| edf::fully_preemptive::InterferingTask { rbf, deadline: time(Task::deadline(task)) };
        let rivals: Vec<_> = others.iter().zip(&requests).map(rival).collect();
        let own = crate::reference::requests(task);
        let examined = edf::fully_preemptive::TaskUnderAnalysis { rbf: &own, deadline: time(task.deadline()) };
        let theirs = edf::fully_preemptive::dedicated_uniproc_rta(&examined, &rivals, Time::from(LIMIT));
        let theirs = found(theirs);
        prop_assert!(theirs.is_some() || heavy(&tasks), "the other implementation has no answer");
        if let Some(theirs) = theirs {
            let ours = response::preemptive(&tasks, &mut Effort::default()).unwrap();
            prop_assert_eq!(worst(ours.unwrap()[0].worst), Some(theirs));
        }
    }

    #[test]
    fn nonpreemptive_edf_agrees(tasks in small()) {
        let tasks: Vec<Task> = tasks.iter().map(without_jitter).collect();
        let curves: Vec<Sporadic> = tasks.iter().map(arrivals).collect();
        let described = |(task, arrivals)| edf::fully_nonpreemptive::Task {
            wcet: cost(task),
            arrivals,
            deadline: time(Task::deadline(task)),
        };
        let mut all = tasks.iter().zip(&curves).map(described);
        let examined = all.next().unwrap();
        let rivals: Vec<_> = all.collect();
        let theirs = edf::fully_nonpreemptive::dedicated_uniproc_rta(&examined, &rivals, Time::from(LIMIT));
        let theirs = found(theirs);
        prop_assert!(theirs.is_some() || heavy(&tasks), "the other implementation has no answer");
        if let Some(theirs) = theirs {
            let ours = response::nonpreemptive(&tasks, &mut Effort::default()).unwrap();
            prop_assert_eq!(worst(ours.unwrap()[0].worst), Some(theirs));
        }
    }

    /// The supply of a periodic resource, and the time that an amount takes.
    #[test]
    fn periodic_resources_agree(amount in 1_u64..200, more in 0_u64..200, window in 0_u64..2_000, work in 1_u64..2_000) {
        let period = amount + more;
        let ours = Supply::Periodic { amount, period, delay: more };
        let theirs = Periodic::new(Service::from(amount), Time::from(period));
        prop_assert_eq!(ours.within(window), u64::from(theirs.provided_service(Time::from(window))));
        let time = u64::try_from(ours.time_for(work.into())).unwrap();
        prop_assert_eq!(time, u64::from(theirs.service_time(Service::from(work))));
    }
}
