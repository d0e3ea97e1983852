//! What a run was like, in terms of its jobs' order.

use super::Levels;
use talea_record::{Event, Metadata, Record};
use talea_time::Instant;

/// The records of a run.
pub struct Observation {
    pub metadata: Metadata,
    /// In the order of time.
    pub records: Vec<Record>,
    pub levels: Levels,
}

/// Something that happens to a job, which is written `operation#instance`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    Released(String),
    /// Released or skipped.
    Arrived(String),
    Started(String),
    Completed(String),
    Aborted(String),
    Preempted(String),
    /// Half of the time between its release and its deadline is over.
    HalfDue(String),
}

/// `operation#instance` of the job that `record` is about.
pub fn job_of(metadata: &Metadata, record: &Record) -> String {
    let job = record.job();
    format!("{}#{}", metadata.operations[job.operation.index()].name, job.instance)
}

impl Observation {
    /// The records of one kind of event.
    pub fn of(&self, event: Event) -> impl Iterator<Item = (String, &Record)> {
        let wanted = self.records.iter().filter(move |record| record.event == event);
        wanted.map(|record| (job_of(&self.metadata, record), record))
    }

    /// The first record of `event` about `job`.
    pub fn first(&self, event: Event, job: &str) -> Option<&Record> {
        self.of(event).find(|(name, _)| name == job).map(|(_, record)| record)
    }

    /// When `mark` was; `None` if it was not.
    pub fn when(&self, mark: &Mark) -> Option<Instant> {
        let time = |event, job: &str| self.first(event, job).map(|record| record.time);
        match mark {
            Mark::Released(job) => time(Event::RELEASE, job),
            Mark::Arrived(job) => time(Event::RELEASE, job).or_else(|| time(Event::SKIP, job)),
            Mark::Started(job) => time(Event::START, job),
            Mark::Completed(job) => time(Event::COMPLETE, job),
            Mark::Aborted(job) => time(Event::ABORT, job),
            Mark::Preempted(job) => time(Event::PREEMPT, job),
            Mark::HalfDue(job) => self.dates(job).map(|[release, deadline]| {
                Instant::from_nanos(release.as_nanos() + (deadline - release).as_nanos() / 2)
            }),
        }
    }

    /// When `job` was released nominally, which of what a guard held is when the guard opened; `None` if it was not.
    pub fn nominal_release(&self, job: &str) -> Option<Instant> {
        self.dates(job).map(|[release, _]| release)
    }

    /// Nominal release and deadline.
    fn dates(&self, job: &str) -> Option<[Instant; 2]> {
        let record = self.first(Event::RELEASE, job)?;
        Some(record.words.map(|word| Instant::from_nanos(word as i64)))
    }
}
