//! The first pass: which instances are to be explained, and along which jobs.

use super::life::{Hop, Life, Lives, PathEnd, Turn};
use super::sought::Sought;
use super::stranded::{LostMessage, Stranding};
use super::{Counts, Outcome, Question, Standing, Subject, Which};
use crate::own_wcets::OwnWcets;
use talea_model::OperationId;
use talea_record::contents::Lost;
use talea_record::event::{Skip, Typed};
use talea_record::{Event, JobId, Metadata, Record, Sink, SkipReason};
use talea_time::Instant;

/// An instance or job to explain.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub subject: Subject,
    pub outcome: Outcome,
    pub arrival: Instant,
    /// When its release was meant to be.
    pub due: Instant,
    /// Up to when a guard was to hold what releases it, if one did.
    pub opened: Option<Instant>,
    pub woken: Option<Instant>,
    pub deadline: Instant,
    pub end: Instant,
    pub path: Vec<Hop>,
    /// Whether what follows its path waits for word of the last job there.
    pub awaits_message: bool,
    /// What keeps it from ever completing.
    pub stranding: Option<Stranding>,
    /// The unfinished instance that had it skipped, or with which it was merged.
    pub because: Option<Box<Target>>,
    /// What became of the instance with which it was merged.
    pub stands_for_it: Option<Standing>,
}

/// The instance that is asked about was merged with one before it.
#[derive(Clone, Copy, Debug)]
struct Merged {
    task: usize,
    number: u64,
    /// When.
    at: Instant,
    /// With which, once that is known.
    with: Option<u64>,
}

impl Target {
    /// Up to when it can be known what an unfinished job on its path did.
    pub fn until(&self, hop: &Hop) -> Instant {
        match self.stranding {
            Some(Stranding::Node { job, at, .. }) if job == hop.job => {
                at.clamp(hop.released, self.end.max(hop.released))
            }
            _ => self.end,
        }
    }

    fn lateness_ns(&self) -> i64 {
        self.end.as_nanos().saturating_sub(self.deadline.as_nanos())
    }

    fn response_ns(&self) -> i64 {
        self.end.as_nanos().saturating_sub(self.arrival.as_nanos())
    }
}

/// Takes every record and keeps the targets.
pub(super) struct Finder<'a> {
    metadata: &'a Metadata,
    question: Question,
    /// By task.
    lives: Vec<Lives>,
    /// The last TIMER record's wake-up and time, by node.
    timers: Vec<Option<(Instant, Instant)>>,
    found: Vec<Target>,
    /// The job asked for by name.
    sought: Option<Sought>,
    own_wcets: OwnWcets,
    /// If what is asked for was merged.
    merged: Option<Merged>,
    pub counts: Counts,
    pub lost: Lost,
    /// The first record.
    first: Option<Instant>,
    last: Instant,
    /// When each node ended.
    ends: Vec<Option<Instant>>,
    /// When each node left the run before its end.
    left: Vec<Option<Instant>>,
}

impl<'a> Finder<'a> {
    pub fn new(metadata: &'a Metadata, question: Question) -> Self {
        Finder {
            metadata,
            question,
            lives: (0..metadata.tasks.len()).map(|task| Lives::new(metadata, task)).collect(),
            timers: vec![None; metadata.nodes.len()],
            found: Vec::new(),
            own_wcets: OwnWcets::default(),
            sought: match question.which {
                Which::This(Subject::Job(job)) => Some(Sought::new(job)),
                _ => None,
            },
            merged: None,
            counts: Counts::default(),
            lost: Lost::default(),
            first: None,
            last: metadata.start,
            ends: vec![None; metadata.nodes.len()],
            left: vec![None; metadata.nodes.len()],
        }
    }

    /// From when on the trace tells of the run, after its records were taken.
    pub fn begins(&self) -> Instant {
        self.first.unwrap_or(self.metadata.start).max(self.metadata.start)
    }

    /// The targets, worst first, and the instant of the trace's end.
    pub fn finish(mut self) -> (Vec<Target>, Counts, Lost, Instant) {
        let end = self.ends.iter().flatten().max().copied().unwrap_or(self.last);
        for task in 0..self.lives.len() {
            self.lives[task].end(end);
            let open: Vec<(u64, Life)> =
                std::mem::take(&mut self.lives[task].in_flight).into_iter().collect();
            for (instance, life) in open {
                self.judge(task, instance, &life, Outcome::Unfinished, end);
            }
        }
        // Another node may have skipped the instance of a job that was released here.
        if let Some(target) = self.sought.take().and_then(|sought| sought.finish(self.metadata, end)) {
            self.found = vec![target];
        }
        self.trim();
        (self.found, self.counts, self.lost, end)
    }

    fn job_event(&mut self, record: &Record) {
        let job = record.job();
        let Some(entry) = self.metadata.operations.get(job.operation.index()) else { return };
        let node = self.metadata.lanes[entry.lane].node;
        if self.ends[node].is_some_and(|end| record.time > end) {
            return;
        }
        let timer = self.timers[node].filter(|(_, at)| *at <= record.time).map(|(woken, _)| woken);
        let task = entry.task;
        let wcet = (record.event == Event::RELEASE).then(|| self.own_wcets.released(job)).flatten();
        if let Some(sought) = &mut self.sought {
            sought.take(record, (timer, wcet));
        }
        let Some(turn) = self.lives[task].take(self.metadata, record, (timer, wcet)) else { return };
        if record.event == Event::RELEASE {
            self.left_guard(task, job);
        }
        match turn {
            Turn::Goes => {}
            Turn::Completed => self.resolve(task, job.instance, Outcome::Met, record.time),
            Turn::Aborted => self.resolve(task, job.instance, Outcome::Aborted, record.time),
            Turn::Skipped => {
                let known = Skip::read(record).and_then(|skip| skip.reason.known());
                let reason = known.unwrap_or(SkipReason::Overrun);
                self.resolve(task, job.instance, Outcome::Skipped { reason }, record.time);
            }
        }
    }

    /// A guard holds the job up to then, as far as is known.
    fn guarded(&mut self, job: JobId, until: Instant) {
        if let Some(entry) = self.metadata.operations.get(job.operation.index()) {
            self.lives[entry.task].guarded(self.metadata, job, until);
        }
        if let Some(sought) = self.sought.as_mut().filter(|sought| sought.job == job) {
            sought.opened = Some(until);
        }
    }

    /// The instance is over, at `end`.
    fn resolve(&mut self, task: usize, instance: u64, outcome: Outcome, end: Instant) {
        if let Some(life) = self.lives[task].resolve(instance) {
            self.judge(task, instance, &life, outcome, end);
        }
    }

    /// The guard had the job of a first subtask until now, or has it at the end: what came meanwhile was merged with that.
    fn left_guard(&mut self, task: usize, job: JobId) {
        let is_first = self.metadata.operations[job.operation.index()].predecessors.is_empty();
        let Some(merged) = &mut self.merged else { return };
        if merged.task != task || merged.with.is_some() || merged.number <= job.instance || !is_first {
            return;
        }
        let Some(life) = self.lives[task].in_flight.get(&job.instance) else { return };
        merged.with = Some(job.instance);
        let (released, is_released, started) = (merged.at, false, None);
        let (ended, received, held, wcet) = (None, None, None, None);
        let hop = Hop { job, released, is_released, started, ended, received, held, wcet };
        let because = target(Subject::Job(job), life, Outcome::Unfinished, merged.at, vec![hop], None);
        if let Some(found) = self.found.last_mut() {
            found.because = Some(Box::new(because));
        }
    }

    /// The instance is over, or the trace is.
    fn stood(&mut self, (task, instance): (usize, u64), life: &Life, outcome: Outcome, end: Instant) {
        if self.merged.is_none_or(|merged| (merged.task, merged.with) != (task, Some(instance))) {
            return;
        }
        let began = self.lives[task].began(self.metadata, life);
        let end = (outcome != Outcome::Unfinished).then_some(end);
        let number = instance;
        if let Some(found) = self.found.last_mut() {
            found.stands_for_it = Some(Standing { task, number, began, end, outcome });
        }
    }

    /// Counts an instance that is over, or that the trace's end cut off, and keeps it if it is asked for.
    fn judge(&mut self, task: usize, instance: u64, life: &Life, outcome: Outcome, end: Instant) {
        let late = end > life.deadline;
        let outcome = match outcome {
            Outcome::Met if late => Outcome::Missed,
            other => other,
        };
        let failed = match outcome {
            Outcome::Met => false,
            // Its event is among those that have expired, or another instance stands for it.
            Outcome::Skipped { reason: SkipReason::Expired | SkipReason::Merged } => false,
            // Whatever completes at the end itself is not cut off.
            Outcome::Unfinished => end >= life.deadline,
            _ => true,
        };
        self.stood((task, instance), life, outcome, end);
        let subject = Subject::Instance { task, number: instance };
        let in_scope = self.question.task.is_none_or(|wanted| wanted == task);
        let is_none =
            matches!(outcome, Outcome::Skipped { reason: SkipReason::Expired | SkipReason::Merged });
        if in_scope && !is_none {
            self.counts.add(outcome, failed);
        }
        match self.question.which {
            Which::Failed if in_scope && failed => self.keep(task, subject, life, outcome, end),
            Which::Worst if in_scope && !matches!(outcome, Outcome::Skipped { .. }) => {
                self.keep(task, subject, life, outcome, end);
            }
            Which::This(wanted) if wanted == subject => self.keep(task, subject, life, outcome, end),
            // The record of a skip is about the first of the first operations of a node, and stands for all.
            Which::This(Subject::Job(job))
                if job.instance == instance
                    && matches!(outcome, Outcome::Skipped { .. })
                    && self.metadata.operations[job.operation.index()].task == task =>
            {
                self.keep(task, subject, life, outcome, end);
            }
            _ => {}
        }
    }

    fn keep(&mut self, task: usize, subject: Subject, life: &Life, outcome: Outcome, end: Instant) {
        let Subject::Instance { number, .. } = subject else { return };
        let because = match outcome {
            Outcome::Skipped { reason } => self.hindrance(task, number, (reason, end)).map(Box::new),
            _ => None,
        };
        if let Outcome::Skipped { reason: SkipReason::Merged } = outcome {
            let with = because.as_ref().and_then(|because| match because.subject {
                Subject::Job(job) => Some(job.instance),
                Subject::Instance { .. } | Subject::Way { .. } => None,
            });
            self.merged = Some(Merged { task, number, at: end, with });
        }
        let path = match outcome {
            Outcome::Skipped { .. } => Vec::new(),
            Outcome::Unfinished => self.path(task, number, life, PathEnd::Stuck),
            _ => self.path(task, number, life, PathEnd::Latest),
        };
        let awaited = match outcome {
            Outcome::Unfinished => self.lives[task].awaited(self.metadata, life),
            _ => None,
        };
        let awaits_message = path.last().is_some_and(|hop| Some(hop.job.operation.index()) == awaited);
        let stranding = match outcome {
            Outcome::Unfinished => self.lives[task].stranding(self.metadata, number, life, &self.left),
            _ => None,
        };
        self.found.push(Target {
            stranding,
            awaits_message,
            ..target(subject, life, outcome, end, path, because)
        });
        if self.found.len() >= 2 * self.question.limit.max(self.metadata.tasks.len()).max(16) {
            self.trim();
        }
    }

    fn path(&self, task: usize, number: u64, life: &Life, end: PathEnd) -> Vec<Hop> {
        self.lives[task].critical_path(self.metadata, number, life, end)
    }

    /// The unfinished instance because of which `number` was skipped `at` that instant.
    fn hindrance(&self, task: usize, number: u64, (reason, at): (SkipReason, Instant)) -> Option<Target> {
        let lives = &self.lives[task];
        let (instance, operation) = lives.hinders(self.metadata, number, reason)?;
        let life = lives.in_flight.get(&instance)?;
        let subject = Subject::Job(JobId { operation, instance });
        let path = lives.hop(life, instance, operation.index()).into_iter().collect();
        Some(target(subject, life, Outcome::Unfinished, at, path, None))
    }

    /// Keeps the worst.
    fn trim(&mut self) {
        match self.question.which {
            Which::Failed => {
                self.found.sort_by_key(|target| (-i128::from(target.lateness_ns()), target.end));
                self.found.truncate(self.question.limit);
            }
            Which::Worst => {
                self.found.sort_by_key(|target| (-i128::from(target.response_ns()), target.end));
                let mut seen = vec![false; self.metadata.tasks.len()];
                self.found.retain(|target| match target.subject {
                    Subject::Instance { task, .. } => !std::mem::replace(&mut seen[task], true),
                    Subject::Job(_) | Subject::Way { .. } => true,
                });
                // A task whose worst so far is among no `limit` worst comes back if it does worse.
                self.found.truncate(self.question.limit);
            }
            Which::This(_) | Which::Chains => self.found.truncate(1),
        }
    }
}

fn target(
    subject: Subject,
    life: &Life,
    outcome: Outcome,
    end: Instant,
    path: Vec<Hop>,
    because: Option<Box<Target>>,
) -> Target {
    let Life { arrival, due, opened, woken, deadline, .. } = *life;
    // Only damaged records have a release before its arrival.
    let end = end.max(arrival);
    let (awaits_message, stranding) = (false, None);
    Target {
        subject,
        outcome,
        arrival,
        due,
        opened,
        woken,
        deadline,
        end,
        path,
        awaits_message,
        stranding,
        because,
        stands_for_it: None,
    }
}

impl Sink for Finder<'_> {
    fn record(&mut self, record: Record) {
        self.last = self.last.max(record.time);
        // The names of threads that the kernel tells at its start are from before everything.
        if record.event != Event::THREAD_NAME {
            self.first.get_or_insert(record.time);
        }
        match record.typed() {
            _ if record.event.is_job() => self.job_event(&record),
            Typed::JobWcet(told) => self.own_wcets.hear(told),
            Typed::Timer(timer) => {
                if let Some(last) = self.timers.get_mut(usize::from(timer.node)) {
                    *last = Some((timer.woken, record.time));
                }
            }
            Typed::Receive(receive) => {
                if let Some(entry) = self.metadata.operations.get(receive.job.operation.index()) {
                    self.lives[entry.task].message_received(receive.job, record.time);
                }
            }
            Typed::Signal(signal) => {
                if let Some(entry) = self.metadata.operations.get(signal.job.operation.index()) {
                    self.lives[entry.task].signalled(signal.job, record.time);
                }
            }
            Typed::Held(held) => {
                if let Some(entry) = self.metadata.operations.get(held.job.operation.index()) {
                    self.lives[entry.task].held(self.metadata, &record);
                    self.left_guard(entry.task, held.job);
                }
                if let Some(sought) = self.sought.as_mut().filter(|sought| sought.job == held.job) {
                    sought.held(held, record.time);
                }
            }
            Typed::Guard(guard) => self.guarded(guard.job, guard.until),
            Typed::Open(open) => self.guarded(open.job, open.at),
            Typed::Lost(lost) => self.lost.add(lost),
            Typed::MessageLost(lost) => {
                let operations = &self.metadata.operations;
                if let Some(entry) = operations.get(lost.job.operation.index())
                    && let Some(to) = operations.get(lost.to as usize)
                {
                    let (task, is_trigger) = (to.task, to.task != entry.task);
                    let (to, why) = (OperationId::from_index(lost.to as usize), lost.why.known());
                    // Older traces say 0 of triggers.
                    let instance = if is_trigger { lost.instance } else { lost.job.instance };
                    let lost = LostMessage { of: lost.job, to, at: record.time, why };
                    self.lives[task].message_lost(instance, lost);
                }
            }
            Typed::NodeLeft(node) => {
                if let Some(left) = self.left.get_mut(node.left as usize) {
                    left.get_or_insert(record.time);
                }
            }
            Typed::RunEnd(over) => {
                if let Some(end) = self.ends.get_mut(usize::from(over.node)) {
                    *end = Some(record.time);
                }
            }
            _ => {}
        }
    }
}
