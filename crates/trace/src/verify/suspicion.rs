//! States that are wrong if they last.

use super::judge::Judge;
use super::length;
use super::report::{Certainty, Finding, Rule};
use crate::JobId;
use talea_time::{Duration, Instant};

/// What is wrong with a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub rule: Rule,
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
        let State { rule, running, waiting } = suspicion.state;
        let duration = suspicion.duration(self.now);
        if duration <= self.tolerance {
            if duration > Duration::ZERO {
                self.findings.tolerate(rule, duration);
            }
            return;
        }
        let (job, other) = (running.or(Some(waiting)), running.map(|_| waiting));
        // Throttled threads leave a processor idle as well, and only the kernel tells of that.
        let is_doubtful = rule == Rule::Idle && !self.is_simulated() && !self.occupancy.hears_kernel();
        let certainty = if is_doubtful { Certainty::Possible } else { Certainty::Certain };
        let finding = Finding { rule, certainty, at: suspicion.since, duration, job, other };
        self.findings.add(self.trace, finding, || match rule {
            Rule::Lanes => "it ran while a job of a higher lane was ready".into(),
            Rule::Idle => "it was ready while a processor idled".into(),
            _ => "it kept the lane while a job that comes first waited".into(),
        });
    }
}
