//! Jobs released at one instant.

use super::{Case, DISPATCHES, Situation, conforms, ms, system, task};
use talea_model::{Criticality, Execution, LaneDispatch, Laxity, Strategy, System};
use talea_time::Work;

/// Periods, deadlines, worst cases, criticalities and importances that every strategy puts into another order.
/// What the jobs really take is a small part of what lies between their keys.
///
/// ```text
///     period  deadline   wcet  deadline - wcet  criticality  importance
/// a     10 s     9.0 s  0.01 s          8.99 s  high         0
/// b     20 s     8.0 s  0.01 s          7.99 s  low          0
/// c     10 s     8.5 s  2.00 s          6.50 s  low          1
/// d     20 s     7.0 s  0.01 s          6.99 s  high         1
/// e     20 s     9.5 s  4.50 s          5.00 s  high         0
/// ```
fn mixed(strategy: Strategy, dispatch: LaneDispatch, laxity: Laxity) -> System {
    let build = |name: &str, period, deadline, wcet, criticality, importance| {
        task(name, period)
            .deadline(ms(deadline))
            .wcet(Work::from_millis(wcet))
            .exec(Execution::Constant(Work::from_millis(1)))
            .criticality(criticality)
            .importance(importance)
    };
    system(strategy, dispatch)
        .laxity(laxity)
        .task(build("a", 10_000, 9_000, 10, Criticality::High, 0))
        .task(build("b", 20_000, 8_000, 10, Criticality::Low, 0))
        .task(build("c", 10_000, 8_500, 2_000, Criticality::Low, 1))
        .task(build("d", 20_000, 7_000, 10, Criticality::High, 1))
        .task(build("e", 20_000, 9_500, 4_500, Criticality::High, 0))
        .build()
        .expect("a system")
}

/// Lane after lane; inside a FIFO lane by importance, then file order.
fn order(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Rms => "c a d b e",
        Strategy::Edf => "d b c a e",
        Strategy::Mlf => "e c d b a",
        Strategy::Muf => "e d a c b",
        Strategy::RmsMlf => "a d e c b",
        Strategy::Criticality => "d a e c b",
    }
}

#[test]
fn jobs_released_together_run_in_the_strategys_order() {
    for strategy in Strategy::ALL {
        for dispatch in DISPATCHES {
            // In a preemptive lane laxities may move; a millisecond of work does not bridge half a second.
            let laxity = match dispatch {
                LaneDispatch::Preemptive => Laxity::Remaining,
                LaneDispatch::NonPreemptive => Laxity::Declared,
            };
            let title = format!("{strategy}, {dispatch}, together");
            let system = mixed(*strategy, dispatch, laxity);
            conforms(&Case::in_order(title, system, order(*strategy)).given(Situation::AllAtOnce));
        }
    }
}
