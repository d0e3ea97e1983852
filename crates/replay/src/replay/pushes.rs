//! What jobs push into channels, held against what they pushed then.

use super::Replay;
use crate::answers::PushNow;
use crate::compare::compare_pushes;
use crate::report::{Compared, What};
use crate::steps::{End, KeptPush};
use std::collections::BTreeMap;
use talea_notification::declared::{answered_push, parts_of_push};
use talea_operation::PushedBytes;
use talea_record::JobId;
use talea_record::event::Push;
use talea_record::values::MOST_BYTES;

/// Pushes of one publication by a job, in their order: which of its pushes each is, and the event; empty if there was no room for it, none if it is
/// longer than what is kept.
type Pushes<'a> = Vec<(u16, Option<&'a [u8]>)>;

/// What was found of a push: its turn among all of the job, its row, which it is of those there, and what differs.
type Found = (u16, usize, usize, Option<What>);

impl Replay {
    /// Compares what the job pushed into channels of the description with what was recorded.
    pub(super) fn settle_pushes(
        &mut self,
        end: &End,
        is_called: bool,
        pushed: Vec<PushedBytes>,
        panicked: Option<&str>,
    ) {
        // In the order in which they were pushed, so that the first difference is that of the job.
        let mut found = Vec::new();
        for place in 0..self.system.publications().len() {
            let site = &self.system.publications()[place];
            if site.operation != end.job.operation || !self.kept_pushes[place] {
                continue;
            }
            let now = pushed.iter().filter(|push| push.publication == site.id);
            let now = now.map(|push| (push.number, push.bytes.as_deref())).collect();
            let then = end.pushes.kept.iter().filter(|push| push.publication as usize == place);
            let then = then.map(|push| (push.number, Some(&push.bytes[..]))).collect();
            let missing = end.pushes.missing(place as u32);
            self.find_pushes(end, place, (then, missing), is_called.then_some(now), panicked, &mut found);
        }
        self.count_pushes(end, found);
    }

    /// The same of what it pushed into channels of the program.
    pub(super) fn settle_program_pushes(
        &mut self,
        end: &End,
        is_called: bool,
        pushed: &[PushNow],
        panicked: Option<&str>,
    ) {
        // Where nothing can be declared, the program's channels have no numbers.
        if self.workplace.is_none() || !self.tables.keeps_posts {
            return;
        }
        let described = self.system.publications().len();
        let mut then: BTreeMap<String, (Pushes<'_>, usize)> = BTreeMap::new();
        let name = |publication: u32| {
            let entry = self.tables.publications.get(publication as usize);
            entry.map(|entry| entry.name.clone())
        };
        let of_program = |publication: &u32| *publication as usize >= described;
        for push in end.pushes.kept.iter().filter(|push| of_program(&push.publication)) {
            let Some(name) = name(push.publication) else { continue };
            then.entry(name).or_default().0.push((push.number, Some(&push.bytes)));
        }
        for publication in end.pushes.publications().filter(of_program) {
            let Some(name) = name(publication) else { continue };
            then.entry(name).or_default().1 = end.pushes.missing(publication);
        }
        for push in pushed.iter().filter(|push| self.keeps_pushes_of(&push.publication)) {
            then.entry(push.publication.clone()).or_default();
        }
        let operation = self.tables.operations[end.job.operation.index()].name.clone();
        let mut found = Vec::new();
        for (publication, recorded) in then {
            let now = pushed.iter().filter(|push| push.publication == publication);
            let now = now.map(|push| (push.number, push.bytes.as_deref())).collect();
            let row = self.report.row_of_pushes(&format!("{operation}>{publication}"), true);
            // Of what has no content in the trace, the header is compared.
            let of_header = |(_, bytes): &&(u16, Option<&[u8]>)| {
                bytes.is_some_and(|bytes| parts_of_push(bytes).is_none())
            };
            self.report.publications[row].unrecorded += recorded.0.iter().filter(of_header).count() as u64;
            self.find_pushes(end, row, recorded, is_called.then_some(now), panicked, &mut found);
        }
        self.count_pushes(end, found);
    }

    /// Compares pushes of one publication, then and, if the job is called again, now.
    fn find_pushes(
        &mut self,
        end: &End,
        row: usize,
        (then, missing): (Pushes<'_>, usize),
        now: Option<Pushes<'_>>,
        panicked: Option<&str>,
        found: &mut Vec<Found>,
    ) {
        let is_cut = self.is_cut(end);
        let report = &mut self.report.publications[row];
        if missing > 0 {
            report.unrecorded += missing as u64;
            return;
        }
        let Some(now) = now else { return };
        for push in 0..then.len().max(now.len()) {
            let (turn, what) = match (then.get(push), now.get(push)) {
                (None, None) => break,
                (None, Some(_)) if is_cut => {
                    report.unrecorded += 1;
                    continue;
                }
                (None, Some((number, _))) => (*number, Some(What::NothingThen)),
                (Some((number, _)), None) => {
                    let message = panicked.map(str::to_owned);
                    let panicked = |message| What::Panicked { message };
                    (*number, Some(message.map_or(What::NothingNow, panicked)))
                }
                (Some((number, recorded)), Some((number_now, now))) => {
                    let recorded = recorded.unwrap_or_default();
                    let what = match now {
                        Some(now) => compare_pushes((*number, recorded), (*number_now, now)),
                        None => {
                            let recorded_length = recorded.len();
                            Some(What::TooLongNow { recorded_length, most: MOST_BYTES })
                        }
                    };
                    (*number.min(number_now), what)
                }
            };
            found.push((turn, row, push, what));
        }
    }

    fn count_pushes(&mut self, end: &End, mut found: Vec<Found>) {
        let Some(replayed) = &self.operations[end.job.operation.index()] else { return };
        let (is_on_track, job) = (replayed.is_on_track, self.known_as(end));
        found.sort_by_key(|(turn, ..)| *turn);
        for (_, publication, push, what) in found {
            self.report.count(Compared::Push { publication, push }, job, is_on_track, what);
        }
    }

    /// Whether the trace would have what was pushed under this name into a channel of the program: it says so of it, or, if nothing was pushed so, of another one.
    fn keeps_pushes_of(&self, name: &str) -> bool {
        let mut of_program = self.tables.publications.iter().skip(self.system.publications().len());
        match of_program.clone().find(|entry| entry.name == name) {
            Some(entry) => entry.is_kept,
            None => of_program.any(|entry| entry.is_kept),
        }
    }

    /// A job has pushed into a channel of the program, of which nothing is kept.
    pub(super) fn was_pushed_unkept(&mut self, push: Push) {
        let place = push.publication as usize;
        if place < self.system.publications().len() || self.workplace.is_none() {
            return;
        }
        let operation = self.tables.operations.get(push.job.operation.index());
        let names = operation.zip(self.tables.publications.get(place));
        let Some((operation, publication)) = names else { return };
        let name = format!("{}>{}", operation.name, publication.name);
        let row = self.report.row_of_pushes(&name, false);
        self.report.publications[row].unrecorded += 1;
    }

    /// The trace has what a job pushed, or wanted to.
    pub(super) fn was_pushed(&mut self, job: JobId, (publication, number): (u32, u16), bytes: Vec<u8>) {
        let (event, answer) = answered_push(&bytes);
        self.keeps_push_answers |= answer.is_some();
        let bytes = event.to_vec();
        self.steps.pushes_of(job).keep(KeptPush { publication, number, bytes, answer });
    }

    /// Whether the trace keeps what is pushed as this publication.
    pub(super) fn is_push_kept(&self, publication: u32) -> bool {
        let place = publication as usize;
        match place.checked_sub(self.kept_pushes.len()) {
            None => self.kept_pushes[place],
            Some(_) => {
                let entry = self.tables.publications.get(place);
                self.tables.keeps_posts && entry.is_some_and(|entry| entry.is_kept)
            }
        }
    }
}
