//! One job that is asked about by name, whatever becomes of its instance.

use super::find::Target;
use super::life::Hop;
use super::{Outcome, Subject};
use crate::{Event, JobId, Metadata, Record};
use talea_policy::demand;
use talea_time::Instant;

/// What is known of the job.
#[derive(Debug)]
pub(super) struct Sought {
    job: JobId,
    /// Its nominal release and its deadline.
    words: Option<(Instant, Instant)>,
    released: Option<Instant>,
    started: Option<Instant>,
    ended: Option<(Instant, Outcome)>,
    woken: Option<Instant>,
}

impl Sought {
    pub fn new(job: JobId) -> Self {
        Sought { job, words: None, released: None, started: None, ended: None, woken: None }
    }

    /// Takes a record of any job. `woken` is when the release thread of the record's node last woke.
    pub fn take(&mut self, record: &Record, woken: Option<Instant>) {
        if record.job() != self.job || self.ended.is_some() {
            return;
        }
        let words = record.words.map(|word| Instant::from_nanos(word as i64));
        match record.event {
            Event::RELEASE => {
                self.released = Some(record.time);
                self.woken = woken;
            }
            Event::START => self.started = self.started.or(Some(record.time)),
            Event::COMPLETE if record.time > words[1] => self.ended = Some((record.time, Outcome::Missed)),
            Event::COMPLETE => self.ended = Some((record.time, Outcome::Met)),
            Event::ABORT => self.ended = Some((record.time, Outcome::Aborted)),
            _ => return,
        }
        if record.event != Event::START {
            self.words = self.words.or(Some((words[0], words[1])));
        }
    }

    /// The job as a target of a trace that ends at `end`, if the trace tells of it.
    pub fn finish(self, metadata: &Metadata, end: Instant) -> Option<Target> {
        let released = self.released.or(self.started).or(self.ended.map(|(at, _)| at))?;
        let (end, outcome) = self.ended.unwrap_or((end, Outcome::Unfinished));
        let entry = &metadata.operations[self.job.operation.index()];
        let task = &metadata.tasks[entry.task];
        let (nominal, deadline) = self.words.unwrap_or((released, Instant::MAX));
        let (arrival, due) = if entry.predecessors.is_empty() {
            let jitter = demand::release_jitter_from(task.jitter, task.jitter_stream, self.job.instance);
            (nominal, nominal.saturating_add(jitter))
        } else {
            (released, released)
        };
        let ended = self.ended.map(|(at, _)| at);
        let hop = Hop { job: self.job, released, started: self.started, ended, received: None };
        Some(Target {
            subject: Subject::Job(self.job),
            outcome,
            arrival,
            due,
            woken: self.woken,
            deadline,
            end: end.max(arrival),
            path: vec![hop],
            because: None,
        })
    }
}
