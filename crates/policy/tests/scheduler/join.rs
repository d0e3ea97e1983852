//! A join: its child runs whenever any of its parents runs it.

use super::script::{at, ns, work};
use super::workload::{Demand, Workload, hard, ms, reservation};
use talea_model::{LaneDispatch, Late, Laxity};
use talea_policy::discipline::Discipline;
use talea_policy::hierarchy::{Engine, Parameters, Refusal, SchedulerId, VpId, VpState};
use talea_policy::job::Job;
use talea_policy::lane::LaneQueue;
use talea_policy::scheduler::{Announcing, Config, FixedPriority, Join, LaneScheduler, Renewal, config};
use talea_policy::strategy::LaneRules;
use talea_time::Duration;

/// A thread that joins 2 ms in 10 ms with whatever the lowest priority leaves, beside `hog` in the middle.
fn soft_reservation(hog: Demand) -> (Workload, VpId, VpId) {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let priority = Parameters::Priority;
    let res = engine.add(Box::new(hard()), &[(root, priority(3))]).expect("free");
    let parents: [(SchedulerId, Parameters); 2] = [(res, reservation(2, 10)), (root, priority(1))];
    let join = engine.add(Box::new(Join::new(0)), &parents).expect("there is room");
    let thread = engine.add_thread(join, Parameters::None).expect("the only one");
    let other = engine.add_thread(root, priority(2)).expect("free");
    let load = Workload::new(engine, &[(thread, Demand::Endless), (other, hog)]).run(ms(1000));
    (load, thread, other)
}

#[test]
fn it_runs_through_the_parent_that_promised() {
    let (load, thread, hog) = soft_reservation(Demand::Endless);
    assert_eq!(load.per_period(thread, ms(10), ms(1000)), (ms(2), ms(2)));
    assert_eq!(load.received(hog, ms(0), ms(1000)), ms(800));
}

#[test]
fn it_runs_through_any_parent() {
    // Once more than the reservation, as Regehr and Stankovic, section 5.4, turns a hard reservation into a soft one.
    let (load, thread, other) = soft_reservation(Demand::Periodic { burst: ms(3), period: ms(7) });
    let others = load.received(other, ms(0), ms(1000));
    assert_eq!(load.received(thread, ms(0), ms(1000)), ms(1000) - others);
    assert!(load.per_period(thread, ms(10), ms(1000)).0 >= ms(2));
    assert!(others >= ms(3) * (1000 / 7 - 1), "the other thread gets its work done too");
}

/// On two processors the second parent's grant is superfluous, and the processor goes to who can use it.
#[test]
fn it_occupies_one_processor_only() {
    let mut engine = Engine::new(2);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let priority = Parameters::Priority;
    let parents = [(root, priority(6)), (root, priority(4))];
    let join = engine.add(Box::new(Join::new(0)), &parents).expect("free");
    let joined = engine.add_thread(join, Parameters::None).expect("the only one");
    let [above, between, below] =
        [7, 5, 3].map(|level| engine.add_thread(root, priority(level)).expect("free"));
    let burst = |burst, period| Demand::Periodic { burst: ms(burst), period: ms(period) };
    let threads =
        [(joined, Demand::Endless), (above, burst(2, 11)), (between, burst(3, 7)), (below, Demand::Endless)];
    let load = Workload::new(engine, &threads).run(ms(770));
    let received = |thread| load.received(thread, ms(0), ms(770));
    // Through its higher parent it outranks all but one, and never needs two processors.
    assert_eq!(received(joined), ms(770));
    assert_eq!(received(above), ms(2 * 70));
    assert!(received(between) >= ms(3 * 109));
    assert_eq!(received(below), ms(770) - received(above) - received(between));
}

/// Two processors, of which the child often has the one that the reservation does not. Its reservation counts on all the same, so
/// that every one of its periods holds the budget.
#[test]
fn it_keeps_a_reservation_while_it_runs_elsewhere() {
    for takes in [0, 1] {
        let mut engine = Engine::new(2);
        let root = engine.add_root(Box::new(FixedPriority::new()));
        let priority = Parameters::Priority;
        let res = engine.add(Box::new(hard()), &[(root, priority(2))]).expect("free");
        let mut parents = [(res, reservation(2, 10)), (root, priority(1))];
        parents.rotate_left(takes);
        let join = engine.add(Box::new(Join::new(takes)), &parents).expect("there is room");
        let joined = engine.add_thread(join, Parameters::None).expect("the only one");
        let rest = Parameters::Reservation { budget: Duration::from_micros(5_600).as_work(), period: ms(7) };
        let beside = engine.add_thread(res, rest).expect("100 %");
        let above = engine.add_thread(root, priority(3)).expect("free");
        let bursts = Demand::Periodic { burst: ms(19), period: Duration::from_micros(22_189) };
        let threads = [(joined, Demand::Endless), (beside, Demand::Endless), (above, bursts)];
        let load = Workload::new(engine, &threads).run(ms(20_000));
        let (least, most) = load.per_period(joined, ms(10), ms(20_000));
        assert!(least >= ms(2), "{least}");
        assert!(most > ms(4), "it runs elsewhere, too: {most}");
    }
}

/// More parents than a decision has room for are asked, released and told one after the other.
#[test]
fn it_has_any_number_of_parents() {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let priority = Parameters::Priority;
    let parents: Vec<(SchedulerId, Parameters)> = (0..9).map(|place| (root, priority(2 * place))).collect();
    let join = engine.add(Box::new(Join::new(0)), &parents).expect("free");
    let joined = engine.add_thread(join, Parameters::None).expect("the only one");
    let between = engine.add_thread(root, priority(7)).expect("free");
    let burst = |burst, period| Demand::Periodic { burst: ms(burst), period: ms(period) };
    let load = Workload::new(engine, &[(joined, burst(3, 11)), (between, Demand::Endless)]).run(ms(1100));
    assert_eq!(load.received(joined, ms(0), ms(1100)), ms(300));
    assert_eq!(load.received(between, ms(0), ms(1100)), ms(800));
}

#[test]
fn it_has_one_child() {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(Join::new(0)));
    engine.add_thread(root, Parameters::None).expect("the first one");
    assert!(matches!(engine.add_thread(root, Parameters::None), Err(Refusal::Taken { .. })));
}

/// A lane below a join chooses another job and tells of its deadline, at which a limit in the middle finds that its period is
/// over and asks its parent, which takes the processor from the join's other parent and so from the lane.
#[test]
fn a_lane_is_taken_the_processor_while_it_tells_of_another_deadline() {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let limit = config::Limit { budget: work(1), period: ns(9), renewal: Renewal::Over }
        .build(Announcing::Deadlines)
        .expect("in range");
    let limit = engine.add(limit, &[(root, Parameters::Priority(2))]).expect("free");
    let parents = [(limit, Parameters::None), (root, Parameters::Priority(1))];
    let join = engine.add(Box::new(Join::new(0)), &parents).expect("free");
    let rules = LaneRules { dispatch: LaneDispatch::Preemptive, laxity: Laxity::Declared, late: Late::Last };
    let lane = LaneScheduler::new(LaneQueue::new(Discipline::Deadline, rules, 2));
    let lane = lane.announcing(Announcing::Deadlines);
    let lane = engine.add(Box::new(lane), &[(join, Parameters::None)]).expect("the only one");
    let [first, second] = [(); 2].map(|()| engine.add_thread(lane, Parameters::None).expect("a slot"));
    let job = |slot: VpId, deadline| Job {
        release: at(0),
        deadline: at(deadline),
        wcet: work(50),
        rank: 0,
        number: 0,
        tag: slot.index() as u32,
    };
    engine.request(first, job(first, 100), at(0));
    let _ = engine.settle(at(0));
    engine.fire_timers(at(1));
    let _ = engine.settle(at(1));
    assert!(matches!(engine.context().state(first), VpState::Running(_)), "by the join's other parent");
    // The limit's timer is due at this instant, too, and comes later.
    engine.request(second, job(second, 60), at(9));
    let _ = engine.settle(at(9));
    engine.fire_timers(at(9));
    let _ = engine.settle(at(9));
    engine.check_invariants();
    assert!(matches!(engine.context().state(second), VpState::Running(_)), "it is due first");
}
