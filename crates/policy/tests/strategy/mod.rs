//! What every strategy makes of the same operations, and everything it may find wrong with them.

use proptest::prelude::*;
use talea_model::{
    Criticality, Full, InputBuilder, LaneDispatch, Late, Laxity, OperationId, OutputBuilder, Request,
    SchedulerBuilder, SchedulerKind, Strategy as Kind, System, Take, TaskBuilder,
};
use talea_policy::arrangement::arrange;
use talea_policy::discipline::Discipline::{self, Deadline, Fifo, Laxity as LaxityOrder};
use talea_policy::hierarchy::Above;
use talea_policy::strategy::{
    Anomaly, LaneRules, OperationTraits, Plan, fit_priorities, lane_for, plan, plan_lanes_of, plan_system,
};
use talea_time::{Duration, Work};

const RULES: LaneRules =
    LaneRules { dispatch: LaneDispatch::NonPreemptive, laxity: Laxity::Declared, late: Late::Last };

/// An operation `name` of criticality `level` with times in ms.
fn operation(index: usize, name: &str, level: u8, period_ms: i64, wcet_ms: i64) -> OperationTraits {
    OperationTraits {
        id: OperationId::from_index(index),
        name: name.into(),
        period: Duration::from_millis(period_ms),
        deadline: Duration::from_millis(period_ms),
        wcet: Work::from_millis(wcet_ms),
        criticality: Criticality::from_level(level).expect("0 to 4"),
        importance: 0,
        topological_rank: 0,
    }
}

/// Two rates at each of three criticalities, in an order that is sorted by nothing.
fn operations() -> Vec<OperationTraits> {
    [("a", 2, 100), ("b", 4, 50), ("c", 3, 100), ("d", 3, 50), ("e", 2, 50), ("f", 4, 100), ("g", 4, 50)]
        .into_iter()
        .enumerate()
        .map(|(index, (name, level, period))| operation(index, name, level, period, 2))
        .collect()
}

/// Label, discipline and members' names of every lane, highest first.
fn lanes(strategy: Kind, operations: &[OperationTraits]) -> Vec<(String, Discipline, String)> {
    let plan = plan(strategy, RULES, operations, 1).expect("nothing is wrong");
    plan.lanes
        .into_iter()
        .enumerate()
        .map(|(index, lane)| {
            assert_eq!((lane.level, lane.rules, lane.tick), (index, RULES, None));
            let members = lane.members.iter().map(|id| operations[id.index()].name.as_str());
            (lane.label, lane.discipline, members.collect())
        })
        .collect()
}

fn lane(label: &str, discipline: Discipline, members: &str) -> (String, Discipline, String) {
    (label.into(), discipline, members.into())
}

#[test]
fn rms_has_a_fifo_lane_per_period() {
    let expected = [lane("50ms", Fifo, "bdeg"), lane("100ms", Fifo, "acf")];
    assert_eq!(lanes(Kind::Rms, &operations()), expected);
}

#[test]
fn edf_has_one_deadline_lane() {
    assert_eq!(lanes(Kind::Edf, &operations()), [lane("all", Deadline, "abcdefg")]);
}

#[test]
fn mlf_has_one_laxity_lane() {
    assert_eq!(lanes(Kind::Mlf, &operations()), [lane("all", LaxityOrder, "abcdefg")]);
}

#[test]
fn muf_has_a_laxity_lane_per_criticality() {
    let expected = [
        lane("very-high", LaxityOrder, "bfg"),
        lane("high", LaxityOrder, "cd"),
        lane("medium", LaxityOrder, "ae"),
    ];
    assert_eq!(lanes(Kind::Muf, &operations()), expected);
}

#[test]
fn rms_mlf_splits_critical_levels_by_period_and_leaves_the_others_to_laxity() {
    let expected = [
        lane("very-high 50ms", Fifo, "bg"),
        lane("very-high 100ms", Fifo, "f"),
        lane("high 50ms", Fifo, "d"),
        lane("high 100ms", Fifo, "c"),
        lane("medium", LaxityOrder, "ae"),
    ];
    assert_eq!(lanes(Kind::RmsMlf, &operations()), expected);
}

#[test]
fn criticality_has_a_fifo_lane_per_criticality() {
    let expected = [lane("very-high", Fifo, "bfg"), lane("high", Fifo, "cd"), lane("medium", Fifo, "ae")];
    assert_eq!(lanes(Kind::Criticality, &operations()), expected);
}

#[test]
fn members_stand_by_importance_then_topological_order_then_file_order() {
    let mut operations: Vec<OperationTraits> =
        ["a", "b", "c", "d", "e"].iter().enumerate().map(|(i, name)| operation(i, name, 2, 50, 1)).collect();
    for (index, (importance, rank)) in [(0, 1), (0, 0), (5, 9), (-1, 0), (0, 0)].into_iter().enumerate() {
        operations[index].importance = importance;
        operations[index].topological_rank = rank;
    }
    for strategy in Kind::ALL.iter().copied() {
        assert_eq!(lanes(strategy, &operations)[0].2, "cbead", "{strategy}");
    }
}

fn anomalies(strategy: Kind, operations: &[OperationTraits]) -> Vec<Anomaly> {
    plan(strategy, RULES, operations, 1).expect_err("something is wrong")
}

#[test]
fn nothing_to_schedule_is_an_anomaly_of_every_strategy() {
    for strategy in Kind::ALL.iter().copied() {
        assert_eq!(anomalies(strategy, &[]), [Anomaly::NoOperations]);
    }
}

/// Each strategy complains about what it looks at, completely and in file order, and about nothing else.
#[test]
fn every_anomaly_of_every_strategy_is_listed() {
    let broken = [
        operation(0, "hard", 3, 0, 0),
        operation(1, "soft", 2, 0, 0),
        operation(2, "hard", 4, 10, 0),
        operation(3, "fine", 4, 10, 1),
    ];
    let duplicate = || Anomaly::DuplicateName("hard".into());
    let period = |name: &str, strategy| Anomaly::NoPeriod { operation: name.into(), strategy };
    let wcet = |name: &str, strategy| Anomaly::NoWorstCase { operation: name.into(), strategy };
    let all_wcet =
        |strategy| vec![wcet("hard", strategy), wcet("soft", strategy), duplicate(), wcet("hard", strategy)];
    let expected = |strategy| match strategy {
        Kind::Rms => vec![period("hard", strategy), period("soft", strategy), duplicate()],
        Kind::Edf | Kind::Criticality => vec![duplicate()],
        Kind::Mlf | Kind::Muf => all_wcet(strategy),
        Kind::RmsMlf => vec![period("hard", strategy), wcet("soft", strategy), duplicate()],
    };
    for strategy in Kind::ALL.iter().copied() {
        assert_eq!(anomalies(strategy, &broken), expected(strategy), "{strategy}");
    }
}

#[test]
fn overload_is_a_warning_and_critical_overload_the_worse_one() {
    let warnings = |operations: &[OperationTraits], processors| {
        plan(Kind::RmsMlf, RULES, operations, processors).expect("overload may be meant").warnings
    };
    let soft = [operation(0, "a", 2, 10, 8), operation(1, "b", 3, 10, 3)];
    assert_eq!(warnings(&soft, 1), [Anomaly::Overload { percent: 110, processors: 1 }]);
    assert_eq!(warnings(&soft, 2), []);
    let hard = [operation(0, "a", 4, 10, 8), operation(1, "b", 3, 10, 3), operation(2, "c", 0, 10, 9)];
    assert_eq!(warnings(&hard, 1), [Anomaly::CriticalOverload { percent: 110, processors: 1 }]);
    let full = [operation(0, "a", 4, 10, 7), operation(1, "b", 3, 10, 3)];
    assert_eq!(warnings(&full, 1), [], "a processor may be used completely");
}

#[test]
fn a_plan_needs_as_many_priorities_as_it_has_levels() {
    let plan = plan(Kind::RmsMlf, RULES, &operations(), 1).expect("nothing is wrong");
    assert_eq!(fit_priorities(&plan, Kind::RmsMlf, 5), Ok(()));
    let refusal = fit_priorities(&plan, Kind::RmsMlf, 4).expect_err("five lanes");
    assert_eq!(refusal.to_string(), "rms+mlf needs 5 levels but only 4 priorities are available");
}

/// Utilisations that are exactly one in integers stay one, whatever binary fractions they are made of.
#[test]
fn a_processor_filled_by_thirds_is_not_overloaded() {
    let thirds: Vec<OperationTraits> = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
        .iter()
        .enumerate()
        .map(|(index, name)| operation(index, name, 4, 10 * (index as i64 + 1), index as i64 + 1))
        .collect();
    let plan = plan(Kind::Rms, RULES, &thirds, 1).expect("nothing is wrong");
    assert_eq!(plan.warnings, []);
}

fn any_operations() -> impl Strategy<Value = Vec<OperationTraits>> {
    let any = (0..5u8, 1..5i64, 1..4i64, -1..2i32, 0..3u32);
    proptest::collection::vec(any, 1..10).prop_map(|rows| {
        rows.into_iter()
            .enumerate()
            .map(|(index, (level, period, wcet, importance, topological_rank))| OperationTraits {
                importance,
                topological_rank,
                ..operation(index, &format!("o{index}"), level, period * 10, wcet)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn every_operation_is_in_exactly_one_lane_and_critical_work_is_never_below(
        strategy in proptest::sample::select(Kind::ALL), operations in any_operations(),
    ) {
        let plan: Plan = plan(strategy, RULES, &operations, 1).expect("nothing is wrong");
        let mut placed: Vec<usize> =
            plan.lanes.iter().flat_map(|lane| lane.members.iter().map(|id| id.index())).collect();
        placed.sort_unstable();
        prop_assert_eq!(placed, (0..operations.len()).collect::<Vec<_>>());
        for a in &operations {
            for b in &operations {
                let (level_a, level_b) = (plan.lane_of(a.id), plan.lane_of(b.id));
                let higher = match strategy {
                    Kind::Rms => a.period < b.period,
                    Kind::Edf | Kind::Mlf => false,
                    Kind::Muf | Kind::Criticality => a.criticality > b.criticality,
                    Kind::RmsMlf => {
                        let by_rate = a.criticality == b.criticality && a.criticality.is_critical();
                        a.criticality > b.criticality || (by_rate && a.period < b.period)
                    }
                };
                prop_assert_eq!(higher, level_a < level_b);
            }
        }
    }
}

/// The tasks of each scheduler of kind `lanes` are sorted for themselves; the levels of the node go on from one to the next.
#[test]
fn each_place_has_lanes_of_its_own() {
    let place = |name: &str, priority| {
        SchedulerBuilder::new(name, SchedulerKind::LANES).under("root", Request::Priority(priority))
    };
    let task = |name: &str, ms, lanes: &str| {
        TaskBuilder::new(name, Duration::from_millis(ms)).wcet(Work::from_millis(1)).in_lanes(lanes)
    };
    let system = System::builder("s")
        .strategy(Kind::Rms)
        .scheduler(SchedulerBuilder::new("root", SchedulerKind::FIXED_PRIORITY))
        .scheduler(place("late", 1))
        .scheduler(place("early", 2))
        .task(task("a", 20, "early"))
        .task(task("b", 10, "late"))
        .task(task("c", 20, "late"))
        .task(task("d", 10, "early"))
        .task(task("e", 20, "late"))
        .build()
        .expect("a system");
    let plans = plan_lanes_of(&system).expect("nothing is wrong");
    let lanes: Vec<(usize, Option<usize>, &str, usize)> = plans[0]
        .lanes
        .iter()
        .map(|lane| (lane.level, lane.under, lane.label.as_str(), lane.members.len()))
        .collect();
    let expected = [
        (0, Some(1), "late 10ms", 1),
        (1, Some(1), "late 20ms", 2),
        (2, Some(2), "early 10ms", 1),
        (3, Some(2), "early 20ms", 1),
    ];
    assert_eq!(lanes, expected);
    let arrangement = arrange(&system, 0, &plans[0], 8).expect("it can be arranged").expect("a hierarchy");
    let above = |lane: usize| {
        let mut edges = arrangement.engine.parents(arrangement.lanes[lane]);
        edges.next().expect("somebody is above").above
    };
    let [late, early] = [1, 2].map(|index| Above::Scheduler(arrangement.schedulers[index].expect("seated")));
    assert_eq!([above(0), above(1), above(2), above(3)], [late, late, early, early]);
    // Posted work goes into lanes of the place that is meant, whatever stands before them.
    let posted = operation(0, "posted", 2, 15, 1);
    let lane = |below| lane_for(&system, &plans[0], below, &posted);
    assert_eq!((lane(Some(1)), lane(Some(2)), lane(None)), (Some(1), Some(3), None));
}

/// A job that waits for room keeps its whole lane: never one with a critical operation.
#[test]
fn no_job_waits_for_room_in_a_lane_of_a_critical_one() {
    let ms = Duration::from_millis;
    let system = |strategy, dispatch| {
        let take = Take::Each { capacity: 1, full: Full::Block { limit: ms(8) } };
        let soft =
            TaskBuilder::new("soft", ms(10)).criticality(Criticality::Low).output(OutputBuilder::new("out"));
        let reader = TaskBuilder::new("reader", ms(100)).criticality(Criticality::Low);
        System::builder("s")
            .strategy(strategy)
            .lane_dispatch(dispatch)
            .task(soft.wcet(Work::from_micros(1)))
            .task(TaskBuilder::new("hard", ms(10)).criticality(Criticality::High).wcet(Work::from_micros(1)))
            .task(
                reader.wcet(Work::from_micros(1)).input(InputBuilder::new("in").from("soft.out").take(take)),
            )
            .build()
            .expect("a system")
    };
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        assert!(plan_system(&system(Kind::Criticality, dispatch)).is_ok());
        let found = plan_system(&system(Kind::Rms, dispatch)).expect_err("soft and hard have one period");
        let expected = Anomaly::WaitsBeforeCritical {
            operation: "soft".into(),
            input: "reader.in".into(),
            critical: "hard".into(),
        };
        assert_eq!(found.into_iter().map(|found| found.anomaly).collect::<Vec<_>>(), [expected]);
    }
}
