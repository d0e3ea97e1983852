//! One policy, two clocks: the simulator and the Linux runtime bring the jobs of a system into the same order.
//!
//! Every case is a small system and the order in which its jobs begin, end, are skipped or aborted, written
//! down by hand. Each [`Clock`] runs it and its records must show that order, so the two agree with each other
//! and with the definition. Nothing is said about times.
//!
//! What is compared, and why it is determined:
//!
//! | Module | Case | Why the order is determined |
//! |---|---|---|
//! | `together` | jobs released at one instant, under every strategy | the lane holds all when it chooses; keys differ by more than work takes |
//! | `graphs` | a fork and join beside a chain in one lane | who completes a predecessor releases its successor, before the lane chooses |
//! | `guards` | a chain whose second step is urgent, under every protocol | what it keeps back cannot be chosen |
//! | `instances` | two tasks, instance after instance | no later instance is ever more urgent than an earlier one |
//! | `arrivals` | an urgent job arrives while another runs | the running job needs more processor time than the urgent one can take to arrive |
//! | `lateness` | some jobs become late while they wait | the job they wait for needs more processor time than they have |
//! | `overload` | arrivals during a job that spans many periods | instances arrive in order, and the job goes on during all of them |
//! | `guards` | a chain whose guard closes between two instances, with real-time priorities | what is kept back goes when its period or the other work is over |
//! | `nodes` | a graph over two nodes, and two nodes at once | a message follows what it tells about |
//! | `processors` | two to five lanes of a node of two processors | those that run are the highest, each in its own order |
//! | `processors` | a chain whose guard closes, beside another lane | idle points are those of the node, whatever processor is idle |
//! | `processors` | a graph over two lanes, under every protocol and several schedulers | a predecessor is done wherever that was |
//!
//! A stalled machine can still keep the runtime from producing the *situation* a case is about, for instance
//! when a lane's thread has not gone to sleep before the first release. The records show that, so such a run is
//! made again; a situation that never comes about fails.
//!
//! Which job of several lanes of one processor runs is the kernel's choice by priority. Without real-time
//! priorities it has none to go by, and the order is compared lane by lane ([`Levels`]). The same must hold where the lanes
//! stand below other schedulers, beside threads that have nothing to do with them ([`below`]).
//!
//! Every case that says nothing else also runs on nodes of two processors ([`processors`]): its lanes run beside each other, each in the order
//! that it has alone. Which lanes run is stated of instants at which the kernel has had time to bring them where they are to be.

mod arrivals;
mod below;
mod case;
pub(crate) mod clock;
mod graphs;
mod guards;
mod instances;
mod lateness;
mod nodes;
mod observation;
mod overload;
mod processors;
mod together;

use below::Below;
use case::{Case, Scope, Situation, Spacing};
use clock::{Clock, Levels, Simulated, Threads};
use observation::{Mark, Observation};
use processors::OnTwo;
use talea_model::{LaneDispatch, Strategy, System, SystemBuilder, TaskBuilder};
use talea_runtime::RtMode;
use talea_time::{Duration, Work};

const DISPATCHES: [LaneDispatch; 2] = [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive];

const fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms)
}

/// A system of one node, on the first processor this process may use.
fn system(strategy: Strategy, dispatch: LaneDispatch) -> SystemBuilder {
    let cpus = clock::cpus();
    System::builder("conformance").strategy(strategy).lane_dispatch(dispatch).node("one", [cpus[0]])
}

/// A task of one operation that takes a millisecond.
fn task(name: &str, period_ms: i64) -> TaskBuilder {
    TaskBuilder::new(name, ms(period_ms)).wcet(Work::from_millis(1))
}

/// Every clock shows what `case` expects, with one processor for each node and with two.
fn conforms(case: &Case) {
    case.check(&Simulated);
    case.check(&Threads(RtMode::Off));
    case.check(&Threads(RtMode::Warn));
    conforms_below_schedulers(case);
    conforms_on_two_processors(case);
}

/// The same where the lanes stand below other schedulers. Those interrupt a lane between its own events, and a preemptive one
/// chooses anew when it goes on, so its orders are determined without them only.
fn conforms_below_schedulers(case: &Case) {
    if case.system.lane_dispatch == LaneDispatch::Preemptive {
        return;
    }
    case.check(&Below(Simulated));
    case.check(&OnTwo(Below(Simulated)));
    check_if_possible(case, &Below(Threads(RtMode::Strict)), below::obstacle(&case.system));
}

/// The same where every node has two processors. Preemptive lanes are not run on several.
fn conforms_on_two_processors(case: &Case) {
    case.check(&OnTwo(Simulated));
    if case.system.lane_dispatch == LaneDispatch::NonPreemptive {
        check_if_possible(case, &OnTwo(Threads(RtMode::Warn)), processors::obstacle());
    }
}

/// Checks `case` on a clock unless there is an obstacle to that, which is told.
fn check_if_possible(case: &Case, clock: &dyn Clock, obstacle: Option<String>) {
    match obstacle {
        None => case.check(clock),
        Some(obstacle) => talea_measure::skip(format!("{}: {}: {obstacle}", case.title, clock.name())),
    }
}
