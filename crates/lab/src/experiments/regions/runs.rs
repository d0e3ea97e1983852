//! One run: a region under a strategy, on one of the two clocks, as samples.

use super::mechanism::Mechanism;
use super::sampler::{Sample, Sampler};
use super::setting::{HYPERPERIOD, Region};
use crate::compare::{Clock, CompareError, Observer};
use crate::experiments::ExperimentError;
use crate::experiments::kernel_switches::{KernelSwitches, RecordedSwitches, SwitchRecorder};
use std::path::Path;
use talea_model::{Strategy, System};
use talea_record::{Record, Sink, TraceFile};
use talea_runtime::{Executive, Operations, RunOptions};
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

/// Samples at the beginning that are left out: until all phases have passed and the queues have the length that the load gives them.
pub const WARM_UP: usize = 1;

/// The samples of one region under one strategy.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Trial {
    /// The region.
    pub region: Region,
    /// The strategy.
    pub strategy: Strategy,
    /// After the warm-up.
    pub samples: Vec<Sample>,
    /// Whether every lane had a real-time priority; `None` in virtual time.
    pub realtime: Option<bool>,
    /// Records that were lost, whose jobs count as missed.
    pub lost_records: u64,
    /// Whose context switches were recorded; `None` in virtual time.
    pub recorded: Option<RecordedSwitches>,
}

/// How a run is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    /// Virtual or real time.
    pub clock: Clock,
    /// Samples after the warm-up.
    pub samples: usize,
}

impl Course {
    fn duration(self) -> Duration {
        let samples = (self.samples + WARM_UP) as i64;
        Duration::from_nanos(HYPERPERIOD.as_nanos() * samples)
    }

    /// Runs `region` under `strategy`; in virtual time at the prices of `mechanism`. A run that is cancelled has the samples
    /// that were complete.
    ///
    /// # Errors
    /// See [`ExperimentError`].
    pub fn run(
        self,
        region: Region,
        strategy: Strategy,
        mechanism: Mechanism,
        observer: &mut dyn Observer,
    ) -> Result<Trial, ExperimentError> {
        match self.clock {
            Clock::Virtual => self.simulate(region, strategy, mechanism, observer),
            Clock::Real => self.execute(region, strategy, observer),
        }
    }

    fn simulate(
        self,
        region: Region,
        strategy: Strategy,
        mechanism: Mechanism,
        observer: &mut dyn Observer,
    ) -> Result<Trial, ExperimentError> {
        observer.starting(&label(region, strategy), None);
        let system = mechanism.charge(&region.system(), strategy);
        let mut simulation = Simulation::new(&system)
            .map_err(|cause| CompareError::Simulation { strategy, cause })?
            .with_dispatch(talea_sim::DispatchRecords::Kept);
        let mut sampler = Sampler::new(simulation.metadata()).with_ordering(mechanism.ordering_ns);
        simulation.advance_while(Instant::ZERO + self.duration(), &mut sampler, |_| !observer.cancelled());
        simulation.finish(&mut sampler);
        Ok(trial(region, strategy, sampler, Conditions::Virtual))
    }

    fn execute(
        self,
        region: Region,
        strategy: Strategy,
        observer: &mut dyn Observer,
    ) -> Result<Trial, ExperimentError> {
        let unwritable = |cause: std::io::Error| ExperimentError::unwritable(&std::env::temp_dir(), cause);
        let folder = tempfile::tempdir().map_err(unwritable)?;
        let log = folder.path().join("trace.talea");
        let options = RunOptions {
            duration: Some(self.duration()),
            keep_log: Some(log.clone()),
            ..RunOptions::default()
        };
        let failed = |cause| CompareError::Run { strategy, cause: Box::new(cause) };
        let system = region.system().with_strategy(strategy);
        let recorder = SwitchRecorder::open(&processors(&system));
        let prepared = Executive::prepare(&system, Operations::synthetic(), options).map_err(failed)?;
        observer.starting(&label(region, strategy), Some(prepared.stop_handle()));
        let outcome = prepared.run().map_err(failed)?;
        let KernelSwitches { recorded, records } = recorder.finish();
        if let Some(cause) = outcome.log_failure {
            return Err(ExperimentError::unwritable(&log, cause));
        }
        let sampler =
            replay(&log, &records).map_err(|cause| ExperimentError::Unreadable { path: log, cause })?;
        Ok(trial(region, strategy, sampler, Conditions::Threads { realtime: outcome.realtime, recorded }))
    }
}

/// The processors of all nodes.
fn processors(system: &System) -> Vec<u16> {
    system.nodes.iter().flat_map(|node| node.cpus.iter().copied()).collect()
}

/// The run's own records and the kernel's, in the order of time.
fn replay(log: &Path, of_kernel: &[Record]) -> Result<Sampler, talea_record::TraceError> {
    let file = TraceFile::open(log)?;
    let mut sampler = Sampler::new(file.metadata());
    let mut of_kernel = of_kernel.iter().copied().peekable();
    for record in file.records()? {
        let record = record?;
        // A switch is earlier than anything that the thread records which gets the processor.
        while let Some(switch) = of_kernel.next_if(|switch| switch.time <= record.time) {
            sampler.record(switch);
        }
        sampler.record(record);
    }
    Ok(sampler)
}

/// What a run was under.
enum Conditions {
    Virtual,
    Threads { realtime: bool, recorded: RecordedSwitches },
}

fn trial(region: Region, strategy: Strategy, sampler: Sampler, conditions: Conditions) -> Trial {
    let (mut samples, lost_records) = sampler.finish();
    samples.drain(..WARM_UP.min(samples.len()));
    let (realtime, recorded) = match conditions {
        Conditions::Virtual => (None, None),
        Conditions::Threads { realtime, recorded } => (Some(realtime), Some(recorded)),
    };
    Trial { region, strategy, samples, realtime, lost_records, recorded }
}

fn label(region: Region, strategy: Strategy) -> String {
    format!("region {:>2} {:<7}", region.number(), strategy.keyword())
}

impl Trial {
    /// Mean soft deadlines made in a sample, where a sample with a critical miss counts 0: the vertical axis of the
    /// paper's Figure 4.
    pub fn effectiveness(&self) -> f64 {
        mean(self.samples.iter().map(|sample| sample.effectiveness() as f64))
    }

    /// Mean weighted fraction of soft deadlines made.
    pub fn efficiency(&self) -> f64 {
        mean(self.samples.iter().map(Sample::efficiency))
    }

    /// The weighted fraction of every sample.
    pub fn efficiencies(&self) -> Vec<f64> {
        self.samples.iter().map(Sample::efficiency).collect()
    }

    /// Samples in which a critical deadline was missed.
    pub fn hard_missed(&self) -> usize {
        self.samples.iter().filter(|sample| sample.hard_missed()).count()
    }
}

/// The mean of `values`, 0 without any.
pub fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    if count == 0 { 0.0 } else { sum / count as f64 }
}
