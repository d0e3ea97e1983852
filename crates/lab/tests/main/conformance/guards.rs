//! What a guard keeps back lets others go first, and what it lets through goes before them again.

use super::clock::{Simulated, Threads};
use super::{
    Case, DISPATCHES, Mark, OnTwo, Situation, below, check_if_possible, conforms, ms, processors, system,
    task,
};
use talea_model::{Execution, LaneDispatch, Strategy, SubtaskBuilder, Synchronisation, System, TaskBuilder};
use talea_runtime::RtMode;
use talea_time::Work;

/// A chain whose second step is more urgent than the other task, and may not begin for a while after the first.
fn chain_and_other(sync: Synchronisation, dispatch: LaneDispatch) -> System {
    let step = |name: &str| {
        let step = SubtaskBuilder::new(name).wcet(Work::from_millis(1));
        if sync.needs_bounds() { step.bound(ms(200)) } else { step }
    };
    let chain = TaskBuilder::new("chain", ms(10_000)).deadline(ms(8_000)).sync(sync);
    let other = task("other", 10_000).deadline(ms(9_000));
    let chain = chain.subtask(step("a")).subtask(step("b"));
    system(Strategy::Edf, dispatch).task(chain).task(other).build().expect("a system")
}

#[test]
fn a_guard_keeps_back_what_is_urgent() {
    // Through a guard that is open a step goes by way of the release thread, which is not determined to be in time for the lane's next choice
    // unless it has real-time priority.
    let is_determined = |sync: &&Synchronisation| !sync.guards();
    for sync in Synchronisation::ALL.iter().filter(is_determined) {
        for dispatch in DISPATCHES {
            let title = format!("{sync}, {dispatch}, a chain and another task");
            let system = chain_and_other(*sync, dispatch);
            let case = if sync.needs_bounds() {
                let other = (Mark::Completed("other#0".into()), Mark::Released("chain.b#0".into()));
                Case::in_order(title, system, "chain.a other chain.b")
                    .given(Situation::Before(other.0, other.1))
            } else {
                Case::in_order(title, system, "chain.a chain.b other")
            };
            conforms(&case.given(Situation::AllAtOnce));
        }
    }
}

/// The period of the chain whose guard closes.
const PERIOD_MS: i64 = 400;

/// A chain whose first step takes long in its first instance and no time to speak of in the second, so that the second step of the second
/// is signalled long before a period has passed since that of the first; another task that arrives meanwhile and is less urgent; and a third
/// that is less urgent still and keeps the node busy, as an idle point would open the guard before.
fn hurried_chain_and_other(sync: Synchronisation, dispatch: LaneDispatch) -> System {
    let slow_first = Execution::List([150, 1].map(Work::from_millis).into());
    let first = SubtaskBuilder::new("a").wcet(Work::from_millis(150)).exec(slow_first);
    let second = SubtaskBuilder::new("b").wcet(Work::from_millis(1));
    let chain = TaskBuilder::new("chain", ms(PERIOD_MS)).deadline(ms(2_000)).sync(sync);
    let chain = chain.subtask(first).subtask(second);
    // It arrives with the chain's second instance, begins when that has signalled, and is over with the filler before the guard opens.
    let other = task("other", 10_000).phase(ms(PERIOD_MS)).deadline(ms(9_000)).wcet(Work::from_millis(20));
    let filler = task("filler", 10_000).deadline(ms(9_500)).wcet(Work::from_millis(300));
    system(Strategy::Edf, dispatch).task(chain).task(other).task(filler).build().expect("a system")
}

/// A closed guard keeps an urgent step back, whatever its lane has to do; the protocol with idle points lets it through at the end of that,
/// and the one without when a period is over.
#[test]
fn a_closed_guard_keeps_back_what_is_urgent_until_it_opens() {
    for sync in Synchronisation::ALL.iter().filter(|sync| sync.guards()) {
        for dispatch in DISPATCHES {
            let title = format!("{sync}, {dispatch}, a closed guard");
            let system = hurried_chain_and_other(*sync, dispatch);
            let order = "chain.a#0 chain.b#0 chain.a#1 other#0 chain.b#1";
            let mut case = Case::in_order(title, system, order);
            let [other, kept] = [Mark::Completed("other#0".into()), Mark::Released("chain.b#1".into())];
            case.precedences.push((other, kept));
            // The release thread was there, and so was the other task when the guard was asked.
            let [here, signalled] = [Mark::Released("other#0".into()), Mark::Completed("chain.a#1".into())];
            let case = case.given(Situation::Before(here, signalled));
            case.check(&Simulated);
            case.check(&OnTwo(Simulated));
            check_with_priorities(&case);
            if dispatch == LaneDispatch::NonPreemptive {
                let obstacle = processors::obstacle().or_else(|| below::obstacle(&case.system));
                check_if_possible(&case, &OnTwo(Threads(RtMode::Strict)), obstacle);
            }
        }
    }
}

/// On threads whose release thread goes before all lanes: without that, nobody knows which of the two is first.
fn check_with_priorities(case: &Case) {
    check_if_possible(case, &Threads(RtMode::Strict), below::obstacle(&case.system));
}
