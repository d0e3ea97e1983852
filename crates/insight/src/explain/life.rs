//! The lives of a task's instances, from arrival to resolution, in memory that grows with the instances in flight only.

use super::stranded::LostMessage;
use crate::seen_numbers::SeenNumbers;
use std::collections::BTreeMap;
use talea_model::OperationId;
use talea_policy::demand;
use talea_policy::release::arrivals::{Arrivals, Pattern};
use talea_record::event::{Deliver, Typed};
use talea_record::{JobId, Metadata, Record, SkipReason};
use talea_time::{Instant, Work};

/// How far a job got.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JobLife {
    pub released: Option<Instant>,
    pub started: Option<Instant>,
    /// Completed or aborted.
    pub ended: Option<Instant>,
    /// When the last message about a predecessor came.
    pub message: Option<Instant>,
    /// When it was known that nothing is missing, and its guard had it.
    pub signalled: Option<Instant>,
    /// Its nominal release: to the rules, when the guard let it through.
    pub nominal: Option<Instant>,
    /// The end of the trace, if its guard held it up to there.
    pub held_to: Option<Instant>,
    /// The longest that it executes, if it was posted with an execution time of its own.
    pub wcet: Option<Work>,
}

/// One instance of a task.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub arrival: Instant,
    /// When its release was meant to be: arrival plus jitter, or when the job that releases it did so.
    pub due: Instant,
    /// Up to when a guard was to hold what releases it, if one did.
    pub opened: Option<Instant>,
    /// When the release thread said it was awake for this release, if it said so.
    pub woken: Option<Instant>,
    pub deadline: Instant,
    /// By position among the task's operations.
    pub jobs: Vec<JobLife>,
    /// Word of its jobs that did not reach another node.
    pub lost: Vec<LostMessage>,
    /// Last operations that have not completed.
    lasts_left: usize,
}

/// What a record means for the instance it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Goes,
    Completed,
    Aborted,
    Skipped,
}

/// Which job a path ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathEnd {
    /// The one that ended last: it completed or aborted the instance.
    Latest,
    /// The unfinished one that was released first, or the one that ended last if none is released.
    Stuck,
}

/// One job on the way to the end of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The job.
    pub job: JobId,
    /// When it was released; when it is first heard of if the record of its release was lost; the end of the trace where its guard holds it still.
    pub released: Instant,
    /// Whether it has been released, as far as is known.
    pub is_released: bool,
    /// When it began, if it did.
    pub started: Option<Instant>,
    /// When it completed or was aborted, if it did.
    pub ended: Option<Instant>,
    /// When the message that released it arrived, if that is recorded.
    pub received: Option<Instant>,
    /// From when to when its guard held it, if it has one and that is recorded.
    pub held: Option<(Instant, Instant)>,
    /// The longest that it executes, if it was posted with an execution time of its own.
    pub wcet: Option<Work>,
}

/// The instances of one task.
#[derive(Debug)]
pub(super) struct Lives {
    task: usize,
    /// Its operations in file order.
    pub(super) operations: Vec<usize>,
    lasts: usize,
    pub in_flight: BTreeMap<u64, Life>,
    /// Up to when guards hold first jobs, by instance and operation.
    guarded: BTreeMap<(u64, usize), Instant>,
    /// Lost messages that were to release first jobs of instances of which nothing else has been heard.
    pub(super) lost_triggers: BTreeMap<u64, Vec<LostMessage>>,
    pub(super) seen: SeenNumbers,
}

/// More instances in flight than this can only be instances whose end was lost.
pub(super) const LIMIT: usize = 1 << 14;

impl Lives {
    pub fn new(metadata: &Metadata, task: usize) -> Self {
        let of_task = |(_, operation): &(usize, &talea_record::OperationEntry)| operation.task == task;
        let operations: Vec<usize> =
            metadata.operations.iter().enumerate().filter(of_task).map(|(index, _)| index).collect();
        let lasts = operations.iter().filter(|index| metadata.operations[**index].is_last).count();
        let seen = SeenNumbers::of(&metadata.tasks[task]);
        let (in_flight, guarded, lost_triggers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Lives { task, operations, lasts, in_flight, guarded, lost_triggers, seen }
    }

    /// Takes a record about one of the task's jobs. `woken` is when the release thread of the job's node last woke.
    /// `wcet` is the longest that the job executes, if it is released now with one of its own.
    /// Returns what it means for the instance, which stays in flight until [`Self::resolve`].
    pub fn take(
        &mut self,
        metadata: &Metadata,
        record: &Record,
        (woken, wcet): (Option<Instant>, Option<Work>),
    ) -> Option<Turn> {
        let job = record.job();
        let place = self.operations.iter().position(|index| *index == job.operation.index())?;
        if !self.in_flight.contains_key(&job.instance) {
            // What follows an instance that is resolved, or was given up, changes nothing.
            if !self.seen.is_new(job.instance) {
                return None;
            }
            self.begin(metadata, record);
        }
        let life = self.in_flight.get_mut(&job.instance)?;
        let entry = &metadata.operations[job.operation.index()];
        let own = &mut life.jobs[place];
        let first = own.released.is_none() && own.started.is_none();
        match record.typed() {
            Typed::Release(release) => {
                self.guarded.remove(&(job.instance, job.operation.index()));
                own.released = Some(record.time);
                (own.nominal, own.wcet) = (Some(release.nominal), wcet);
                if entry.predecessors.is_empty() && life.woken.is_none() {
                    life.woken = woken;
                }
            }
            Typed::Start(_) if own.started.is_none() => own.started = Some(record.time),
            Typed::Complete(complete) if own.ended.is_none() => {
                own.ended = Some(record.time);
                life.deadline = complete.deadline;
                life.lasts_left -= usize::from(entry.is_last);
                if entry.is_last && life.lasts_left == 0 {
                    return Some(Turn::Completed);
                }
            }
            Typed::Abort(_) => {
                own.ended = Some(record.time);
                return Some(Turn::Aborted);
            }
            Typed::Skip(_) => {
                self.guarded.remove(&(job.instance, job.operation.index()));
                return Some(Turn::Skipped);
            }
            _ => {}
        }
        let own = &mut life.jobs[place];
        if first && own.released.is_none() && own.started.is_none() {
            own.started = own.ended;
        }
        Some(Turn::Goes)
    }

    /// All that the job needs is done at `now`.
    pub fn signalled(&mut self, job: JobId, now: Instant) {
        let place = self.operations.iter().position(|index| *index == job.operation.index());
        if let (Some(place), Some(life)) = (place, self.in_flight.get_mut(&job.instance)) {
            life.jobs[place].signalled = Some(now);
        }
    }

    /// The run ends `now`, and a guard holds the first job of an instance that nothing else tells of.
    pub fn held(&mut self, metadata: &Metadata, record: &Record) {
        let job = record.job();
        let place = self.operations.iter().position(|index| *index == job.operation.index());
        if let Some(place) = place.filter(|_| self.seen.is_new(job.instance)) {
            self.begin(metadata, record);
            let Some(life) = self.in_flight.get_mut(&job.instance) else { return };
            life.jobs[place].held_to = Some(record.time);
            life.opened = Some(Instant::MAX);
        }
    }

    /// The job waits at its guard up to then.
    pub fn guarded(&mut self, metadata: &Metadata, job: JobId, until: Instant) {
        if metadata.operations[job.operation.index()].predecessors.is_empty() {
            self.guarded.insert((job.instance, job.operation.index()), until);
            if self.guarded.len() > LIMIT {
                self.guarded.pop_first();
            }
        }
    }

    /// A message about a predecessor of the job arrived at `now`.
    pub fn message_received(&mut self, job: JobId, now: Instant) {
        let Some(place) = self.operations.iter().position(|index| *index == job.operation.index()) else {
            return;
        };
        if let Some(life) = self.in_flight.get_mut(&job.instance)
            && life.jobs[place].released.is_none()
        {
            life.jobs[place].message = Some(now);
        }
    }

    fn begin(&mut self, metadata: &Metadata, record: &Record) {
        let entry = &metadata.tasks[self.task];
        let instance = record.job().instance;
        let is_first = metadata.operations[record.job().operation.index()].predecessors.is_empty();
        let told = record.dates();
        let arrivals = Arrivals {
            pattern: Pattern::Periodic { phase: entry.phase, period: entry.period },
            deadline: entry.deadline,
            jitter: entry.jitter,
            jitter_stream: entry.jitter_stream,
        };
        let nominal = told.filter(|_| is_first).map(|dates| dates.nominal);
        // Of what its period does not release only the deadline says when it arrived.
        let by_deadline = told.filter(|_| !entry.released_by.is_period());
        let by_deadline = by_deadline.map(|dates| dates.deadline.saturating_add(-entry.deadline));
        let inherited = by_deadline.filter(|_| entry.inherits_deadline);
        let arrival = inherited.or(nominal).or(by_deadline);
        let arrival = arrival.unwrap_or_else(|| arrivals.nominal(metadata.start, instance));
        let released = nominal.filter(|_| entry.inherits_deadline).unwrap_or(arrival);
        let jitter = demand::release_jitter_from(entry.jitter, entry.jitter_stream, instance);
        let life = Life {
            arrival,
            due: released.saturating_add(jitter),
            opened: self.guarded.get(&(instance, record.job().operation.index())).copied(),
            woken: None,
            deadline: told.map_or_else(|| arrivals.deadline(arrival), |dates| dates.deadline),
            jobs: vec![JobLife::default(); self.operations.len()],
            lost: self.lost_triggers.remove(&instance).unwrap_or_default(),
            lasts_left: self.lasts,
        };
        self.seen.note(instance);
        self.in_flight.insert(instance, life);
        if self.in_flight.len() > LIMIT {
            self.in_flight.pop_first();
        }
    }

    /// When the first of its first jobs began, if one has.
    pub fn began(&self, metadata: &Metadata, life: &Life) -> Option<Instant> {
        let firsts = self.operations.iter().zip(&life.jobs);
        let firsts = firsts.filter(|(index, _)| metadata.operations[**index].predecessors.is_empty());
        firsts.filter_map(|(_, job)| job.started).min()
    }

    /// The trace ends: whatever has been signalled and not released is held.
    pub fn end(&mut self, end: Instant) {
        for (instance, life) in &mut self.in_flight {
            for (operation, job) in self.operations.iter().zip(&mut life.jobs) {
                let has_gone_on = job.released.or(job.started).or(job.ended).is_some();
                let is_held = job.signalled.is_some() || self.guarded.contains_key(&(*instance, *operation));
                if is_held && !has_gone_on {
                    job.held_to = Some(end);
                }
            }
        }
    }

    /// The instance is over.
    pub fn resolve(&mut self, instance: u64) -> Option<Life> {
        self.in_flight.remove(&instance)
    }

    /// The unfinished instance because of which another one is skipped, and its unfinished first operation. What is merged is merged with one that has
    /// not begun.
    pub fn hinders(
        &self,
        metadata: &Metadata,
        before: u64,
        reason: SkipReason,
    ) -> Option<(u64, OperationId)> {
        let unfinished_first = |life: &Life| {
            let unfinished = |(place, index): (usize, &usize)| {
                let is_first = metadata.operations[*index].predecessors.is_empty();
                let job = &life.jobs[place];
                let is_in_the_way = reason != SkipReason::Merged || job.started.is_none();
                (is_first && is_in_the_way && job.released.is_some() && job.ended.is_none()).then_some(*index)
            };
            self.operations.iter().enumerate().find_map(unfinished)
        };
        let earlier = self.in_flight.range(..before).rev();
        earlier
            .filter_map(|(instance, life)| Some((*instance, unfinished_first(life)?)))
            .map(|(instance, index)| (instance, OperationId::from_index(index)))
            .next()
    }

    /// The job of the operation as a hop.
    pub fn hop(&self, life: &Life, instance: u64, operation: usize) -> Option<Hop> {
        let job = &life.jobs[self.operations.iter().position(|index| *index == operation)?];
        let released = job.released.or(job.started).or(job.ended).or(job.held_to)?;
        let id = JobId { operation: OperationId::from_index(operation), instance };
        let received = job.message.filter(|at| *at <= released);
        let held = job.signalled.filter(|at| *at <= released);
        let held = held.map(|at| (at, job.nominal.unwrap_or(released).clamp(at, released)));
        let is_released = job.held_to.is_none();
        let JobLife { started, ended, wcet, .. } = *job;
        Some(Hop { job: id, released, is_released, started, ended, received, held, wcet })
    }

    /// The jobs on the way to the end of the instance, first to last: each was released when the one before it
    /// completed, or when the message about that arrived.
    pub fn critical_path(&self, metadata: &Metadata, instance: u64, life: &Life, end: PathEnd) -> Vec<Hop> {
        let mut path = Vec::new();
        let mut next = self.last_of_path(metadata, life, end);
        while let Some(operation) = next {
            let Some(hop) = self.hop(life, instance, operation) else { break };
            path.push(hop);
            if path.len() > self.operations.len() {
                // Only metadata that contradict themselves have such a cycle.
                break;
            }
            let known = hop.held.map_or(hop.released, |(signalled, _)| signalled);
            next = self.trigger(metadata, life, operation, known);
        }
        path.reverse();
        path
    }

    /// The operation that the path ends with.
    fn last_of_path(&self, metadata: &Metadata, life: &Life, end: PathEnd) -> Option<usize> {
        let jobs = || self.operations.iter().zip(&life.jobs);
        let since = |job: &JobLife| job.released.or(job.started).or(job.held_to);
        let unfinished = jobs().filter(|(_, job)| since(job).is_some() && job.ended.is_none());
        let stuck = unfinished.min_by_key(|(_, job)| since(job));
        let ended = jobs().filter(|(_, job)| job.ended.is_some());
        let latest = ended.max_by_key(|(index, job)| (job.ended, metadata.operations[**index].is_last));
        match (end, stuck) {
            (PathEnd::Latest, _) => latest.map(|(index, _)| *index),
            (PathEnd::Stuck, Some((index, _))) => Some(*index),
            (PathEnd::Stuck, None) => self.awaited(metadata, life).or(latest.map(|(index, _)| *index)),
        }
    }

    /// Whose message a join waits for, if nothing has to be done before and one comes from another node: of what ended last.
    pub fn awaited(&self, metadata: &Metadata, life: &Life) -> Option<usize> {
        let node = |index: usize| metadata.lanes[metadata.operations[index].lane].node;
        let ended = |index: usize| {
            let place = self.operations.iter().position(|known| *known == index);
            place.and_then(|place| life.jobs[place].ended)
        };
        let has_not_come =
            |job: &JobLife| job.released.or(job.started).or(job.ended).or(job.held_to).is_none();
        let waiting = self.operations.iter().zip(&life.jobs).filter(|(_, job)| has_not_come(job));
        let from_elsewhere = waiting.flat_map(|(index, _)| {
            let predecessors = &metadata.operations[*index].predecessors;
            let have_ended = predecessors.iter().all(|before| ended(*before).is_some());
            predecessors.iter().copied().filter(move |before| have_ended && node(*before) != node(*index))
        });
        from_elsewhere.max_by_key(|before| ended(*before))
    }

    /// The predecessor whose completion, or the message about it, let the operation go on at `released`.
    fn trigger(
        &self,
        metadata: &Metadata,
        life: &Life,
        operation: usize,
        released: Instant,
    ) -> Option<usize> {
        let node = |index: usize| metadata.lanes[metadata.operations[index].lane].node;
        let life_of = |index: usize| {
            self.operations.iter().position(|known| *known == index).map(|place| life.jobs[place])
        };
        let predecessors = &metadata.operations[operation].predecessors;
        let ended = |index: usize| life_of(index).and_then(|job| job.ended).filter(|at| *at <= released);
        let here = predecessors.iter().copied().filter(|index| node(*index) == node(operation));
        let local = here.filter_map(|index| Some((ended(index)?, index))).max();
        // A successor is released in the very instant in which its predecessor on the same node completes, unless it
        // waited for a message.
        let message = life_of(operation)?.message;
        let by_message = |completed: Instant| message.is_some_and(|heard| heard > completed);
        if let Some((_, index)) = local.filter(|(at, _)| *at == released && !by_message(*at)) {
            return Some(index);
        }
        let away = predecessors.iter().copied().filter(|index| node(*index) != node(operation));
        let remote = away.filter_map(|index| Some((ended(index)?, index))).max();
        remote.or(local).map(|(_, index)| index)
    }
}

/// An event that a job took of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenEvent {
    /// The job.
    pub job: JobId,
    /// As what it was published, by its index; none if a program pushed it otherwise.
    pub publication: Option<usize>,
    /// The job that pushed it, unless a program did otherwise.
    pub from: Option<JobId>,
}

impl TakenEvent {
    pub(super) fn of(metadata: &Metadata, told: Deliver) -> Self {
        let Deliver { job, from, publication, .. } = told;
        let is_known = |publication: &usize| *publication < metadata.publications.len();
        TakenEvent { job, publication: publication.map(|of| of as usize).filter(is_known), from }
    }
}
