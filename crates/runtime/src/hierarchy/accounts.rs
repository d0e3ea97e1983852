//! The members' accounts at the end of a run.

use crate::outcome::{MemberOutcome, ParkingOutcome};
use talea_insight::accounting::EndedEarly;
use talea_manage::{Finale, Received, Summary};
use talea_time::{Instant, Work};

/// What is known of the members before the run.
pub(super) struct Role {
    pub name: String,
    pub parking: ParkingOutcome,
}

/// The members' accounts at the end of the run.
pub(super) fn members(roles: &[Role], finale: &Finale, summary: &Summary) -> Vec<MemberOutcome> {
    let named = |received: &&Received, name: &str| received.name == name;
    let outcome = |role: &Role| {
        let at_end = finale.received.iter().find(|received| named(received, &role.name));
        // One that left before the end has left its account.
        let account = at_end.or_else(|| summary.received.iter().find(|left| named(left, &role.name)));
        let exit = summary.exits.iter().find(|(name, _)| *name == role.name);
        MemberOutcome {
            thread: role.name.clone(),
            granted_ns: Some(account.map_or(Work::ZERO, |account| account.granted).as_nanos()),
            received_ns: account.map_or(Work::ZERO, |account| account.work).as_nanos(),
            parking: role.parking,
            policy: None,
            exit: exit.map(|(_, status)| status.to_string()),
        }
    };
    roles.iter().map(outcome).collect()
}

/// That a run from `start` to `end`, which was to last until `planned`, ended early, if that is what the cause is of.
pub(crate) fn early_end(
    cause: Option<String>,
    (start, end, planned): (Instant, Instant, Instant),
) -> Option<EndedEarly> {
    cause.filter(|_| end < planned).map(|cause| EndedEarly { at_ns: (end - start).as_nanos(), cause })
}
