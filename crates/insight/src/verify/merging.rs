//! Whether arrivals were merged where the overrun policy says so: with an instance that had not begun, and always with one that had not.
//!
//! | Of an instance | is wrong |
//! |---|---|
//! | that was merged | if none before it waited, in its lane or at its guard |
//! | that was released | if the one before it had not begun when it came, or was still at the guard |
//! | that waits at its guard | if one before it does |
//!
//! In virtual time what came while another was at the guard is known from arrivals and releases. On real threads the thread that keeps the guard may hear of
//! an arrival later than it happened; what it had let wait then is known from its records (`dispatch.guard`).

use super::Rule;
use super::arrivals::comes_over_link;
use super::judge::{Judge, Known};
use super::releases::saturating;
use talea_model::Overrun;
use talea_record::event::{Release, Skip, Typed};
use talea_record::{JobId, Record, SkipReason};
use talea_time::Instant;

/// What is known of the instances of one task that are merged.
#[derive(Clone, Debug, Default)]
pub(super) struct Merging {
    /// The job that was released last, and since when it does not wait any more.
    last: Option<(JobId, Option<Instant>)>,
    /// When that was released.
    last_release: Option<Instant>,
    /// Of real threads: the job that waits at its guard, as far as is recorded.
    at_guard: Option<JobId>,
    /// The first that a guard holds at the end.
    held_at_end: Option<JobId>,
    /// Those that were released although the one before had not begun, as far as was told by then.
    doubtful: Vec<Doubtful>,
    /// The first that was merged although nothing that had been released waited, so that a guard must hold one before it; and when.
    with_held: Option<(JobId, Instant)>,
}

impl Merging {
    /// Records are missing: what waited at its guard may have been released.
    pub fn forget(&mut self) {
        self.at_guard = None;
    }
}

#[derive(Clone, Copy, Debug)]
struct Doubtful {
    before: JobId,
    job: JobId,
    at: Instant,
}

const BESIDE_ANOTHER: &str =
    "it waited at its guard beside the one before, and should have been merged with it";
const NOTHING_BEFORE: &str = "it was merged, and nothing before it was waiting";

impl Judge<'_> {
    /// A record of a first job of a task whose instances are merged.
    pub(super) fn check_merging(&mut self, record: &Record) {
        let job = record.job();
        let entry = &self.trace.operations[job.operation.index()];
        let task = entry.task;
        if !self.merges(task) || !entry.predecessors.is_empty() {
            return;
        }
        match record.typed() {
            Typed::Release(told) => self.released_beside(task, told),
            Typed::Start(_) | Typed::Abort(_) => self.waits_no_more(task, job),
            Typed::Skip(skip) => {
                self.leaves_guard(task, job);
                if skip.reason == SkipReason::Merged {
                    self.merged(task, skip);
                }
            }
            _ => {}
        }
    }

    /// Whether instances of the task are merged; of none that no description has.
    fn merges(&self, task: usize) -> bool {
        self.system.tasks.get(task).is_some_and(|task| task.overrun == Overrun::Merge)
    }

    /// The job is let wait at its guard.
    pub(super) fn waits_at_guard(&mut self, job: JobId) {
        let Some(entry) = self.trace.operations.get(job.operation.index()) else { return };
        let task = entry.task;
        if !self.merges(task) || !entry.predecessors.is_empty() || self.is_simulated() {
            return;
        }
        if let Some(before) = self.merging[task].at_guard.replace(job) {
            self.find(Rule::Overrun, job, Some(before), || BESIDE_ANOTHER.into());
        }
    }

    /// The run ends, and the guard of the first subtask holds the job.
    pub(super) fn held_at_end(&mut self, task: usize, job: JobId) {
        let Some(merging) = self.merging.get_mut(task) else { return };
        // With which others may have been merged.
        merging.with_held = merging.with_held.filter(|(merged, _)| merged.instance < job.instance);
        let before = merging.held_at_end.replace(job);
        if let Some(before) = before.filter(|_| self.merges(task)) {
            self.find(Rule::Overrun, job, Some(before), || BESIDE_ANOTHER.into());
        }
    }

    /// The trace is over: what was merged with something at a guard, of which nothing has been heard since.
    pub(super) fn judge_merged_last(&mut self) {
        for task in 0..self.merging.len() {
            let Some((merged, at)) = self.merging[task].with_held.take() else { continue };
            let node = self.node_of(merged.operation.index());
            let is_told = self.tells_of_held(node) || self.system.tasks[task].separation.is_none();
            if self.known[task] == Known::FromTheBeginning && !comes_over_link(self.system, task) && is_told {
                self.now = at;
                self.find(Rule::Overrun, merged, None, || NOTHING_BEFORE.into());
            } else {
                self.unjudged += 1;
            }
        }
    }

    fn leaves_guard(&mut self, task: usize, job: JobId) {
        let merging = &mut self.merging[task];
        merging.at_guard = merging.at_guard.filter(|waiting| *waiting != job);
    }

    fn released_beside(&mut self, task: usize, Release { job, nominal, .. }: Release) {
        self.leaves_guard(task, job);
        let now = self.now;
        let merging = &mut self.merging[task];
        let last_release = merging.last_release.replace(now);
        if let Some((before, None)) = merging.last {
            merging.doubtful.push(Doubtful { before, job, at: now });
        }
        let last = merging.last.replace((job, None));
        let with_held = merging.with_held.take();
        if let (Some((before, _)), Some(opened)) = (last, last_release)
            && self.is_simulated()
            && nominal < opened
            && !self.trace.tasks[task].released_by.is_period()
        {
            self.find(Rule::Overrun, job, Some(before), || BESIDE_ANOTHER.into());
        }
        let Some((merged, _)) = with_held.filter(|(merged, _)| merged.instance < job.instance) else {
            return;
        };
        // Messages pass each other.
        if self.known[task] != Known::FromTheBeginning || comes_over_link(self.system, task) {
            self.unjudged += 1;
            return;
        }
        self.find(Rule::Overrun, merged, Some(job), || NOTHING_BEFORE.into());
    }

    fn waits_no_more(&mut self, task: usize, job: JobId) {
        let (now, tolerance) = (self.now, self.tolerance);
        let is_simulated = self.is_simulated();
        let merging = &mut self.merging[task];
        if let Some((last, since @ None)) = &mut merging.last
            && *last == job
        {
            *since = Some(now);
        }
        let Some(place) = merging.doubtful.iter().position(|doubtful| doubtful.before == job) else { return };
        let doubtful = merging.doubtful.swap_remove(place);
        if is_simulated || saturating(doubtful.at, tolerance) < now {
            self.find(Rule::Overrun, doubtful.job, Some(job), || {
                "it was released while the one before had not begun, and should have been merged with it"
                    .into()
            });
        }
    }

    fn merged(&mut self, task: usize, Skip { job, nominal, .. }: Skip) {
        // On threads the other one may begin, and end, between the decision, which comes after the arrival, and the record.
        let decided = if self.is_simulated() { self.now } else { self.now.min(nominal) };
        let tolerance = self.tolerance;
        let merging = &mut self.merging[task];
        let waited = match merging.last {
            Some((_, None)) => true,
            Some((_, Some(since))) => saturating(since, tolerance) > decided,
            None => false,
        };
        if !waited {
            merging.with_held = merging.with_held.or(Some((job, self.now)));
        }
    }
}
