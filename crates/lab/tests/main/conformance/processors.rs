//! A node of two processors: its lanes run beside each other, and each keeps its own order.

use super::clock::{self, Simulated, Threads};
use super::{Case, Mark, Situation, task};
use talea_model::{Execution, LaneDispatch, Strategy, System};
use talea_runtime::RtMode;
use talea_time::Work;

/// Two lanes by period, of two tasks each. The first job of each takes longer than the other lane takes to begin.
fn two_lanes(cpus: [u16; 2]) -> System {
    let long = |name: &str, period| {
        task(name, period).wcet(Work::from_millis(100)).exec(Execution::Constant(Work::from_millis(100)))
    };
    System::builder("conformance")
        .strategy(Strategy::Rms)
        .lane_dispatch(LaneDispatch::NonPreemptive)
        .node("one", cpus)
        .task(long("a", 10_000).importance(1))
        .task(task("b", 10_000))
        .task(long("c", 20_000).importance(1))
        .task(task("d", 20_000))
        .build()
        .expect("a system")
}

#[test]
fn two_lanes_of_two_processors_run_beside_each_other() {
    let [first, second] = clock::cpus();
    let case = |cpus| {
        let mut case = Case::in_order("two lanes on two processors".into(), two_lanes(cpus), "a b c d");
        let mark = |name: &str| format!("{name}#0");
        case.precedences = vec![
            // One processor would have the lower lane wait for the higher one.
            (Mark::Started(mark("c")), Mark::Completed(mark("a"))),
            (Mark::Started(mark("a")), Mark::Completed(mark("c"))),
        ];
        case.given(Situation::AllAtOnce)
    };
    case([0, 1]).check(&Simulated);
    if first == second {
        return talea_measure::skip("two lanes on two processors: this process may use one only");
    }
    let case = case([first, second]);
    case.check(&Threads(RtMode::Off));
    case.check(&Threads(RtMode::Warn));
}
