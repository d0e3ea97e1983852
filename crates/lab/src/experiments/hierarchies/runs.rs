//! One run of a hierarchy on either clock: what each thread wanted, was granted and received.

use super::service::{Ledger, Service};
use crate::compare::Observer;
use crate::experiments::ExperimentError;
use crate::experiments::kernel_switches::{KernelSwitches, RecordedSwitches, SwitchRecorder};
use std::path::Path;
use talea_linux::throttling::{KeptFrom, kept_parts};
use talea_model::System;
use talea_policy::arrangement::Kept;
use talea_record::{Record, Sink, TraceFile};
use talea_runtime::{Executive, HierarchyOutcome, Lower, Operations, RunOptions, Slicing};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant};

/// What a run left.
#[derive(Clone, Debug)]
pub struct Run {
    /// What each thread wanted, was granted and received.
    pub service: Service,
    /// Whether the guarantee on every edge was kept, by what the hierarchy granted.
    pub kept: Vec<Kept>,
    /// Whose context switches were recorded; none in virtual time.
    pub recorded: Option<RecordedSwitches>,
    /// Why it ended early, if it did.
    pub cause: Option<String>,
}

fn failed(system: &System, cause: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Hierarchy { system: system.name.clone(), cause: cause.to_string() }
}

/// In virtual time, at no cost of switching.
///
/// # Errors
/// It cannot be simulated.
pub fn simulate(
    system: &System,
    duration: Duration,
    observer: &mut dyn Observer,
) -> Result<Run, ExperimentError> {
    observer.starting(&format!("{} in virtual time", system.name), None);
    let simulation = Simulation::new(system).map_err(|cause| failed(system, cause))?;
    let mut simulation = simulation.with_dispatch(DispatchRecords::Kept);
    let mut ledger = Ledger::new(simulation.metadata());
    simulation.advance_while(Instant::ZERO + duration, &mut ledger, |_| !observer.cancelled());
    let kept = simulation.kept(0).unwrap_or_default();
    simulation.finish(&mut ledger);
    Ok(Run { service: ledger.finish(), kept, recorded: None, cause: None })
}

/// On real threads, under the infrastructure's own schedulers: those are what is judged.
///
/// # Errors
/// Real-time priorities are not permitted, or the records cannot be kept.
pub fn execute(
    system: &System,
    duration: Duration,
    observer: &mut dyn Observer,
) -> Result<Run, ExperimentError> {
    let unwritable = |cause: std::io::Error| ExperimentError::unwritable(&std::env::temp_dir(), cause);
    let folder = tempfile::tempdir().map_err(unwritable)?;
    let log = folder.path().join("trace.talea");
    let options = RunOptions {
        duration: Some(duration),
        keep_log: Some(log.clone()),
        lower: Lower::Never,
        slicing: slicing(),
        ..RunOptions::default()
    };
    let cpus: Vec<u16> = system.nodes.iter().flat_map(|node| node.cpus.iter().copied()).collect();
    let recorder = SwitchRecorder::open(&cpus);
    let prepared = Executive::prepare(system, Operations::synthetic(), options)
        .map_err(|cause| failed(system, cause))?;
    observer.starting(&system.name, Some(prepared.stop_handle()));
    let outcome = prepared.run().map_err(|cause| failed(system, cause))?;
    let KernelSwitches { recorded, records } = recorder.finish();
    if let Some(cause) = &outcome.log_failure {
        return Err(ExperimentError::unwritable(&log, cause));
    }
    let service = replay(&log, &records).map_err(|cause| ExperimentError::Unreadable { path: log, cause })?;
    let hierarchy: HierarchyOutcome =
        outcome.hierarchies.into_iter().next().expect("the systems have a hierarchy");
    let clock = |name: &str| {
        let of = hierarchy.members.iter().find(|member| member.thread == name);
        of.map(|member| member.received_ns)
    };
    let service = service.verified(clock);
    Ok(Run {
        service,
        kept: hierarchy.edges,
        recorded: Some(recorded),
        cause: hierarchy.ended_early.map(|ended| ended.cause),
    })
}

/// Where throttling has been lifted, nothing is left to ordinary threads but what the fair server takes for them.
pub fn slicing() -> Slicing {
    let is_throttled = kept_parts().iter().any(|(by, _)| *by == KeptFrom::Throttling);
    if is_throttled { Slicing::WhereLimited } else { Slicing::Never }
}

/// The run's own records and the kernel's, in the order of time.
fn replay(log: &Path, of_kernel: &[Record]) -> Result<Service, talea_record::TraceError> {
    let file = TraceFile::open(log)?;
    let mut ledger = Ledger::new(file.metadata());
    let mut of_kernel = of_kernel.iter().copied().peekable();
    for record in file.records()? {
        let record = record?;
        while let Some(switch) = of_kernel.next_if(|switch| switch.time <= record.time) {
            ledger.record(switch);
        }
        ledger.record(record);
    }
    Ok(ledger.finish())
}
