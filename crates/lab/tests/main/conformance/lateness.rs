//! Late work waits behind work that can still make it, or does not.
//!
//! The head of the lane needs more processor time than the doomed jobs have until their deadlines, and the calm
//! jobs have seconds. So when the head ends, the doomed jobs are late and the calm ones are not, whatever the
//! machine does.

use super::{Case, DISPATCHES, Mark, Situation, conforms, ms, system, task};
use talea_model::{Execution, LaneDispatch, Late, Strategy, System};
use talea_time::Work;

fn doomed_and_calm(strategy: Strategy, dispatch: LaneDispatch, late: Late) -> System {
    let head = Execution::Constant(Work::from_millis(80));
    system(strategy, dispatch)
        .late(late)
        .task(task("doomed-b", 10_000).deadline(ms(60)))
        .task(task("doomed-a", 10_000).deadline(ms(50)))
        .task(task("head", 10_000).deadline(ms(40)).exec(head))
        .task(task("calm-b", 10_000).deadline(ms(9_000)))
        .task(task("calm-a", 10_000).deadline(ms(8_000)))
        .build()
        .expect("a system")
}

#[test]
fn late_work_stands_where_the_system_says() {
    for strategy in [Strategy::Edf, Strategy::Mlf] {
        for (late, order) in [
            (Late::Last, "head calm-a calm-b doomed-a doomed-b"),
            (Late::None, "head doomed-a doomed-b calm-a calm-b"),
        ] {
            for dispatch in DISPATCHES {
                let title = format!("{strategy}, {dispatch}, late {late}");
                let case = Case::in_order(title, doomed_and_calm(strategy, dispatch, late), order);
                let (begun, in_time) = (Mark::Started("head#0".into()), Mark::HalfDue("head#0".into()));
                conforms(&case.given(Situation::AllAtOnce).given(Situation::Before(begun, in_time)));
            }
        }
    }
}
