//! Effectiveness and efficiency, the metric of Gill et al. (2002, section 3.3).
//!
//! The run is cut into samples of equal length from its start, or from the first job of a recording that began later. A
//! sample's **effectiveness** is the number of soft deadlines met in it, or 0 if a critical instance failed in it; its
//! **efficiency** is that divided by the soft instances decided in it.
//!
//! Sample `k` covers the instants after `start + k * length` up to and including
//! `start + (k + 1) * length`, so that a deadline at the end of a run belongs to its last sample. An
//! instance is decided when it completes in time, when its deadline expires, or when it is skipped or
//! aborted before that. A skipped critical instance is a failure as well: nobody got its result.

use serde::{Deserialize, Serialize};
use talea_model::Criticality;
use talea_time::{Duration, Instant};

/// Whether a miss of the task is a failure of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Critical,
    Soft,
}

impl Kind {
    pub fn of(criticality: Criticality) -> Self {
        if criticality.is_critical() { Kind::Critical } else { Kind::Soft }
    }
}

/// Whether single samples are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    /// Totals and means only: constant memory.
    Totals,
    /// Every sample in which something was decided.
    Keep,
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Its number, from 0.
    pub index: u64,
    /// Soft deadlines met.
    pub soft_met: u64,
    /// Soft instances decided: met, missed or skipped.
    pub soft_offered: u64,
    /// Critical instances missed or skipped.
    pub critical_failures: u64,
    /// Soft deadlines met, or 0 if a critical instance failed.
    pub effectiveness: u64,
}

/// Totals over all complete samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleReport {
    /// Length of a sample.
    pub sample_ns: i64,
    /// Complete samples in the run. A last one cut short is left out unless it is the only one.
    pub samples: u64,
    /// Samples in which a critical instance was missed or skipped.
    pub samples_with_critical_failure: u64,
    /// Mean effectiveness of the samples.
    pub mean_effectiveness: f64,
    /// Mean efficiency of the samples in which a soft instance was decided; `None` without any.
    pub mean_efficiency: Option<f64>,
    /// The samples in which something was decided, if they were to be kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<Sample>,
}

/// The current sample and the totals.
#[derive(Debug)]
pub(super) struct SampleClock {
    length_ns: i64,
    keep: Samples,
    /// The last instant of the current sample.
    boundary_ns: i64,
    current: Sample,
    with_critical_failure: u64,
    with_soft: u64,
    effectiveness: u64,
    efficiency: f64,
    list: Vec<Sample>,
}

impl SampleClock {
    /// # Panics
    /// If `length` is not positive.
    pub fn new(start: Instant, length: Duration, keep: Samples) -> Self {
        assert!(length > Duration::ZERO, "a sample has a length");
        let boundary_ns = start.saturating_add(length).as_nanos();
        SampleClock {
            length_ns: length.as_nanos(),
            keep,
            boundary_ns,
            current: Sample {
                index: 0,
                soft_met: 0,
                soft_offered: 0,
                critical_failures: 0,
                effectiveness: 0,
            },
            with_critical_failure: 0,
            with_soft: 0,
            effectiveness: 0,
            efficiency: 0.0,
            list: Vec::new(),
        }
    }

    /// The first sample, of which nothing is known yet, begins at `start`.
    pub fn begin(&mut self, start: Instant) {
        self.boundary_ns = start.as_nanos().saturating_add(self.length_ns);
    }

    pub fn keep(&mut self, keep: Samples) {
        self.keep = keep;
    }

    #[inline]
    pub fn boundary_ns(&self) -> i64 {
        self.boundary_ns
    }

    #[inline]
    pub fn met(&mut self, kind: Kind) {
        if kind == Kind::Soft {
            self.current.soft_met += 1;
            self.current.soft_offered += 1;
        }
    }

    /// `count` instances missed or skipped.
    #[inline]
    pub fn failed(&mut self, kind: Kind, count: u64) {
        match kind {
            Kind::Critical => self.current.critical_failures += count,
            Kind::Soft => self.current.soft_offered += count,
        }
    }

    /// Ends the current sample and begins the next one.
    pub fn close(&mut self) {
        let mut sample = self.current;
        let failed = sample.critical_failures > 0;
        sample.effectiveness = if failed { 0 } else { sample.soft_met };
        self.with_critical_failure += u64::from(failed);
        self.effectiveness += sample.effectiveness;
        if sample.soft_offered > 0 {
            self.with_soft += 1;
            self.efficiency += sample.effectiveness as f64 / sample.soft_offered as f64;
        }
        if self.keep == Samples::Keep && (sample.soft_offered > 0 || failed) {
            self.list.push(sample);
        }
        self.current = Sample {
            index: sample.index + 1,
            soft_met: 0,
            soft_offered: 0,
            critical_failures: 0,
            effectiveness: 0,
        };
        self.boundary_ns = self.boundary_ns.saturating_add(self.length_ns);
    }

    /// Moves on to the sample of `time_ns`, over samples in which nothing happened.
    pub fn skip_to(&mut self, time_ns: i64) {
        if time_ns > self.boundary_ns {
            let ahead = i128::from(time_ns) - i128::from(self.boundary_ns);
            let length = i128::from(self.length_ns);
            let samples = (ahead + length - 1) / length;
            self.current.index += samples as u64;
            let boundary = i128::from(self.boundary_ns) + samples * length;
            self.boundary_ns = boundary.min(i128::from(i64::MAX)) as i64;
        }
    }

    /// The totals of a run that ended at `end_ns`, in the current sample.
    pub fn finish(mut self, end_ns: i64) -> SampleReport {
        if self.boundary_ns <= end_ns || self.current.index == 0 {
            self.close();
        }
        let samples = self.current.index;
        SampleReport {
            sample_ns: self.length_ns,
            samples,
            samples_with_critical_failure: self.with_critical_failure,
            mean_effectiveness: self.effectiveness as f64 / samples as f64,
            mean_efficiency: (self.with_soft > 0).then(|| self.efficiency / self.with_soft as f64),
            list: self.list,
        }
    }
}
