//! What a change looks like to those above, below and beside it.

use super::compositions::PREEMPTIVE;
use super::script::{Script, at, endless, ns, periodic, work};
use super::workload::fair;
use talea_policy::discipline::Discipline;
use talea_policy::hierarchy::{
    Above, Below, Enforcement, Engine, Fraction, Message, Parameters, ReconfigureError, Refusal, Replacement,
    Scheduler, SchedulerId, VpId, VpState,
};
use talea_policy::job::Job;
use talea_policy::scheduler::{
    Announcing, Config, Configuration, Eevdf, FixedPriority, Join, Requests, RoundRobin, config,
};

fn replacement<'a>(
    scheduler: impl Scheduler + 'static,
    children: &'a [(VpId, Parameters)],
) -> Replacement<'a> {
    Replacement { scheduler: Box::new(scheduler), children, parents: &[] }
}

fn kind(kind: impl Into<Configuration>) -> Box<dyn Scheduler> {
    kind.into().build(Announcing::Nothing).expect("in range")
}

fn fixed(engine: &mut Engine, parent: SchedulerId, priority: i32) -> SchedulerId {
    engine.add(Box::new(FixedPriority::new()), &[(parent, Parameters::Priority(priority))]).expect("free")
}

fn job(thread: VpId, deadline: i64) -> Job {
    let (tag, deadline) = (thread.index() as u32, at(deadline));
    Job { release: at(0), deadline, wcet: work(5), rank: 0, number: 0, tag }
}

/// Three endless threads by weight, below a thread that interrupts them.
fn shared(first: Box<dyn Scheduler>) -> (Script, SchedulerId, Vec<(VpId, Parameters)>) {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let shares = engine.add(first, &[(root, Parameters::Priority(1))]).expect("free");
    let above = engine.add_thread(root, Parameters::Priority(2)).expect("free");
    let children: Vec<(VpId, Parameters)> = [1, 2, 3]
        .map(Parameters::Weight)
        .map(|weight| (engine.add_thread(shares, weight).expect("a weight"), weight))
        .to_vec();
    let mut threads = vec![(above, periodic(40, 100, 100_000))];
    threads.extend(children.iter().map(|(thread, _)| (*thread, endless())));
    (Script::new(engine, threads), shares, children)
}

#[test]
fn a_proportional_share_scheduler_becomes_eevdf_and_serves_on() {
    let (mut script, shares, children) = shared(Box::new(fair(10)));
    script.run_on(30_055);
    let before: Vec<i64> = (1..4).map(|thread| script.traces[thread].received(0, 30_055)).collect();
    let now = script.machine.now;
    let eevdf = replacement(Eevdf::scheduler(work(10)), &children);
    script.machine.engine.replace(shares, eevdf, now).expect("weights are weights");
    assert_eq!(script.machine.engine.kind(shares), Some("eevdf"));
    script.run_on(60_055);
    for (place, before) in before.iter().enumerate() {
        let trace = &script.traces[place + 1];
        assert_eq!(trace.received(0, 30_055), *before, "what was had stays had");
        // Of what the thread above leaves, within a quantum.
        let fair = 18_000 * (place as i64 + 1) / 6;
        assert!((trace.received(30_055, 60_055) - fair).abs() <= 10, "{place}: {fair}");
    }
}

#[test]
fn who_runs_runs_on_if_the_new_scheduler_has_it_that_way() {
    for processors in 1..=2 {
        let mut engine = Engine::new(processors);
        let root = engine.add_root(Box::new(FixedPriority::new()));
        let children: Vec<(VpId, Parameters)> = [3, 2, 1]
            .map(Parameters::Priority)
            .map(|priority| (engine.add_thread(root, priority).expect("free"), priority))
            .to_vec();
        children.iter().for_each(|(thread, _)| engine.request(*thread, job(*thread, 100), at(0)));
        assert_eq!(engine.settle(at(0)).len(), processors);
        engine.replace(root, replacement(FixedPriority::new(), &children), at(7)).expect("the same");
        assert_eq!(engine.settle(at(7)), []);
        // By surplus the same ones are first, on whatever processor they have.
        let weights: Vec<_> = children.iter().map(|(thread, _)| (*thread, Parameters::Weight(1))).collect();
        let scheduler = kind(config::SurplusFair { quantum: work(10) });
        let surplus = Replacement { scheduler, children: &weights, parents: &[] };
        engine.replace(root, surplus, at(9)).expect("weights");
        assert_eq!(engine.settle(at(9)), []);
        assert_eq!(engine.context().service(children[0].0), work(9));
        engine.check_invariants();
    }
}

/// In the middle of its quantum a scheduler becomes another; the quantum goes on, and so does its parent's round.
#[test]
fn parents_do_not_notice() {
    let play = |exchange: bool| {
        let mut engine = Engine::new(1);
        let root = engine.add_root(kind(config::RoundRobin { quantum: work(10) }));
        let inner = engine.add(Box::new(FixedPriority::new()), &[(root, Parameters::None)]).expect("any");
        let one = engine.add_thread(inner, Parameters::Priority(1)).expect("free");
        let others = [(); 2].map(|()| engine.add_thread(root, Parameters::None).expect("any"));
        let threads = [one, others[0], others[1]].map(|thread| (thread, endless())).to_vec();
        let mut script = Script::new(engine, threads);
        script.run_on(64);
        if exchange {
            let children = [(one, Parameters::None)];
            let new = replacement(RoundRobin::scheduler(work(3)), &children);
            script.machine.engine.replace(inner, new, at(64)).expect("any");
        }
        script.run_on(300);
        script.machine.log
    };
    assert_eq!(play(true), play(false));
}

#[test]
fn a_thread_moves_with_its_job_its_service_and_its_processor() {
    let lane = || kind(config::Lane { discipline: Discipline::Deadline, rules: PREEMPTIVE, capacity: 4 });
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let [high, low] =
        [2, 1].map(|priority| engine.add(lane(), &[(root, Parameters::Priority(priority))]).expect("free"));
    let thread = engine.add_thread(high, Parameters::None).expect("any");
    let rival = engine.add_thread(low, Parameters::None).expect("any");
    engine.request(thread, job(thread, 50), at(0));
    assert_eq!(engine.settle(at(0)).len(), 1);
    engine.move_thread(thread, low, Parameters::None, at(3)).expect("any");
    assert_eq!(engine.settle(at(3)), []);
    // Its deadline came along: one later waits, one earlier does not.
    engine.request(rival, job(rival, 60), at(4));
    assert_eq!(engine.settle(at(4)), []);
    let edge = engine.edge(thread).expect("it is there");
    assert_eq!((edge.above, edge.below, edge.service), (Above::Scheduler(low), Below::Thread, work(4)));
    assert!(matches!(edge.state, VpState::Running(_)));
    assert_eq!(engine.release(thread, at(5)), work(5), "one request, all of it");
    assert_eq!(engine.settle(at(5)).len(), 1);
    engine.check_invariants();
}

#[test]
fn a_subtree_moves_with_who_runs_in_it() {
    let mut engine = Engine::new(2);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let (left, right) = (fixed(&mut engine, root, 2), fixed(&mut engine, root, 1));
    let moving = fixed(&mut engine, left, 1);
    let thread = engine.add_thread(moving, Parameters::Priority(1)).expect("free");
    engine.request(thread, job(thread, 50), at(0));
    let _ = engine.settle(at(0));
    engine.move_scheduler(moving, &[(right, Parameters::Priority(5))], at(2)).expect("free");
    assert_eq!(engine.settle(at(2)), []);
    engine.remove(left, at(2)).expect("nobody is left there");
    let below = ReconfigureError::BelowItself { kind: "fixed-priority" };
    assert_eq!(engine.move_scheduler(right, &[(moving, Parameters::Priority(1))], at(3)), Err(below));
    let taken = engine.add_thread(root, Parameters::Priority(2)).expect("it was given back");
    engine.request(taken, job(taken, 50), at(3));
    assert_eq!(engine.settle(at(3)).len(), 1, "on the other processor");
    engine.check_invariants();
}

#[test]
fn what_stands_in_the_way_is_named() {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let inner = fixed(&mut engine, root, 1);
    let thread = engine.add_thread(inner, Parameters::Priority(7)).expect("free");
    let says = |answer: Result<(), ReconfigureError>| answer.unwrap_err().to_string();
    let text = "the root can be replaced, but neither removed nor moved";
    assert_eq!(says(engine.remove(root, at(0))), text);
    let text = "a fixed-priority scheduler with 1 children cannot be removed: remove or move them before";
    assert_eq!(says(engine.remove(inner, at(0))), text);
    let turns = || RoundRobin::scheduler(work(1));
    let weight = [(thread, Parameters::Weight(1))];
    let text = "child 2: a round-robin scheduler takes no parameters, not Weight(1)";
    assert_eq!(says(engine.replace(inner, replacement(turns(), &weight), at(0))), text);
    let text = "VP 2 has no parameters for the new scheduler";
    assert_eq!(says(engine.replace(inner, replacement(turns(), &[]), at(0))), text);
    let none = (thread, Parameters::None);
    let twice = engine.replace(inner, replacement(turns(), &[none, none]), at(0));
    assert_eq!(says(twice), "VP 2 was given parameters twice");
    let own = engine.parents(inner).next().expect("one").vp;
    let stranger = engine.replace(inner, replacement(turns(), &[none, (own, Parameters::None)]), at(0));
    assert_eq!(says(stranger), "VP 1 does not belong to the scheduler");
    let parents = [(own, Parameters::Weight(3))];
    let new = Replacement { scheduler: Box::new(turns()), children: &[none], parents: &parents };
    let text = "own VP 1: a fixed-priority scheduler takes a priority, not Weight(3)";
    assert_eq!(says(engine.replace(inner, new, at(0))), text);
    let two = [(root, Parameters::Priority(3)), (root, Parameters::Priority(4))];
    let text = "a round-robin scheduler uses one processor at a time and has one parent, not 2";
    assert_eq!(engine.add(Box::new(turns()), &two).unwrap_err().to_string(), text);
    assert!(matches!(engine.add(Box::new(turns()), &[]), Err(Refusal::NoParent { .. })));
    let message = Message::Change(Parameters::Priority(3));
    assert!(matches!(engine.message(root, Some(thread), message, at(0)), Err(Refusal::NotAChild { .. })));
    assert_eq!(engine.kind(inner), Some("fixed-priority"));
}

#[test]
fn ids_are_not_confused() {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let old = fixed(&mut engine, root, 1);
    engine.remove(old, at(0)).expect("it has no children");
    let new = fixed(&mut engine, root, 1);
    assert_eq!(old.index(), new.index(), "the seat is used again");
    assert_ne!(old, new);
    assert_eq!(engine.remove(old, at(0)), Err(ReconfigureError::NoScheduler(old)));
    assert_eq!(engine.add_thread(old, Parameters::Priority(1)), Err(Refusal::Gone));
    assert_eq!((engine.kind(old), engine.parents(old).count()), (None, 0));
    // One thread goes and another comes with its number: whoever looks at processors sees two.
    let first = engine.add_thread(new, Parameters::Priority(1)).expect("free");
    engine.request(first, job(first, 50), at(0));
    let before = engine.settle(at(0))[0].to;
    engine.release(first, at(5));
    engine.remove_thread(first);
    let second = engine.add_thread(new, Parameters::Priority(1)).expect("free");
    assert_eq!(first, second);
    engine.request(second, job(second, 50), at(5));
    let switch = engine.settle(at(5))[0];
    assert_eq!(switch.from, before);
    assert_ne!(switch.to, before);
}

/// A slower processor above has to know the deadlines of whoever schedules below it now.
#[test]
fn deadlines_are_announced_anew() {
    let speed = config::SlowerProcessor { speed: Fraction::ONE, slice: ns(10) };
    let mut engine = Engine::new(1);
    let root = engine.add_root(kind(speed));
    let lane = config::Lane { discipline: Discipline::Deadline, rules: PREEMPTIVE, capacity: 4 };
    let lane = || lane.build(Announcing::Deadlines).expect("in range");
    let half = Parameters::Rate(Fraction::new(1, 2).expect("above 0"));
    let inner = engine.add(lane(), &[(root, half)]).expect("half is left");
    let thread = engine.add_thread(inner, Parameters::None).expect("any");
    let own = engine.parents(inner).next().expect("one").vp;
    engine.request(thread, job(thread, 50), at(0));
    let _ = engine.settle(at(0));
    assert_eq!(engine.context().deadline(own), at(50));
    let children = [(thread, Parameters::None)];
    engine.replace(inner, replacement(RoundRobin::scheduler(work(4)), &children), at(2)).expect("any");
    assert_eq!(engine.settle(at(2)), []);
    assert_eq!(engine.context().deadline(own), talea_time::Instant::MAX, "it knows none");
    let again = Replacement { scheduler: lane(), children: &children, parents: &[] };
    engine.replace(inner, again, at(4)).expect("any");
    assert_eq!(engine.settle(at(4)), []);
    assert_eq!(engine.context().deadline(own), at(50));
    engine.check_invariants();
}

/// Changed weights are what is received from then on.
#[test]
fn weights_change_while_they_are_used() {
    let quantum = work(5);
    let kinds: [Configuration; 5] = [
        config::ProportionalShare { quantum, wake_up: talea_policy::scheduler::WakeUp::Waits }.into(),
        config::Stride { quantum }.into(),
        config::Eevdf { quantum }.into(),
        config::SurplusFair { quantum }.into(),
        config::Lottery { quantum, seed: 3 }.into(),
    ];
    for one in kinds {
        let (mut script, shares, children) = shared(kind(one.clone()));
        script.run_on(20_055);
        for ((thread, _), weight) in children.iter().zip([3, 2, 1]) {
            let message = Message::Change(Parameters::Weight(weight));
            let now = script.machine.now;
            script.machine.engine.message(shares, Some(*thread), message, now).expect("a weight");
        }
        script.run_on(80_055);
        let received = |thread: usize| script.traces[thread].received(20_055, 80_055);
        let tolerance = if one.name() == "lottery" { 1_200 } else { 20 };
        for (thread, fair) in [(1, 18_000), (2, 12_000), (3, 6_000)] {
            let got: i64 = received(thread);
            assert!((got - fair).abs() <= tolerance, "{}: {got} of {fair}", one.name());
        }
    }
}

/// Reservations begin, change and end; the room that one gives back is another's.
#[test]
fn reservations_change_within_what_there_is() {
    let reserve = |budget, period| Parameters::Reservation { budget: work(budget), period: ns(period) };
    let kernel = |budget, period| Parameters::Reserve {
        budget: work(budget),
        period: ns(period),
        deadline: ns(period),
        enforcement: Enforcement::Soft,
    };
    let rate = |part| Parameters::Rate(Fraction::new(part, 10).expect("above 0"));
    let capacity = Fraction::ONE;
    let quantum = work(2);
    let cases: [(Configuration, Parameters, Parameters, Parameters); 6] = [
        (config::Reservation::hard(capacity).into(), reserve(6, 10), reserve(4, 10), reserve(5, 10)),
        (
            config::TotalBandwidth { capacity, requests: Requests::InPieces }.into(),
            reserve(6, 10),
            reserve(4, 10),
            reserve(5, 10),
        ),
        (config::SlowerProcessor { speed: capacity, slice: ns(10) }.into(), rate(6), rate(4), rate(5)),
        (
            config::Rialto { base: ns(16), levels: 2, quantum }.into(),
            reserve(10, 16),
            reserve(6, 16),
            reserve(8, 16),
        ),
        (
            config::StatisticalRateMonotonic { last: 1, quantum }.into(),
            reserve(6, 10),
            reserve(4, 10),
            reserve(5, 10),
        ),
        (config::ResourceKernel { quantum }.into(), kernel(2, 10), kernel(1, 10), kernel(2, 10)),
    ];
    for (one, large, small, more) in cases {
        let mut engine = Engine::new(1);
        let root = engine.add_root(kind(one.clone()));
        let [first, second] =
            [large, small].map(|given| engine.add_thread(root, given).expect("together they fit"));
        let mut script = Script::new(engine, vec![(first, endless()), (second, endless())]);
        let change = |script: &mut Script, thread, given| {
            let now = script.machine.now;
            script.machine.engine.message(root, Some(thread), Message::Change(given), now)
        };
        script.run_on(47);
        // That of a resource kernel is not exact, so more than a little more is needed.
        let too_much = if one.name() == "resource-kernel" { kernel(8, 10) } else { more };
        let refusal = change(&mut script, second, too_much).unwrap_err();
        assert!(matches!(refusal, Refusal::Admission(_)), "{}: {refusal}", one.name());
        change(&mut script, first, small).expect("it is less");
        change(&mut script, second, more).unwrap_or_else(|refusal| panic!("{}: {refusal}", one.name()));
        assert_eq!(script.machine.engine.edge(second).expect("it is there").parameters, more);
        script.run_on(1_000);
    }
}

/// What a hierarchy needs to decide it has after a change has come to rest.
#[test]
fn deciding_does_not_allocate_after_changes() {
    let mut engine = Engine::new(2);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let parents = [(root, Parameters::Priority(9)), (root, Parameters::Priority(1))];
    let turns = engine.add(kind(config::RoundRobin { quantum: work(2) }), &parents[..1]).expect("free");
    let join = engine
        .add(Box::new(Join::new(0)), &[(turns, Parameters::None), (root, Parameters::Priority(2))])
        .expect("free");
    let mut threads = vec![engine.add_thread(join, Parameters::None).expect("the first")];
    let mut now = 0;
    for step in 0..12 {
        now += 1;
        engine.advance(at(now));
        let children: Vec<VpId> = engine.children(turns).map(|edge| edge.vp).collect();
        let weights: Vec<_> = children.iter().map(|child| (*child, Parameters::Weight(2))).collect();
        let nothing: Vec<_> = children.iter().map(|child| (*child, Parameters::None)).collect();
        let (next, children) = match step % 2 {
            0 => (Configuration::from(config::Eevdf { quantum: work(2) }), weights),
            _ => (config::RoundRobin { quantum: work(2) }.into(), nothing),
        };
        let new = Replacement { scheduler: kind(next), children: &children, parents: &[] };
        engine.replace(turns, new, at(now)).expect("they fit");
        let given = if step % 2 == 0 { Parameters::Weight(3) } else { Parameters::None };
        let thread = engine.add_thread(root, Parameters::Priority(20 + step)).expect("free");
        engine.move_thread(thread, turns, given, at(now)).expect("they fit");
        threads.push(thread);
        let mut round = |engine: &mut Engine| {
            for thread in &threads {
                now += 1;
                engine.request(*thread, job(*thread, now + 30), at(now));
                let _ = engine.settle(at(now));
            }
            for _ in 0..8 {
                now += 1;
                engine.fire_timers(at(now));
                let _ = engine.settle(at(now));
            }
            for thread in &threads {
                now += 1;
                engine.release(*thread, at(now));
                let _ = engine.settle(at(now));
            }
        };
        round(&mut engine);
        let allocations = allocation_counter::measure(|| round(&mut engine));
        assert_eq!(allocations.count_total, 0, "after step {step}");
    }
    engine.check_invariants();
}
