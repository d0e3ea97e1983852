//! Whether arrivals were merged where the overrun policy says so: with an instance that had not begun, and always with one that had not.

use super::Rule;
use super::judge::{Judge, Known};
use super::releases::saturating;
use talea_model::Overrun;
use talea_record::event::{Skip, Typed};
use talea_record::{JobId, Record, SkipReason};
use talea_time::Instant;

/// What is known of the instances of one task that are merged.
#[derive(Clone, Debug, Default)]
pub(super) struct Merging {
    /// The job that was released last, and since when it does not wait any more.
    last: Option<(JobId, Option<Instant>)>,
    /// Those that were released although the one before had not begun, as far as was told by then.
    doubtful: Vec<Doubtful>,
    /// The first that was merged although nothing that had been released waited, so that a guard must hold one before it.
    held: Option<JobId>,
}

#[derive(Clone, Copy, Debug)]
struct Doubtful {
    before: JobId,
    job: JobId,
    at: Instant,
}

impl Judge<'_> {
    /// A record of a first job of a task whose instances are merged.
    pub(super) fn check_merging(&mut self, record: &Record) {
        let job = record.job();
        let entry = &self.trace.operations[job.operation.index()];
        let task = entry.task;
        let merges = self.system.tasks.get(task).is_some_and(|task| task.overrun == Overrun::Merge);
        if !merges || !entry.predecessors.is_empty() {
            return;
        }
        match record.typed() {
            Typed::Release(_) => self.released_beside(task, job),
            Typed::Start(_) | Typed::Abort(_) => self.waits_no_more(task, job),
            Typed::Skip(skip) if skip.reason == SkipReason::Merged => self.merged(task, skip),
            _ => {}
        }
    }

    fn released_beside(&mut self, task: usize, job: JobId) {
        let merging = &mut self.merging[task];
        if let Some((before, None)) = merging.last {
            merging.doubtful.push(Doubtful { before, job, at: self.now });
        }
        merging.last = Some((job, None));
        let held = merging.held.take();
        let Some(merged) = held.filter(|merged| merged.instance < job.instance) else { return };
        // Messages pass each other.
        if self.known[task] != Known::FromTheBeginning || self.comes_over_link(task) {
            self.unjudged += 1;
            return;
        }
        self.find(Rule::Overrun, merged, Some(job), || {
            "it was merged, and nothing before it was waiting".into()
        });
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
            merging.held = merging.held.or(Some(job));
        }
    }

    fn comes_over_link(&self, task: usize) -> bool {
        let Some(output) = self.system.trigger_output(task) else { return false };
        let producer = self.system.outputs()[output.index()].operation;
        let first =
            self.system.operations_of(task).iter().find(|operation| operation.predecessors.is_empty());
        let node = |operation| self.system.subtask(operation).node;
        first.is_some_and(|first| node(first.id) != node(producer))
    }
}
