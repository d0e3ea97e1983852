//! The values of a question and its answer.

use super::cause::length;
use super::steal::StealTimes;
use super::{Blamed, Hop, Interval, Kind, Stranding, TakenEvent};
use crate::accounting::Measure;
use crate::hierarchy::DECISIONS;
use std::collections::BTreeMap;
use talea_record::contents::Lost;
use talea_record::{Event, JobId, Metadata, RecordedEvents, SkipReason};
use talea_time::{Duration, Instant};
use thiserror::Error;

/// What a program should ask for at most at once: an explanation takes a few kilobytes as a rule, and up to half a
/// megabyte of a job that starves.
pub const MOST: usize = 1_000;

/// What to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Which instances or jobs.
    pub which: Which,
    /// Of this task only, by its index.
    pub task: Option<usize>,
    /// How many of them at most. Each is kept whole, so memory grows with this number; see [`MOST`].
    pub limit: usize,
}

/// Which instances or jobs to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that missed their deadline, were aborted, skipped, or are unfinished after their deadline; the latest first.
    Failed,
    /// The one of the greatest response time of every task.
    Worst,
    /// This one.
    This(Subject),
    /// Ways of data along chains, see [`super::explain_chains`].
    Chains,
}

/// What is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// An instance of a task, from its arrival to the end of its last subtask.
    Instance {
        /// Index of the task.
        task: usize,
        /// Number of the instance.
        number: u64,
    },
    /// One job, from its own release.
    Job(JobId),
    /// The way of data along a chain, to a job of its last operation.
    Way {
        /// Index of the chain.
        chain: usize,
        /// Which of its times.
        measure: Measure,
        /// The instance of the job.
        number: u64,
    },
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// By its deadline.
    Met,
    /// After its deadline.
    Missed,
    /// Aborted.
    Aborted,
    /// Never released.
    Skipped {
        /// Why.
        reason: SkipReason,
    },
    /// Not at all before the trace's end, or before the instant the explanation is for.
    Unfinished,
}

/// Instances by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By their deadline.
    pub met: u64,
    /// After their deadline.
    pub missed: u64,
    /// Aborted.
    pub aborted: u64,
    /// Skipped.
    pub skipped: u64,
    /// Unfinished at the end and past their deadline.
    pub overdue: u64,
    /// Unfinished at the end and before their deadline.
    pub in_flight: u64,
    /// Beside the instances: limits of chains that were exceeded, each once however often.
    pub limits: u64,
}

impl Counts {
    pub(super) fn add(&mut self, outcome: Outcome, failed: bool) {
        *match outcome {
            Outcome::Met => &mut self.met,
            Outcome::Missed => &mut self.missed,
            Outcome::Aborted => &mut self.aborted,
            Outcome::Skipped { .. } => &mut self.skipped,
            Outcome::Unfinished if failed => &mut self.overdue,
            Outcome::Unfinished => &mut self.in_flight,
        } += 1;
    }

    /// Those that did not end by their deadline.
    pub fn failed(&self) -> u64 {
        self.missed + self.aborted + self.skipped + self.overdue
    }
}

/// How much of a response time one cause took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// The cause.
    pub kind: Kind,
    /// Who is to blame.
    pub blamed: Blamed,
    /// Time before the release.
    pub coming: Duration,
    /// Time between release and beginning.
    pub waiting: Duration,
    /// Time after the beginning.
    pub begun: Duration,
    /// Number of intervals.
    pub intervals: u64,
}

impl Total {
    /// All of it.
    pub fn sum(&self) -> Duration {
        self.coming + self.waiting + self.begun
    }
}

/// Why one instance or job took as long as it did.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What is explained.
    pub subject: Subject,
    /// How it ended.
    pub outcome: Outcome,
    /// Its nominal release, from which its response counts.
    pub arrival: Instant,
    /// Its absolute deadline; [`Instant::MAX`] if there is none, as of a chain without a limit.
    pub deadline: Instant,
    /// Its end, or the end of what is known.
    pub end: Instant,
    /// Its critical path.
    pub hops: Vec<Hop>,
    /// What its jobs took of channels.
    pub events: Vec<TakenEvent>,
    /// From `arrival` to `end` without gaps, in order. None for what was skipped.
    pub intervals: Vec<Interval>,
    /// The same by cause, the greatest first.
    pub totals: Vec<Total>,
    /// What keeps it from ever completing, if it is unfinished because of that.
    pub stranding: Option<Stranding>,
    /// The unfinished job because of which it was skipped, or with whose instance it was merged, up to that instant.
    pub because: Option<Box<Explanation>>,
    /// What became of the instance with which it was merged.
    pub stands_for_it: Option<Standing>,
}

/// An instance that stands for another one, which was merged with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Index of the task.
    pub task: usize,
    /// Number of the instance.
    pub number: u64,
    /// When it began, if it did.
    pub began: Option<Instant>,
    /// When it was over, if it was before the trace's end.
    pub end: Option<Instant>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Explanation {
    /// From nominal release to end.
    pub fn response(&self) -> Duration {
        length(self.arrival, self.end)
    }

    /// Its deadline, if it has one.
    pub fn due(&self) -> Option<Instant> {
        Some(self.deadline).filter(|deadline| *deadline != Instant::MAX)
    }

    /// Its last job, if that was given up when it was to be released, because too many of the operation waited for that, or were in flight.
    pub fn refused(&self) -> Option<JobId> {
        let last = self.hops.last().filter(|_| self.outcome == Outcome::Aborted)?;
        (last.started.is_none() && last.ended == Some(last.released)).then_some(last.job)
    }

    /// From deadline to end, positive if it missed. Of what has no deadline it says nothing.
    pub fn lateness(&self) -> Duration {
        length(self.deadline, self.end)
    }

    /// Time of which records were lost, are from before the recording, or contradict each other.
    pub fn uncertain(&self) -> Duration {
        let of_lost = self.totals.iter().filter(|total| total.kind.is_uncertain());
        of_lost.map(Total::sum).sum()
    }

    /// Whether jobs shared a processor in it, or in what was in its way, and nobody saw which of them ran.
    fn is_shared_unseen(&self) -> bool {
        self.totals.iter().any(|total| total.kind == Kind::Shared)
            || self.because.as_ref().is_some_and(|because| because.is_shared_unseen())
    }

    /// Time of which the events that would tell were not recorded.
    pub fn unrecorded(&self) -> Duration {
        let unrecorded = self.totals.iter().filter(|total| total.kind.is_unrecorded());
        unrecorded.map(Total::sum).sum()
    }
}

/// The answer to a [`Question`].
#[derive(Debug)]
pub struct Explanations {
    /// The tables of the run.
    pub metadata: Metadata,
    /// What was asked.
    pub question: Question,
    /// From when on the trace tells of the run: a recording can begin when it is under way.
    pub begins: Instant,
    /// The explanations, worst first.
    pub list: Vec<Explanation>,
    /// Instances of the task asked about, or of all tasks, by how they ended.
    pub counts: Counts,
    /// Records lost in the whole trace.
    pub lost: Lost,
    /// Which events the trace has.
    pub recorded: RecordedEvents,
    /// Names of threads that are to blame.
    pub threads: BTreeMap<u32, String>,
    pub(super) steal: StealTimes,
}

/// Why nothing in a trace can be explained.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unexplainable {
    /// The ends of jobs were not recorded, so nobody knows how an instance fared.
    #[error("the trace has no records of {}, so nobody knows when jobs ended and which were late", .missing.join(", "))]
    Incomplete {
        /// Names of all events of jobs that were not recorded.
        missing: Vec<String>,
    },
}

/// Why there is no explanation.
#[derive(Debug, Error)]
pub enum ExplainError<E> {
    /// The trace does not have what it takes.
    #[error(transparent)]
    Unexplainable(Unexplainable),
    /// The trace cannot be read.
    #[error(transparent)]
    Replay(#[from] E),
}

/// What of a response no event tells that was recorded, in the order of the response.
const NEEDS: [(&str, &[Event]); 7] = [
    ("whether the run was under way before", &[Event::RUN_START]),
    ("when jobs were released", &[Event::RELEASE]),
    ("what came before the release", &[Event::TIMER]),
    ("how long messages took to be received", &[Event::RECEIVE]),
    ("who had the processors", &[Event::START, Event::PREEMPT, Event::WAIT, Event::RESUME, Event::ABORT]),
    ("whom the schedulers of a hierarchy gave the processors", &DECISIONS),
    ("whether a processor without a job was idle or dispatched", &[Event::COST, Event::WAKE, Event::SLEEP]),
];

/// What no record tells.
const BY_KERNEL: &str = "why the kernel, to which the hierarchy was lowered, ran one thread and not another";
/// What of a lowered hierarchy the kernel alone could tell, whose threads or programs write no record when they get a processor.
const UNSEEN: &str =
    "what else the processors did where the kernel schedules unseen, between jobs and of programs";
/// What of a response the kernel alone could tell, where it chooses between jobs unseen.
const SHARED: &str = "which of several begun jobs had the processor that they shared";

impl Explanations {
    /// How much a hypervisor took at most of a processor of the nodes that the response was on, while it lasted (steal time). It is in what the causes
    /// took: nothing went on there meanwhile, and no record says when it was.
    pub fn stolen(&self, one: &Explanation) -> Duration {
        self.steal.during(&self.metadata, one)
    }

    /// What the trace leaves open for want of events that were not recorded: what it is, and the names of the events.
    pub fn gaps(&self) -> Vec<(&'static str, Vec<String>)> {
        let mut gaps = self.gaps_of_run();
        if self.list.iter().any(Explanation::is_shared_unseen) {
            gaps.push((SHARED, self.recorded.missing(&[Event::SWITCH])));
        }
        let has = |kind: Kind| {
            let of = |one: &Explanation| one.totals.iter().any(|total| total.kind == kind);
            self.list.iter().any(|one| of(one) || one.because.as_deref().is_some_and(of))
        };
        if has(Kind::KernelUntold) {
            gaps.push((BY_KERNEL, vec!["a run with --no-lower".into()]));
        }
        if has(Kind::Unrecorded) && self.metadata.nodes.iter().any(|node| !node.decided_by.is_ours()) {
            gaps.push((UNSEEN, self.recorded.missing(&[Event::SWITCH])));
        }
        gaps.retain(|(_, missing)| !missing.is_empty());
        gaps
    }

    /// The same without what only the kernel could have told.
    pub(super) fn gaps_of_run(&self) -> Vec<(&'static str, Vec<String>)> {
        let is_distributed = self.metadata.nodes.len() > 1;
        // The kernel tells of no decisions.
        let has_hierarchy = self.metadata.hierarchy().is_some()
            && self.metadata.nodes.iter().any(|node| node.decided_by.is_ours());
        let needs = NEEDS
            .iter()
            .filter(|(_, events)| is_distributed || *events != [Event::RECEIVE])
            .filter(|(_, events)| has_hierarchy || *events != DECISIONS);
        needs.map(|(what, events)| (*what, self.recorded.missing(events))).collect()
    }
}
