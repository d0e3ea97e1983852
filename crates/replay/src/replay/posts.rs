//! Work that was posted: who has declared it now, which of its jobs are called again, and what jobs post.

use super::Replay;
use super::replayed::{Replayed, TakenBeside};
use crate::answers::{Answers, PostNow, RecordedPost};
use crate::compare::{ComparedPost, compare_posts};
use crate::report::{Compared, NotCalled, What};
use crate::steps::{End, Ending, Recorded};
use talea_operation::{DeclaredOperation, ReplayWorkplace};
use talea_record::difference::declaration_differences;
use talea_record::event::Dates;
use talea_record::{JobId, PostOutcome};
use talea_time::Instant;

impl Replay {
    /// Whether it is a job of work that was posted.
    pub(super) fn is_posted(&self, job: JobId) -> bool {
        job.operation.index() >= self.system.operations().len()
    }

    /// Operations that have been declared are those of the same names that the trace has.
    pub(super) fn take_declared(&mut self) {
        let Some(workplace) = &self.workplace else { return };
        let new = workplace.take_new();
        if new.is_empty() {
            return;
        }
        self.not_posted.extend(new);
        self.find_declared();
    }

    /// The same of those that the trace did not have before.
    pub(super) fn find_declared(&mut self) {
        let described = self.system.operations().len();
        for declared in std::mem::take(&mut self.not_posted) {
            let DeclaredOperation { declaration, placement, .. } = &declared;
            let mut posted = self.tables.operations.iter().skip(described);
            let Some(place) = posted.position(|entry| entry.name == declaration.name) else {
                self.not_posted.push(declared);
                continue;
            };
            let (wcet, lane) = (declaration.wcet, (placement.node, placement.level));
            let dates = (declaration.deadline, declaration.criticality);
            let differences = declaration_differences(&self.tables, described + place, (wcet, lane), dates);
            self.report.differences.extend(differences);
            let (is_on_track, taken) = (!self.has_gaps, TakenBeside::Nothing);
            let (operation, handed, turns) = (declared.operation, declared.handed, declared.turns);
            self.operations[described + place] =
                Some(Replayed { operation, holder: None, is_on_track, taken, handed, turns });
        }
    }

    /// Why a job of posted work is not called again, if it is not.
    pub(super) fn reason_not_to_call(&self, end: &End, answers: &Answers) -> Option<NotCalled> {
        let place = end.job.operation.index();
        let entry = &self.tables.operations[place];
        if entry.is_of_channel && !entry.keeps_events {
            return Some(NotCalled::OfChannel);
        }
        let Some(replayed) = &self.operations[place] else { return Some(NotCalled::NotDeclared) };
        let is_known = match (entry.is_of_channel, &end.beside) {
            (true, Some(Recorded::Bytes(_))) => true,
            (true, _) => false,
            (false, _) => answers.handle.is_some(),
        };
        match replayed.handed.is_some() == entry.is_of_channel {
            _ if replayed.is_outside() => Some(NotCalled::Outside),
            // Of the same name, and not the same: a consumer then, and posted work now, or the other way round.
            false => Some(NotCalled::NotDeclared),
            true => (!is_known).then_some(NotCalled::Lost),
        }
    }

    /// A job of posted work is not called again.
    pub(super) fn leave_out(&mut self, end: &End, why: NotCalled) {
        if end.how != Ending::Completed {
            return;
        }
        let place = end.job.operation.index();
        let jobs = self.not_called.entry((place, why)).or_default();
        *jobs += 1;
        let is_first = *jobs == 1;
        match why {
            NotCalled::NotDeclared if is_first && self.workplace.is_some() => {
                let declared = self.workplace.as_ref().map_or_else(Vec::new, ReplayWorkplace::names);
                let (what, job) = (What::NotDeclared { declared }, self.known_as(end));
                let row = self.report.row_of_posts(&self.tables.operations[place].name);
                self.report.count(Compared::Post { row, post: None }, job, true, Some(what));
            }
            NotCalled::Lost | NotCalled::Unreadable => self.leave_track(end.job.operation),
            NotCalled::Outside => self.report.outside += 1,
            NotCalled::NotDeclared | NotCalled::OfChannel | NotCalled::NotRecorded => {}
        }
    }

    /// Compares what the job posted with what was recorded.
    pub(super) fn settle_posts(
        &mut self,
        end: &End,
        recorded: &[RecordedPost],
        now: &[PostNow],
        panicked: Option<&str>,
    ) {
        let place = end.job.operation.index();
        let Some(replayed) = self.operations[place].as_ref().filter(|_| self.tables.keeps_posts) else {
            return;
        };
        let (is_on_track, job) = (replayed.is_on_track, self.known_as(end));
        let name = self.tables.operations[place].name.clone();
        // Where nothing can be declared, nothing can be posted either.
        let comparable = if self.workplace.is_some() { recorded.len().max(now.len()) } else { 0 };
        for post in 0..comparable {
            let (recorded, now) = (recorded.get(post), now.get(post));
            let dates = recorded.and_then(|recorded| self.dates.remove(&recorded.job));
            let since_start = |at: Instant| at.as_nanos().saturating_sub(self.tables.start.as_nanos());
            // How long its jobs have, and execute, was told when it was declared, if that is otherwise.
            let declared = recorded.map(|recorded| &self.tables.operations[recorded.job.operation.index()]);
            let relative = declared.map(|declared| self.tables.tasks[declared.task].deadline);
            let due = dates.zip(relative).map(|(Dates { nominal, .. }, relative)| {
                let explicit = now.and_then(|now| now.deadline);
                since_start(explicit.unwrap_or(nominal.saturating_add(relative)).max(nominal))
            });
            let recorded = recorded.zip(declared).map(|(post, declared)| {
                let RecordedPost { job, handle, outcome, refused_wcet } = post;
                // What is told of a job is there until its turn; of one that was refused, its own record tells.
                let is_told = dates.is_some() && *outcome == Some(PostOutcome::Posted);
                let own = self.answers.get(job).and_then(|answers| answers.wcet);
                ComparedPost {
                    operation: &declared.name,
                    handle: *handle,
                    due: dates.map(|dates| since_start(dates.deadline)),
                    wcet: is_told.then(|| own.unwrap_or(declared.wcet)).or(*refused_wcet),
                }
            });
            let now = now.map(|now| ComparedPost {
                operation: &now.operation,
                handle: now.handle,
                due,
                wcet: now.wcet.or(declared.map(|declared| declared.wcet)),
            });
            let Some(posted) = recorded.or(now) else { continue };
            let row = self.report.row_of_posts(&format!("{name}>{}", posted.operation));
            let what = compare_posts(recorded, now, panicked);
            self.report.count(Compared::Post { row, post: Some(post) }, job, is_on_track, what);
        }
        let was_posted = self.is_posted(end.job) && end.how == Ending::Completed;
        if let Some(message) = panicked.filter(|_| was_posted) {
            let what = What::CompletedThen { message: message.to_owned() };
            let row = self.report.row_of_posts(&name);
            self.report.count(Compared::Post { row, post: None }, job, is_on_track, Some(what));
        }
    }

    /// A job of the description posted then, and its operation has no code now.
    pub(super) fn was_posted_by_silent(&mut self, by: JobId, job: JobId, at: Instant) {
        if self.workplace.is_none() || !self.tables.keeps_posts {
            return;
        }
        let post = self.silent.filter(|(other, _)| *other == by).map_or(0, |(_, posts)| posts);
        self.silent = Some((by, post + 1));
        let name = |job: JobId| self.tables.operations[job.operation.index()].name.as_str();
        let row = format!("{}>{}", name(by), name(job));
        let row = self.report.row_of_posts(&row);
        let since_start = at.as_nanos().saturating_sub(self.tables.start.as_nanos());
        let known_as = (by.instance, since_start);
        let compared = Compared::Post { row, post: Some(post) };
        self.report.count(compared, known_as, !self.has_gaps, Some(What::NothingNow));
    }
}
