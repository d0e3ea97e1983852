//! Fixed priority directly over threads that come, go and change their priority.

use super::Machine;
use proptest::prelude::*;
use talea_policy::hierarchy::{Engine, Message, Parameters, Refusal, SchedulerId, VpId};
use talea_policy::job::Job;
use talea_policy::scheduler::FixedPriority;
use talea_time::{Duration, Instant, Work};

#[derive(Clone, Debug)]
enum Act {
    Join { priority: i32 },
    Leave { thread: usize },
    Request { thread: usize },
    Release { thread: usize },
    Change { thread: usize, priority: i32 },
}

fn acts() -> impl Strategy<Value = Vec<(Vec<Act>, i64)>> {
    let thread = 0..16usize;
    let act = prop_oneof![
        2 => (0..80i32).prop_map(|priority| Act::Join { priority }),
        1 => thread.clone().prop_map(|thread| Act::Leave { thread }),
        4 => thread.clone().prop_map(|thread| Act::Request { thread }),
        3 => thread.clone().prop_map(|thread| Act::Release { thread }),
        2 => (thread, 0..80i32).prop_map(|(thread, priority)| Act::Change { thread, priority }),
    ];
    proptest::collection::vec((proptest::collection::vec(act, 0..4), 0..3i64), 1..60)
}

fn any_job(now: Instant, thread: VpId) -> Job {
    Job { release: now, deadline: now, wcet: Work::ZERO, rank: 0, number: 0, tag: thread.index() as u32 }
}

fn apply(machine: &mut Machine, root: SchedulerId, threads: &mut Vec<(VpId, i32)>, act: &Act) {
    let parameters = |act: &Act| match act {
        Act::Join { priority } | Act::Change { priority, .. } => Parameters::Priority(*priority),
        _ => Parameters::None,
    };
    let given = parameters(act);
    let taken = Refusal::Taken { scheduler: "fixed-priority", given };
    let chosen = match act {
        Act::Join { priority } => {
            let is_taken = threads.iter().any(|(_, other)| other == priority);
            match machine.engine.add_thread(root, given) {
                Ok(thread) => {
                    assert!(!is_taken, "one VP per priority");
                    threads.push((thread, *priority));
                }
                Err(refusal) => assert_eq!((is_taken, refusal), (true, taken)),
            }
            return;
        }
        Act::Leave { thread } | Act::Request { thread } | Act::Release { thread } => *thread,
        Act::Change { thread, .. } => *thread,
    };
    if threads.is_empty() {
        return;
    }
    let index = chosen % threads.len();
    let thread = threads[index].0;
    match act {
        Act::Leave { .. } if !machine.wants(thread) => {
            machine.engine.remove_thread(thread);
            threads.remove(index);
        }
        Act::Request { .. } if !machine.wants(thread) => {
            machine.request(thread, any_job(machine.now, thread));
        }
        Act::Release { .. } if machine.wants(thread) => machine.release(thread),
        Act::Change { priority, .. } => {
            let is_taken = threads.iter().any(|(_, other)| other == priority);
            let answer = machine.engine.message(root, Some(thread), Message::Change(given), machine.now);
            match answer {
                Ok(()) => {
                    assert!(!is_taken, "one VP per priority");
                    threads[index].1 = *priority;
                }
                Err(refusal) => assert_eq!((is_taken, refusal), (true, taken)),
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_highest_threads_run(processors in 1..=3usize, rounds in acts()) {
        let mut engine = Engine::new(processors);
        let root = engine.add_root(Box::new(FixedPriority::new()));
        let mut machine = Machine::new(engine);
        let mut threads: Vec<(VpId, i32)> = Vec::new();
        for (acts, gap) in rounds {
            acts.iter().for_each(|act| apply(&mut machine, root, &mut threads, act));
            machine.settle();
            let mut wanting: Vec<(i32, VpId)> = threads
                .iter()
                .filter(|(thread, _)| machine.wants(*thread))
                .map(|(thread, priority)| (*priority, *thread))
                .collect();
            wanting.sort_unstable_by_key(|(priority, _)| std::cmp::Reverse(*priority));
            let mut expected: Vec<VpId> =
                wanting.into_iter().take(processors).map(|(_, thread)| thread).collect();
            let mut running: Vec<VpId> = machine.running().flatten().collect();
            expected.sort_unstable();
            running.sort_unstable();
            prop_assert_eq!(running, expected);
            let until = machine.now + Duration::from_nanos(gap);
            machine.advance(until, |_, _, _| {});
        }
    }
}

/// More than 64 children need more than one word of the ready set.
#[test]
fn a_hundred_and_fifty_threads_run_in_order_of_priority() {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let threads: Vec<VpId> = (0..150)
        .map(|index| {
            // A permutation of 0..150, so that registration order is not priority order.
            let priority = Parameters::Priority(index * 7 % 150);
            engine.add_thread(root, priority).expect("priorities are distinct")
        })
        .collect();
    let mut machine = Machine::new(engine);
    for thread in &threads {
        machine.request(*thread, any_job(machine.now, *thread));
    }
    for priority in (0..150i32).rev() {
        machine.settle();
        let expected =
            (0..150).find(|index| index * 7 % 150 == priority).map(|index| threads[index as usize]);
        assert_eq!(machine.running().next().flatten(), expected);
        machine.release(expected.expect("it is a permutation"));
    }
    machine.settle();
    assert_eq!(machine.running().next().flatten(), None);
}

#[test]
fn a_fixed_priority_scheduler_says_what_it_wants() {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let refusal = engine.add_thread(root, Parameters::Weight(3)).unwrap_err();
    assert_eq!(refusal.to_string(), "a fixed-priority scheduler takes a priority, not Weight(3)");
    engine.add_thread(root, Parameters::Priority(3)).expect("it is free");
    let refusal = engine.add_thread(root, Parameters::Priority(3)).unwrap_err();
    assert_eq!(refusal.to_string(), "a fixed-priority scheduler has a child with Priority(3) already");
}

/// A refused scheduler leaves nothing behind, wherever among its parents the refusal comes from.
#[test]
fn a_refused_scheduler_leaves_no_trace() {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let thread = engine.add_thread(root, Parameters::Priority(3)).expect("it is free");
    let parents = [(root, Parameters::Priority(2)), (root, Parameters::Priority(3))];
    let refusal = engine.add(Box::new(FixedPriority::new()), &parents).unwrap_err();
    assert!(matches!(refusal, Refusal::Taken { .. }));
    let again = engine.add_thread(root, Parameters::Priority(2)).expect("it was given back");
    let mut machine = Machine::new(engine);
    machine.request(again, any_job(Instant::ZERO, again));
    machine.settle();
    assert_eq!(machine.running().next().flatten(), Some(again));
    machine.request(thread, any_job(Instant::ZERO, thread));
    machine.settle();
    assert_eq!(machine.running().next().flatten(), Some(thread));
}
