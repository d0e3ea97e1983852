//! CPU reservations: every child gets its budget in each of its periods, by earliest deadline first.

use super::workload::{Demand, Workload, hard, ms, reservation};
use talea_policy::hierarchy::{Engine, Parameters, SchedulerId, VpId};
use talea_policy::scheduler::FixedPriority;

/// Reservations at the top of fixed priority, and below them a thread that takes what is left.
fn machine() -> (Engine, SchedulerId, VpId) {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let parent = [(root, Parameters::Priority(2))];
    let res = engine.add(Box::new(hard()), &parent).expect("free");
    let rest = engine.add_thread(root, Parameters::Priority(1)).expect("free");
    (engine, res, rest)
}

#[test]
fn backlogged_children_get_exactly_their_budgets() {
    let (mut engine, res, rest) = machine();
    let [a, b, c] = [(2, 10), (5, 33), (10, 20)]
        .map(|(budget, period)| engine.add_thread(res, reservation(budget, period)).expect("it fits"));
    let load = Workload::new(engine, &[a, b, c, rest].map(|thread| (thread, Demand::Endless))).run(ms(3300));
    assert_eq!(load.per_period(a, ms(10), ms(3300)), (ms(2), ms(2)));
    assert_eq!(load.per_period(b, ms(33), ms(3300)), (ms(5), ms(5)));
    assert_eq!(load.per_period(c, ms(20), ms(3300)), (ms(10), ms(10)));
    // Hard: what they do not get goes to those below, although they want more.
    assert_eq!(load.received(rest, ms(0), ms(3300)), ms(3300 - 660 - 500 - 1650));
}

#[test]
fn a_full_processor_is_reserved_without_a_miss() {
    let (mut engine, res, rest) = machine();
    let shares = [(1, 4), (3, 12), (5, 10)];
    let threads = shares.map(|(budget, period)| {
        engine.add_thread(res, reservation(budget, period)).expect("1/4 + 1/4 + 1/2 is 1")
    });
    let mut all: Vec<_> = threads.iter().map(|thread| (*thread, Demand::Endless)).collect();
    all.push((rest, Demand::Endless));
    let load = Workload::new(engine, &all).run(ms(720));
    for (thread, (budget, period)) in threads.into_iter().zip(shares) {
        assert_eq!(load.per_period(thread, ms(period), ms(720)), (ms(budget), ms(budget)));
    }
    assert_eq!(load.received(rest, ms(0), ms(720)), ms(0));
}

#[test]
fn an_unused_budget_is_left_to_others_and_not_saved() {
    let (mut engine, res, rest) = machine();
    let sparse = engine.add_thread(res, reservation(4, 10)).expect("it fits");
    let demand = Demand::Periodic { burst: ms(6), period: ms(50) };
    let load = Workload::new(engine, &[(sparse, demand), (rest, Demand::Endless)]).run(ms(1000));
    // 4 ms in the first period, which starts on arrival, the other 2 in the second, however much went unused before.
    assert_eq!(load.received(sparse, ms(50), ms(60)), ms(4));
    assert_eq!(load.received(sparse, ms(60), ms(70)), ms(2));
    assert_eq!(load.received(rest, ms(0), ms(1000)), ms(1000 - 120));
}

#[test]
fn more_than_a_processor_is_refused_and_forgotten() {
    let (mut engine, res, _) = machine();
    engine.add_thread(res, reservation(6, 10)).expect("it fits");
    let refusal = engine.add_thread(res, reservation(9, 20)).unwrap_err();
    assert_eq!(refusal.to_string(), "not admitted: 45 % of the processor are asked for and 40 % are left");
    let next = engine.add_thread(res, reservation(8, 20)).expect("the refused child took nothing");
    engine.remove_thread(next);
    engine.add_thread(res, reservation(4, 10)).expect("a child that leaves gives its share back");
}
