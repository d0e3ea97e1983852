//! What came of a hierarchy's run.

use crate::lowering::hierarchy::PartAccount;
use serde::{Deserialize, Serialize};
use talea_insight::accounting::EndedEarly;
use talea_manage::{ForeignChanges, JudgedBy, Parking};
use talea_policy::arrangement::Kept;

/// How a member that may not run is kept from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParkingOutcome {
    /// By priority: it uses processors that nobody else wants.
    WorkConserving,
    /// It is held: what it is promised is a maximum.
    Held,
    /// It should be held and could not be, so it may receive more than it is promised.
    NotHeld,
    /// By the kernel alone, by its policy.
    Kernel,
}

impl From<Parking> for ParkingOutcome {
    fn from(parking: Parking) -> Self {
        match parking {
            Parking::WorkConserving => ParkingOutcome::WorkConserving,
            Parking::Held => ParkingOutcome::Held,
        }
    }
}

/// A thread of the description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberOutcome {
    /// Its name.
    pub thread: String,
    /// Time for which the hierarchy granted it a processor; none where the kernel schedules it.
    pub granted_ns: Option<i64>,
    /// Processor time by the kernel's account, on idle processors as well.
    pub received_ns: i64,
    /// How it was kept from running while it had none, at last if that has changed.
    pub parking: ParkingOutcome,
    /// The policy with which the kernel schedules it, read back, where nobody else does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// How its program ended before the run did, if it did.
    pub exit: Option<String>,
    /// Calls by which its program would have changed how it is scheduled, and how often each was made. They were refused, or answered and
    /// without effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(String, u64)>,
    /// How often somebody else has changed how its threads are scheduled, if it was there before the run. It was put back.
    #[serde(default, skip_serializing_if = "ForeignChanges::are_none")]
    pub changes: ForeignChanges,
    /// By how much what the kernel accounts is beyond what was granted, where that was a maximum. Then its promise is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess_ns: Option<i64>,
    /// For how long it ran on when it was to be held, for somebody moved processes from one cgroup to another, which the kernel lets nobody freeze a program
    /// beside.
    #[serde(default)]
    pub held_late_ns: i64,
}

/// Who scheduled a node's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduledBy {
    /// The hierarchy's schedulers, at user level. Promises were judged.
    #[default]
    Infrastructure,
    /// The kernel, with settings that do the same. Promises were not judged, for nobody saw when who could have run.
    Kernel,
}

/// What came of a node's hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HierarchyOutcome {
    /// The node.
    pub node: String,
    /// Who scheduled it.
    #[serde(default)]
    pub scheduled_by: ScheduledBy,
    /// What kept programs from being contained, and which of them were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncontained: Vec<String>,
    /// What of it was lowered to the kernel and what was not, if that was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lowering: Vec<PartAccount>,
    /// What became of the promise on every edge.
    pub edges: Vec<Kept>,
    /// By what these were judged; none where the kernel schedules, which nobody judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_by: Option<JudgedBy>,
    /// The threads, in file order, and then those that came while it ran.
    pub members: Vec<MemberOutcome>,
    /// Edges, schedulers and threads that came while it ran and that the trace does not tell of, for want of room or of numbers.
    #[serde(default)]
    pub undefined: u64,
    /// Members that were raised to a processor.
    pub grants: u64,
    /// What the root was given of each processor, if it left the kernel its part in slices; promises are derived from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,
    /// Why it did not, though it may have taken more than the kernel leaves: who would not have received what they need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsliced: Option<String>,
    /// Times that a processor was left to ordinary threads for a moment, so that the kernel takes it from real-time ones for no longer.
    #[serde(default)]
    pub slices: u64,
    /// Why wake-ups of programs are found by looking now and then, if they are.
    pub untraced: Option<String>,
    /// Why nobody else could control it while it ran, if nobody could.
    pub uncontrolled: Option<String>,
    /// Threads that programs created beyond what can be managed.
    pub unmanaged_threads: u64,
    /// That it ended before the run was to, for a cause of its own. The run has failed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EndedEarly>,
    /// Why the hierarchy does not compose, if it does not.
    pub shortcomings: Option<String>,
    /// Threads of others that keep a real-time priority, because the kernel refused to take it away, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrestored: Option<String>,
}
