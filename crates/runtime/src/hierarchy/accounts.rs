//! The members' accounts at the end of a run.

use crate::outcome::{MemberOutcome, ParkingOutcome};
use talea_insight::accounting::EndedEarly;
use talea_manage::{EndedRun, Received, Summary};
use talea_time::{Instant, Work};

/// What is known of the members before the run.
pub(super) struct NamedMember {
    pub name: String,
    pub parking: ParkingOutcome,
}

/// The members' accounts at the end of the run.
pub(super) fn members(named: &[NamedMember], ended_run: &EndedRun, summary: &Summary) -> Vec<MemberOutcome> {
    let is_of = |received: &&Received, name: &str| received.name == name;
    let outcome = |member: &NamedMember| {
        let at_end = ended_run.received.iter().find(|received| is_of(received, &member.name));
        // One that left before the end has left its account.
        let account = at_end.or_else(|| summary.received.iter().find(|left| is_of(left, &member.name)));
        let exit = summary.exits.iter().find(|(name, _)| *name == member.name);
        MemberOutcome {
            thread: member.name.clone(),
            granted_ns: Some(account.map_or(Work::ZERO, |account| account.granted).as_nanos()),
            received_ns: account.map_or(Work::ZERO, |account| account.work).as_nanos(),
            parking: member.parking,
            policy: None,
            exit: exit.map(|(_, status)| status.to_string()),
        }
    };
    named.iter().map(outcome).collect()
}

/// That a run from `start` to `end`, which was to last until `planned`, ended early, if that is what the cause is of.
pub(crate) fn early_end(
    cause: Option<String>,
    (start, end, planned): (Instant, Instant, Instant),
) -> Option<EndedEarly> {
    cause.filter(|_| end < planned).map(|cause| EndedEarly { at_ns: (end - start).as_nanos(), cause })
}
