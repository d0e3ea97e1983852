//! A run that misses a deadline: the proof that a system does not hold.
//!
//! Every job takes its worst case, and releases are delayed as the system's seed says. All that is allowed by the
//! description, so a miss refutes it. Finding none proves nothing: other delays and shorter executions may be worse.

use num_traits::ToPrimitive;
use serde::Serialize;
use std::collections::HashMap;
use talea_model::{Description, Execution, Request, System, ThreadWork};
use talea_policy::strategy::Plan;
use talea_record::event::{Complete, Release, Skip, Typed};
use talea_record::{Event, Record, Sink, SkipReason};
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

/// Jobs simulated before the search ends without an answer: well under a second.
const JOBS: i64 = 500_000;

/// A deadline missed in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Miss {
    /// Number of the task's instance, from 0.
    pub instance: u64,
    /// Its arrival, in nanoseconds from the start.
    pub arrival_ns: i64,
    /// What became of it.
    pub fate: Fate,
    /// By how much the deadline was missed, if it was done.
    pub lateness_ns: Option<i64>,
}

/// What became of an instance that missed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Done, but late.
    Late,
    /// Overdue when the search ended.
    Unfinished,
    /// Aborted by its overrun policy.
    Aborted,
    /// Not released because of its overrun policy.
    Skipped,
}

/// The first miss of each of the `open` tasks, by task number; no entry where none was found.
pub(super) fn search(system: &System, plans: &[Plan], open: &[usize]) -> HashMap<usize, Miss> {
    if open.is_empty() {
        return HashMap::new();
    }
    let Ok(system) = System::new(worst_case(system)) else { return HashMap::new() };
    let Ok(mut simulation) = Simulation::with_plans(&system, plans) else { return HashMap::new() };
    let mut witnesses = Witnesses::new(&system, open);
    let end = Instant::ZERO.saturating_add(horizon(&system, JOBS));
    const SLICES: i64 = 100;
    let slice = Duration::from_nanos(end.as_nanos() / SLICES + 1);
    while simulation.now() < end && !witnesses.complete() {
        let next = simulation.now().saturating_add(slice).min(end);
        simulation.advance(next, &mut witnesses);
    }
    witnesses.finish(simulation.now())
}

/// The system with every execution time at its worst.
fn worst_case(system: &System) -> Description {
    let mut description = Description::clone(system);
    for subtask in description.tasks.iter_mut().flat_map(|task| &mut task.subtasks) {
        subtask.exec = Execution::Constant(subtask.wcet.max(subtask.exec.max()));
    }
    for thread in &mut description.threads {
        if let ThreadWork::Bursts { burst, .. } = &mut thread.work {
            *burst = Execution::Constant(burst.max());
        }
    }
    description
}

/// As long as it takes to release that many jobs, bursts of threads and quanta of schedulers among them.
pub(super) fn time_of(system: &System, jobs: i64) -> Duration {
    let rate = |count: usize, period: Duration| count as f64 / period.as_nanos() as f64;
    let of_tasks = system.tasks.iter().map(|task| rate(task.subtasks.len(), task.period));
    let of_threads = system.threads.iter().map(|thread| match thread.work {
        ThreadWork::Bursts { period, .. } => rate(1, period),
        _ => 0.0,
    });
    let of_schedulers = system.schedulers.iter().map(|scheduler| {
        let reserved = scheduler.under.iter().filter_map(|under| match &under.request {
            Request::Guarantee(guarantee) => guarantee.as_reservation()?.period().nanos().to_f64(),
            _ => None,
        });
        scheduler.quantum.map_or(0.0, |quantum| rate(1, quantum))
            + reserved.map(|period| 2.0 / period).sum::<f64>()
    });
    let jobs_per_ns = of_tasks.chain(of_threads).chain(of_schedulers).sum::<f64>().max(f64::MIN_POSITIVE);
    Duration::from_nanos((jobs as f64 / jobs_per_ns).min(i64::MAX as f64 / 4.0).max(1.0) as i64)
}

/// As long as it takes to release that many jobs, but not beyond two hyperperiods after the last phase.
fn horizon(system: &System, jobs: i64) -> Duration {
    let affordable = time_of(system, jobs).as_nanos();
    let longest = |length: fn(&talea_model::Task) -> Duration| {
        system.tasks.iter().map(|task| length(task).as_nanos()).max().unwrap_or(0)
    };
    let hyperperiod = system.tasks.iter().try_fold(1_i64, |multiple, task| {
        let period = task.period.as_nanos();
        multiple.checked_mul(period / gcd(multiple, period))
    });
    let enough = hyperperiod
        .and_then(|hyperperiod| hyperperiod.checked_mul(2))
        .and_then(|twice| twice.checked_add(longest(|task| task.phase)))
        .and_then(|end| end.checked_add(longest(|task| task.deadline)));
    Duration::from_nanos(enough.map_or(affordable, |enough| enough.min(affordable)).max(1))
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What is seen of the open tasks.
struct Witnesses {
    task_of: Vec<usize>,
    arrivals: Vec<(Instant, Duration, Duration)>,
    /// Which tasks have a trigger, and when instances of open ones arrived that are unfinished.
    triggered: Vec<bool>,
    arrived: HashMap<(usize, u64), Instant>,
    open: Vec<bool>,
    missing: usize,
    /// Instances of open tasks with unfinished jobs, and how many.
    unfinished: HashMap<(usize, u64), u32>,
    found: HashMap<usize, Miss>,
}

impl Witnesses {
    fn new(system: &System, open: &[usize]) -> Self {
        let mut is_open = vec![false; system.tasks.len()];
        open.iter().for_each(|task| is_open[*task] = true);
        Witnesses {
            task_of: system.operations().iter().map(|operation| operation.task).collect(),
            arrivals: system
                .tasks
                .iter()
                .map(|task| (Instant::ZERO + task.phase, task.period, task.deadline))
                .collect(),
            triggered: system.tasks.iter().map(|task| task.trigger.is_some()).collect(),
            arrived: HashMap::new(),
            missing: open.len(),
            open: is_open,
            unfinished: HashMap::new(),
            found: HashMap::new(),
        }
    }

    fn complete(&self) -> bool {
        self.missing == 0
    }

    fn arrival(&self, task: usize, instance: u64) -> Instant {
        if self.triggered[task] {
            return self.arrived.get(&(task, instance)).copied().unwrap_or(Instant::MAX);
        }
        let (first, period, _) = self.arrivals[task];
        first + period * i64::try_from(instance).expect("instances have 44 bits")
    }

    fn miss(&mut self, task: usize, instance: u64, fate: Fate, lateness: Option<Duration>) {
        let arrival_ns = self.arrival(task, instance).as_nanos();
        let miss = Miss { instance, arrival_ns, fate, lateness_ns: lateness.map(Duration::as_nanos) };
        if self.found.insert(task, miss).is_none() {
            self.missing -= 1;
            self.open[task] = false;
        }
    }

    /// The misses, with those of jobs that are overdue at `end`.
    fn finish(mut self, end: Instant) -> HashMap<usize, Miss> {
        let mut overdue: Vec<(usize, u64)> = self.unfinished.keys().copied().collect();
        overdue.sort_unstable();
        for (task, instance) in overdue {
            let deadline = self.arrival(task, instance).saturating_add(self.arrivals[task].2);
            if self.open[task] && deadline < end {
                self.miss(task, instance, Fate::Unfinished, None);
            }
        }
        self.found
    }
}

impl Sink for Witnesses {
    fn record(&mut self, record: Record) {
        let of_job = matches!(record.event, Event::RELEASE | Event::COMPLETE | Event::ABORT | Event::SKIP);
        if !of_job {
            return;
        }
        let job = record.job();
        // Threads of a hierarchy are numbered behind the tasks' operations.
        let Some(&task) = self.task_of.get(job.operation.index()) else { return };
        if !self.open[task] {
            return;
        }
        let key = (task, job.instance);
        match record.typed() {
            Typed::Release(Release { deadline, .. }) => {
                *self.unfinished.entry(key).or_default() += 1;
                if self.triggered[task] {
                    let arrived = deadline.saturating_add(-self.arrivals[task].2);
                    self.arrived.insert(key, arrived);
                }
            }
            Typed::Complete(Complete { deadline, .. }) => {
                if record.time > deadline {
                    self.miss(task, job.instance, Fate::Late, Some(record.time - deadline));
                }
            }
            // The instance that it is merged with stands for it, and is due earlier.
            Typed::Skip(skip) if skip.reason == SkipReason::Merged => {}
            Typed::Skip(Skip { nominal, .. }) => {
                if self.triggered[task] {
                    self.arrived.insert(key, nominal);
                }
                self.miss(task, job.instance, Fate::Skipped, None);
            }
            _ => self.miss(task, job.instance, Fate::Aborted, None),
        }
        if matches!(record.event, Event::COMPLETE | Event::ABORT)
            && let Some(count) = self.unfinished.get_mut(&key)
        {
            *count -= 1;
            if *count == 0 {
                self.unfinished.remove(&key);
                self.arrived.remove(&key);
            }
        }
    }
}
