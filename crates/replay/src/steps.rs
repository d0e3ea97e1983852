//! The life of jobs, in the order in which it is to be done again.

use std::collections::{BTreeMap, VecDeque};
use talea_record::JobId;
use talea_record::event::Dates;
use talea_time::Instant;

/// Something that a job did.
#[derive(Debug)]
pub(crate) enum Step {
    /// It began.
    Begin {
        job: JobId,
        at: Instant,
    },
    Take {
        job: JobId,
        taken: Taken,
    },
    End(End),
    /// Records are lost, of whichever jobs.
    Gap,
}

/// So many values of an input, the newest of this instance, if there was one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Its place among those of the operation.
    pub input: usize,
    pub newest: Option<u64>,
    pub values: usize,
}

/// A job ended.
#[derive(Debug)]
pub(crate) struct End {
    pub job: JobId,
    pub at: Instant,
    pub dates: Dates,
    pub how: Ending,
    /// What it took only then: the simulator lets a job that passes another one of its operation wait for the ports until it is called.
    pub taken: Vec<Taken>,
    /// What it published, by output, as far as it is known.
    pub published: BTreeMap<u32, Published>,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Completed,
    /// Aborted when it had begun: what it wrote was forgotten.
    Aborted,
    /// It was aborted before it began.
    Unbegun,
}

/// A value of a job that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// Its bytes have not come yet.
    Awaited,
    /// These are its bytes.
    Bytes(Vec<u8>),
    /// They do not come.
    Unrecorded,
}

/// Steps that are not done yet.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pending: VecDeque<Step>,
    /// The instant of the last record.
    now: Option<Instant>,
}

impl Steps {
    pub fn push(&mut self, step: Step) {
        self.pending.push_back(step);
    }

    /// The job took values.
    pub fn take(&mut self, job: JobId, taken: Taken) {
        match self.end_of(job) {
            Some(end) => end.taken.push(taken),
            None => self.push(Step::Take { job, taken }),
        }
    }

    /// Time has come to this.
    pub fn reach(&mut self, now: Instant) {
        self.now = self.now.max(Some(now));
    }

    /// The job has published on the output, and its bytes are to come if `is_kept`.
    pub fn publish(&mut self, job: JobId, output: u32, is_kept: bool) {
        let published = if is_kept { Published::Awaited } else { Published::Unrecorded };
        if let Some(end) = self.end_of(job) {
            end.published.entry(output).or_insert(published);
        }
    }

    /// The bytes of a value, or that they do not come. Values of an output come in the order of their jobs, so those that are still awaited of jobs
    /// that ended before do not come any more.
    pub fn settle(&mut self, job: JobId, output: u32, value: Published) {
        let ends = self.pending.iter_mut().filter_map(|step| match step {
            Step::End(end) if end.job.operation == job.operation => Some(end),
            _ => None,
        });
        let mut before: Vec<&mut Published> = Vec::new();
        for end in ends {
            if end.job == job {
                // The simulator tells of the value before it says that it is published.
                end.published.insert(output, value);
                before.into_iter().for_each(|published| *published = Published::Unrecorded);
                return;
            }
            before
                .extend(end.published.get_mut(&output).filter(|published| **published == Published::Awaited));
        }
    }

    fn end_of(&mut self, job: JobId) -> Option<&mut End> {
        self.pending.iter_mut().rev().find_map(|step| match step {
            Step::End(end) if end.job == job => Some(end),
            _ => None,
        })
    }

    /// The next step, if all is known of it, or if nothing more will be.
    pub fn next(&mut self, is_over: bool) -> Option<Step> {
        let is_ready = match self.pending.front()? {
            Step::Begin { .. } | Step::Take { .. } | Step::Gap => true,
            Step::End(end) => {
                let is_past = self.now.is_some_and(|now| now > end.at);
                is_past && end.published.values().all(|published| *published != Published::Awaited)
            }
        };
        if is_ready || is_over { self.pending.pop_front() } else { None }
    }
}
