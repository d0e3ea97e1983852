//! The queue of one lane: waiting jobs, the started job, and who is next.
//!
//! ```text
//!            push                      elect
//!   (job) ─────────▶ waiting ─────────────────────▶ elected
//!                       ▲                              │ executed > 0
//!                       │ outranked after starting     ▼
//!                       └────────────────────────── started ──▶ (leaves by finish)
//! ```
//!
//! An *elected* job has been chosen but has not executed yet; at the same instant a better one may still
//! take its place, so the choice among jobs that arrive together does not depend on the order in which they
//! are announced. A *started* job is the one the lane last ran. In a non-preemptive lane it keeps the lane
//! until it ends; in a preemptive lane it competes by its key and wins ties.
//!
//! The same object decides in the simulator and on real threads. It never allocates while at most
//! `capacity` jobs wait.

mod jobs;
mod waiting;

use crate::discipline::Discipline;
use crate::job::Job;
use crate::strategy::LaneRules;
use jobs::{Jobs, Place};
use talea_model::{LaneDispatch, Late};
use talea_time::{Instant, Work};
use waiting::{Key, Waiting};

/// A job together with how long it has executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The job.
    pub job: Job,
    /// Service it has received so far.
    pub executed: Work,
}

/// The ordered queue of a lane that one processor at a time serves.
#[derive(Clone, Debug)]
pub struct LaneQueue {
    order: Order,
    dispatch: LaneDispatch,
    /// Every job in the lane, at a place it keeps until it leaves.
    jobs: Jobs,
    waiting: Waiting,
    /// The job the lane last ran, while it is unfinished. Not in `waiting`.
    started: Option<Place>,
    /// Chosen but not yet started. Not in `waiting`; differs from `started`.
    elected: Option<Place>,
}

/// Who is first among jobs of equal urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The job the lane last ran, then earlier release, member rank, job number (`docs/policies.md`).
    LastRan,
    /// Member rank, then job number: what SimSo's LLF does.
    MemberOrder,
}

/// How a lane computes keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    discipline: Discipline,
    rules: LaneRules,
    ties: Ties,
    /// Whether late jobs go last: only where the key says when a job becomes late, which that of a FIFO lane does not.
    separates_late: bool,
}

impl Order {
    fn new(discipline: Discipline, rules: LaneRules) -> Self {
        let separates_late = rules.late == Late::Last && discipline != Discipline::Fifo;
        Order { discipline, rules, ties: Ties::LastRan, separates_late }
    }

    #[inline]
    fn key(&self, progress: &Progress) -> Key {
        Key {
            urgency: self.discipline.urgency(&progress.job, progress.executed, self.rules.laxity),
            release: match self.ties {
                Ties::LastRan => progress.job.release,
                Ties::MemberOrder => Instant::ZERO,
            },
            rank: progress.job.rank,
            number: progress.job.number,
        }
    }

    fn is_late(&self, key: &Key, now: Instant) -> bool {
        self.separates_late && key.urgency <= now
    }

    /// Whether the job the lane last ran keeps the lane against a rival.
    fn outranks(&self, last_ran: &Key, rival: &Key, now: Instant) -> bool {
        let (own_late, rival_late) = (self.is_late(last_ran, now), self.is_late(rival, now));
        match self.ties {
            Ties::LastRan => (own_late, last_ran.urgency) <= (rival_late, rival.urgency),
            Ties::MemberOrder => (own_late, last_ran) <= (rival_late, rival),
        }
    }

    /// Whether time alone can change which of two jobs is first.
    fn changes_with_time(&self) -> bool {
        self.separates_late || self.discipline.moves_while_running(self.rules.laxity)
    }
}

/// The order of a lane's jobs where there is no queue: who of two that have yet to begin is served first.
#[derive(Clone, Copy, Debug)]
pub struct JobOrder(Order);

impl JobOrder {
    /// That of a lane of this discipline and these rules.
    pub fn new(discipline: Discipline, rules: LaneRules) -> Self {
        JobOrder(Order::new(discipline, rules))
    }

    /// Whether `one` is served before `other` at `now`.
    pub fn precedes(&self, one: &Job, other: &Job, now: Instant) -> bool {
        let position = |job: &Job| {
            let key = self.0.key(&Progress { job: *job, executed: Work::ZERO });
            (self.0.is_late(&key, now), key)
        };
        position(one) < position(other)
    }
}

impl LaneQueue {
    /// The order of its jobs.
    pub fn discipline(&self) -> Discipline {
        self.order.discipline
    }

    /// An empty queue that holds `capacity` jobs without allocating.
    pub fn new(discipline: Discipline, rules: LaneRules, capacity: usize) -> Self {
        let order = Order::new(discipline, rules);
        LaneQueue {
            order,
            dispatch: rules.dispatch,
            jobs: Jobs::with_capacity(capacity),
            waiting: Waiting::with_capacity(capacity, &order),
            started: None,
            elected: None,
        }
    }

    /// The same empty queue with another tie-break.
    pub fn with_ties(mut self, ties: Ties) -> Self {
        self.order.ties = ties;
        self
    }

    /// Jobs in the lane: waiting, elected and started.
    pub fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.started.is_some()) + usize::from(self.elected.is_some())
    }

    /// Whether a job that has begun keeps the lane until it ends.
    pub fn runs_to_completion(&self) -> bool {
        self.dispatch == LaneDispatch::NonPreemptive
    }

    /// Whether the lane holds no job.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a job that has not executed yet.
    #[inline]
    pub fn push(&mut self, job: Job) {
        let place = self.jobs.add(Progress { job, executed: Work::ZERO });
        self.wait(place);
    }

    /// Chooses the job the lane's processor is to execute at `now`, given that the job chosen before has
    /// executed for `executed` in all. Returns `None` if and only if the lane is empty.
    ///
    /// Jobs of equal urgency stand in the order of [`Ties`], so the choice is deterministic.
    pub fn elect(&mut self, now: Instant, executed: Work) -> Option<Job> {
        if let Some(current) = self.elected.or(self.started) {
            self.charge(self.jobs.get(current).job.tag, executed);
        }
        self.choose(now).map(|place| self.jobs.get(place).job)
    }

    /// [`Self::elect`] where the job's tag is enough, and the one that had the processor has been [charged](Self::charge).
    pub fn elect_tag(&mut self, now: Instant) -> Option<u32> {
        self.choose(now).map(|place| self.jobs.get(place).job.tag)
    }

    fn choose(&mut self, now: Instant) -> Option<Place> {
        match (self.started, self.elected) {
            (Some(_), _) if self.dispatch == LaneDispatch::NonPreemptive => return self.started,
            (None, None) => {
                self.elected = self.waiting.pop(now, &self.order);
                return self.elected;
            }
            _ => {}
        }
        self.compare(now)
    }

    /// The choice among the best waiting job, the one elected at this instant and the one last run.
    fn compare(&mut self, now: Instant) -> Option<Place> {
        let best = self.waiting.best(now, &self.order);
        let elected = self.elected.map(|place| self.order.key(self.jobs.get(place)));
        let position = |key: Key| (self.order.is_late(&key, now), key);
        let waiting_first = match (best, elected) {
            (Some(best), Some(elected)) => position(best) < position(elected),
            (best, _) => best.is_some(),
        };
        let rival = if waiting_first { best } else { elected };
        if let Some(started) = self.started {
            let own = self.order.key(self.jobs.get(started));
            if rival.is_none_or(|rival| self.order.outranks(&own, &rival, now)) {
                if let Some(unlucky) = self.elected.take() {
                    self.wait(unlucky);
                }
                return self.started;
            }
        }
        if waiting_first {
            let chosen = self.waiting.pop(now, &self.order);
            if let Some(unlucky) = std::mem::replace(&mut self.elected, chosen) {
                self.wait(unlucky);
            }
        }
        self.elected
    }

    /// Charges the job with `tag`, which has the processor, for its execution so far. Once it has executed it is the job the lane last
    /// ran, and the one that was before goes back among the waiting. Whoever was chosen in its place since, and has not got the
    /// processor yet, stays chosen and has not executed.
    pub fn charge(&mut self, tag: u32, executed: Work) {
        let is_it = |place: &Place| self.jobs.get(*place).job.tag == tag;
        if let Some(elected) = self.elected.filter(is_it) {
            let progress = self.jobs.get_mut(elected);
            if executed > progress.executed {
                progress.executed = executed;
                self.elected = None;
                if let Some(outranked) = self.started.replace(elected) {
                    self.wait(outranked);
                }
            }
        } else if let Some(started) = self.started.filter(is_it) {
            let progress = self.jobs.get_mut(started);
            progress.executed = executed.max(progress.executed);
        }
    }

    /// The job chosen last, if it is still in the lane.
    pub fn current(&self) -> Option<&Progress> {
        self.elected.or(self.started).map(|place| self.jobs.get(place))
    }

    /// Removes the job with `tag`: it has completed or was aborted. Returns it with its service, or
    /// `None` if the lane does not hold it. Takes time linear in the lane's length only for a job that is
    /// waiting, which is never the one that completes.
    pub fn remove(&mut self, tag: u32) -> Option<Progress> {
        let jobs = &self.jobs;
        let is_it = |place: Place| jobs.get(place).job.tag == tag;
        let place = if self.elected.is_some_and(is_it) {
            self.elected.take()
        } else if self.started.is_some_and(is_it) {
            self.started.take()
        } else {
            self.waiting.remove(is_it)
        };
        place.map(|place| self.jobs.remove(place))
    }

    /// Whether the lane must be asked again at the next scheduling point of its processor even if nothing
    /// is added or removed: its order changes with time and there is a choice.
    pub fn wants_reconsideration(&self) -> bool {
        self.dispatch == LaneDispatch::Preemptive && self.len() > 1 && self.order.changes_with_time()
    }

    /// When a job that was elected at `now`, and does not execute, is not the one to be chosen any more by time alone: as it becomes late, others
    /// that wait come before it. One that was late already, or waits alone, stays the first.
    pub fn elected_until(&self, job: &Job, now: Instant) -> Instant {
        let key = self.order.key(&Progress { job: *job, executed: Work::ZERO });
        let may_change =
            self.order.separates_late && !self.order.is_late(&key, now) && self.waiting.len() > 0;
        if may_change { key.urgency } else { Instant::MAX }
    }

    /// Whether a job that has not executed would be chosen before all that wait. Takes time linear in how many these are.
    pub fn precedes_waiting(&self, job: &Job, now: Instant) -> bool {
        let position = |key: Key| (self.order.is_late(&key, now), key);
        let own = position(self.order.key(&Progress { job: *job, executed: Work::ZERO }));
        self.waiting.iter().all(|place| own < position(self.order.key(self.jobs.get(place))))
    }

    /// Every job in the lane, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Progress> {
        let places = self.elected.into_iter().chain(self.started).chain(self.waiting.iter());
        places.map(|place| self.jobs.get(place))
    }

    fn wait(&mut self, place: Place) {
        self.waiting.push(self.order.key(self.jobs.get(place)), place);
    }
}
