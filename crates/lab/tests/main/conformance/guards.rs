//! What a guard keeps back lets others go first.

use super::{Case, DISPATCHES, Mark, Situation, conforms, ms, system, task};
use talea_model::{LaneDispatch, Strategy, SubtaskBuilder, Synchronisation, System, TaskBuilder};
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
