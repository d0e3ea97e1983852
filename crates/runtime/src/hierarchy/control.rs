//! The hierarchy of a run, changed from outside while it runs.

use super::accounts::NamedMember;
use crate::outcome::ParkingOutcome;
use talea_manage::Parking;
use talea_manage::control::Governor;
use talea_model::{Description, System};

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
