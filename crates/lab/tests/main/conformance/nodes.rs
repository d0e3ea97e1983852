//! Two nodes in one process.

use super::{Case, DISPATCHES, Mark, Scope, Situation, clock, conforms, ms, task};
use talea_model::{
    LaneDispatch, LinkBuilder, Strategy, SubtaskBuilder, Synchronisation, System, SystemBuilder, TaskBuilder,
};
use talea_record::Event;
use talea_time::Work;

fn two_nodes(strategy: Strategy, dispatch: LaneDispatch) -> SystemBuilder {
    let [first, second] = clock::cpus();
    System::builder("conformance")
        .strategy(strategy)
        .lane_dispatch(dispatch)
        .link(LinkBuilder::others().delay(ms(1)))
        .node("one", [first])
        .node("two", [second])
}

/// Each node orders its own jobs; the deadlines are opposed to the file order on one and follow it on the other.
#[test]
fn every_node_keeps_its_own_order() {
    for dispatch in DISPATCHES {
        let build = |name: &str, node: &str, deadline| task(name, 10_000).deadline(ms(deadline)).on(node);
        let system = two_nodes(Strategy::Edf, dispatch)
            .task(build("a", "one", 9_000))
            .task(build("b", "one", 8_000))
            .task(build("c", "one", 7_000))
            .task(build("d", "two", 7_000))
            .task(build("e", "two", 8_000))
            .task(build("f", "two", 9_000))
            .build()
            .expect("a system");
        let title = format!("{dispatch}, two nodes at once");
        conforms(&Case::in_order(title, system, "c b a d e f").given(Situation::AllAtOnce));
    }
}

/// A job follows everything it waits for, also across nodes, in every instance, and instances keep their order.
#[test]
fn a_graph_over_two_nodes_keeps_its_precedences() {
    for strategy in Strategy::ALL {
        conforms(&rally_of_nodes(*strategy, Synchronisation::Greedy));
    }
}

/// The same whatever keeps successors back.
#[test]
fn every_protocol_keeps_precedences_and_instances_in_order() {
    for sync in Synchronisation::ALL {
        conforms(&rally_of_nodes(Strategy::Edf, *sync));
        conforms(&rally_of_nodes(Strategy::Rms, *sync));
    }
}

fn rally_of_nodes(strategy: Strategy, sync: Synchronisation) -> Case {
    let rally = rally(sync, |name, place| SubtaskBuilder::new(name).on(place), ["one", "two", "two", "one"]);
    let system = two_nodes(strategy, LaneDispatch::NonPreemptive).task(rally).build().expect("a system");
    keeps_precedences(format!("{strategy}, {sync}, a graph over two nodes"), system)
}

/// ```text
///           +--> left  --+
///  serve ---+            +--> catch
///           +--> right --+
/// ```
/// Each step is in its place, which is a node, or a lane of one.
pub fn rally(
    sync: Synchronisation,
    step_at: impl Fn(&str, &str) -> SubtaskBuilder,
    places: [&str; 4],
) -> TaskBuilder {
    let [serve, left, right, catch] = places;
    let step = |name: &str, place: &str| {
        let step = step_at(name, place).wcet(Work::from_millis(1));
        if sync.needs_bounds() { step.bound(ms(3)) } else { step }
    };
    TaskBuilder::new("r", ms(15))
        .deadline(ms(9_000))
        .sync(sync)
        .subtask(step("serve", serve))
        .subtask(step("left", left).after(["serve"]))
        .subtask(step("right", right).after(["serve"]))
        .subtask(step("catch", catch).after(["left", "right"]))
}

/// A system with a [rally], of which some instances run.
pub fn keeps_precedences(title: String, system: System) -> Case {
    let each = |step: &str| -> Vec<String> { (0..4).map(|k| format!("r.{step}#{k}")).collect() };
    let all: Vec<String> = ["serve", "left", "right", "catch"].iter().flat_map(|step| each(step)).collect();
    let mut case = Case {
        scope: Scope::Operation,
        orders: [Event::RELEASE, Event::START, Event::COMPLETE].map(|event| (event, all.clone())).into(),
        until: all,
        ..Case::in_order(title, system, "")
    };
    for k in 0..4 {
        for (from, to) in [("serve", "left"), ("serve", "right"), ("left", "catch"), ("right", "catch")] {
            let job = |step: &str| format!("r.{step}#{k}");
            case.precedences.push((Mark::Completed(job(from)), Mark::Released(job(to))));
        }
    }
    case
}
