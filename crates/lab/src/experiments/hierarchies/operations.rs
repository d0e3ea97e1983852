//! What operations on a running hierarchy cost: Table 4 of the paper, by the library's calls and through the control socket.
//!
//! The time of an operation is that from a program's request to its answer: it includes the edit of the description, the check of its
//! rules, the derivation of all guarantees, admission on a copy, the change itself under the dispatcher's lock, and the changes of kernel
//! priorities that follow from it. The caller is an ordinary thread, on other processors than the hierarchy's where there are any.

use super::setting;
use crate::compare::Observer;
use crate::experiments::ExperimentError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration as Pause, Instant as Stopwatch};
use talea_linux::affinity;
use talea_manage::control::protocol::{Command, EdgeRequest, Insistence, Outcome, ParentRequest};
use talea_manage::control::{Client, CommandHandler, Governor, Server, Sockets};
use talea_manage::{Admission, Blocks, ManagedSet, Options, Parking};
use talea_model::{SchedulerKind, System};
use talea_policy::arrangement::live::Live;
use talea_policy::arrangement::{ChangeAuthor, arrange};
use talea_policy::strategy::plan_lanes_of;
use talea_runtime::HierarchyError;
use talea_time::Duration;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// A request that is understood and refused at once, because its name does not exist: what every request costs.
    Refuse,
    /// A scheduler instance is created below the root.
    Create,
    /// A thread moves from time sharing to a reservation.
    Begin,
    /// The reservation becomes another one.
    Change,
    /// The thread goes back to time sharing.
    End,
    /// The time-sharing scheduler is replaced, with its two threads below it.
    Replace,
    /// The scheduler instance is destroyed.
    Destroy,
}

impl Operation {
    /// In the order in which they are done, over and over.
    pub const ALL: [Operation; 7] = [
        Operation::Refuse,
        Operation::Create,
        Operation::Begin,
        Operation::Change,
        Operation::End,
        Operation::Replace,
        Operation::Destroy,
    ];

    /// What the paper calls it.
    pub const fn title(self) -> &'static str {
        match self {
            Operation::Refuse => "refuse a name that is nobody's",
            Operation::Create => "create scheduler instance",
            Operation::Begin => "begin CPU reservation",
            Operation::Change => "change CPU reservation",
            Operation::End => "end CPU reservation",
            Operation::Replace => "replace scheduler",
            Operation::Destroy => "destroy scheduler instance",
        }
    }

    /// The paper's row.
    pub const fn published(self) -> Option<setting::PublishedOperation> {
        let (mean_ns, half_width_ns) = match self {
            Operation::Create => (25_000.0, 1_630.0),
            Operation::Destroy => (18_000.0, 51.8),
            Operation::Begin => (15_400.0, 31.1),
            Operation::End => (13_500.0, 27.2),
            Operation::Refuse | Operation::Change | Operation::Replace => return None,
        };
        Some(setting::PublishedOperation { mean_ns, half_width_ns })
    }

    fn command(self) -> Command {
        let tie = |scheduler: &str, asks| ParentRequest { scheduler: scheduler.into(), asks };
        let reserved = |text: &str| EdgeRequest::Guarantee(text.parse().expect("a guarantee"));
        match self {
            Operation::Refuse => Command::Remove { name: "nobody".into() },
            Operation::Create => Command::AddScheduler {
                name: "RR".into(),
                kind: SchedulerKind::ROUND_ROBIN.to_string(),
                quantum: None,
                settings: BTreeMap::new(),
                under: vec![tie("FP", EdgeRequest::Priority(0))],
            },
            Operation::Begin => {
                Command::Reserve { name: "app".into(), under: tie("RES", reserved("RESBH 5ms 50ms")) }
            }
            Operation::Change => {
                Command::Change { name: "app".into(), of: None, asks: reserved("RESBH 4ms 50ms") }
            }
            Operation::End => Command::Release { name: "app".into() },
            Operation::Replace => Command::Replace {
                name: "TS".into(),
                kind: SchedulerKind::TIME_SHARING.to_string(),
                quantum: Some(Duration::from_millis(50)),
                settings: BTreeMap::new(),
                children: Vec::new(),
            },
            Operation::Destroy => Command::Remove { name: "RR".into() },
        }
    }
}

/// The way in which it is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A call in the process of the hierarchy.
    Library,
    /// A client of the control socket, as `talea ctl` is, with a connection for each request.
    Socket,
}

impl Way {
    /// Both.
    pub const ALL: [Way; 2] = [Way::Library, Way::Socket];

    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Library => "library",
            Way::Socket => "socket",
        }
    }
}

/// An operation's times.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was done.
    pub operation: Operation,
    /// By which way.
    pub way: Way,
    /// Each time, in nanoseconds.
    pub ns: Vec<f64>,
}

/// The hierarchy has some time to itself between two operations.
const BETWEEN: Pause = Pause::from_micros(1500);

/// Does every operation `cycles` times in each way, and stops between cycles when the observer cancels.
///
/// # Errors
/// Real-time priorities are not permitted, or an operation was refused.
pub fn measure(cycles: usize, observer: &dyn Observer) -> Result<Vec<Measured>, ExperimentError> {
    let stage = Stage::set_up()?;
    let mut all: Vec<Measured> = Way::ALL
        .into_iter()
        .flat_map(|way| Operation::ALL.map(|operation| Measured { operation, way, ns: Vec::new() }))
        .collect();
    for cycle in 0..=cycles {
        if observer.cancelled() {
            break;
        }
        for measured in &mut all {
            let took = stage.time(measured.operation, measured.way)?;
            // The first one of all warms caches up.
            if cycle > 0 {
                measured.ns.push(took.as_nanos() as f64);
            }
            std::thread::sleep(BETWEEN);
        }
    }
    stage.end()?;
    all.retain(|measured| !measured.ns.is_empty());
    Ok(all)
}

/// A running hierarchy and who controls it.
struct Stage {
    governor: Arc<Governor>,
    client: Client,
    _server: Server,
    _folder: tempfile::TempDir,
}

fn failed(cause: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Hierarchy { system: "controlled".into(), cause: cause.to_string() }
}

fn not_enforceable(cause: impl std::fmt::Display) -> ExperimentError {
    failed(HierarchyError::NotEnforceable { missing: vec![cause.to_string()] })
}

impl Stage {
    fn set_up() -> Result<Self, ExperimentError> {
        let system = setting::controlled();
        let governor = Arc::new(govern(&system)?);
        let folder = tempfile::tempdir().map_err(failed)?;
        let sockets = Sockets::at(&folder.path().join("control")).map_err(failed)?;
        let server = Server::start(&sockets, "controlled", governor.clone()).map_err(failed)?;
        let client = Client::of(&sockets.find("controlled").map_err(failed)?);
        Ok(Stage { governor, client, _server: server, _folder: folder })
    }

    fn time(&self, operation: Operation, way: Way) -> Result<Pause, ExperimentError> {
        let command = operation.command();
        let began = Stopwatch::now();
        let outcome = match way {
            Way::Library => self.governor.handle(command, Insistence::Careful, ChangeAuthor::Program),
            Way::Socket => self.client.ask(&command, Insistence::Careful).map_err(failed)?,
        };
        let took = began.elapsed();
        match (operation, outcome) {
            (Operation::Refuse, Outcome::Misstated(_)) => Ok(took),
            (Operation::Refuse, other) | (_, other @ (Outcome::Refused(_) | Outcome::Misstated(_))) => {
                Err(failed(format!("cannot {}: {other:?}", operation.title())))
            }
            (_, Outcome::Done(_)) => Ok(took),
            (_, other) => Err(failed(format!("cannot {}: {other:?}", operation.title()))),
        }
    }

    fn end(self) -> Result<(), ExperimentError> {
        let set = self.governor.retire().expect("nobody else takes it");
        let summary = set.stop().map_err(|_| failed("a thread of the hierarchy panicked"))?;
        summary.cause.map_or(Ok(()), |cause| Err(failed(cause)))
    }
}

/// The system on real threads, which do nothing but run.
fn govern(system: &System) -> Result<Governor, ExperimentError> {
    let plans = plan_lanes_of(system).expect("the system has no lanes");
    let arrangement = arrange(system, 0, &plans[0], 8).map_err(failed)?.expect("the system has a hierarchy");
    let live = Live::new(system, 0, &arrangement).map_err(failed)?;
    let mut set = ManagedSet::prepare(arrangement.engine, &Options::on(&system.nodes[0].cpus))
        .map_err(not_enforceable)?;
    let mut members = Vec::new();
    for leaf in &arrangement.leaves {
        let name = &*system.threads[leaf.thread].name;
        let parking = match live.blueprint().is_capped(name) {
            true => Parking::Held,
            false => Parking::WorkConserving,
        };
        let admission =
            Admission { name, parent: leaf.parent, parameters: leaf.parameters, parking, edge: None };
        let spawned = set.spawn(admission, Blocks::ByHandle, |handle| {
            while !handle.is_ended() {
                std::hint::spin_loop();
            }
        });
        members.push((name.to_owned(), spawned.map_err(not_enforceable)?.0));
    }
    Ok(Governor::new(set, live, members))
}

/// Runs `work` on a thread that keeps off the processors of the controlled hierarchy, if there are others.
pub fn beside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let of_hierarchy = setting::controlled().nodes[0].cpus.clone();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let others: Vec<u16> = affinity::allowed()
                .map(|all| all.into_iter().filter(|cpu| !of_hierarchy.contains(cpu)).collect())
                .unwrap_or_default();
            if !others.is_empty() {
                let _stays_where_it_is = affinity::set(None, &others);
            }
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::Request;

    #[test]
    fn every_operation_is_a_request_of_the_protocol() {
        for operation in Operation::ALL {
            let text = serde_json::to_string(&operation.command()).expect("plain values");
            assert_eq!(serde_json::from_str::<Command>(&text).expect(&text), operation.command());
        }
    }

    #[test]
    fn a_reservation_is_asked_for_in_the_words_of_files() {
        let Command::Reserve { under, .. } = Operation::Begin.command() else { panic!("it reserves") };
        let Request::Guarantee(guarantee) = under.asks.wish() else { panic!("it asks for a guarantee") };
        assert_eq!(guarantee.to_string(), "RESBH 5ms 50ms");
    }
}
