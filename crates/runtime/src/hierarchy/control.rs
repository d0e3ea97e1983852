//! The hierarchy of a run, changed from outside while it runs.

use super::accounts::NamedMember;
use crate::names::{RUNS_AT_ONCE, plain};
use crate::outcome::ParkingOutcome;
use std::sync::Arc;
use talea_manage::Parking;
use talea_manage::control::{CommandHandler, Governor, ServeError, Server, Sockets};
use talea_model::{Description, System};

/// The way in from outside.
pub(crate) enum Control {
    Open(#[expect(dead_code, reason = "dropping it ends it")] Server),
    /// Nobody else can control it, for this reason.
    Closed(String),
}

impl Control {
    /// Opens a socket named after the system and, if it has several nodes, the node.
    pub fn open(system: &System, node: usize, governor: &Arc<dyn CommandHandler>) -> Self {
        let name = match system.nodes.len() {
            1 => system.name.clone(),
            _ => format!("{}.{}", system.name, system.nodes[node].name),
        };
        match serve(&plain(&name), governor) {
            Ok(server) => Control::Open(server),
            Err(error) => Control::Closed(error.to_string()),
        }
    }

    /// Lets nobody in any more.
    pub fn close(&mut self) {
        *self = Control::Closed("the run has ended".into());
    }

    /// Why nobody else can control it, if nobody can.
    pub fn closed(&self) -> Option<&str> {
        match self {
            Control::Open(_) => None,
            Control::Closed(reason) => Some(reason),
        }
    }
}

/// Another run of this process may have the name.
fn serve(name: &str, governor: &Arc<dyn CommandHandler>) -> Result<Server, ServeError> {
    let sockets = Sockets::of_user()?;
    let mut server = Server::start(&sockets, name, Arc::clone(governor));
    for run in 2..RUNS_AT_ONCE {
        if !matches!(server, Err(ServeError::Taken(_))) {
            break;
        }
        server = Server::start(&sockets, &format!("{name}-{run}"), Arc::clone(governor));
    }
    server
}

/// The description of a system whose threads are tasks, without those.
pub(super) fn description(system: &System) -> System {
    let mut index = 0;
    let mut description: Description = (**system).clone();
    description.tasks.retain(|_| {
        index += 1;
        system.thread_of_task(index - 1).is_none()
    });
    System::of_running(description).expect("what tasks are made for threads has been a system before")
}

/// Threads that have come while it ran.
pub(super) fn newcomers(governor: &Governor) -> Vec<NamedMember> {
    let member = |(name, parking)| {
        let parking = match parking {
            Parking::Held => ParkingOutcome::Held,
            Parking::WorkConserving => ParkingOutcome::WorkConserving,
        };
        NamedMember { name, parking, calls: Vec::new() }
    };
    governor.newcomers().into_iter().map(member).collect()
}
