//! Schedulers as components: what the literature builds from them.

use super::script::{Piece, Script, at, endless, ns, periodic, work};
use super::workload::{Demand, Workload, hard, ms, reservation};
use talea_policy::composition::{KurtMode, kurt};
use talea_policy::hierarchy::{Enforcement, Engine, Fraction, Parameters, SchedulerId, VpId};
use talea_policy::scheduler::{
    Announcing, Config, Configuration, ExplicitPlan, FixedPriority, Gaps, Habits, Join, KindError, PlanEntry,
    PlanError, Renewal, Repeat, RoundRobin, TimeSharing, WakeUp, config,
};
use talea_time::{Duration, Work};

const LENGTH_MS: i64 = 3_300;

/// A thread with a reservation that joins it with its place in a round robin over what is left.
fn soft_beside(engine: &mut Engine, reservations: SchedulerId, rest: SchedulerId, given: Parameters) -> VpId {
    let parents = [(reservations, given), (rest, Parameters::None)];
    let join = engine.add(Box::new(Join::new(0)), &parents).expect("there is room");
    engine.add_thread(join, Parameters::None).expect("the only one")
}

/// Regehr and Stankovic, section 5.4: reservations, and round robin for the time they leave, are the hard and soft reserves of
/// a resource kernel. Both get the same reserves the same time.
#[test]
fn a_resource_kernel_can_be_composed() {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let res = engine.add(Box::new(hard()), &[(root, Parameters::Priority(1))]).expect("free");
    let rest = Box::new(RoundRobin::scheduler(Work::from_millis(1)));
    let rest = engine.add(rest, &[(root, Parameters::Priority(0))]).expect("free");
    let hard_one = engine.add_thread(res, reservation(3, 10)).expect("30 %");
    let soft_one = soft_beside(&mut engine, res, rest, reservation(2, 20));
    let ordinary = engine.add_thread(rest, Parameters::None).expect("anybody");
    let all = [hard_one, soft_one, ordinary].map(|thread| (thread, Demand::Endless));
    let composed = Workload::new(engine, &all).run(ms(LENGTH_MS));

    let mut engine = Engine::new(1);
    let kernel = config::ResourceKernel { quantum: Work::from_millis(1) };
    let root = engine.add_root(kernel.build(Announcing::Nothing).expect("in range"));
    let reserve = |budget, period, enforcement| Parameters::Reserve {
        budget: Work::from_millis(budget),
        period: ms(period),
        deadline: ms(period),
        enforcement,
    };
    let hard_two = engine.add_thread(root, reserve(3, 10, Enforcement::Hard)).expect("30 %");
    let soft_two = engine.add_thread(root, reserve(2, 20, Enforcement::Soft)).expect("10 %");
    let ordinary_two = engine.add_thread(root, Parameters::None).expect("anybody");
    let all = [hard_two, soft_two, ordinary_two].map(|thread| (thread, Demand::Endless));
    let kernel = Workload::new(engine, &all).run(ms(LENGTH_MS));

    assert_eq!(composed.per_period(hard_one, ms(10), ms(LENGTH_MS)), (ms(3), ms(3)));
    assert_eq!(kernel.per_period(hard_two, ms(10), ms(LENGTH_MS)), (ms(3), ms(3)));
    for (one, other) in [(soft_one, soft_two), (ordinary, ordinary_two)] {
        let (one, other) =
            (composed.received(one, ms(0), ms(LENGTH_MS)), kernel.received(other, ms(0), ms(LENGTH_MS)));
        // 10 % and half of the other 60 %; half of the 60 %.
        assert!((one - other).as_nanos().abs() <= ms(20).as_nanos(), "{one} and {other}");
    }
    assert!(composed.per_period(soft_one, ms(20), ms(LENGTH_MS)).0 >= ms(2));
    assert!(kernel.per_period(soft_two, ms(20), ms(LENGTH_MS)).0 >= ms(2));
}

/// A firm reserve without budget runs when nobody else wants to, a hard one not even then.
#[test]
fn a_firm_reserve_takes_what_nobody_wants() {
    let received = |enforcement, beside: Vec<Piece>| {
        let mut engine = Engine::new(1);
        let kernel = config::ResourceKernel { quantum: work(5) };
        let root = engine.add_root(kernel.build(Announcing::Nothing).expect("in range"));
        let given = Parameters::Reserve { budget: work(20), period: ns(100), deadline: ns(100), enforcement };
        let reserved = engine.add_thread(root, given).expect("20 %");
        let other = engine.add_thread(root, Parameters::None).expect("anybody");
        let script = Script::new(engine, vec![(reserved, endless()), (other, beside)]).run(1_000);
        script.traces[0].received(0, 1_000)
    };
    assert_eq!(received(Enforcement::Firm, endless()), 200);
    assert_eq!(received(Enforcement::Firm, periodic(30, 100, 1_000)), 700);
    assert_eq!(received(Enforcement::Hard, periodic(30, 100, 1_000)), 200);
    assert_eq!(received(Enforcement::Soft, endless()), 200 + 800 / 2);
}

/// RESBS to RESBH: a limit below a soft reserve, with the same numbers.
#[test]
fn a_limit_makes_a_soft_reserve_hard() {
    let mut engine = Engine::new(1);
    let kernel = config::ResourceKernel { quantum: Work::from_millis(1) };
    let root = engine.add_root(kernel.build(Announcing::Nothing).expect("in range"));
    let soft = Parameters::Reserve {
        budget: Work::from_millis(3),
        period: ms(19),
        deadline: ms(19),
        enforcement: Enforcement::Soft,
    };
    let limit = config::Limit { budget: Work::from_millis(3), period: ms(19), renewal: Renewal::Over };
    let limit = limit.build(Announcing::Nothing).expect("in range");
    let limit = engine.add(limit, &[(root, soft)]).expect("it fits");
    let limited = engine.add_thread(limit, Parameters::None).expect("the only one");
    let load = Workload::new(engine, &[(limited, Demand::Endless)]).run(ms(1_900));
    assert_eq!(load.per_period(limited, ms(19), ms(1_900)), (ms(3), ms(3)));
}

/// Regehr and Stankovic, Figure 4, CPU service classes (Chu and Nahrstedt): each application has a reservation for what it is expected to need,
/// and several share another one for what they need beyond that.
/// What applications of 2 ms in 10 ms each and a hog get in 10 ms at least and at most, with 2 ms for overruns.
fn service_classes(demand: Demand) -> [(Duration, Duration); 3] {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let res = engine.add(Box::new(hard()), &[(root, Parameters::Priority(1))]).expect("free");
    let hog = engine.add_thread(root, Parameters::Priority(0)).expect("free");
    let overrun = Box::new(RoundRobin::scheduler(Work::from_millis(1)));
    let overrun = engine.add(overrun, &[(res, reservation(2, 10))]).expect("20 %");
    let two = soft_beside(&mut engine, res, overrun, reservation(2, 10));
    let three = soft_beside(&mut engine, res, overrun, reservation(2, 10));
    let threads = [(two, demand), (three, Demand::Endless), (hog, Demand::Endless)];
    let load = Workload::new(engine, &threads).run(ms(1_000));
    let per_period = |thread| load.per_period(thread, ms(10), ms(1_000));
    [per_period(two), per_period(three), per_period(hog)]
}

#[test]
fn service_classes_share_an_overrun_partition() {
    // Both want more than they reserved: the partition is shared, and the hog is not touched.
    let [two, three, hog] = service_classes(Demand::Endless);
    assert!(two.0 >= ms(2) && three.0 >= ms(2));
    assert_eq!(hog, (ms(4), ms(4)));
    // Only one does: the partition is its own, while the other wants nothing.
    let rarely = Demand::Periodic { burst: ms(1), period: ms(500) };
    let [_, three, hog] = service_classes(rarely);
    assert!(three.0 >= ms(3) && three.1 == ms(4));
    assert!(hog.0 >= ms(5));
}

/// Regehr and Stankovic, Table 5, hard and soft: a renderer with 10 ms in 33 ms beside a background thread. A hard reservation
/// gives 30.3 %, a soft one half of the rest as well, and neither lets a frame come later than 33 ms.
#[test]
fn a_renderer_with_a_reservation_misses_no_frame() {
    let run = |is_soft: bool| {
        let mut engine = Engine::new(1);
        let root = engine.add_root(Box::new(FixedPriority::new()));
        let res = engine.add(Box::new(hard()), &[(root, Parameters::Priority(1))]).expect("free");
        let shared = Box::new(TimeSharing::scheduler(Habits::default()));
        let shared = engine.add(shared, &[(root, Parameters::Priority(0))]).expect("free");
        let renderer = match is_soft {
            true => soft_beside(&mut engine, res, shared, reservation(10, 33)),
            false => engine.add_thread(res, reservation(10, 33)).expect("30.3 %"),
        };
        let background = engine.add_thread(shared, Parameters::None).expect("anybody");
        let threads = [(renderer, Demand::Endless), (background, Demand::Endless)];
        let load = Workload::new(engine, &threads).run(ms(33_000));
        assert!(load.per_period(renderer, ms(33), ms(33_000)).0 >= ms(10));
        load.received(renderer, ms(0), ms(33_000)).as_nanos() / 1_000_000
    };
    assert_eq!(run(false), 10_000);
    let soft = run(true);
    assert!((soft - (10_000 + 23_000 / 2)).abs() <= 700, "{soft} ms");
}

fn entry(start: i64, process: u32, duration: i64) -> PlanEntry {
    PlanEntry { start: ns(start), process, duration: work(duration) }
}

fn plan(entries: &[PlanEntry], repeat: Repeat, gaps: Gaps) -> ExplicitPlan {
    ExplicitPlan::new(entries.to_vec(), repeat, gaps, at(0)).expect("a plan that can be followed")
}

/// When each trace was served.
fn supply(script: &Script) -> Vec<Vec<(i64, i64)>> {
    let pair = |(start, end): &(talea_time::Instant, talea_time::Instant)| (start.as_nanos(), end.as_nanos());
    script.traces.iter().map(|trace| trace.supply.iter().map(pair).collect()).collect()
}

#[test]
fn a_plan_is_followed_and_what_is_late_is_made_up() {
    let mut engine = Engine::new(1);
    // The second entry is late by 5 and moves the third; the fourth begins on time.
    let entries = [entry(10, 0, 15), entry(20, 1, 10), entry(30, 0, 5), entry(60, 1, 10)];
    let root = engine.add_root(Box::new(plan(&entries, Repeat::Once, Gaps::Released).scheduler()));
    let threads: Vec<_> = (0..2)
        .map(|process| (engine.add_thread(root, Parameters::Process(process)).expect("new"), endless()))
        .collect();
    let script = Script::new(engine, threads).run(200);
    assert_eq!(supply(&script), [vec![(10, 25), (35, 40)], vec![(25, 35), (60, 70)]]);
}

/// A process that ends one piece of work and begins the next at the same instant has not slept: its entry goes on, also where the next one was due.
#[test]
fn an_entry_goes_on_where_work_follows_work_at_one_instant() {
    for next in [15, 25] {
        let mut engine = Engine::new(1);
        let entries = [entry(10, 0, 20), entry(next, 1, 10)];
        let plan = plan(&entries, Repeat::Every(ns(100)), Gaps::Released);
        let root = engine.add_root(Box::new(plan.scheduler()));
        let [first, second] =
            [0, 1].map(|process| engine.add_thread(root, Parameters::Process(process)).expect("new"));
        let pieces =
            [(10, 5), (15, 5), (20, 10)].map(|(arrival, work)| Piece { arrival, work, deadline: 300 });
        let script = Script::new(engine, vec![(first, pieces.to_vec()), (second, endless())]).run(60);
        assert_eq!(supply(&script), [vec![(10, 30)], vec![(30, 40)]], "{next}");
    }
}

#[test]
fn a_process_that_does_not_come_forfeits_its_entry() {
    let mut engine = Engine::new(1);
    let entries = [entry(10, 0, 10), entry(15, 1, 10)];
    let root = engine.add_root(Box::new(plan(&entries, Repeat::Every(ns(100)), Gaps::Released).scheduler()));
    let [absent, present] =
        [0, 1].map(|process| engine.add_thread(root, Parameters::Process(process)).expect("new"));
    // In the first pass it does not come, in the second in the middle of its time.
    let pieces = vec![Piece { arrival: 113, work: 4, deadline: 300 }];
    let script = Script::new(engine, vec![(absent, pieces), (present, endless())]).run(200);
    assert_eq!(supply(&script), [vec![(113, 117)], vec![(20, 30), (117, 127)]]);
}

/// KURT's event-driven processes: at once if nothing explicit is due, else in the next gap, in order of arrival.
#[test]
fn event_driven_processes_run_in_the_gaps() {
    let mut engine = Engine::new(1);
    let entries = [entry(10, 0, 10), entry(30, 0, 10)];
    let root =
        engine.add_root(Box::new(plan(&entries, Repeat::Every(ns(100)), Gaps::EventDriven).scheduler()));
    let [explicit, one, other] =
        [0, 7, 8].map(|process| engine.add_thread(root, Parameters::Process(process)).expect("new"));
    let piece = |arrival, work| vec![Piece { arrival, work, deadline: 300 }];
    let frames = [10, 30, 110].map(|arrival| Piece { arrival, work: 10, deadline: 300 }).to_vec();
    let script =
        Script::new(engine, vec![(explicit, frames), (one, piece(12, 15)), (other, piece(11, 3))]).run(120);
    assert_eq!(
        supply(&script),
        [vec![(10, 20), (30, 40), (110, 120)], vec![(23, 30), (40, 48)], vec![(20, 23)]]
    );
}

#[test]
fn the_modes_of_kurt_are_compositions() {
    let received = |mode| {
        let mut engine = Engine::new(1);
        let habits = Habits { quantum: work(10), ..Habits::default() };
        let entries = plan(&[entry(0, 0, 20)], Repeat::Every(ns(100)), Gaps::Released);
        let places = kurt(&mut engine, mode, entries, habits);
        let mut threads = Vec::new();
        for (parent, given) in [(places.plan, Parameters::Process(0)), (places.others, Parameters::None)] {
            if let Some(parent) = parent {
                threads.push((engine.add_thread(parent, given).expect("new"), endless()));
            }
        }
        let script = Script::new(engine, threads).run(1_000);
        script.traces.iter().map(|trace| trace.received(0, 1_000)).collect::<Vec<_>>()
    };
    assert_eq!(received(KurtMode::Focused), [200]);
    assert_eq!(received(KurtMode::Mixed), [200, 800]);
    assert_eq!(received(KurtMode::Normal), [1_000]);
}

#[test]
fn plans_that_cannot_be_followed_are_refused() {
    let error = |entries: &[PlanEntry], repeat| {
        let kind = config::ExplicitPlan {
            entries: entries.to_vec(),
            repeat,
            gaps: Gaps::Released,
            beginning: at(0).into(),
        };
        kind.build(Announcing::Nothing).err()
    };
    assert_eq!(error(&[], Repeat::Once), Some(KindError::Plan(PlanError::Empty)));
    let unordered = PlanError::Unordered { entry: 1, start: ns(3) };
    assert_eq!(error(&[entry(5, 0, 1), entry(3, 0, 1)], Repeat::Once), Some(KindError::Plan(unordered)));
    let repeat = PlanError::Repeat { last: ns(5), period: ns(5) };
    assert_eq!(error(&[entry(5, 0, 1)], Repeat::Every(ns(5))), Some(KindError::Plan(repeat)));
    let nothing = config::RoundRobin { quantum: Work::ZERO }.build(Announcing::Nothing).err();
    let message = "the quantum of a round-robin scheduler is 0s, but has to be above zero";
    assert_eq!(nothing.map(|error| error.to_string()).as_deref(), Some(message));
    let more = Fraction::new(3, 2).expect("above zero");
    let error = config::Reservation::hard(more).build(Announcing::Nothing).err();
    assert_eq!(error, Some(KindError::MoreThanWhole { kind: "reservation" }));
}

/// A boost puts a thread that wakes up before those that compute, and patience helps one below a thread that never blocks.
#[test]
fn time_sharing_boosts_and_starves_nobody() {
    let habits = Habits { quantum: work(30), boost: 2, starvation: ns(4_000), base: 8 };
    let mut engine = Engine::new(1);
    let root = engine.add_root(config::TimeSharing(habits).build(Announcing::Nothing).expect("in range"));
    let interactive = engine.add_thread(root, Parameters::None).expect("anybody");
    let busy = engine.add_thread(root, Parameters::None).expect("anybody");
    let low = engine.add_thread(root, Parameters::Priority(4)).expect("a level");
    let keys = periodic(5, 100, 20_000);
    let script =
        Script::new(engine, vec![(interactive, keys), (busy, endless()), (low, endless())]).run(20_000);
    let waits =
        script.traces[0].ends.iter().zip((0..20_000).step_by(100)).map(|(end, start)| end.as_nanos() - start);
    // Only who is starving goes before a boost.
    assert!(waits.clone().filter(|wait| *wait == 5).count() >= 195, "{:?}", waits.collect::<Vec<_>>());
    // A double quantum about every four seconds.
    let starving = script.traces[2].received(0, 20_000);
    assert!((180..=240).contains(&starving), "{starving}");
}

/// Kinds say how they are called, and the schedulers they make call themselves the same.
#[test]
fn kinds_and_schedulers_agree_on_names() {
    let quantum = Work::from_millis(1);
    let kinds: [Configuration; 5] = [
        config::RoundRobin { quantum }.into(),
        config::ProportionalShare { quantum, wake_up: WakeUp::Waits }.into(),
        config::Reservation::hard(Fraction::ONE).into(),
        config::SlowerProcessor { speed: Fraction::ONE, slice: Duration::from_millis(1) }.into(),
        config::Spring { effort: 1, quantum }.into(),
    ];
    for kind in kinds {
        assert_eq!(kind.build(Announcing::Nothing).expect("in range").kind(), kind.name());
    }
}
