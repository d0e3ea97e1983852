//! What must hold at every record and in between.

use super::end;
use std::collections::{BTreeMap, HashMap, HashSet};
use talea_model::{LaneDispatch, OperationId, Overrun, Synchronisation, System};
use talea_policy::demand::{self, MessageWay, Passage};
use talea_policy::release::bounds::ResponseBounds;
use talea_policy::strategy::plan_system;
use talea_record::{Event, JobId, Metadata, Origin, Record, SkipReason};
use talea_time::{Duration, Instant, Work};

/// One job as the records tell it.
#[derive(Clone, Debug)]
pub struct Life {
    pub released: Instant,
    pub deadline: Instant,
    /// Processor time it is to receive, as far as is known by now.
    pub demand: Work,
    pub service: Work,
    pub running: Option<(u16, Instant)>,
    pub started: bool,
    pub completed: Option<Instant>,
    pub aborted: bool,
}

impl Life {
    pub fn is_unfinished(&self) -> bool {
        self.completed.is_none() && !self.aborted
    }
}

/// What the records have told so far.
pub struct Judge<'a> {
    pub system: &'a System,
    pub metadata: Metadata,
    bounds: ResponseBounds,
    pub lives: BTreeMap<JobId, Life>,
    /// Those of them that are unfinished, and their lanes.
    unfinished: BTreeMap<JobId, usize>,
    /// Task and instance of every skipped instance, with the node that skipped it.
    pub skipped: Vec<(usize, u64, usize)>,
    /// The completions of which word was lost on the way to a successor.
    pub lost: HashSet<(JobId, OperationId)>,
    /// The job that last got each processor, and whom it was said to be taken for at this instant.
    last_on: HashMap<u16, JobId>,
    announced: HashMap<u16, u64>,
    /// Timer expiries of this instant, by node.
    interrupts: Vec<i64>,
    now: Instant,
}

/// Replays `records` and panics at the first that breaks a rule.
pub fn judge(system: &System, records: &[Record]) {
    let plans = plan_system(system).expect("random systems have no anomalies");
    let origin = Origin::Simulation { seed: system.seed };
    let mut judge = Judge {
        system,
        metadata: Metadata::new(system, &plans, origin, Instant::ZERO),
        bounds: ResponseBounds::of(system).expect("random systems have bounds where they need them"),
        lives: BTreeMap::new(),
        unfinished: BTreeMap::new(),
        skipped: Vec::new(),
        lost: HashSet::new(),
        last_on: HashMap::new(),
        announced: HashMap::new(),
        interrupts: vec![0; system.nodes.len()],
        now: Instant::ZERO,
    };
    for record in records {
        assert!(record.time >= judge.now, "records come in the order of time");
        if record.time > judge.now {
            judge.end_instant();
            judge.now = record.time;
        }
        judge.take(record);
    }
    end::judge(&judge);
}

impl Judge<'_> {
    fn take(&mut self, record: &Record) {
        let job = record.job();
        match record.event {
            Event::RELEASE => self.release(job, record),
            Event::SKIP => self.skip(job, record),
            Event::START | Event::RESUME => self.dispatch(job, record),
            Event::PREEMPT => {
                self.stop(job, record.cpu);
                self.announced.insert(record.cpu, record.words[0]);
            }
            Event::COMPLETE => {
                self.stop(job, record.cpu);
                self.check_words(job, record);
                let life = self.life(job);
                assert_eq!(life.service, life.demand, "{job:?} gets what it needs, and its costs");
                self.life(job).completed = Some(record.time);
                self.unfinished.remove(&job);
            }
            Event::ABORT => self.abort(job, record),
            Event::RUN_START | Event::RUN_END => {}
            Event::MESSAGE_LOST => {
                let successor = OperationId::from_index(record.words[0] as usize);
                assert_eq!(
                    self.life(job).completed,
                    Some(record.time),
                    "what is lost is word of a completion"
                );
                assert_eq!(self.signal(job.operation, job.instance, successor), None, "{job:?}");
                assert!(self.lost.insert((job, successor)), "a message is lost once");
            }
            other => panic!("{other:?} does not belong here"),
        }
    }

    /// The instant of the last record.
    pub fn end(&self) -> Instant {
        self.now
    }

    fn life(&mut self, job: JobId) -> &mut Life {
        self.lives.get_mut(&job).expect("a job is released first")
    }

    fn check_words(&mut self, job: JobId, record: &Record) {
        let deadline = self.life(job).deadline.as_nanos() as u64;
        assert_eq!(record.words[1], deadline, "a job keeps its deadline");
    }

    fn node_of(&self, operation: OperationId) -> usize {
        self.system.subtask(operation).node
    }

    /// When `instance` of `task` arrives nominally, and its deadline.
    fn arrival(&self, task: usize, instance: u64) -> (Instant, Instant) {
        let task = &self.system.tasks[task];
        let nominal = Instant::ZERO + task.phase + task.period * instance as i64;
        (nominal, nominal + task.deadline)
    }

    fn release(&mut self, job: JobId, record: &Record) {
        let operation = &self.system.operations()[job.operation.index()];
        let (nominal, deadline) = self.arrival(operation.task, job.instance);
        let lane = self.metadata.operations[job.operation.index()].lane;
        assert_eq!(usize::from(record.source), lane, "an operation has one lane");
        let here = self.node_of(job.operation);
        let is_first = operation.predecessors.is_empty();
        let skipped = self.skipped.contains(&(operation.task, job.instance, here));
        assert!(!(is_first && skipped), "a skipped instance stays skipped");
        if is_first && self.system.tasks[operation.task].overrun == Overrun::Merge {
            let waiting = self.waiting_firsts(operation.task, job.instance).next();
            assert_eq!(waiting, None, "{job:?} is merged with one that has not begun");
        }
        let mut cost = self.system.overhead.queue + self.system.overhead.queue;
        let expected = if operation.predecessors.is_empty() {
            self.interrupts[here] += 1;
            nominal + demand::release_jitter(self.system, operation.task, job.instance)
        } else {
            let (joined, by_message) =
                self.joined(job).expect("as many predecessors as are needed complete first");
            if by_message {
                cost += self.system.overhead.message;
            }
            let released = self.guarded(job, joined, record.time);
            // Nobody looks for idle points where no guard is reset by them.
            let is_idle_point = || {
                if !self.heeds_idle_points(here) {
                    return false;
                }
                let mut lives = self.unfinished().filter(|(other, _)| self.node_of(other.operation) == here);
                !lives.any(|(_, life)| life.released < record.time)
            };
            self.interrupts[here] += i64::from(joined < released && !is_idle_point());
            released
        };
        let told_nominal = if operation.predecessors.is_empty() { nominal } else { expected };
        assert_eq!(record.time, expected, "{job:?} is released when it is to be");
        assert_eq!(record.words, [told_nominal.as_nanos() as u64, deadline.as_nanos() as u64]);
        let demand = demand::execution(self.system, job.operation, job.instance) + cost;
        let life = Life {
            released: record.time,
            deadline,
            demand,
            service: Work::ZERO,
            running: None,
            started: false,
            completed: None,
            aborted: false,
        };
        assert!(self.lives.insert(job, life).is_none(), "{job:?} is released once");
        self.unfinished.insert(job, lane);
    }

    /// When as many predecessors of a job as it needs are known to be done, and whether a message says so.
    pub fn joined(&self, job: JobId) -> Option<(Instant, bool)> {
        let predecessors = &self.system.operations()[job.operation.index()].predecessors;
        let signals =
            predecessors.iter().filter_map(|before| self.signal(*before, job.instance, job.operation));
        let mut signals: Vec<(Instant, bool)> = signals.collect();
        // Completions of an instant come before its messages.
        signals.sort_unstable();
        let needed = self.system.subtask(job.operation).join.needed(predecessors.len());
        signals.get(needed - 1).copied()
    }

    /// When a job is released that is so at `now` and whose predecessors are known to be done since `joined`, as far as its protocol leaves
    /// no choice.
    fn guarded(&self, job: JobId, joined: Instant, now: Instant) -> Instant {
        let task = self.system.task_of(job.operation);
        let others = self.lives.iter().filter(|(other, _)| other.operation == job.operation);
        let last = others.map(|(_, life)| life.released).max();
        let apart = |distance| last.map_or(joined, |last| joined.max(last + distance));
        let an_instant = Duration::from_nanos(1);
        let earliest = match task.sync {
            Synchronisation::Greedy => return joined,
            Synchronisation::ReleaseGuard => return apart(task.period),
            Synchronisation::ReleaseGuardIdle | Synchronisation::ReleaseGuardIdleOne => apart(an_instant),
            Synchronisation::PhaseModification => {
                let (nominal, _) = self.arrival(self.task_number(job), job.instance);
                apart(an_instant).max(nominal + self.bounds.offset(job.operation))
            }
            Synchronisation::ModifiedPhaseModification => {
                let predecessors = &self.system.operations()[job.operation.index()].predecessors;
                let released = |before: &OperationId| {
                    let life = self.lives.get(&JobId { operation: *before, instance: job.instance })?;
                    Some(life.released + self.bounds.bound(*before))
                };
                let needs_all = self.system.subtask(job.operation).join.waits_for_all(predecessors.len());
                let timers = predecessors.iter().filter(|_| needs_all).filter_map(released);
                timers.fold(apart(an_instant), Instant::max)
            }
        };
        assert!(earliest <= now, "{job:?} is released before {earliest}");
        now
    }

    /// Whether idle points reset a guard of the node.
    fn heeds_idle_points(&self, node: usize) -> bool {
        let resets =
            |sync| [Synchronisation::ReleaseGuardIdle, Synchronisation::ReleaseGuardIdleOne].contains(&sync);
        let mut guarded =
            self.system.operations_on(node).filter(|operation| !operation.predecessors.is_empty());
        guarded.any(|operation| resets(self.system.tasks[operation.task].sync))
    }

    fn task_number(&self, job: JobId) -> usize {
        self.system.operations()[job.operation.index()].task
    }

    /// When the completion of `before` is known to `successor`, and whether a message says so.
    pub fn signal(
        &self,
        before: OperationId,
        instance: u64,
        successor: OperationId,
    ) -> Option<(Instant, bool)> {
        let here = self.node_of(successor);
        let life = self.lives.get(&JobId { operation: before, instance })?;
        let completed = life.completed?;
        let by_message = self.node_of(before) != here;
        if !by_message {
            return Some((completed, false));
        }
        match MessageWay::of(self.system, before, successor).passage(instance) {
            Passage::Arrives(time) => Some((completed + time, true)),
            Passage::Lost => None,
        }
    }

    /// The unfinished first jobs of `task` on `node` that were released before `instance`.
    fn unfinished_firsts(&self, task: usize, node: usize, instance: u64) -> usize {
        let first = |operation: &OperationId| {
            let is_first = self.system.operations()[operation.index()].predecessors.is_empty();
            is_first && self.node_of(*operation) == node
        };
        self.unfinished()
            .filter(|(job, _)| {
                let of_task = self.system.operations()[job.operation.index()].task == task;
                of_task && first(&job.operation) && job.instance < instance
            })
            .count()
    }

    /// The first jobs of `task` that were released before `instance` and have not begun.
    fn waiting_firsts(&self, task: usize, instance: u64) -> impl Iterator<Item = JobId> {
        let of_task = move |job: &JobId| {
            let operation = &self.system.operations()[job.operation.index()];
            operation.task == task && operation.predecessors.is_empty() && job.instance < instance
        };
        self.unfinished().filter(move |(job, life)| of_task(job) && !life.started).map(|(job, _)| *job)
    }

    fn skip(&mut self, job: JobId, record: &Record) {
        let operation = &self.system.operations()[job.operation.index()];
        let task = operation.task;
        let node = self.node_of(job.operation);
        match self.system.tasks[task].overrun {
            Overrun::SkipNext => {
                assert_eq!(record.arg, SkipReason::Overrun as u16);
                assert!(self.unfinished_firsts(task, node, job.instance) > 0, "only an overrun skips");
            }
            Overrun::Merge => {
                assert_eq!(record.arg, SkipReason::Merged as u16);
                let mut waiting = self.waiting_firsts(task, job.instance);
                assert!(waiting.next().is_some(), "it is merged with one that has not begun");
            }
            other => panic!("nothing is skipped with {other}"),
        }
        let (nominal, deadline) = self.arrival(task, job.instance);
        assert_eq!(record.time, nominal + demand::release_jitter(self.system, task, job.instance));
        assert_eq!(record.words, [nominal.as_nanos() as u64, deadline.as_nanos() as u64]);
        self.interrupts[node] += 1;
        self.skipped.push((task, job.instance, node));
    }

    fn abort(&mut self, job: JobId, record: &Record) {
        let task = self.system.operations()[job.operation.index()].task;
        assert_eq!(self.system.tasks[task].overrun, Overrun::Abort);
        let (next, _) = self.arrival(task, job.instance + 1);
        assert_eq!(record.time, next + demand::release_jitter(self.system, task, job.instance + 1));
        let was_running = self.life(job).running.is_some();
        assert_eq!(record.arg, u16::from(was_running));
        if was_running {
            self.stop(job, record.cpu);
        }
        self.check_words(job, record);
        let life = self.life(job);
        assert!(life.is_unfinished() && life.service <= life.demand);
        life.aborted = true;
        self.unfinished.remove(&job);
    }

    fn dispatch(&mut self, job: JobId, record: &Record) {
        let (now, cpu) = (record.time, record.cpu);
        let node = self.node_of(job.operation);
        assert!(self.system.nodes[node].cpus.contains(&cpu), "a job runs on its node");
        assert!(self.unfinished().all(|(_, life)| life.running.is_none_or(|(busy, _)| busy != cpu)));
        if let Some(announced) = self.announced.remove(&cpu) {
            assert_eq!(announced, job.pack(), "the processor goes to whom it was taken for");
        }
        if record.event == Event::START {
            assert_eq!(usize::from(record.arg), self.lane_jobs(usize::from(record.source)).count());
        }
        let switch = self.system.overhead.switch;
        let continues = self.last_on.insert(cpu, job) == Some(job);
        let life = self.life(job);
        assert!(life.is_unfinished() && life.running.is_none(), "{job:?} does not run twice");
        assert_eq!(record.event == Event::START, !std::mem::replace(&mut life.started, true));
        life.running = Some((cpu, now));
        if !continues {
            life.demand += switch;
        }
    }

    fn stop(&mut self, job: JobId, cpu: u16) {
        let now = self.now;
        let life = self.life(job);
        let (was_on, since) = life.running.take().expect("only a running job stops");
        assert_eq!(was_on, cpu);
        life.service += (now - since).as_work();
    }

    fn unfinished(&self) -> impl Iterator<Item = (&JobId, &Life)> {
        self.unfinished.keys().map(|job| (job, &self.lives[job]))
    }

    /// The unfinished jobs of a lane.
    fn lane_jobs(&self, lane: usize) -> impl Iterator<Item = (&JobId, &Life)> {
        let there = self.unfinished.iter().filter(move |(_, other)| **other == lane);
        there.map(|(job, _)| (job, &self.lives[job]))
    }

    /// What holds from this instant to the next: the highest lanes with work run, each one job.
    fn end_instant(&mut self) {
        for (cpu, announced) in self.announced.drain() {
            assert_eq!(announced, u64::MAX, "cpu {cpu} was taken for a job that did not get it");
        }
        for node in 0..self.system.nodes.len() {
            self.check_lanes(node);
            self.charge_timers(node);
        }
    }

    fn check_lanes(&self, node: usize) {
        let mut processors = self.system.nodes[node].cpus.len();
        let lanes = self.metadata.lanes.iter().enumerate().filter(|(_, lane)| lane.node == node);
        for (index, lane) in lanes {
            let running: Vec<&JobId> = self
                .lane_jobs(index)
                .filter(|(_, life)| life.running.is_some())
                .map(|(job, _)| job)
                .collect();
            let wanted = usize::from(self.lane_jobs(index).next().is_some()).min(processors);
            processors -= wanted;
            assert_eq!(running.len(), wanted, "at {} in lane {} of node {node}", self.now, lane.level);
            if self.system.lane_dispatch == LaneDispatch::NonPreemptive && wanted == 1 {
                let mut begun = self.lane_jobs(index).filter(|(_, life)| life.service > Work::ZERO);
                assert!(begun.all(|(job, _)| job == running[0]), "a started job keeps its lane");
            }
        }
    }

    fn charge_timers(&mut self, node: usize) {
        let expiries = std::mem::take(&mut self.interrupts[node]);
        let cost = Work::from_nanos(self.system.overhead.timer.as_nanos() * expiries);
        let first = self.system.nodes[node].cpus[0];
        let runs_there = |life: &Life| life.running.is_some_and(|(cpu, _)| cpu == first);
        let victim = self.unfinished().find(|(_, life)| runs_there(life)).map(|(job, _)| *job);
        if let Some(victim) = victim {
            self.life(victim).demand += cost;
        }
    }
}
