//! The members' accounts at the end of a run.

use crate::outcome::{MemberOutcome, ParkingOutcome};
use talea_insight::accounting::EndedEarly;
use talea_manage::{EndedRun, Received, Summary};
use talea_time::{Instant, Work};

/// What is known of the members before the run.
pub(super) struct NamedMember {
    pub name: String,
    pub parking: ParkingOutcome,
    /// What its program has called to change how it is scheduled.
    pub calls: Vec<(String, u64)>,
}

/// What a thread that is held to a maximum may have received beyond what was granted: the way from a decision to the processor with each grant,
/// and two ticks of the kernel's account.
fn allowance(granted: Work) -> i64 {
    const TICKS_NS: i64 = 8_000_000;
    granted.as_nanos() / 20 + TICKS_NS
}

/// The members' accounts at the end of the run.
pub(super) fn members(named: &[NamedMember], ended_run: &EndedRun, summary: &Summary) -> Vec<MemberOutcome> {
    let is_of = |received: &&Received, name: &str| received.name == name;
    let outcome = |member: &NamedMember| {
        let at_end = ended_run.received.iter().find(|received| is_of(received, &member.name));
        // One that left before the end has left its account.
        let account = at_end.or_else(|| summary.received.iter().find(|left| is_of(left, &member.name)));
        let exit = summary.exits.iter().find(|(name, _)| *name == member.name);
        let (granted, work) =
            account.map_or((Work::ZERO, Work::ZERO), |account| (account.granted, account.work));
        MemberOutcome {
            thread: member.name.clone(),
            granted_ns: Some(granted.as_nanos()),
            received_ns: work.as_nanos(),
            parking: member.parking,
            policy: None,
            exit: exit.map(|(_, status)| status.to_string()),
            calls: member.calls.clone(),
            excess_ns: Some((work - granted).as_nanos())
                .filter(|excess| member.parking == ParkingOutcome::Held && *excess > allowance(granted)),
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
