//! Hierarchies of schedulers over real threads. Everything here is about processor time by the kernel's account and about who
//! runs after whom; what else the machine does lengthens tests and does not change them.

mod adopted;
mod blocking;
mod boosted;
mod caps;
mod control;
mod families;
mod hostile;
mod mid_exec;
mod programs;
mod refusals;
mod restoration;
mod shares;

use programs::eventually;
use talea_manage::{Admission, Handle, ManagedSet, Parking, Received, Target};
use talea_model::ChildProcesses;
use talea_policy::arrangement::{ChangeAuthor, ChangeCause, ChangeReason};
use talea_policy::hierarchy::{Engine, Parameters, SchedulerId};
use talea_policy::scheduler::{Announcing, Configuration, WakeUp, config};
use talea_time::{Duration, Work};

/// The test takes a member out.
const REMOVED: ChangeCause = ChangeCause::careful(ChangeAuthor::Program, ChangeReason::ThreadRemoved);

/// An engine with one scheduler.
fn flat(kind: impl Into<Configuration>) -> (Engine, SchedulerId) {
    let mut engine = Engine::new(1);
    let root = engine.add_root(kind.into().build(Announcing::Nothing).unwrap());
    (engine, root)
}

fn proportional() -> Configuration {
    config::ProportionalShare { quantum: Work::from_millis(5), wake_up: WakeUp::Preempts }.into()
}

fn reservation(budget_ms: i64, period_ms: i64) -> Parameters {
    Parameters::Reservation { budget: Work::from_millis(budget_ms), period: Duration::from_millis(period_ms) }
}

fn admission(name: &str, parent: SchedulerId, parameters: Parameters) -> Admission<'_> {
    Admission { name, parent, parameters, parking: Parking::WorkConserving, edge: None }
}

/// A process with all that it has started and starts.
fn whole(process: u32) -> Target {
    Target::Process(process, ChildProcesses::All)
}

/// Uses its processor until the set ends.
fn hog(handle: &Handle) {
    while !handle.is_ended() {
        std::hint::spin_loop();
    }
}

/// What each receives from now on, until all together have received `total`. Members that are taken in while others run already
/// have missed what those received.
fn after(set: &ManagedSet, total: Work) -> Vec<Received> {
    let (_, before) = set.received();
    let mut since = Vec::new();
    eventually("the members receive processor time", || {
        since = set.received().1;
        for (now, before) in since.iter_mut().zip(&before) {
            now.work -= before.work;
            now.granted -= before.granted;
        }
        since.iter().map(|received| received.work.as_nanos()).sum::<i64>() >= total.as_nanos()
    });
    since
}

/// The part of all that `name` has received.
fn part(received: &[Received], name: &str) -> f64 {
    let total: i64 = received.iter().map(|received| received.work.as_nanos()).sum();
    let own = received.iter().find(|received| received.name == name).expect("a member");
    own.work.as_nanos() as f64 / total as f64
}
