//! The samples of all runs, found by region and strategy, and compared in pairs.

use super::runs::{Trial, mean};
use super::sampler::Sample;
use super::setting::Region;
use talea_model::Strategy;
use talea_statistics::{Interval, Spread, mean_interval, spread};

/// The trials made.
#[derive(Clone, Debug, Default)]
pub struct Results {
    trials: Vec<Trial>,
}

/// MUF against RMS+MLF in one region, sample by sample: both faced the identical demand.
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    /// The region.
    pub region: Region,
    pairs: Vec<(&'a Sample, &'a Sample)>,
}

/// A mean with what it may be off.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its bootstrap interval.
    pub interval: Interval,
}

impl Estimate {
    /// Whether it is above 0 beyond doubt.
    pub fn is_above_zero(&self) -> bool {
        self.interval.low > 0.0
    }

    /// Whether it is below 0 beyond doubt.
    pub fn is_below_zero(&self) -> bool {
        self.interval.high < 0.0
    }
}

impl std::fmt::Display for Estimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let places = f.precision().unwrap_or(2);
        write!(
            f,
            "{:+.places$} [{:+.places$}, {:+.places$}]",
            self.mean, self.interval.low, self.interval.high
        )
    }
}

/// Seed of all resampling.
pub const RESAMPLING: u64 = 1979;

impl Results {
    /// Adds a trial; one without samples says nothing and is left out.
    pub fn add(&mut self, trial: Trial) {
        if !trial.samples.is_empty() {
            self.trials.push(trial);
        }
    }

    /// Every trial.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The trial of a region under a strategy, if it was made.
    pub fn trial(&self, region: usize, strategy: Strategy) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.region.number() == region && trial.strategy == strategy)
    }

    /// The trials of a strategy in these regions, if all were made.
    pub fn over(&self, regions: impl Iterator<Item = usize>, strategy: Strategy) -> Option<Vec<&Trial>> {
        regions.map(|region| self.trial(region, strategy)).collect()
    }

    /// The spread of the weighted fractions of a region under a strategy.
    pub fn fractions(&self, region: usize, strategy: Strategy) -> Option<Spread> {
        self.trial(region, strategy).and_then(|trial| spread(&trial.efficiencies()))
    }

    /// MUF against RMS+MLF in a region.
    pub fn pairs(&self, region: usize) -> Option<Pairs<'_>> {
        let muf = self.trial(region, Strategy::Muf)?;
        let hybrid = self.trial(region, Strategy::RmsMlf)?;
        Some(Pairs { region: muf.region, pairs: muf.samples.iter().zip(&hybrid.samples).collect() })
    }
}

impl Pairs<'_> {
    /// The samples of both.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.pairs.iter().flat_map(|(muf, hybrid)| [*muf, *hybrid])
    }

    /// What MUF has more than RMS+MLF of `quantity`, sample by sample.
    pub fn differences(&self, quantity: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.pairs.iter().map(|(muf, hybrid)| quantity(muf) - quantity(hybrid)).collect()
    }

    /// The mean of these differences.
    pub fn difference(&self, quantity: impl Fn(&Sample) -> f64) -> Option<Estimate> {
        let differences = self.differences(quantity);
        let interval = mean_interval(&differences, RESAMPLING)?;
        Some(Estimate { mean: mean(differences.into_iter()), interval })
    }
}
