//! An urgent job arrives while another one runs.

use super::case::jobs;
use super::{
    Case, DISPATCHES, Mark, Simulated, Situation, Threads, conforms, conforms_below_schedulers,
    conforms_on_two_processors, ms, system, task,
};
use talea_model::{Criticality, LaneDispatch, Strategy, TaskBuilder};
use talea_record::Event;
use talea_runtime::RtMode;
use talea_time::Work;

const LONG_MS: i64 = 60;

fn long() -> TaskBuilder {
    task("long", 10_000).deadline(ms(9_000)).wcet(Work::from_millis(LONG_MS)).criticality(Criticality::Low)
}

fn urgent() -> TaskBuilder {
    task("urgent", 10_000).deadline(ms(5_000)).phase(ms(10)).criticality(Criticality::Low)
}

/// The long job is under way when the urgent one comes.
fn under_way(case: Case) -> Case {
    let mark = |mark: fn(String) -> Mark, name| mark(format!("{name}#0"));
    case.given(Situation::Before(mark(Mark::Started, "long"), mark(Mark::Released, "urgent")))
        .given(Situation::Before(mark(Mark::Released, "urgent"), mark(Mark::Completed, "long")))
}

/// Within a lane only a preemptive one lets it through, and only if its order is not that of arrival.
#[test]
fn within_a_lane_dispatch_and_discipline_decide() {
    for strategy in [Strategy::Criticality, Strategy::Edf, Strategy::RmsMlf] {
        for dispatch in DISPATCHES {
            let passes = dispatch == LaneDispatch::Preemptive && strategy != Strategy::Criticality;
            let ends = if passes { "urgent long" } else { "long urgent" };
            let system = system(strategy, dispatch).task(long()).task(urgent()).build().expect("a system");
            let title = format!("{strategy}, {dispatch}, arrival within a lane");
            let mut case = under_way(Case::in_order(title, system, "long urgent"));
            case.orders = vec![(Event::START, jobs("long urgent")), (Event::COMPLETE, jobs(ends))];
            conforms(&case);
        }
    }
}

/// A higher lane always preempts a lower one, unless it has another processor. Where levels are ignored, nothing follows.
#[test]
fn a_higher_lane_gets_through_whatever_the_dispatch() {
    for dispatch in DISPATCHES {
        let high = urgent().criticality(Criticality::High);
        let system =
            system(Strategy::Criticality, dispatch).task(long()).task(high).build().expect("a system");
        let title = format!("{dispatch}, arrival in a higher lane");
        let mut case = under_way(Case::in_order(title, system, "long urgent"));
        case.orders.push((Event::PREEMPT, jobs("long")));
        case.orders.push((Event::RESUME, jobs("long")));
        case.orders[1] = (Event::COMPLETE, jobs("urgent long"));
        case.check(&Simulated);
        case.orders.retain(|(event, _)| *event == Event::START || *event == Event::COMPLETE);
        case.check(&Threads(RtMode::Warn));
        conforms_below_schedulers(&case);
        case.never = vec![Mark::Preempted("long#0".into())];
        conforms_on_two_processors(&case);
    }
}
