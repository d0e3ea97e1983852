//! What the code of consumers says of what it is handed, held against what it said then.

use super::Replay;
use crate::answers::{Answers, HandedEvent};
use crate::report::{Compared, What};
use crate::steps::End;
use talea_record::CallOutcome;

impl Replay {
    /// Compares what the code of a consumer said in a job, call by call, with what was recorded. Traces of before do not have it.
    pub(super) fn settle_outcomes(&mut self, end: &End, then: &Answers, now: &[CallOutcome]) {
        if now.is_empty() && then.outcomes.is_empty() {
            return;
        }
        let place = end.job.operation.index();
        let Some(replayed) = &self.operations[place] else { return };
        let (is_on_track, job) = (replayed.is_on_track, self.known_as(end));
        let row = self.report.row_of_outcomes(&self.tables.operations[place].name);
        if then.outcomes.is_empty() {
            self.report.outcomes[row].unrecorded += now.len() as u64;
            return;
        }
        self.report.outcomes[row].is_kept = true;
        let others = then.outcomes.keys().map(|call| *call as usize).filter(|call| *call >= now.len());
        for call in (0..now.len()).chain(others) {
            let recorded = then.outcomes.get(&(call as u64)).copied();
            let what = match (recorded, now.get(call).copied()) {
                (Some(None), _) => {
                    self.report.outcomes[row].unrecorded += 1;
                    continue;
                }
                (Some(recorded), Some(now)) if recorded == Some(now) => None,
                (Some(Some(recorded)), Some(now)) => {
                    let handed = then.handed.get(call).map(Vec::as_slice).unwrap_or_default();
                    Some(What::Outcome {
                        event: handed.first().map(|event| self.shown(*event)),
                        others: handed.len().saturating_sub(1),
                        recorded,
                        now,
                    })
                }
                (None, _) => Some(What::NothingThen),
                (Some(Some(_)), None) => Some(What::NothingNow),
            };
            self.report.count(Compared::Outcome { row, call }, job, is_on_track, what);
        }
    }

    /// As what an event was pushed, and by whom.
    fn shown(&self, HandedEvent { publication, from }: HandedEvent) -> String {
        let publication = publication.and_then(|place| self.tables.publications.get(place as usize));
        let publication = publication.map_or("an event", |entry| &entry.name);
        match from.filter(|from| from.operation.index() < self.tables.operations.len()) {
            Some(from) => format!("{publication} of {}", self.tables.job_name(from)),
            None => publication.to_owned(),
        }
    }
}
