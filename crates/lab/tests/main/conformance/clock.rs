//! Where a system runs: in virtual time, or on threads.

use super::Observation;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use talea_model::System;
use talea_record::{Event, Record, TraceFile};
use talea_runtime::{Executive, Operations, RtMode, RunOptions, Start};
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

/// Whether a lower lane of a processor is kept from running while a higher one has work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Levels {
    /// Yes.
    Enforced,
    /// No: the kernel shares the processor between the lanes as it likes.
    Ignored,
}

/// Something that runs systems and leaves records.
pub trait Clock {
    /// For messages.
    fn name(&self) -> String;

    /// Runs `system` until every job of `until`, written `operation#instance`, is over.
    fn run(&self, system: &System, until: &[String]) -> Observation;
}

/// Virtual time.
pub struct Simulated;

impl Clock for Simulated {
    fn name(&self) -> String {
        "simulator".into()
    }

    fn run(&self, system: &System, until: &[String]) -> Observation {
        const SLICE: Duration = Duration::from_millis(10);
        const LIMIT: Instant = Instant::from_nanos(60_000_000_000);
        let mut simulation = Simulation::new(system).expect("the system can be simulated");
        let metadata = simulation.metadata().clone();
        let (mut records, mut seen) = (Vec::new(), 0);
        let mut left: HashSet<&str> = until.iter().map(String::as_str).collect();
        while !left.is_empty() {
            assert!(simulation.now() < LIMIT, "the simulator does not end {left:?}");
            simulation.advance(simulation.now() + SLICE, &mut records);
            for record in &records[seen..] {
                if [Event::COMPLETE, Event::ABORT, Event::SKIP].contains(&record.event) {
                    left.remove(super::observation::job_of(&metadata, record).as_str());
                }
            }
            seen = records.len();
        }
        simulation.finish(&mut records);
        Observation { metadata, records, levels: Levels::Enforced }
    }
}

/// Real threads of this process.
pub struct Threads(pub RtMode);

impl Clock for Threads {
    fn name(&self) -> String {
        format!("threads, rt {}", self.0)
    }

    fn run(&self, system: &System, until: &[String]) -> Observation {
        let _alone = alone();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("trace.talea");
        let start = Start::After(Duration::from_millis(20));
        let options = RunOptions { rt: self.0, start, keep_log: Some(log.clone()), ..RunOptions::default() };
        let prepared =
            Executive::prepare(system, Operations::synthetic(), options).expect("the run can be prepared");
        let stop = prepared.stop_handle();
        let mut left: HashSet<String> = until.iter().cloned().collect();
        let prepared = prepared.on_finished(Box::new(move |job| {
            left.remove(&format!("{}#{}", job.operation, job.instance));
            if left.is_empty() {
                stop.stop();
            }
        }));
        let outcome = prepared.run().expect("the run can begin");
        let trace = TraceFile::open(&log).expect("the log is a trace");
        let mut records: Vec<Record> =
            trace.records().expect("readable").map(|record| record.expect("whole")).collect();
        // A thread that is kept from running before it writes a record leaves it behind later ones.
        records.sort_by_key(|record| record.time);
        let levels = if outcome.realtime { Levels::Enforced } else { Levels::Ignored };
        if self.0 != RtMode::Off && levels == Levels::Ignored {
            talea_measure::skip(format!(
                "the order between lanes; no real-time priorities: {}",
                outcome.missing.join("; ")
            ));
        }
        Observation { metadata: trace.metadata().clone(), records, levels }
    }
}

/// Runs of several systems at once would get into each other's way on the same processors.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first two processors this process may use, or twice the only one.
pub fn cpus() -> [u16; 2] {
    let available = talea_linux::affinity::allowed().expect("the kernel says where we may run");
    let first = *available.first().expect("we run somewhere");
    [first, available.get(1).copied().unwrap_or(first)]
}
