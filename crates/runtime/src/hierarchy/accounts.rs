//! The members' accounts at the end of a run.

use crate::outcome::{MemberOutcome, ParkingOutcome};
use talea_insight::accounting::EndedEarly;
use talea_manage::{EndedRun, ForeignChanges, Received, Summary};
use talea_time::{Duration, Instant, Work};

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

impl NamedMember {
    /// What it received beyond what was granted, if it is held to a maximum and this is more than the way to the processor explains.
    pub fn excess_ns(&self, (granted, work): (Work, Work)) -> Option<i64> {
        let excess = (work - granted).as_nanos();
        (self.parking == ParkingOutcome::Held && excess > allowance(granted)).then_some(excess)
    }
}

impl NamedMember {
    /// Whether its excess is explained by the time for which it ran on when it was to be held.
    fn is_held_late(&self, (granted, work): (Work, Work), late: Duration) -> bool {
        self.excess_ns((granted, work - Work::from_nanos(late.as_nanos()))).is_none()
    }
}

/// The account of a member at the end of the run; one that left before has left its account among those of `others`.
fn account<'a>(name: &str, ended_run: &'a EndedRun, others: &'a [Received]) -> Option<&'a Received> {
    let is_of = |received: &&Received| received.name == name;
    ended_run.received.iter().find(is_of).or_else(|| others.iter().find(is_of))
}

/// The members' accounts at the end of the run.
pub(super) fn members(named: &[NamedMember], ended_run: &EndedRun, summary: &Summary) -> Vec<MemberOutcome> {
    let outcome = |member: &NamedMember| {
        let account = account(&member.name, ended_run, &summary.received);
        let exit = summary.exits.iter().find(|(name, _)| *name == member.name);
        let (granted, work) =
            account.map_or((Work::ZERO, Work::ZERO), |account| (account.granted, account.work));
        let held_late = account.map_or(Duration::ZERO, |account| account.held_late);
        MemberOutcome {
            thread: member.name.clone(),
            granted_ns: Some(granted.as_nanos()),
            received_ns: work.as_nanos(),
            parking: member.parking,
            policy: None,
            exit: exit.map(|(_, status)| status.to_string()),
            calls: member.calls.clone(),
            changes: account.map_or_else(ForeignChanges::default, |account| account.changes),
            excess_ns: member.excess_ns((granted, work)),
            held_late_ns: held_late.as_nanos(),
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

/// A maximum that the kernel's account contradicts, which was not kept whatever was granted.
pub(super) struct Exceeded {
    pub edge: usize,
    /// By how much.
    pub excess_ns: i64,
    /// Whether what it ran on when it was to be held explains it.
    pub is_held_late: bool,
}

/// All of these.
pub(super) fn exceeded(named: &[NamedMember], ended_run: &EndedRun, departed: &[Received]) -> Vec<Exceeded> {
    let of = |member: &NamedMember| {
        let account = account(&member.name, ended_run, departed)?;
        let excess_ns = member.excess_ns((account.granted, account.work))?;
        // The last of them is of what was promised at the end.
        let edge = ended_run.kept.iter().rposition(|edge| edge.child == member.name)?;
        let is_held_late = member.is_held_late((account.granted, account.work), account.held_late);
        Some(Exceeded { edge, excess_ns, is_held_late })
    };
    named.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_member_exceeds_its_maximum_by_more_than_the_way_to_the_processor() {
        let named = |parking| NamedMember { name: "script".into(), parking, calls: Vec::new() };
        let excess =
            |parking, work| named(parking).excess_ns((Work::from_millis(750), Work::from_millis(work)));
        assert_eq!(excess(ParkingOutcome::Held, 2_590), Some(1_840_000_000));
        assert_eq!(excess(ParkingOutcome::Held, 790), None, "5 % and 8 ms");
        assert_eq!(excess(ParkingOutcome::WorkConserving, 2_590), None);
    }

    #[test]
    fn what_a_member_ran_on_when_it_was_to_be_held_explains_its_excess_or_does_not() {
        let member = NamedMember { name: "script".into(), parking: ParkingOutcome::Held, calls: Vec::new() };
        let (granted, work) = (Work::from_millis(100), Work::from_millis(150));
        let of = |late_ms| member.is_held_late((granted, work), Duration::from_millis(late_ms));
        assert_eq!(
            [0, 36, 37, 60].map(of),
            [false, false, true, true],
            "5 % and 8 ms are allowed in addition"
        );
    }
}
