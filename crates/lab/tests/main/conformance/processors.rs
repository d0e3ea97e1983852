//! Nodes of two processors: as many lanes run as there are processors, the highest that have work, each in its own order.
//!
//! The kernel takes a moment to bring the threads of a node to the processors where they are to be. So of lanes that compete it is stated which one
//! is over first, where one that ran against its priority would be over too early by the time that whole jobs take; in virtual time it is stated of
//! every instant.

use super::clock::{self, Simulated, Threads};
use super::nodes::{keeps_precedences, rally};
use super::{
    Case, Clock, DISPATCHES, Mark, Observation, Situation, Spacing, below, check_if_possible, ms, system,
    task,
};
use talea_model::{
    Criticality, Description, Execution, LaneDispatch, OutputBuilder, Request, SchedulerBuilder,
    SchedulerKind, Strategy, SubtaskBuilder, Synchronisation, System, SystemBuilder, TaskBuilder,
    TriggerBuilder,
};
use talea_record::Event;
use talea_runtime::lowering::LoweringError;
use talea_runtime::{Executive, Operations, PrepareError, RtMode, RunOptions};
use talea_time::{Duration, Work};

/// A clock on which every node has two processors.
pub struct OnTwo<C>(pub C);

impl<C: Clock> Clock for OnTwo<C> {
    fn name(&self) -> String {
        format!("{}, two processors", self.0.name())
    }

    fn run(&self, system: &System, until: &[String]) -> Observation {
        self.0.run(&with_two(system), until)
    }
}

/// Why threads cannot do that, if they cannot.
pub fn obstacle() -> Option<String> {
    let [first, second] = clock::cpus();
    (first == second).then(|| "this process may use one processor only".into())
}

/// All nodes have the same processors: those that this process may use, or some where that is only one.
fn with_two(system: &System) -> System {
    let [first, second] = clock::cpus();
    let cpus = if first == second { vec![first, first + 1] } else { vec![first, second] };
    let mut description: Description = (**system).clone();
    for node in &mut description.nodes {
        node.cpus.clone_from(&cpus);
    }
    System::new(description).unwrap_or_else(|violations| panic!("{violations:?}"))
}

/// What `case` expects on two processors, in virtual time and on threads.
fn conforms_on_two(case: &Case) {
    case.check(&OnTwo(Simulated));
    for rt in [RtMode::Off, RtMode::Warn] {
        check_if_possible(case, &OnTwo(Threads(rt)), obstacle());
    }
}

/// The same where priorities are needed: where a release thread must go before all lanes, or schedulers stand above these.
fn conforms_on_two_with_priorities(case: &Case) {
    case.check(&OnTwo(Simulated));
    let obstacle = obstacle().or_else(|| below::obstacle(&case.system));
    check_if_possible(case, &OnTwo(Threads(RtMode::Strict)), obstacle);
}

fn takes(name: &str, period_ms: i64, work_ms: i64) -> TaskBuilder {
    let work = Work::from_millis(work_ms);
    task(name, period_ms).wcet(work).exec(Execution::Constant(work))
}

fn non_preemptive(strategy: Strategy) -> SystemBuilder {
    system(strategy, LaneDispatch::NonPreemptive)
}

/// The first instance of a task.
fn first(mark: fn(String) -> Mark, name: &str) -> Mark {
    mark(format!("{name}#0"))
}

/// Two lanes by period, of two tasks each. The first job of each takes longer than the other lane takes to begin.
#[test]
fn two_lanes_of_two_processors_run_beside_each_other() {
    let system = non_preemptive(Strategy::Rms)
        .task(takes("a", 10_000, 100).importance(1))
        .task(task("b", 10_000))
        .task(takes("c", 20_000, 100).importance(1))
        .task(task("d", 20_000))
        .build()
        .expect("a system");
    let mut case = Case::in_order("two lanes on two processors".into(), system, "a b c d");
    case.precedences = vec![
        // One processor would have the lower lane wait for the higher one.
        (first(Mark::Started, "c"), first(Mark::Completed, "a")),
        (first(Mark::Started, "a"), first(Mark::Completed, "c")),
    ];
    conforms_on_two(&case.given(Situation::AllAtOnce));
}

/// Four lanes, by period, criticality or both.
fn four_lanes(strategy: Strategy, dispatch: LaneDispatch) -> System {
    let critical = |name: &str, period_ms, work_ms, criticality| {
        takes(name, period_ms, work_ms).criticality(criticality)
    };
    system(strategy, dispatch)
        .task(critical("high", 10_000, 80, Criticality::VeryHigh))
        .task(critical("middle", 20_000, 15, Criticality::High).importance(1))
        .task(critical("next", 20_000, 15, Criticality::High))
        .task(critical("low", 40_000, 15, Criticality::Low))
        .task(critical("lowest", 80_000, 15, Criticality::VeryLow))
        .build()
        .expect("a system")
}

/// Of four lanes two wait for all work of the one that is done first, and for no more; then they go one after the other.
#[test]
fn lanes_wait_for_a_processor_in_their_order() {
    for strategy in [Strategy::Rms, Strategy::Muf, Strategy::RmsMlf, Strategy::Criticality] {
        for dispatch in DISPATCHES {
            let title = format!("{strategy}, {dispatch}, four lanes on two processors");
            let system = four_lanes(strategy, dispatch);
            let order = "high middle next low lowest";
            let mut case = Case::in_order(title, system, order).given(Situation::AllAtOnce);
            case.never = vec![first(Mark::Preempted, "high"), first(Mark::Preempted, "middle")];
            case.between_lanes = vec![
                (first(Mark::Completed, "next"), first(Mark::Completed, "low")),
                (first(Mark::Completed, "low"), first(Mark::Completed, "lowest")),
                (first(Mark::Started, "low"), first(Mark::Completed, "high")),
            ];
            if dispatch == LaneDispatch::NonPreemptive {
                conforms_on_two(&case);
            }
            for (higher, lower) in [("next", "low"), ("low", "lowest")] {
                case.between_lanes.push((first(Mark::Completed, higher), first(Mark::Started, lower)));
            }
            case.check(&OnTwo(Simulated));
        }
    }
}

/// When the highest of three lanes gets work, the lowest gives its processor up, and goes on where the middle one is done first.
#[test]
fn the_lowest_of_the_lanes_that_run_is_preempted() {
    for dispatch in DISPATCHES {
        let system = system(Strategy::Rms, dispatch)
            .task(takes("high", 10_000, 60).phase(ms(5)))
            .task(takes("middle", 20_000, 50))
            .task(takes("low", 40_000, 30).deadline(ms(30)))
            .build()
            .expect("a system");
        let title = format!("{dispatch}, the lowest of three lanes is preempted");
        let mut case = Case::in_order(title, system, "high middle low");
        // More than one of the two others had left when it lost its processor.
        case.between_lanes = vec![(first(Mark::Completed, "middle"), first(Mark::Completed, "low"))];
        case.never = vec![first(Mark::Preempted, "middle")];
        let case = case
            .given(Situation::Before(first(Mark::Started, "middle"), first(Mark::Released, "high")))
            .given(Situation::Before(first(Mark::Started, "low"), first(Mark::Released, "high")))
            .given(Situation::Before(first(Mark::Started, "high"), first(Mark::HalfDue, "low")));
        if dispatch == LaneDispatch::NonPreemptive {
            conforms_on_two_with_priorities(&case);
        }
        let mut simulated = case;
        let low = vec!["low#0".to_string()];
        simulated.orders.extend([(Event::PREEMPT, low.clone()), (Event::RESUME, low)]);
        simulated.check(&OnTwo(Simulated));
    }
}

/// What a value triggers goes on in another lane at once, whichever processor that lane has; a lane in between is busy all the time.
#[test]
fn a_lane_hands_over_to_another_one() {
    for strategy in [Strategy::Criticality, Strategy::Muf, Strategy::RmsMlf] {
        let link = |name: &str, by: &str, criticality| {
            let task = TaskBuilder::triggered_by(name, TriggerBuilder::output(format!("{by}.out")));
            let task = task.deadline(ms(9_000)).wcet(Work::from_millis(1)).criticality(criticality);
            task.output(OutputBuilder::new("out"))
        };
        let source = task("source", 10_000).criticality(Criticality::VeryHigh);
        let busy = takes("busy", 10_000, 100).criticality(Criticality::High);
        let system = non_preemptive(strategy)
            .task(source.output(OutputBuilder::new("out")))
            .task(link("down", "source", Criticality::VeryLow))
            .task(link("up", "down", Criticality::VeryHigh))
            .task(link("again", "up", Criticality::Low))
            .task(busy)
            .build()
            .expect("a system");
        let title = format!("{strategy}, lanes that hand over on two processors");
        let mut case = Case::in_order(title, system, "source down up again busy");
        for pair in ["source", "down", "up", "again"].windows(2) {
            case.precedences.push((first(Mark::Completed, pair[0]), first(Mark::Released, pair[1])));
        }
        case.between_lanes = vec![(first(Mark::Completed, "again"), first(Mark::Completed, "busy"))];
        conforms_on_two(&case);
    }
}

const PERIOD: Duration = ms(100);

/// A chain whose second instance is signalled before a period has passed since the second step of the first was released, and work in a lower
/// lane that is there from the beginning.
fn chain_beside(work_ms: i64, sync: Synchronisation, dispatch: LaneDispatch) -> System {
    let slow_first = Execution::List([40, 1].map(Work::from_millis).into());
    let chain = TaskBuilder::new("chain", PERIOD)
        .deadline(ms(2_000))
        .sync(sync)
        .subtask(SubtaskBuilder::new("a").wcet(Work::from_millis(40)).exec(slow_first))
        .subtask(SubtaskBuilder::new("b").wcet(Work::from_millis(1)));
    system(Strategy::Rms, dispatch)
        .task(chain)
        .task(takes("beside", 10_000, work_ms))
        .build()
        .expect("a system")
}

/// A node is at an idle point when all its lanes are without work, and not when one is that has a processor to itself.
#[test]
fn idle_points_are_those_of_all_processors() {
    for sync in Synchronisation::ALL.iter().filter(|sync| sync.guards()) {
        for dispatch in DISPATCHES {
            let check = |title: &str, work_ms, spacing: fn(Duration, [String; 2]) -> Spacing| {
                let system = chain_beside(work_ms, *sync, dispatch);
                let title = format!("{sync}, {dispatch}, {title}");
                let order = "chain.a#0 chain.b#0 chain.a#1 chain.b#1";
                let mut case = Case::in_order(title, system, order);
                let job = |step: &str, instance| format!("chain.{step}#{instance}");
                case.spacings = vec![spacing(PERIOD, [job("b", 0), job("b", 1)])];
                let signalled = Situation::CompletedWithin(PERIOD, [job("b", 0), job("a", 1)]);
                let mut case = case.given(signalled);
                if work_ms < PERIOD.as_nanos() / 1_000_000 {
                    let ends = first(Mark::Completed, "beside");
                    case = case.given(Situation::Before(ends, Mark::Completed(job("a", 1))));
                }
                match dispatch {
                    LaneDispatch::NonPreemptive => conforms_on_two_with_priorities(&case),
                    LaneDispatch::Preemptive => case.check(&OnTwo(Simulated)),
                }
            };
            check("a busy processor", 250, Spacing::AtLeast);
            let heeds = *sync != Synchronisation::ReleaseGuard;
            check("idle processors", 10, if heeds { Spacing::LessThan } else { Spacing::AtLeast });
        }
    }
}

/// A node with two lanes below schedulers, `one` and `two`.
fn two_lanes_below(shape: &str) -> SystemBuilder {
    let scheduler = |name: &str, kind| SchedulerBuilder::new(name, kind);
    let lanes = |name: &str| scheduler(name, SchedulerKind::LANES);
    let nothing = || Request::Nothing;
    let reserved = |amount: &str| Request::Guarantee(amount.parse().expect("a guarantee"));
    let system = non_preemptive(Strategy::Rms);
    match shape {
        "fixed-priority" => system
            .scheduler(scheduler("root", SchedulerKind::FIXED_PRIORITY))
            .scheduler(lanes("one").under("root", Request::Priority(2)))
            .scheduler(lanes("two").under("root", Request::Priority(1))),
        "shares" => system
            .scheduler(scheduler("root", SchedulerKind::SFS))
            .scheduler(lanes("one").with_share("root", 2))
            .scheduler(lanes("two").with_share("root", 1)),
        "turns and reservations" => system
            .scheduler(scheduler("root", SchedulerKind::FIXED_PRIORITY))
            .scheduler(scheduler("turns", SchedulerKind::ROUND_ROBIN).under("root", Request::Priority(2)))
            .scheduler(scheduler("reserved", SchedulerKind::RESERVATION).under("root", Request::Priority(1)))
            .scheduler(lanes("one").under("turns", nothing()))
            .scheduler(lanes("two").under("reserved", reserved("RESBH 15ms 20ms"))),
        other => panic!("no shape {other}"),
    }
}

const SHAPES: [&str; 3] = ["fixed-priority", "shares", "turns and reservations"];

/// Steps are in lanes on different processors, before and behind a join.
#[test]
fn a_graph_over_two_lanes_keeps_its_precedences() {
    for shape in SHAPES {
        for sync in Synchronisation::ALL {
            let step_in = |name: &str, place: &str| SubtaskBuilder::new(name).in_lanes(place);
            let rally = rally(*sync, step_in, ["one", "one", "two", "two"]);
            let system = two_lanes_below(shape).task(rally).build().expect("a system");
            let case = keeps_precedences(format!("{shape}, {sync}, a graph over two lanes"), system);
            case.check(&Simulated);
            conforms_on_two_with_priorities(&case);
        }
    }
}

/// The branches of a fork run beside each other, and what joins them waits for the later.
#[test]
fn branches_in_two_lanes_run_beside_each_other() {
    for shape in SHAPES {
        let step = |name: &str, place: &str, work_ms| {
            let work = Work::from_millis(work_ms);
            SubtaskBuilder::new(name).in_lanes(place).wcet(work).exec(Execution::Constant(work))
        };
        let fork = TaskBuilder::new("f", ms(10_000))
            .subtask(step("src", "two", 1))
            .subtask(step("left", "one", 40).after(["src"]))
            .subtask(step("right", "two", 40).after(["src"]))
            .subtask(step("sink", "one", 1).after(["left", "right"]));
        let system = two_lanes_below(shape).task(fork).build().expect("a system");
        let mut case = Case::in_order(
            format!("{shape}, branches on two processors"),
            system,
            "f.src f.left f.right f.sink",
        );
        case.precedences = vec![
            (first(Mark::Started, "f.left"), first(Mark::Completed, "f.right")),
            (first(Mark::Started, "f.right"), first(Mark::Completed, "f.left")),
            (first(Mark::Completed, "f.left"), first(Mark::Released, "f.sink")),
            (first(Mark::Completed, "f.right"), first(Mark::Released, "f.sink")),
        ];
        conforms_on_two_with_priorities(&case);
    }
}

/// Preemptive lanes are simulated on several processors and not run there.
#[test]
fn preemptive_lanes_are_not_run_on_several_processors() {
    if let Some(obstacle) = obstacle() {
        return talea_measure::skip(obstacle);
    }
    for strategy in Strategy::ALL {
        let system = with_two(&four_lanes(*strategy, LaneDispatch::Preemptive));
        let refused = Executive::prepare(&system, Operations::synthetic(), RunOptions::default());
        let Err(PrepareError::Lowering { node, source }) = refused else { panic!("{strategy}: {refused:?}") };
        let of_two = matches!(source, LoweringError::PreemptiveOnSeveralCpus { cpus: 2, .. });
        assert!(of_two && node == "one", "{strategy}: {source}");
    }
}
