//! Releases, skips and aborts: what the description asks for before a lane gets a job.

use super::guards::OpenedGuard;
use super::instances::Progress;
use super::judge::{Judge, Known};
use super::length;
use super::report::Rule;
use talea_model::{Excess, OperationId, Overrun, Trigger};
use talea_policy::demand;
use talea_record::event::{Abort, Held, Release, Skip, Typed};
use talea_record::{JobId, Record, SkipReason};
use talea_time::{Duration, Instant};

impl Judge<'_> {
    pub(super) fn release(&mut self, record: &Record, told: Release, lane: usize) {
        let job = record.job();
        let entry = &self.trace.operations[job.operation.index()];
        let (task, is_first) = (entry.task, entry.predecessors.is_empty());
        if let Known::AfterLoss(from) = self.known[task]
            && is_first
        {
            let is_first_of_it =
                |operation: &&usize| self.trace.operations[**operation].predecessors.is_empty();
            // If it has several, the others may have been released among what was lost.
            let has_others = self.instances[task].operations.iter().filter(is_first_of_it).count() > 1;
            self.known[task] = Known::From(from.max(job.instance + u64::from(has_others)));
        }
        match self.instances[task].progress(job) {
            None | Some(Progress::Coming) => {}
            Some(Progress::Aborted(_)) => {
                self.find(Rule::Life, job, None, || {
                    "it was released although it was skipped or aborted".into()
                });
            }
            Some(_) => self.find(Rule::Life, job, None, || "it was released twice".into()),
        }
        if self.is_posted(task) {
            // Whoever posts it says when it is due.
            self.findings.count_case(Rule::Release);
            if told.nominal > record.time || told.deadline < told.nominal {
                self.find(Rule::Release, job, None, || "it was due before it was posted".into());
            }
            self.instances[task].set(job, Progress::Released);
            return self.enter(told, lane, (told.nominal, told.nominal));
        }
        let is_triggered = self.is_triggered(task);
        let arrival = match is_triggered {
            // When it arrives nobody knows beforehand; its deadline says when it did.
            true => saturating(told.deadline, -self.trace.tasks[task].deadline),
            false => self.arrival(task, job.instance),
        };
        let deadline = saturating(arrival, self.trace.tasks[task].deadline);
        let is_guarded = self.is_guarded(job.operation);
        let is_held = is_first && is_triggered && self.system.tasks[task].separation.is_some();
        let opened = if is_held { self.opening_of(told) } else { None };
        let ordered_by = if is_first {
            self.check_overrun(record);
            if is_triggered {
                self.check_triggered(told, opened);
                opened.unwrap_or(self.now)
            } else {
                self.check_first(record, arrival)
            }
        } else {
            self.check_precedence(record);
            if !is_guarded {
                self.check_greedy(job);
            }
            if is_guarded { told.nominal } else { self.now }
        };
        let nominal = if is_first && is_triggered {
            told.nominal
        } else if is_first {
            arrival
        } else if is_guarded {
            self.guards.expect(OpenedGuard { job, at: record.time, nominal: told.nominal, arrival });
            told.nominal
        } else {
            record.time
        };
        self.findings.count_case(Rule::Release);
        if (told.nominal, told.deadline) != (nominal, deadline) {
            self.find(Rule::Release, job, None, || {
                "its arrival or deadline is not that of the description".into()
            });
        }
        self.instances[task].set(job, Progress::Released);
        // Where its guard opened nobody knows when, it did so after the arrival, and the thread that opens guards tells when it has got around to that.
        let is_exact = !is_held || opened.is_some();
        if is_exact {
            // Timers count from the instant that arrival and jitter, or a guard, give.
            self.instances[task].set_release(job, if is_first { ordered_by } else { nominal });
        }
        self.enter(told, lane, (if is_exact { ordered_by } else { told.nominal }, ordered_by));
    }

    /// When the guard of a first subtask opened for the job that is released now, if that is known.
    fn opening_of(&mut self, told: Release) -> Option<Instant> {
        if self.is_simulated() {
            return Some(self.now);
        }
        let opened = self.guards.opening_of(told.job)?;
        if opened < told.nominal || opened > self.now {
            self.find(Rule::Release, told.job, None, || "its guard did not open then".into());
            return None;
        }
        Some(opened)
    }

    /// A job of a thread below schedulers: what the description says of its release and its end, whatever else happens.
    pub(super) fn check_alone(&mut self, record: &Record) {
        let job = record.job();
        let task = self.trace.operations[job.operation.index()].task;
        if self.is_posted(task) || task >= self.system.tasks.len() {
            return;
        }
        let is_first = self.trace.operations[job.operation.index()].predecessors.is_empty();
        match record.typed() {
            Typed::Release(told) if is_first && self.is_triggered(task) => self.check_triggered(told, None),
            Typed::Release(told) if is_first => {
                self.findings.count_case(Rule::Release);
                let arrival = self.arrival(task, job.instance);
                self.check_first(record, arrival);
                if (told.nominal, told.deadline)
                    != (arrival, saturating(arrival, self.trace.tasks[task].deadline))
                {
                    self.find(Rule::Release, job, None, || {
                        "its arrival or deadline is not that of the description".into()
                    });
                }
            }
            Typed::Abort(abort) => self.check_abort(abort),
            Typed::Skip(skip) if skip.reason == SkipReason::Overrun => _ = self.check_skips(task, job),
            Typed::Skip(skip) if skip.reason == SkipReason::Merged => {
                let may = self.system.tasks[task].overrun == Overrun::Merge;
                self.check_skip_reason(job, may);
            }
            _ => {}
        }
    }

    /// Whether instances of the task may be skipped because of an overrun.
    fn check_skips(&mut self, task: usize, job: JobId) -> bool {
        let may = self.system.tasks[task].overrun == Overrun::SkipNext;
        if !may {
            self.find(Rule::Overrun, job, None, || "it was skipped, which is not the task's policy".into());
        }
        may
    }

    /// Whether something else than its period releases the task.
    pub(super) fn is_triggered(&self, task: usize) -> bool {
        !self.trace.tasks[task].released_by.is_period()
    }

    /// A first job of a task with a trigger, whose guard opened at `opened`, if it has one and that is known: its deadline counts from its arrival,
    /// which over a link is later than the value's.
    fn check_triggered(&mut self, told: Release, opened: Option<Instant>) {
        let task = self.trace.operations[told.job.operation.index()].task;
        let node = |operation: OperationId| self.system.subtask(operation).node;
        let output =
            self.system.trigger_output(task).map(|output| self.system.outputs()[output.index()].operation);
        let is_local = output.is_none_or(|from| node(from) == node(told.job.operation));
        if self.system.tasks[task].inherits_deadline {
            self.check_inherited(told);
            return self.check_trigger(told, opened);
        }
        let latest = saturating(told.nominal, self.trace.tasks[task].deadline);
        if told.deadline > latest || is_local && told.deadline != latest {
            self.find(Rule::Release, told.job, None, || "its deadline is not that of the description".into());
        }
        self.check_trigger(told, opened);
    }

    /// When an instance arrives, by the judge's own reckoning.
    pub(super) fn arrival(&self, task: usize, instance: u64) -> Instant {
        let entry = &self.trace.tasks[task];
        let since_first = i64::try_from(instance).unwrap_or(i64::MAX).saturating_mul(entry.period.as_nanos());
        saturating(saturating(self.trace.start, entry.phase), Duration::from_nanos(since_first))
    }

    /// A first job is released at its arrival and jitter, in virtual time, or later, on threads. Returns that instant.
    fn check_first(&mut self, record: &Record, arrival: Instant) -> Instant {
        let job = record.job();
        let entry = &self.trace.tasks[self.trace.operations[job.operation.index()].task];
        let jitter = demand::release_jitter_from(entry.jitter, entry.jitter_stream, job.instance);
        let due = saturating(arrival, jitter);
        if record.time < due {
            let early = length(record.time, due);
            self.find(Rule::Release, job, None, || format!("it was released {} early", early.rounded()));
        } else if record.time > due && self.is_simulated() {
            let late = length(due, record.time);
            self.find(Rule::Release, job, None, || format!("it was released {} late", late.rounded()));
        }
        due
    }

    fn check_precedence(&mut self, record: &Record) {
        let job = record.job();
        let entry = &self.trace.operations[job.operation.index()];
        let task = entry.task;
        match self.known[task] {
            Known::FromTheBeginning => {}
            Known::From(first) if job.instance >= first => {}
            _ => {
                self.unjudged += 1;
                return;
            }
        }
        let heard = |before: &usize| self.coverage.hears(self.node_of(*before));
        if !entry.predecessors.iter().all(heard) {
            self.unjudged += 1;
            return;
        }
        self.findings.count_case(Rule::Precedence);
        let needed = self.system.operations().get(job.operation.index()).map_or(usize::MAX, |operation| {
            self.system.subtask(operation.id).join.needed(entry.predecessors.len())
        });
        let spare = entry.predecessors.len().saturating_sub(needed);
        let mut missing = entry.predecessors.iter().copied().filter(|before| {
            let id = JobId { operation: OperationId::from_index(*before), instance: job.instance };
            match self.instances[task].progress(id) {
                Some(Progress::Completed(done)) => {
                    self.heard_of(id.operation, job, done).is_none_or(|heard| heard > record.time)
                }
                _ => true,
            }
        });
        let missing = missing.nth(spare);
        if let Some(before) = missing {
            let other = JobId { operation: OperationId::from_index(before), instance: job.instance };
            self.find(Rule::Precedence, job, Some(other), || {
                "it was released before its predecessor was done".into()
            });
        }
    }

    /// Whether the operation is a first one that decides, with the given one, about overruns: those of the same node do.
    fn decides_with(&self, operation: usize) -> impl Fn(usize) -> bool {
        let node = |index: usize| self.expected.lanes[self.expected.operations[index].lane].node;
        let here = node(operation);
        move |other| self.expected.operations[other].predecessors.is_empty() && node(other) == here
    }

    fn check_overrun(&mut self, record: &Record) {
        self.findings.count_case(Rule::Overrun);
        let job = record.job();
        let task = self.trace.operations[job.operation.index()].task;
        let unfinished = {
            let decides = self.decides_with(job.operation.index());
            self.instances[task].unfinished_before(job.instance, decides).next()
        };
        let Some((instance, index)) = unfinished else { return };
        let other = JobId { operation: OperationId::from_index(index), instance };
        match self.system.tasks[task].overrun {
            // Whether the one before had begun is judged when it is known.
            Overrun::Queue | Overrun::Merge => {}
            Overrun::SkipNext => self.find(Rule::Overrun, job, Some(other), || {
                "it was released while the one before was unfinished, and should have been skipped".into()
            }),
            Overrun::Abort if self.is_simulated() => self.find(Rule::Overrun, job, Some(other), || {
                "it was released while the one before was unfinished and not aborted".into()
            }),
            // On threads a running job is told to stop and does so later.
            Overrun::Abort => {
                if let Some(doomed) = self.instances[task].list.get_mut(&instance) {
                    doomed.doomed = doomed.doomed.or(Some(record.time));
                }
            }
        }
    }

    /// A guard holds the job of a first subtask at the end.
    pub(super) fn check_held(&mut self, held: Held) {
        let job = held.job;
        let Some(entry) = self.trace.operations.get(job.operation.index()) else { return };
        self.arrived(job, held.nominal);
        self.held_at_end(entry.task, job);
        let separation = self.system.tasks.get(entry.task).and_then(|task| task.separation);
        if separation.is_none_or(|separation| separation.excess != Excess::Defer) {
            self.find(Rule::Release, job, None, || "it is held at the end, and nothing is to hold it".into());
        }
    }

    pub(super) fn skip(&mut self, record: &Record, skip: Skip) {
        let job = skip.job;
        let task = self.trace.operations[job.operation.index()].task;
        let (unfinished, last_end) = {
            let decides = self.decides_with(job.operation.index());
            let unfinished = self.instances[task].unfinished_before(job.instance, &decides).next().is_some();
            (unfinished, self.instances[task].last_end_before(job.instance, &decides))
        };
        self.instances[task].set(job, Progress::Aborted(self.now));
        self.findings.count_case(Rule::Overrun);
        if self.is_posted(task) {
            return;
        }
        let described = &self.system.tasks[task];
        let excess = described.separation.map(|separation| separation.excess);
        let is_by_events = matches!(described.trigger, Some(Trigger::Events(_)));
        let may_be = match skip.reason.known() {
            Some(SkipReason::Early) => excess == Some(Excess::Drop),
            // What waits for nothing is released at once, whatever becomes of its event.
            Some(SkipReason::Expired) => is_by_events && excess == Some(Excess::Defer),
            Some(SkipReason::Merged) => described.overrun == Overrun::Merge,
            Some(SkipReason::Overrun | SkipReason::Full) | None => true,
        };
        self.check_skip_reason(job, may_be);
        if skip.reason != SkipReason::Overrun {
            return;
        }
        if !self.check_skips(task, job) {
            return;
        }
        let just_ended = last_end.is_some_and(|end| saturating(end, self.tolerance) > record.time);
        if !unfinished && !just_ended {
            // What was released before the loss may be unfinished; nothing is when another one is released.
            if self.known[task] != Known::FromTheBeginning {
                self.unjudged += 1;
            } else {
                self.find(Rule::Overrun, job, None, || {
                    "it was skipped, and nothing before it was unfinished".into()
                });
            }
        }
    }

    fn check_skip_reason(&mut self, job: JobId, may_be: bool) {
        if !may_be {
            self.find(Rule::Release, job, None, || {
                "it was skipped for a reason that its task does not have".into()
            });
        }
    }

    /// The job completed: was it to be aborted?
    pub(super) fn completes(&mut self, job: JobId) {
        let task = self.trace.operations[job.operation.index()].task;
        let is_first = self.trace.operations[job.operation.index()].predecessors.is_empty();
        let doomed = self.instances[task].list.get(&job.instance).and_then(|instance| instance.doomed);
        if let Some(since) = doomed.filter(|since| is_first && saturating(*since, self.tolerance) < self.now)
        {
            let after = length(since, self.now);
            self.find(Rule::Overrun, job, None, || {
                format!("it completed {} after the next instance should have had it aborted", after.rounded())
            });
        }
        self.instances[task].set(job, Progress::Completed(self.now));
    }

    pub(super) fn check_abort(&mut self, abort: Abort) {
        let job = abort.job;
        let entry = &self.trace.operations[job.operation.index()];
        // On threads a job also ends so when its code panics, and a successor when there is no room for it.
        let on_threads = !self.is_simulated() && (abort.running.0 || !entry.predecessors.is_empty());
        let has_another_reason = self.guards.is_refused(job) || on_threads || self.is_posted(entry.task);
        if has_another_reason || self.system.tasks[entry.task].overrun == Overrun::Abort {
            return;
        }
        match self.is_of_thread(job) && !self.is_simulated() {
            // A thread gives up its bursts when it leaves its hierarchy, which may be told before or after.
            true => self.given_up.push((job, self.now)),
            false => {
                self.find(Rule::Overrun, job, None, || {
                    "it was aborted, which is not the task's policy".into()
                });
            }
        }
    }
}

pub(super) fn saturating(at: Instant, by: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_add(by.as_nanos()))
}
