//! A fork and join beside a chain, in one lane.

use super::{Case, DISPATCHES, Situation, conforms, ms, system};
use talea_model::{Execution, LaneDispatch, Strategy, SubtaskBuilder, System, TaskBuilder};
use talea_time::Work;

/// ```text
///          +--> left  --+
///  src ----+            +--> sink     deadline 8 s      one --> two --> three     deadline 9 s
///          +--> right --+
/// ```
/// `left` declares a second and `one` four, so that the laxity order is not the deadline order.
fn two_graphs(strategy: Strategy, dispatch: LaneDispatch) -> System {
    let step = |name: &str, wcet_ms| {
        SubtaskBuilder::new(name)
            .wcet(Work::from_millis(wcet_ms))
            .exec(Execution::Constant(Work::from_millis(1)))
    };
    let fork = TaskBuilder::new("f", ms(10_000))
        .deadline(ms(8_000))
        .subtask(step("src", 10))
        .subtask(step("left", 1_000).after(["src"]))
        .subtask(step("right", 10).after(["src"]))
        .subtask(step("sink", 10).after(["left", "right"]));
    let chain = TaskBuilder::new("c", ms(10_000))
        .deadline(ms(9_000))
        .subtask(step("one", 4_000))
        .subtask(step("two", 10))
        .subtask(step("three", 10));
    system(strategy, dispatch).task(fork).task(chain).build().expect("a system")
}

/// By release: a successor stands behind everything released before its predecessor ended.
const FIFO: &str = "f.src c.one f.left f.right c.two f.sink c.three";
/// By end-to-end deadline: all of the fork, then all of the chain.
const DEADLINE: &str = "f.src f.left f.right f.sink c.one c.two c.three";
/// By laxity: the long first step of the chain, then all of the fork, then the rest of the chain.
const LAXITY: &str = "c.one f.src f.left f.right f.sink c.two c.three";

#[test]
fn successors_take_their_place_in_the_lane() {
    for strategy in Strategy::ALL {
        let order = match strategy {
            Strategy::Rms | Strategy::Criticality => FIFO,
            Strategy::Edf => DEADLINE,
            Strategy::Mlf | Strategy::Muf | Strategy::RmsMlf => LAXITY,
        };
        for dispatch in DISPATCHES {
            let title = format!("{strategy}, {dispatch}, graphs");
            let system = two_graphs(*strategy, dispatch);
            conforms(&Case::in_order(title, system, order).given(Situation::AllAtOnce));
        }
    }
}
