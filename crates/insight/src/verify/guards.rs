//! Guards: what synchronisation protocols ask of releases, judged by nominal releases, which are when a guard opened and not when a thread got
//! around to it.
//!
//! | Protocol | No earlier than | No later than the latest of its signal, a nanosecond after the release before, and |
//! |---|---|---|
//! | greedy | its signal | in virtual time: its signal |
//! | release guard | a period after the release before | that |
//! | … with idle points | the same, or an idle point after the release before | in virtual time: the earlier of the two |
//! | … one at a time | the same, or at an idle point that lets nothing else through | in virtual time: the earlier of the two |
//! | phase modification | the task's arrival and the response bounds before it | that |
//! | modified phase modification | the releases of its predecessors and their bounds | that, if it is known which of them it waited for |
//!
//! Its signal is when all that it needs was done and known on its node ([`joins`](super::joins)). Whatever the protocol, first come is first
//! served, as far as signals are recorded. An idle point is known in virtual time only ([`idle_points`](super::idle_points)); on threads a release
//! that waited, or that needs one, is unknown.

use super::joins::Join;
use super::judge::Judge;
use super::length;
use super::report::Rule;
use std::collections::VecDeque;
use talea_model::{OperationId, Synchronisation, System};
use talea_policy::release::bounds::ResponseBounds;
use talea_record::event::Open;
use talea_record::{JobId, Record};
use talea_time::{Duration, Instant};

/// More signals than that without a release can only be those of lost releases.
const REMEMBERED: usize = 1024;

/// Releases of one operation are at least this far apart, whatever the protocol.
const AN_INSTANT: Duration = Duration::from_nanos(1);

/// What is known of the guard of one operation.
#[derive(Clone, Copy, Debug)]
struct Guard {
    /// The latest nominal release that was judged.
    last: Option<Instant>,
    /// Whether no later one can be missing from what is known.
    is_latest: bool,
    /// The first idle point after it.
    idle: Option<Instant>,
}

/// What idle points that let one through have let through on one node.
#[derive(Clone, Copy, Debug, Default)]
struct OneByOne {
    /// The latest idle point that let nothing through.
    unused: Option<Instant>,
    /// The latest one that did: when, what, and when that was signalled.
    used: Option<(Instant, JobId, Instant)>,
    /// Something was let through in this instant, or it is not known whether.
    is_used_now: bool,
}

/// What is known of the guards of a run.
#[derive(Debug)]
pub(super) struct Guards {
    /// If the description has all that are needed.
    bounds: Option<ResponseBounds>,
    /// By operation.
    all: Vec<Guard>,
    /// By node.
    one_by_one: Vec<OneByOne>,
    /// By node: operations whose guards idle points open.
    opened_by_idle: Vec<Vec<usize>>,
    /// Releases that are judged when it is known that they were not refusals, which end at once.
    opened: Vec<OpenedGuard>,
    /// By operation: signalled instances that have not been released, and when they were signalled.
    signalled: Vec<VecDeque<(u64, Instant)>>,
    /// By operation, of first ones: the job for which its guard opened last, as recorded, and as of when.
    openings: Vec<Option<Open>>,
}

impl Guards {
    pub fn new(system: &System) -> Self {
        let operations = system.operations().len();
        let opened_by_idle = |node: usize| {
            let here = system.operations_on(node).filter(|operation| {
                !operation.predecessors.is_empty() && system.tasks[operation.task].sync.heeds_idle_points()
            });
            here.map(|operation| operation.id.index()).collect()
        };
        Guards {
            bounds: ResponseBounds::of(system).ok(),
            all: vec![Guard { last: None, is_latest: true, idle: None }; operations],
            one_by_one: vec![OneByOne::default(); system.nodes.len()],
            opened_by_idle: (0..system.nodes.len()).map(opened_by_idle).collect(),
            opened: Vec::new(),
            signalled: vec![VecDeque::new(); operations],
            openings: vec![None; operations],
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

/// Whether what is recorded tells when a guard may open at the earliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knowledge {
    Complete,
    Partial,
}

/// A job that waits at its guard.
#[derive(Debug)]
pub(super) struct Wait {
    pub job: JobId,
    /// The arrival of its instance.
    arrival: Instant,
    /// Its predecessors, if its instance is known from the beginning.
    join: Option<Join>,
    /// When it began to wait, if that is known.
    pub signalled: Option<Instant>,
}

impl Guards {
    /// A job with a guard was released, or is about to be refused.
    pub fn expect(&mut self, opened: OpenedGuard) {
        self.opened.push(opened);
    }

    /// The guard of a first subtask opened; the release of the job comes next.
    pub fn open(&mut self, open: Open) {
        if let Some(last) = self.openings.get_mut(open.job.operation.index()) {
            *last = Some(open);
        }
    }

    /// As of when the guard of a first subtask opened for the job, if that is recorded.
    pub fn opening_of(&self, job: JobId) -> Option<Instant> {
        let last = self.openings.get(job.operation.index())?.filter(|open| open.job == job)?;
        Some(last.at)
    }

    /// Whether the job, which is aborted now, was released just now: its guard had no room for it, and it never passed.
    pub fn is_refused(&mut self, job: JobId) -> bool {
        let before = self.opened.len();
        self.opened.retain(|opened| opened.job != job);
        let is_refused = self.opened.len() < before;
        if is_refused {
            self.pass_by(job);
        }
        is_refused
    }

    /// Records are missing: what was signalled may have been released.
    pub fn forget(&mut self) {
        self.signalled.iter_mut().for_each(VecDeque::clear);
        self.all.iter_mut().for_each(|guard| guard.is_latest = false);
        self.one_by_one.fill(OneByOne::default());
    }

    /// A job is released that is not judged.
    pub fn pass_by(&mut self, job: JobId) {
        self.forget_signal(job);
        if let Some(guard) = self.all.get_mut(job.operation.index()) {
            guard.is_latest = false;
        }
    }

    fn forget_signal(&mut self, job: JobId) {
        if let Some(signalled) = self.signalled.get_mut(job.operation.index()) {
            signalled.retain(|(instance, _)| *instance != job.instance);
        }
    }

    /// `now` is an idle point of the node.
    fn note_idle_point(&mut self, node: usize, now: Instant) {
        for &operation in &self.opened_by_idle[node] {
            let guard = &mut self.all[operation];
            if guard.last.is_none_or(|last| last < now) {
                guard.idle = guard.idle.or(Some(now));
            }
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
    pub(super) fn signal(&mut self, job: JobId, record: &Record) {
        let index = job.operation.index();
        if index < self.expected.operations.len() {
            self.idle_points.take(self.node_of(index), record);
        }
        if let Some(signalled) = self.guards.signalled.get_mut(index) {
            if signalled.len() == REMEMBERED {
                signalled.pop_front();
            }
            signalled.push_back((job.instance, record.time));
        }
    }

    /// A job without a guard: in virtual time it is released at its signal.
    pub(super) fn check_greedy(&mut self, job: JobId) {
        if !self.is_simulated() {
            return;
        }
        let Some(signalled) = self.join_of(job).and_then(|join| join.complete()) else { return };
        self.check_late(job, (self.now, signalled), "it was released");
    }

    /// Judges the guards that let jobs through in the instant that is over.
    pub(super) fn check_guards(&mut self) {
        let idle = self.idle_points.end_instant(self.now);
        idle.iter().for_each(|node| self.guards.note_idle_point(*node, self.now));
        for opened in std::mem::take(&mut self.guards.opened) {
            self.check_guard(opened);
        }
        for node in idle {
            let OneByOne { unused, is_used_now, .. } = &mut self.guards.one_by_one[node];
            if !*is_used_now {
                *unused = Some(self.now);
            }
        }
        self.guards.one_by_one.iter_mut().for_each(|one| one.is_used_now = false);
    }

    fn check_guard(&mut self, opened: OpenedGuard) {
        let OpenedGuard { job, at, nominal, arrival } = opened;
        let index = job.operation.index();
        self.findings.count_case(Rule::Release);
        if nominal > at || nominal < at && self.is_simulated() {
            self.find(Rule::Release, job, None, || "its guard did not open then".into());
        }
        let told = self.check_turn(job);
        let wait = self.wait_of(job, arrival, told);
        if let Some(least) = self.guards.all[index].last.map(|last| last.saturating_add(AN_INSTANT)) {
            self.check_early(job, (nominal, least));
        }
        let earliest = match self.system.tasks[self.trace.operations[index].task].sync {
            Synchronisation::Greedy => unreachable!("nothing is held back"),
            Synchronisation::ReleaseGuard => {
                if let Some(opens) = self.opens(index) {
                    self.check_early(job, (nominal, opens));
                }
                Knowledge::Complete
            }
            Synchronisation::ReleaseGuardIdle => self.check_idle(job, nominal),
            Synchronisation::ReleaseGuardIdleOne => self.check_idle_one(&wait, nominal),
            Synchronisation::PhaseModification => self.check_phase(&wait, nominal),
            Synchronisation::ModifiedPhaseModification => self.check_timer(&wait, nominal),
        };
        let due = self.due(&wait, nominal);
        if let Some(latest) = due {
            self.check_late(job, (nominal, latest), "its guard let it through");
        }
        // What did not wait was not held too long.
        let is_complete = due.is_some() || wait.signalled == Some(nominal);
        if earliest == Knowledge::Partial || !is_complete {
            self.findings.leave_unknown(Rule::Release, 1);
        }
        self.guards.all[index] = Guard { last: Some(nominal), is_latest: true, idle: None };
    }

    /// What is known of a job that waits, or waited, at its guard; `told` is when its signal was recorded.
    pub(super) fn wait_of(&self, job: JobId, arrival: Instant, told: Option<Instant>) -> Wait {
        let join = self.join_of(job);
        let signalled = match self.is_simulated() {
            true => join.as_ref().and_then(Join::complete),
            false => told,
        };
        Wait { job, arrival, join, signalled }
    }

    /// A period after the release before, if there was one.
    fn opens(&self, operation: usize) -> Option<Instant> {
        let period = self.system.tasks[self.trace.operations[operation].task].period;
        self.guards.all[operation].last.map(|last| last.saturating_add(period))
    }

    /// When the guard lets the first job through that waits at it, at the latest, if that is known and not later than `until`.
    pub(super) fn due(&self, wait: &Wait, until: Instant) -> Option<Instant> {
        let index = wait.job.operation.index();
        let signalled = wait.signalled?;
        let Guard { last, idle, .. } = Some(self.guards.all[index]).filter(|guard| guard.is_latest)?;
        let since = last.map_or(signalled, |last| signalled.max(last.saturating_add(AN_INSTANT)));
        let opens = self.opens(index).unwrap_or(since);
        let opens = match self.system.tasks[self.trace.operations[index].task].sync {
            Synchronisation::Greedy => signalled,
            Synchronisation::ReleaseGuard => opens,
            Synchronisation::ReleaseGuardIdle => {
                self.knows_idle_points().then(|| idle.map_or(opens, |idle| idle.min(opens)))?
            }
            Synchronisation::ReleaseGuardIdleOne => {
                let node = self.node_of(index);
                let unused = self.guards.one_by_one[node].unused.filter(|unused| since <= *unused);
                // What is signalled to a node that has nothing to do finds an idle point at once.
                let at_once =
                    (since == signalled && self.idle_points.is_in_quiet(node, since)).then_some(since);
                let missed = unused.or(at_once).filter(|missed| *missed < until);
                self.knows_idle_points().then(|| missed.map_or(opens, |idle| idle.min(opens)))?
            }
            Synchronisation::PhaseModification => {
                wait.arrival.saturating_add(self.guards.bounds.as_ref()?.offset(wait.job.operation))
            }
            Synchronisation::ModifiedPhaseModification => self.timers(wait.join.as_ref()?)?.1?,
        };
        Some(opens.max(since))
    }

    /// On threads the node counts what is unfinished, and does not record it.
    fn knows_idle_points(&self) -> bool {
        self.is_simulated() && self.idle_points.is_known()
    }

    /// Rules 1 and 2, and an idle point since the release before.
    fn check_idle(&mut self, job: JobId, nominal: Instant) -> Knowledge {
        let index = job.operation.index();
        let is_early = |opens: &Instant| nominal < *opens;
        let Some(opens) = self.opens(index).filter(is_early) else { return Knowledge::Complete };
        if !self.knows_idle_points() {
            return Knowledge::Partial;
        }
        if self.idle_points.latest(self.node_of(index)) <= self.guards.all[index].last {
            self.check_early(job, (nominal, opens));
        }
        Knowledge::Complete
    }

    /// The same where each idle point is for one: that which was signalled first.
    fn check_idle_one(&mut self, wait: &Wait, nominal: Instant) -> Knowledge {
        let (job, index) = (wait.job, wait.job.operation.index());
        let node = self.node_of(index);
        let Guard { last, is_latest, .. } = self.guards.all[index];
        let is_early = self.opens(index).filter(|opens| nominal < *opens);
        if !self.knows_idle_points() {
            return if is_early.is_some() { Knowledge::Partial } else { Knowledge::Complete };
        }
        let latest = self.idle_points.latest(node);
        let one = &mut self.guards.one_by_one[node];
        let earlier = one.used;
        // Of a release after one that is missing nobody knows whether it needed the idle point.
        let was_used = one.is_used_now;
        one.is_used_now |= is_early.is_some() || !is_latest;
        if let Some(opens) = is_early {
            one.used = wait.signalled.map(|signalled| (nominal, job, signalled));
            if latest != Some(nominal) || was_used {
                self.check_early(job, (nominal, opens));
            }
        }
        let Some((at, other, its)) = earlier else { return Knowledge::Complete };
        let waited = |signalled: Instant| {
            signalled <= at && at < nominal && last.is_none_or(|last| last < at) && signalled < its
        };
        if is_latest && wait.signalled.is_some_and(waited) {
            self.find(Rule::Release, job, Some(other), || {
                "an idle point let another one through, which was signalled later".into()
            });
        }
        Knowledge::Complete
    }

    fn check_phase(&mut self, wait: &Wait, nominal: Instant) -> Knowledge {
        let Some(bounds) = &self.guards.bounds else { return Knowledge::Partial };
        let planned = wait.arrival.saturating_add(bounds.offset(wait.job.operation));
        if nominal < planned {
            let early = length(nominal, planned);
            self.find(Rule::Release, wait.job, None, || {
                format!("it was released {} before its phase", early.rounded())
            });
        }
        Knowledge::Complete
    }

    fn check_timer(&mut self, wait: &Wait, nominal: Instant) -> Knowledge {
        let Some((expires, _)) = wait.join.as_ref().and_then(|join| self.timers(join)) else {
            return Knowledge::Partial;
        };
        if nominal < expires {
            let early = length(nominal, expires);
            self.find(Rule::Release, wait.job, None, || {
                format!("it was released {} before its predecessor's timer", early.rounded())
            });
        }
        Knowledge::Complete
    }

    /// When the timers of those predecessors have expired that the job waited for: at the earliest, and at the latest if that is known.
    fn timers(&self, join: &Join) -> Option<(Instant, Option<Instant>)> {
        let bounds = self.guards.bounds.as_ref()?;
        let complete = join.complete()?;
        let timer = |&(at, before): &(Instant, JobId)| {
            let task = self.trace.operations[before.operation.index()].task;
            let released = self.instances[task].release(before)?;
            Some((at, released.saturating_add(bounds.bound(before.operation))))
        };
        let timers: Vec<(Instant, Instant)> = join.heard.iter().map(timer).collect::<Option<_>>()?;
        // On threads others may have been heard of first.
        let may_count = |at: Instant| !self.is_simulated() || at <= complete;
        let mut expiries: Vec<Instant> =
            timers.iter().filter(|(at, _)| may_count(*at)).map(|(_, expiry)| *expiry).collect();
        expiries.sort_unstable();
        let earliest = expiries[join.needed - 1];
        let is_exact = self.is_simulated() || join.needed == join.count && join.is_local;
        Some((earliest, expiries.last().copied().filter(|_| is_exact)))
    }

    fn check_early(&mut self, job: JobId, (at, earliest): (Instant, Instant)) {
        if at < earliest {
            let early = length(at, earliest).rounded();
            self.find(Rule::Release, job, None, || format!("its guard let it through {early} early"));
        }
    }

    fn check_late(&mut self, job: JobId, (at, latest): (Instant, Instant), what: &str) {
        if at > latest {
            let late = length(latest, at).rounded();
            self.find(Rule::Release, job, None, || format!("{what} {late} late"));
        }
    }

    /// First come, first served. Returns when the job was signalled, if that is recorded.
    fn check_turn(&mut self, job: JobId) -> Option<Instant> {
        let tolerance = self.tolerance;
        let signalled = &mut self.guards.signalled[job.operation.index()];
        let position = signalled.iter().position(|(instance, _)| *instance == job.instance)?;
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
        Some(own.1)
    }
}
