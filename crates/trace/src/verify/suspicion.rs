//! States that are wrong if they last.

use super::judge::Judge;
use super::length;
use super::report::{Certainty, Finding, Rule};
use crate::JobId;
use talea_time::{Duration, Instant};

/// What is wrong with a state, or what nobody can tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A job of a lower lane has a processor.
    Lower,
    /// One of several jobs of lower lanes has; nobody saw which.
    LowerUnnamed,
    /// The thread of a lower lane has, without a job.
    LowerThread,
    /// The waiting job has begun and could go on, and a lower lane has a processor.
    Displaced,
    Idle,
    /// A lane's thread has a processor without a job, which is overhead.
    Overhead,
    Misordered,
    /// Only the kernel could tell whether the rule is obeyed, and does not.
    Unseen(Rule),
}

impl What {
    fn rule(self) -> Rule {
        match self {
            What::Lower | What::LowerUnnamed | What::LowerThread | What::Displaced => Rule::Lanes,
            What::Idle | What::Overhead => Rule::Idle,
            What::Misordered => Rule::Order,
            What::Unseen(rule) => rule,
        }
    }

    /// What happened, as a sentence about the job that should not have had what it has, or else about the one that waits.
    fn text(self, running: Option<JobId>) -> &'static str {
        match (self, running) {
            (What::Displaced, Some(_)) => "it ran while a job of a higher lane had begun and could go on",
            (What::Displaced, None) => {
                "it had begun and could go on while the thread of a lower lane had the processor"
            }
            (What::LowerThread, _) => "it was ready while the thread of a lower lane had the processor",
            (What::LowerUnnamed, _) => "it was ready while jobs of lower lanes shared the processor",
            (What::Lower, _) => "it ran while a job of a higher lane was ready",
            (What::Idle, _) => "it was ready while a processor idled",
            (What::Misordered, _) => "it kept the lane while a job that comes first waited",
            (What::Overhead, _) => "it was ready while a lane's thread had the processor without a job",
            (What::Unseen(_), _) => "nobody saw who had the processor",
        }
    }
}

/// A state that may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub what: What,
    /// Who has what it should not have, if somebody has.
    pub running: Option<JobId>,
    pub waiting: JobId,
}

/// A state that is wrong if it lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspicion {
    pub state: State,
    since: Instant,
    /// How long it lasted up to `counted`, without interrupts.
    lasted: Duration,
    counted: Instant,
    course: Course,
}

/// Whether a wrong state lasts longer with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    Runs,
    /// Interrupts have the processors.
    Interrupted,
}

impl Suspicion {
    pub fn new(state: State, since: Instant, course: Course) -> Self {
        Suspicion { state, since, lasted: Duration::ZERO, counted: since, course }
    }

    /// The state lasts, from `now` on with this course.
    pub fn lasts(&mut self, now: Instant, course: Course) {
        self.lasted = self.duration(now);
        (self.counted, self.course) = (now, course);
    }

    /// How long it has lasted, without interrupts.
    fn duration(&self, now: Instant) -> Duration {
        let more = match self.course {
            Course::Runs => length(self.counted, now),
            Course::Interrupted => Duration::ZERO,
        };
        Duration::from_nanos(self.lasted.as_nanos().saturating_add(more.as_nanos()))
    }
}

impl Judge<'_> {
    /// A suspicious state is over; it was a violation if it lasted.
    pub(super) fn conclude(&mut self, suspicion: Option<Suspicion>) {
        let Some(suspicion) = suspicion else { return };
        let State { what, running, waiting } = suspicion.state;
        let (rule, duration) = (what.rule(), suspicion.duration(self.now));
        match what {
            What::Overhead | What::Unseen(_) if duration <= self.tolerance => return,
            What::Overhead => return self.findings.dispatched(duration),
            What::Unseen(rule) => return self.findings.leave_open(rule, duration),
            _ if duration <= self.tolerance => {
                if duration > Duration::ZERO {
                    self.findings.tolerate(rule, duration);
                }
                return;
            }
            _ => {}
        }
        let (job, other) = (running.or(Some(waiting)), running.map(|_| waiting));
        // Throttled threads leave a processor idle as well, and only the kernel tells of that.
        let of_kernel = matches!(what, What::Idle | What::LowerThread);
        let is_doubtful = of_kernel && !self.is_simulated() && !self.occupancy.hears_kernel();
        let certainty = if is_doubtful { Certainty::Possible } else { Certainty::Certain };
        let finding = Finding { rule, certainty, at: suspicion.since, duration, job, other };
        self.findings.add(self.trace, finding, || what.text(running).into());
    }
}
