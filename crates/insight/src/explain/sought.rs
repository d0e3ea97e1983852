//! One job that is asked about by name, whatever becomes of its instance.

use super::find::Target;
use super::life::Hop;
use super::{Outcome, Subject};
use talea_policy::demand;
use talea_record::event::{Dates, Held, Typed};
use talea_record::{JobId, Metadata, Record};
use talea_time::{Instant, Work};

/// What is known of the job.
#[derive(Clone, Debug)]
pub(super) struct Sought {
    pub job: JobId,
    /// Its nominal release and its deadline.
    dates: Option<Dates>,
    released: Option<Instant>,
    /// Whether its guard holds it at the end of the trace.
    is_held: bool,
    started: Option<Instant>,
    ended: Option<(Instant, Outcome)>,
    woken: Option<Instant>,
    /// Up to when a guard was to hold it, if one did.
    pub opened: Option<Instant>,
    /// The longest that it executes, if it was posted with an execution time of its own.
    wcet: Option<Work>,
}

impl Sought {
    pub fn new(job: JobId) -> Self {
        let (opened, dates, released, started, ended, woken) = (None, None, None, None, None, None);
        Sought { job, opened, dates, released, is_held: false, started, ended, woken, wcet: None }
    }

    /// The run ends, and its guard holds it.
    pub fn held(&mut self, Held { nominal, deadline, .. }: Held, now: Instant) {
        self.dates = Some(Dates { nominal, deadline });
        self.released = Some(now);
        self.is_held = true;
        self.opened = Some(Instant::MAX);
    }

    /// Takes a record of any job. `woken` is when the release thread of the record's node last woke, and `wcet` the longest that the job executes,
    /// if it is released now with one of its own.
    pub fn take(&mut self, record: &Record, (woken, wcet): (Option<Instant>, Option<Work>)) {
        if record.job() != self.job || self.ended.is_some() {
            return;
        }
        match record.typed() {
            Typed::Release(_) => {
                self.released = Some(record.time);
                (self.woken, self.wcet) = (woken, wcet);
            }
            Typed::Start(_) => self.started = self.started.or(Some(record.time)),
            Typed::Complete(complete) if record.time > complete.deadline => {
                self.ended = Some((record.time, Outcome::Missed));
            }
            Typed::Complete(_) => self.ended = Some((record.time, Outcome::Met)),
            Typed::Abort(_) => self.ended = Some((record.time, Outcome::Aborted)),
            _ => return,
        }
        self.dates = self.dates.or(record.dates());
    }

    /// The job as a target of a trace that ends at `end`, if the trace tells of it.
    pub fn finish(self, metadata: &Metadata, end: Instant) -> Option<Target> {
        let released = self.released.or(self.started).or(self.ended.map(|(at, _)| at))?;
        let (end, outcome) = self.ended.unwrap_or((end, Outcome::Unfinished));
        let entry = &metadata.operations[self.job.operation.index()];
        let task = &metadata.tasks[entry.task];
        let unknown = Dates { nominal: released, deadline: Instant::MAX };
        let Dates { nominal, deadline } = self.dates.unwrap_or(unknown);
        let (arrival, due) = if entry.predecessors.is_empty() {
            let jitter = demand::release_jitter_from(task.jitter, task.jitter_stream, self.job.instance);
            (nominal, nominal.saturating_add(jitter))
        } else {
            (released, released)
        };
        let ended = self.ended.map(|(at, _)| at);
        let (job, is_released, started, wcet) = (self.job, !self.is_held, self.started, self.wcet);
        let hop = Hop { job, released, is_released, started, ended, received: None, held: None, wcet };
        Some(Target {
            subject: Subject::Job(self.job),
            outcome,
            arrival,
            due,
            opened: self.opened,
            woken: self.woken,
            deadline,
            end: end.max(arrival),
            path: vec![hop],
            awaits_message: false,
            stranding: None,
            because: None,
            stands_for_it: None,
        })
    }
}
