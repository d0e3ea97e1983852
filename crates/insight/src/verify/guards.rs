//! Guards: what synchronisation protocols ask of releases, judged by nominal releases, which are when a guard opened and not when a thread got
//! around to it.
//!
//! Rules 1 and 2 keep releases of a subtask a period apart, and phase modification has them no earlier than the arrival and the bounds of the
//! subtasks before. Whatever the protocol, first come is first served, as far as signals are recorded. Whether an instant was an idle point is
//! not judged.

use super::judge::Judge;
use super::length;
use super::report::Rule;
use std::collections::VecDeque;
use talea_model::{OperationId, Synchronisation, System};
use talea_policy::release::bounds::ResponseBounds;
use talea_record::JobId;
use talea_time::{Duration, Instant};

/// More signals than that without a release can only be those of lost releases.
const REMEMBERED: usize = 1024;

/// What is known of the guards of a run.
#[derive(Debug)]
pub(super) struct Guards {
    /// If the description has all that are needed.
    bounds: Option<ResponseBounds>,
    /// By operation: the latest nominal release.
    last: Vec<Option<Instant>>,
    /// Releases that are judged when it is known that they were not refusals, which end at once.
    opened: Vec<OpenedGuard>,
    /// By operation: signalled instances that have not been released, and when they were signalled.
    signalled: Vec<VecDeque<(u64, Instant)>>,
}

impl Guards {
    pub fn new(system: &System) -> Self {
        let operations = system.operations().len();
        Guards {
            bounds: ResponseBounds::of(system).ok(),
            last: vec![None; operations],
            opened: Vec::new(),
            signalled: vec![VecDeque::new(); operations],
        }
    }
}

/// A release of a job with a guard.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenedGuard {
    pub job: JobId,
    pub at: Instant,
    pub nominal: Instant,
    /// The arrival of its instance.
    pub arrival: Instant,
}

impl Guards {
    /// A job with a guard was released, or is about to be refused.
    pub fn expect(&mut self, opened: OpenedGuard) {
        self.opened.push(opened);
    }

    /// Whether the job, which is aborted now, was released just now: its guard had no room for it, and it never passed.
    pub fn is_refused(&mut self, job: JobId) -> bool {
        let before = self.opened.len();
        self.opened.retain(|opened| opened.job != job);
        self.opened.len() < before
    }

    /// Records are missing: what was signalled may have been released.
    pub fn forget_signals(&mut self) {
        self.signalled.iter_mut().for_each(VecDeque::clear);
    }

    /// A job is released that is not judged.
    pub fn forget_signal(&mut self, job: JobId) {
        if let Some(signalled) = self.signalled.get_mut(job.operation.index()) {
            signalled.retain(|(instance, _)| *instance != job.instance);
        }
    }
}

impl Judge<'_> {
    /// Whether a guard holds the operation.
    pub(super) fn is_guarded(&self, operation: OperationId) -> bool {
        let Some(entry) = self.expected.operations.get(operation.index()) else { return false };
        let sync = self.system.tasks.get(entry.task).map_or(Synchronisation::Greedy, |task| task.sync);
        sync != Synchronisation::Greedy && !entry.predecessors.is_empty()
    }

    /// All that the job needs is done.
    pub(super) fn signal(&mut self, job: JobId, now: Instant) {
        if let Some(signalled) = self.guards.signalled.get_mut(job.operation.index()) {
            if signalled.len() == REMEMBERED {
                signalled.pop_front();
            }
            signalled.push_back((job.instance, now));
        }
    }

    /// Judges the guards that let jobs through in the instant that is over.
    pub(super) fn check_guards(&mut self) {
        for opened in std::mem::take(&mut self.guards.opened) {
            self.check_guard(opened);
        }
    }

    fn check_guard(&mut self, OpenedGuard { job, at, nominal, arrival }: OpenedGuard) {
        let index = job.operation.index();
        self.findings.count_case(Rule::Release);
        if nominal > at || nominal < at && self.is_simulated() {
            self.find(Rule::Release, job, None, || "its guard did not open then".into());
        }
        let task = &self.system.tasks[self.trace.operations[index].task];
        let last = self.guards.last[index].replace(nominal);
        let apart = match task.sync {
            Synchronisation::ReleaseGuard => task.period,
            _ => Duration::from_nanos(1),
        };
        if let Some(least) = last.map(|last| last.saturating_add(apart)).filter(|least| nominal < *least) {
            let early = length(nominal, least);
            self.find(Rule::Release, job, None, || {
                format!("its guard let it through {} early", early.rounded())
            });
        }
        let offset = self.guards.bounds.as_ref().map(|bounds| bounds.offset(job.operation));
        let planned = offset.filter(|_| task.sync == Synchronisation::PhaseModification);
        if let Some(planned) = planned.map(|offset| arrival.saturating_add(offset)).filter(|at| nominal < *at)
        {
            let early = length(nominal, planned);
            self.find(Rule::Release, job, None, || {
                format!("it was released {} before its phase", early.rounded())
            });
        }
        self.check_turn(job);
    }

    fn check_turn(&mut self, job: JobId) {
        let tolerance = self.tolerance;
        let signalled = &mut self.guards.signalled[job.operation.index()];
        let Some(position) = signalled.iter().position(|(instance, _)| *instance == job.instance) else {
            return;
        };
        let own = signalled.remove(position).expect("it is there");
        // Threads that signal at the same time may be recorded in another order.
        let passed =
            signalled.front().filter(|first| position > 0 && first.1.saturating_add(tolerance) < own.1);
        if let Some(&(instance, _)) = passed {
            let other = JobId { instance, ..job };
            self.find(Rule::Release, job, Some(other), || {
                "another one was signalled before it, and waits".into()
            });
        }
    }
}
