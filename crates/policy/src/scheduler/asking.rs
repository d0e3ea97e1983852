//! How a child that reserves nothing comes to time constraints: by messages, or each of its jobs asks for one.

use crate::hierarchy::Parameters;
use crate::job::Job;

/// What becomes of a child's constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// They come and go by messages, and by themselves when they are over.
    ByMessage,
    /// They come and go with its jobs.
    ByJobs {
        /// Who has asked last, accepted or not. A job asks once each time that it becomes the one that the child wants the processor for.
        last: Option<Job>,
    },
}

impl Asking {
    /// Of a child that has registered with `given`.
    pub fn of(given: Parameters) -> Self {
        match given {
            Parameters::Jobs => Asking::ByJobs { last: None },
            _ => Asking::ByMessage,
        }
    }

    pub fn is_by_jobs(self) -> bool {
        matches!(self, Asking::ByJobs { .. })
    }

    /// Whether `job`, which the child wants the processor for, has yet to ask.
    pub fn is_due(self, job: Option<&Job>) -> bool {
        match self {
            Asking::ByMessage => false,
            Asking::ByJobs { last } => job.is_some() && last.as_ref() != job,
        }
    }

    /// `job` asks; or the child wants nothing any more, so that the next one asks whichever it is.
    pub fn note(&mut self, job: Option<&Job>) {
        if let Asking::ByJobs { last } = self {
            *last = job.copied();
        }
    }
}
