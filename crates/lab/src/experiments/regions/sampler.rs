//! Samples of a run: the paper's measured variables, and what the mechanisms did meanwhile.
//!
//! A job belongs to the sample that its deadline falls in: sample `k` covers the instants after `start + k * length` up to
//! and including `start + (k + 1) * length`. So what a sample is *offered* follows from the periods alone and is the same
//! for every strategy, whatever became of the jobs, and samples of different strategies pair up. Operations are counted, not
//! instances: every leg of a route has the route's deadline and counts once. What the mechanisms do belongs to
//! the sample in which it happens, and is counted for critical jobs only: what is spent on soft jobs depends on how many of
//! them were served, which is what it is to explain.

use super::switching::{Arrival, Threads};
use talea_insight::receipts::{Spell, Withholdings};
use talea_record::event::{Complete, Cost, Lost, Start};
use talea_record::{CostKind, Event, Metadata, Origin, Record, Sink, TaskEntry};
use talea_time::{Duration, Instant};

/// Length of a sample: [`super::setting::HYPERPERIOD`].
const LENGTH: Duration = super::setting::HYPERPERIOD;

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Sample {
    /// Critical operations whose deadlines are in the sample.
    pub hard_offered: u64,
    /// Those of them that were done in time.
    pub hard_met: u64,
    /// Soft operations whose deadlines are in the sample.
    pub soft_offered: u64,
    /// Those of them that were done in time.
    pub soft_met: u64,
    /// Times a critical job lost the processor before it was done.
    pub hard_preemptions: u64,
    /// Times the processor went to a critical job that was not the one it ran last.
    pub hard_switches: u64,
    /// Critical jobs that began.
    pub hard_starts: u64,
    /// Sum over these of the jobs in their lane when they began, themselves included.
    pub hard_depth: u64,
    /// Time spent on changing to critical jobs, in nanoseconds: charged in virtual time, measured where the kernel tells of
    /// switches ([`super::switching`]), and `None` where it does not.
    pub hard_switch_ns: Option<i64>,
    /// What the kernel's switches say about the threads of a run; `None` in virtual time and where none were recorded.
    pub threads: Option<OfThreads>,
    /// Time spent on putting critical jobs into lanes and choosing among them, in nanoseconds, where it is recorded or
    /// charged.
    pub hard_queue_ns: i64,
    /// Routes whose first leg was completed.
    pub routes: u64,
    /// Sum over these of the time from the frame's begin to the end of the first leg, in nanoseconds.
    pub route_latency_ns: i64,
}

/// What the kernel's switches say about the threads of a run ([`super::switching`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct OfThreads {
    /// Times the processor went to the thread of a critical lane.
    pub critical_switches: u64,
    /// Time in which the processor was withheld from threads of the run that could go on ([`talea_insight::receipts`]), in nanoseconds; a
    /// stretch counts where it begins.
    pub withheld_ns: i64,
}

/// Less than this in a sample is other programs' and interrupts' ordinary share.
pub const HELD_OFF: Duration = Duration::from_millis(10);

impl Sample {
    /// Whether the kernel withheld more than [`HELD_OFF`] from threads that could go on.
    pub fn was_held_off(&self) -> bool {
        self.threads.is_some_and(|threads| threads.withheld_ns > HELD_OFF.as_nanos())
    }

    /// Whether a critical deadline was missed.
    pub fn hard_missed(&self) -> bool {
        self.hard_met < self.hard_offered
    }

    /// Soft deadlines made, or 0 if a critical one was missed (section 3.3 of the paper).
    pub fn effectiveness(&self) -> u64 {
        if self.hard_missed() { 0 } else { self.soft_met }
    }

    /// Effectiveness as a share of what was offered: the weighted fraction of the paper's Figures 5 to 8.
    pub fn efficiency(&self) -> f64 {
        if self.soft_offered == 0 { 0.0 } else { self.effectiveness() as f64 / self.soft_offered as f64 }
    }

    /// Mean number of jobs in the lane when a critical job began.
    pub fn mean_hard_depth(&self) -> f64 {
        if self.hard_starts == 0 { 0.0 } else { self.hard_depth as f64 / self.hard_starts as f64 }
    }

    /// Mean time from a frame's begin to the end of its first route leg, in milliseconds.
    pub fn mean_latency_ms(&self) -> f64 {
        if self.routes == 0 { 0.0 } else { self.route_latency_ns as f64 / self.routes as f64 / 1e6 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    critical: bool,
    /// Whether its lane has an order that depends on deadlines.
    ordered: bool,
    /// The first leg of a chain that is not critical.
    heads_route: bool,
}

/// Makes samples of records.
pub struct Sampler {
    start: Instant,
    tasks: Vec<Requests>,
    operations: Vec<Operation>,
    /// By lane: whether only critical operations are in it.
    hard_lanes: Vec<bool>,
    origin: Origin,
    /// What a critical job of a lane ordered by deadline or laxity pays beyond what is recorded.
    ordering_ns: i64,
    /// Follows the run's threads through the kernel's switches.
    threads: Threads,
    /// When the kernel withheld the processor from them.
    withholdings: Withholdings,
    samples: Vec<Sample>,
    last_job: u64,
    lost: u64,
    busy: Busy,
    end: Instant,
}

impl Sampler {
    /// For a run whose records tell what dispatching costs.
    pub fn new(metadata: &Metadata) -> Self {
        let operations = metadata.operations.iter().map(|operation| {
            let critical = metadata.tasks[operation.task].criticality.is_critical();
            Operation {
                critical,
                ordered: metadata.lanes[operation.lane].discipline != "fifo",
                heads_route: !critical && operation.predecessors.is_empty() && !operation.is_last,
            }
        });
        let operations: Vec<Operation> = operations.collect();
        let mut hard_lanes = vec![true; metadata.lanes.len()];
        for (operation, entry) in operations.iter().zip(&metadata.operations) {
            hard_lanes[entry.lane] &= operation.critical;
        }
        let count =
            |task: usize| metadata.operations.iter().filter(|operation| operation.task == task).count();
        let tasks = metadata.tasks.iter().enumerate();
        Sampler {
            start: metadata.start,
            tasks: tasks.map(|(index, task)| Requests::of(task, count(index) as u64)).collect(),
            operations,
            hard_lanes,
            origin: metadata.origin,
            ordering_ns: 0,
            threads: Threads::default(),
            withholdings: Withholdings::new(metadata),
            samples: Vec::new(),
            last_job: u64::MAX,
            lost: 0,
            busy: Busy::default(),
            end: metadata.start,
        }
    }

    /// For a simulation in which the price of ordering is part of execution times ([`super::mechanism`]).
    pub fn with_ordering(self, ordering_ns: i64) -> Self {
        Sampler { ordering_ns, ..self }
    }

    /// The complete samples, and how many records were lost.
    pub fn finish(mut self) -> (Vec<Sample>, u64) {
        self.withholdings.close();
        self.withhold();
        let complete = ((self.end - self.start).as_nanos().max(0) / LENGTH.as_nanos()) as usize;
        self.samples.resize(complete, Sample::default());
        for sample in &mut self.samples {
            match self.origin {
                Origin::Simulation { .. } => _ = sample.hard_switch_ns.get_or_insert(0),
                Origin::Threads { .. } if self.threads.has_switches() => {
                    sample.hard_switch_ns.get_or_insert(0);
                    sample.threads.get_or_insert_default();
                }
                Origin::Threads { .. } => {}
            }
        }
        for (index, sample) in self.samples.iter_mut().enumerate() {
            for requests in &self.tasks {
                let offered = requests.offered_in(index as i64);
                let sum = if requests.critical { &mut sample.hard_offered } else { &mut sample.soft_offered };
                *sum += offered;
            }
        }
        (self.samples, self.lost)
    }

    /// The sample of an instant; the first one for what comes before the start.
    fn at(&mut self, instant: Instant) -> &mut Sample {
        let index = ((instant - self.start).as_nanos() - 1).max(0) / LENGTH.as_nanos();
        let index = index as usize;
        if self.samples.len() <= index {
            self.samples.resize(index + 1, Sample::default());
        }
        &mut self.samples[index]
    }

    fn begins(&mut self, record: &Record, operation: Operation) {
        let changes = std::mem::replace(&mut self.last_job, record.causal) != record.causal;
        if !operation.critical {
            return;
        }
        let ordering_ns = if operation.ordered { self.ordering_ns } else { 0 };
        let sample = self.at(record.time);
        sample.hard_switches += u64::from(changes);
        if let Some(start) = Start::read(record) {
            sample.hard_starts += 1;
            sample.hard_depth += u64::from(start.depth);
            sample.hard_queue_ns += ordering_ns;
        }
    }

    fn completes(&mut self, now: Instant, complete: Complete, operation: Operation) {
        let Complete { nominal, deadline, .. } = complete;
        if now <= deadline {
            let sample = self.at(deadline);
            let met = if operation.critical { &mut sample.hard_met } else { &mut sample.soft_met };
            *met += 1;
        }
        if operation.heads_route {
            let sample = self.at(deadline);
            sample.routes += 1;
            sample.route_latency_ns += (now - nominal).as_nanos();
        }
    }

    /// What dispatching cost is a stretch of the job's own time in a simulation; on threads it is outside of all jobs, except
    /// for those that preempted it.
    fn costs(&mut self, now: Instant, cost: Cost) {
        if cost.lane.and_then(|lane| self.hard_lanes.get(usize::from(lane))) != Some(&true) {
            return;
        }
        let (length, end) = (cost.cost.as_nanos(), now.as_nanos());
        let preempted = match self.origin {
            Origin::Simulation { .. } => 0,
            Origin::Threads { .. } => self.busy.within(end.saturating_sub(length), end),
        };
        let spent = (length - preempted).max(0);
        match cost.kind.known() {
            Some(CostKind::Switch) => *self.at(now).hard_switch_ns.get_or_insert(0) += spent,
            Some(CostKind::Queue) => self.at(now).hard_queue_ns += spent,
            Some(CostKind::Release | CostKind::Delivery) | None => {}
        }
    }
}

impl Sampler {
    /// What the kernel's records tell of the run's threads, beside what these tell themselves.
    fn follow(&mut self, record: &Record) {
        let hard_lanes = &self.hard_lanes;
        let is_critical = |lane: usize| hard_lanes.get(lane) == Some(&true);
        for Arrival { at, cost } in self.threads.take(record, is_critical).into_iter().flatten() {
            let sample = self.at(at);
            sample.threads.get_or_insert_default().critical_switches += 1;
            *sample.hard_switch_ns.get_or_insert(0) += cost.as_nanos();
        }
        self.withholdings.record(*record);
        self.withhold();
    }

    fn withhold(&mut self) {
        let spells: Vec<Spell> = self.withholdings.spells().map(|(_, spell)| spell).collect();
        for spell in spells {
            let of_threads = self.at(spell.from).threads.get_or_insert_default();
            of_threads.withheld_ns += spell.length().as_nanos();
        }
    }
}

impl Sink for Sampler {
    fn record(&mut self, record: Record) {
        if matches!(self.origin, Origin::Threads { .. }) {
            self.follow(&record);
        }
        if let Some(cost) = Cost::read(&record) {
            self.costs(record.time, cost);
        } else if record.event.is_job() {
            let Some(&operation) = self.operations.get(record.job().operation.index()) else { return };
            match record.event {
                Event::START | Event::RESUME => self.begins(&record, operation),
                Event::PREEMPT if operation.critical => self.at(record.time).hard_preemptions += 1,
                _ => {}
            }
            if let Some(complete) = Complete::read(&record) {
                self.completes(record.time, complete, operation);
            }
            self.busy.note(&record);
        } else if let Some(lost) = Lost::read(&record) {
            // What the kernel lost is no job.
            self.lost += if lost.is_of_kernel() { 0 } else { lost.records };
        } else if record.event == Event::RUN_END {
            self.end = self.end.max(record.time);
        }
    }
}

/// When a task's deadlines are.
#[derive(Clone, Copy, Debug)]
struct Requests {
    critical: bool,
    /// The first deadline after the start.
    first_ns: i64,
    period_ns: i64,
    operations: u64,
}

impl Requests {
    fn of(task: &TaskEntry, operations: u64) -> Self {
        Requests {
            critical: task.criticality.is_critical(),
            first_ns: (task.phase + task.deadline).as_nanos(),
            period_ns: task.period.as_nanos(),
            operations,
        }
    }

    /// Operations whose deadlines are in sample `index`.
    fn offered_in(&self, index: i64) -> u64 {
        let until = |ns: i64| (ns - self.first_ns).div_euclid(self.period_ns).max(-1) + 1;
        let from = index * LENGTH.as_nanos();
        (until(from + LENGTH.as_nanos()) - until(from)) as u64 * self.operations
    }
}

/// The latest stretches in which jobs executed, to take them out of what dispatching cost.
#[derive(Debug, Default)]
struct Busy {
    since_ns: Option<i64>,
    stretches: std::collections::VecDeque<(i64, i64)>,
}

impl Busy {
    /// A lane's dispatching can be interrupted by so many jobs before it is recorded.
    const KEPT: usize = 128;

    fn note(&mut self, record: &Record) {
        let now = record.time.as_nanos();
        match record.event {
            Event::START | Event::RESUME => self.since_ns = Some(now),
            Event::PREEMPT | Event::WAIT | Event::COMPLETE => {
                if let Some(since) = self.since_ns.take() {
                    if self.stretches.len() == Self::KEPT {
                        self.stretches.pop_front();
                    }
                    self.stretches.push_back((since, now));
                }
            }
            _ => {}
        }
    }

    /// How much of the time from `from` to `to` jobs executed.
    fn within(&self, from: i64, to: i64) -> i64 {
        let open = self.since_ns.map(|since| (since, to));
        let stretches = self.stretches.iter().copied().chain(open);
        stretches.map(|(begin, end)| (end.min(to) - begin.max(from)).max(0)).sum()
    }
}
