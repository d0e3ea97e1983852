//! What jobs push into channels, held against what they pushed then.

use super::Replay;
use crate::compare::compare_pushes;
use crate::report::{Compared, What};
use crate::steps::End;
use talea_operation::PushedBytes;
use talea_record::values::MOST_BYTES;

impl Replay {
    /// Compares what the job pushed with what was recorded.
    pub(super) fn settle_pushes(
        &mut self,
        end: &End,
        is_called: bool,
        pushed: Vec<PushedBytes>,
        panicked: Option<&str>,
    ) {
        let Some(replayed) = &self.operations[end.job.operation.index()] else { return };
        let (is_on_track, is_cut) = (replayed.is_on_track, self.is_cut(end));
        // In the order in which they were pushed, so that the first difference is that of the job.
        let mut found: Vec<(u16, usize, usize, Option<What>)> = Vec::new();
        for site in self.system.publications().iter().filter(|site| site.operation == end.job.operation) {
            let place = site.id.index();
            let row = &mut self.report.publications[place];
            if !self.kept_pushes[place] {
                continue;
            }
            let missing = end.pushes.missing(place as u32);
            if missing > 0 {
                row.unrecorded += missing as u64;
                continue;
            }
            if !is_called {
                continue;
            }
            let then = end.pushes.kept.iter().filter(|(publication, ..)| *publication as usize == place);
            let mut then = then.map(|(_, number, bytes)| (*number, &bytes[..]));
            let mut now = pushed.iter().filter(|push| push.publication == site.id);
            for push in 0.. {
                let (recorded, now) = (then.next(), now.next());
                let (turn, what) = match (recorded, now) {
                    (None, None) => break,
                    (None, Some(_)) if is_cut => {
                        row.unrecorded += 1;
                        continue;
                    }
                    (None, Some(now)) => (now.number, Some(What::NothingThen)),
                    (Some((number, _)), None) => {
                        let message = panicked.map(str::to_owned);
                        let panicked = |message| What::Panicked { message };
                        (number, Some(message.map_or(What::NothingNow, panicked)))
                    }
                    (Some((number, recorded)), Some(now)) => {
                        let what = match &now.bytes {
                            Some(bytes) => compare_pushes((number, recorded), (now.number, bytes)),
                            None => {
                                let recorded_length = recorded.len();
                                Some(What::TooLongNow { recorded_length, most: MOST_BYTES })
                            }
                        };
                        (number.min(now.number), what)
                    }
                };
                found.push((turn, place, push, what));
            }
        }
        found.sort_by_key(|(turn, ..)| *turn);
        let job = self.known_as(end);
        for (_, publication, push, what) in found {
            self.report.count(Compared::Push { publication, push }, job, is_on_track, what);
        }
    }

    pub(super) fn is_push_kept(&self, publication: u32) -> bool {
        self.kept_pushes.get(publication as usize).copied().unwrap_or(false)
    }
}
