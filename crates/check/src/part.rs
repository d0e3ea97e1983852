//! What a bound is made of.

use serde::Serialize;
use talea_model::{OperationId, System};

/// What kind of thing a part of a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// The subtask itself.
    Own,
    /// The rest of its instance, and earlier ones.
    OwnOther,
    /// A job that had already started.
    Started,
    /// Others of its lane.
    SameLane,
    /// Lanes above.
    LaneAbove,
    /// Timers.
    Interrupts,
    /// Room that the method leaves.
    Method,
    /// What others in the hierarchy, or the kernel, may have meanwhile.
    Withheld,
}

impl PartKind {
    /// Every kind, in order.
    pub const ALL: [PartKind; 8] = [
        PartKind::Own,
        PartKind::OwnOther,
        PartKind::Started,
        PartKind::SameLane,
        PartKind::LaneAbove,
        PartKind::Interrupts,
        PartKind::Method,
        PartKind::Withheld,
    ];

    /// The kind in a word or two.
    pub fn in_words(self) -> &'static str {
        match self {
            PartKind::Own => "itself",
            PartKind::OwnOther => "its other work",
            PartKind::Started => "already started",
            PartKind::SameLane => "same lane",
            PartKind::LaneAbove => "lanes above",
            PartKind::Interrupts => "timers",
            PartKind::Withheld => "not received",
            PartKind::Method => "method",
        }
    }
}

/// A part of a window.
#[derive(Clone, Debug, Serialize)]
pub struct PartCheck {
    /// Its kind.
    pub kind: PartKind,
    /// What it is.
    pub cause: String,
    /// Jobs it is of; 0 where they cannot be told apart.
    pub jobs: u64,
    /// Their processor time.
    pub time_ns: i64,
}

/// The part of a lane's time in which a job of the operation may wait for room in inputs, and the lane serves nobody else.
pub(super) fn longest_wait(system: &System, id: OperationId) -> f64 {
    let limits = system.wait_limits(id).map(|limit| limit.as_nanos() as f64);
    limits.sum::<f64>() / system.task_of(id).period.as_nanos() as f64
}

/// The share of a processor that an operation may take: what it declares, or what it does if that is more.
pub(super) fn worst_case_load(system: &System, id: OperationId) -> f64 {
    let subtask = system.subtask(id);
    let longest = subtask.wcet.max(subtask.exec.max()).as_nanos() as f64;
    longest / system.task_of(id).period.as_nanos() as f64
}
