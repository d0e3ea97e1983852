//! Arrivals during a job that spans many periods.

use super::case::jobs;
use super::{Case, DISPATCHES, Mark, Scope, Situation, conforms, system, task};
use talea_model::{Overrun, Strategy};
use talea_record::Event;
use talea_time::Work;

const PERIOD_MS: i64 = 10;
const EXECUTION_MS: i64 = 150;
/// Arrivals that are looked at after the first one; the job lasts for twice as many.
const ARRIVALS: usize = 7;

fn numbered(numbers: std::ops::RangeInclusive<usize>) -> Vec<String> {
    numbers.map(|number| format!("busy#{number}")).collect()
}

fn case(title: String, dispatch: talea_model::LaneDispatch, overrun: Overrun) -> Case {
    let busy = task("busy", PERIOD_MS).wcet(Work::from_millis(EXECUTION_MS)).overrun(overrun);
    let system = system(Strategy::Rms, dispatch).task(busy).build().expect("a system");
    Case { scope: Scope::Operation, ..Case::in_order(title, system, "busy") }
}

/// The first is released and all that arrive before it ends are skipped, in order.
#[test]
fn skip_next_skips_whatever_arrives_meanwhile() {
    for dispatch in DISPATCHES {
        let mut case = case(format!("{dispatch}, skip-next"), dispatch, Overrun::SkipNext);
        case.orders.push((Event::RELEASE, jobs("busy")));
        case.orders.push((Event::SKIP, numbered(1..=ARRIVALS)));
        let last = Mark::Arrived(format!("busy#{ARRIVALS}"));
        let case = case.given(Situation::Before(last, Mark::Completed("busy#0".into())));
        conforms(&case);
    }
}

/// Each is released, in order, and then aborted. The order of the aborts is open: a running job ends when it sees
/// that it is to, and one that waits behind it at once.
#[test]
fn abort_ends_each_at_the_arrival_of_the_next() {
    for dispatch in DISPATCHES {
        let mut case = case(format!("{dispatch}, abort"), dispatch, Overrun::Abort);
        let all = numbered(0..=ARRIVALS - 1);
        case.orders = vec![(Event::RELEASE, all.clone())];
        for job in &all {
            case.precedences.push((Mark::Released(job.clone()), Mark::Aborted(job.clone())));
        }
        case.until = all.clone();
        conforms(&case.given(Situation::NoneCompleted(all)));
    }
}
