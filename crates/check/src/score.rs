//! How many deadlines of a run were met and missed, hard and soft ones apart.

use talea_insight::Report;

/// What a missed deadline means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A failure: the task is critical.
    Hard,
    /// A loss of quality.
    Soft,
}

/// How many deadlines of a kind were met and missed in a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Score {
    /// Deadlines met.
    pub met: u64,
    /// Deadlines missed.
    pub missed: u64,
    /// Instances skipped.
    pub skipped: u64,
}

impl Score {
    /// The score of the tasks of one kind in a run.
    pub fn of(report: &Report, kind: Kind) -> Score {
        let of_kind = report.tasks.iter().filter(|task| task.critical == (kind == Kind::Hard));
        of_kind.fold(Score::default(), |score, task| Score {
            met: score.met + task.met,
            missed: score.missed + task.missed,
            skipped: score.skipped + task.skipped,
        })
    }

    /// Met, missed and skipped together.
    pub fn offered(&self) -> u64 {
        self.met + self.missed + self.skipped
    }
}
