//! Threads under hierarchies.

mod figure;
mod reckoning;

use talea_model::Execution;
use talea_policy::hierarchy::{Engine, Parameters, SchedulerId, VpId};
use talea_policy::scheduler::{Announcing, Kind};
use talea_sim::threads::Load;
use talea_time::{Duration, Instant, Work};

fn at(ms: i64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn bursts(burst_ms: i64, period_ms: i64) -> Load {
    let (work, period) = (Work::from_millis(burst_ms), Duration::from_millis(period_ms));
    let exec = Execution::Constant(work);
    Load::Bursts { exec, wcet: work, period, phase: Duration::ZERO, deadline: period }
}

fn reservation(budget_ms: i64, period_ms: i64) -> Parameters {
    Parameters::Reservation { budget: Work::from_millis(budget_ms), period: Duration::from_millis(period_ms) }
}

fn add(engine: &mut Engine, kind: &Kind, parents: &[(SchedulerId, Parameters)]) -> SchedulerId {
    engine.add(kind.build(Announcing::Nothing).expect("in range"), parents).expect("there is room")
}

fn thread(engine: &mut Engine, parent: SchedulerId, parameters: Parameters) -> VpId {
    engine.add_thread(parent, parameters).expect("there is room")
}
