//! Whole systems on real threads. Nothing here depends on how fast or how idle the machine is: the tests
//! check orders that are determined and counts that must agree, and runs end when what they are about has
//! happened. Where a busy machine can keep a situation from coming about, as when a lane's thread has not gone
//! to sleep before the first release, the records show that and the run is made again ([`run_given`]).

mod allocation;
mod blocking;
mod cluster;
mod events;
mod graphs;
mod guards;
mod hierarchy;
mod lanes;
mod lowered;
mod nested;
mod on_the_spot;
mod operations;
mod overrun;
mod posting;
mod refusals;
mod stopping;
mod unprivileged;
mod values;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use talea_model::{Strategy, System, SystemBuilder, TaskBuilder};
use talea_record::{Event, JobId, Record, TraceFile};
use talea_runtime::{Ending, Executive, FinishedJob, Operations, Outcome, RtMode, RunOptions};
use talea_time::{Duration, Work};

/// Runs of several systems at once would get into each other's way on the same processors.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) const fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn system(strategy: Strategy) -> SystemBuilder {
    System::builder("test").strategy(strategy)
}

/// A task of one operation.
pub(crate) fn task(name: &str, period_ms: i64, wcet_ms: i64) -> TaskBuilder {
    TaskBuilder::new(name, ms(period_ms)).wcet(Work::from_millis(wcet_ms))
}

pub(crate) fn options(rt: RtMode, duration_ms: i64) -> RunOptions {
    RunOptions { duration: Some(ms(duration_ms)), rt, ..RunOptions::default() }
}

/// A finished run with its records in the order of time.
pub(crate) struct Ran {
    pub outcome: Outcome,
    pub records: Vec<Record>,
    system: System,
}

/// Runs until `over` says so of a job that has ended, however long that takes here.
pub(crate) fn run_until(
    system: &System,
    operations: Operations,
    options: RunOptions,
    mut over: impl FnMut(&FinishedJob<'_>) -> bool + Send + 'static,
) -> Ran {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let options = RunOptions { duration: None, keep_log: Some(log.clone()), ..options };
    let prepared = Executive::prepare(system, operations, options).expect("the run can be prepared");
    let stop = prepared.stop_handle();
    let prepared = prepared.on_finished(Box::new(move |job| {
        if over(job) {
            stop.stop();
        }
    }));
    let outcome = prepared.run().expect("the run can begin");
    let records = records_of(&log);
    let ran = Ran { outcome, records, system: system.clone() };
    ran.check_lives();
    ran
}

/// For [`run_until`]: `instance` of the operation `name` has ended.
pub(crate) fn ended(name: &'static str, instance: u64) -> impl FnMut(&FinishedJob<'_>) -> bool + Send {
    move |job| job.operation == name && job.instance == instance
}

/// For [`run_until`]: each of these operations has completed so many times.
pub(crate) fn completed<const N: usize>(
    names: [&'static str; N],
    times: u64,
) -> impl FnMut(&FinishedJob<'_>) -> bool + Send {
    let mut left = names.map(|name| (name, times));
    move |job| {
        let whole =
            left.iter_mut().filter(|(name, _)| *name == job.operation && job.ending == Ending::Completed);
        whole.for_each(|(_, times)| *times = times.saturating_sub(1));
        left.iter().all(|(_, times)| *times == 0)
    }
}

/// How often a machine may fail to bring a situation about.
pub(crate) const ATTEMPTS: usize = 20;

/// The first run in which the situation came about.
///
/// # Panics
/// If it never does.
pub(crate) fn run_given(mut run: impl FnMut() -> Ran, situation: impl Fn(&Ran) -> bool) -> Ran {
    let ran = (0..ATTEMPTS).map(|_| run()).find(situation);
    ran.unwrap_or_else(|| panic!("the situation did not come about in {ATTEMPTS} runs"))
}

/// The records of a log, which are in the order of time, also those that a thread wrote late because it was kept from running
/// between reading the clock and writing its record.
pub(crate) fn records_of(log: &Path) -> Vec<Record> {
    let trace = TraceFile::open(log).expect("the log is a trace");
    let records: Vec<Record> =
        trace.records().expect("readable").map(|record| record.expect("whole")).collect();
    assert!(records.is_sorted_by_key(|record| record.time));
    records
}

impl Ran {
    pub fn name(&self, job: JobId) -> &str {
        &self.system.operations()[job.operation.index()].name
    }

    /// `name#instance` of each record of this event, in order.
    pub fn order_of(&self, event: Event) -> Vec<String> {
        let wanted = self.records.iter().filter(|record| record.event == event);
        wanted.map(|record| format!("{}#{}", self.name(record.job()), record.job().instance)).collect()
    }

    pub fn count(&self, event: Event, name: &str) -> usize {
        self.of(event, name).count()
    }

    pub fn of<'a>(&'a self, event: Event, name: &'a str) -> impl Iterator<Item = &'a Record> {
        self.records.iter().filter(move |record| record.event == event && self.name(record.job()) == name)
    }

    /// Where in the records a job's event is.
    pub fn position(&self, event: Event, name: &str, instance: u64) -> Option<usize> {
        self.records.iter().position(|record| {
            record.event == event && record.job().instance == instance && self.name(record.job()) == name
        })
    }

    /// Every job is released once, begins at most once after that, and ends at most once after that;
    /// only what the end of the run cut off may lack an end.
    fn check_lives(&self) {
        let mut lives: HashMap<JobId, Vec<Event>> = HashMap::new();
        for record in self.records.iter().filter(|record| record.event.0 >> 8 == 1) {
            lives.entry(record.job()).or_default().push(record.event);
        }
        for (job, mut life) in lives {
            let name = format!("{}#{}: {life:?}", self.name(job), job.instance);
            let interruptions = [Event::PREEMPT, Event::WAIT, Event::RESUME];
            let lost = life.iter().filter(|event| [Event::PREEMPT, Event::WAIT].contains(event)).count();
            let regained = life.iter().filter(|event| **event == Event::RESUME).count();
            assert!(lost == regained || lost == regained + 1, "{name}");
            life.retain(|event| !interruptions.contains(event));
            let allowed: [&[Event]; 8] = [
                &[Event::SKIP],
                &[Event::HELD],
                &[Event::RELEASE],
                // A lowered program, whose start nobody sees.
                &[Event::RELEASE, Event::COMPLETE],
                &[Event::RELEASE, Event::START],
                &[Event::RELEASE, Event::START, Event::COMPLETE],
                &[Event::RELEASE, Event::START, Event::ABORT],
                &[Event::RELEASE, Event::ABORT],
            ];
            assert!(allowed.contains(&life.as_slice()), "{name}");
        }
    }

    /// Whether the first event is recorded before the second one, of the first jobs of these operations.
    pub fn is_before(&self, first: (Event, &str), second: (Event, &str)) -> bool {
        let at = |(event, name)| self.position(event, name, 0);
        at(first).is_some_and(|first| at(second).is_none_or(|second| first < second))
    }

    /// Whether a lane that all operations share held a job of each when it began the first one.
    pub fn began_together(&self) -> bool {
        let start = self.records.iter().find(|record| record.event == Event::START);
        start.is_some_and(|start| usize::from(start.arg) == self.system.operations().len())
    }
}

/// Says why a test about real-time scheduling is not run, if so.
pub(crate) fn without_realtime(ran: &Ran) -> bool {
    if !ran.outcome.realtime {
        talea_measure::skip(format!("no real-time priorities here: {}", ran.outcome.missing.join("; ")));
    }
    !ran.outcome.realtime
}
