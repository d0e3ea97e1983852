//! End-to-end bounds against a naive simulation of processors that decide anew at every unit of time.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use talea_analysis::Effort;
use talea_analysis::chain::{Chain, Chains, Subtask, holistic, sa_ds, sa_pm};
use talea_time::{Duration, Work};

const NS: fn(i64) -> Duration = Duration::from_nanos;
/// Bounds beyond so many periods are given up.
const PERIODS: u32 = 50;
/// How long a simulation lasts; arrivals end early enough for every bounded response.
const END: i64 = 1_500;
const LAST_ARRIVAL: i64 = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    /// When the predecessors have completed and their message has arrived.
    Greedy,
    /// As greedy, but a period after the predecessor instance of the same subtask at the earliest.
    Guarded,
}

struct Job {
    chain: usize,
    subtask: usize,
    arrival: i64,
    /// Known once all predecessors have completed.
    release: Option<i64>,
    left: i64,
}

/// The longest end-to-end response of each chain with random phases, jitter, execution times and message delays.
fn simulate(chains: &[Chain], release: Release, seed: u64) -> Vec<i64> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut jobs = Vec::new();
    // By chain and subtask, before which its next instance is not released: messages do not overtake each other.
    let mut earliest: Vec<Vec<i64>> = chains.iter().map(|chain| vec![0; chain.subtasks.len()]).collect();
    for (index, chain) in chains.iter().enumerate() {
        let mut arrival = random.random_range(0..chain.period.as_nanos());
        while arrival < LAST_ARRIVAL {
            let start = arrival + random.random_range(0..=chain.jitter.as_nanos());
            for (position, subtask) in chain.subtasks.iter().enumerate() {
                jobs.push(Job {
                    chain: index,
                    subtask: position,
                    arrival,
                    release: subtask.after.is_empty().then_some(start),
                    left: random.random_range(subtask.bcet.as_nanos().max(1)..=subtask.wcet.as_nanos()),
                });
            }
            arrival += chain.period.as_nanos();
        }
    }
    let mut worst = vec![0; chains.len()];
    for now in 0..END {
        let mut done = Vec::new();
        for processor in 0..2 {
            let described = |job: &Job| &chains[job.chain].subtasks[job.subtask];
            let here = |job: &Job| described(job).processor == processor && job.left > 0;
            let ready = (0..jobs.len())
                .filter(|&job| here(&jobs[job]) && jobs[job].release.is_some_and(|release| release <= now));
            // Of equal priorities the earlier release goes first, of those an arbitrary one.
            let first = ready.min_by_key(|&job| (described(&jobs[job]).priority, jobs[job].release));
            let Some(job) = first else { continue };
            jobs[job].left -= 1;
            if jobs[job].left == 0 {
                done.push(job);
            }
        }
        for job in done {
            let Job { chain, arrival, .. } = jobs[job];
            worst[chain] = worst[chain].max(now + 1 - arrival);
            let instance = job - jobs[job].subtask;
            for (position, subtask) in chains[chain].subtasks.iter().enumerate() {
                let ready = subtask.after.iter().all(|before| jobs[instance + before].left == 0);
                if subtask.after.is_empty() || !ready || jobs[instance + position].release.is_some() {
                    continue;
                }
                let signal = now + 1 + random.random_range(0..=subtask.delay.as_nanos());
                let earliest = &mut earliest[chain][position];
                let released = signal.max(*earliest);
                *earliest = match release {
                    Release::Greedy => released,
                    Release::Guarded => released + chains[chain].period.as_nanos(),
                };
                jobs[instance + position].release = Some(released);
            }
        }
    }
    assert!(jobs.iter().all(|job| job.left == 0), "the simulation is too short");
    worst
}

fn subtask() -> impl Strategy<Value = Subtask> {
    (0_usize..2, 0_u32..4, 1_i64..4, 0_i64..4, prop_oneof![Just(0_i64), 0_i64..6]).prop_map(
        |(processor, priority, wcet, bcet, delay)| Subtask {
            processor,
            priority,
            wcet: Work::from_nanos(wcet),
            bcet: Work::from_nanos(bcet.min(wcet)),
            blocking: Duration::ZERO,
            delay: NS(delay),
            after: Vec::new(),
        },
    )
}

/// A chain, or three subtasks of which the last waits for the other two.
fn chain() -> impl Strategy<Value = Chain> {
    let jitter = prop_oneof![Just(0_i64), 0_i64..8];
    (8_i64..30, jitter, prop::collection::vec(subtask(), 1..4), any::<bool>()).prop_map(
        |(period, jitter, mut subtasks, joins)| {
            for (position, subtask) in subtasks.iter_mut().enumerate() {
                subtask.after = position.checked_sub(1).into_iter().collect();
            }
            if let ([_, second, third], true) = (&mut subtasks[..], joins) {
                second.after = vec![];
                third.after = vec![0, 1];
            }
            Chain { period: NS(period), jitter: NS(jitter), subtasks }
        },
    )
}

fn never_exceeded(bounds: &[Option<Duration>], seen: &[i64]) -> Result<(), TestCaseError> {
    for (bound, seen) in bounds.iter().zip(seen) {
        prop_assert!(bound.is_none_or(|bound| bound.as_nanos() >= *seen), "{:?} < {}", bound, seen);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn greedy_responses_stay_within_their_bounds(parts in prop::collection::vec(chain(), 1..4), seed: u64) {
        let chains = Chains::new(parts.clone()).unwrap();
        let effort = &mut Effort::default();
        let (ds, holistic) = (sa_ds::bounds(&chains, PERIODS, effort), holistic::bounds(&chains, PERIODS, effort));
        let (ds, holistic) = (ds.unwrap().end_to_end, holistic.unwrap().end_to_end);
        // Taking best cases off the jitter can only tighten a bound.
        for (ds, holistic) in ds.iter().zip(&holistic) {
            prop_assert!(ds.is_none() || holistic.is_some_and(|holistic| Some(holistic) <= *ds));
        }
        prop_assume!(holistic.iter().all(Option::is_some));
        for draw in 0..10 {
            never_exceeded(&holistic, &simulate(&parts, Release::Greedy, seed.wrapping_add(draw)))?;
        }
    }

    #[test]
    fn guarded_responses_stay_within_their_bounds(parts in prop::collection::vec(chain(), 1..4), seed: u64) {
        let chains = Chains::new(parts.clone()).unwrap();
        let bounds = sa_pm::bounds(&chains, &mut Effort::default()).unwrap().end_to_end;
        prop_assume!(bounds.iter().all(|bound| bound.is_some_and(|bound| bound < NS(END - LAST_ARRIVAL))));
        for draw in 0..10 {
            never_exceeded(&bounds, &simulate(&parts, Release::Guarded, seed.wrapping_add(draw)))?;
        }
    }

    #[test]
    fn without_best_cases_the_holistic_bounds_are_those_of_greedy_releases(
        mut parts in prop::collection::vec(chain(), 1..4),
    ) {
        for subtask in parts.iter_mut().flat_map(|chain| &mut chain.subtasks) {
            subtask.bcet = Work::ZERO;
        }
        let chains = Chains::new(parts).unwrap();
        let effort = &mut Effort::default();
        let greedy = sa_ds::bounds(&chains, PERIODS, effort).unwrap();
        prop_assert_eq!(holistic::bounds(&chains, PERIODS, effort).unwrap(), greedy);
    }
}

fn plain(processor: usize, priority: u32, wcet: i64, after: &[usize]) -> Subtask {
    Subtask {
        processor,
        priority,
        wcet: Work::from_nanos(wcet),
        bcet: Work::ZERO,
        blocking: Duration::ZERO,
        delay: Duration::ZERO,
        after: after.to_vec(),
    }
}

#[test]
fn a_chain_alone_takes_its_work_its_messages_and_its_jitter() {
    let second = Subtask { delay: NS(5), blocking: NS(1), ..plain(1, 0, 3, &[0]) };
    let alone = Chain { period: NS(100), jitter: NS(7), subtasks: vec![plain(0, 0, 2, &[]), second] };
    let chains = Chains::new(vec![alone]).unwrap();
    let effort = &mut Effort::default();
    let guarded = sa_pm::bounds(&chains, effort).unwrap();
    // 7 + 2 from the arrival, and 1 + 3 from the release.
    assert_eq!(guarded.subtasks, [[Some(NS(9)), Some(NS(4))]]);
    assert_eq!(guarded.end_to_end, [Some(NS(18))]);
    let greedy = sa_ds::bounds(&chains, PERIODS, effort).unwrap();
    assert_eq!(greedy.subtasks, [[Some(NS(9)), Some(NS(18))]]);
}

#[test]
fn a_join_waits_for_its_latest_predecessor() {
    let subtasks = vec![plain(0, 0, 2, &[]), plain(1, 0, 9, &[]), plain(2, 0, 1, &[0, 1])];
    let chains = Chains::new(vec![Chain { period: NS(20), jitter: NS(0), subtasks }]).unwrap();
    let effort = &mut Effort::default();
    assert_eq!(sa_pm::bounds(&chains, effort).unwrap().end_to_end, [Some(NS(10))]);
    assert_eq!(holistic::bounds(&chains, PERIODS, effort).unwrap().end_to_end, [Some(NS(10))]);
}

#[test]
fn best_cases_take_off_jitter_and_so_interference() {
    // The second subtask of the first chain is released 4 to 5 after its arrival: never twice within 6.
    let first = Subtask { bcet: Work::from_nanos(4), ..plain(0, 0, 5, &[]) };
    let interfering = Chain { period: NS(10), jitter: NS(0), subtasks: vec![first, plain(1, 0, 4, &[0])] };
    let other = Chain { period: NS(30), jitter: NS(0), subtasks: vec![plain(1, 1, 2, &[])] };
    let chains = Chains::new(vec![interfering, other]).unwrap();
    let effort = &mut Effort::default();
    assert_eq!(sa_ds::bounds(&chains, PERIODS, effort).unwrap().end_to_end[1], Some(NS(10)));
    assert_eq!(holistic::bounds(&chains, PERIODS, effort).unwrap().end_to_end[1], Some(NS(6)));
}

#[test]
fn an_overloaded_processor_leaves_others_their_bounds() {
    let overload =
        Chain { period: NS(4), jitter: NS(0), subtasks: vec![plain(0, 1, 5, &[]), plain(1, 1, 1, &[0])] };
    let fine =
        Chain { period: NS(10), jitter: NS(0), subtasks: vec![plain(0, 0, 2, &[]), plain(1, 0, 2, &[0])] };
    let chains = Chains::new(vec![overload, fine]).unwrap();
    let effort = &mut Effort::default();
    let guarded = sa_pm::bounds(&chains, effort).unwrap();
    assert_eq!(guarded.subtasks, [[None, Some(NS(3))], [Some(NS(2)), Some(NS(2))]]);
    assert_eq!(guarded.end_to_end, [None, Some(NS(4))]);
    let greedy = sa_ds::bounds(&chains, PERIODS, effort).unwrap();
    assert_eq!(greedy.subtasks, [[None, None], [Some(NS(2)), Some(NS(4))]]);
}
