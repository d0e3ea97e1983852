//! Whole systems on real threads. Nothing here depends on how fast or how idle the machine is: the tests
//! check orders that are determined and counts that must agree.

mod allocation;
mod cluster;
mod graphs;
mod lanes;
mod operations;
mod overrun;
mod refusals;
mod stopping;
mod unprivileged;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use talea_model::{Strategy, System, SystemBuilder, TaskBuilder};
use talea_runtime::{Executive, Operations, Outcome, Prepared, RtMode, RunOptions};
use talea_time::{Duration, Work};
use talea_trace::{Event, JobId, Record, TraceFile};

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

pub(crate) fn run(system: &System, operations: Operations, options: RunOptions) -> Ran {
    run_with(system, operations, options, |prepared| prepared)
}

/// Runs until `instance` of the operation `name` has ended, however long that takes here.
pub(crate) fn run_until(
    system: &System,
    operations: Operations,
    rt: RtMode,
    name: &'static str,
    instance: u64,
) -> Ran {
    let options = RunOptions { duration: None, ..options(rt, 0) };
    run_with(system, operations, options, |prepared| {
        let stop = prepared.stop_handle();
        prepared.on_finished(Box::new(move |job| {
            if job.operation == name && job.instance == instance {
                stop.stop();
            }
        }))
    })
}

fn run_with(
    system: &System,
    operations: Operations,
    options: RunOptions,
    arrange: impl FnOnce(Prepared) -> Prepared,
) -> Ran {
    let _alone = alone();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let options = RunOptions { keep_log: Some(log.clone()), ..options };
    let prepared = Executive::prepare(system, operations, options).expect("the run can be prepared");
    let outcome = arrange(prepared).run().expect("the run can begin");
    let trace = TraceFile::open(&log).expect("the log is a trace");
    let records = trace.records().expect("readable").map(|record| record.expect("whole")).collect();
    let ran = Ran { outcome, records, system: system.clone() };
    ran.check_lives();
    ran
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
            let interruptions = [Event::PREEMPT, Event::RESUME];
            let lost = life.iter().filter(|event| **event == Event::PREEMPT).count();
            let regained = life.iter().filter(|event| **event == Event::RESUME).count();
            assert!(lost == regained || lost == regained + 1, "{name}");
            life.retain(|event| !interruptions.contains(event));
            let allowed: [&[Event]; 6] = [
                &[Event::SKIP],
                &[Event::RELEASE],
                &[Event::RELEASE, Event::START],
                &[Event::RELEASE, Event::START, Event::COMPLETE],
                &[Event::RELEASE, Event::START, Event::ABORT],
                &[Event::RELEASE, Event::ABORT],
            ];
            assert!(allowed.contains(&life.as_slice()), "{name}");
        }
        assert_eq!(self.outcome.late_records, 0, "records out of order");
    }
}

/// Says why a test about real-time scheduling is not run, if so.
pub(crate) fn without_realtime(ran: &Ran) -> bool {
    if !ran.outcome.realtime {
        println!("skipped: no real-time priorities here: {}", ran.outcome.missing.join("; "));
    }
    !ran.outcome.realtime
}
