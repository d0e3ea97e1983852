//! What is known of tasks and chains.

use serde::Serialize;

/// What is known of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every instance meets its deadline, whatever the phases.
    Holds,
    /// An instance can miss its deadline: a run with the declared execution times does.
    Misses,
    /// Neither is proved.
    Open,
}

impl Verdict {
    /// The verdict about several things together.
    pub(super) fn together(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
        verdicts.fold(Verdict::Holds, |all, next| match (all, next) {
            (Verdict::Misses, _) | (_, Verdict::Misses) => Verdict::Misses,
            (Verdict::Open, _) | (_, Verdict::Open) => Verdict::Open,
            _ => Verdict::Holds,
        })
    }
}
