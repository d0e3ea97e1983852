//! Hierarchies of schedulers over real threads. Everything here is about processor time by the kernel's account and about who
//! runs after whom; what else the machine does lengthens tests and does not change them.

mod blocking;
mod boosted;
mod caps;
mod control;
pub(crate) mod families;
mod refusals;
mod restoration;
mod shares;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration as StdDuration, Instant as StdInstant};
use talea_linux::affinity;
use talea_linux::sched::{self, Policy, SchedError};
use talea_measure::skip;
use talea_policy::hierarchy::{Engine, Parameters, SchedulerId};
use talea_policy::scheduler::{Announcing, Configuration, WakeUp, config};
use talea_runtime::managed::{Admission, Handle, ManagedSet, Options, Parking, Received};
use talea_time::{Duration, Work};

/// One set at a time: all use the same CPU.
static ALONE: Mutex<()> = Mutex::new(());

/// The CPUs to manage, or `None`, said on standard error, where the privilege is missing. The last ones, because interrupts
/// tend to be on the first.
pub(crate) fn stage(cpus: usize) -> Option<(MutexGuard<'static, ()>, Options)> {
    let asked = std::thread::spawn(|| sched::set_self(Policy::Fifo(13))).join().unwrap();
    match asked {
        Ok(()) => {}
        Err(error @ SchedError::PriorityNotPermitted { .. }) => {
            skip(error);
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    let allowed = affinity::allowed().unwrap();
    if allowed.len() < cpus {
        skip(format!("this needs {cpus} CPUs, and there are {}", allowed.len()));
        return None;
    }
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Some((alone, Options::on(&allowed[allowed.len() - cpus..])))
}

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
    Admission { name, parent, parameters, parking: Parking::WorkConserving }
}

/// Uses its processor until the set ends.
fn hog(handle: &Handle) {
    while !handle.is_ended() {
        std::hint::spin_loop();
    }
}

/// Waits until `done`, looking now and then; too long is a failure.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let began = StdInstant::now();
    while !done() {
        assert!(began.elapsed() < StdDuration::from_secs(30), "waited in vain: {what}");
        std::thread::sleep(StdDuration::from_millis(2));
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

/// A program that uses its processor for ever, and is killed with the test.
fn endless() -> std::process::Command {
    let mut command = std::process::Command::new("sh");
    // Not longer than a test may take, should the test be killed before it can end it.
    command.args(["-c", "ulimit -t 60; while :; do :; done"]);
    command
}

/// A program that does not outlive its test.
pub(crate) struct Program(pub(crate) std::process::Child);

impl Program {
    pub(crate) fn start() -> Self {
        Program(endless().spawn().unwrap())
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

pub(crate) fn shared<T>(value: T) -> Arc<T> {
    Arc::new(value)
}
